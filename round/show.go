package round

// show takes the face of a card that the reader had masked. When a masked
// reader names a card the table has shown it (game.md section 4).
func (t *step) show(in *Input) {
	if in.Over {
		t.showOver(in.Card)
		return
	}
	if in.To == ToFirst {
		t.showFirst(in.Card)
		return
	}
	d := t.find(BoxOf(in.To.Side(), in.Pos))
	switch {
	case d == nil:
		t.note(NoteShowUnmatched)
	case d.Card == Masked:
		d.Card = in.Card
		t.countFace(in.Card)
		t.turn(d)
	case d.Card != in.Card && d.Shown:
		t.raise(ReaderDisagrees, Fact{Kind: FactFace, Box: d.Box, Card: d.Card}, Fact{Kind: FactFace, Box: d.Box, Card: in.Card})
	case d.Card != in.Card:
		d.Doubt = true // said when the table shows it
	}
}

// find is the card in a box of the round in hand. Until the box follows from
// shown faces the reader's own word, or being the only such card, finds it.
func (t *step) find(b Box) *Drawn {
	r := &t.Round
	if b == 0 || !r.Open && !r.Decided {
		return nil
	}
	var claimed, loose *Drawn
	looseN := 0
	for i := range r.Cards[:r.N] {
		d := &r.Cards[i]
		switch {
		case d.Box == b:
			return d
		case d.Box == 0 && d.Claim == b:
			claimed = d
		case d.Box == 0 && d.Claim == 0 && b.Pos() == 3:
			loose = d
			looseN++
		}
	}
	if claimed == nil && looseN == 1 {
		return loose
	}
	return claimed
}

// turn makes a card's face public.
func (t *step) turn(d *Drawn) {
	if d.Shown {
		return
	}
	if t.Round.Insured.Open {
		t.closeWindow(CloseShown)
	}
	d.Shown = true
	t.countShown(d.Card)
	t.layout()
	t.rematch()
	t.Round.ActedAt = t.now
	t.emit(Event{Kind: CardShown, Hand: d.Box.Side(), Pos: d.Box.Pos(), Card: d.Card})
	if d.Doubt {
		t.raise(ReaderDisagrees, Fact{Kind: FactFace, Box: d.Box, Card: d.Card}, Fact{Kind: FactNoSuchCard, Box: d.Box})
	}
}

// reveal is the table turning a box, or a whole hand.
func (t *step) reveal(b Box, hand Side) {
	for pos := uint8(1); pos <= 3; pos++ {
		at := BoxOf(hand, pos)
		if hand == 0 {
			at = b
		}
		d := t.find(at)
		switch {
		case d == nil || d.Shown:
		case d.Card.Known():
			t.turn(d)
		default:
			d.Turned = true
		}
		if hand == 0 {
			return
		}
	}
}

// showOver names an overdrawn card: it was seen, so it is out of play.
func (t *step) showOver(c Card) {
	a := t.standing(DealExtraCard)
	if a == nil || !a.HasCard || a.Card.Card != Masked {
		t.note(NoteShowUnmatched)
		return
	}
	a.Card.Card, a.Card.Named, a.Card.Shown = c, true, true
	t.countShown(c)
	t.emit(Event{Kind: CardShown, Outside: OutsideOverdraw, Card: c})
	t.countFace(c)
}

// showFirst names the first card of a masked shoe.
func (t *step) showFirst(c Card) {
	s := &t.Shoe
	if s.First != Masked {
		t.note(NoteShowUnmatched)
		return
	}
	t.countFace(c)
	t.showOpening(c)
	if s.Phase == ShoeBurning {
		t.burnMaybeDone()
	}
}

