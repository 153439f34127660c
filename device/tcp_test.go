package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// server listens at address as a device server does; accepted are its clients.
func server(t *testing.T, address string) (l net.Listener, accepted chan *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	accepted = make(chan *net.TCPConn, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c.(*net.TCPConn)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l, accepted
}

// dialled is an open line to a server, and the server's end of it.
func dialled(t *testing.T) (*tcpLine, *net.TCPConn) {
	t.Helper()
	l, accepted := server(t, "127.0.0.1:0")
	line := openLine(t, "tcp://"+l.Addr().String()).(*tcpLine)
	far := <-accepted
	t.Cleanup(func() { far.Close() })
	return line, far
}

func TestTCPReadStampsEachReadAsItArrives(t *testing.T) {
	l, far := dialled(t)
	var first Chunk
	for i, part := range []string{"CARD ", "AS\r\n", "\x05\x00\xff\x11\x13\x03\x04\x1a"} {
		before := time.Now()
		if _, err := far.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		c, err := l.Read(wait(t))
		if after := time.Now(); err != nil || string(c.Bytes) != part || c.At.Before(before) || c.At.After(after) {
			t.Fatalf("read %q at %v, %v; want %q between %v and %v", c.Bytes, c.At, err, part, before, after)
		}
		if i == 0 {
			first = c
		}
	}
	if string(first.Bytes) != "CARD " {
		t.Errorf("the first chunk is now %q", first.Bytes)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if _, err := far.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Read(wait(t)); err != nil || string(c.Bytes) != "late" {
		t.Errorf("after a read that ended with its context: %q, %v", c.Bytes, err)
	}
}

func TestTCPLost(t *testing.T) {
	for how, c := range map[string]struct {
		lose func(*net.TCPConn) error
		text string
	}{
		"closed": {(*net.TCPConn).Close, "the device server closed the connection"},
		"reset":  {func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }, "connection reset by peer"},
	} {
		l, far := dialled(t)
		if _, err := far.Write([]byte("the last")); err != nil {
			t.Fatal(err)
		}
		if got, err := l.Read(wait(t)); err != nil || string(got.Bytes) != "the last" {
			t.Fatalf("%s: read %q, %v", how, got.Bytes, err)
		}
		if err := c.lose(far); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Read(wait(t)); !errors.Is(err, ErrUnplugged) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "reader: tcp://127.0.0.1:") {
			t.Errorf("%s: %v", how, err)
		}
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestTCPCloseUnblocksRead(t *testing.T) {
	l, _ := dialled(t)
	result := make(chan error)
	go func() {
		_, err := l.Read(context.Background())
		result <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if err := l.Write(wait(t), []byte("lock")); !errors.Is(err, ErrClosed) {
		t.Errorf("write: %v", err)
	}
}

func TestTCPWrite(t *testing.T) {
	t.Parallel()
	l, far := dialled(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	got := make([]byte, len(sent))
	result := make(chan error)
	go func() {
		_, err := io.ReadFull(far, got)
		result <- err
	}()
	if err := l.Write(wait(t), sent); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("far end: equal %v, %v", bytes.Equal(got, sent), err)
	}
	// Now nobody reads: more than any buffer holds.
	err := l.Write(wait(t), make([]byte, 64<<20))
	if !errors.Is(err, ErrUnplugged) || !strings.Contains(err.Error(), "of 67108864 bytes written") {
		t.Error(err)
	}
}

// The cause is told so that somebody can act on it, and each time alike.
func TestTCPUnreachable(t *testing.T) {
	l, _ := server(t, "127.0.0.1:0")
	closed := l.Addr().String()
	l.Close()
	over, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	for _, c := range []struct {
		ctx           context.Context
		address, text string
	}{
		{wait(t), "tcp://" + closed, "nothing listens on that port"},
		{wait(t), "tcp:" + closed, "nothing listens on that port"},
		{wait(t), "tcp://no-such-host.invalid:4001", "name"},
		{wait(t), "tcp://255.255.255.255:4001", "check the address and the network"},
		{over, "tcp://127.0.0.1:4001", "no answer; check the address"},
	} {
		var texts [2]string
		for i := range texts {
			line, err := Open(c.ctx, Options{Name: "reader", Address: c.address})
			if err == nil {
				line.Close()
				t.Fatalf("%s was opened", c.address)
			}
			if line != nil || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %q", err, c.text)
			}
			texts[i] = err.Error()
		}
		if texts[0] != texts[1] || !strings.HasPrefix(texts[0], "reader: "+c.address+": not reachable: ") {
			t.Errorf("%q", texts)
		}
	}
	for _, c := range []struct {
		err  error
		text string
	}{
		{&net.DNSError{IsNotFound: true}, "no host has that name"},
		{&net.DNSError{IsTimeout: true, Err: "read udp 127.0.0.1:54321->127.0.0.1:53: i/o timeout"}, "the name server does not answer"},
		{&net.OpError{Err: os.NewSyscallError("connect", unix.EHOSTUNREACH)}, "no route to host; check"},
		{&net.OpError{Err: os.NewSyscallError("connect", unix.ETIMEDOUT)}, "no answer; check"},
	} {
		if err := unreachable(Options{}, c.err); !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}

// A server that has another client accepts us and hangs up; a greeting before
// it does is not lost.
func TestTCPTaken(t *testing.T) {
	l, accepted := server(t, "127.0.0.1:0")
	address := "tcp://" + l.Addr().String()
	hangUp := func(greeting string) {
		c := <-accepted
		c.Write([]byte(greeting))
		c.Close()
	}
	go hangUp("")
	if _, err := Open(wait(t), Options{Name: "reader", Address: address}); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "one client at a time") {
		t.Errorf("%v", err)
	}
	go hangUp("Port already in use\r\n")
	line := openLine(t, address)
	if c, err := line.Read(wait(t)); err != nil || string(c.Bytes) != "Port already in use\r\n" {
		t.Errorf("read %q, %v", c.Bytes, err)
	}
	if _, err := line.Read(wait(t)); !errors.Is(err, ErrUnplugged) || !strings.Contains(err.Error(), "another client") {
		t.Errorf("%v", err)
	}
}

func TestFollowTCP(t *testing.T) {
	l, accepted := server(t, "127.0.0.1:0")
	address := l.Addr().String()
	q := follow(t, "tcp://"+address, nil)
	for _, card := range []string{"8s", "Kh", "Ac"} {
		expect(t, q, Up)
		far := <-accepted
		if _, err := far.Write([]byte(card)); err != nil {
			t.Fatal(err)
		}
		if s := expect(t, q, Received); string(s.Bytes) != card {
			t.Fatalf("read %q, want %q", s.Bytes, card)
		}
		l.Close()
		far.Close()
		if s := expect(t, q, Down); !errors.Is(s.Cause, ErrUnplugged) {
			t.Fatal(s.Cause)
		}
		if s := expect(t, q, Down); !errors.Is(s.Cause, ErrUnreachable) { // told once, however long it lasts
			t.Fatal(s.Cause)
		}
		l, accepted = server(t, address)
	}
	expect(t, q, Up)
	(<-accepted).Close()
}

func TestTCPAsksWhetherTheServerIsThere(t *testing.T) {
	l, _ := dialled(t)
	raw, err := l.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for _, o := range []struct{ level, name, want int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 5},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 2},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 11000},
		} {
			if got, err := unix.GetsockoptInt(int(fd), o.level, o.name); err != nil || got != o.want {
				t.Errorf("socket option %d is %d, %v; want %d", o.name, got, err, o.want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// In a network of its own, the network is taken away from an idle line. Without
// the kernel's probes nothing would ever show.
func TestTCPServerVanishes(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a network namespace")
	}
	line, _, _ := other(t, "vanish", "", func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	})
	if !strings.Contains(line, ErrUnplugged.Error()+": the device server does not answer any more") {
		t.Error(line)
	}
}

// vanish runs alone in its network; the error is what Read returned.
func vanish() error {
	if err := loopback(true); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	line, err := Open(context.Background(), Options{Name: "reader", Address: "tcp://" + l.Addr().String()})
	if err != nil {
		return err
	}
	defer line.Close()
	far, err := l.Accept()
	if err != nil {
		return err
	}
	defer far.Close()
	if err := loopback(false); err != nil {
		return err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*vanished)
	defer cancel()
	_, err = line.Read(ctx)
	if took := time.Since(start); took < probeIdle {
		return fmt.Errorf("after %v already: %w", took, err)
	}
	return err
}

// loopback switches the loopback network interface on or off.
func loopback(on bool) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if on {
		lo.SetUint16(unix.IFF_UP)
	}
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}
