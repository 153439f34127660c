package device

import "time"

// Chunk is the bytes of one read, with the time at which they were read.
type Chunk struct {
	At    time.Time
	Bytes []byte
}

// Kind says what happened on a line.
type Kind uint8

const (
	Received Kind = iota + 1 // bytes were read
	Up                       // the line is open
	Down                     // the line is not open, or for another reason than before
	Lost                     // bytes were read and dropped because the queue was full
)

var kindText = [...]string{"invalid", "received", "up", "down", "lost"}

// String is the kind in one lower-case word.
func (k Kind) String() string {
	if int(k) >= len(kindText) {
		return kindText[0]
	}
	return kindText[k]
}

// Signal is one thing that happened on a line.
type Signal struct {
	Kind Kind
	Name string // of the device
	// At is when the bytes were read, when the line came up or was found down,
	// or when the first of the lost bytes were read.
	At        time.Time
	Bytes     []byte // Received: the bytes of one read
	LostBytes int64  // Lost: how many bytes were dropped here, at least 1
	Cause     error  // Down: why, ready to be shown; see the Err values
}
