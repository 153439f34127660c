package odds

import (
	"errors"
	"fmt"
	"math/big"

	"shoed/round"
)

// Offers appends to out what the table offers on the hands, in its order. It
// does not allocate when out has room.
func Offers(table *round.InsuranceTable, h Hands, out []round.Offer) []round.Offer {
	rows := table.Match(h.Player, h.Banker)
	for i := range table.Rows[:table.N] {
		if rows&(1<<i) != 0 {
			out = append(out, table.Rows[i].Offer())
		}
	}
	return out
}

// Fill writes win, push, lose and den into the offers of an event that opens
// an insurance window, from what the event says was shown; other events it
// leaves alone. It does not allocate. When it fails no offer is changed.
func Fill(e *round.Event) error {
	if e.Kind != round.InsuranceOpened {
		return nil
	}
	tie := round.TiePushes
	if e.TieLoses {
		tie = round.TieLoses
	}
	return FillOffers(e.Offers[:e.NOffers], Hands{e.Player, e.Banker}, e.Unseen, tie)
}

// FillOffers is Fill for offers by themselves: from the hands as shown, the
// unseen cards, and what a tie does to the offers that do not win by it.
func FillOffers(offers []round.Offer, h Hands, unseen Values, tie round.TieRule) error {
	if tie != round.TiePushes && tie != round.TieLoses {
		return errors.New("insurance odds: the tie rule is not set: want push or lose")
	}
	out, err := h.Outcomes(unseen)
	if err != nil {
		return fmt.Errorf("insurance odds: %w", err)
	}
	for i := range offers {
		o := &offers[i]
		o.Den, o.Push, o.Win = out.Den, 0, out.Of(o.WinsOn)
		if o.WinsOn != round.Tie && tie == round.TiePushes {
			o.Push = out.Tie
		}
		o.Lose = o.Den - o.Win - o.Push
	}
	return nil
}

// Edge is what the house keeps of one unit of a filled offer, exact and in
// lowest terms. A negative one, never clamped, is what it loses by making it.
// It is nil for an offer that was not filled or pays no ratio.
func Edge(o round.Offer) *big.Rat {
	if o.Den == 0 || o.Pays.Den == 0 {
		return nil
	}
	return edge(o.Lose, o.Den, TierPrice{Pays: o.Pays, Num: o.Win})
}

// EdgeOf is the edge of an offer in text, for the full view; nil when it cannot
// be told.
func EdgeOf(o *round.OfferText) *round.EdgeText {
	pays, err := round.ParseRatio(o.Pays)
	if err != nil || o.Den == nil {
		return nil
	}
	e := Edge(round.Offer{Pays: pays, Win: *o.Win, Push: *o.Push, Lose: *o.Lose, Den: *o.Den})
	if e == nil || !e.Num().IsInt64() || !e.Denom().IsUint64() {
		return nil
	}
	return &round.EdgeText{Num: e.Num().Int64(), Den: e.Denom().Uint64()}
}

// Fair is what a filled offer would pay a unit at an edge of zero; nil when it
// cannot win.
func Fair(o round.Offer) *big.Rat {
	if o.Win == 0 {
		return nil
	}
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(o.Lose), new(big.Int).SetUint64(o.Win))
}
