package round

// answer applies what a person decided about an alert. Originals are never
// overwritten: a correction is a new fact beside them.
func (t *step) answer(ans *Answer) {
	a, refusal := t.asked(ans)
	if refusal == 0 {
		refusal = t.apply(ans, a)
	}
	if refusal != 0 {
		t.emit(Event{Kind: AnswerRefused, Do: ans.Do, By: ans.By, Refusal: refusal})
	}
}

// asked finds the alert that is answered: the one named, or the oldest that
// allows the answer.
func (t *step) asked(ans *Answer) (Alert, Refusal) {
	for i := range t.Alerts {
		a := &t.Alerts[i]
		switch {
		case a.No == 0 || ans.Alert != 0 && a.No != ans.Alert:
		case a.allows(ans.Do):
			return *a, 0
		case ans.Alert != 0:
			return Alert{}, RefusedNotForAlert
		}
	}
	return Alert{}, RefusedNoAlert
}

func (t *step) apply(ans *Answer, a Alert) Refusal {
	switch ans.Do {
	case DoResume:
		return t.resume(ans, a)
	case DoAck:
		t.accept(ans, a)
		t.emit(Event{Kind: AlertAcked, Alert: a.No, Code: a.Code, By: ans.By})
		t.clear(a.No, ans.By)
	case DoConfirm:
		return t.confirm(ans, a)
	case DoCorrect:
		return t.correct(ans, a)
	case DoVoid:
		return t.void(ans, a)
	case DoHoldCard:
		return t.holdCard(ans, a)
	case DoNewShoe:
		return t.newShoe(ans, a)
	default:
		return RefusedNotForAlert
	}
	return 0
}

func (t *step) accept(ans *Answer, a Alert) {
	t.emit(Event{Kind: AnswerAccepted, Do: ans.Do, By: ans.By, Alert: a.No, Code: a.Code, Where: ans.Where})
}

// resume goes on as things are. Refused while an alert that holds the table
// lacks its own answer.
func (t *step) resume(ans *Answer, a Alert) Refusal {
	if t.heldBesides(a.Code) {
		return RefusedBlocked
	}
	t.accept(ans, a)
	t.clear(a.No, ans.By)
	return 0
}

// confirm accepts what the alert proposes: the round as it was tracked, the
// re-read card, the shoe as it is.
func (t *step) confirm(ans *Answer, a Alert) Refusal {
	switch {
	case a.Code == ReaderUnread && !a.HasCard:
		return RefusedNothingToConfirm
	case a.Code == ShoeChangeUnproven && t.heldSince(a.No):
		return RefusedBlocked
	}
	t.accept(ans, a)
	switch a.Code {
	case ReaderUnread:
		t.clear(a.No, ans.By)
		t.proposed(a.Card)
	case ReaderDisagrees:
		t.Round.ReaderIgnored, t.Round.HasVerdict = true, false
		t.clear(a.No, ans.By)
	case ShoeBurn:
		if t.Shoe.Phase != ShoeInPlay {
			t.start()
		}
		t.clear(a.No, ans.By)
		if a.HasCard {
			t.proposed(a.Card)
		}
	case ShoeChangeUnproven:
		t.clear(a.No, ans.By)
		if a.HasCard {
			t.loadWith(a.Card)
		} else {
			t.load(a.Decks)
		}
	default:
		t.clear(a.No, ans.By)
	}
	return 0
}

// heldSince reports whether a question older than alert no holds the table.
func (t *step) heldSince(no uint32) bool {
	for i := range t.Alerts {
		if o := &t.Alerts[i]; o.No != 0 && o.No < no && o.Holds != holdsNothing && o.Code != ShoeBurn && o.Code != ShoeShort {
			return true
		}
	}
	return false
}

// void cancels the round. A shoe that is out (shoe.too_many) still needs its
// new_shoe afterwards.
func (t *step) void(ans *Answer, a Alert) Refusal {
	r := &t.Round
	if !r.Open && !(r.Decided && a.Round == r.No) && a.Code == ShoeTooMany {
		return RefusedNoRound
	}
	t.accept(ans, a)
	if r.Open || r.Decided && a.Round == r.No {
		t.voidRound(a.Code, ans.By)
	}
	if a.Code != ShoeTooMany {
		t.clear(a.No, ans.By)
	}
	return 0
}

// newShoe takes the shoe out. Cards that waited in it go with it.
func (t *step) newShoe(ans *Answer, a Alert) Refusal {
	switch {
	case t.Round.Open:
		return RefusedRoundOpen
	case t.standing(ReaderDisagrees) != nil:
		return RefusedBlocked // it is about a round of the shoe in hand
	}
	t.accept(ans, a)
	t.load(a.Decks)
	t.clearAll(ans.By, ShoeChangeUnproven, ShoeTooMany)
	if a.Code == ShoeChangeUnproven && a.HasCard {
		t.proposed(a.Card)
	}
	return 0
}

