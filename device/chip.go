package device

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chip is an open GPIO chip.
type chip struct {
	kernel kernel
	path   string
	fd     int
	unix.GPIOChipInfo
}

// chipAddress is the chip of an address: its label, name or path.
func chipAddress(address string) (string, bool) {
	wanted, ok := strings.CutPrefix(address, "gpio:")
	return wanted, ok && wanted != ""
}

// chipPaths lists the GPIO chips below root. A Raspberry Pi 5 has links among
// them, so that the same chip may be there twice.
func chipPaths(root string) []string {
	paths, _ := filepath.Glob(filepath.Join(root, "dev/gpiochip*")) // the pattern is valid
	return paths
}

func openChip(k kernel, path string) (*chip, error) {
	fd, err := k.open(path)
	if err != nil {
		return nil, err
	}
	c := &chip{kernel: k, path: path, fd: fd}
	if err := k.ioctl(fd, unix.GPIO_GET_CHIPINFO_IOCTL, unsafe.Pointer(&c.GPIOChipInfo)); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// close has nothing to lose: what was requested of the chip is held apart.
func (c *chip) close() { _ = c.kernel.close(c.fd) }

func (c *chip) name() string  { return fromKernel(c.Name) }
func (c *chip) label() string { return fromKernel(c.Label) }

// fromKernel is a string of the kernel, which ends at its first zero.
func fromKernel(b [32]byte) string {
	s, _, _ := bytes.Cut(b[:], []byte{0})
	return string(s)
}

// line is what the kernel knows of the line at an offset.
func (c *chip) line(offset uint32) (unix.GPIOV2LineInfo, error) {
	info := unix.GPIOV2LineInfo{Offset: offset}
	err := c.kernel.ioctl(c.fd, unix.GPIO_V2_GET_LINEINFO_IOCTL, unsafe.Pointer(&info))
	return info, err
}

// lines are all lines of the chip, each at its offset.
func (c *chip) lines() ([]unix.GPIOV2LineInfo, error) {
	lines := make([]unix.GPIOV2LineInfo, c.GPIOChipInfo.Lines)
	for i := range lines {
		var err error
		if lines[i], err = c.line(uint32(i)); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// openChips opens the chips below root, each once. denied are those that this
// process may not open.
func openChips(k kernel, root string) (chips []*chip, denied []*fs.PathError) {
	for _, path := range chipPaths(root) {
		c, err := openChip(k, path)
		if errors.Is(err, fs.ErrPermission) {
			denied = append(denied, &fs.PathError{Op: "open", Path: path, Err: err})
		}
		if err != nil {
			continue // no GPIO chip, whatever its name, or just gone
		}
		if slices.ContainsFunc(chips, func(other *chip) bool { return other.Name == c.Name }) {
			c.close()
			continue
		}
		chips = append(chips, c)
	}
	return chips, denied
}

// chip opens the one that the address means.
func (o Options) chip() (*chip, error) {
	wanted, _ := chipAddress(o.Address)
	if filepath.IsAbs(wanted) {
		c, err := openChip(o.kernel, filepath.Join(o.root, wanted))
		if err != nil {
			return nil, o.refuseChip(filepath.Join(o.root, wanted), err)
		}
		return c, nil
	}
	chips, denied := openChips(o.kernel, o.root)
	var found []*chip
	for _, c := range chips {
		if c.name() == wanted || c.label() == wanted {
			found = append(found, c)
		} else {
			c.close()
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && len(denied) > 0: // it may be that one
		return nil, o.refuseChip("", denied[0])
	case len(found) == 0:
		return nil, o.refuseChip("", fs.ErrNotExist)
	}
	var paths []string
	for _, c := range found {
		paths = append(paths, "gpio:"+c.path)
		c.close()
	}
	return nil, fmt.Errorf("%s: %s: %w: %d chips have it; configure one of them, whose number may change at each boot: %s",
		o.Name, o.Address, ErrAmbiguous, len(found), strings.Join(paths, ", "))
}

// refuseChip turns a failure to open the chip into an error that an operator can
// act on, as refuse does for a port.
func (o Options) refuseChip(path string, err error) error {
	kind, hint := ErrNotWire, err.Error()
	switch {
	case errors.Is(err, fs.ErrPermission):
		var denied *fs.PathError
		if errors.As(err, &denied) {
			path = denied.Path
		}
		c := claimed{path: path}
		_ = unix.Stat(path, &c.stat) // what cannot be looked into stays empty
		kind, hint = ErrPermission, path+": "+permissionHint(path, c, err)
	case errors.Is(err, fs.ErrNotExist), is(err, unix.ENODEV, unix.ENXIO):
		kind, hint = ErrAbsent, o.chipsHint()
	case is(err, unix.ENOTTY, unix.EINVAL):
		hint = "it is no GPIO chip, or the kernel is older than 5.10"
	}
	return fmt.Errorf("%s: %s: %w: %s", o.Name, o.Address, kind, hint)
}

// chipsHint lists the chips that are there.
func (o Options) chipsHint() string {
	chips, _ := openChips(o.kernel, o.root)
	var texts []string
	for _, c := range chips {
		texts = append(texts, fmt.Sprintf("gpio:%s (%s)", bestChipAddress(c, chips), c.path))
		c.close()
	}
	if len(texts) == 0 {
		return "and no GPIO chip is there; plug the expander in, load its driver, or give the container its device"
	}
	return "plug it in, or configure one that is there: " + strings.Join(texts, ", ")
}

// bestChipAddress is the label, which a chip keeps, and where another has it
// too, the name, which it may not.
func bestChipAddress(c *chip, all []*chip) string {
	for _, other := range all {
		if c.label() == "" || other != c && other.Label == c.Label {
			return c.name()
		}
	}
	return c.label()
}

// find is the line that is meant: by its name, else by its offset, else by its
// position on the header of a Raspberry Pi.
func (c *chip) find(lines []unix.GPIOV2LineInfo, wanted string) (uint32, error) {
	named := func(name string) (found []uint32) {
		for i, l := range lines {
			if fromKernel(l.Name) == name {
				found = append(found, uint32(i))
			}
		}
		return found
	}
	found := named(wanted)
	if n, err := strconv.ParseUint(wanted, 10, 32); len(found) == 0 && err == nil && n < uint64(len(lines)) {
		return uint32(n), nil
	}
	if p, ok := onHeader(wanted); ok && len(found) == 0 {
		found = named(p.Name())
		if len(found) == 0 && c.isRaspberry() && p.Number() >= 0 && p.Number() < len(lines) {
			return uint32(p.Number()), nil
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("%w: %s has %s", ErrAbsent, c.name(), namesOf(lines))
	case 1:
		return found[0], nil
	}
	return 0, fmt.Errorf("%w: lines %v of %s have it; give the offset of one", ErrAmbiguous, found, c.name())
}

// namesOf says which lines there are.
func namesOf(lines []unix.GPIOV2LineInfo) string {
	var names []string
	for _, l := range lines {
		if name := fromKernel(l.Name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	offsets := fmt.Sprintf("the offsets 0 to %d", len(lines)-1)
	if len(names) == 0 {
		return "no names, only " + offsets
	}
	return strings.Join(names, ", ") + ", and " + offsets
}
