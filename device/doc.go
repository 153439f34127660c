// Package device opens and reads the hardware of one table. It stamps what
// arrives at the read and nowhere else, reconnects, and decodes nothing.
//
// A line leads to a reader: bytes, or the wires of a GPIO chip as records in
// bytes. Follow keeps one line open and puts what happens on it (Signal) into a
// bounded Queue, from which the core takes it.
//
//	line.go      Line, and Open with its addresses
//	serial.go    a line that is a serial port
//	tcp.go       a line that is a connection to a serial device server
//	wires.go     a line that is wires of a GPIO chip
//	record.go    what is told of wires, in bytes
//	request.go   how lines of a chip are asked for
//	chip.go      which GPIO chip and which of its lines are meant
//	header.go    the header of a Raspberry Pi
//	gpio.go      what is asked of the kernel for them
//	chips.go     which GPIO chips and lines there are
//	pin.go       one wire as periph's gpio.PinIn
//	lamps.go     outputs, which are off until told
//	recorder.go  a line that is written down as it is read
//	ports.go     which serial ports there are, from sysfs, and which one is meant
//	claim.go     how a port is opened so that nobody else has it
//	refusal.go   why a port could not be opened, in words an operator can act on
//	follow.go    the loop that opens, reads and reopens
//	queue.go     the buffer between that loop and the core
//
// The port library (go.bug.st/serial) has four traps that shape this code: a
// call after its Close acts on whatever file has taken the descriptor over; its
// Close and its Write can hang; a read time-out is (0, nil); and its descriptors
// are inherited by child processes. So every call of it is made under one lock
// that also guards Close, its descriptor is made non-blocking and close-on-exec,
// and its value never leaves serialLine.
package device
