package mqtt

import (
	"fmt"
	"time"

	"shoed/odds"
	"shoed/round"
)

// Roads is the retained document roads/1.0: the history of the shoe in hand as
// every board draws it. One of 8 decks stays under 6.5 KB, whatever was dealt.
type Roads struct {
	Envelope
	ShoeID *string `json:"shoe_id"` // null before the first shoe
	// ThroughRound is the number of the last round that is over, decided or
	// void: the roads hold all there is of it and those before. A void round
	// has no cell, nor has a free hand where the house wants none. Null when no
	// round of the shoe is over.
	ThroughRound *uint16 `json:"through_round"`
	round.RoadsText
}

// RoadsOf draws the roads of the shoe in hand.
func RoadsOf(env Envelope, s *round.State) Roads {
	doc := Roads{Envelope: env, RoadsText: round.Roads(s.Results()).Text()}
	if s.Shoe.Phase != round.NoShoe {
		id := ShoeID(env.Table, s.Shoe.No)
		doc.ShoeID = &id
	}
	if no := s.ThroughRound(); no != 0 {
		doc.ThroughRound = &no
	}
	return doc
}

// Window is the retained document insurance/1.0: the last insurance window of
// the round in hand, or of the last one until the next opens.
type Window struct {
	Envelope
	WindowID *string           `json:"window_id"` // the round's id and the stage's number: …-R041-W2; null when the round had none
	State    string            `json:"state"`     // closed, open, or void: all its offers are
	RoundID  *string           `json:"round_id"`  // null when the shoe had no round
	Stage    *string           `json:"stage"`     // null when the round had no window
	Offers   []round.OfferText `json:"offers"`    // as in the event, while it is open
	ClosesAt *string           `json:"closes_at"` // null when it is not open
}

// InsuranceOf is what may be said of the insurance of s.
func InsuranceOf(env Envelope, s *round.State) Window {
	state, offers := s.Window()
	doc := Window{Envelope: env, State: state.String(), Offers: []round.OfferText{}}
	if s.Round.No == 0 {
		return doc
	}
	roundID := RoundID(env.Table, s.Shoe.No, s.Round.No)
	doc.RoundID = &roundID
	w := &s.Round.Insured
	if w.Stage == 0 {
		return doc
	}
	windowID := fmt.Sprintf("%s-W%d", roundID, w.Stage)
	doc.WindowID, doc.Stage = &windowID, text(w.Stage)
	if state != round.WindowOpen {
		return doc
	}
	closes := stamp(time.Unix(0, w.ClosesAt))
	doc.ClosesAt = &closes
	// No further card of the round can be shown while the window is open, so
	// these are the hands of its event. The unseen cards are those too, unless
	// an earlier round was corrected or an overdrawn card named meanwhile: then
	// the offers are given as they now stand. Without odds they go as the event
	// does, without integers.
	hands := odds.Hands{Player: s.Round.Shown(round.Player), Banker: s.Round.Shown(round.Banker)}
	_ = odds.FillOffers(offers, hands, s.Shoe.Unseen(), s.Rules.InsuranceTie)
	for i := range offers {
		doc.Offers = append(doc.Offers, offers[i].Text())
	}
	return doc
}
