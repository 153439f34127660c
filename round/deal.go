package round

// dealOrders is the box of each of the first four cards (game.md section 1).
var dealOrders = [...][4]Box{
	DealAlternate: {P1, B1, P2, B2},
	DealPairs:     {P1, P2, B1, B2},
}

// card takes a card that left the shoe.
func (t *step) card(in *Input) {
	d := Drawn{Card: in.Card, To: in.To, Again: in.Again && in.Outside == 0, Claim: BoxOf(in.To.Side(), in.Pos), At: t.now}
	switch {
	case in.Outside == 0:
		now, gap := t.now, ms(t.Rules.CardGapMS)
		d.Quick = now > t.LastDrawAt && now-t.LastDrawAt < gap
		t.LastDrawAt = now
		t.arrive(d)
	case in.Outside == OutsideOverdraw:
		d.Over = true
		t.count(&d)
		t.extra(d)
	case in.Outside == OutsideLock && t.GateLocked && t.Shoe.Phase == ShoeInPlay:
		t.count(&d) // the lock is ours because none is due
		t.extra(d)
	default:
		t.count(&d)
		t.Shoe.Account.OutOfGame++
		t.emit(Event{Kind: CardDealt, Outside: in.Outside, Card: Masked})
		expected, seen := Fact{Kind: FactGameCards}, Fact{Kind: FactCard, Card: Masked}
		if t.Rules.On[ReaderOutOfGame] == SetPause {
			t.raise(ReaderOutOfGame, expected, seen)
			return
		}
		t.remark(ReaderOutOfGame, expected, seen)
	}
}

// arrive takes a card of the game, fresh from the shoe or held until now.
func (t *step) arrive(d Drawn) {
	if t.Manual {
		t.note(NoteManual)
		return
	}
	if a := t.standing(ReaderUnread); a != nil && !a.HasCard && !d.Counts && !d.Again {
		t.reread(a, d)
		return
	}
	if t.held() != holdsNothing && !t.clearsMissing(&d) && !t.moreBurn(&d) {
		t.hold(d)
		return
	}
	t.use(d)
}

// proposed takes the card that an alert had kept with its question, now that
// it is confirmed. It was drawn before all cards that wait.
func (t *step) proposed(d Drawn) {
	if t.heldBesides(DealWhilePaused) {
		t.count(&d)
		if out := t.Waiting.pushFront(d); out.Counts {
			t.Shoe.Account.OutOfGame++
		}
		t.Usable = min(t.Usable+1, t.Waiting.N)
		return
	}
	t.use(d)
}

// useWaiting deals the held cards that an answer released, once nothing holds
// the table any more. Any of them may hold it again.
func (t *step) useWaiting() {
	for t.Usable > 0 && t.held() == holdsNothing {
		t.Usable--
		t.use(t.Waiting.pop())
		t.advance()
	}
}

// use puts a card where it belongs: a new shoe's, burned, dealt, or drained.
func (t *step) use(d Drawn) {
	if d.Again {
		t.again(d)
		return
	}
	if t.newShoeCard(d) {
		return
	}
	if wrong := t.count(&d); wrong && t.Round.Open {
		t.place(d) // the record stays whole, the outcome waits
		return
	}
	switch t.Shoe.Phase {
	case ShoeFirst, ShoeBurning:
		t.opening(d)
	case ShoeOver:
		t.drain(d)
	default:
		if d.To == ToFirst || d.To == ToBurn {
			t.burnWrong(d)
			return
		}
		t.deal(d)
	}
}

// deal takes a card in play: due in the round in hand, the first of the next,
// or one too many.
func (t *step) deal(d Drawn) {
	r := &t.Round
	switch {
	case t.standing(ShoeTooMany) != nil || t.standing(ShoeForeignCard) != nil:
		t.hold(d)
	case r.Open && d.Claim == P1 && !r.ReaderIgnored && r.N > 0:
		t.missing(Fact{Kind: FactNextRound})
		t.hold(d)
	case r.Open && (int(r.N) == len(r.Cards) || r.Complete):
		t.extra(d)
	case r.Open:
		t.place(d)
	case t.opens(&d):
		t.open(d)
	default:
		t.extra(d)
	}
}

// opens reports whether this card may open a round (rule round_start).
func (t *step) opens(d *Drawn) bool {
	switch t.Rules.RoundStart {
	case StartFirstCard:
		return true
	case StartBets:
		return t.Bets != BetsUnknown
	case StartButton:
		return t.Started
	case StartBoxes:
		return t.Cleared || t.SensorsOff // nobody can tell any more
	}
	return d.Claim == P1
}

// minRound is how many cards a round may need: with fewer left in the shoe it
// is not begun (game.md section 1).
const minRound = 6