// advance goes on with the round in hand as far as what the table has shown,
// and what stands against it, allows. It is the only way to an outcome.
func (t *step) advance() {
	r := &t.Round
	if !r.Open {
		return
	}
	t.layout()
	t.checkBoxes()
	if !r.Open { // void by what the boxes told (deal.double_card=void)
		return
	}
	t.takeExtra()
	t.joinEarly()
	if t.held() == holdsAll {
		return
	}
	switch {
	case r.Due != 0 && r.HasVerdict:
		t.missing(Fact{Kind: FactVerdict, N: uint16(r.Verdict.Outcome)})
	case r.Due != 0 && r.Ended:
		t.missing(Fact{Kind: FactEnd})
	case r.Due != 0 && t.Shoe.Left() <= 0 && t.Waiting.N == 0:
		t.voidRound(ShoeShort, byVoid)
		t.raise(ShoeShort, Fact{Kind: FactSixCards}, Fact{Kind: FactCardsInShoe})
	case r.Complete:
		t.decideOrWait()
	default:
		t.openWindow()
	}
}

// checkBoxes compares the reader's own boxes with the rules, each once, as
// soon as the rules' box follows from what was shown.
func (t *step) checkBoxes() {
	r := &t.Round
	for i := range r.Cards[:r.N] {
		d := &r.Cards[i]
		if d.Agreed || d.Box == 0 || d.Claim == 0 || r.ReaderIgnored {
			continue
		}
		d.Agreed = true
		expected, seen := Fact{Kind: FactCardDue, Box: d.Box}, Fact{Kind: FactCardAt, Box: d.Claim, Card: d.seen()}
		switch {
		case d.Claim == d.Box:
		case t.skips(d.Claim, i):
			t.doubleCard(expected, seen)
		default:
			t.raise(ReaderDisagrees, expected, seen)
		}
		if !r.Open {
			return
		}
	}
}

// skips reports whether the reader's box leaves out a card of its hand.
func (t *step) skips(claim Box, i int) bool {
	inHand := uint8(0)
	for _, d := range t.Round.Cards[:i] {
		if d.Box.Side() == claim.Side() {
			inHand++
		}
	}
	return claim.Pos() > inHand+1
}

// takeExtra takes cards out of the round that turn out not to have been due,
// now that the faces are shown.
func (t *step) takeExtra() {
	r := &t.Round
	if !r.Complete {
		return
	}
	due := r.N
	for due > 0 && r.Cards[due-1].Box == 0 {
		due--
	}
	for i := due; i < r.N; i++ {
		d := r.Cards[i]
		r.Cards[i] = Drawn{}
		if b := r.Lies[i]; b != 0 {
			t.Early[b] = Early{At: t.now, Card: r.Sensed[b], Judged: true}
			r.Lies[i], r.WrongSince[i] = 0, 0
		}
		t.tooMuch(d)
	}
	r.N = due
}

// decideOrWait decides, unless the reader's verdict is against it or, by rule,
// still awaited.
func (t *step) decideOrWait() {
	r := &t.Round
	if r.CompleteAt == 0 {
		r.CompleteAt = t.now
	}
	f := resultOf(r.Shown(Player), r.Shown(Banker))
	switch {
	case t.watched() && (!t.allPlaced() || t.strangerDue() != 0):
		return // with sensors the outcome waits for the last due placement
	case r.HasVerdict && !agrees(r.Verdict, f.Outcome, f.Tags):
		t.disagrees(f.Outcome, f.Tags)
	case !r.HasVerdict && !r.ReaderIgnored && t.Rules.Verdict == VerdictWait:
	default:
		t.decide(&f)
	}
}

// decide closes the round with its outcome and settles it.
func (t *step) decide(f *Result) {
	r := &t.Round
	t.closeWindow(CloseOutcome)
	r.Open, r.Decided, r.Outcome, r.Tags = false, true, f.Outcome, f.Tags
	if r.Free {
		r.Tags |= TagFreeHand
	}
	past := &t.Past[r.No-1]
	*past = Past{Outcome: r.Outcome, Tags: r.Tags}
	for i := range r.Cards[:r.N] {
		past.Boxes[r.Cards[i].Box-1] = r.Cards[i].Card
	}
	past.keepOffers(&r.Insured)
	t.Last = t.summary(r.No)
	t.tally(1, r.Outcome, r.Tags)
	t.Shoe.Account.Rounds += uint16(r.N)
	t.clearAll(byReader, ReaderNoVerdict)
	t.clearAll(byCard, DealLate)
	t.emit(t.decision(RoundDecided, r.No))
	t.settle(r.No, f)
	t.settleInsurance(&r.Insured, r.No, r.Outcome)
	if r.Free {
		t.emit(Event{Kind: FreeHandClosed, Round: r.No})
	}
	t.roundOver()
}

