package device

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

const (
	// readWait is how long one call of the port library waits for a byte: the
	// most by which Read outlives its context and Close waits for Read. Ten idle
	// wake-ups a second cost nothing; bytes that arrive are never held back by it.
	readWait = 100 * time.Millisecond
	// writeWait is how long a write may make no progress before the line counts
	// as lost. At 300 baud, the slowest we accept, it still passes 60 bytes.
	writeWait = 2 * time.Second
	// closeWait bounds Close. The kernel may hold a close for 30 s while output
	// cannot be sent; the port is then left to close by itself.
	closeWait = 2 * time.Second
	// readBytes is the most that one read takes: the kernel's own tty buffer.
	readBytes = 4096
)

var (
	// ErrUnplugged marks a line that was open and is gone; reopen it.
	ErrUnplugged = errors.New("unplugged")
	// ErrAbsent marks a port that is not there.
	ErrAbsent = errors.New("no such device")
	// ErrPermission marks a port that this process may not open.
	ErrPermission = errors.New("no permission")
	// ErrTaken marks a port that somebody else holds.
	ErrTaken = errors.New("in use")
	// ErrNotSerial marks a path that is no serial port, or one that cannot be
	// set as asked.
	ErrNotSerial = errors.New("not a usable serial port")
	// ErrClosed is returned by Read and Write after Close.
	ErrClosed = errors.New("closed")
)

// SerialOptions say which port to open and how the line is set. A zero number
// or an empty Parity means the line of the Angel Eye: 4800 baud 8N1. There is no
// flow control.
type SerialOptions struct {
	Name     string // logical name for error texts, such as "reader"
	Path     string // absolute; a link such as /dev/serial/by-id/... is followed at each opening
	BaudRate int    // 300 to 4000000
	DataBits int    // 5 to 8
	Parity   string // "none", "even" or "odd"
	StopBits int    // 1 or 2
}

var parities = map[string]serial.Parity{"none": serial.NoParity, "even": serial.EvenParity, "odd": serial.OddParity}

// checked returns the options with their defaults filled in, or an error that
// names every value that cannot be used.
func (o SerialOptions) checked() (SerialOptions, error) {
	fill := func(v *int, usual int) {
		if *v == 0 {
			*v = usual
		}
	}
	fill(&o.BaudRate, 4800)
	fill(&o.DataBits, 8)
	fill(&o.StopBits, 1)
	if o.Parity == "" {
		o.Parity = "none"
	}
	var wrong []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	want(filepath.IsAbs(o.Path), "path %q is not absolute", o.Path)
	want(o.BaudRate >= 300 && o.BaudRate <= 4000000, "baud rate %d is not 300 to 4000000", o.BaudRate)
	want(o.DataBits >= 5 && o.DataBits <= 8, "data bits %d are not 5 to 8", o.DataBits)
	_, known := parities[o.Parity]
	want(known, "parity %q is not none, even or odd", o.Parity)
	want(o.StopBits == 1 || o.StopBits == 2, "stop bits %d are not 1 or 2", o.StopBits)
	if len(wrong) > 0 {
		return o, fmt.Errorf("serial line %s: %s", o.Name, strings.Join(wrong, "; "))
	}
	return o, nil
}

func (o SerialOptions) mode() *serial.Mode {
	m := &serial.Mode{BaudRate: o.BaudRate, DataBits: o.DataBits, Parity: parities[o.Parity]}
	if o.StopBits == 2 {
		m.StopBits = serial.TwoStopBits
	}
	return m
}

// Serial is an open serial port that nobody else holds. One goroutine owns it
// and calls Read and Write; Close may be called from any.
type Serial struct {
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

// OpenSerial opens the port, locks out everybody else and sets the line. It
// follows links, so a name in /dev/serial/by-id keeps to one adapter.
//
// The error wraps one of ErrAbsent, ErrPermission, ErrTaken and ErrNotSerial, or
// names the options that cannot be used, and says what to do.
//
// Opening raises DTR and RTS, which the kernel does before anybody can stop it;
// closing does not drop them (HUPCL is cleared), so a reader that resets on DTR
// does so once per power-up of the adapter rather than at each restart of ours.
func OpenSerial(o SerialOptions) (*Serial, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	c, err := claim(o)
	if err != nil {
		return nil, err
	}
	port, err := c.open(o)
	if err != nil {
		_ = letGo(c.own) // err is what matters
		return nil, err
	}
	return &Serial{name: o.Name + ": " + o.Path, port: port, own: c.own,
		closing: make(chan struct{}), closed: make(chan struct{})}, nil
}

// Read waits for bytes and returns them as soon as there are any. It returns
// the error of ctx within 100 ms of its end, an error wrapping ErrUnplugged when
// the port is gone, and ErrClosed after Close; any other error is final.
//
// A byte with a parity or framing error, and a break, arrive as a zero byte: the
// protocol's checksum has to catch them.
func (s *Serial) Read(ctx context.Context) (Chunk, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Chunk{}, err
		}
		c, err := s.readOnce()
		if err != nil || len(c.Bytes) > 0 {
			return c, err
		}
	}
}

// readOnce makes one bounded read; no bytes and no error is a time-out.
func (s *Serial) readOnce() (Chunk, error) {
	s.use.Lock()
	defer s.use.Unlock()
	if s.isClosing() {
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

// Write sends all of p, or returns an error saying how much the kernel took. It
// returns within 100 ms of the end of ctx. A line that takes nothing for two
// seconds counts as lost (ErrUnplugged). Nil means handed to the kernel: only an
// answer proves that the bytes have arrived.
func (s *Serial) Write(ctx context.Context, p []byte) error {
	sent, progress := 0, time.Now()
	for sent < len(p) {
		err := ctx.Err()
		if err == nil && time.Since(progress) > writeWait {
			err = fmt.Errorf("%w: the line has taken nothing for %v", ErrUnplugged, writeWait)
		}
		var n int
		if err == nil {
			n, err = s.writeOnce(p[sent:])
		}
		if n > 0 {
			sent, progress = sent+n, time.Now()
		}
		if err != nil {
			return fmt.Errorf("%w (%d of %d bytes written)", err, sent, len(p))
		}
	}
	return nil
}

// writeOnce writes what the kernel takes at once; if that is nothing it waits
// a bounded time for room.
func (s *Serial) writeOnce(p []byte) (int, error) {
	s.use.Lock()
	defer s.use.Unlock()
	if s.isClosing() {
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
func (s *Serial) fail(doing string, err error) error {
	var pe *serial.PortError
	gone := errors.As(err, &pe) && pe.Code() == serial.PortClosed
	for _, e := range []error{unix.EIO, unix.ENODEV, unix.ENXIO} {
		gone = gone || errors.Is(err, e)
	}
	if gone {
		return fmt.Errorf("%s: %w while open; check the cable and the adapter", s.name, ErrUnplugged)
	}
	return fmt.Errorf("%s: %s: %w", s.name, doing, err)
}

func (s *Serial) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Close gives the port up; a Read or Write that is under way returns ErrClosed.
// Further calls return what the first did. If the kernel holds the close for
// longer than two seconds Close returns an error, and the port stays taken until
// the kernel lets go.
func (s *Serial) Close() error {
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

func (s *Serial) release() {
	s.use.Lock()
	defer s.use.Unlock()
	s.closeErr = errors.Join(s.port.Close(), letGo(s.own))
	if s.closeErr != nil {
		s.closeErr = fmt.Errorf("%s: close: %w", s.name, s.closeErr)
	}
	close(s.closed)
}
