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
			var text *round.EdgeText
			if edge := odds.Edge(o); edge != nil && edge.Num().IsInt64() && edge.Denom().IsUint64() {
				text = &round.EdgeText{Num: edge.Num().Int64(), Den: edge.Denom().Uint64()}
			}
			edges = append(edges, text)
		}
	}
	return e.AppendFullText(b, edges)
}