// settle gives the result of every bet. A free hand has none.
func (t *step) settle(no uint16, f *Result) {
	past := &t.Past[no-1]
	if past.Tags&TagFreeHand != 0 {
		return
	}
	e := Event{Kind: RoundSettled, Round: no, Rev: past.Rev}
	e.Settled, e.NBets = t.Rules.settle(f, no)
	t.emit(e)
}

// summary is a decided round as it stands.
func (t *step) summary(no uint16) Summary {
	past := &t.Past[no-1]
	return Summary{No: no, Rev: past.Rev, Outcome: past.Outcome, Tags: past.Tags,
		Player: handOf(&past.Boxes, Player), Banker: handOf(&past.Boxes, Banker)}
}

func (t *step) decision(kind EventKind, no uint16) Event {
	s := t.summary(no)
	return Event{Kind: kind, Round: no, Rev: s.Rev, Outcome: s.Outcome, Player: s.Player, Banker: s.Banker, Tags: s.Tags}
}

// tally adds a round to the shoe's counts, or takes it out again.
func (t *step) tally(sign int, outcome Outcome, tags Tags) {
	n := &t.Tally
	add := func(to *uint16, yes bool) {
		if yes {
			*to = uint16(int(*to) + sign)
		}
	}
	add(&n.Rounds, true)
	add(&n.Player, outcome == PlayerWins)
	add(&n.Banker, outcome == BankerWins)
	add(&n.Tie, outcome == Tie)
	add(&n.PlayerPair, tags&TagPlayerPair != 0)
	add(&n.BankerPair, tags&TagBankerPair != 0)
	add(&n.Natural, tags&TagNatural != 0)
}

// roundOver ends the shoe when this was its last round.
func (t *step) roundOver() {
	if t.Shoe.lastRound() && t.Shoe.Phase == ShoeInPlay {
		t.endShoe()
	}
}

// lastDecided is the shoe's newest decided round; none, if there is none.
func (t *step) lastDecided() Summary {
	for no := t.Shoe.Rounds; no > 0; no-- {
		if t.Past[no-1].Outcome != 0 {
			return t.summary(no)
		}
	}
	return Summary{}
}

// voidRound cancels the round in hand: bets are refunded, its number is used
// up (game.md section 2). Its own alerts end with it.
func (t *step) voidRound(why Code, by string) {
	r := &t.Round
	if r.Decided {
		t.tally(-1, r.Outcome, r.Tags)
		t.Past[r.No-1] = Past{}
		t.Last = t.lastDecided()
		t.Shoe.Account.Rounds -= uint16(r.N)
	}
	t.Shoe.Account.Void += uint16(r.N)
	if a := t.standing(ReaderUnread); a != nil {
		t.Shoe.Account.Void++ // the card that was not read, or its re-read
	}
	r.Open, r.Decided, r.Void = false, false, true
	t.Tally.Void++
	t.emit(Event{Kind: RoundVoided, Code: why})
	for i := range r.Cards[:r.N] {
		if d := &r.Cards[i]; d.Card.Known() && !d.Shown {
			t.audit(Event{Kind: CardShown, Round: r.No, Hand: d.Box.Side(), Pos: d.Box.Pos(), Card: d.Card})
		}
	}
	if t.voidInsurance(why) {
		t.settleInsurance(&r.Insured, r.No, 0)
	}
	t.clearAll(by, DealMissingCard, DealPushedBack, DealDoubleCard, DealWrongBox, DealWrongBoxLate, DealNotPlaced, DealLate,
		ReaderUnread, ReaderGapped, ReaderDisagrees, ReaderNoVerdict, PowerMidRound)
	t.roundOver()
}
