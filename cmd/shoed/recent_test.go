package main

import (
	"math/rand/v2"
	"testing"

	"shoed/journal"
)

// TestRecent: what it gives is what a whole list would give, and what it no
// longer has it does not make up.
func TestRecent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var r recent
	if _, ok := r.after(0, 10); ok {
		t.Error("an empty one knows what follows")
	}
	last := uint64(41) // a journal goes on after a restart
	for range 500 {
		var records []journal.Record
		for range rnd.IntN(5) {
			last++
			records = append(records, journal.Record{Kind: journal.Event, Seq: last}, journal.Record{Kind: journal.Input})
		}
		r.add(records)
		seq, most := 41+rnd.Uint64N(last-41+1), rnd.IntN(20)
		got, ok := r.after(seq, most)
		if first := max(42, int(last)-recentEvents+1); ok != (last > 41 && int(seq)+1 >= first) {
			t.Fatalf("after %d of 42–%d: known %v", seq, last, ok)
		}
		if ok && len(got) != min(most, int(last-seq)) {
			t.Fatalf("after %d of 42–%d, at most %d: %d events", seq, last, most, len(got))
		}
		for i, e := range got {
			if e.Seq != seq+1+uint64(i) {
				t.Fatalf("after %d: event %d is %d", seq, i, e.Seq)
			}
		}
	}
}
