package device

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fakeKernel is GPIO chips that are not there, kept to what linux/gpio.h and
// drivers/gpio/gpiolib-cdev.c say. Its time stands still but for poll, sleep and
// what is scheduled; with live, poll waits in real time.
type fakeKernel struct {
	t     *testing.T
	root  string // where its chips' files are
	live  bool
	clock uint64

	mu        sync.Mutex
	wake      chan struct{} // of live: closed and made anew when something happens
	chips     map[string]*fakeChip
	files     map[int]any // *fakeChip or *fakeRequest
	last      int         // descriptor
	scheduled []scheduled
	calls     int            // of poll and read
	refuse    map[uint]error // by ioctl
	looking   func()         // called before each reading of levels
}

type scheduled struct {
	at uint64
	do func()
}

type fakeChip struct {
	kernel      *fakeKernel
	name, label string
	lines       []fakeLine
	gone        bool
	denied      bool
}

type fakeLine struct {
	name, consumer string
	flags          uint64
	high           bool // the electrical level
	request        *fakeRequest
	index          int
	debounce       uint32
}

type fakeRequest struct {
	chip    *fakeChip
	offsets []uint32
	fifo    []unix.GPIOV2LineEvent
	size    int
	seq     uint32
	lost    int // pushed out of a full fifo
}

// fake makes a machine with no chip.
func fake(t *testing.T) *fakeKernel {
	t.Helper()
	k := &fakeKernel{t: t, root: t.TempDir(), clock: 1_000_000_000, wake: make(chan struct{}),
		chips: map[string]*fakeChip{}, files: map[int]any{}, last: 100, refuse: map[uint]error{}}
	if err := os.Mkdir(filepath.Join(k.root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.files) > 0 {
			t.Errorf("%d GPIO descriptors left open", len(k.files))
		}
	})
	return k
}

// chip adds a chip with lines of these names.
func (k *fakeKernel) chip(name, label string, lines ...string) *fakeChip {
	c := &fakeChip{kernel: k, name: name, label: label, lines: make([]fakeLine, len(lines))}
	for i, l := range lines {
		c.lines[i].name = l
	}
	k.chips[name] = c
	if err := os.WriteFile(filepath.Join(k.root, "dev", name), nil, 0o600); err != nil {
		k.t.Fatal(err)
	}
	return c
}

func (k *fakeKernel) open(path string) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, err
	}
	c, ok := k.chips[filepath.Base(real)]
	switch {
	case !ok || c.gone:
		return 0, unix.ENODEV
	case c.denied:
		return 0, unix.EACCES
	}
	return k.descriptor(c), nil
}

func (k *fakeKernel) descriptor(of any) int {
	k.last++ // never the same again, so that one used after its close is found
	k.files[k.last] = of
	return k.last
}

func (k *fakeKernel) close(fd int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.files[fd].(*fakeRequest); ok {
		for _, o := range r.offsets {
			l := &r.chip.lines[o]
			l.request, l.consumer, l.flags = nil, "", 0
		}
	} else if k.files[fd] == nil {
		return unix.EBADF
	}
	delete(k.files, fd)
	return nil
}

func (k *fakeKernel) ioctl(fd int, request uint, arg unsafe.Pointer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refuse[request]; err != nil {
		return err
	}
	switch f := k.files[fd].(type) {
	case *fakeChip:
		if f.gone {
			return unix.ENODEV
		}
		return f.ioctl(request, arg)
	case *fakeRequest:
		if f.chip.gone {
			return unix.ENODEV
		}
		return f.ioctl(request, (*unix.GPIOV2LineValues)(arg))
	}
	return unix.EBADF
}

