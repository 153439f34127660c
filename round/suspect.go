package round

import "bytes"

// Limits of shoe.suspect_order: what a shuffled shoe does not do.
const (
	suspectRanks = 9  // equal ranks running
	suspectSuits = 16 // equal suits running
	suspectSteps = 12 // ranks running up or down by one
	suspectBlock = 7  // faces that came in the same order before
)

// maxOrder is the cards of the largest shoe.
const maxOrder = MaxDecks * Faces

// order keeps the faces of a shoe as they became known, to find an order that
// no shuffle makes. It is for surveillance: nothing of it is public.
type order struct {
	N                   uint16
	Faces               [maxOrder]byte // Cards
	Ranks, Suits, Steps uint8
	Up                  bool
	Told                uint8 // kinds already reported in this shoe, a bit each
}

// suspect kinds.
const (
	suspectedRanks = 1 << iota
	suspectedSuits
	suspectedSteps
	suspectedBlock
)

// watchOrder adds a face.
func (t *step) watchOrder(c Card) {
	o := &t.Shoe.Order
	if int(o.N) == len(o.Faces) {
		return
	}
	last := Card(0)
	if o.N > 0 {
		last = Card(o.Faces[o.N-1])
	}
	o.Faces[o.N] = byte(c)
	o.N++
	o.Ranks = running(o.Ranks, last.Rank() == c.Rank())
	o.Suits = running(o.Suits, last.Suit() == c.Suit())
	step := c.Rank() - last.Rank()
	if last == 0 || step != 1 && step != -1 {
		o.Steps = 1
	} else {
		if up := step == 1; o.Steps > 1 && up != o.Up {
			o.Steps = 1
		}
		o.Up = step == 1
		o.Steps++
	}
	t.suspect(suspectedRanks, o.Ranks >= suspectRanks)
	t.suspect(suspectedSuits, o.Suits >= suspectSuits)
	t.suspect(suspectedSteps, o.Steps >= suspectSteps)
	if o.Told&suspectedBlock == 0 && t.Shoe.Known[c.Index()] > 1 {
		t.suspect(suspectedBlock, o.repeats())
	}
}

func running(n uint8, more bool) uint8 {
	if !more {
		return 1
	}
	return min(n+1, 254)
}

// repeats reports whether the last faces came in the same order before.
func (o *order) repeats() bool {
	n := int(o.N)
	ends := o.Faces[:max(n-suspectBlock, 0)] // where an earlier block may end
	for len(ends) >= suspectBlock {
		i := bytes.LastIndexByte(ends, o.Faces[n-1])
		if i < suspectBlock-1 {
			return false
		}
		if bytes.Equal(o.Faces[i+1-suspectBlock:i+1], o.Faces[n-suspectBlock:n]) {
			return true
		}
		ends = ends[:i]
	}
	return false
}

func (t *step) suspect(kind uint8, yes bool) {
	if !yes || t.Shoe.Order.Told&kind != 0 || t.Rules.On[ShoeSuspectOrder] == SetOff {
		return
	}
	t.Shoe.Order.Told |= kind
	t.raise(ShoeSuspectOrder, Fact{Kind: FactShuffled}, Fact{Kind: FactOrder, N: uint16(kind)})
}
