package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialWait bounds looking up the name and connecting.
	dialWait = 10 * time.Second
	// A shoe may say nothing for minutes, so the kernel asks the device server
	// whether it is still there: after probeIdle of silence and then every
	// probeInterval. One that leaves probes questions, or bytes of ours,
	// unanswered has vanished, which shows after 11 s.
	probeIdle     = 5 * time.Second
	probeInterval = 2 * time.Second
	probes        = 3
	vanished      = probeIdle + probes*probeInterval
	// admission is how long a server that has another client already may take to
	// hang up on us: it has accepted us first, and is up only once it has not.
	admission = 200 * time.Millisecond
)

// tcpLine is a connection to a serial device server. What happens on the cable
// between the server and the reader cannot be seen from here.
type tcpLine struct {
	name   string // for error texts: logical name and address
	conn   *net.TCPConn
	buffer [readBytes]byte
}

// openTCP connects to the device server.
func openTCP(ctx context.Context, o Options, server string) (*tcpLine, error) {
	d := net.Dialer{
		Timeout:         dialWait,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeInterval, Count: probes},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			failed := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(vanished.Milliseconds()))
			})
			return errors.Join(failed, err)
		},
	}
	conn, err := d.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, unreachable(o, err)
	}
	l := &tcpLine{name: o.Name + ": " + o.Address, conn: conn.(*net.TCPConn)}
	if l.hungUp() {
		_ = conn.Close() // it is closed already
		return nil, fmt.Errorf("%s: %w: the device server closed the connection at once; most take one client at a time, so find the other one", l.name, ErrTaken)
	}
	return l, nil
}

// hungUp waits a moment for the server to hang up. Bytes that it sends are
// looked at, not taken.
func (l *tcpLine) hungUp() bool {
	raw, err := l.conn.SyscallConn()
	if err == nil {
		err = l.conn.SetReadDeadline(time.Now().Add(admission))
	}
	if err != nil {
		return true
	}
	gone := false
	_ = raw.Read(func(fd uintptr) bool { // its error is that the moment is over
		var one [1]byte
		n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK)
		if is(err, unix.EAGAIN, unix.EINTR) {
			return false
		}
		gone = n <= 0
		return true
	})
	return gone
}

// Read is Line's.
func (l *tcpLine) Read(ctx context.Context) (Chunk, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Chunk{}, err
		}
		_ = l.conn.SetReadDeadline(time.Now().Add(readWait)) // fails only when closed, which Read tells
		n, err := l.conn.Read(l.buffer[:])
		at := time.Now()
		if n > 0 {
			return Chunk{At: at, Bytes: slices.Clone(l.buffer[:n])}, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // not Timeout(): a vanished server is one too
			return Chunk{}, l.fail(err)
		}
	}
}

// Write is Line's.
func (l *tcpLine) Write(ctx context.Context, p []byte) error {
	return writeAll(ctx, l.name, p, l.writeOnce)
}

// writeOnce writes what the kernel takes within a bounded time.
func (l *tcpLine) writeOnce(p []byte) (int, error) {
	_ = l.conn.SetWriteDeadline(time.Now().Add(readWait)) // as in Read
	n, err := l.conn.Write(p)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, nil
	}
	return n, l.fail(err)
}

// fail tells how the connection was lost.
func (l *tcpLine) fail(err error) error {
	var errno unix.Errno
	hint := err.Error()
	switch {
	case errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%s: %w", l.name, ErrClosed)
	case errors.Is(err, io.EOF):
		hint = "the device server closed the connection; it was restarted, or it has another client"
	case is(err, unix.ETIMEDOUT):
		hint = "the device server does not answer any more; check its power and the network"
	case errors.As(err, &errno): // as it says, without the port numbers that change each time
		hint = errno.Error()
	}
	return fmt.Errorf("%s: %w: %s", l.name, ErrUnplugged, hint)
}

// Close is Line's.
func (l *tcpLine) Close() error {
	if err := l.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%s: close: %w", l.name, err)
	}
	return nil
}

// unreachable says why there is no connection. The same cause reads the same
// each time, so that Follow tells it once.
func unreachable(o Options, err error) error {
	var name *net.DNSError
	var late net.Error
	var errno unix.Errno
	hint := err.Error()
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		hint = "no host has that name; correct it, or give the IP address"
	case errors.As(err, &name):
		hint = "the name server does not answer; check the network, or give the IP address"
	case is(err, unix.ECONNREFUSED):
		hint = "nothing listens on that port; set the device server to TCP server mode (raw), and the port as it says"
	case errors.As(err, &late) && late.Timeout():
		hint = "no answer; check the address, the device server's power and the network"
	case errors.As(err, &errno):
		hint = errno.Error() + "; check the address and the network"
	}
	return fmt.Errorf("%s: %s: %w: %s", o.Name, o.Address, ErrUnreachable, hint)
}
