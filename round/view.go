package round

// Unseen counts, by value, the cards of the shoe that the table has not shown,
// burned, held and masked ones among them: what the odds of an offer are
// reckoned from (game.md section 3).
func (s *Shoe) Unseen() [10]uint16 { return s.unseen() }

// ThroughRound is the number of the last round of the shoe in hand that is
// over, decided or void; 0 when there is none.
func (s *State) ThroughRound() uint16 {
	if s.Round.Open {
		return s.Shoe.Rounds - 1
	}
	return s.Shoe.Rounds
}

// SameRoads reports that Results and ThroughRound of both states are those of
// the same shoe and alike. It may say no when only what the roads do not show
// is different.
func (s *State) SameRoads(o *State) bool {
	return s.Shoe.No == o.Shoe.No && s.ThroughRound() == o.ThroughRound() &&
		s.Rules.FreeHandOnRoads == o.Rules.FreeHandOnRoads && s.Past == o.Past
}

// WindowState is where a round's insurance stands.
type WindowState uint8

const (
	WindowClosed WindowState = iota // or there was none
	WindowOpen
	WindowVoid // every offer of the round's last window is void
)

var windowText = []string{"closed", "open", "void"}

func (w WindowState) String() string { return windowText[w] }

// Window is the state of the round's last insurance window, with the offers
// of an open one. They are those of its event: their counts not filled in, and
// without what the dealer has laid out since.
func (s *State) Window() (WindowState, []Offer) {
	w := &s.Round.Insured
	open := s.Round.Open && w.Open
	var offers []Offer
	made, void := 0, 0
	for _, m := range w.Made[:w.N] {
		if m.Stage != w.Stage {
			continue
		}
		made++
		switch {
		case m.Void:
			void++
		case open:
			offers = append(offers, s.Rules.InsuranceTable.Rows[m.Row-1].Offer())
		}
	}
	switch {
	case open:
		return WindowOpen, offers
	case made > 0 && void == made:
		return WindowVoid, nil
	}
	return WindowClosed, nil
}

// Awaited is the box that waits for a card: with sensors the one that a drawn card
// does not lie in yet, otherwise the one due; 0 when none does, or while it hangs on
// faces that the table has not shown.
func (s *State) Awaited() Box {
	r := &s.Round
	if !r.Open {
		return 0
	}
	if s.watched() {
		for i := range r.Cards[:r.N] {
			if b := r.Cards[i].Box; b != 0 && r.Lies[i] == 0 {
				return b
			}
		}
	}
	return r.Due
}

// Waits reports whether the dealer has to wait before the next card, although the
// table is not paused: for bets, buyers of insurance, a face, a card to be placed, a
// shoe, the reader, or an answer. It follows from what the table has shown.
func (s *State) Waits() bool {
	r := &s.Round
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No != 0 && a.Public() && a.Blocks() {
			return true
		}
	}
	switch {
	case s.ReaderDown, s.Shoe.Phase == NoShoe, s.Shoe.Phase == ShoeOver:
		return true
	case r.Open:
		return r.Insured.Open || r.Due == 0
	}
	return s.Shoe.Phase == ShoeInPlay && !s.signalled()
}
