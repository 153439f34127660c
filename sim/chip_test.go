package sim

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/device"
)

func openChip(t *testing.T, c *Chip) device.Line {
	t.Helper()
	l, err := c.Open(t.Context(), device.Options{Name: "panel", Wires: []device.Wire{{Use: "call"}, {Use: "bets"}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// said reads what the chip has to tell, as text.
func said(t *testing.T, l device.Line) (all []string) {
	t.Helper()
	chunk, err := l.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	records, err := device.ParseWireRecords(chunk.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		switch r.Kind {
		case device.WireLevels:
			all = append(all, fmt.Sprintf("%v #%d levels %02b", r.Time, r.Seq, r.Levels))
		default:
			all = append(all, fmt.Sprintf("%v #%d wire %d %t", r.Time, r.Seq, r.Wire, r.Kind == device.WireActive))
		}
	}
	return all
}

func tells(t *testing.T, l device.Line, want ...string) {
	t.Helper()
	if got := said(t, l); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A chip tells levels first, edges as they come, levels after a silence, and once
// a second those that no edge told of.
func TestChip(t *testing.T) {
	c := NewChip()
	c.Set("bets", true)
	l := openChip(t, c)
	tells(t, l, "0s #0 levels 10")
	c.Pass(time.Second)
	c.Set("call", true)
	c.Set("call", true) // it is already
	c.Set("lid", true)  // nobody asked for it
	tells(t, l, "1s #1 wire 0 true")
	if c.Silent() != chipSilence {
		t.Errorf("silent in %v", c.Silent())
	}
	c.Pass(chipSilence)
	tells(t, l, "1.025s #1 levels 11")
	c.Lose("bets", false)
	c.Pass(chipCheck)
	tells(t, l, "2.025s #2 levels 01")
	c.Chatter("bets", 1, time.Millisecond)
	c.Pass(chipSilence)
	tells(t, l, "2.025s #3 wire 1 true", "2.026s #4 wire 1 false", "2.051s #4 levels 01")
	if n := uint64(16 * 7); c.Told() != n {
		t.Errorf("%d bytes told, want %d", c.Told(), n)
	}
	if err := l.Write(t.Context(), []byte("x")); err == nil {
		t.Error("it took an order")
	}
}

func TestChipPulledOut(t *testing.T) {
	c := NewChip()
	l := openChip(t, c)
	if _, err := c.Open(t.Context(), device.Options{}); !errors.Is(err, device.ErrTaken) {
		t.Errorf("opened twice: %v", err)
	}
	c.Unplug()
	if _, err := l.Read(t.Context()); !errors.Is(err, device.ErrUnplugged) {
		t.Errorf("read %v", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Read(t.Context()); !errors.Is(err, device.ErrClosed) {
		t.Errorf("read after close %v", err)
	}
	if _, err := c.Open(t.Context(), device.Options{}); !errors.Is(err, device.ErrAbsent) {
		t.Errorf("opened while out: %v", err)
	}
	c.Set("call", true) // nobody hears of it
	c.Plug()
	tells(t, openChip(t, c), "0s #0 levels 01")
}

// A plug is found at its path again, and what is said meanwhile is lost.
func TestPlug(t *testing.T) {
	p, err := OpenPlug(filepath.Join(t.TempDir(), "shoe"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Unplug() })
	queue, follow := device.NewQueue(4096, 64), device.Options{Name: "reader", Address: p.Path()}
	ctx := t.Context()
	go device.Follow(ctx, follow, queue, nil)
	expect := func(kind device.Kind, text string) {
		t.Helper()
		s, err := queue.Next(ctx)
		if err != nil || s.Kind != kind || !strings.Contains(string(s.Bytes), text) {
			t.Fatalf("%v %q %v %v, want %v %q", s.Kind, s.Bytes, s.Cause, err, kind, text)
		}
	}
	say := func(text string) {
		t.Helper()
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	expect(device.Up, "")
	say("one")
	expect(device.Received, "one")
	if err := errors.Join(p.Unplug(), p.Unplug()); err != nil {
		t.Fatal(err)
	}
	expect(device.Down, "")
	say("two")
	if err := errors.Join(p.Plug(), p.Plug()); err != nil {
		t.Fatal(err)
	}
	expect(device.Up, "")
	say("three")
	expect(device.Received, "three")
	if p.Sent() != uint64(len("onethree")) {
		t.Errorf("%d bytes went over the line", p.Sent())
	}
}
