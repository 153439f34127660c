package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpiotest"

	"shoed/config"
	"shoed/device"
	"shoed/round"
)

// played is a table after inputs in their text form, a second apart.
func played(t *testing.T, rules []string, inputs ...string) *round.State {
	t.Helper()
	r := round.DefaultRules()
	for _, text := range append([]string{"burn=none", "shoe.change_unproven=accept"}, rules...) {
		if err := r.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	s := round.New(r)
	at := time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)
	for _, text := range inputs {
		at = at.Add(time.Second)
		in, err := round.ParseInput([]byte(`{"at":"` + at.Format(time.RFC3339Nano) + `",` + text + "}"))
		if err != nil {
			t.Fatal(err)
		}
		if s, _, err = s.Step(in, nil); err != nil {
			t.Fatal(err)
		}
	}
	return &s
}

const (
	dealP1 = `"in":"card","to":"player","pos":1,"card":"2s"`
	dealB1 = `"in":"card","to":"banker","pos":1,"card":"7h"`
	dealP2 = `"in":"card","to":"player","pos":2,"card":"Ks"`
	dealB2 = `"in":"card","to":"banker","pos":2,"card":"Kh"`
	dealP3 = `"in":"card","to":"player","pos":3,"card":"8s"`
	newOne = `"in":"shoe"`
)

func TestLit(t *testing.T) {
	four := []string{newOne, dealP1, dealB1, dealP2, dealB2}
	for _, c := range []struct {
		what   string
		rules  []string
		inputs []string
		want   string
	}{
		{"no shoe", nil, nil, "amber"},
		{"a new shoe", nil, []string{newOne}, "green"},
		{"the first card", nil, []string{newOne, dealP1}, "green B1"},
		{"insurance is offered", nil, four, "amber P3"},
		{"nobody buys any more", nil, append(four[:5:5], `"in":"insurance","do":"close"`), "green P3"},
		{"no insurance", []string{"insurance=off"}, four, "green P3"},
		{"the dealer calls", []string{"insurance=off"}, append(four[:5:5], `"in":"button","name":"call"`), "red P3"},
		{"the reader is away", nil, []string{newOne, `"in":"link","device":"reader","up":false`}, "amber"},
		{"closed", nil, []string{newOne, `"in":"answer","do":"close_table","by":"anna"`}, ""},
		{"bets are open", []string{"round_start=bets"}, []string{newOne, `"in":"bets","open":true`}, "amber"},
		{"bets are closed", []string{"round_start=bets"}, []string{newOne, `"in":"bets","open":false`}, "green"},
		{"faces lie down", []string{"reveal=on_signal"}, four, "amber"},
		{"a card in the dealer's hand", []string{"placement=presence"}, []string{newOne, dealP1}, "green P1"},
		{"it lies there", []string{"placement=presence"}, []string{newOne, dealP1, `"in":"placed","box":"P1"`}, "green B1"},
		{"an overdrawn card is held", nil, []string{newOne, `"in":"card","to":"player","pos":1,"card":"9s"`, dealB1, dealP2, dealB2, `"in":"fault","code":2,"on":true`}, "red"},
	} {
		if got := strings.Join(lit(played(t, c.rules, c.inputs...), storageOK), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	if got := strings.Join(lit(played(t, nil, newOne), "disk full"), " "); got != "red" {
		t.Errorf("a journal that cannot be written: %q", got)
	}
}

// brokenPin fails while broken is set.
type brokenPin struct {
	gpiotest.Pin
	broken bool
}

func (p *brokenPin) Out(l gpio.Level) error {
	p.Lock()
	broken := p.broken
	p.Unlock()
	if broken {
		return errors.New("its chip is gone")
	}
	return p.Pin.Out(l)
}

// TestLamps: they follow the table, the buzzer sounds once for each question, a
// failing one is known and comes back, and all are off at the end.
func TestLamps(t *testing.T) {
	green, red, sound := &gpiotest.Pin{N: "green"}, &brokenPin{Pin: gpiotest.Pin{N: "red"}}, &gpiotest.Pin{N: "buzzer"}
	var mu sync.Mutex
	table := played(t, nil, newOne)
	view := func() (*round.State, string) {
		mu.Lock()
		defer mu.Unlock()
		return table, storageOK
	}
	l := newLamps(&config.Lamps{Device: "gpio:x", Lines: []string{"green=1", "red=2", "buzzer=3"}, BuzzerMS: 50}, view, slog.New(slog.DiscardHandler))
	opened := 0
	l.open = func() (*device.Lamps, error) {
		opened++
		return device.NewLamps(green, red, sound), nil
	}
	show := func(s *round.State) {
		mu.Lock()
		table = s
		mu.Unlock()
		l.wake()
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := task(func() error { l.run(ctx); return nil })
	is := func(p interface{ Read() gpio.Level }, want gpio.Level) func() bool {
		return func() bool { return p.Read() == want }
	}
	eventually(t, "green", is(green, gpio.High))
	show(played(t, nil, newOne, dealP1, `"in":"button","name":"call"`))
	eventually(t, "the buzzer", is(sound, gpio.High))
	eventually(t, "red", is(red, gpio.High))
	eventually(t, "not green", is(green, gpio.Low))
	eventually(t, "silence", is(sound, gpio.Low))

	red.Lock()
	red.broken = true
	red.Unlock()
	eventually(t, "it fails", l.failing)
	red.Lock()
	red.broken = false
	red.Unlock()
	eventually(t, "it is back", func() bool { return !l.failing() })
	show(played(t, nil, newOne))
	eventually(t, "green again", is(green, gpio.High))
	stop()
	<-ended
	if green.Read() || red.Read() || sound.Read() || opened < 2 {
		t.Errorf("at the end: green %v, red %v, buzzer %v, opened %d times", green.Read(), red.Read(), sound.Read(), opened)
	}
}
