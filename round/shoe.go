package round

// count notes that a card left the shoe: every card is counted once, whatever
// becomes of it. It reports a card that cannot be of this shoe: one more copy
// than decks, or one more than the shoe holds (shoe.too_many).
func (t *step) count(d *Drawn) (wrong bool) {
	if d.Counts || d.Again { // dealt again: it was counted when it was drawn over
		return false
	}
	d.Counts = true
	d.Shoe = t.Shoe.No
	if t.standing(ShoeChangeUnproven) != nil {
		d.Shoe++ // once the change is confirmed it is counted there
	}
	t.Shoe.Out++
	if t.Shoe.Left() < 0 {
		t.raise(ShoeTooMany, Fact{Kind: FactShoeHolds}, Fact{Kind: FactOneMore})
		return true
	}
	return t.countFace(d.Card)
}

// countFace notes a face that the reader knows; as count.
func (t *step) countFace(c Card) (wrong bool) {
	if !c.Known() {
		return false
	}
	t.Shoe.Known[c.Index()]++
	t.watchOrder(c)
	if t.Shoe.Known[c.Index()] <= t.Shoe.Decks {
		return false
	}
	t.raise(ShoeTooMany, Fact{Kind: FactShoeHolds}, Fact{Kind: FactOneMore})
	return true
}

// countShown notes a face that the table has shown.
func (t *step) countShown(c Card) {
	if c.Known() {
		t.Shoe.Shown[c.Index()]++
	}
}

// shoeLoaded is a new shoe said by hand: an input, or the shoe button.
func (t *step) shoeLoaded(decks uint8) {
	if t.questioned() || !t.changeProven() && t.Rules.On[ShoeChangeUnproven] != SetAccept {
		t.raise(ShoeChangeUnproven, Fact{Kind: FactCutCardFirst}, Fact{Kind: FactNewShoe}).Decks = decks
		return
	}
	t.load(decks)
}

// questioned reports whether something about the shoe in hand still needs an
// answer, so that it cannot be put away yet.
func (t *step) questioned() bool {
	for i := range t.Alerts {
		if a := &t.Alerts[i]; a.Holds != holdsNothing && a.Code != ShoeBurn && a.Code != ShoeShort {
			return true
		}
	}
	return false
}

// changeProven: the cut card came out and no round is open, or no shoe was
// ever seen (game.md section 1: the first shoe needs no cut card before it),
// whatever number an earlier controller of the table had come to.
func (t *step) changeProven() bool {
	return t.Shoe.Phase == NoShoe || t.Shoe.CutOut && !t.Round.Open
}

// load puts a new shoe in play; a round still open is void.
func (t *step) load(decks uint8) {
	if t.Round.Open {
		t.voidRound(ShoeChangeUnproven, byVoid)
	}
	t.Rules = t.NextRules
	if decks == 0 {
		decks = t.Rules.Decks
	}
	if t.Shoe.Phase != ShoeOver {
		t.tellBurned()
	}
	t.Shoe = Shoe{No: t.Shoe.No + 1, Decks: decks}
	t.Round, t.Tally, t.Last = Round{}, Tally{}, Summary{}
	t.Next, t.NextFree, t.NextOrder = Queue{}, false, 0
	t.Usable = t.Waiting.keep(t.Shoe.No, t.Usable)
	t.Past = [maxRounds]Past{}
	t.SensorsOff = t.SensorsOff && t.Failing(BoxesDevice) // a new shoe brings no sensors back
	t.emit(Event{Kind: ShoeLoaded, Decks: decks, Cards: uint16(t.Shoe.Cards())})
	switch t.Rules.Burn {
	case BurnFirstCard:
		t.Shoe.Phase = ShoeFirst
	case BurnUnchecked:
		t.Shoe.Phase = ShoeBurning
	case BurnFixed:
		t.Shoe.BurnDue, t.Shoe.Phase = t.Rules.BurnCards, ShoeBurning
		t.burnMaybeDone()
	default:
		t.start()
	}
	t.clearAll(DoNewShoe.String(), ShoeBurn, ShoeShort, ShoeDrained, ShoeLateCard, ShoeSuspectOrder, ReaderUnread, DealExtraCard, ReaderOutOfGame)
	if t.Waiting.N == t.Usable {
		t.clearAll(DoNewShoe.String(), DealWhilePaused)
	}
	for i := range t.Waiting.Cards[:t.Waiting.N] {
		d := &t.Waiting.Cards[i]
		d.Counts = false
		t.count(d)
	}
}

