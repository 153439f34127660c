package device

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpiotest"
)

// pinUnderTest is a pin and the hand that moves its level.
type pinUnderTest struct {
	gpio.PinIn
	set func(gpio.Level)
}

// pins are ours and periph's own fake, of which the same must be true.
func pins(t *testing.T) map[string]pinUnderTest {
	t.Helper()
	k, c, p := pinOf(t)
	k.live = true
	theirs := &gpiotest.Pin{N: "BOX_P1", Num: 1, EdgesChan: make(chan gpio.Level, 10)}
	return map[string]pinUnderTest{
		"ours":   {p, func(l gpio.Level) { k.happen(func() { c.set(1, bool(l)) }) }},
		"theirs": {theirs, func(l gpio.Level) { theirs.EdgesChan <- l }},
	}
}

func pinOf(t *testing.T) (*fakeKernel, *fakeChip, *Pin) {
	t.Helper()
	k := fake(t)
	c := k.chip("gpiochip0", "shoe", "", "BOX_P1")
	p, err := NewPin(k.wired("gpio:shoe", Wire{Use: "box", Line: "BOX_P1"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Halt() })
	return k, c, p
}

func TestPinDoesAsPeriphSays(t *testing.T) {
	for name, p := range pins(t) {
		t.Run(name, func(t *testing.T) {
			if p.Name() != "BOX_P1" || p.Number() != 1 || p.String() != "BOX_P1(1)" {
				t.Errorf("%q %d %q", p.Name(), p.Number(), p.String())
			}
			for _, pull := range []gpio.Pull{gpio.PullUp, gpio.PullDown} { // it ends low
				level := gpio.Level(pull == gpio.PullUp)
				if err := p.In(pull, gpio.NoEdge); err != nil || p.Read() != level || p.Pull() != pull {
					t.Errorf("pull %v: %v, %v, %v", pull, err, p.Read(), p.Pull())
				}
			}
			if err := p.In(gpio.PullNoChange, gpio.BothEdges); err != nil {
				t.Fatal(err)
			}
			if p.WaitForEdge(time.Millisecond) {
				t.Error("an edge without one")
			}
			p.set(gpio.High)
			p.set(gpio.Low)
			p.set(gpio.High)
			for range 3 {
				if !p.WaitForEdge(patience) {
					t.Fatal("no edge although one came before")
				}
			}
			if p.Read() != gpio.High || p.WaitForEdge(0) {
				t.Error("after the edges")
			}
			p.set(gpio.Low)
			if err := p.In(gpio.PullNoChange, gpio.BothEdges); err != nil || p.WaitForEdge(time.Millisecond) {
				t.Error("In kept an edge", err)
			}
			waited := make(chan bool)
			go func() { waited <- p.WaitForEdge(-1) }()
			select {
			case <-waited:
				t.Error("-1 does not wait")
			case <-time.After(20 * time.Millisecond): // long enough to have returned at once
			}
			p.set(gpio.High)
			if !<-waited {
				t.Error("-1 does not see the edge")
			}
			if err := p.Halt(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPinWaitsForTheEdgeItAskedFor(t *testing.T) {
	k, c, p := pinOf(t)
	for edge, level := range map[gpio.Edge]bool{gpio.RisingEdge: true, gpio.FallingEdge: false} {
		if err := p.In(gpio.PullNoChange, edge); err != nil {
			t.Fatal(err)
		}
		k.after(time.Millisecond, func() { c.set(1, true) })
		k.after(2*time.Millisecond, func() { c.set(1, false) })
		if !p.WaitForEdge(time.Second) || c.lines[1].high != level {
			t.Errorf("%v: at level %v", edge, c.lines[1].high)
		}
		if start := k.clock; p.WaitForEdge(3*time.Second) || time.Duration(k.clock-start) != 3*time.Second {
			t.Errorf("%v: another after %v", edge, time.Duration(k.clock-start))
		}
	}
}

func TestPinStopsWaiting(t *testing.T) {
	k, c, p := pinOf(t)
	k.live = true
	for what, stop := range map[string]func() error{
		"Halt": p.Halt,
		"In":   func() error { return p.In(gpio.PullUp, gpio.BothEdges) },
		"gone": func() error {
			k.happen(func() { c.gone = true; c.lines[1].request.push(unix.GPIOV2LineEvent{}) })
			return nil
		},
	} {
		c.gone = false
		if err := p.In(gpio.PullUp, gpio.BothEdges); err != nil {
			t.Fatal(what, err)
		}
		waited, before := make(chan bool), k.asked()
		go func() { waited <- p.WaitForEdge(-1) }()
		for k.asked() == before { // else it would wait for an edge after In
			runtime.Gosched()
		}
		if err := stop(); err != nil || <-waited {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPinSaysWhyItCannotBeRead(t *testing.T) {
	k, c, p := pinOf(t)
	if _, err := p.Level(); !errors.Is(err, ErrClosed) || p.Read() != gpio.Low || p.WaitForEdge(-1) {
		t.Error("before In:", err)
	}
	if err := p.In(gpio.PullUp, gpio.Edge(9)); err == nil {
		t.Error("an edge of a fourth kind")
	}
	if err := p.In(gpio.Pull(9), gpio.NoEdge); err == nil {
		t.Error("a pull of a fifth kind")
	}
	if err := p.In(gpio.PullUp, gpio.NoEdge); err != nil {
		t.Fatal(err)
	}
	c.gone = true
	if _, err := p.Level(); !errors.Is(err, ErrUnplugged) || p.Read() != gpio.Low {
		t.Error("gone:", err)
	}
	for _, o := range []Options{{Address: "/dev/ttyUSB0"}, k.wired("gpio:shoe"), k.wired("gpio:shoe", Wire{Line: "0"}, Wire{Line: "1"}), k.wired("gpio:other", Wire{Line: "0"})} {
		if _, err := NewPin(o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}

func TestLookWaitsForAChange(t *testing.T) {
	k, c, _ := pinOf(t)
	o := k.wired("gpio:shoe", Wire{Use: "box", Line: "BOX_P1", Bias: "up", ActiveLow: true})
	if active, err := Look(o, 0); err != nil || active || c.lines[1].high != true {
		t.Error(active, err)
	}
	start := k.clock
	k.after(time.Second, func() { c.set(1, false) })
	if active, err := Look(o, time.Minute); err != nil || !active || time.Duration(k.clock-start) != time.Second {
		t.Error(active, err)
	}
	k.after(time.Second, func() { c.gone = true })
	if _, err := Look(o, time.Minute); !errors.Is(err, ErrUnplugged) {
		t.Error(err)
	}
	if _, err := Look(k.wired("gpio:other", Wire{Use: "box", Line: "0"}), 0); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
}
