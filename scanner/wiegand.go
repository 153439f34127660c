package scanner

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"shoed/round"
)

/*
Wiegand reader: a reader in the shoe's mouth that sends a card's code as pulses on
two wires, 26 or 34 bits a card.

Hardware: wire 0 is D0, wire 1 is D1, both active low at the reader, which the
kernel turns round. A pulse on D0 is a 0, one on D1 a 1, first bit first. After
the Security Industry Association's standard for 26-bit readers (SIA AC-01), as
reader manuals give it, a pulse lasts 20 to 100 us and the next comes 200 us to
20 ms later; readers in the field take 1 to 2 ms a bit. Never seen by us: every
capture in testdata is synthetic. Wire records: wires.go.

Example, code 12 34 56 in 26 bits:

	0 0001 0010 0011   0100 0101 0110 1
	| +------------+   +------------+ |
	|       |                |        +--- odd parity: the last 13 bits have an odd
	|       |                |             number of ones
	|       +----------------+------------ code, 24 bits
	+------------------------------------- even parity of the first 13 bits

The word of 34 bits has 32 of code and parity over halves of 17.

A word ends when nothing came for more than 20 ms: by the stamp of the next
pulse, or by levels. It is refused, and a card was unread, when
  - it has another number of bits, or a wrong parity;
  - a pulse comes less than 100 us after the one before, on the same wire or the
    other: the standard has 200, of which an interrupt may be late by half;
  - edges are missing within it, before its first or after its last pulse. Which
    word they are of cannot be told, so it is every word that they border on. Where
    there is none, they were a card; where they would make a word or more, the reader
    has a gap besides;
  - the wires were opened again before its end.

Oddities:
  - Each half with its parity has an even, or odd, number of ones. So one wrong bit
    in a half is found, and any odd number; two in the same half are not. Pulses
    that a wire loses are found by the number of bits, unless as many are added.
  - What comes and goes within 200 us is at most one pulse, and no word: static, or
    a plug. It is refused as a glitch, and no card. With edges missing it may be all
    that is left of a word, so then it is a card unread. Two pulses further apart are
    a card unread too: a wire with a bad contact leaves as little of a word.
  - More than 64 pulses without a break are told as one card unread, when the bound
    is passed and not again before the break: a wire that chatters has no end.
  - There is no number: a card that sends no pulse at all shows nowhere but in the
    boxes. It says neither whose card it is nor where a round begins.
  - A wire that is active when both are quiet is stuck; the next quiet levels tell
    that it is not any more. Between two looks of device it may have been.
*/

const wiegandProtocol = "wiegand"

const (
	wiegandPause = int64(20 * time.Millisecond)  // the longest from pulse to pulse, by the standard
	wiegandLeast = int64(200 * time.Microsecond) // the shortest, by the standard
	wiegandClose = wiegandLeast / 2              // as stamped: an interrupt may be late
	wiegandMost  = 64                            // bits: no word in use has more
)

type wiegand struct {
	codes Codes
	bits  int
	wiegandState
}

type wiegandState struct {
	Word  wiegandWord `json:"word"`
	Stuck uint16      `json:"stuck"` // a bit per wire
}

// wiegandWires are their names in the configuration.
var wiegandWires = [...]string{"D0", "D1"}

// wiegandWord is the word in hand.
type wiegandWord struct {
	Bits  int    `json:"bits"` // that came, up to wiegandMost
	Word  uint64 `json:"word"`
	First int64  `json:"first"`         // ns of its first pulse
	Last  int64  `json:"last"`          // and of the last one, of the word before while there is none
	Why   Reason `json:"why,omitempty"` // it is to be refused
	Lost  bool   `json:"lost"`          // edges are missing before the next one
	Told  bool   `json:"told"`          // it was too long and is refused already
}

func newWiegand(o Options) (Decoder, error) {
	if o.Bits == 0 {
		o.Bits = 26
	}
	if o.Bits != 26 && o.Bits != 34 {
		return nil, fmt.Errorf("%s: a word of %d bits: use 26 or 34", wiegandProtocol, o.Bits)
	}
	if err := o.Codes.lengths((o.Bits - 2) / 8); err != nil {
		return nil, fmt.Errorf("%s of %d bits: %w", wiegandProtocol, o.Bits, err)
	}
	return newWires(wiegandProtocol, len(wiegandWires), &wiegand{codes: o.Codes, bits: o.Bits}), nil
}

