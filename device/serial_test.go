package device

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadStampsEachReadAsItArrives(t *testing.T) {
	far, path := terminal(t)
	s := open(t, path)
	for _, part := range []string{"CARD ", "AS\r\n", "\x05\x00\xff\x11\x13\x03\x04\x1a"} {
		before := time.Now()
		write(t, far, part)
		c, err := s.Read(wait(t))
		after := time.Now()
		if err != nil || string(c.Bytes) != part {
			t.Fatalf("read %q, %v; want %q", c.Bytes, err, part)
		}
		if c.At.Before(before) || c.At.After(after) {
			t.Errorf("stamped %v, not between %v and %v", c.At, before, after)
		}
	}
}

func TestChunksDoNotShareMemory(t *testing.T) {
	far, path := terminal(t)
	s := open(t, path)
	write(t, far, "first")
	first, err := s.Read(wait(t))
	if err != nil {
		t.Fatal(err)
	}
	write(t, far, "after")
	if _, err := s.Read(wait(t)); err != nil || string(first.Bytes) != "first" {
		t.Fatalf("first chunk now %q, %v", first.Bytes, err)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	_, path := terminal(t)
	s := open(t, path)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.Read(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	// The bound is 20 ms + readWait; the rest is allowed to a loaded machine.
	if took := time.Since(start); took > readWait+time.Second {
		t.Errorf("took %v", took)
	}
}

func TestUnplugged(t *testing.T) {
	far, path := terminal(t)
	s := open(t, path)
	far.Close()
	for range 2 {
		_, err := s.Read(wait(t))
		if !errors.Is(err, ErrUnplugged) || !strings.Contains(err.Error(), path) {
			t.Errorf("read: %v", err)
		}
	}
	if err := s.Write(wait(t), []byte("x")); !errors.Is(err, ErrUnplugged) {
		t.Errorf("write: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestCloseUnblocksRead(t *testing.T) {
	_, path := terminal(t)
	s := open(t, path)
	result := make(chan error)
	go func() {
		_, err := s.Read(context.Background())
		result <- err
	}()
	// Only a Read that is under way can hold the lock.
	for s.use.TryLock() {
		s.use.Unlock()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-result:
		if !errors.Is(err, ErrClosed) {
			t.Errorf("read: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("read still blocked")
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	open(t, path) // it is free again
}

// A write after Close by the library goes to the file that got its descriptor.
func TestNothingIsWrittenAfterClose(t *testing.T) {
	_, path := terminal(t)
	s := open(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for range 8 { // more than the port had descriptors
		f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	if err := s.Write(wait(t), []byte("lock")); !errors.Is(err, ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if _, err := s.Read(wait(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	for _, f := range files {
		if st, err := f.Stat(); err != nil || st.Size() != 0 {
			t.Errorf("%s: %d bytes, %v", f.Name(), st.Size(), err)
		}
	}
}

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	_, path := terminal(t)
	s := open(t, path)
	s.use.Lock() // as a call that hangs in the kernel would
	err := s.Close()
	if err == nil || !strings.Contains(err.Error(), "not closed within") {
		t.Errorf("close: %v", err)
	}
	s.use.Unlock()
	if err := s.Close(); err != nil {
		t.Errorf("close after the kernel let go: %v", err)
	}
}

func TestWriteLoopsOverShortWrites(t *testing.T) {
	far, path := terminal(t)
	s := open(t, path)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<13) // far more than the kernel buffers
	got := make([]byte, len(sent))
	result := make(chan error)
	go func() {
		_, err := io.ReadFull(far, got)
		result <- err
	}()
	if err := s.Write(wait(t), sent); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("far end: equal %v, %v", bytes.Equal(got, sent), err)
	}
}

func TestStuckWrite(t *testing.T) {
	t.Parallel()
	full := make([]byte, 1<<20)
	for name, limit := range map[string]time.Duration{"context": 50 * time.Millisecond, "no progress": patience} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, path := terminal(t) // nobody reads the far end
			s := open(t, path)
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			start := time.Now()
			err := s.Write(ctx, full)
			want := ErrUnplugged
			if name == "context" {
				want = context.DeadlineExceeded
			}
			if !errors.Is(err, want) || !strings.Contains(err.Error(), "of 1048576 bytes written") {
				t.Errorf("%v", err)
			}
			if took := time.Since(start); took > writeWait+time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestClosingDoesNotDropTheModemLines(t *testing.T) {
	_, path := terminal(t)
	before, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	settings, err := unix.IoctlGetTermios(int(before.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	settings.Cflag |= unix.HUPCL // as a serial port has it
	if err := unix.IoctlSetTermios(int(before.Fd()), unix.TCSETS, settings); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	settings, err = unix.IoctlGetTermios(s.own, unix.TCGETS)
	if err != nil || settings.Cflag&unix.HUPCL != 0 {
		t.Errorf("HUPCL set, %v", err)
	}
	if settings.Lflag&(unix.ICANON|unix.ECHO) != 0 || settings.Iflag&(unix.ICRNL|unix.IXON|unix.ISTRIP) != 0 {
		t.Errorf("not raw: %+v", settings)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		options Options
		wrong   []string // empty: accepted
	}{
		{Options{Address: "/dev/x"}, nil},
		{Options{Address: "/dev/x", BaudRate: 9600, DataBits: 7, Parity: "even", StopBits: 2}, nil},
		{Options{Address: "usb:0403:6001"}, nil},
		{Options{Address: "usb:0403:6001:A5 02/8:5"}, nil},
		{Options{Address: "tcp://moxa-3.example:4001"}, nil},
		{Options{Address: "tcp:[fe80::1%eth0]:4001"}, nil},
		{Options{Address: "usb:0403"}, []string{`address "usb:0403" is no`}},
		{Options{Address: "tcp://moxa"}, []string{`address "tcp://moxa" is no`}},
		{Options{Address: "tcp://:4001"}, []string{`address "tcp://:4001" is no`}},
		{Options{Address: "tcp://moxa:0"}, []string{`address "tcp://moxa:0" is no`}},
		{Options{Address: "moxa:4001"}, []string{`address "moxa:4001" is no`}},
		{Options{}, []string{`address "" is no absolute path`}},
		{Options{Address: "ttyUSB0", BaudRate: -1, DataBits: 9, Parity: "mark", StopBits: 3},
			[]string{`address "ttyUSB0"`, "baud rate -1", "data bits 9", `parity "mark"`, "stop bits 3"}},
		{Options{Address: "gpio:pinctrl-bcm2711", Wires: []Wire{{Line: "4"}}}, nil},
		{Options{Address: "gpio:"}, []string{`address "gpio:" is no`}},
		{Options{Address: "gpio:x", Settle: -1}, []string{"0 wires are not 1 to 16", "settle -1ns"}},
		{Options{Address: "gpio:x", Settle: time.Second, Wires: make([]Wire, 17)}, []string{"17 wires", "settle 1s", "has no line"}},
		{Options{Address: "gpio:x", Wires: []Wire{{Use: "d0", Line: "1", Edges: 4, Bias: "high", Debounce: -1, Limit: -1}}},
			[]string{"edges 4 of wire d0", `bias "high"`, "debounce -1ns", "limit -1"}},
		{Options{Address: "gpio:x", Wires: []Wire{{Use: "a", Line: "1", Strobe: true, Edges: NoEdges, Debounce: time.Minute}, {Use: "b", Line: "2", Strobe: true}}},
			[]string{"wire a is the strobe but", "debounce 1m0s", "2 wires are the strobe"}},
	} {
		got, err := c.options.checked()
		if (err == nil) != (len(c.wrong) == 0) {
			t.Errorf("%+v: %v", c.options, err)
		}
		for _, w := range c.wrong {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v: does not name %s", err, w)
			}
		}
		if reflect.DeepEqual(c.options, Options{Address: "/dev/x"}) &&
			!reflect.DeepEqual(got, Options{Address: "/dev/x", BaudRate: 4800, DataBits: 8, Parity: "none", StopBits: 1, root: "/", kernel: linux{}}) {
			t.Errorf("defaults %+v", got)
		}
	}
}
