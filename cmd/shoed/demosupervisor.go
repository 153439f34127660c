package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"shoed/mqtt"
	"shoed/round"
)

// supervisor sees what his screen shows: it knows only what the broker sends.
type supervisor struct {
	*watcher

	mu      sync.Mutex
	alerts  []mqtt.AlertItem // that stand
	seen    map[string]bool  // codes, since it was asked to forget
	changed chan struct{}    // holds a token while there may be something new
}

func newSupervisor(out io.Writer) *supervisor {
	return &supervisor{watcher: newWatcher(out), seen: map[string]bool{}, changed: make(chan struct{}, 1)}
}

func (s *supervisor) message(topic string, retained bool, payload []byte) {
	s.watcher.message(topic, retained, payload)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasSuffix(topic, "/event"):
		var e mqtt.Event
		if json.Unmarshal(payload, &e) == nil && e.Ev == round.AlertRaised.String() {
			s.seen[e.Code] = true
			if e.Priority == "P4" {
				fmt.Fprintf(s.out, "%s  %s %s: %s, expected %s\n", e.RoundID, e.Priority, e.Code, e.Seen, e.Expected)
			}
		}
	case strings.HasSuffix(topic, "/alerts"):
		var doc mqtt.Alerts
		if json.Unmarshal(payload, &doc) == nil {
			s.alerts = doc.Items
		}
		for _, item := range s.alerts {
			s.seen[item.Code] = true
		}
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *supervisor) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
}

func (s *supervisor) raised(c round.Code) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[c.String()]
}

// others are the codes seen that are none of those.
func (s *supervisor) others(of []round.Code) (others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for code := range s.seen {
		if !slices.ContainsFunc(of, func(c round.Code) bool { return c.String() == code }) {
			others = append(others, code)
		}
	}
	slices.Sort(others)
	return others
}

func (s *supervisor) items() []mqtt.AlertItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alerts
}

// wait returns when something may have changed, or after a while.
func (s *supervisor) wait(ctx context.Context) error {
	select {
	case <-s.changed:
		return nil
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inTurn is written to by the dealer's goroutine and by the screen's.
type inTurn struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *inTurn) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(b)
}

// standing waits until an alert with the code stands.
func (s *supervisor) standing(ctx context.Context, code string) (mqtt.AlertItem, error) {
	for late := time.Now().Add(settleTime); ; {
		items := s.items()
		if i := slices.IndexFunc(items, func(i mqtt.AlertItem) bool { return i.Code == code }); i >= 0 {
			return items[i], nil
		}
		if time.Now().After(late) {
			return mqtt.AlertItem{}, fmt.Errorf("no %s stands on the screen", code)
		}
		if err := s.wait(ctx); err != nil {
			return mqtt.AlertItem{}, err
		}
	}
}
