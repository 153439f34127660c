package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"shoed/device"
	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

// core turns what a reader sends and people answer into durable events. One
// goroutine runs it and owns the state, so the game needs no lock. Its order
// is fixed: feed, step, make raw bytes and consequences durable together, and
// only then adopt the state and tell anybody.
type core struct {
	journal *journal.Journal
	sources []*source // readers first, of these the one in use at first
	state   round.State
	program string // identity of this program: snapshots of another are not compared
	log     *slog.Logger
	clock   func(time.Time) time.Time // wall time to table time; they differ in a demonstration only
	adopted func()                    // something new is durable
	alive   func()                    // the loop still turns, or holds as it must
	tableID string
	gate    *mqtt.Gate              // what commands must pass
	replay  func(mqtt.Replay) bool  // sends events again; false when it cannot now
	reread  func() (*change, error) // reads the configuration again; nil without one
	hangups <-chan os.Signal        // each asks for that; nil for none
	beside  chan round.Input        // what a demonstration tells that none of its devices can; nil elsewhere

	records  []journal.Record // of the step being made
	unsaid   []journal.Record // chunks that led to nothing, durable within a second
	events   []round.Event
	cause    string // of these events: the command's source, "" without one
	readings []scanner.Reading
	repeats  map[string]*repeat // messages that tell has logged, by code and cause

	begun     chan struct{} // closed when what a restart means is on record: before, nothing is published
	clockStep clockStep
	parts     []part             // of the machine, watched
	waiting   map[string]waiting // commands that wait for a second person, by id
	desk      desk               // what people said of the table
	draw      drawGate
	setup     mqtt.Setup // what info tells of the configuration in force
	next      *change    // the configuration that waits until no round is open; nil for none

	recent recent                      // the newest durable events, for the publisher
	table  atomic.Pointer[round.State] // the adopted state, for readers
	facts  atomic.Pointer[mqtt.Facts]  // of desk and setup, for readers
	health atomic.Pointer[coreHealth]
}

// coreHealth is what others may know of the core between its steps.
type coreHealth struct {
	readers  map[string]scanner.Stats
	bytes    uint64               // taken in from all of them
	lastRead map[string]time.Time // wall time, by reader
	storage  string               // storageOK, or why the journal cannot be written
	decided  uint64               // rounds since the start
}

const storageOK = "ok"

// report changes what others may know.
func (c *core) report(change func(*coreHealth)) {
	h := coreHealth{storage: storageOK}
	if old := c.health.Load(); old != nil {
		h = *old
	}
	change(&h)
	c.health.Store(&h)
}

const (
	// flushEvery is how long chunks that led to nothing, and the cursor, may
	// stay in memory only.
	flushEvery = time.Second
	// maxUnsaid chunks wait at most, so that noise on the line takes no more
	// memory while the disk is full.
	maxUnsaid = 256
	// lateMost is how late a time limit of the rules may be noticed when nothing
	// else happens; a card notices it at once.
	lateMost = 100 * time.Millisecond
	// retryEvery is how often a write is tried again while the disk is full.
	retryEvery = 500 * time.Millisecond
)

// snapshot is the journal's own restart point.
type snapshot struct {
	Program string      `json:"program"`
	Version string      `json:"version"`
	State   round.State `json:"state"`

	Decoders map[string]decoded `json:"decoders"` // by source
	Desk     desk               `json:"desk"`
}

// restore brings the core to the end of its journal: the last snapshot, then
// every record since, recomputed. What this same program recorded must come
// out again; a difference is an error, for one of the two is wrong.
func (c *core) restore(rules round.Rules) error {
	c.state = round.New(rules)
	from, same := uint64(1), true
	last, ok, err := c.journal.LastSnapshot()
	if err != nil {
		return err
	}
	if ok {
		var s snapshot
		if err := json.Unmarshal(last.Body, &s); err != nil {
			return fmt.Errorf("journal record %d: the snapshot of version %s cannot be read by this one: %w", last.No, s.Version, err)
		}
		c.state, c.desk, from, same = s.State, s.Desk, last.No+1, s.Program == c.program
		if err := c.restoreSources(s.Decoders, same); err != nil {
			return fmt.Errorf("journal record %d: %w", last.No, err)
		}
	}
	again := rerun{core: c, compare: same}
	if err := c.journal.Read(from, again.record); err != nil {
		return err
	}
	if err := again.done(); err != nil {
		return err
	}
	c.tellFacts()
	c.sayRules(rules)
	changed := slices.ContainsFunc(c.sources, func(s *source) bool { return s.changed })
	adopted := c.state
	adopted.Adopt(rules)
	if ok && same && !changed && adopted == c.state {
		return nil
	}
	c.state = adopted
	return c.journal.Append([]journal.Record{c.snapshot(c.state, time.Now())})
}

