package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"shoed/round"
)

// kind is how a table's reader reports its cards.
type kind uint8

const (
	readerOpen   kind = iota + 1 // face, box and verdict: Angel Eye in open mode
	readerBare                   // the face and nothing else: no box, no numbered telegrams, no verdict
	readerMasked                 // box and verdict; faces are named just before the verdict
)

// tells reports whether the reader keeps the rules itself: it says boxes,
// overdraws, its errors and a verdict. A box that it says is what its own rules
// ask for next: it cannot see where a card lands.
func (r kind) tells() bool { return r != readerBare }

// setting is the equipment of a table with the house rules that go with it.
type setting struct {
	Placement round.PlacementRule
	Reader    kind
	Reveal    round.RevealRule
	Start     round.RoundStart
}

// watched reports whether sensors see the boxes.
func (s setting) watched() bool { return s.Placement != round.PlacementNone }

// rules are the defaults with the setting's own, with the gap of a serial line,
// with rates that the dealer lays out and Player's hand turned first, so that
// mistakes in these can be made.
func (s setting) rules(decks uint8) round.Rules {
	r := round.DefaultRules()
	r.Decks, r.Placement, r.Reveal, r.RoundStart = decks, s.Placement, s.Reveal, s.Start
	r.CardGapMS = 150
	r.InsurancePost, r.RevealOrder = round.PostDealer, round.RevealPlayerFirst
	return r
}

// table is a table in a setting with a dealer who makes no mistake and equipment
// that reports what he does. It belongs to one goroutine.
type table struct {
	setting
	Decks  uint8
	Behind int // cards behind the cut card; 0 for a shoe without one

	cards, pace *rand.Rand
	shoe        *Shoe
	first       round.Card // of the shoe
	last        bool       // the cut card is out: a new shoe is next
}

// newTable is a table that has no shoe yet. Equal seeds deal alike.
func newTable(s setting, decks uint8, behind int, seed uint64) *table {
	return &table{setting: s, Decks: decks, Behind: behind,
		cards: rand.New(rand.NewPCG(seed, 1)), pace: rand.New(rand.NewPCG(seed, 2))}
}

// clone is a table with the same shoe, whose dealer has another pace.
func (t *table) clone(pace uint64) *table {
	c := *t
	if t.shoe != nil {
		c.shoe = &Shoe{cards: slices.Clone(t.shoe.cards), behind: t.shoe.behind}
	}
	c.cards, c.pace = rand.New(rand.NewPCG(pace, 1)), rand.New(rand.NewPCG(pace, 2))
	return &c
}

// moment is what a beat is of the play.
type moment uint8

const (
	opening  moment = iota + 1 // a new shoe, its first card, its burn
	signal                     // bets, or the start button
	draw                       // a card leaves the shoe
	place                      // it lies in its box
	turn                       // the table turns it, or its hand
	rates                      // the dealer lays out insurance
	closing                    // and closes the window
	naming                     // a masked reader names a card
	ruling                     // the reader's verdict
	clearing                   // a card is taken off the table
	cutting                    // the cut card comes out
	quiet                      // nothing for a while
	mishap                     // what no clean round has
)

// beat is one thing that happens and what the equipment says of it.
type beat struct {
	wait time.Duration // since the beat before
	in   round.Input
	of   moment
	card int // of the round or of the opening, from 0, that it belongs to
	lays laying

	garbled bool // what the reader says of it does not arrive as a telegram

	// A mistake first shows at the marked beat: by that input, or with a limit
	// within this time after it.
	mark   bool
	limit  time.Duration
	ifOpen bool // there is no mistake unless an insurance window is open just before
}

// laying is how the dealer lays out the rates that the board offers.
type laying uint8

const (
	laysRight laying = iota
	laysWrongRate
	laysWrongSpot
)

