package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

const (
	quietFor  = 10 * time.Second // more than a loose plug takes to come back (device.Follow)
	forgotten = 10 * time.Minute
)

// repeat is a message that comes again and again.
type repeat struct {
	times    int
	last     time.Time
	withheld func(times int) // logs the last one; nil when it was logged
}

// tell logs what may happen again and again: of the same code and cause the 1st,
// 2nd, 4th, 8th time and so on, with its number.
func (c *core) tell(level slog.Level, code, what string, attrs ...any) {
	key := code
	for i, a := range attrs {
		if a == "cause" && i+1 < len(attrs) {
			key += fmt.Sprint(" ", attrs[i+1])
		}
	}
	if c.repeats == nil {
		c.repeats = map[string]*repeat{}
	}
	if c.repeats[key] == nil {
		c.repeats[key] = &repeat{}
	}
	r := c.repeats[key]
	r.times++
	r.last = time.Now()
	r.withheld = func(times int) {
		said := append([]any{"code", code}, attrs...)
		if times > 1 {
			said = append(said, "times", times)
		}
		c.log.Log(context.Background(), level, what, said...)
	}
	if r.times&(r.times-1) == 0 {
		r.say()
	}
}

func (r *repeat) say() {
	if r.withheld != nil {
		r.withheld(r.times)
		r.withheld = nil
	}
}

// settle logs what was withheld last and has been quiet since, in order, so that
// the log ends with what is.
func (c *core) settle(now time.Time) {
	older := func(a, b string) int { return cmp.Or(c.repeats[a].last.Compare(c.repeats[b].last), cmp.Compare(a, b)) }
	for _, key := range slices.SortedFunc(maps.Keys(c.repeats), older) {
		quiet := now.Sub(c.repeats[key].last)
		if quiet >= quietFor {
			c.repeats[key].say()
		}
		if quiet >= forgotten {
			delete(c.repeats, key)
		}
	}
}
