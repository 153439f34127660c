package main

import (
	"testing"
	"time"
)

func TestClockStep(t *testing.T) {
	for _, c := range []struct{ wall, monotonic, want time.Duration }{
		{time.Second, time.Second, 0},
		{time.Second + 900*time.Millisecond, time.Second, 0},              // slewed, or looked at late
		{500000 * time.Hour, time.Second, 500000*time.Hour - time.Second}, // 1970 no more
		{-time.Hour, time.Second, -time.Hour - time.Second},
		{time.Second, 3 * time.Second, -2 * time.Second},
	} {
		if got := stepped(c.wall, c.monotonic); got != c.want {
			t.Errorf("%v on the wall in %v: %v, want %v", c.wall, c.monotonic, got, c.want)
		}
	}
	var s clockStep
	now := time.Now()
	for range 3 {
		if by := s.look(now); by != 0 {
			t.Errorf("no step, and %v", by)
		}
		now = now.Add(time.Minute) // both clocks
	}
	if by := s.look(now.Round(0).Add(time.Hour)); by != 0 { // without a monotonic reading nothing is known
		t.Errorf("%v", by)
	}
}