// tellBurned gives the full view the burned cards' faces, now that their shoe
// is over.
func (t *step) tellBurned() {
	for _, c := range t.Shoe.Burned[:t.Shoe.NBurned] {
		if c.Known() {
			t.audit(Event{Kind: CardShown, To: ToBurn, Card: c})
		}
	}
}

// start puts the shoe in play, its burn done.
func (t *step) start() {
	s := &t.Shoe
	if s.NBurned > 0 || s.First != 0 {
		t.emit(Event{Kind: ShoeBurned, Cards: uint16(s.NBurned), Card: s.First})
	}
	s.Phase = ShoeInPlay
	t.emit(Event{Kind: ShoeStarted, Cards: s.Out})
}

// newShoeCard handles a card that can only belong to a new shoe. It reports
// whether it did; if not the card is dealt in the shoe in hand.
func (t *step) newShoeCard(d Drawn) bool {
	s := &t.Shoe
	opening := d.To == ToFirst || d.To == ToBurn
	switch {
	case s.Phase == NoShoe && d.To == ToFirst, opening && t.changeProven() && (s.Phase == ShoeOver || s.Rounds > 0):
	case s.Phase == NoShoe, opening && (s.Phase == ShoeOver || s.Rounds > 0):
		if t.Rules.On[ShoeChangeUnproven] != SetAccept {
			t.unproven(d)
			return true
		}
	default:
		return false
	}
	t.loadWith(d)
	return true
}

// unproven asks whether a card without a shoe, or opening one that nothing
// announced, is right. The card is kept with the question.
func (t *step) unproven(d Drawn) {
	seen := Fact{Kind: FactNoShoe}
	switch {
	case d.To == ToFirst:
		seen.Kind = FactFirstCard
	case d.To == ToBurn:
		seen.Kind = FactBurnCard
	}
	a := t.raise(ShoeChangeUnproven, Fact{Kind: FactCutCardFirst}, seen)
	if a.HasCard {
		t.hold(d)
		return
	}
	a.HasCard, a.Card = true, d
}

// loadWith loads a shoe whose first sign is a card. A card that the reader
// already deals to a hand says that the burn is behind it, unseen.
func (t *step) loadWith(d Drawn) {
	t.load(0)
	if d.To.Side() != 0 && t.Shoe.Phase != ShoeInPlay {
		t.start()
	}
	t.proposed(d)
}

// opening takes a card of a shoe that is not in play yet: its first card, a
// burned one, or one that shows that the burn went wrong.
func (t *step) opening(d Drawn) {
	s := &t.Shoe
	unchecked := t.Rules.Burn == BurnUnchecked
	switch {
	case s.Phase == ShoeFirst && (d.To == ToFirst || d.To == 0), unchecked && d.To == ToFirst && s.First == 0:
		t.firstCard(d)
	case s.Phase == ShoeBurning && (d.To == ToBurn || d.To == 0 && !unchecked):
		t.burn(d)
	case unchecked && d.To != ToFirst:
		t.start()
		t.deal(d)
	default:
		t.burnWrong(d)
	}
}

// firstCard is shown; its value says how many are burned: ace 1 … 9, ten and
// faces 10 (game.md section 1; seed 001).
func (t *step) firstCard(d Drawn) {
	t.Shoe.Phase = ShoeBurning
	t.Shoe.Account.Burned++ // it is burned with the others
	t.showOpening(d.Card)
}

func (t *step) showOpening(c Card) {
	s := &t.Shoe
	s.First = c
	t.countShown(c)
	t.emit(Event{Kind: CardShown, To: ToFirst, Card: c})
	if c.Known() && t.Rules.Burn == BurnFirstCard {
		if s.BurnDue = uint8(c.Value()); s.BurnDue == 0 {
			s.BurnDue = 10
		}
	}
}

// burn takes a card face down out of play.
func (t *step) burn(d Drawn) {
	t.putBurned(d)
	t.burnMaybeDone()
}

func (t *step) putBurned(d Drawn) {
	t.keepBurned(d.Card)
	t.emit(Event{Kind: CardDealt, To: ToBurn, Card: Masked})
}

// keepBurned remembers a burned card, for the full view once the shoe is over.
func (t *step) keepBurned(c Card) {
	s := &t.Shoe
	s.Account.Burned++
	if int(s.NBurned) < len(s.Burned) {
		s.Burned[s.NBurned] = c
		s.NBurned++
	}
}

