package round

import "time"

// watched reports whether sensors tell where the cards lie. Without them the
// dealt order decides.
func (s *State) watched() bool { return s.Rules.Placement != PlacementNone && !s.SensorsOff }

// unseen reports whether a card that lies nowhere is told already: it is missed
// in its box, or nothing sees the boxes.
func (s *State) unseen() bool {
	return s.standing(DealNotPlaced) != nil || s.Failing(BoxesDevice)
}

// retell: the sensors are back, or we are, and they tell anew what lies in the
// boxes. What nobody could see was not missing.
func (t *step) retell() {
	r := &t.Round
	for i := range r.Cards[:r.N] {
		if b := r.Lies[i]; b != 0 {
			r.Retold |= 1 << b
		} else {
			r.DrawnAt[i] = t.now
		}
	}
	for b := P1; b <= B3; b++ {
		if t.Early[b].At != 0 {
			r.Retold |= 1 << b
		}
	}
}

// told reports whether what a sensor says of a box is on record: told anew, or
// twice. While a card is in somebody's hand that may be the one, it is taken to
// lie there too, unless the sensors were away.
func (t *step) told(b Box, c Card) bool {
	r := &t.Round
	bit := uint8(1) << b
	retold := r.Retold&bit != 0
	r.Retold &^= bit
	if t.Rules.Placement == PlacementPresence {
		c = 0
	}
	lies, inHand, face := t.Early[b].At != 0, false, r.Sensed[b]
	if lies {
		face = t.Early[b].Card
	}
	for i := range r.Cards[:r.N] {
		drawn := r.Cards[i].Card
		lies = lies || r.Lies[i] == b
		inHand = inHand || r.Lies[i] == 0 && (drawn == c || !drawn.Known() || !c.Known())
	}
	return lies && (retold || !inHand) && (!c.Known() || face == c)
}

// placed: a card lies in a box. Presence sensors see that one does, RFID which.
// One of no enrolled deck is of no shoe, whatever lies there besides.
func (t *step) placed(b Box, c Card, foreign bool) {
	again := t.Placed&(1<<b) != 0
	t.boxes(true, b)
	r := &t.Round
	switch {
	case !t.watched():
		return
	case foreign:
		if t.Shoe.Phase != NoShoe {
			t.raise(ShoeForeignCard, Fact{Kind: FactEnrolled}, Fact{Kind: FactForeignTag, Box: b})
		}
		return
	case !r.Open:
		t.laidBetween(b, c, again)
		return
	case t.told(b, c):
		return
	}
	r.Sensed[b] = c
	if i := t.placing(b, c); i >= 0 {
		r.Lies[i] = b
		t.checkPlacement()
		return
	}
	t.laidEarly(b, c)
}

// rematch finds where the cards lie by their faces, now that a masked reader
// has named one: until then RFID's faces had nothing to be compared with. Each
// card is looked for in its own box first; in another's only when that one's
// card is known to be another.
func (t *step) rematch() {
	r := &t.Round
	if !t.watched() || t.Rules.Placement != PlacementRFID {
		return
	}
	named, matched, taken := true, [6]bool{}, [7]bool{}
	for _, own := range [...]bool{true, false} {
		for i := range r.Cards[:r.N] {
			d := &r.Cards[i]
			named = named && d.Card.Known()
			if matched[i] || !d.Card.Known() {
				continue
			}
			for b := P1; b <= B3; b++ {
				if r.Sensed[b] == d.Card && !taken[b] && (b == d.Box || !own && !r.awaits(b)) {
					r.Lies[i], matched[i], taken[b] = b, true, true
					break
				}
			}
		}
	}
	for i := range r.Cards[:r.N] {
		c, b := r.Cards[i].Card, r.Lies[i]
		switch {
		case matched[i] || b == 0 || !c.Known():
		case taken[b] && r.Sensed[b] != c:
			r.Lies[i], r.DrawnAt[i] = 0, t.now // it was only taken to lie there
		case named && r.Sensed[b].Known() && !taken[b]:
			t.raise(ShoeForeignCard, Fact{Kind: FactRoundsCards}, Fact{Kind: FactForeign, Box: b})
		}
	}
}

// awaits reports whether a box may hold the card of the rules, not named yet.
func (r *Round) awaits(b Box) bool {
	for i := range r.Cards[:r.N] {
		d := &r.Cards[i]
		if !d.Card.Known() && (d.Box == b || d.Box == 0 && b.Pos() == 3) {
			return true
		}
	}
	return false
}

