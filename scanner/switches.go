package scanner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"shoed/round"
)

/*
Switches: what is behind each wire keeps its level, and a change of it counts once
it lasts. It is the common part of the boxes' sensors (presence.go) and of the
dealer's panel (panel.go).

A level counts once it was kept for the steady time, which the time of any later
record proves; so nothing is told before the next record, which quiet levels are
after 25 ms. An edge that comes sooner after the one before is a bounce, and
counted. Levels that no edge has told of count at once: edges were lost, and no
other record may come. But while the wire's last edge is younger than the steady
time its quiet levels are still to come, and judge.

After a gap nobody knows whether a level that was not told yet is still there: only
the wire's next edge or levels say so. So no bounce of which the end was lost ever
counts. While a wire changes faster than device lets through, that can take the
others until the look of the next second, or the one after.

With each opening what was told stays told, what was not told is forgotten, and
the first levels tell every difference. A button that they find pressed was pressed
before, or never: it is not told.

A wire is faulty when
  - it changes more than 60 times within a second: bouncing. A fast hand makes ten
    presses, twenty changes, and a worn contact a few more of each; the hum of the
    mains on a loose wire makes a hundred. From then on only levels count, quiet ones
    or those of the look each second. It is well again with the first record that
    proves a second without a change, and with each opening. No record comes of
    itself: a wire that fell silent stays faulty until something moves.
  - it is a button that is held for more than 30 s: stuck, until it is let go. That
    too shows only when a record comes.
*/

const (
	switchSpan    = int64(time.Second)
	switchChanges = 60 // the most within switchSpan
	switchRest    = int64(time.Second)
	buttonHeld    = int64(30 * time.Second)
)

// use is what a switch is for.
type use struct {
	means  func(active bool) (in round.Input, tells bool)
	button bool // only being pressed means something
}

// switches are the circuit of switches.
type switches struct {
	uses   []use
	steady int64 // ns
	switchesState
}

type switchesState struct {
	Names []string      `json:"names"`
	Wires []switchState `json:"wires"`
}

// switchState is one wire.
type switchState struct {
	Told    bool           `json:"told"`
	Level   bool           `json:"level"`
	Since   int64          `json:"since"`   // ns, of its last change
	Unsure  bool           `json:"unsure"`  // it may be over: edges are missing since
	Second  int64          `json:"second"`  // ns, when its changes began to be counted
	Changes int            `json:"changes"` // since then
	Wrong   round.WireSays `json:"wrong"`   // stuck or bouncing; 0 neither
}

// newSwitches makes the decoder of a protocol whose wires have the names that the
// options use. lookup says what a name means.
func newSwitches(protocol string, o Options, known []string, lookup func(name string) (use, bool)) (Decoder, error) {
	if o.Steady == 0 {
		o.Steady = SteadyTime
	}
	if o.Steady < 0 || o.Steady > QuietTime {
		return nil, fmt.Errorf("%s: steady for %v: use more than 0, up to %v, which is the silence that is proved", protocol, o.Steady, QuietTime)
	}
	if len(o.Uses) == 0 || len(o.Uses) > wiresMost {
		return nil, fmt.Errorf("%s: %d wires: use 1 to %d", protocol, len(o.Uses), wiresMost)
	}
	d := &switches{steady: int64(o.Steady), switchesState: switchesState{Names: slices.Clone(o.Uses), Wires: make([]switchState, len(o.Uses))}}
	for i, name := range o.Uses {
		u, ok := lookup(name)
		if !ok {
			return nil, fmt.Errorf("%s: wire %d is used as %q: use one of %s", protocol, i, name, strings.Join(known, ", "))
		}
		if slices.Contains(o.Uses[:i], name) {
			return nil, fmt.Errorf("%s: two wires are used as %q", protocol, name)
		}
		d.uses = append(d.uses, u)
	}
	return newWires(protocol, len(o.Uses), d), nil
}

