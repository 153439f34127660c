package round_test

import (
	"math/rand/v2"
	"testing"

	"shoed/round"
)

// shoeInputs is a whole shoe of clean rounds as a reader would tell them.
func shoeInputs(seed uint64) []round.Input {
	r := rand.New(rand.NewPCG(seed, 6))
	rules := round.DefaultRules()
	rules.Burn, rules.RoundStart = round.BurnNone, round.StartFirstCard
	s := round.New(rules)
	inputs := []round.Input{{At: start, Kind: round.InShoe, Decks: 8}}
	for _, i := range r.Perm(8 * round.Faces)[:400] {
		inputs = append(inputs, round.Input{At: start, Kind: round.InCard, Card: round.CardAt(i % round.Faces)})
	}
	for i := range inputs { // with the boxes that a reader would name
		due := s.Round.Due
		if !s.Round.Open {
			due = round.P1
		}
		if i > 0 {
			inputs[i].To, inputs[i].Pos = round.To(due.Side()), due.Pos()
		}
		s, _, _ = s.Step(inputs[i], nil)
	}
	return inputs
}

// BenchmarkStep is one input of a clean shoe; allocations must be none.
func BenchmarkStep(b *testing.B) {
	inputs := shoeInputs(1)
	rules := round.DefaultRules()
	rules.Burn = round.BurnNone
	events := make([]round.Event, 0, 16)
	s := round.New(rules)
	n, rounds := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if s, events, err = s.Step(inputs[n], events[:0]); err != nil {
			b.Fatal(err)
		}
		if n++; n == len(inputs) {
			rounds += int(s.Tally.Rounds)
			s, n = round.New(rules), 0
		}
	}
	b.ReportMetric(float64(rounds)/b.Elapsed().Seconds(), "rounds/s")
}

// TestCleanCardAllocatesNothing: the dealer is never slowed by a collector.
func TestCleanCardAllocatesNothing(t *testing.T) {
	inputs := shoeInputs(2)
	rules := round.DefaultRules()
	rules.Burn = round.BurnNone
	s := round.New(rules)
	events := make([]round.Event, 0, 16)
	n := 0
	got := testing.AllocsPerRun(len(inputs)-2, func() {
		s, events, _ = s.Step(inputs[n], events[:0])
		n++
	})
	if got != 0 {
		t.Errorf("%v allocations an input, want none", got)
	}
	if s.Paused() != 0 || s.Tally.Rounds < 60 {
		t.Errorf("the shoe was not clean: paused by %v after %d rounds", s.Paused(), s.Tally.Rounds)
	}
}
