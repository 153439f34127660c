package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"shoed/device"
)

func TestPlayerGivesWhatWasRecorded(t *testing.T) {
	const capture = "@0 0102\n@1500 ff # a comment\n41\n"
	start := time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)
	first, err := NewPlayer(strings.NewReader(capture), start)
	if err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	for line := device.Record(first, &again); err == nil; {
		_, err = line.Read(context.Background())
	}
	if !errors.Is(err, device.ErrUnplugged) || again.String() != "@0 0102\n@1500 ff\n@1500 41\n" {
		t.Errorf("%q, %v", again.String(), err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := first.Read(context.Background()); !errors.Is(err, device.ErrClosed) {
		t.Error(err)
	}
	second, err := NewPlayer(strings.NewReader(again.String()), start)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := second.Read(context.Background()); err != nil || string(c.Bytes) != "\x01\x02" || !c.At.Equal(start) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := second.Read(context.Background()); err != nil || c.At.Sub(start) != 1500*time.Millisecond {
		t.Errorf("%+v, %v", c, err)
	}
	if err := second.Close(); err == nil || !strings.Contains(err.Error(), "1 of its 3 reads") {
		t.Error(err)
	}
}

func TestPlayerIsFollowedLikeALine(t *testing.T) {
	p, err := NewPlayer(strings.NewReader("01 02\n03\n"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q := device.NewQueue(1<<10, 10)
	done := make(chan struct{})
	opened := 0
	go func() {
		defer close(done)
		device.Follow(ctx, device.Options{Name: "boxes", Opener: func(context.Context, device.Options) (device.Line, error) {
			if opened++; opened > 1 {
				return nil, device.ErrAbsent
			}
			return p, nil
		}}, q, nil)
	}()
	for _, want := range []device.Kind{device.Up, device.Received, device.Received, device.Down} {
		if s, err := q.Next(ctx); err != nil || s.Kind != want || s.Name != "boxes" {
			t.Fatalf("%+v, %v; want %v", s, err, want)
		}
	}
	cancel()
	<-done
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestPlayerRefusesWhatIsNoCapture(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "@5 01\n@4 02\n", "xy\n"} {
		if _, err := NewPlayer(strings.NewReader(text), time.Now()); err == nil {
			t.Errorf("%q accepted", text)
		}
	}
	p, err := NewPlayer(strings.NewReader("01\n"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(context.Background(), []byte("x")); err == nil {
		t.Error("an order was taken")
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := p.Read(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
