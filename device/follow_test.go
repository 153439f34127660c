package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// follow starts Follow, or f if given, and stops it at the end of the test.
func follow(t *testing.T, path string, f *follower) *Queue {
	t.Helper()
	return followOptions(t, Options{Name: "reader", Address: path}, f)
}

func followOptions(t *testing.T, o Options, f *follower) *Queue {
	t.Helper()
	q := NewQueue(1<<10, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if f == nil {
			Follow(ctx, o, q, nil)
			return
		}
		f.options, f.queue = o, q
		f.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("Follow did not end with its context")
		}
	})
	return q
}

func expect(t *testing.T, q *Queue, kind Kind) Signal {
	t.Helper()
	s, err := q.Next(wait(t))
	if err != nil || s.Kind != kind {
		t.Fatalf("got %v %q (%v), %v; want %v", s.Kind, s.Bytes, s.Cause, err, kind)
	}
	if s.At.IsZero() {
		t.Errorf("%v without a time", kind)
	}
	return s
}

func none(t *testing.T, q *Queue) {
	t.Helper()
	if s, ok := q.take(); ok {
		t.Errorf("unexpected %v %q (%v)", s.Kind, s.Bytes, s.Cause)
	}
}

func TestFollowReplugThroughTheSameLink(t *testing.T) {
	byID := filepath.Join(t.TempDir(), "usb-FTDI-if00")
	far, near := terminal(t)
	link(t, near, byID)
	q := follow(t, byID, nil)
	for _, card := range []string{"8s", "Kh", "Ac"} {
		expect(t, q, Up)
		write(t, far, card)
		if s := expect(t, q, Received); string(s.Bytes) != card {
			t.Fatalf("read %q, want %q", s.Bytes, card)
		}
		far.Close()
		if s := expect(t, q, Down); !errors.Is(s.Cause, ErrUnplugged) || !strings.Contains(s.Cause.Error(), byID) {
			t.Fatal(s.Cause)
		}
		none(t, q)
		far, near = terminal(t)
		link(t, near, byID)
	}
	expect(t, q, Up)
}

// steps is a follower whose clock and chance the test holds.
func steps(t *testing.T) (f *follower, limits chan time.Duration, retry chan time.Time, clock *atomic.Int64) {
	limits, retry, clock = make(chan time.Duration), make(chan time.Time), new(atomic.Int64)
	clock.Store(1e9)
	return &follower{
		jitter: func(limit time.Duration) time.Duration {
			select {
			case limits <- limit:
			case <-t.Context().Done(): // the test has seen enough
			}
			return limit / 3
		},
		after: func(time.Duration) <-chan time.Time { return retry },
		now:   func() time.Time { return time.Unix(0, clock.Load()) },
	}, limits, retry, clock
}

func TestFollowBacksOffAndReportsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usb-FTDI-if00")
	f, limits, retry, _ := steps(t)
	q := follow(t, path, f)
	var got []time.Duration
	for range 9 {
		got = append(got, <-limits/time.Millisecond)
		retry <- time.Time{}
	}
	if want := []time.Duration{50, 100, 200, 400, 800, 1600, 3200, 5000, 5000}; !slices.Equal(got, want) {
		t.Errorf("limits %v ms, want %v", got, want)
	}
	<-limits
	if s := expect(t, q, Down); !errors.Is(s.Cause, ErrAbsent) {
		t.Error(s.Cause)
	}
	none(t, q)

	// Another cause, twice; the first cause again; then it is there.
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		retry <- time.Time{}
		<-limits
	}
	if s := expect(t, q, Down); !errors.Is(s.Cause, ErrNotSerial) {
		t.Error(s.Cause)
	}
	none(t, q)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	retry <- time.Time{}
	<-limits
	if s := expect(t, q, Down); !errors.Is(s.Cause, ErrAbsent) {
		t.Error(s.Cause)
	}
	_, near := terminal(t)
	link(t, near, path)
	retry <- time.Time{}
	expect(t, q, Up)
}

func TestFollowForgetsFailuresOnceSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usb-FTDI-if00")
	f, limits, retry, clock := steps(t)
	far, near := terminal(t)
	link(t, near, path)
	q := follow(t, path, f)
	for _, c := range []struct{ up, limit time.Duration }{
		{settled - 1, 50 * time.Millisecond},
		{settled - 1, 100 * time.Millisecond}, // not settled: still failing
		{settled - 1, 200 * time.Millisecond},
		{settled, 50 * time.Millisecond},
		{0, 100 * time.Millisecond},
	} {
		expect(t, q, Up)
		clock.Add(int64(c.up))
		far.Close()
		if got := <-limits; got != c.limit {
			t.Errorf("after %v up: retry within %v, want %v", c.up, got, c.limit)
		}
		if s := expect(t, q, Down); !errors.Is(s.Cause, ErrUnplugged) || s.At.UnixNano() != clock.Load() {
			t.Errorf("%v at %v", s.Cause, s.At)
		}
		far, near = terminal(t)
		link(t, near, path)
		retry <- time.Time{}
	}
	expect(t, q, Up)
}

// That the unplugged port is absent is one fact; that it then may not be opened
// is another.
func TestFollowTellsAbsenceAfterUnplugOnlyWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usb-FTDI-if00")
	f, limits, retry, _ := steps(t)
	far, near := terminal(t)
	link(t, near, path)
	q := follow(t, path, f)
	expect(t, q, Up)
	far.Close()
	<-limits
	expect(t, q, Down)
	for range 3 { // the link dangles
		retry <- time.Time{}
		<-limits
	}
	none(t, q)
	if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	retry <- time.Time{}
	<-limits
	if s := expect(t, q, Down); !errors.Is(s.Cause, ErrNotSerial) {
		t.Error(s.Cause)
	}
}