// layOut is an offer as the dealer lays it out.
func layOut(o round.Offer, l laying) round.Insurance {
	in := round.Insurance{Do: round.InsurancePost, Side: o.Side, WinsOn: o.WinsOn, Pays: o.Pays, Spot: o.Side}
	switch l {
	case laysWrongRate:
		in.Pays.Num++
	case laysWrongSpot:
		in.Spot = 3 - o.Side
	}
	return in
}

// Paces of a dealer; each is varied by a fifth. A card is placed well within the
// wait of deal.not_placed, and the next one later than placement_settle_ms.
const (
	drawPace  = 1400 * time.Millisecond
	placePace = 600 * time.Millisecond
	turnPace  = 2 * time.Second
	ratesPace = 1500 * time.Millisecond
	closePace = 2 * time.Second
	namePace  = 200 * time.Millisecond
	endPace   = 1500 * time.Millisecond
	clearPace = 300 * time.Millisecond
	betsPace  = 12 * time.Second
	shoePace  = 25 * time.Second
)

// play is a round, or the opening of a shoe and a round, as it is to happen.
type play struct {
	setting
	table *table
	cards []round.Card // in draw order
	boxes []round.Box
	cut   int // index of the card behind the cut card; -1 for none
	beats []beat
}

func (p *play) say(of moment, card int, wait time.Duration, in round.Input) {
	wait = wait * time.Duration(80+p.table.pace.IntN(41)) / 100
	p.beats = append(p.beats, beat{wait: wait, in: in, of: of, card: card})
}

// next is the next round, with a new shoe before it when one is due.
func (t *table) next() *play {
	p := &play{setting: t.setting, table: t}
	if t.shoe == nil || t.last {
		p.open(NewShoe(t.cards, int(t.Decks), t.Behind))
	}
	p.deal()
	p.round()
	return p
}

// open loads a shoe and burns as many cards as its first one says.
func (p *play) open(shoe *Shoe) {
	t := p.table
	t.shoe, t.last = shoe, false
	start := round.Input{Kind: round.InButton, Button: round.ButtonShoe}
	if p.Reader.tells() {
		start = round.Input{Kind: round.InReader, Reader: round.ReaderStart}
	}
	p.say(opening, -1, shoePace, start)
	t.first, _ = shoe.Draw()
	p.say(opening, 0, drawPace, p.opened(round.ToFirst, 0, t.first))
	burn := t.first.Value()
	if burn == 0 {
		burn = 10
	}
	for i := range burn {
		card, _ := shoe.Draw()
		p.say(opening, i+1, drawPace, p.opened(round.ToBurn, burn-1-i, card))
	}
}

// opened is a first or burned card as the reader reports it: in masked mode with
// its face too, as captured.
func (p *play) opened(to round.To, left int, card round.Card) round.Input {
	in := round.Input{Kind: round.InCard, Card: card}
	if p.Reader.tells() {
		in.To, in.Pos = to, uint8(left)
	}
	return in
}

// deal takes the cards of a round out of the shoe by the draw table (game.md
// section 1; seed 001).
func (p *play) deal() {
	p.cut = -1
	for _, b := range []round.Box{round.P1, round.B1, round.P2, round.B2} {
		p.take(b)
	}
	player, banker := round.Total(p.cards[0], p.cards[2]), round.Total(p.cards[1], p.cards[3])
	switch {
	case round.Natural(player), round.Natural(banker):
	case round.PlayerDraws(player):
		third := p.take(round.P3)
		if round.BankerDraws(banker, third.Value()) {
			p.take(round.B3)
		}
	case round.BankerDrawsAlone(banker):
		p.take(round.B3)
	}
}

func (p *play) take(b round.Box) round.Card {
	card, cut := p.table.shoe.Draw()
	if cut {
		p.cut, p.table.last = len(p.cards), true
	}
	p.cards, p.boxes = append(p.cards, card), append(p.boxes, b)
	return card
}

