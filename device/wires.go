package device

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// SwitchLimit is the Limit of a wire that has none: ten presses a second, faster
	// than fingers are. What chatters for days must not push all else out of the
	// journal: at this pace it takes some 300 MB a day.
	SwitchLimit = 20
	// PulseLimit is the Limit for data wires: a bit a millisecond, the fastest
	// that Wiegand readers send, without end.
	PulseLimit = 1000
	// burst is how many edges at once are within every Limit: a word of 37 bits,
	// the longest in use, whatever its pace, or the bouncing of a bad switch.
	burst = 64

	// quiet is the silence after edges that is told. A Wiegand word has ended when
	// nothing came for 20 ms; the rest is for edges on their way to us.
	quiet = 25 * time.Millisecond
	// checkEvery is how often the levels are read: by then a lost edge has healed,
	// and a chip that is gone is known.
	checkEvery = time.Second
	// breather is how long edges are left with the kernel after some were read, so
	// that a word is a few reads rather than one for each bit, and there are never
	// more than a hundred a second. It delays nothing that waits for a silence. The
	// kernel keeps as many edges as 100 kHz gives in that time.
	breather = 10 * time.Millisecond
	// longestSettle is beyond any reader's; wireWait lets a wait for an edge, then
	// for the levels to settle, end within the bound of Read.
	longestSettle = 20 * time.Millisecond
	wireWait      = readWait - longestSettle - breather
	// longestDebounce is beyond any switch.
	longestDebounce = time.Second

	// readEvents is the most edges of one read, so that they and the levels after
	// them fit into what any line gives at once.
	readEvents = readBytes/wireRecordBytes - 1
)

// Edges says which changes of a wire are told as they happen.
type Edges uint8

const (
	BothEdges    Edges = iota
	ActiveEdge         // only that it became active: pulses
	InactiveEdge       // only that it became inactive
	NoEdges            // none; its level is told with the others
)

var edgeFlags = [...]uint64{BothEdges: flagRising | flagFalling, ActiveEdge: flagRising, InactiveEdge: flagFalling, NoEdges: 0}

var biasFlags = map[string]uint64{"": 0, "up": flagPullUp, "down": flagPullDown, "none": flagNoBias}

// Wire is a GPIO line that is an input.
type Wire struct {
	Use string // what it is for, for error texts: "d0"
	// Line is the kernel's name of the line, or its offset, or its position on the
	// header of a Raspberry Pi: "P1_11".
	Line      string
	Edges     Edges
	ActiveLow bool // active is the low level: the kernel turns it round
	// Bias is the pull of the line: "up", "down", "none", or "" for as it is. A
	// chip that has no pulls ignores it.
	Bias string
	// Debounce is how long a level must last to count, 0 for not at all. The kernel
	// sees to it, and stamps an edge when it has lasted.
	Debounce time.Duration
	// Strobe: when it becomes active, all levels are read (see Options.Settle).
	Strobe bool
	// Limit is how many edges a second are told, beyond a burst of 64; 0 means
	// SwitchLimit. The rest is dropped, which its numbers show.
	Limit int
}

// checkWires tells want what is wrong with the wires.
func (o Options) checkWires(want func(ok bool, format string, args ...any)) {
	want(len(o.Wires) >= 1 && len(o.Wires) <= maxWires, "%d wires are not 1 to %d", len(o.Wires), maxWires)
	want(o.Settle >= 0 && o.Settle <= longestSettle, "settle %v is not 0 to %v", o.Settle, longestSettle)
	strobes := 0
	for _, w := range o.Wires {
		if w.Strobe {
			strobes++
		}
		_, known := biasFlags[w.Bias]
		want(w.Line != "", "wire %s has no line", w.Use)
		want(known, "bias %q of wire %s is not up, down or none", w.Bias, w.Use)
		want(w.Edges <= NoEdges, "edges %d of wire %s are none of the four", w.Edges, w.Use)
		want(!w.Strobe || w.Edges <= ActiveEdge, "wire %s is the strobe but does not tell that it becomes active", w.Use)
		want(w.Debounce >= 0 && w.Debounce <= longestDebounce, "debounce %v of wire %s is not 0 to %v", w.Debounce, w.Use, longestDebounce)
		want(w.Limit >= 0, "limit %d of wire %s is below 0", w.Limit, w.Use)
	}
	want(strobes <= 1, "%d wires are the strobe", strobes)
}

