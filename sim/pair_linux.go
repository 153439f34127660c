package sim

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/creack/pty"
)

// Pair is a pseudo-terminal that stands for a serial line: it carries bytes as
// they are, both ways, at any baud rate. Whoever opened it closes it.
type Pair struct {
	Shoe *os.File // the shoe's end; blocks when about 20 KB were not read at the other
	Path string   // the daemon's end, to be opened as its serial port

	// Held open: with nobody at this end the kernel drops what the shoe writes
	// and forgets that the line is raw.
	held *os.File
}

// OpenPair makes a Pair in raw mode, without echo.
func OpenPair() (*Pair, error) {
	shoe, other, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("simulated line: %w: is /dev/pts mounted?", err)
	}
	p := &Pair{Shoe: shoe, Path: other.Name(), held: other}
	// pty leaves the shoe's end blocking: then Close could not end a write.
	err = errors.Join(control(other, makeRaw), control(shoe, func(fd uintptr) error { return syscall.SetNonblock(int(fd), true) }))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("simulated line %s: %w", p.Path, err), p.Close())
	}
	return p, nil
}

// Close unplugs the line: it ends reads at both ends, and a write that hangs.
func (p *Pair) Close() error {
	return errors.Join(p.Shoe.Close(), p.held.Close())
}

// control calls fn with the descriptor of f, without changing its mode as f.Fd
// does.
func control(f *os.File, fn func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = fn(fd) })
	return errors.Join(err, failed)
}

// makeRaw is cfmakeraw(3).
func makeRaw(fd uintptr) error {
	var t syscall.Termios
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TCGETS, uintptr(unsafe.Pointer(&t))); errno != 0 {
		return errno
	}
	t.Iflag &^= syscall.IGNBRK | syscall.BRKINT | syscall.PARMRK | syscall.ISTRIP | syscall.INLCR | syscall.IGNCR | syscall.ICRNL | syscall.IXON
	t.Oflag &^= syscall.OPOST
	t.Lflag &^= syscall.ECHO | syscall.ECHONL | syscall.ICANON | syscall.ISIG | syscall.IEXTEN
	t.Cflag = t.Cflag&^(syscall.CSIZE|syscall.PARENB) | syscall.CS8
	t.Cc[syscall.VMIN], t.Cc[syscall.VTIME] = 1, 0
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TCSETS, uintptr(unsafe.Pointer(&t))); errno != 0 {
		return errno
	}
	return nil
}
