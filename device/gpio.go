package device

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags of a GPIO line: enum gpio_v2_line_flag of linux/gpio.h.
const (
	flagUsed       = 1 << 0
	flagActiveLow  = 1 << 1
	flagInput      = 1 << 2
	flagOutput     = 1 << 3
	flagRising     = 1 << 4 // from inactive to active
	flagFalling    = 1 << 5
	flagOpenDrain  = 1 << 6
	flagOpenSource = 1 << 7
	flagPullUp     = 1 << 8
	flagPullDown   = 1 << 9
	flagNoBias     = 1 << 10
)

// kernel is what is asked of the GPIO character devices, by linux/gpio.h version
// 2, which Linux has since 5.10. Its structures have no padding of the compiler's,
// so they are the same on 32-bit ARM. In tests it is a chip that is not there.
type kernel interface {
	open(path string) (fd int, err error)
	ioctl(fd int, request uint, arg unsafe.Pointer) error
	// poll waits at most d until there is something to read. A chip that is gone
	// may show as something to read, or (Linux 6.1) as nothing.
	poll(fd int, d time.Duration) (bool, error)
	read(fd int, events []unix.GPIOV2LineEvent) (int, error)
	close(fd int) error
	now() uint64 // CLOCK_MONOTONIC in ns, as the stamps of edges
	sleep(d time.Duration)
}

// linux is the kernel that runs us.
type linux struct{}

func (linux) open(path string) (int, error) {
	return unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
}

func (linux) ioctl(fd int, request uint, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

func (linux) poll(fd int, d time.Duration) (bool, error) {
	ms := (d + time.Millisecond - 1) / time.Millisecond // up: down would wake us too early, again and again
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(ms))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n > 0, err
}

func (linux) read(fd int, events []unix.GPIOV2LineEvent) (int, error) {
	const size = int(unsafe.Sizeof(unix.GPIOV2LineEvent{}))
	n, err := unix.Read(fd, unsafe.Slice((*byte)(unsafe.Pointer(&events[0])), len(events)*size))
	if is(err, unix.EAGAIN, unix.EINTR) {
		return 0, nil
	}
	return max(n, 0) / size, err // the kernel gives whole events only
}

func (linux) close(fd int) error { return unix.Close(fd) }

func (linux) now() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail for this clock
	return uint64(t.Nano())
}

func (linux) sleep(d time.Duration) { time.Sleep(d) }