func (d *switches) edge(w *wires, e wireRecord) {
	d.settle(w, e.time, false)
	s, level := &d.Wires[e.wire], e.kind == wireActive
	if level == s.Level && e.time < s.Since {
		return // levels told it already
	}
	if e.time-s.Since < d.steady {
		w.stats.Bounces++
	}
	s.Level, s.Since, s.Unsure = level, e.time, false
	if e.time-s.Second > switchSpan {
		s.Second, s.Changes = e.time, 0
	}
	if s.Changes++; s.Changes > switchChanges && s.Wrong != round.WireBouncing {
		s.Wrong = round.WireBouncing
		w.wire(d.Names[e.wire], s.Wrong)
	}
}

func (d *switches) levels(w *wires, l wireRecord) {
	if l.kind == wireUnsteady {
		return
	}
	var found uint16 // wires that have changed unseen
	for i := range d.Wires {
		s, active := &d.Wires[i], l.levels>>i&1 != 0
		s.Unsure = false
		if active == s.Level {
			continue
		}
		moving := l.time-s.Since < d.steady // its quiet levels are still to come
		s.Level, s.Since = active, l.time
		switch {
		case moving:
		case w.fresh && active && d.uses[i].button:
			s.Told = true
		default:
			found |= 1 << i
		}
	}
	d.settle(w, l.time, true)
	for i, s := range d.Wires {
		if found>>i&1 != 0 && s.Level != s.Told {
			d.tell(w, i)
		}
	}
}

// settle tells what is proved by now, in the order in which it was done. byLevels
// lets wires that bounce count too.
func (d *switches) settle(w *wires, now int64, byLevels bool) {
	for i := range d.Wires {
		if s := &d.Wires[i]; s.Wrong == round.WireBouncing && now-s.Since >= switchRest {
			d.well(w, i)
		}
	}
	for {
		first := -1
		for i, s := range d.Wires {
			due := s.Level != s.Told && !s.Unsure && now-s.Since >= d.steady && (byLevels || s.Wrong != round.WireBouncing)
			if due && (first < 0 || s.Since < d.Wires[first].Since) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		d.tell(w, first)
	}
	for i := range d.Wires {
		s := &d.Wires[i]
		if d.uses[i].button && s.Told && s.Level && s.Wrong == 0 && now-s.Since > buttonHeld {
			s.Wrong = round.WireStuck
			w.wire(d.Names[i], s.Wrong)
		}
	}
}

// tell tells the level of a wire.
func (d *switches) tell(w *wires, i int) {
	s := &d.Wires[i]
	s.Told = s.Level
	w.stats.Frames++
	if in, tells := d.uses[i].means(s.Told); tells {
		w.tell(in)
	}
	if s.Wrong == round.WireStuck {
		d.well(w, i)
	}
}

func (d *switches) well(w *wires, i int) {
	d.Wires[i].Wrong, d.Wires[i].Changes = 0, 0
	w.wire(d.Names[i], round.WireOK)
}

func (d *switches) gap(*wires, int32) {
	for i := range d.Wires {
		d.Wires[i].Unsure = d.Wires[i].Level != d.Wires[i].Told
	}
}

func (d *switches) cut(w *wires) {
	for i := range d.Wires {
		s := &d.Wires[i]
		if s.Wrong == round.WireBouncing {
			d.well(w, i)
		}
		*s = switchState{Told: s.Told, Level: s.Told, Wrong: s.Wrong}
	}
}

func (d *switches) state() any { return d.switchesState }

func (d *switches) with(state []byte) (circuit, error) {
	to := *d
	to.switchesState = switchesState{}
	if err := json.Unmarshal(state, &to.switchesState); err != nil {
		return nil, err
	}
	if !slices.Equal(to.Names, d.Names) {
		return nil, fmt.Errorf("of wires %s, not of %s: decode again from the start", strings.Join(to.Names, " "), strings.Join(d.Names, " "))
	}
	if len(to.Wires) != len(to.Names) {
		return nil, errors.New("wires without a name")
	}
	for _, s := range to.Wires {
		if s.Wrong > round.WireBouncing || s.Changes < 0 {
			return nil, errors.New("an impossible wire")
		}
	}
	return &to, nil
}
