package scanner

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

/*
Parallel reader: a reader in the shoe's mouth that puts a card's code on eight
wires and says so with a strobe.

Hardware: wires 0 to 7 are the bits of the code, the lowest first, wire 8 is the
strobe. Boards of this kind differ in polarity, which the kernel turns round, and
in how long they hold the code. Never seen by us: every capture in testdata is
synthetic. Wire records: wires.go.

Example, code 5A, edge 7, read 55 us after the strobe:

	01 08 00 00 07 00 00 00 time 8    the strobe is active
	03 00 5A 01 07 00 00 00 time 8    levels: strobe 1, bits 0101 1010

After the strobe's edge device lets the bits settle, reads them twice, and tells
them as levels; as unsteady ones when the two reads differ. That is the sample. A
card was unread when
  - its sample is unsteady, or later after the strobe than the code is held;
  - the next strobe comes before its sample. Within the time that a code is held no
    reader has a second one: both strobes are then the same card, unread;
  - edges are missing: one may have been a strobe. Where it may have been more than
    one card, several missing or a strobe without its sample, the reader has a gap
    besides;
  - the wires were opened again before its sample.

Oddities:
  - There is no checksum: a wrong bit shows only where it makes a code that no card
    has. So a table in which any two codes differ in two bits or more is better.
  - Edges of the bits, and the strobe's end, say nothing.
  - A strobe that stays active hides every card after it, and is not told: no record
    says how long a reader keeps its strobe. The boxes show the cards.
  - It says neither whose card it is nor where a round begins.
*/

const parallel8Protocol = "parallel8"

const (
	parallel8Strobe = 8 // its wire
	parallel8Wires  = parallel8Strobe + 1
)

type parallel8 struct {
	codes  Codes
	hold   int64 // ns
	strobe parallel8State
}

// parallel8State is the strobe that waits for its sample.
type parallel8State struct {
	Waits bool   `json:"waits"`
	At    int64  `json:"at"`            // ns
	Why   Reason `json:"why,omitempty"` // it is to be refused
}

func newParallel8(o Options) (Decoder, error) {
	if o.Hold == 0 {
		o.Hold = HoldTime
	}
	if o.Hold < 0 || o.Hold > time.Second {
		return nil, fmt.Errorf("%s: a code held for %v: use more than 0, up to 1s", parallel8Protocol, o.Hold)
	}
	if err := o.Codes.lengths(1); err != nil {
		return nil, fmt.Errorf("%s: %w", parallel8Protocol, err)
	}
	return newWires(parallel8Protocol, parallel8Wires, &parallel8{codes: o.Codes, hold: int64(o.Hold)}), nil
}

func (d *parallel8) edge(w *wires, e wireRecord) {
	if e.wire != parallel8Strobe || e.kind != wireActive {
		return
	}
	s := &d.strobe
	switch {
	case s.Waits && e.time-s.At < d.hold:
		s.Why = TooClose
	case s.Waits:
		w.unread(NoSample)
		s.Why = 0
	}
	s.Waits, s.At = true, e.time
}

func (d *parallel8) levels(w *wires, l wireRecord) {
	s := d.strobe
	if !s.Waits || l.time < s.At { // levels from before the strobe that were told late
		return
	}
	d.strobe = parallel8State{}
	switch {
	case s.Why != 0:
		w.unread(s.Why)
	case l.time-s.At > d.hold:
		w.unread(LateSample)
	case l.kind == wireUnsteady:
		w.unread(Unsteady)
	default:
		w.code(d.codes, codeOf([]byte{byte(l.levels)}))
	}
}

func (d *parallel8) gap(w *wires, missing int32) {
	if missing > 1 || d.strobe.Waits {
		w.cardsLost()
	}
	d.strobe = parallel8State{}
	w.unread(LostEdges)
}

func (d *parallel8) cut(w *wires) {
	if d.strobe.Waits {
		w.unread(Truncated)
	}
	d.strobe = parallel8State{}
}

func (d *parallel8) state() any { return d.strobe }

func (d *parallel8) with(state []byte) (circuit, error) {
	to := *d
	to.strobe = parallel8State{}
	if err := json.Unmarshal(state, &to.strobe); err != nil {
		return nil, err
	}
	if s := to.strobe; s.At < 0 || !s.Waits && s != (parallel8State{}) || s.Why != 0 && s.Why != TooClose {
		return nil, errors.New("an impossible strobe")
	}
	return &to, nil
}
