package round_test

import (
	"testing"
	"time"

	"shoed/round"
)

// A decided round that is voided is not the last one any more: the one before
// it is (contract.md, state: last).
func TestLastAfterVoid(t *testing.T) {
	rules := round.DefaultRules()
	for _, rule := range []string{"burn=none", "round_start=first_card"} {
		if err := rules.Set(rule); err != nil {
			t.Fatal(err)
		}
	}
	s := round.New(rules)
	at := time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)
	do := func(line string) {
		t.Helper()
		at = at.Add(time.Second)
		in, err := round.ParseInput(withTime(line, at))
		if err == nil {
			s, _, err = s.Step(in, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	deal := func(cards ...string) {
		for _, c := range cards {
			do(`{"in":"card","card":"` + c + `"}`)
		}
	}
	void := func() {
		do(`{"in":"verdict","outcome":"tie"}`) // disagrees
		do(`{"in":"answer","do":"void","by":"anna"}`)
	}
	do(`{"in":"shoe","decks":8}`)
	deal("9s", "2h", "Td", "3c")
	if s.Last.No != 1 || s.Last.Outcome != round.PlayerWins {
		t.Fatalf("last %+v", s.Last)
	}
	first := s.Last
	deal("2s", "9h", "3d", "Tc")
	void()
	if s.Last != first {
		t.Errorf("after round 2 was voided the last is %+v, want %+v", s.Last, first)
	}
	deal("2s", "9h", "3d", "Tc")
	if s.Last.No != 3 {
		t.Errorf("last %+v, want round 3", s.Last)
	}
}

// TestFirstShoeOfAnAdoptedTable: a table that goes on from another's numbers has
// seen no shoe either, so its first one needs no cut card before it.
func TestFirstShoeOfAnAdoptedTable(t *testing.T) {
	s := round.New(round.DefaultRules())
	s.Shoe.No, s.AlertNo = 731, 12
	in, err := round.ParseInput([]byte(`{"at":"2026-01-01T00:00:00Z","in":"shoe","decks":8}`))
	if err != nil {
		t.Fatal(err)
	}
	s, events, err := s.Step(in, nil)
	if err != nil || len(events) != 1 || events[0].Kind != round.ShoeLoaded || s.Shoe.No != 732 || s.AlertNo != 12 {
		t.Errorf("shoe %d, alert %d, %v, %v", s.Shoe.No, s.AlertNo, events, err)
	}
}