// placing finds which drawn card was put into a box; -1 when none was.
func (t *step) placing(b Box, c Card) int {
	r := &t.Round
	if t.Rules.Placement == PlacementRFID && c.Known() {
		found, masked := -1, false
		for i := range r.Cards[:r.N] {
			d := &r.Cards[i]
			masked = masked || !d.Card.Known()
			if d.Card == c && r.Lies[i] == 0 && (found < 0 || d.Box == b) {
				found = i
			}
		}
		if found >= 0 {
			return found
		}
		if !masked && !t.inRound(c) {
			return -1
		}
	}
	oldest := -1
	for i := range r.Cards[:r.N] {
		d := &r.Cards[i]
		if r.Lies[i] != 0 {
			continue
		}
		if d.Box == b || d.Box == 0 && b.Pos() == 3 {
			return i
		}
		if oldest < 0 {
			oldest = i
		}
	}
	return oldest
}

func (t *step) inRound(c Card) bool {
	for i := range t.Round.Cards[:t.Round.N] {
		if t.Round.Cards[i].Card == c {
			return true
		}
	}
	return false
}

// lifted: a card left a box.
func (t *step) lifted(b Box) {
	t.boxes(false, b)
	t.Early[b] = Early{}
	r := &t.Round
	if !t.watched() {
		return
	}
	r.Sensed[b] = 0
	r.Retold &^= 1 << b
	for i := int(r.N) - 1; i >= 0; i-- {
		if r.Lies[i] == b {
			r.Lies[i], r.DrawnAt[i] = 0, t.now // it is in somebody's hand: its wait begins anew
			return
		}
	}
}

// checkPlacement compares where the cards lie with the boxes that the rules
// give them, as far as those follow from what was shown.
func (t *step) checkPlacement() {
	r := &t.Round
	if !t.watched() || !r.Open {
		return
	}
	right := true
	for i := range r.Cards[:r.N] {
		box, lies := r.Cards[i].Box, r.Lies[i]
		if e := &t.Early[lies]; !otherFace(e.Card, r.Cards[i].Card) {
			*e = Early{} // it is that one
		}
		right = right && box != 0 && box == lies
		switch {
		case box == 0 || lies == 0:
		case lies != box && r.WrongSince[i] == 0:
			r.WrongSince[i] = t.now
		case lies == box && r.WrongSince[i] != 0:
			r.WrongSince[i] = 0
			if t.standing(DealWrongBox) == nil && t.standing(DealWrongBoxLate) == nil {
				t.remark(DealSelfCorrected, Fact{Kind: FactCardDue, Box: box}, Fact{Kind: FactPutRight})
			}
		}
	}
	if right {
		t.clearAll(bySensors, DealWrongBox, DealWrongBoxLate)
	}
	if t.allPlaced() {
		t.clearAll(bySensors, DealNotPlaced)
	}
}

// allPlaced reports whether every card that the rules put somewhere lies there.
func (t *step) allPlaced() bool {
	r := &t.Round
	for i := range r.Cards[:r.N] {
		if r.Cards[i].Box != r.Lies[i] {
			return false
		}
	}
	return true
}

// misplaced raises what has been wrong for too long (deal.wrong_box,
// deal.wrong_box_late, seed 000 note 6; deal.not_placed).
func (t *step) misplaced() {
	r := &t.Round
	if !t.watched() || !r.Open {
		return
	}
	now := t.now
	for i := range r.Cards[:r.N] {
		d := &r.Cards[i]
		switch {
		case r.Lies[i] == 0 && now >= r.DrawnAt[i]+ms(t.Rules.PlaceWaitMS) && d.Box != 0 && t.PausedBy == 0 && !t.unseen():
			t.raise(DealNotPlaced, Fact{Kind: FactCardDue, Box: d.Box}, Fact{Kind: FactNoBox})
		case r.Lies[i] != 0 && r.Lies[i] != d.Box && r.WrongSince[i] != 0 && now >= r.WrongSince[i]+ms(t.Rules.PlacementSettleMS):
			t.wrongBox(i)
		}
		if !r.Open {
			return
		}
	}
}

func (t *step) wrongBox(i int) {
	code := DealWrongBox
	if i >= 4 {
		code = DealWrongBoxLate
	}
	if t.standing(code) != nil {
		return
	}
	d := &t.Round.Cards[i]
	t.raiseOrVoid(code, Fact{Kind: FactCardDue, Box: d.Box}, Fact{Kind: FactCardIn, Box: t.Round.Lies[i], Card: d.seen()})
}

// arranged: the manager put the cards where the rules want them, in draw order.
func (t *step) arranged() {
	r := &t.Round
	for i := range r.Cards[:r.N] {
		r.Lies[i], r.WrongSince[i] = r.Cards[i].Box, 0
	}
}

func ms(n uint32) int64 { return int64(n) * int64(time.Millisecond) }