// burnMaybeDone puts the shoe in play once all due cards are burned.
func (t *step) burnMaybeDone() {
	s := &t.Shoe
	checked := t.Rules.Burn == BurnFixed || s.First.Known()
	if t.Rules.Burn != BurnUnchecked && checked && s.NBurned == s.BurnDue {
		t.start()
	}
}

// burnWrong: cards burned differ from the first card's value. The card that
// showed it waits with the question, unless it is one more burned card.
func (t *step) burnWrong(d Drawn) {
	expected := Fact{Kind: FactBurn, N: uint16(t.Shoe.BurnDue)}
	if t.Shoe.Phase == ShoeFirst {
		expected = Fact{Kind: FactFirstCard}
	}
	if d.To == ToBurn {
		t.putBurned(d)
	}
	a := t.raise(ShoeBurn, expected, Fact{Kind: FactBurn, N: uint16(t.Shoe.NBurned)})
	if d.To != ToBurn {
		if a.HasCard {
			t.hold(d)
			return
		}
		a.HasCard, a.Card = true, d
	}
}

// cutCard announces the end of the shoe: the round in which it appears is the
// last, and when it comes between rounds the next one is (seed 001).
func (t *step) cutCard() {
	s := &t.Shoe
	switch {
	case s.CutOut: // by the reader and by a sensor of the table's own
		t.audit(Event{Kind: ReaderNoted, Note: NoteCutAgain})
		return
	case s.Phase == NoShoe:
		t.emit(Event{Kind: ShoeCutCard})
		return
	}
	s.CutOut = true
	s.LastNo = s.Rounds + uint16(t.Rules.RoundsAfterCut)
	if !t.Round.Open {
		s.LastNo++
	}
	if left := s.Left(); left < int(t.Rules.CutMin) || left > int(t.Rules.CutMax) {
		t.raise(ShoeCutPosition, Fact{Kind: FactCutRange, N: uint16(t.Rules.CutMin), M: uint16(t.Rules.CutMax)}, Fact{Kind: FactCardsInShoe, N: uint16(max(left, 0))})
	}
	last := !t.Round.Open && s.LastNo == s.Rounds+1 || t.Round.Open && s.LastNo == s.Rounds
	t.emit(Event{Kind: ShoeCutCard, Cards: s.Out, Last: last})
}

// lastRound reports whether the shoe ends with the round in hand.
func (s *Shoe) lastRound() bool { return s.CutOut && s.Rounds >= s.LastNo }

// endShoe: what still comes out is drained; only a new shoe goes on.
func (t *step) endShoe() {
	s := &t.Shoe
	s.Phase = ShoeOver
	t.Bets, t.Started = BetsUnknown, false
	t.tellBurned()
	t.emit(Event{Kind: ShoeEnded, Cards: s.Out})
	t.reconcile()
}

// reconcile says where every card of the shoe went.
func (t *step) reconcile() {
	shown := 0
	for _, n := range t.Shoe.Shown {
		shown += int(n)
	}
	t.emit(Event{Kind: ShoeReconciled, Cards: t.Shoe.Out, Shown: uint16(shown), Lost: uint16(max(t.Shoe.Left(), 0)), Account: t.Accounted()})
}

// Accounted says where the cards that left the shoe are now. Their sum is
// Shoe.Out, the cards of a round still open apart.
func (s *State) Accounted() Account {
	a := s.Shoe.Account
	a.Held += uint16(s.Next.N)
	for i := range s.Waiting.Cards[:s.Waiting.N] {
		if s.Waiting.Cards[i].Counts {
			a.Held++
		}
	}
	for i := range s.Alerts {
		al := &s.Alerts[i]
		if al.No != 0 && (al.HasCard && al.Card.Counts || al.Code == ReaderUnread && !al.HasCard) {
			a.Held++
		}
	}
	return a
}

// drain counts a card after the end of the shoe: one alert in all, unless bets
// or start said that a round begins (shoe.late_card).
func (t *step) drain(d Drawn) {
	t.emit(Event{Kind: CardDealt, Held: true, Card: Masked})
	if t.Bets != BetsUnknown || t.Started {
		a := t.raise(ShoeLateCard, Fact{Kind: FactNewShoe}, Fact{Kind: FactDrain})
		if a.HasCard {
			t.aside(d)
			return
		}
		a.HasCard, a.Card = true, d
		return
	}
	t.Shoe.Account.Drained++
	if !t.Shoe.OverTold {
		t.Shoe.OverTold = true
		t.raise(ShoeDrained, Fact{Kind: FactNewShoe}, Fact{Kind: FactDrain})
	}
}
