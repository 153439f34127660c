package sim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// Every byte passes as it is, both ways, and nothing is echoed.
func TestPairIsRaw(t *testing.T) {
	p, err := OpenPair()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	daemon, err := os.OpenFile(p.Path, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	pass := func(from, to *os.File, b []byte) {
		t.Helper()
		if _, err := from.Write(b); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(b))
		if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("% x, %v; want % x", got, err, b)
		}
	}
	if err := p.Shoe.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	pass(p.Shoe, daemon, all)
	pass(daemon, p.Shoe, []byte("answer")) // an echo would come first
	pass(daemon, p.Shoe, all)
	pass(p.Shoe, daemon, []byte("answer"))
}

// What is written while nobody listens is there when the daemon opens the line,
// and again after it was away.
func TestPairKeeps(t *testing.T) {
	p, err := OpenPair()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 2 {
		if _, err := p.Shoe.Write([]byte("\x05\x03\r\n")); err != nil {
			t.Fatal(err)
		}
		daemon, err := os.OpenFile(p.Path, os.O_RDONLY|syscall.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(daemon, got); err != nil || string(got) != "\x05\x03\r\n" {
			t.Fatalf("%q, %v", got, err)
		}
		daemon.Close()
	}
}

// Close unplugs: it ends a write that hangs because nobody reads, and the daemon's
// read.
func TestPairUnplugged(t *testing.T) {
	p, err := OpenPair()
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := os.OpenFile(p.Path, os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	if err := p.Shoe.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = p.Shoe.Write(make([]byte, 512))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("filling the line: %v", err)
	}
	if err := p.Shoe.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.Shoe.Write(make([]byte, 512))
		ended <- err
	}()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("the write ended with %v", err)
	}
	if _, err := io.Copy(io.Discard, daemon); err != nil && !errors.Is(err, syscall.EIO) {
		t.Errorf("the read ended with %v", err)
	}
}
