package device

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.bug.st/serial"
)

const (
	// readWait is how long one call waits for a byte, or for room: the most by
	// which Read and Write outlive their context, and Close waits for them. Ten
	// idle wake-ups a second cost nothing; bytes that arrive are never held back.
	readWait = 100 * time.Millisecond
	// writeWait is how long a write may make no progress before the line counts
	// as lost. At 300 baud, the slowest we accept, it still passes 60 bytes.
	writeWait = 2 * time.Second
	// readBytes is the most that one read takes: the kernel's own tty buffer.
	readBytes = 4096
)

var (
	// ErrUnplugged marks a line that was open and is gone; reopen it.
	ErrUnplugged = errors.New("connection lost")
	// ErrAbsent marks a port that is not there.
	ErrAbsent = errors.New("no such device")
	// ErrAmbiguous marks an address that more than one port has.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrPermission marks a port that this process may not open.
	ErrPermission = errors.New("no permission")
	// ErrTaken marks a port that somebody else holds.
	ErrTaken = errors.New("in use")
	// ErrNotSerial marks a path that is no serial port, or one that cannot be
	// set as asked.
	ErrNotSerial = errors.New("not a usable serial port")
	// ErrNotWire marks GPIO lines, or a chip, that cannot be used as asked.
	ErrNotWire = errors.New("not usable as wires")
	// ErrUnreachable marks a device server to which there is no connection.
	ErrUnreachable = errors.New("not reachable")
	// ErrClosed is returned by Read and Write after Close.
	ErrClosed = errors.New("closed")
)

// Line is an open line to a reader. One goroutine owns it and calls Read and
// Write; Close may be called from any.
type Line interface {
	// Read waits for bytes and returns them as soon as there are any. It returns
	// the error of ctx within 100 ms of its end, an error wrapping ErrUnplugged
	// when the line is gone, and ErrClosed after Close; any other error is final.
	Read(ctx context.Context) (Chunk, error)
	// Write sends all of p, or returns an error saying how much the kernel took.
	// It returns within 100 ms of the end of ctx. A line that takes nothing for
	// two seconds counts as lost (ErrUnplugged). Nil means handed to the kernel:
	// only an answer proves that the bytes have arrived.
	Write(ctx context.Context, p []byte) error
	// Close gives the line up; a Read or Write that is under way returns
	// ErrClosed. Further calls return what the first did.
	Close() error
}

// Options say which line to open and how it is set. A zero number or an empty
// Parity means the line of the Angel Eye: 4800 baud 8N1. There is no flow
// control. A device server sets its line itself.
type Options struct {
	Name string // logical name for error texts, such as "reader"
	// Address is one of
	//
	//	/dev/...               a port; a link such as one in /dev/serial/by-id is followed at each opening
	//	usb:VID:PID[:SERIAL]   the one USB adapter that has these, looked for at each opening
	//	tcp://host:port        a serial device server that passes bytes as they are (raw, not telnet or
	//	                       RFC 2217); also tcp:host:port
	//	gpio:CHIP              Wires of the GPIO chip with that label (pinctrl-bcm2711), name (gpiochip0) or
	//	                       path. Labels stay; the number in name and path may change at each boot
	Address  string
	BaudRate int    // 300 to 4000000
	DataBits int    // 5 to 8
	Parity   string // "none", "even" or "odd"
	StopBits int    // 1 or 2

	Wires  []Wire        // of gpio: 1 to 16, requested together; the bytes of Read are WireRecords
	Settle time.Duration // of gpio: from the strobe's edge to reading the levels, twice; up to 20 ms

	// Opener opens a line that is not there, such as a simulated chip; nil opens
	// Address. It is given these options as they are.
	Opener func(context.Context, Options) (Line, error)

	root   string // where dev and sys are: "/" but in tests
	kernel kernel // of GPIO: linux but in tests
}

