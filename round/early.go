package round

// Early is a card that lies in a box although no card of the round accounts for
// it: it was laid there before the rules took it into the round, because they
// hold it, or because the reader tells of a card later than the sensors do.
type Early struct {
	At     int64 // ns UTC, since when; 0 none lies there
	Card   Card  // its face, as RFID sees it
	Judged bool  // nothing more is made of it than that it lies there
}

// readerLateMS is how much later than the sensors a reader may tell of a card:
// long enough for a device server and one packet sent again (RFC 6298 as Linux
// has it: 200 ms), and shorter than a dealer takes from laying a card to drawing
// the next, which else would pass for the one that a lost telegram told of.
const readerLateMS = 500

// laidEarly: a card lies in a box, and no card in the round is it. Of one whose
// face is known something may have to be said (strangers).
func (t *step) laidEarly(b Box, c Card) {
	if t.Rules.Placement == PlacementPresence {
		c = 0
	}
	t.Early[b] = Early{At: t.now, Card: c, Judged: !t.Round.Open}
}

// laidBetween: a card was laid into a box between two rounds. One told again,
// or one of the last round that was lifted and put back, is not of the next.
func (t *step) laidBetween(b Box, c Card, again bool) {
	r := &t.Round
	if again {
		return
	}
	for i := range r.Cards[:r.N] {
		if r.Lies[i] == 0 && !t.Cleared {
			return
		}
	}
	t.laidEarly(b, c)
}

// mayBe reports whether a card of the round is the one that lies early in a box:
// it was told of in time, and has no other face.
func (t *step) mayBe(i int, b Box) bool {
	d, e := &t.Round.Cards[i], &t.Early[b]
	return e.At != 0 && !otherFace(e.Card, d.Card) && d.At <= e.At+ms(readerLateMS)
}

func otherFace(a, b Card) bool { return a.Known() && b.Known() && a != b }

// joinEarly: cards of the round that lay in their boxes before they joined it
// lie there.
func (t *step) joinEarly() {
	r := &t.Round
	if !t.watched() {
		return
	}
	for i := range r.Cards[:r.N] {
		for b := P1; b <= B3 && r.Lies[i] == 0; b++ {
			if box := r.Cards[i].Box; (b == box || box == 0 && b.Pos() == 3) && t.mayBe(i, b) {
				t.liesEarly(i, b)
			}
		}
	}
}

// strayEarly: a card that joined the round just now and does not lie in its own
// box is the one that lies early in another.
func (t *step) strayEarly() {
	r := &t.Round
	if !t.watched() || !r.Open {
		return
	}
	for i := int(r.N - min(t.joined, r.N)); i < int(r.N); i++ {
		for b := P1; b <= B3 && r.Lies[i] == 0; b++ {
			if t.mayBe(i, b) {
				t.liesEarly(i, b)
			}
		}
	}
}

func (t *step) liesEarly(i int, b Box) {
	r := &t.Round
	r.Lies[i], r.Sensed[b] = b, t.Early[b].Card
	t.Early[b] = Early{}
}

// stranger reports whether a face lies in a box of the round in hand that is to
// be told of, should the reader not tell of it in time. While a card of the round
// is masked it may be that one.
func (s *State) stranger(b Box) bool {
	e := &s.Early[b]
	if !s.watched() || !s.Round.Open || e.At == 0 || e.Judged || !e.Card.Known() {
		return false
	}
	for i := range s.Round.Cards[:s.Round.N] {
		if !s.Round.Cards[i].Card.Known() {
			return false
		}
	}
	return true
}

// strangerDue is when the first such face is to be told of; 0 when there is none.
func (s *State) strangerDue() (first int64) {
	for b := P1; b <= B3; b++ {
		if due := s.Early[b].At + ms(readerLateMS); s.stranger(b) && (first == 0 || due < first) {
			first = due
		}
	}
	return first
}

// tellStrangers: with a drawn card still in somebody's hand since before, a face
// in a box is a card of another set (shoe.foreign_card). Else all that the reader
// told lie there: it did not tell of this one (reader.gap).
func (t *step) tellStrangers() {
	for b := P1; b <= B3; b++ {
		e := &t.Early[b]
		if !t.stranger(b) || t.now < e.At+ms(readerLateMS) {
			continue
		}
		e.Judged = true
		switch {
		case t.inRound(e.Card) || t.Manual || t.holds(e.Card):
		case t.inHandSince(e.At):
			t.raise(ShoeForeignCard, Fact{Kind: FactRoundsCards}, Fact{Kind: FactForeign, Box: b})
		default:
			t.gap(FactUntold)
		}
	}
}

// holds reports whether a card that was drawn and has not joined the round may
// have a face: it waits, or an alert asks about it.
func (s *State) holds(c Card) bool {
	may := func(held Card) bool { return held == c || !held.Known() }
	for i := range s.Alerts {
		a := &s.Alerts[i]
		if a.No != 0 && (a.HasCard && may(a.Card.Card) || !a.HasCard && a.Code == ReaderUnread) {
			return true
		}
	}
	for _, q := range [...]*Queue{&s.Waiting, &s.Next} {
		for i := range q.Cards[:q.N] {
			if may(q.Cards[i].Card) {
				return true
			}
		}
	}
	return false
}

// inHandSince reports whether a card drawn by then lies nowhere yet.
func (t *step) inHandSince(at int64) bool {
	r := &t.Round
	for i := range r.Cards[:r.N] {
		if r.Lies[i] == 0 && r.Cards[i].At <= at {
			return true
		}
	}
	return false
}
