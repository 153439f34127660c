package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"shoed/config"
	"shoed/device"
	"shoed/round"
)

// lamps follow the table's public view and nothing else, so they tell nothing
// that the table has not shown. They are an output: what becomes of them never
// holds the table up.
type lamps struct {
	uses    []string                      // of the lamps, in their order
	open    func() (*device.Lamps, error) // anew after each failure
	buzz    time.Duration
	view    func() (s *round.State, storage string)
	changed chan struct{} // holds a token while the view may be another
	failed  atomic.Bool
	log     *slog.Logger
}

const buzzer = "buzzer"

// newLamps are those of a configuration; nil when it has none.
func newLamps(cfg *config.Lamps, view func() (*round.State, string), log *slog.Logger) *lamps {
	if cfg.Device == "" {
		return nil
	}
	o := lampOptions(cfg)
	return &lamps{uses: uses(cfg.Lines), open: func() (*device.Lamps, error) { return device.OpenLamps(o) }, buzz: time.Duration(cfg.BuzzerMS) * time.Millisecond, view: view, changed: make(chan struct{}, 1), log: log}
}

// wake says that the view may have changed.
func (l *lamps) wake() {
	if l == nil {
		return
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// failing reports whether the lamps cannot be set.
func (l *lamps) failing() bool { return l != nil && l.failed.Load() }

// lit are the names of the lamps that are on for a table, the buzzer left out.
//
//	red    paused, or the journal cannot be written
//	amber  wait
//	green  deal
//	P1…B3  the box that waits for a card
//
// A closed table is dark.
func lit(s *round.State, storage string) []string {
	var on []string
	switch {
	case storage != storageOK || s.PausedBy != 0:
		on = append(on, "red")
	case s.Closed:
		return nil
	case s.Waits():
		on = append(on, "amber")
	default:
		on = append(on, "green")
	}
	if b := s.Awaited(); b != 0 {
		on = append(on, b.String())
	}
	return on
}

// run sets the lamps until ctx ends, and leaves them off. Lamps that fail are
// tried again for ever; that they do is logged once, and again only when the
// cause reads differently.
func (l *lamps) run(ctx context.Context) {
	if l == nil {
		return
	}
	cause := ""
	for ctx.Err() == nil {
		row, err := l.open()
		if err == nil {
			l.failed.Store(false)
			l.log.Info("lamps connected", "code", "lamps.up")
			err = l.follow(ctx, row)
			err = errors.Join(err, row.Close()) // off
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		l.failed.Store(true)
		if cause != err.Error() {
			cause = err.Error()
			l.log.Warn("lamps not connected", "code", "lamps.down", "cause", cause)
		}
		select {
		case <-ctx.Done():
		case <-after(lampsEvery):
		}
	}
}

// lampsEvery is how often lamps that fail are tried again, and those that do not
// are set although nothing has changed: a chip that is gone is known by then.
const lampsEvery = time.Second

// follow sets the lamps to what the table is. Each question that holds the table
// sounds the buzzer once.
func (l *lamps) follow(ctx context.Context, row *device.Lamps) error {
	again := time.NewTicker(lampsEvery)
	defer again.Stop()
	s, _ := l.view()
	asked := lastQuestion(s)
	var silence <-chan time.Time // while it sounds
	for {
		s, storage := l.view()
		on := lit(s, storage)
		if q := lastQuestion(s); q > asked {
			asked, silence = q, after(l.buzz)
		}
		if silence != nil {
			on = append(on, buzzer)
		}
		if err := row.Set(l.bits(on)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-silence:
			silence = nil
		case <-l.changed:
		case <-again.C:
		}
	}
}

// lastQuestion is the number of the newest public alert that holds the table.
func lastQuestion(s *round.State) uint32 {
	newest := uint32(0)
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No != 0 && a.Public() && a.Blocks() {
			newest = max(newest, a.No)
		}
	}
	return newest
}

// bits are those of the lamps with these names; a table need not have them all.
func (l *lamps) bits(on []string) (bits uint16) {
	for i, use := range l.uses {
		if slices.Contains(on, use) {
			bits |= 1 << i
		}
	}
	return bits
}