func (c *core) snapshot(s round.State, at time.Time) journal.Record {
	body, err := json.Marshal(snapshot{Program: c.program, Version: version, State: s, Decoders: c.snapshots(), Desk: c.desk})
	if err != nil {
		panic(err) // numbers and texts always marshal
	}
	return journal.Record{At: at, Kind: journal.Snapshot, Body: body}
}

// rerun recomputes a journal.
type rerun struct {
	core     *core
	compare  bool
	readings []scanner.Reading
	events   []round.Event
}

func (r *rerun) record(rec journal.Record) error {
	c := r.core
	switch rec.Kind {
	case journal.Chunk:
		if err := r.done(); err != nil {
			return err
		}
		if s := c.source(rec.Source); s != nil && !s.changed {
			r.readings = c.feed(s, rec.At, rec.Body, r.readings[:0])
		}
	case journal.Input:
		in, err := round.ParseInput(rec.Body)
		if err != nil {
			return fmt.Errorf("journal record %d: %w", rec.No, err)
		}
		if err := r.input(rec, &in); err != nil {
			return err
		}
		c.beforeStep(&in)
		if c.state, r.events, err = c.state.Step(in, r.events); err != nil {
			return fmt.Errorf("journal record %d: %w", rec.No, err)
		}
	case journal.Event:
		return r.event(rec)
	case journal.Command:
		return c.desk.command(rec)
	}
	return nil
}

// input compares an input that came from the decoder with what it says now.
func (r *rerun) input(rec journal.Record, in *round.Input) error {
	if rec.Source == "" || !r.compare {
		return nil
	}
	if s := r.core.source(rec.Source); s == nil || s.changed {
		return nil
	}
	if len(r.readings) == 0 || !bytes.Equal(r.readings[0].Input.AppendText(nil), rec.Body) {
		return diverged(rec, "the decoder does not give this input again")
	}
	r.readings = r.readings[1:]
	return nil
}

func (r *rerun) event(rec journal.Record) error {
	if !r.compare {
		r.events = r.events[:0]
		return nil
	}
	if len(r.events) == 0 {
		return diverged(rec, "the rules do not give this event again")
	}
	text, err := appendEvent(nil, &r.events[0])
	if err != nil {
		return err
	}
	if !bytes.Equal(text, rec.Body) {
		return diverged(rec, "the rules now give "+string(text))
	}
	r.events = r.events[1:]
	return nil
}

// done checks that nothing recomputed is left over.
func (r *rerun) done() error {
	if r.compare && (len(r.readings) > 0 || len(r.events) > 0) {
		return fmt.Errorf("the journal lacks what follows from it: %d inputs and %d events more are recomputed than were recorded; keep the file and report it", len(r.readings), len(r.events))
	}
	r.readings, r.events = r.readings[:0], r.events[:0]
	return nil
}

func diverged(rec journal.Record, why string) error {
	return fmt.Errorf("journal record %d (%v): recomputed differently by the program that wrote it: %s; nothing was changed; keep the file and report it", rec.No, rec.Kind, why)
}

func inputsOf(readings []scanner.Reading) []scanner.Reading {
	kept := readings[:0]
	for _, r := range readings {
		if r.Err == nil {
			kept = append(kept, r)
		}
	}
	return kept
}

