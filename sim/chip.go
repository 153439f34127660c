package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"shoed/device"
)

// Chip is a GPIO chip whose wires are moved by hand. Opened as a device.Line it
// tells what the kernel would: edges with their numbers, levels first and after a
// silence, and levels that are not as told. It may be pulled out and put back; its
// wires keep their levels meanwhile.
//
// It has no clock: time goes on when Pass is called. Any goroutine may use it.
type Chip struct {
	mu     sync.Mutex
	now    time.Duration // since the computer's start
	active map[string]bool
	gone   bool
	line   *chipLine // the open request; nil for none
	told   uint64    // bytes, since it was made
}

// chipSilence and chipCheck are those of package device.
const (
	chipSilence = 25 * time.Millisecond
	chipCheck   = time.Second
	chipRead    = 4096 // bytes of one Read at most
)

// NewChip is a chip that is plugged in, all of its wires inactive.
func NewChip() *Chip { return &Chip{active: map[string]bool{}} }

// Open is an Opener of device.Options. Its wires are those of the options, by
// their use. An error wraps ErrAbsent while the chip is pulled out, or ErrTaken.
func (c *Chip) Open(_ context.Context, o device.Options) (device.Line, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone:
		return nil, fmt.Errorf("%s: %w: the simulated chip is pulled out", o.Name, device.ErrAbsent)
	case c.line != nil:
		return nil, fmt.Errorf("%s: %w: the simulated chip is open already", o.Name, device.ErrTaken)
	}
	c.line = &chipLine{chip: c, name: o.Name, more: make(chan struct{}, 1)}
	for _, w := range o.Wires {
		c.line.uses = append(c.line.uses, w.Use)
	}
	c.line.levels(c.now)
	return c.line, nil
}

// Set moves a wire.
func (c *Chip) Set(use string, active bool) { c.move(use, active, true) }

// Lose moves a wire and loses its edge, as a kernel does whose buffer is full.
func (c *Chip) Lose(use string, active bool) { c.move(use, active, false) }

// Chatter moves a wire n times to and fro within a short time, as a switch does
// that bounces; it ends as it was.
func (c *Chip) Chatter(use string, n int, every time.Duration) {
	for range n {
		for _, active := range [...]bool{!c.Active(use), c.Active(use)} {
			c.Set(use, active)
			c.Pass(every)
		}
	}
}

// Active is the level of a wire.
func (c *Chip) Active(use string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active[use]
}

func (c *Chip) move(use string, active, told bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[use] == active {
		return
	}
	c.active[use] = active
	if c.line != nil {
		c.line.edge(use, active, told, c.now)
	}
}

// Pass lets time go on.
func (c *Chip) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
	if c.line != nil {
		c.line.pass(c.now)
	}
}

// Silent is how long nothing must happen for the chip to say so; 0 when it has
// nothing to say.
func (c *Chip) Silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == nil || c.line.quietAt == 0 {
		return 0
	}
	return c.line.quietAt - c.now
}

// Unplug pulls the chip out: an open line is lost.
func (c *Chip) Unplug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.line != nil {
		c.line.lost = true
		c.line.wake()
	}
}

// Plug puts it back.
func (c *Chip) Plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}

// Told is how many bytes it has had to tell.
func (c *Chip) Told() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// chipLine is an open request of a Chip, whose lock it uses.
type chipLine struct {
	chip         *Chip
	name         string
	uses         []string // by wire
	seq          uint32
	known        uint16        // levels, as far as they were told
	quietAt      time.Duration // when silence is to be told; 0 never
	checkAt      time.Duration
	records      []byte // not read yet
	more         chan struct{}
	lost, closed bool
}

func (l *chipLine) edge(use string, active, told bool, now time.Duration) {
	wire := slices.Index(l.uses, use)
	if wire < 0 {
		return // nobody asked for it
	}
	l.seq++
	if !told {
		return
	}
	r := device.WireRecord{Kind: device.WireInactive, Wire: uint8(wire), Seq: l.seq, Time: now}
	l.known &^= 1 << wire
	if active {
		r.Kind = device.WireActive
		l.known |= 1 << wire
	}
	l.quietAt = now + chipSilence
	l.tell(r)
}

// pass tells the levels that are due.
func (l *chipLine) pass(now time.Duration) {
	switch {
	case l.quietAt != 0 && now >= l.quietAt:
		l.levels(l.quietAt)
	case now >= l.checkAt && l.known != l.now():
		l.levels(now)
	}
	if now >= l.checkAt {
		l.checkAt = now + chipCheck
	}
}

func (l *chipLine) now() (levels uint16) {
	for i, use := range l.uses {
		if l.chip.active[use] {
			levels |= 1 << i
		}
	}
	return levels
}

func (l *chipLine) levels(at time.Duration) {
	l.known, l.quietAt = l.now(), 0
	l.tell(device.WireRecord{Kind: device.WireLevels, Levels: l.known, Seq: l.seq, Time: at})
}

func (l *chipLine) tell(r device.WireRecord) {
	before := len(l.records)
	l.records = r.Append(l.records)
	l.chip.told += uint64(len(l.records) - before)
	l.wake()
}

func (l *chipLine) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// Read is device.Line's.
func (l *chipLine) Read(ctx context.Context) (device.Chunk, error) {
	for {
		if b, err := l.take(); err != nil || len(b) > 0 {
			return device.Chunk{At: time.Now(), Bytes: b}, err
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return device.Chunk{}, ctx.Err()
		}
	}
}

func (l *chipLine) take() ([]byte, error) {
	l.chip.mu.Lock()
	defer l.chip.mu.Unlock()
	switch {
	case l.closed:
		return nil, fmt.Errorf("%s: %w", l.name, device.ErrClosed)
	case l.lost:
		return nil, fmt.Errorf("%s: %w: the simulated chip was pulled out", l.name, device.ErrUnplugged)
	}
	n := min(len(l.records), chipRead)
	b := slices.Clone(l.records[:n])
	l.records = l.records[n:]
	if len(l.records) > 0 {
		l.wake()
	}
	return b, nil
}

// Write is device.Line's: wires take no orders.
func (l *chipLine) Write(context.Context, []byte) error {
	return errors.New(l.name + ": wires take no orders")
}

// Close is device.Line's.
func (l *chipLine) Close() error {
	l.chip.mu.Lock()
	defer l.chip.mu.Unlock()
	if !l.closed {
		l.closed, l.chip.line = true, nil
		l.wake()
	}
	return nil
}