func (d *wiegand) edge(w *wires, e wireRecord) {
	if e.kind != wireActive {
		return
	}
	if d.paused(e.time) {
		d.end(w)
	}
	k := &d.Word
	if k.Lost {
		k.Lost = false
		k.spoil(LostEdges)
	}
	switch {
	case k.Bits == 0:
		k.First = e.time
	case e.time-k.Last >= wiegandClose:
	case e.wire == uint8(k.Word&1):
		k.spoil(TooClose)
	default:
		k.spoil(BothWires)
	}
	k.Last = e.time
	if k.Bits == wiegandMost {
		d.overlong(w)
		return
	}
	k.Bits++
	k.Word = k.Word<<1 | uint64(e.wire)
}

// paused reports whether no word has gone on until now.
func (d *wiegand) paused(now int64) bool { return now-d.Word.Last > wiegandPause }

// spoil refuses the word, for the first reason there is, but for missing edges
// above all: with them nothing else is sure.
func (k *wiegandWord) spoil(why Reason) {
	if k.Why == 0 || why == LostEdges {
		k.Why = why
	}
}

func (d *wiegand) overlong(w *wires) {
	if !d.Word.Told {
		d.Word.Told = true
		w.unread(cmp.Or(d.Word.Why, BadLength))
	}
}

func (d *wiegand) gap(w *wires, missing int32) {
	if int(missing) >= d.bits {
		w.cardsLost()
	}
	d.Word.Lost = true
	if d.Word.Bits > 0 {
		d.Word.spoil(LostEdges)
	}
}

func (d *wiegand) levels(w *wires, l wireRecord) {
	if l.kind != wireLevels || !d.paused(l.time) {
		return
	}
	if d.Word.Bits == 0 && d.Word.Lost {
		w.unread(LostEdges)
	}
	d.end(w)
	d.Word.Lost = false
	for i, line := range wiegandWires {
		switch bit := uint16(1) << i; (d.Stuck ^ l.levels) & bit {
		case 0:
			continue
		case l.levels & bit:
			w.wire(line, round.WireStuck)
		default:
			w.wire(line, round.WireOK)
		}
	}
	d.Stuck = l.levels
}

// end judges the word, if there is one.
func (d *wiegand) end(w *wires) {
	k := d.Word
	d.Word = wiegandWord{Last: k.Last, Lost: k.Lost}
	if k.Bits == 0 || k.Told {
		return
	}
	switch why := d.fault(k); why {
	case 0:
		w.code(d.codes, d.code(k))
	case Glitch:
		w.refuse(why)
	default:
		w.unread(why)
	}
}

func (d *wiegand) fault(k wiegandWord) Reason {
	half := d.bits / 2
	switch {
	case k.Why == LostEdges:
		return LostEdges
	case k.Last-k.First < wiegandLeast:
		return Glitch
	case k.Why != 0:
		return k.Why
	case k.Bits != d.bits:
		return BadLength
	case bits.OnesCount64(k.Word>>half)%2 != 0, bits.OnesCount64(k.Word&(1<<half-1))%2 != 1:
		return BadParity
	}
	return 0
}

// code is what stands between the parity bits.
func (d *wiegand) code(k wiegandWord) string {
	n := d.bits - 2
	return fmt.Sprintf("%0*X", n/4, k.Word>>1&(1<<n-1))
}

func (d *wiegand) cut(w *wires) {
	if (d.Word.Bits > 0 || d.Word.Lost) && !d.Word.Told {
		w.unread(Truncated)
	}
	d.Word = wiegandWord{}
}

func (d *wiegand) state() any { return d.wiegandState }

func (d *wiegand) with(state []byte) (circuit, error) {
	to := *d
	to.wiegandState = wiegandState{}
	if err := json.Unmarshal(state, &to.wiegandState); err != nil {
		return nil, err
	}
	if k := to.Word; k.Bits < 0 || k.Bits > wiegandMost || k.Bits < wiegandMost && (k.Told || k.Word>>k.Bits != 0) || k.First < 0 || k.Last < 0 || to.Stuck>>len(wiegandWires) != 0 {
		return nil, errors.New("an impossible word")
	}
	return &to, nil
}
