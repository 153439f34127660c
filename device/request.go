package device

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxWires is the most wires of one request: the bits of a record's levels.
	maxWires = 16
	// eventBuffer is how many edges the kernel keeps for us. Its own choice, 16 a
	// line, lost 184 of a burst of 200 in a trial; 1,024 lost none of 400.
	eventBuffer = 1024
)

// setting is how one line is requested.
type setting struct {
	use, line string // for error texts
	offset    uint32
	flags     uint64
	debounce  time.Duration
}

// find fills the offsets in, from the chip's lines. Its error wraps ErrAbsent,
// ErrAmbiguous or ErrTaken, and names the line.
func (o Options) find(c *chip, settings []setting) error {
	lines, err := c.lines()
	if err != nil {
		return o.refuseChip(c.path, err)
	}
	taken := map[uint32]string{}
	for i := range settings {
		s := &settings[i]
		if s.offset, err = c.find(lines, s.line); err != nil {
			return o.refuseLine(*s, err)
		}
		if other, ok := taken[s.offset]; ok {
			return o.refuseLine(*s, fmt.Errorf("%w: it is the line of %s too", ErrTaken, other))
		}
		taken[s.offset] = s.use
		if l := lines[s.offset]; l.Flags&flagUsed != 0 {
			return o.refuseLine(*s, busy(l))
		}
	}
	return nil
}

func (o Options) refuseLine(s setting, err error) error {
	return fmt.Errorf("%s: %s: %s (line %s): %w", o.Name, o.Address, s.use, s.line, err)
}

// busy says who has the line.
func busy(l unix.GPIOV2LineInfo) error {
	who := fromKernel(l.Consumer)
	if who == "" {
		who = "the kernel, or a program that gave no name,"
	}
	return fmt.Errorf("%w: %s has it; stop that, or use another line", ErrTaken, who)
}

// request asks the kernel for the lines, in one request so that their edges are
// numbered as one. Outputs begin inactive.
func (o Options) request(c *chip, settings []setting) (int, error) {
	r := unix.GPIOV2LineRequest{Num_lines: uint32(len(settings)), Event_buffer_size: eventBuffer}
	copy(r.Consumer[:len(r.Consumer)-1], "shoed "+o.Name)
	var outputs uint64
	for i, s := range settings {
		r.Offsets[i] = s.offset
		if s.flags&flagOutput != 0 {
			outputs |= 1 << i
		}
	}
	flags := groups(settings, func(s setting) uint64 { return s.flags })
	r.Config.Flags = flags[0].value
	attributes := withID(unix.GPIO_V2_LINE_ATTR_ID_FLAGS, flags[1:])
	for _, g := range withID(unix.GPIO_V2_LINE_ATTR_ID_DEBOUNCE, groups(settings, func(s setting) uint64 { return uint64(s.debounce.Microseconds()) })) {
		if us := uint32(g.Attr.Flags); us != 0 {
			*period(&g.Attr) = us
			attributes = append(attributes, g)
		}
	}
	if outputs != 0 { // all zero: inactive
		attributes = append(attributes, unix.GPIOV2LineConfigAttribute{Attr: unix.GPIOV2LineAttribute{Id: unix.GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES}, Mask: outputs})
	}
	r.Config.Num_attrs = uint32(copy(r.Config.Attrs[:], attributes))
	if len(attributes) > len(r.Config.Attrs) {
		return 0, fmt.Errorf("%s: %s: %w: its wires have too many different settings for one request; give more of them the same bias, edges and debounce", o.Name, o.Address, ErrNotWire)
	}
	if err := c.kernel.ioctl(c.fd, unix.GPIO_V2_GET_LINE_IOCTL, unsafe.Pointer(&r)); err != nil {
		return 0, o.refuseRequest(c, settings, err)
	}
	return int(r.Fd), nil
}

// period is the debounce of an attribute, in us: the first four bytes of its
// union, whatever their order.
func period(a *unix.GPIOV2LineAttribute) *uint32 { return (*uint32)(unsafe.Pointer(&a.Flags)) }

// group is the lines that have a value in common.
type group struct{ value, mask uint64 }

func groups(settings []setting, of func(setting) uint64) []group {
	var all []group
	for i, s := range settings {
		at := 0
		for at < len(all) && all[at].value != of(s) {
			at++
		}
		if at == len(all) {
			all = append(all, group{value: of(s)})
		}
		all[at].mask |= 1 << i
	}
	return all
}

func withID(id uint32, all []group) []unix.GPIOV2LineConfigAttribute {
	attributes := make([]unix.GPIOV2LineConfigAttribute, len(all))
	for i, g := range all {
		attributes[i] = unix.GPIOV2LineConfigAttribute{Attr: unix.GPIOV2LineAttribute{Id: id, Flags: g.value}, Mask: g.mask}
	}
	return attributes
}

// refuseRequest says why the kernel does not give the lines; which one it is
// about it does not tell.
func (o Options) refuseRequest(c *chip, settings []setting, err error) error {
	switch {
	case is(err, unix.EBUSY): // somebody was faster than we
		for _, s := range settings {
			if l, err := c.line(s.offset); err == nil && l.Flags&flagUsed != 0 {
				return o.refuseLine(s, busy(l))
			}
		}
		return fmt.Errorf("%s: %s: %w: one of its lines is; see who has it with: shoed lines", o.Name, o.Address, ErrTaken)
	case is(err, unix.ENODEV):
		return o.refuseChip(c.path, err)
	}
	return fmt.Errorf("%s: %s: %w: %v; this chip may know no edges, or a line no such direction; see shoed lines", o.Name, o.Address, ErrNotWire, err)
}

// levels reads the lines of a request, all with one call.
func levels(k kernel, fd, lines int) (uint16, error) {
	values := unix.GPIOV2LineValues{Mask: 1<<lines - 1}
	err := k.ioctl(fd, unix.GPIO_V2_LINE_GET_VALUES_IOCTL, unsafe.Pointer(&values))
	return uint16(values.Bits & values.Mask), err
}
