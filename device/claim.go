package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

// claimed is a port that is locked for us but not yet set up.
type claimed struct {
	path string // of the device itself, links resolved
	own  int    // our descriptor, which holds the lock
	stat unix.Stat_t
}

// claim opens the port at path for us alone. Nothing is opened that is not a character
// device: opening some files has effects.
//
// Two locks keep others out, because neither is enough: flock binds those who
// ask for it, whoever they are; TIOCEXCL binds everybody but root.
func claim(o Options, path string) (claimed, error) {
	var c claimed
	var err error
	if c.path, err = filepath.EvalSymlinks(path); err != nil {
		return c, refuse(o, c, err)
	}
	if err := unix.Stat(c.path, &c.stat); err != nil {
		return c, refuse(o, c, err)
	}
	if c.stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		return c, refuse(o, c, unix.ENOTTY)
	}
	c.own, err = unix.Open(c.path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return c, refuse(o, c, err)
	}
	if err := c.lock(); err != nil {
		err = refuse(o, c, err)
		_ = letGo(c.own) // nothing was done with it
		return c, err
	}
	return c, nil
}

// lock makes the port ours; EBUSY means that somebody else has it.
func (c *claimed) lock() error {
	if err := unix.Fstat(c.own, &c.stat); err != nil {
		return err
	}
	settings, err := unix.IoctlGetTermios(c.own, unix.TCGETS)
	if err != nil {
		return err
	}
	if err := unix.Flock(c.own, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err // EWOULDBLOCK when held
	}
	if taken, err := unix.IoctlGetInt(c.own, unix.TIOCGEXCL); err == nil && taken != 0 {
		return unix.EBUSY // we are root, or open would have told
	}
	if !c.isPseudo() && len(holders(c.path)) > 0 {
		return unix.EBUSY // a second reader takes bytes away from us, lock or no lock
	}
	settings.Cflag &^= unix.HUPCL
	return unix.IoctlSetTermios(c.own, unix.TCSETS, settings)
}

// letGo unlocks and closes our descriptor. Closing alone would leave the port
// locked for as long as a child that is just being started still shares it.
func letGo(own int) error {
	return errors.Join(unix.Flock(own, unix.LOCK_UN), unix.Close(own))
}

// isPseudo tells a pseudo-terminal, as simulators use. Whoever holds its far
// end often keeps the near one open too, reading nothing. And it outlives those
// who have it open, with TIOCEXCL set for ever if one of them was killed.
func (c *claimed) isPseudo() bool {
	const first, last = 136, 143 // UNIX98_PTY_SLAVE_MAJOR and its seven followers
	major := unix.Major(uint64(c.stat.Rdev))
	return major >= first && major <= last
}

// open lets the library open the claimed port, by way of our descriptor so that
// it cannot be another one, and checks that the line is set as asked.
func (c *claimed) open(o Options) (serial.Port, error) {
	port, err := c.openQuietly(o.mode())
	if err != nil {
		return nil, refuse(o, *c, err)
	}
	exclusive := uint(unix.TIOCEXCL)
	if c.isPseudo() {
		exclusive = unix.TIOCNXCL // the library has set it; see isPseudo
	}
	err = errors.Join(
		port.SetReadTimeout(readWait),
		unix.IoctlSetInt(c.own, exclusive, 0),
		c.verify(o),
	)
	if err != nil {
		return nil, refuse(o, *c, errors.Join(err, port.Close()))
	}
	return port, nil
}

// openQuietly opens the port by the library and makes up for what it leaves
// out: its descriptors are kept from child processes (no fork can come between,
// because ForkLock is held), and reading or writing them does not block.
func (c *claimed) openQuietly(mode *serial.Mode) (serial.Port, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	before, err := descriptors()
	if err != nil {
		return nil, err
	}
	port, err := serial.Open(fmt.Sprintf("/proc/self/fd/%d", c.own), mode)
	if err != nil {
		return nil, err
	}
	after, err := descriptors()
	if err == nil {
		err = c.tame(before, after)
	}
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return port, nil
}

// tame sets the descriptors that the library has opened, the port itself and a
// pipe: those of after that were not there, or were another file, before. One
// of another goroutine may be among them; in a Go program it is close-on-exec
// already.
func (c *claimed) tame(before, after map[int]unix.Stat_t) error {
	missing := errors.New("the port library's descriptor is not in /proc/self/fd")
	for fd, st := range after {
		if was, ok := before[fd]; ok && was.Dev == st.Dev && was.Ino == st.Ino {
			continue
		}
		if fd >= unix.FD_SETSIZE { // the library's select would panic
			return fmt.Errorf("descriptor %d is too high for the port library: set LimitNOFILE=%d", fd, unix.FD_SETSIZE)
		}
		unix.CloseOnExec(fd)
		if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == c.stat.Rdev {
			if err := unix.SetNonblock(fd, true); err != nil {
				return err
			}
			missing = nil
		}
	}
	return missing
}

// descriptors lists the open descriptors of this process and what they are.
func descriptors() (map[int]unix.Stat_t, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	fds := make(map[int]unix.Stat_t, len(entries))
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil { // else it has just been closed
			fds[fd] = st
		}
	}
	return fds, err
}

// verify reads the settings back: a driver may accept what it cannot do and
// keep what it had, which would show as noise on the line.
func (c *claimed) verify(o Options) error {
	got, err := unix.IoctlGetTermios(c.own, unix.TCGETS2)
	if err != nil {
		return err
	}
	dataBits := map[int]uint32{5: unix.CS5, 6: unix.CS6, 7: unix.CS7, 8: unix.CS8}
	wantFlags := map[string]uint32{"even": unix.PARENB, "odd": unix.PARENB | unix.PARODD}[o.Parity] | dataBits[o.DataBits]
	if o.StopBits == 2 {
		wantFlags |= unix.CSTOPB
	}
	const flags = unix.CSIZE | unix.PARENB | unix.PARODD | unix.CSTOPB
	const tolerance = 3 // per cent: a UART samples well within it, a wrong rate is far off
	off := int64(got.Ospeed) - int64(o.BaudRate)
	if got.Cflag&flags != wantFlags || max(off, -off)*100 > int64(o.BaudRate)*tolerance {
		return fmt.Errorf("its driver does not do %d baud, %d data bits, parity %s, %d stop bits; set the line as the reader needs it, or use another adapter",
			o.BaudRate, o.DataBits, o.Parity, o.StopBits)
	}
	return nil
}