// Open opens the line. Its error wraps one of ErrAbsent, ErrAmbiguous,
// ErrPermission, ErrTaken, ErrNotSerial, ErrNotWire and ErrUnreachable, or names
// the options that cannot be used, and says what to do.
func Open(ctx context.Context, o Options) (Line, error) {
	if o.Opener != nil {
		return o.Opener(ctx, o)
	}
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	var line Line
	if server, ok := tcpServer(o.Address); ok {
		line, err = openTCP(ctx, o, server)
	} else if _, ok := chipAddress(o.Address); ok {
		line, err = openWires(o)
	} else {
		var path string
		if path, err = o.path(); err == nil {
			line, err = openSerial(o, path)
		}
	}
	if err != nil {
		return nil, err // without it, line would be a nil pointer that is no nil Line
	}
	return line, nil
}

// path is the port's.
func (o Options) path() (string, error) {
	if wanted, ok := usbAddress(o.Address); ok {
		return o.findUSB(wanted)
	}
	return o.Address, nil
}

var parities = map[string]serial.Parity{"none": serial.NoParity, "even": serial.EvenParity, "odd": serial.OddParity}

// checked returns the options with their defaults filled in, or an error that
// names every value that cannot be used.
func (o Options) checked() (Options, error) {
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
	if o.root == "" {
		o.root = "/"
	}
	if o.kernel == nil {
		o.kernel = linux{}
	}
	var wrong []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	_, isTCP := tcpServer(o.Address)
	_, isUSB := usbAddress(o.Address)
	_, isGPIO := chipAddress(o.Address)
	want(filepath.IsAbs(o.Address) || isTCP || isUSB || isGPIO,
		"address %q is no absolute path, usb:VID:PID, usb:VID:PID:SERIAL, tcp://host:port or gpio:CHIP", o.Address)
	if isGPIO {
		o.checkWires(want)
	}
	want(o.BaudRate >= 300 && o.BaudRate <= 4000000, "baud rate %d is not 300 to 4000000", o.BaudRate)
	want(o.DataBits >= 5 && o.DataBits <= 8, "data bits %d are not 5 to 8", o.DataBits)
	_, known := parities[o.Parity]
	want(known, "parity %q is not none, even or odd", o.Parity)
	want(o.StopBits == 1 || o.StopBits == 2, "stop bits %d are not 1 or 2", o.StopBits)
	if len(wrong) > 0 {
		return o, fmt.Errorf("line %s: %s", o.Name, strings.Join(wrong, "; "))
	}
	return o, nil
}

// tcpServer is host:port of a device server's address.
func tcpServer(address string) (string, bool) {
	server, ok := strings.CutPrefix(address, "tcp:")
	server = strings.TrimPrefix(server, "//")
	host, portText, err := net.SplitHostPort(server)
	port, portErr := strconv.Atoi(portText)
	return server, ok && err == nil && host != "" && portErr == nil && port >= 1 && port <= 65535
}

var usbPattern = regexp.MustCompile(`^usb:([[:xdigit:]]{4}):([[:xdigit:]]{4})(?::(.+))?$`)

// usbAddress is what an adapter must have; without a serial number any will do.
func usbAddress(address string) (USB, bool) {
	m := usbPattern.FindStringSubmatch(address)
	if m == nil {
		return USB{}, false
	}
	return USB{VID: strings.ToLower(m[1]), PID: strings.ToLower(m[2]), Serial: m[3]}, true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// readAny is Read for a line of which once waits for bytes a bounded time.
func readAny(ctx context.Context, once func() (Chunk, error)) (Chunk, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Chunk{}, err
		}
		c, err := once()
		if err != nil || len(c.Bytes) > 0 {
			return c, err
		}
	}
}

// writeAll is Write for a line of that name, of which once writes what it can in
// a bounded time.
func writeAll(ctx context.Context, name string, p []byte, once func([]byte) (int, error)) error {
	sent, progress := 0, time.Now()
	for sent < len(p) {
		err := ctx.Err()
		if err == nil && time.Since(progress) > writeWait {
			err = fmt.Errorf("%s: %w: it has taken nothing for %v", name, ErrUnplugged, writeWait)
		}
		var n int
		if err == nil {
			n, err = once(p[sent:])
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
