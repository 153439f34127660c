package main

import (
	"shoed/odds"
	"shoed/round"
)

// appendEvent renders an event with the odds of its offers. Should they not be
// computable (cards that no shoe has, corrected into the round) the offers go
// out without: the table's rates do not rest on them.
func appendEvent(b []byte, e *round.Event) ([]byte, error) {
	_ = odds.Fill(e) // it changes no offer when it fails
	return e.AppendText(b)
}

// appendFullEvent is appendEvent for the full view: with the house's edge.
func appendFullEvent(b []byte, e *round.Event) ([]byte, error) {
	_ = odds.Fill(e)
	var edges []*round.EdgeText
	if e.Kind == round.InsuranceOpened {
		for _, o := range e.Offers[:e.NOffers] {
			text := o.Text()
			edges = append(edges, odds.EdgeOf(&text))
		}
	}
	return e.AppendFullText(b, edges)
}