// wireLine is a request of wires that nobody else holds.
type wireLine struct {
	name   string // for error texts: logical name and address
	kernel kernel
	wires  []Wire
	settle time.Duration

	use    sync.Mutex // held during every call on fd, so that none comes after its close
	fd     int        // -1 after Close
	index  map[uint32]uint8
	limits [maxWires]limiter
	events [readEvents]unix.GPIOV2LineEvent
	buffer [readBytes]byte

	opened   bool   // the levels at the opening are told
	strobed  bool   // one of the wires is the strobe, which is not to be kept waiting
	rest     bool   // edges have just been read
	told     uint16 // the levels, as far as they are told
	seq      uint32 // the highest that was read
	dropped  bool   // edges beyond a Limit since levels were told
	quietDue uint64 // when silence is to be told, 0 never
	checkDue uint64 // when the levels are to be read

	once     sync.Once
	closing  chan struct{} // closed when Close is first called
	closeErr error
}

// openWires requests the wires from their chip.
func openWires(o Options) (*wireLine, error) {
	c, err := o.chip()
	if err != nil {
		return nil, err
	}
	defer c.close()
	settings := o.settings()
	if err := o.find(c, settings); err != nil {
		return nil, err
	}
	fd, err := o.request(c, settings)
	if err != nil {
		return nil, err
	}
	l := &wireLine{name: o.Name + ": " + o.Address, kernel: o.kernel, wires: o.Wires, settle: o.Settle, fd: fd,
		index: map[uint32]uint8{}, closing: make(chan struct{})}
	for i, s := range settings {
		l.index[s.offset] = uint8(i)
		l.strobed = l.strobed || o.Wires[i].Strobe
		l.limits[i].interval = uint64(time.Second) / uint64(cmp.Or(o.Wires[i].Limit, SwitchLimit))
	}
	return l, nil
}

// settings are how the wires are requested.
func (o Options) settings() []setting {
	all := make([]setting, len(o.Wires))
	for i, w := range o.Wires {
		all[i] = setting{use: w.Use, line: w.Line, debounce: w.Debounce, flags: flagInput | edgeFlags[w.Edges] | biasFlags[w.Bias]}
		if w.ActiveLow {
			all[i].flags |= flagActiveLow
		}
	}
	return all
}

// Read is Line's; the bytes are WireRecords. Edges are told at once; those of the
// next 10 ms come together, unless one of the wires is the strobe.
func (l *wireLine) Read(ctx context.Context) (Chunk, error) {
	return readAny(ctx, func() (Chunk, error) { return l.readOnce(wireWait) })
}

// readOnce makes one step, which waits at most that long; no bytes and no error
// is that nothing was to be told.
func (l *wireLine) readOnce(longest time.Duration) (Chunk, error) {
	l.use.Lock()
	defer l.use.Unlock()
	if isClosed(l.closing) {
		return Chunk{}, l.fail(ErrClosed)
	}
	records, err := l.step(longest)
	if err != nil {
		return Chunk{}, l.fail(err)
	}
	return Chunk{At: time.Now(), Bytes: slices.Clone(records)}, nil
}

// step does what is due, or waits for edges.
func (l *wireLine) step(longest time.Duration) ([]byte, error) {
	now := l.kernel.now()
	switch {
	case !l.opened:
		l.opened, l.checkDue = true, now+uint64(checkEvery)
		return l.tell()
	case now >= l.checkDue:
		l.checkDue = now + uint64(checkEvery)
		return l.check()
	case l.quietDue != 0 && now >= l.quietDue:
		return l.silence()
	case l.rest:
		l.rest = false
		l.kernel.sleep(breather)
		now = l.kernel.now()
	}
	due := max(now, l.checkDue) // which may just have come
	if l.quietDue != 0 {
		due = min(due, max(now, l.quietDue))
	}
	ready, err := l.kernel.poll(l.fd, min(longest, time.Duration(due-now)))
	if err != nil || !ready {
		return nil, err
	}
	return l.edges()
}