func (c *fakeChip) ioctl(request uint, arg unsafe.Pointer) error {
	switch request {
	case unix.GPIO_GET_CHIPINFO_IOCTL:
		info := (*unix.GPIOChipInfo)(arg)
		copy(info.Name[:], c.name)
		copy(info.Label[:], c.label)
		info.Lines = uint32(len(c.lines))
		return nil
	case unix.GPIO_V2_GET_LINEINFO_IOCTL:
		info := (*unix.GPIOV2LineInfo)(arg)
		if int(info.Offset) >= len(c.lines) {
			return unix.EINVAL
		}
		l := c.lines[info.Offset]
		copy(info.Name[:], l.name)
		copy(info.Consumer[:], l.consumer)
		info.Flags = l.flags
		if info.Flags&flagOutput == 0 {
			info.Flags |= flagInput
		}
		if l.debounce != 0 {
			info.Num_attrs = 1
			info.Attrs[0] = unix.GPIOV2LineAttribute{Id: unix.GPIO_V2_LINE_ATTR_ID_DEBOUNCE, Flags: uint64(l.debounce)}
		}
		return nil
	case unix.GPIO_V2_GET_LINE_IOCTL:
		return c.give((*unix.GPIOV2LineRequest)(arg))
	}
	return unix.EINVAL
}

// give is linereq_create.
func (c *fakeChip) give(r *unix.GPIOV2LineRequest) error {
	if r.Num_lines == 0 || r.Num_lines > 64 || r.Config.Num_attrs > 10 {
		return unix.EINVAL
	}
	req := &fakeRequest{chip: c, size: int(r.Event_buffer_size)}
	if req.size == 0 {
		req.size = 16 * int(r.Num_lines)
	}
	for i, o := range r.Offsets[:r.Num_lines] {
		if int(o) >= len(c.lines) {
			return unix.EINVAL
		}
		if c.lines[o].flags&flagUsed != 0 || slices.Contains(req.offsets, o) {
			return unix.EBUSY
		}
		if flags := lineFlags(r, i); flags&flagInput != 0 && flags&flagOutput != 0 ||
			flags&(flagRising|flagFalling) != 0 && flags&flagInput == 0 {
			return unix.EINVAL
		}
		req.offsets = append(req.offsets, o)
	}
	for i, o := range req.offsets {
		l := &c.lines[o]
		l.request, l.index, l.consumer, l.flags, l.debounce = req, i, fromKernel(r.Consumer), lineFlags(r, i)|flagUsed, 0
		switch {
		case l.flags&flagPullUp != 0:
			l.high = true
		case l.flags&flagPullDown != 0:
			l.high = false
		case l.flags&flagOutput != 0:
			l.high = l.flags&flagActiveLow != 0 != (attributeOf(r, i, unix.GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES)>>i&1 != 0)
		}
		l.debounce = uint32(attributeOf(r, i, unix.GPIO_V2_LINE_ATTR_ID_DEBOUNCE))
	}
	r.Fd = int32(c.kernel.descriptor(req))
	return nil
}

func lineFlags(r *unix.GPIOV2LineRequest, line int) uint64 {
	for _, a := range r.Config.Attrs[:r.Config.Num_attrs] {
		if a.Attr.Id == unix.GPIO_V2_LINE_ATTR_ID_FLAGS && a.Mask>>line&1 != 0 {
			return a.Attr.Flags
		}
	}
	return r.Config.Flags
}

func attributeOf(r *unix.GPIOV2LineRequest, line int, id uint32) uint64 {
	for _, a := range r.Config.Attrs[:r.Config.Num_attrs] {
		if a.Attr.Id == id && a.Mask>>line&1 != 0 {
			return a.Attr.Flags
		}
	}
	return 0
}

func (r *fakeRequest) ioctl(request uint, v *unix.GPIOV2LineValues) error {
	if look := r.chip.kernel.looking; look != nil && request == unix.GPIO_V2_LINE_GET_VALUES_IOCTL {
		look()
	}
	bits := uint64(0)
	for i, o := range r.offsets {
		l := &r.chip.lines[o]
		if v.Mask>>i&1 == 0 {
			continue
		}
		if request == unix.GPIO_V2_LINE_SET_VALUES_IOCTL {
			if l.flags&flagOutput == 0 {
				return unix.EPERM
			}
			l.high = v.Bits>>i&1 != 0 != (l.flags&flagActiveLow != 0)
		}
		if l.active() {
			bits |= 1 << i
		}
	}
	v.Bits = bits
	return nil
}

