package round

// correct says which cards lie in which boxes, in the round in hand or in any
// decided one of this shoe. What it says is shown by it. Originals are kept:
// the correction is a new fact with its own rev.
func (t *step) correct(ans *Answer, a Alert) Refusal {
	no := ans.Round
	if no == 0 {
		no = t.Round.No
	}
	for _, c := range ans.Cards {
		if c == Masked {
			return RefusedCards
		}
	}
	switch {
	case no == 0 || no > t.Shoe.Rounds:
		return RefusedNoRound
	case no == t.Round.No && t.Round.Open:
		return t.correctOpen(ans, a)
	case t.Past[no-1].Outcome == 0:
		return RefusedNoRound
	}
	return t.correctDecided(ans, a, no)
}

// correctOpen corrects the round in hand, which then goes on.
func (t *step) correctOpen(ans *Answer, a Alert) Refusal {
	old, next := t.Round, *t.State
	if refusal := next.rearrange(ans.Cards); refusal != 0 {
		return refusal
	}
	t.accept(ans, a)
	if a.Code == ReaderUnread && a.HasCard && a.Card.Card.Known() {
		t.Shoe.Known[a.Card.Card.Index()]-- // the re-read was no better than the first
	}
	t.lay(&old, &next.Round, ans, a.Code == ReaderUnread)
	t.clear(a.No, ans.By)
	t.nothingWaits(ans.By)
	return 0
}

// lay puts the cards of a corrected round on the table.
func (t *step) lay(old, next *Round, ans *Answer, unread bool) {
	t.closeWindow(CloseShown)
	t.recount(old, next, unread)
	next.Insured = t.Round.Insured
	t.Round = *next
	t.arranged()
	t.Round.ActedAt = t.now
	t.Round.ReaderIgnored, t.Round.HasVerdict = true, false
	t.showCards(ans, old.No)
	at := t.Round.shownAt()
	if made := t.Round.Insured; t.reconsider(&made, &at) { // exposed voids them all, and says so
		t.exposed(Fact{Kind: FactOffers}, Fact{Kind: FactCorrected})
	}
}

func (t *step) showCards(ans *Answer, no uint16) {
	for b := P1; b <= B3; b++ {
		if c := ans.Cards[b]; c != 0 {
			t.emit(Event{Kind: CardShown, Round: no, Hand: b.Side(), Pos: b.Pos(), Card: c})
		}
	}
}

// nothingWaits ends deal.while_paused when a correction took the card that
// waited.
func (t *step) nothingWaits(by string) {
	if t.Waiting.N == t.Usable {
		t.clearAll(by, DealWhilePaused)
	}
}

// rearrange lays the named cards into the round in hand, if that is a deal
// that the rules allow. When refused it leaves the round half laid: it is for
// a copy of the state.
func (s *State) rearrange(cards [7]Card) Refusal {
	var at [7]Drawn
	var loose [6]Drawn // third cards whose box is not known yet
	nLoose := 0
	r := &s.Round
	for _, d := range r.Cards[:r.N] {
		if d.Box == 0 {
			loose[nLoose] = d
			nLoose++
		} else {
			at[d.Box] = d
		}
	}
	for b, c := range cards {
		if c != 0 {
			at[b] = Drawn{Card: c, Box: Box(b), Shown: true, Counts: true}
		}
	}
	t := step{State: s}
	r.N, r.Cards = 0, [6]Drawn{}
	for t.layout(); r.Due != 0 && at[r.Due].Card != 0; t.layout() {
		d := at[r.Due]
		at[r.Due] = Drawn{}
		r.Cards[r.N] = d
		r.N++
	}
	kept := 0
	for ; kept < nLoose && r.N >= 4 && int(r.N) < len(r.Cards); kept++ {
		r.Cards[r.N] = loose[kept]
		r.N++
	}
	t.layout()
	for _, left := range at[P1:] {
		if left.Card != 0 || kept < nLoose {
			return RefusedDraw
		}
	}
	return 0
}

