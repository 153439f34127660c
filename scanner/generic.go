package scanner

// Frame says how a generic reader sends a code.
type Frame struct{}
