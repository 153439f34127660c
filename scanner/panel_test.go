package scanner

import (
	"maps"
	"slices"
	"testing"
	"time"

	"shoed/round"
)

// panelWires are all there can be, by their names.
var panelWires = slices.Sorted(maps.Keys(panelUses))

const (
	betsWire  = 0
	callWire  = 1
	cutWire   = 2
	keyWire   = 5
	lidWire   = 6
	startWire = 8
)

func newPanelDecoder(t testing.TB) Decoder {
	return build(t, "panel", Options{Uses: panelWires})
}

// Each wire as game.md, section 7, has its input.
func TestPanelUses(t *testing.T) {
	for wire, want := range []string{
		"bets", "bets open false, bets open true",
		"call", "button call",
		"cut", "cut",
		"end", "button end",
		"insurance", "close insurance",
		"key", "lock true, lock false",
		"lid", "setting mode true, setting mode false",
		"shoe", "button shoe",
		"start", "button start",
	} {
		if wire%2 == 0 {
			if panelWires[wire/2] != want {
				t.Fatalf("wire %d is %s, want %s", wire/2, panelWires[wire/2], want)
			}
			continue
		}
		w := uint8(wire / 2)
		b := newTape().edge(w, true).quiet(1<<w).wait(time.Second).edge(w, false).quiet(0).b
		if got := whys(newPanelDecoder(t).Feed(start, b, nil)); got != want {
			t.Errorf("%s: read %q, want %q", panelWires[w], got, want)
		}
	}
}

