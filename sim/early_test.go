package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"shoed/round"
)

const earlyRounds = 4_000 // dealt over all settings with sensors

// later has the reader tell of some cards only after they lie in their boxes, by
// less than readerLate: sensors on wires are faster than a reader behind a network.
func (p *play) later(r *rand.Rand) {
	for i := range p.cards {
		if r.IntN(2) == 0 {
			continue
		}
		d := p.find(draw, i)
		l := p.find(place, i)
		b := p.beats[d]
		p.beats[l].wait += b.wait
		b.wait = time.Duration(r.Int64N(int64(readerLate) + 1))
		p.insert(l+1, b)
		p.beats = slices.Delete(p.beats, d, d+1)
	}
}

// held has the dealer call before a card and deal on; the held cards are used.
// It returns the alerts that this must raise.
func (p *play) held(r *rand.Rand) []round.Code {
	from := r.IntN(4)
	n := 1 + r.IntN(4-from) // the first four: their boxes are known
	last := max(p.find(draw, from+n-1), p.find(place, from+n-1))
	answers := []beat{
		oops(time.Second, round.Input{Kind: round.InAnswer, Answer: round.Answer{Do: round.DoHoldCard, Where: round.WhereUse, By: "anna"}}),
		oops(time.Second, round.Input{Kind: round.InAnswer, Answer: round.Answer{Do: round.DoResume, By: "anna"}}),
	}
	p.insert(last+1, answers...)
	p.insert(p.firstOf(from), oops(500*time.Millisecond, round.Input{Kind: round.InButton, Button: round.ButtonCall}))
	return []round.Code{round.DealerCall, round.DealWhilePaused}
}

// firstOf is the first beat of a card's dealing.
func (p *play) firstOf(card int) int {
	return min(p.find(draw, card), p.find(place, card))
}

// TestEarlyCards: a card in its box before the rules know that it was drawn raises
// nothing of its own, and the round is decided as dealt.
func TestEarlyCards(t *testing.T) {
	seed := seedOf(t)
	watched := slices.DeleteFunc(settings(), func(s setting) bool { return !s.watched() })
	for n, s := range watched {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			table, w := newTable(s, 8, 14+n%10, seed+uint64(n)*1000), newWatch(s, 8)
			for i := range earlyRounds / len(watched) {
				p := table.next()
				if r.IntN(4) > 0 {
					p.later(r)
				}
				var want []round.Code
				if r.IntN(4) == 0 {
					want = p.held(r)
				}
				if err := w.expect(p, want); err != nil {
					t.Fatalf("round %d: %v", i, err)
				}
			}
		})
	}
}
