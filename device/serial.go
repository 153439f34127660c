package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

// closeWait bounds Close. The kernel may hold a close for 30 s while output
// cannot be sent; the port is then left to close by itself.
const closeWait = 2 * time.Second

func (o Options) mode() *serial.Mode {
	m := &serial.Mode{BaudRate: o.BaudRate, DataBits: o.DataBits, Parity: parities[o.Parity]}
	if o.StopBits == 2 {
		m.StopBits = serial.TwoStopBits
	}
	return m
}

// serialLine is an open serial port that nobody else holds.
type serialLine struct {
	name string // for error texts: logical name and path

	use     sync.Mutex // held during every call of port, so that none comes after its Close
	port    serial.Port
	own     int // our descriptor of the same port: holds the lock, answers poll and ioctl
	buffer  [readBytes]byte
	closing chan struct{} // closed when Close is first called

	once     sync.Once
	closed   chan struct{} // closed when both descriptors are; then closeErr is set
	closeErr error
}

// openSerial opens the port at path, locks out everybody else and sets the line.
// It follows links, so a name in /dev/serial/by-id keeps to one adapter.
//
// Opening raises DTR and RTS, which the kernel does before anybody can stop it;
// closing does not drop them (HUPCL is cleared), so a reader that resets on DTR
// does so once per power-up of the adapter rather than at each restart of ours.
func openSerial(o Options, path string) (*serialLine, error) {
	c, err := claim(o, path)
	if err != nil {
		return nil, err
	}
	port, err := c.open(o)
	if err != nil {
		_ = letGo(c.own) // err is what matters
		return nil, err
	}
	return &serialLine{name: o.Name + ": " + o.Address, port: port, own: c.own,
		closing: make(chan struct{}), closed: make(chan struct{})}, nil
}

// Read is Line's. A byte with a parity or framing error, and a break, arrive as
// a zero byte: the protocol's checksum has to catch them.
func (s *serialLine) Read(ctx context.Context) (Chunk, error) {
	return readAny(ctx, s.readOnce)
}

// readOnce makes one bounded read; no bytes and no error is a time-out.
func (s *serialLine) readOnce() (Chunk, error) {
	s.use.Lock()
	defer s.use.Unlock()
	if isClosed(s.closing) {
		return Chunk{}, s.fail("read", ErrClosed)
	}
	n, err := s.port.Read(s.buffer[:])
	at := time.Now()
	if n > 0 {
		return Chunk{At: at, Bytes: slices.Clone(s.buffer[:n])}, nil
	}
	if err == nil || errors.Is(err, unix.EAGAIN) {
		return Chunk{}, nil
	}
	return Chunk{}, s.fail("read", err)
}

// Write is Line's.
func (s *serialLine) Write(ctx context.Context, p []byte) error {
	return writeAll(ctx, s.name, p, s.writeOnce)
}

// writeOnce writes what the kernel takes at once; if that is nothing it waits
// a bounded time for room.
func (s *serialLine) writeOnce(p []byte) (int, error) {
	s.use.Lock()
	defer s.use.Unlock()
	if isClosed(s.closing) {
		return 0, s.fail("write", ErrClosed)
	}
	n, err := s.port.Write(p)
	switch {
	case errors.Is(err, unix.EINTR):
		return n, nil
	case errors.Is(err, unix.EAGAIN):
		// The result does not matter: the next write tells.
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.own), Events: unix.POLLOUT}}, int(readWait.Milliseconds()))
		return n, nil
	case err != nil:
		return n, s.fail("write", err)
	}
	return n, nil
}

// fail names the port in an error of the library and tells a lost port from
// other failures.
func (s *serialLine) fail(doing string, err error) error {
	var pe *serial.PortError
	gone := errors.As(err, &pe) && pe.Code() == serial.PortClosed
	for _, e := range []error{unix.EIO, unix.ENODEV, unix.ENXIO} {
		gone = gone || errors.Is(err, e)
	}
	if gone {
		return fmt.Errorf("%s: %w: check the cable and the adapter", s.name, ErrUnplugged)
	}
	return fmt.Errorf("%s: %s: %w", s.name, doing, err)
}

// Close is Line's. If the kernel holds the close for longer than two seconds it
// returns an error, and the port stays taken until the kernel lets go.
func (s *serialLine) Close() error {
	s.once.Do(func() {
		close(s.closing)
		go s.release() // ends when the kernel has closed both descriptors
	})
	select {
	case <-s.closed:
		return s.closeErr
	case <-time.After(closeWait):
		return fmt.Errorf("%s: not closed within %v; the port stays taken until the kernel lets go", s.name, closeWait)
	}
}

func (s *serialLine) release() {
	s.use.Lock()
	defer s.use.Unlock()
	s.closeErr = errors.Join(s.port.Close(), letGo(s.own))
	if s.closeErr != nil {
		s.closeErr = fmt.Errorf("%s: close: %w", s.name, s.closeErr)
	}
	close(s.closed)
}