// holdCard says where a held card goes. A card whose face somebody saw cannot
// open the next round.
func (t *step) holdCard(ans *Answer, a Alert) Refusal {
	where := ans.Where
	switch {
	case where == WhereNextRound && ans.Exposed:
		return RefusedExposed
	case a.Code == DealExtraCard && !a.HasCard:
		return RefusedNoCard
	case where == 0, a.Code == DealExtraCard && where == WhereUse, a.Code == DealWhilePaused && where == WhereFreeHand:
		return RefusedWhere
	}
	t.accept(ans, a)
	t.clear(a.No, ans.By)
	switch {
	case a.Code == DealExtraCard:
		t.disposeOf(a.Card, where)
	case where == WhereUse:
		t.Usable = t.Waiting.N // dealt when nothing holds the table any more
	default:
		for t.Waiting.N > t.Usable {
			t.disposeOf(t.Waiting.take(t.Usable), where)
		}
	}
	return 0
}

// disposeOf puts a held card where it was decided to go. It is counted already.
func (t *step) disposeOf(d Drawn, where Where) {
	switch where {
	case WhereBurn:
		if int(t.Shoe.NBurned) < len(t.Shoe.Burned) {
			t.Shoe.Burned[t.Shoe.NBurned] = d.Card
			t.Shoe.NBurned++
		}
	case WhereNextRound, WhereFreeHand:
		t.Next.push(d)
		t.NextFree = t.NextFree || where == WhereFreeHand
	}
}

// correct says which cards lie in which boxes. What it says is shown by it.
// In a round already decided it must not change who had to draw.
func (t *step) correct(ans *Answer, a Alert) Refusal {
	old := t.Round
	if !old.Open && !old.Decided || ans.Round != 0 && ans.Round != old.No {
		return RefusedNoRound
	}
	next := t.State
	if refusal := next.rearrange(ans.Cards); refusal != 0 {
		return refusal
	}
	if old.Decided && (!next.Round.Complete || next.Round.N != old.N) {
		return RefusedDraw
	}
	t.accept(ans, a)
	t.recount(&old, &next.Round, a.Code == ReaderUnread)
	t.Round = next.Round
	for b := P1; b <= B3; b++ {
		if c := ans.Cards[b]; c != 0 {
			t.emit(Event{Kind: CardShown, Round: old.No, Hand: b.Side(), Pos: b.Pos(), Card: c})
		}
	}
	t.Round.ReaderIgnored, t.Round.HasVerdict = true, false
	if old.Decided && t.Round.Cards != old.Cards {
		t.redecide(old)
	}
	t.clear(a.No, ans.By)
	if t.Waiting.N == t.Usable {
		if w := t.standing(DealWhilePaused); w != nil {
			t.clear(w.No, ans.By)
		}
	}
	return 0
}

// rearrange lays the named cards into the round in hand, if that is a deal
// that the rules allow.
func (s *State) rearrange(cards [7]Card) Refusal {
	var at [7]Drawn
	r := &s.Round
	loose := Queue{}
	for _, d := range r.Cards[:r.N] {
		if d.Box == 0 {
			loose.push(d)
		} else {
			at[d.Box] = d
		}
	}
	for b, c := range cards {
		if c == Masked {
			return RefusedCards
		}
		if c != 0 {
			at[b] = Drawn{Card: c, Box: Box(b), Shown: true, Counts: true}
		}
	}
	r.N, r.Cards = 0, [6]Drawn{}
	t := step{State: *s}
	for n := 0; n < len(r.Cards); n++ {
		t.layout()
		d := at[t.Round.Due]
		at[t.Round.Due] = Drawn{}
		if t.Round.Due == 0 || d.Card == 0 {
			break
		}
		t.Round.Cards[t.Round.N] = d
		t.Round.N++
	}
	for loose.N > 0 && t.Round.N < 6 && t.Round.N >= 4 {
		t.Round.Cards[t.Round.N] = loose.pop()
		t.Round.N++
	}
	t.layout()
	for _, left := range at[P1:] {
		if left.Card != 0 {
			return RefusedDraw
		}
	}
	*s = t.State
	return 0
}

// recount brings the count of the shoe's cards in line with a correction. A
// card that was not in the round before is the oldest one held, when it has
// that face or none; else it left the shoe without being seen.
func (t *step) recount(old, now *Round, unreadCounted bool) {
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
		if before.Card == d.Card {
			continue
		}
		switch {
		case before.Card.Known():
			t.Shoe.Known[before.Card.Index()]--
		case before.Card == Masked:
		case t.Waiting.N > 0 && (t.Waiting.Cards[0].Card == d.Card || t.Waiting.Cards[0].Card == Masked):
			t.Usable -= min(t.Usable, 1)
			if t.Waiting.pop().Card == d.Card {
				continue
			}
		case unreadCounted:
			unreadCounted = false
		default:
			t.Shoe.Out++
		}
		t.countFace(d.Card)
	}
}

// redecide publishes the decision of a corrected round.
func (t *step) redecide(old Round) {
	t.tally(-1)
	t.Round.Rev++
	outcome, tags := t.judge()
	t.record(outcome, tags|TagCorrected)
	e := t.decision(RoundCorrected)
	e.Was = old.Outcome
	t.emit(e)
}