// edges reads the edges that wait, and after the strobe's the levels.
func (l *wireLine) edges() ([]byte, error) {
	n, err := l.kernel.read(l.fd, l.events[:])
	if err != nil || n == 0 {
		return nil, err
	}
	events := l.events[:n]
	slices.SortFunc(events, func(a, b unix.GPIOV2LineEvent) int { return int(int32(a.Seqno - b.Seqno)) }) // it wraps
	records, latest, strobe := l.buffer[:0], uint64(0), uint64(0)
	for _, e := range events {
		latest = max(latest, e.Timestamp_ns)
		if int32(e.Seqno-l.seq) > 0 {
			l.seq = e.Seqno
		}
		i := l.index[e.Offset]
		if !l.limits[i].admit(e.Timestamp_ns) {
			l.dropped = true
			continue
		}
		r := WireRecord{Kind: WireActive, Wire: i, Seq: e.Seqno, Time: time.Duration(e.Timestamp_ns)}
		l.told |= 1 << i
		if e.Id == unix.GPIO_V2_LINE_EVENT_FALLING_EDGE {
			r.Kind = WireInactive
			l.told &^= 1 << i
		} else if l.wires[i].Strobe {
			strobe = e.Timestamp_ns
		}
		records = r.Append(records)
	}
	now := l.kernel.now()
	l.quietDue = min(now, latest) + uint64(quiet)
	l.rest = n < len(l.events) && (!l.strobed || l.dropped)
	if strobe == 0 {
		return records, nil
	}
	sampled, err := l.sample(min(now, strobe)+uint64(l.settle), now)
	return append(records, sampled...), err
}

// sample reads the levels twice once they have settled.
func (l *wireLine) sample(settled, now uint64) ([]byte, error) {
	if settled > now {
		l.kernel.sleep(time.Duration(settled - now))
	}
	first, err := levels(l.kernel, l.fd, len(l.wires))
	if err != nil {
		return nil, err
	}
	records, err := l.tell()
	if err == nil && l.told != first {
		records[0] = byte(WireUnsteady)
	}
	return records, err
}

// silence tells the levels at the end of a silence, unless it has just ended:
// the stamp is from before a look at what waits.
func (l *wireLine) silence() ([]byte, error) {
	told, dropped := l.told, l.dropped
	records, err := l.tell()
	if err != nil {
		return nil, err
	}
	if ready, err := l.kernel.poll(l.fd, 0); err != nil || ready {
		l.told, l.dropped = told, dropped
		l.quietDue = l.kernel.now() + uint64(quiet)
		return nil, err
	}
	l.quietDue = 0
	return records, nil
}

// check reads the levels as truth and as a sign of life, and tells them when
// they are not as told. With edges waiting they may well differ.
func (l *wireLine) check() ([]byte, error) {
	now, err := levels(l.kernel, l.fd, len(l.wires))
	if err != nil || now == l.told {
		return nil, err
	}
	if ready, err := l.kernel.poll(l.fd, 0); err != nil || ready && !l.dropped {
		return nil, err
	}
	return l.tell()
}

// tell reads the levels and makes their record.
func (l *wireLine) tell() ([]byte, error) {
	now, err := levels(l.kernel, l.fd, len(l.wires))
	if err != nil {
		return nil, err
	}
	l.told, l.dropped = now, false
	return WireRecord{Kind: WireLevels, Levels: now, Seq: l.seq, Time: time.Duration(l.kernel.now())}.Append(nil), nil
}

// Write is Line's, of which wires do nothing.
func (l *wireLine) Write(context.Context, []byte) error {
	return fmt.Errorf("%s: wires take no orders", l.name)
}

// fail names the wires in an error of the kernel and tells a chip that is gone
// from other failures.
func (l *wireLine) fail(err error) error {
	return fmt.Errorf("%s: %w", l.name, ofChip(err))
}

// ofChip tells a chip that is gone, or an expander that does not answer, from
// other failures.
func ofChip(err error) error {
	if is(err, unix.ENODEV, unix.ENXIO, unix.EIO, unix.EREMOTEIO, unix.ETIMEDOUT) {
		return fmt.Errorf("%w: its GPIO chip is gone; check the expander and its cable", ErrUnplugged)
	}
	return err
}

// active reads the levels as they are now.
func (l *wireLine) active() (uint16, error) {
	l.use.Lock()
	defer l.use.Unlock()
	if isClosed(l.closing) {
		return 0, l.fail(ErrClosed)
	}
	now, err := levels(l.kernel, l.fd, len(l.wires))
	if err != nil {
		return 0, l.fail(err)
	}
	return now, nil
}

// Close is Line's. It waits for the step that is under way.
func (l *wireLine) Close() error {
	l.once.Do(func() {
		close(l.closing)
		l.use.Lock()
		defer l.use.Unlock()
		if err := l.kernel.close(l.fd); err != nil {
			l.closeErr = fmt.Errorf("%s: close: %w", l.name, err)
		}
		l.fd = -1
	})
	return l.closeErr
}

// limiter lets a burst through, and after it an edge an interval (a leaky bucket,
// kept as the time at which it is empty).
type limiter struct{ interval, empty uint64 }

func (l *limiter) admit(at uint64) bool {
	empty := max(l.empty, at)
	if empty-at >= burst*l.interval {
		return false
	}
	l.empty = empty + l.interval
	return true
}