// What is found when the wires are opened: switches are told, buttons are not, for
// nobody knows when they were pressed.
func TestPanelOpening(t *testing.T) {
	found := uint16(1<<betsWire | 1<<callWire | 1<<cutWire | 1<<keyWire | 1<<lidWire | 1<<startWire)
	const switches = "bets open false, cut, lock true, setting mode true"
	for _, v := range []struct {
		name string
		tape *tape
		want string
	}{
		{"found on", (&tape{now: time.Hour}).levels(found), switches},
		{"let go, and pressed", (&tape{now: time.Hour}).levels(1<<callWire).wait(time.Second).edge(callWire, false).quiet(0).wait(time.Second).edge(callWire, true).quiet(1 << callWire), "button call"},
		{"bouncing as it is let go", (&tape{now: time.Hour}).levels(1<<callWire).wait(time.Second).edge(callWire, false).wait(ms).edge(callWire, true).wait(ms).edge(callWire, false).quiet(0), ""},
		{"held from the start", (&tape{now: time.Hour}).levels(1<<callWire).wait(time.Minute).edge(keyWire, true).quiet(1<<callWire | 1<<keyWire), "wire call stuck, lock true"},
		{"its edge is lost later", newTape().wait(time.Second).levels(1 << callWire), "button call"},
	} {
		if got := whys(newPanelDecoder(t).Feed(start, v.tape.b, nil)); got != v.want {
			t.Errorf("%s: read %q, want %q", v.name, got, v.want)
		}
	}

	// the same after a new opening, but that what was told is not told again
	d := newPanelDecoder(t)
	rs := d.Feed(start, newTape().edge(keyWire, true).quiet(1<<keyWire).edge(betsWire, true).quiet(1<<keyWire|1<<betsWire).b, nil)
	d.Reconnect()
	rs = d.Feed(start, appendLevels(nil, found&^(1<<betsWire), false, 0, 2*time.Hour), rs)
	if got, want := whys(rs), "lock true, bets open false, bets open true, cut, setting mode true"; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestPanelButtons(t *testing.T) {
	for _, v := range []struct {
		name string
		tape *tape
		want string
	}{
		{"twice", newTape().edge(callWire, true).wait(100*ms).edge(callWire, false).wait(100*ms).edge(callWire, true).quiet(1 << callWire), "button call, button call"},
		{"bouncing", newTape().hum(callWire, 5, ms).edge(callWire, true).quiet(1<<callWire).hum(callWire, 5, ms).edge(callWire, false).quiet(0), "button call"},
		{"a touch", newTape().edge(callWire, true).wait(5*ms).edge(callWire, false).quiet(0), ""},
		{"held, and nothing comes", newTape().edge(callWire, true).quiet(1 << callWire).wait(time.Hour), "button call"},
		{"held for 30 s", newTape().edge(callWire, true).wait(30*time.Second).edge(callWire, false).quiet(0), "button call"},
		{"held for longer", newTape().edge(callWire, true).wait(30*time.Second+1).edge(callWire, false).quiet(0), "button call, wire call stuck, wire call ok"},
		{"stuck", newTape().edge(callWire, true).quiet(1<<callWire).wait(time.Minute).edge(startWire, true).quiet(1<<callWire|1<<startWire).wait(time.Minute).edge(startWire, false).quiet(1<<callWire).wait(time.Minute).edge(callWire, false).quiet(0),
			"button call, wire call stuck, button start, wire start stuck, wire start ok, wire call ok"},
		{"a key may stay", newTape().edge(keyWire, true).quiet(1<<keyWire).wait(time.Hour).edge(startWire, true).quiet(1<<keyWire | 1<<startWire), "lock true, button start"},
		{"chattering", newTape().hum(callWire, 50, 10*ms).quiet(0).wait(time.Second).edge(callWire, true).quiet(1 << callWire), "wire call bouncing, wire call ok, button call"},
	} {
		if got := whys(newPanelDecoder(t).Feed(start, v.tape.b, nil)); got != v.want {
			t.Errorf("%s: read %q, want %q", v.name, got, v.want)
		}
	}
}

// What a panel tells is what the rules take; only a wire lacks the device's name.
func TestPanelInputs(t *testing.T) {
	p := newTape()
	for wire := range panelWires {
		p.edge(uint8(wire), true).quiet(1<<wire).edge(uint8(wire), false).quiet(0)
	}
	p.hum(callWire, 50, ms).wait(time.Minute).edge(callWire, true).quiet(1 << callWire)
	rs := newPanelDecoder(t).Feed(start, p.b, nil)
	if len(rs) < 14 {
		t.Fatalf("read %v", sayings(rs))
	}
	for _, r := range rs {
		in := r.Input
		if in.Kind == round.InWire {
			in.Name = "panel"
		}
		back, err := round.ParseInput(in.AppendText(nil))
		if err != nil || back != in {
			t.Errorf("%s: %v, %+v", in.AppendText(nil), err, back)
		}
	}
}

func TestPanelOptions(t *testing.T) {
	for _, o := range []Options{{}, {Uses: []string{"P1"}}, {Uses: []string{"call", "call"}}, {Uses: panelWires, Steady: time.Second}} {
		if _, err := New("panel", o); err == nil {
			t.Errorf("%+v was taken", o)
		} else {
			t.Log(err)
		}
	}
}

func TestPanelSplits(t *testing.T) {
	p := newTape().edge(callWire, true).wait(31*time.Second).edge(callWire, false).wait(ms).edge(callWire, true).lose(2).wait(ms)
	p.edge(callWire, false).quiet(0).hum(keyWire, 35, 8*ms).levels(1 << keyWire).quiet(1 << keyWire)
	sameEverywhere(t, seeded(t), func() Decoder { return newPanelDecoder(t) }, p.b)
}

func TestPanelGolden(t *testing.T) {
	goldens(t, "panel", func(string) Decoder { return newPanelDecoder(t) })
}

func FuzzPanel(f *testing.F) {
	f.Add([]byte{0, 1, 5, 0, 3, 5, 8, 0, 200}, uint64(1))
	f.Add([]byte{0, 1, 5, 11, 3, 5, 12, 3, 1, 13, 1, 1, 15, 4, 4, 14, 1, 1, 8, 1, 250}, uint64(2))
	f.Fuzz(func(t *testing.T, chance []byte, seed uint64) {
		fuzzWires(t, func() Decoder { return newPanelDecoder(t) }, uint8(len(panelWires)), chance, seed)
	})
}
