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
	d.Shown = true
	t.countShown(d.Card)
	t.layout()
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
	t.firstCard(Drawn{Card: c})
	t.countFace(c)
	t.burnMaybeDone()
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
	t.takeExtra()
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
		if d.Claim != d.Box {
			t.raise(ReaderDisagrees, Fact{Kind: FactCardDue, Box: d.Box}, Fact{Kind: FactCardAt, Box: d.Claim, Card: d.seen()})
		}
	}
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
		t.tooMuch(d)
	}
	r.N = due
}

// decideOrWait decides, unless the reader's verdict is against it or, by rule,
// still awaited.
func (t *step) decideOrWait() {
	r := &t.Round
	if r.CompleteAt == 0 {
		r.CompleteAt = t.at.UnixNano()
	}
	outcome, tags := t.judge()
	switch {
	case r.HasVerdict && !agrees(r.Verdict, outcome, tags):
		t.disagrees(outcome, tags)
	case !r.HasVerdict && !r.ReaderIgnored && t.Rules.Verdict == VerdictWait:
	default:
		if a := t.standing(ReaderNoVerdict); a != nil {
			t.clear(a.No, byReader)
		}
		t.decide(outcome, tags)
	}
}

// judge applies the totals to a complete round.
func (t *step) judge() (Outcome, Tags) {
	r := &t.Round
	p, b := r.Shown(Player), r.Shown(Banker)
	var tags Tags
	if Natural(Total(p.Cards[:2]...)) || Natural(Total(b.Cards[:2]...)) {
		tags |= TagNatural
	}
	if pair(p) {
		tags |= TagPlayerPair
	}
	if pair(b) {
		tags |= TagBankerPair
	}
	if p.Cards[0] == p.Cards[1] || b.Cards[0] == b.Cards[1] {
		tags |= TagPerfectPair
	}
	if r.Free {
		tags |= TagFreeHand
	}
	pt, _ := p.Total()
	bt, _ := b.Total()
	return OutcomeOf(pt, bt), tags
}

// pair: the first two cards are of equal rank; king and ten are no pair.
func pair(h Hand) bool { return h.Cards[0].Rank() == h.Cards[1].Rank() }

// decide closes the round with its outcome.
func (t *step) decide(outcome Outcome, tags Tags) {
	r := &t.Round
	r.Open, r.Decided = false, true
	t.record(outcome, tags)
	t.emit(t.decision(RoundDecided))
	if r.Free {
		t.emit(Event{Kind: FreeHandClosed, Round: r.No})
	}
	t.roundOver()
}

func (t *step) record(outcome Outcome, tags Tags) {
	r := &t.Round
	r.Outcome, r.Tags = outcome, tags
	t.Last = Summary{No: r.No, Rev: r.Rev, Outcome: outcome, Player: r.Shown(Player), Banker: r.Shown(Banker), Tags: tags}
	t.tally(1)
}

func (t *step) decision(kind EventKind) Event {
	r := &t.Round
	return Event{Kind: kind, Rev: r.Rev, Outcome: r.Outcome, Player: r.Shown(Player), Banker: r.Shown(Banker), Tags: r.Tags}
}

// tally adds the round in hand to the shoe's counts, or takes it out again.
func (t *step) tally(sign int) {
	r, n := &t.Round, &t.Tally
	add := func(to *uint16, yes bool) {
		if yes {
			*to = uint16(int(*to) + sign)
		}
	}
	add(&n.Rounds, true)
	add(&n.Player, r.Outcome == PlayerWins)
	add(&n.Banker, r.Outcome == BankerWins)
	add(&n.Tie, r.Outcome == Tie)
	add(&n.PlayerPair, r.Tags&TagPlayerPair != 0)
	add(&n.BankerPair, r.Tags&TagBankerPair != 0)
	add(&n.Natural, r.Tags&TagNatural != 0)
}

// roundOver ends the shoe when this was its last round.
func (t *step) roundOver() {
	if t.Shoe.lastRound() && t.Shoe.Phase == ShoeInPlay {
		t.endShoe()
	}
}

// voidRound cancels the round in hand: bets are refunded, its number is used
// up (game.md section 2). Its own alerts end with it.
func (t *step) voidRound(why Code, by string) {
	r := &t.Round
	if r.Decided {
		t.tally(-1)
		t.Last = Summary{}
	}
	r.Open, r.Decided, r.Void = false, false, true
	t.Tally.Void++
	t.emit(Event{Kind: RoundVoided, Code: why})
	for i := range r.Cards[:r.N] {
		if d := &r.Cards[i]; d.Card.Known() && !d.Shown {
			t.audit(Event{Kind: CardShown, Round: r.No, Hand: d.Box.Side(), Pos: d.Box.Pos(), Card: d.Card})
		}
	}
	t.clearAll(by, DealMissingCard, DealPushedBack, ReaderUnread, ReaderGapped, ReaderDisagrees, PowerMidRound)
	t.roundOver()
}
