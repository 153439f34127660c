package device

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpiotest"
)

func lampsOf(t *testing.T) (*fakeKernel, *fakeChip, LampOptions) {
	t.Helper()
	k := fake(t)
	c := k.chip("gpiochip0", "shoe", "GREEN", "", "BUZZER")
	return k, c, LampOptions{Name: "lamps", Address: "gpio:shoe", root: k.root, kernel: k, Lamps: []Lamp{
		{Use: "green", Line: "GREEN"}, {Use: "buzzer", Line: "BUZZER", ActiveLow: true}}}
}

// electrical is the level of each line.
func (c *fakeChip) electrical() string {
	levels := ""
	for _, l := range c.lines {
		levels += map[bool]string{true: "1", false: "0"}[l.high]
	}
	return levels
}

func TestLampsAreOffFromTheFirstMomentToTheLast(t *testing.T) {
	k, c, o := lampsOf(t)
	c.lines[0].high = true // as somebody left it
	l, err := OpenLamps(o)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.electrical(); got != "001" {
		t.Errorf("at first %s", got)
	}
	for on, want := range map[uint16]string{0b11: "100", 0b01: "101", 0b10: "000", 0: "001", 0b111: "100"} {
		if err := l.Set(on); err != nil || c.electrical() != want {
			t.Errorf("%b: %s, %v; want %s", on, c.electrical(), err, want)
		}
	}
	pins := l.Pins()
	if err := pins[0].Out(gpio.High); err != nil || c.electrical()[0] != '1' {
		t.Error(err, c.electrical())
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := c.electrical(); got != "001" || len(k.files) != 0 {
		t.Errorf("at last %s, %d open", got, len(k.files))
	}
	if err := errors.Join(l.Set(1)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := pins[0].Out(gpio.High); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestLampsSayWhatIsWrong(t *testing.T) {
	k, c, o := lampsOf(t)
	change := func(f func(*LampOptions)) LampOptions {
		changed := o
		changed.Lamps = append([]Lamp{}, o.Lamps...)
		f(&changed)
		return changed
	}
	for _, wrong := range []struct {
		o    LampOptions
		kind error
		text string
	}{
		{change(func(o *LampOptions) { o.Address = "/dev/gpiochip0" }), nil, "is no gpio:CHIP"},
		{change(func(o *LampOptions) { o.Lamps = nil }), nil, "0 wires"},
		{change(func(o *LampOptions) { o.Lamps[0].Line = "" }), nil, "green has no line"},
		{change(func(o *LampOptions) { o.Lamps[0].Line = "RED" }), ErrAbsent, "green (line RED)"},
		{change(func(o *LampOptions) { o.Address = "gpio:other" }), ErrAbsent, "gpio:shoe"},
	} {
		_, err := OpenLamps(wrong.o)
		if err == nil || wrong.kind != nil && !errors.Is(err, wrong.kind) || !strings.Contains(err.Error(), wrong.text) {
			t.Errorf("%v, not %v with %q", err, wrong.kind, wrong.text)
		}
	}
	l, err := OpenLamps(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLamps(o); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "shoed lamps has it") {
		t.Error(err)
	}
	c.gone = true
	if err := l.Set(1); !errors.Is(err, ErrUnplugged) || strings.Count(err.Error(), "connection lost") != 2 || !strings.Contains(err.Error(), "green(0)") {
		t.Error(err)
	}
	if err := l.Close(); !errors.Is(err, ErrUnplugged) || len(k.files) != 0 {
		t.Error(err)
	}
}

// TestPinOuts makes the same of our lamps and of periph's fake.
func TestPinOuts(t *testing.T) {
	_, c, o := lampsOf(t)
	ours, err := OpenLamps(o)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	green, buzzer := &gpiotest.Pin{N: "green", Num: 0}, &gpiotest.Pin{N: "buzzer", Num: 2}
	theirs := NewLamps(green, buzzer)
	for name, l := range map[string]struct {
		*Lamps
		on func() [2]bool
	}{
		"ours":   {ours, func() [2]bool { return [2]bool{c.lines[0].high, !c.lines[2].high} }},
		"theirs": {theirs, func() [2]bool { return [2]bool{bool(green.L), bool(buzzer.L)} }},
	} {
		names := ""
		for _, p := range l.Pins() {
			names += fmt.Sprint(p.String(), p.Name(), p.Number(), ";")
		}
		if names != "green(0)green0;buzzer(2)buzzer2;" {
			t.Errorf("%s: %s", name, names)
		}
		for _, on := range []uint16{3, 1, 2, 0} {
			if err := l.Set(on); err != nil || l.on() != [2]bool{on&1 != 0, on&2 != 0} {
				t.Errorf("%s: %b gives %v, %v", name, on, l.on(), err)
			}
		}
		if err := l.Pins()[1].Out(gpio.High); err != nil || l.on() != [2]bool{false, true} {
			t.Errorf("%s: %v, %v", name, l.on(), err)
		}
		if err := l.Close(); err != nil || l.on() != [2]bool{} {
			t.Errorf("%s: closed with %v, %v", name, l.on(), err)
		}
	}
	if err := ours.Pins()[0].PWM(gpio.DutyHalf, 0); err == nil {
		t.Error("a lamp is dimmed")
	}
}

func TestALampThatFailsKeepsNoOtherFromIt(t *testing.T) {
	good := &gpiotest.Pin{N: "good"}
	l := NewLamps(gpio.INVALID, good)
	if err := l.Set(3); err == nil || good.L != gpio.High {
		t.Error(err, good.L)
	}
	if err := l.Close(); err == nil || good.L != gpio.Low {
		t.Error(err, good.L)
	}
}
