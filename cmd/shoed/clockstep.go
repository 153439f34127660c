package main

import (
	"encoding/json"
	"log/slog"
	"time"

	"shoed/journal"
)

// stepLeast is what counts as a step of the wall clock: a clock that is only
// slewed never moves as far in a second.
const stepLeast = time.Second

// clockStep watches the wall clock against the monotonic one.
type clockStep struct{ last time.Time }

// look gives how far the wall clock was stepped since the last look; 0 when it
// was not.
func (s *clockStep) look(now time.Time) time.Duration {
	last := s.last
	s.last = now
	if last.IsZero() {
		return 0
	}
	return stepped(now.Round(0).Sub(last.Round(0)), now.Sub(last))
}

// stepped is the difference of what both clocks say has passed, if it is a step.
func stepped(wall, monotonic time.Duration) time.Duration {
	if by := wall - monotonic; by.Abs() >= stepLeast {
		return by
	}
	return 0
}

// noteStep puts a step of the clock on record, so that the times in the journal
// can be told apart before and after it: with it, durations over the step come
// out right.
func (c *core) noteStep() error {
	by := c.clockStep.look(time.Now())
	if by == 0 {
		return nil
	}
	c.tell(slog.LevelWarn, "clock.stepped", "the wall clock was stepped", "by", by.Round(time.Millisecond))
	body, err := json.Marshal(map[string]any{"note": "clock_stepped", "by_ms": by.Milliseconds()})
	if err != nil {
		return err
	}
	c.unsaid = append(c.unsaid, journal.Record{At: c.now(), Kind: journal.Note, Body: body})
	return nil
}