// run takes signals and commands until ctx ends, and then what still waits in
// the queue, so that nothing that was read is left behind.
func (c *core) run(ctx context.Context, queue *device.Queue, commands <-chan request) error {
	ctx, stop := context.WithCancel(ctx)
	signals := make(chan device.Signal)
	go func() { // ends with ctx: Next gives what waits, then ctx's error
		defer close(signals)
		for s, err := queue.Next(ctx); err == nil; s, err = queue.Next(ctx) {
			signals <- s
		}
	}()
	defer func() {
		stop()
		for range signals { // after an error; otherwise the channel is closed
		}
	}()
	if err := c.take(ctx, round.Input{At: c.now(), Kind: round.InRestart}); err != nil {
		return err
	}
	close(c.begun)
	second := time.NewTicker(flushEvery)
	defer second.Stop()
	limits := time.NewTicker(lateMost)
	defer limits.Stop()
	for {
		var err error
		select {
		case s, open := <-signals:
			if !open {
				return c.flush()
			}
			err = c.signal(ctx, s)
		case r := <-commands:
			err = c.command(ctx, r)
		case <-c.hangups:
			c.hangup()
		case in := <-c.beside:
			err = c.take(ctx, in)
		case <-limits.C:
			c.alive()
			err = c.limits(ctx)
		case <-second.C:
			err = c.everySecond(ctx)
		}
		c.moveGate()
		if err == nil {
			err = c.reconfigure(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (c *core) tellFacts() {
	c.facts.Store(&mqtt.Facts{Limits: c.desk.Limits, Masked: c.desk.Masked, Setup: c.setup})
}

// sayRules logs that other rules than those so far are to come.
func (c *core) sayRules(rules round.Rules) {
	if c.state.NextRules != rules {
		c.log.Info("the rules change with the next shoe, or now if there was none", "code", "rules.changed", "now", c.state.Rules.Texts(), "then", rules.Texts())
	}
}

func (c *core) now() time.Time { return c.clock(time.Now()).UTC() }

// signal takes one thing that happened on a reader's line.
func (c *core) signal(ctx context.Context, s device.Signal) error {
	at := c.clock(s.At).UTC()
	from := c.source(s.Name)
	switch s.Kind {
	case device.Received:
		return c.chunk(ctx, from, at, s.Bytes)
	case device.Up:
		from.up = true
		if from == c.inUse() {
			c.draw = drawGate{} // it may have lost its power
		}
		c.tell(slog.LevelInfo, "device.up", "connected", "device", from.name)
		return c.take(ctx, c.link(from, at, true))
	case device.Down:
		from.up = false
		c.tell(slog.LevelWarn, "device.down", "not connected", "device", from.name, "cause", s.Cause)
		return c.take(ctx, c.link(from, at, false))
	case device.Lost:
		c.tell(slog.LevelError, "device.overflow", "bytes were lost: they came faster than they could be kept", "device", from.name, "bytes", s.LostBytes)
		if from.reads == scanner.Cards { // sensors tell their levels again
			return c.take(ctx, round.Input{At: at, Kind: round.InReader, Reader: round.ReaderGap})
		}
	}
	return nil
}

// chunk takes the bytes of one read.
func (c *core) chunk(ctx context.Context, r *source, at time.Time, b []byte) error {
	c.readings = c.feed(r, at, b, c.readings[:0])
	c.report(func(h *coreHealth) {
		h.readers, h.bytes = c.stats(), h.bytes+uint64(len(b))
		h.lastRead = maps.Clone(h.lastRead) // others read the old one
		if h.lastRead == nil {
			h.lastRead = map[string]time.Time{}
		}
		h.lastRead[r.name] = time.Now()
	})
	raw := journal.Record{At: at, Kind: journal.Chunk, Source: r.name, Body: b}
	if len(c.readings) == 0 && len(c.unsaid) < maxUnsaid {
		c.unsaid = append(c.unsaid, raw)
		return nil
	}
	next := c.state
	c.begin(raw)
	for _, reading := range c.readings {
		if err := c.step(&next, reading.Input, r.name); err != nil {
			return err
		}
	}
	return c.commit(ctx, next)
}

// learnMask sees from what the reader tells of a hand's card whether it masks
// faces: nothing else says which kind it is.
func (c *core) learnMask(inputs []scanner.Reading) {
	for i := range inputs {
		in := &inputs[i].Input
		if in.Kind != round.InCard || in.To.Side() == 0 {
			continue
		}
		masked := in.Card == round.Masked
		if c.desk.Masked == nil || *c.desk.Masked != masked {
			c.desk.Masked = &masked
			c.tellFacts()
		}
	}
}

// take makes one input that did not come from the decoder.
func (c *core) take(ctx context.Context, in round.Input) error {
	next := c.state
	c.begin()
	c.beforeStep(&in)
	if err := c.step(&next, in, ""); err != nil {
		return err
	}
	return c.commit(ctx, next)
}

func (c *core) begin(first ...journal.Record) {
	c.records = append(append(c.records[:0], c.unsaid...), first...)
	c.events, c.cause = c.events[:0], ""
}

// step applies an input to next and adds it, with its events, to the records.
func (c *core) step(next *round.State, in round.Input, source string) error {
	made := len(c.events)
	after, events, err := next.Step(in, c.events)
	if err != nil {
		return fmt.Errorf("input %s: %w", in.Kind, err)
	}
	*next, c.events = after, events
	c.records = append(c.records, journal.Record{At: in.At, Kind: journal.Input, Source: source, Body: in.AppendText(nil)})
	for i := range events[made:] {
		e := &events[made+i]
		text, err := appendEvent(nil, e)
		if err != nil {
			return err
		}
		c.records = append(c.records, journal.Record{At: in.At, Kind: journal.Event, Source: c.cause, Seq: e.Seq, Body: text})
	}
	return nil
}

// commit makes the records durable and adopts the state. While the disk is
// full it holds: nothing is published, the reader's line is buffered by its
// queue, and the same write is tried until it succeeds or ctx ends.
func (c *core) commit(ctx context.Context, next round.State) error {
	held := false
	for {
		err := c.journal.Append(c.records)
		if err == nil {
			break
		}
		if !errors.Is(err, journal.ErrFull) && !errors.Is(err, journal.ErrIO) {
			return err
		}
		if !held {
			held = true
			c.report(func(h *coreHealth) { h.storage = err.Error() })
			c.tell(slog.LevelError, "storage.lost", "the journal cannot be written: the table holds until it can", "cause", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped while the journal could not be written; %d records in memory are lost: %w", len(c.records), err)
		case <-time.After(retryEvery):
			c.alive()
		}
	}
	if held {
		c.report(func(h *coreHealth) { h.storage = storageOK })
		c.tell(slog.LevelInfo, "storage.restored", "the journal is written again")
	}
	c.unsaid = c.unsaid[:0]
	c.recent.add(c.records)
	c.countDecided()
	c.state = next
	c.adopt()
	if err := c.snapshotAtShoe(); err != nil || !held {
		return err
	}
	return c.tellHeld(ctx)
}

func (c *core) countDecided() {
	for i := range c.events {
		if c.events[i].Kind == round.RoundDecided {
			c.report(func(h *coreHealth) { h.decided++ })
		}
	}
}

// tellHeld puts on record that the journal could not be written for a while:
// both ends at once, so that a kill between them leaves no alert standing.
func (c *core) tellHeld(ctx context.Context) error {
	answered := c.events // of the step that was held: whoever asked for it waits for these
	defer func() { c.events = answered }()
	c.events = nil
	next := c.state
	c.begin()
	for _, up := range []bool{false, true} {
		if err := c.step(&next, round.Input{At: c.now(), Kind: round.InLink, Name: round.JournalDevice, On: up}, ""); err != nil {
			return err
		}
	}
	return c.commit(ctx, next)
}

// snapshotAtShoe keeps a restart point at each new shoe and prunes the shoes
// that the bounds let go.
func (c *core) snapshotAtShoe() error {
	for i := range c.events {
		if c.events[i].Kind != round.ShoeLoaded {
			continue
		}
		// Should this fail for want of room, the last snapshot still serves.
		if err := c.journal.Append([]journal.Record{c.snapshot(c.state, c.events[i].At)}); err != nil && !errors.Is(err, journal.ErrFull) {
			return err
		}
		return c.prune()
	}
	return nil
}

func (c *core) prune() error {
	if clockState() == "unset" {
		return nil // years ahead or behind, age means nothing
	}
	p, err := c.journal.Prune()
	if err != nil && !errors.Is(err, journal.ErrFull) {
		return err
	}
	if p.Records > 0 {
		c.log.Debug("old journal records dropped", "code", "journal.pruned", "records", p.Records, "bytes_left", p.Bytes)
	}
	if p.Kept != "" {
		c.tell(slog.LevelWarn, "journal.over_bound", "the journal is over its bound", "cause", p.Kept, "bytes", p.Bytes)
	}
	return nil
}

// adopt makes the state visible.
func (c *core) adopt() {
	s := c.state
	c.table.Store(&s)
	c.adopted()
}

// limits tells the rules that time has passed, when one of their limits has.
func (c *core) limits(ctx context.Context) error {
	if due := c.state.Deadline(); due == 0 || c.now().UnixNano() < due {
		return nil
	}
	return c.take(ctx, round.Input{At: c.now(), Kind: round.InTick})
}

// everySecond flushes, says what was refused, and ends what waited too long.
func (c *core) everySecond(ctx context.Context) error {
	for _, s := range c.sources {
		c.sayRefused(s)
	}
	if err := c.noteStep(); err != nil {
		return err
	}
	c.settle(time.Now())
	if err := c.flush(); err != nil && !errors.Is(err, journal.ErrFull) && !errors.Is(err, journal.ErrIO) {
		return err
	}
	return errors.Join(c.watch(ctx), c.expire(ctx))
}

// sayRefused logs that a source's frames were refused, if more were.
func (c *core) sayRefused(s *source) {
	total := uint64(0)
	stats := s.decoder.Stats()
	counts := []any{"device", s.name}
	for _, reason := range scanner.Reasons() {
		if n := stats.Refused[reason]; n > 0 {
			total += n
			counts = append(counts, reason.String(), n)
		}
	}
	if total > s.refused {
		s.refused = total
		c.tell(slog.LevelWarn, "device.refused", "frames refused, counted since the start of the journal", counts...)
	}
}

// flush makes durable what led to nothing. Should there be no room it stays in
// memory until there is.
func (c *core) flush() error {
	if len(c.unsaid) > 0 {
		if err := c.journal.Append(c.unsaid); err != nil {
			return err
		}
		c.unsaid = c.unsaid[:0]
	}
	return c.journal.Flush()
}