// open begins a round with its first card, and before that with the cards
// that were held for it.
func (t *step) open(d Drawn) {
	if t.Shoe.Left()+int(t.Next.N)+1 < minRound {
		a := t.raise(ShoeShort, Fact{Kind: FactSixCards}, Fact{Kind: FactCardsInShoe, N: uint16(max(t.Shoe.Left()+1, 0))})
		a.HasCard, a.Card = true, d
		return
	}
	early := t.Rules.RoundStart == StartBets && t.Bets == BetsOpen
	t.begin()
	for t.Next.N > 0 && t.Round.Open {
		held := t.Next.pop()
		// The reader did not deal this card into the round: from here on its
		// own boxes are one behind.
		t.Round.ReaderIgnored = t.Round.ReaderIgnored || !held.Over
		t.place(held)
	}
	if !t.Round.Open {
		t.hold(d)
		return
	}
	t.place(d)
	if early {
		t.early()
	}
}

// begin opens the next round, without cards yet.
func (t *step) begin() {
	t.Shoe.Rounds++
	t.Round, t.joined = Round{No: t.Shoe.Rounds, Open: true, Free: t.NextFree, Order: t.NextOrder}, 0
	t.Bets, t.Started, t.Cleared, t.NextFree, t.NextOrder = BetsUnknown, false, false, false, 0
	t.BetsCloseAt = 0
	t.Closed = false // whatever was said, it deals
	if t.Round.Free {
		t.emit(Event{Kind: FreeHandOpened})
		return
	}
	t.emit(Event{Kind: RoundOpened, Bets: t.Rules.openBets(t.Round.No)})
}

// early: a card before bets were closed closes them; the round is dealt, or
// void where the house says so.
func (t *step) early() {
	t.raiseOrVoid(DealEarly, Fact{Kind: FactBetsClosed}, Fact{Kind: FactCard, Card: Masked})
}

// place puts a card into the round in hand, in draw order.
func (t *step) place(d Drawn) {
	r := &t.Round
	if int(r.N) == len(r.Cards) {
		t.hold(d)
		return
	}
	if r.Insured.Open {
		t.closeWindow(CloseCard)
		t.remark(InsuranceEarlyDeal, Fact{Kind: FactWindowOpen}, Fact{Kind: FactCard, Card: Masked})
	}
	t.clearAll(byCard, DealLate)
	r.LateTold = false
	d.Shown = d.Card.Known() && (t.Rules.Reveal == RevealOnDraw || d.Turned || d.Shown)
	i := r.N
	r.Cards[i] = d
	r.N++
	t.joined++
	r.DrawnAt[i], r.ActedAt = t.now, t.now
	t.layout()
	placed := &r.Cards[i]
	if placed.Shown {
		t.countShown(placed.Card)
	}
	t.emit(Event{Kind: CardDealt, Hand: placed.Box.Side(), Pos: placed.Box.Pos(), Card: placed.seen()})
	if d.Quick {
		t.doubleCard(Fact{Kind: FactGapAfter, N: uint16(min(t.Rules.CardGapMS, 65535))}, Fact{Kind: FactCard, Card: Masked})
	}
}

// doubleCard: two cards left the shoe together, or the reader skipped a card
// of a hand (deal.double_card).
func (t *step) doubleCard(expected, seen Fact) {
	t.raiseOrVoid(DealDoubleCard, expected, seen)
}

// layout works out, from the faces that the table has shown, which box each
// drawn card belongs in and which is due next. It is the dealing order and the
// draw table applied once more; nothing else decides a box.
func (t *step) layout() {
	r := &t.Round
	r.Due, r.Complete = 0, false
	for i := 4; i < len(r.Cards); i++ {
		r.Cards[i].Box = 0
	}
	order := &dealOrders[t.Rules.DealOrder]
	var at [7]Card // by Box, faces shown
	for i := 0; i < 4; i++ {
		if i == int(r.N) {
			r.Due = order[i]
			return
		}
		r.Cards[i].Box = order[i]
		if at[order[i]] = r.Cards[i].seen(); !at[order[i]].Known() {
			at[order[i]] = 0
		}
	}
	if at[P1] == 0 || at[P2] == 0 || at[B1] == 0 || at[B2] == 0 {
		return
	}
	third, known := Card(0), true
	for n := 4; ; n++ {
		box := dueThird(at, third)
		if box == 0 || n == int(r.N) {
			r.Due, r.Complete = box, box == 0 && known
			return
		}
		if box == P3 {
			third = r.Cards[n].seen()
		}
		r.Cards[n].Box = box
		at[box] = r.Cards[n].seen()
		if !at[box].Known() {
			known = false
			if box == P3 {
				return // Banker's draw hangs on a face not shown yet
			}
		}
	}
}