func (l *fakeLine) active() bool { return l.high != (l.flags&flagActiveLow != 0) }

func (k *fakeKernel) poll(fd int, d time.Duration) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	r, ok := k.files[fd].(*fakeRequest)
	if !ok {
		return false, unix.EBADF
	}
	if k.live {
		k.wait(r, d)
	} else {
		end := k.clock + uint64(d)
		for len(r.fifo) == 0 && k.advance(end) {
		}
	}
	return len(r.fifo) > 0, nil
}

// asked is how often poll and read were called.
func (k *fakeKernel) asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

// wait is poll's in real time.
func (k *fakeKernel) wait(r *fakeRequest, d time.Duration) {
	late := time.After(d)
	for over := false; len(r.fifo) == 0 && !over; {
		wake := k.wake
		k.mu.Unlock()
		select {
		case <-wake:
		case <-late:
			over = true
		}
		k.mu.Lock()
	}
}

// advance goes on to what is scheduled next, or to the end.
func (k *fakeKernel) advance(end uint64) bool {
	if len(k.scheduled) == 0 || k.scheduled[0].at > end {
		k.clock = end
		return false
	}
	next := k.scheduled[0]
	k.scheduled = k.scheduled[1:]
	k.clock = max(k.clock, next.at)
	next.do()
	return true
}

// after schedules what happens to the lines that long from now.
func (k *fakeKernel) after(d time.Duration, do func()) {
	at := k.clock + uint64(d)
	place, _ := slices.BinarySearchFunc(k.scheduled, at+1, func(s scheduled, at uint64) int { return cmp.Compare(s.at, at) })
	k.scheduled = slices.Insert(k.scheduled, place, scheduled{at, do})
}

func (k *fakeKernel) sleep(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for end := k.clock + uint64(d); k.advance(end); {
	}
}

func (k *fakeKernel) now() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live {
		return linux{}.now()
	}
	return k.clock
}

func (k *fakeKernel) read(fd int, events []unix.GPIOV2LineEvent) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	r, ok := k.files[fd].(*fakeRequest)
	switch {
	case !ok:
		return 0, unix.EBADF
	case r.chip.gone:
		return 0, unix.ENODEV
	}
	n := copy(events, r.fifo)
	r.fifo = slices.Delete(r.fifo, 0, n)
	return n, nil
}

// set puts the electrical level of a line. It is called by what is scheduled, or
// with happen.
func (c *fakeChip) set(offset int, high bool) {
	l := &c.lines[offset]
	if l.high == high {
		return
	}
	l.high = high
	if l.request == nil {
		return
	}
	id, flag := uint32(unix.GPIO_V2_LINE_EVENT_RISING_EDGE), uint64(flagRising)
	if !l.active() {
		id, flag = unix.GPIO_V2_LINE_EVENT_FALLING_EDGE, flagFalling
	}
	if l.flags&flag != 0 {
		l.request.seq++
		l.request.push(unix.GPIOV2LineEvent{Timestamp_ns: c.kernel.clock, Id: id, Offset: uint32(offset), Seqno: l.request.seq})
	}
}

// pulse makes a line low and high again.
func (c *fakeChip) pulse(offset int) {
	c.set(offset, false)
	c.set(offset, true)
}

// push is linereq_put_event: a full buffer loses its oldest.
func (r *fakeRequest) push(e unix.GPIOV2LineEvent) {
	if len(r.fifo) >= r.size {
		r.fifo = slices.Delete(r.fifo, 0, 1)
		r.lost++
	}
	r.fifo = append(r.fifo, e)
}

// happen lets something happen now, for a Read in another goroutine to see.
func (k *fakeKernel) happen(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live {
		k.clock = linux{}.now()
	}
	do()
	close(k.wake)
	k.wake = make(chan struct{})
}