// round plays the cards as a dealer does who makes no mistake.
func (p *play) round() {
	p.begin()
	for i := range p.cards {
		if i == p.cut {
			p.say(cutting, i, drawPace, round.Input{Kind: round.InCut})
		}
		p.say(draw, i, drawPace, p.drawn(p.cards[i], p.boxes[i]))
		if p.watched() {
			p.say(place, i, placePace, p.placed(p.cards[i], p.boxes[i]))
		}
		p.shown(i)
	}
	if p.Reader == readerMasked {
		p.say(quiet, len(p.cards), endPace, round.Input{Kind: round.InTick})
		for i, card := range p.cards {
			p.say(naming, i, namePace, round.Input{Kind: round.InShow, Card: card, To: round.To(p.boxes[i].Side()), Pos: p.boxes[i].Pos()})
		}
	}
	if p.Reader.tells() {
		p.say(ruling, len(p.cards), endPace, round.Input{Kind: round.InVerdict, Verdict: p.verdict()})
	}
	p.clear(4 * time.Second)
}

// begin gives the signal that opens the round, if it has one besides its card.
func (p *play) begin() {
	p.say(quiet, -1, betsPace, round.Input{Kind: round.InTick})
	switch p.Start {
	case round.StartBets:
		p.say(signal, -1, drawPace, round.Input{Kind: round.InBets, Open: true})
		p.say(signal, -1, betsPace, round.Input{Kind: round.InBets})
	case round.StartButton:
		p.say(signal, -1, drawPace, round.Input{Kind: round.InButton, Button: round.ButtonStart})
	}
}

// shown turns what the table turns after card i, and pauses for insurance where a
// card may still be due.
func (p *play) shown(i int) {
	more := i+1 < len(p.cards)
	switch {
	case i < 3:
		return
	case p.Reveal == round.RevealOnSignal && i == 3:
		p.say(turn, i, turnPace, round.Input{Kind: round.InReveal, Hand: round.Player})
		p.insurance(i)
		p.say(turn, i, turnPace, round.Input{Kind: round.InReveal, Hand: round.Banker})
	case p.Reveal == round.RevealOnSignal:
		p.say(turn, i, turnPace, round.Input{Kind: round.InReveal, Box: p.boxes[i]})
	}
	if more {
		p.insurance(i)
	}
}

// insurance: the dealer lays out what the board offers, if it offers anything, and
// closes the window before he goes on.
func (p *play) insurance(i int) {
	p.say(rates, i, ratesPace, round.Input{Kind: round.InInsurance, Insurance: round.Insurance{Do: round.InsurancePost}})
	p.say(closing, i, closePace, round.Input{Kind: round.InInsurance, Insurance: round.Insurance{Do: round.InsuranceClose}})
}

// clear takes the cards off the table, where somebody sees that.
func (p *play) clear(wait time.Duration) {
	if !p.watched() {
		return
	}
	for i, b := range p.boxes {
		p.say(clearing, i, wait, round.Input{Kind: round.InLifted, Box: b})
		wait = clearPace
	}
}

// drawn is a card of the game as the reader reports it.
func (p *play) drawn(card round.Card, b round.Box) round.Input {
	in := round.Input{Kind: round.InCard, Card: card}
	if p.Reader.tells() {
		in.To, in.Pos = round.To(b.Side()), b.Pos()
	}
	if p.Reader == readerMasked {
		in.Card = round.Masked
	}
	return in
}

// placed is a card in a box as the sensors report it.
func (p *play) placed(card round.Card, b round.Box) round.Input {
	in := round.Input{Kind: round.InPlaced, Box: b}
	if p.Placement == round.PlacementRFID {
		in.Card = card
	}
	return in
}

func (p *play) verdict() round.Verdict {
	var player, banker round.Hand
	for i, b := range p.boxes {
		h := &player
		if b.Side() == round.Banker {
			h = &banker
		}
		h.Cards[h.N] = p.cards[i]
		h.N++
	}
	pt, _ := player.Total()
	bt, _ := banker.Total()
	tags := tags(player, banker)
	return round.Verdict{Outcome: round.OutcomeOf(pt, bt), PlayerPair: tags&round.TagPlayerPair != 0, BankerPair: tags&round.TagBankerPair != 0}
}