// recount brings the count of the shoe's cards in line with a correction. A
// card that was not in the round before is the unread one, or the oldest one
// held, when it has that face or none; else it left the shoe without being
// seen.
func (t *step) recount(old, now *Round, unread bool) {
	var was [7]Drawn
	for _, d := range old.Cards[:old.N] {
		was[d.Box] = d
	}
	for i := range now.Cards[:now.N] {
		d := &now.Cards[i]
		before := was[d.Box]
		if d.Box == 0 || before.Card == d.Card && before.Shown {
			continue
		}
		if before.Shown {
			t.Shoe.Shown[before.Card.Index()]--
		}
		t.countShown(d.Card)
		switch {
		case before.Card == d.Card:
			continue
		case before.Card.Known():
			t.Shoe.Known[before.Card.Index()]--
		case before.Card == Masked:
		case unread:
			unread = false
		case t.takeWaiting(d.Card):
			continue
		}
		t.countFace(d.Card)
	}
	if unread { // its card is none of those named
		t.Shoe.Account.OutOfGame++
	}
}

// takeWaiting finds a card that a correction added among those that wait. It
// reports whether its face was counted already.
func (t *step) takeWaiting(c Card) (counted bool) {
	if t.Waiting.N == 0 || t.Waiting.Cards[0].Again || t.Waiting.Cards[0].Card != c && t.Waiting.Cards[0].Card != Masked {
		t.Shoe.Out++
		return false
	}
	t.Usable -= min(t.Usable, 1)
	return t.Waiting.pop().Card == c
}

// correctDecided corrects a round after its outcome. Should the cards change
// who had to draw, somebody must say that they were dealt so (as_dealt), or
// void the round.
func (t *step) correctDecided(ans *Answer, a Alert, no uint16) Refusal {
	past := &t.Past[no-1]
	boxes := past.Boxes
	for b, c := range ans.Cards {
		if c != 0 {
			boxes[b-1] = c
		}
	}
	if !legalDeal(&boxes) && !ans.AsDealt {
		return RefusedAsDealt
	}
	t.accept(ans, a)
	if boxes != past.Boxes {
		t.recountDecided(past.Boxes, boxes)
		t.showCards(ans, no)
		t.redecide(no, boxes)
	}
	if no == t.Round.No {
		t.Round.ReaderIgnored, t.Round.HasVerdict = true, false
	}
	t.clear(a.No, ans.By)
	t.nothingWaits(ans.By)
	return 0
}

// legalDeal reports whether the draw table gives just these boxes.
func legalDeal(boxes *[6]Card) bool {
	at := byBox(boxes)
	thirds := at
	thirds[P3], thirds[B3] = 0, 0
	for {
		due := dueThird(thirds, thirds[P3])
		if due == 0 {
			return thirds == at
		}
		if at[due] == 0 {
			return false
		}
		thirds[due] = at[due]
	}
}

// byBox indexes the cards of a round by Box.
func byBox(boxes *[6]Card) (at [7]Card) {
	copy(at[1:], boxes[:])
	return at
}

// handOf is a side's cards.
func handOf(boxes *[6]Card, side Side) (h Hand) {
	first := BoxOf(side, 1)
	for _, c := range boxes[first-1 : first+2] {
		if c != 0 {
			h.Cards[h.N] = c
			h.N++
		}
	}
	return h
}

func (t *step) recountDecided(was, now [6]Card) {
	for i, c := range now {
		switch {
		case c == was[i]:
			continue
		case was[i] != 0:
			t.Shoe.Known[was[i].Index()]--
			t.Shoe.Shown[was[i].Index()]--
			t.countFace(c)
		default:
			t.Shoe.Account.Rounds++
			if !t.takeWaiting(c) {
				t.countFace(c)
			}
		}
		t.countShown(c)
	}
}