// dueThird is the draw table: the box of the next third card given the faces
// in their boxes, 0 when both hands are complete.
func dueThird(at [7]Card, third Card) Box {
	player, banker := Total(at[P1], at[P2]), Total(at[B1], at[B2])
	switch {
	case Natural(player) || Natural(banker):
		return 0
	case at[P3] == 0 && PlayerDraws(player):
		return P3
	case at[B3] != 0:
		return 0
	case third != 0 && BankerDraws(banker, third.Value()), third == 0 && BankerDrawsAlone(banker):
		return B3
	}
	return 0
}

// extra holds a card that is not due (deal.extra_card).
func (t *step) extra(d Drawn) {
	t.emit(Event{Kind: CardDealt, Outside: outsideOf(&d), Held: true, Card: Masked})
	t.tooMuch(d)
}

// tooMuch asks what to do with a card that is not due, unless the house has
// decided. The outcome of the finished round stands; the next round waits.
func (t *step) tooMuch(d Drawn) {
	expected, seen := Fact{Kind: FactNoCardDue}, Fact{Kind: FactCard, Card: Masked}
	if d.Over {
		seen = Fact{Kind: FactOverdraw}
	}
	a := t.standing(DealExtraCard)
	if a != nil && a.HasCard {
		t.aside(d)
		return
	}
	if where := automatic[t.Rules.On[DealExtraCard]]; where != 0 {
		if a != nil {
			t.clear(a.No, byRule)
		} else {
			t.tell(DealExtraCard, expected, seen)
		}
		t.disposeOf(d, where)
		return
	}
	if a == nil {
		a = t.raise(DealExtraCard, expected, seen)
	}
	a.HasCard, a.Card = true, d
}

// automatic is where a card goes that the house decided about beforehand.
var automatic = [...]Where{
	SetNextRound: WhereNextRound,
	SetBurn:      WhereBurn,
	SetFreeHand:  WhereFreeHand,
	SetPause:     0,
}

func outsideOf(d *Drawn) Outside {
	if d.Over {
		return OutsideOverdraw
	}
	return 0
}

// hold keeps a card drawn while the table is paused (deal.while_paused).
func (t *step) hold(d Drawn) {
	t.count(&d)
	t.emit(Event{Kind: CardDealt, Held: true, Card: Masked})
	t.aside(d)
}

func (t *step) aside(d Drawn) {
	if !t.Waiting.push(d) {
		if d.Counts {
			t.Shoe.Account.OutOfGame++ // its place in the order is lost
		}
		t.raise(ReaderGapped, Fact{Kind: FactTablePaused}, Fact{Kind: FactHeldOverflow, N: queueRoom})
		return
	}
	t.raise(DealWhilePaused, Fact{Kind: FactTablePaused}, Fact{Kind: FactCard, Card: Masked})
}

// again is a card that the reader deals once more. Only one means anything:
// the first of a round, while a card that it had overdrawn and not named is
// held. It was counted when it was drawn (angel.md).
func (t *step) again(d Drawn) {
	if d.Claim != P1 || t.Round.Open || t.Next.N == 0 || !t.Next.Cards[0].Over {
		t.note(NoteAgainUnexpected)
		return
	}
	held := t.Next.pop()
	if held.Card == Masked && d.Card.Known() {
		held.Card = d.Card
		t.countFace(d.Card)
	}
	held.Claim, held.To = d.Claim, d.To
	t.open(held)
}

// missing: something says that the round is over although a card is due.
func (t *step) missing(seen Fact) {
	expected := Fact{Kind: FactCardDue, Box: t.Round.Due}
	if t.Round.Due == 0 {
		expected = Fact{Kind: FactDealing}
	}
	t.Round.Ended, t.Round.HasVerdict = false, false
	t.raise(DealMissingCard, expected, seen)
}

// clearsMissing: the due card itself answers deal.missing_card, when nothing
// else holds the table.
func (t *step) clearsMissing(d *Drawn) bool {
	a := t.standing(DealMissingCard)
	r := &t.Round
	if a == nil || !r.Open || r.Due == 0 || d.Counts || d.To == ToFirst || d.To == ToBurn || d.Again {
		return false
	}
	if d.Claim != 0 && d.Claim != r.Due && !r.ReaderIgnored {
		return false
	}
	for i := range t.Alerts {
		if o := &t.Alerts[i]; o.No != 0 && o.No != a.No && o.Holds != holdsNothing {
			return false
		}
	}
	t.clear(a.No, byCard)
	return true
}

// moreBurn: burned cards beyond the first card's value are one question, not
// cards held.
func (t *step) moreBurn(d *Drawn) bool {
	a := t.standing(ShoeBurn)
	return a != nil && !a.HasCard && d.To == ToBurn && t.PausedBy == ShoeBurn
}
