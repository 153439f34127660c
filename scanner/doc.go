// Package scanner turns the bytes of a reader into facts for the game.
//
// There is one decoder per protocol: a file with the protocol's description
// above its code, a line in the table of New, and its captures in testdata. A
// decoder first finds frames in the bytes, then proves them, and only then
// takes fields out of them. What it refuses it counts, reports as a FrameError,
// and reads on: noise on a line is normal, and stops nothing.
//
// Decoders are pure. They have no clock and do no input or output; fed the same
// bytes at the same times they give the same readings, however the bytes were
// cut into chunks. So the journal can keep chunks and prove a day by decoding
// them again, from a Snapshot on.
//
// Some readers are wires of a GPIO chip. Their bytes are records of edges and
// levels, which wires.go describes, splits and puts in order; what they mean is
// then the protocol's own file.
package scanner