// redecide publishes the decision and the settlement of a corrected round.
func (t *step) redecide(no uint16, boxes [6]Card) {
	past := &t.Past[no-1]
	was := *past
	t.tally(-1, was.Outcome, was.Tags)
	f := resultOf(handOf(&boxes, Player), handOf(&boxes, Banker))
	past.Boxes, past.Outcome, past.Rev = boxes, f.Outcome, was.Rev+1
	past.Tags = f.Tags | was.Tags&TagFreeHand | TagCorrected
	t.tally(1, past.Outcome, past.Tags)
	if no == t.Last.No {
		t.Last = t.summary(no)
	}
	if no == t.Round.No {
		t.redraw(boxes)
	}
	e := t.decision(RoundCorrected, no)
	e.Was, e.AsDealt = was.Outcome, !legalDeal(&boxes)
	t.emit(e)
	t.settle(no, &f)
	w := t.insuredIn(no)
	at := byBox(&boxes)
	t.reconsider(&w, &at)
	past.keepOffers(&w)
	if no == t.Round.No {
		t.Round.Insured = w // what is void stays void
	}
	t.settleInsurance(&w, no, past.Outcome)
}

// redraw brings the round in hand in line with its correction.
func (t *step) redraw(boxes [6]Card) {
	r := &t.Round
	for i := range r.Cards[:r.N] {
		r.Cards[i].Card = boxes[r.Cards[i].Box-1]
		boxes[r.Cards[i].Box-1] = 0
	}
	for i, c := range boxes {
		if c != 0 && int(r.N) < len(r.Cards) {
			r.Cards[r.N] = Drawn{Card: c, Box: Box(i + 1), Shown: true, Counts: true}
			r.N++
		}
	}
	past := &t.Past[r.No-1]
	r.Outcome, r.Tags, r.Rev = past.Outcome, past.Tags, past.Rev
}

// insuredIn is the insurance of a decided round.
func (t *step) insuredIn(no uint16) (w insured) {
	if no == t.Round.No {
		return t.Round.Insured
	}
	for _, m := range t.Past[no-1].Made {
		if row := m &^ pastVoid; row != 0 {
			w.Made[w.N] = made{Row: row, Stage: t.Rules.InsuranceTable.Rows[row-1].Stage, Void: m&pastVoid != 0}
			w.N++
		}
	}
	return w
}

// manual takes cards by hand: for the round in hand or a new one, or, without
// cards, until it is said again. The lost reader then holds nothing.
func (t *step) manual(ans *Answer, a Alert) Refusal {
	if ans.Cards == [7]Card{} {
		t.accept(ans, a)
		t.Manual = !t.Manual
		t.release(ReaderLost)
		return 0
	}
	next := *t.State
	if !next.Round.Open {
		if next.Shoe.Phase != ShoeInPlay || next.Shoe.Left() < minRound {
			return RefusedNoRound
		}
		next.Round = Round{No: next.Shoe.Rounds + 1, Open: true}
	}
	if refusal := next.rearrange(ans.Cards); refusal != 0 {
		return refusal
	}
	t.accept(ans, a)
	if !t.Round.Open {
		t.begin()
	}
	old := t.Round
	next.Round.Free, next.Round.Order = old.Free, old.Order
	t.lay(&old, &next.Round, ans, false)
	t.release(ReaderLost)
	return 0
}

// release lets an alert stand without holding the table.
func (t *step) release(code Code) {
	if a := t.standing(code); a != nil {
		a.Holds = holdsNothing
	}
	t.resumeIfFree()
}

// reopen opens again the window that a pause closed. Only a supervisor does.
func (t *step) reopen(ans *Answer, a Alert) Refusal {
	w := &t.Round.Insured
	if !t.Round.Open || !w.ByPause || t.held() != holdsNothing || t.Round.situation().stage != w.Stage {
		return RefusedWindow
	}
	t.accept(ans, a)
	t.announceWindow()
	return 0
}

func (t *step) hasInsurance() bool {
	for _, m := range t.Round.Insured.Made[:t.Round.Insured.N] {
		if !m.Void {
			return true
		}
	}
	return false
}
