package sim

import (
	"slices"
	"time"

	"shoed/round"
)

// mistake is one that a dealer, a reader, a sensor's wire or this program's power
// can make (game.md section 5).
type mistake struct {
	Name   string
	Clause string // of game.md, with the house document behind it
	Known  string // the input at which it is first known, or the time limit after it

	// Seen is what a setting makes of it: any of the codes, or why no code is
	// possible.
	Seen func(setting) ([]round.Code, string)
	// Cannot says why it cannot happen in a setting; nil where it always can.
	Cannot func(setting) string
	// Before are the alerts that come with it, ahead of its own.
	Before []round.Code

	where  where
	at     func(*play) []int // the places in a round where it can happen
	stack  func(*table, int) // arranges the shoe beforehand
	inject func(*play, int)
}

// Reasons why a mistake cannot be seen. Each is a note under the matrix.
const (
	whyNoSensors   = "no sensor sees the boxes: the dealt order decides where a card lies"
	whyPresence    = "a presence sensor sees that a card lies in a box, not which"
	whyNoTags      = "only RFID knows the face of a card in a box"
	whyMaskedDue   = "whether a third card is due hangs on faces that a masked reader names at the end"
	whyMaskedRight = "when a masked reader names the faces that say which box was due, the card lies there already"
	whyNotNumbered = "the reader does not number its telegrams: the next card is taken for the lost one, and only a round left open may show it"
	whySilent      = "the reader does not report it"
	whyAnyCard     = "by `round_start=first_card` any card opens the next round"
	whyNextDealt   = "the next card is taken for the due one: no signal opens a round, and no sensor sees where the card lies"
	whyOneOff      = "the reader cannot see where a card goes and no sensor does: one card stands for another from there on"
)

// Reasons why a mistake cannot happen.
const (
	notBets     = "only `round_start=bets` hears of bets"
	notSaid     = "the reader says nothing but faces"
	notShown    = "cards are dealt face up: they are shown as they are drawn"
	noWindow    = "a masked reader names the faces at the end: no window opens"
	noStart     = "no signal says that a round begins"
	noneThere   = "there are no sensors"
	noTags      = "only RFID reads tags"
	notIdentity = "the reader says nothing of where a card goes"
)

func always(codes ...round.Code) func(setting) ([]round.Code, string) {
	return func(setting) ([]round.Code, string) { return codes, "" }
}

// unless is the code except in settings that have a reason against it.
func unless(code round.Code, why func(setting) string) func(setting) ([]round.Code, string) {
	return func(s setting) ([]round.Code, string) {
		if reason := why(s); reason != "" {
			return nil, reason
		}
		return []round.Code{code}, ""
	}
}

func noSensors(s setting) string {
	if !s.watched() {
		return whyNoSensors
	}
	return ""
}

func silent(s setting) string {
	if !s.Reader.tells() {
		return whySilent
	}
	return ""
}

func onlyTelling(s setting) string {
	if !s.Reader.tells() {
		return notSaid
	}
	return ""
}

func onlyWindows(s setting) string {
	if s.Reader == readerMasked {
		return noWindow
	}
	return ""
}

// blind to a third card's being due.
func blind(s setting) string {
	if s.Reader == readerMasked {
		return whyMaskedDue
	}
	return ""
}

// undeal takes out all cards of the round from one on, and what follows it.
func (p *play) undeal(from int) {
	p.drop(from, draw, place, turn, rates, closing, naming, ruling, clearing)
	p.drop(0, clearing)
}

func every(p *play) []int    { return span(0, len(p.cards)) }
func afterOne(p *play) []int { return span(1, len(p.cards)) }
func secondOn(p *play) []int { return span(1, 4) }
func thirds(p *play) []int   { return span(4, len(p.cards)) }

func natural(p *play) bool {
	return round.Natural(round.Total(p.cards[0], p.cards[2])) || round.Natural(round.Total(p.cards[1], p.cards[3]))
}

// dealt is the index after the last beat of dealing: the hands are finished.
func (p *play) dealt() int {
	for i := len(p.beats) - 1; ; i-- {
		if of := p.beats[i].of; of == draw || of == place || of == turn {
			return i + 1
		}
	}
}

// drop takes out the beats of the given kinds that belong to a card or a later one.
func (p *play) drop(from int, of ...moment) {
	p.beats = slices.DeleteFunc(p.beats, func(b beat) bool { return b.card >= from && slices.Contains(of, b.of) })
}

func extraCard(p *play, _ int) { p.insert(p.dealt(), p.over()...) }

func (p *play) stop(i int) { p.beats = p.beats[:i] }

func overdrawNamed(p *play, _ int) {
	face := p.table.shoe.cards[len(p.table.shoe.cards)-1]
	p.insert(p.dealt(), append(p.over(),
		oops(namePace, round.Input{Kind: round.InShow, Over: true, To: round.ToPlayer, Pos: 1, Card: face}),
		oops(endPace, readerError(errorOverdraw, false)))...)
}

// beforeTurned draws a fifth card before the hands are turned, which then ask for
// none. Without a reader that knows, the last hand's turning shows it.
func beforeTurned(p *play, _ int) {
	over := p.over()
	if !p.Reader.tells() {
		over[0].mark, over[0].limit = false, 0
		p.mark(p.dealt()-1, 0)
	}
	p.insert(p.find(turn, 3), over...)
}

// onTop puts a card on the one before. A presence sensor sees no edge.
func onTop(p *play, at int) {
	i := p.find(place, at)
	switch p.Placement {
	case round.PlacementPresence:
		p.stop(i)
		p.mark(i-1, placeWait)
	case round.PlacementRFID:
		p.beats[i].in.Box = p.boxes[at-1]
		p.mark(i, settle)
	}
}

// swapped exchanges a card with the one before, after both lay right.
func swapped(p *play, at int) {
	i := p.find(place, at)
	if i < 0 {
		return
	}
	lift := func(b round.Box) beat { return oops(300*time.Millisecond, round.Input{Kind: round.InLifted, Box: b}) }
	put := func(card int, b round.Box) beat { return oops(300*time.Millisecond, p.placed(p.cards[card], b)) }
	first := put(at-1, p.boxes[at])
	if p.Reader == readerMasked {
		p.mark(p.find(naming, at), settle)
	} else {
		first.mark, first.limit = true, settle
	}
	p.insert(i+1, lift(p.boxes[at-1]), lift(p.boxes[at]), first, put(at, p.boxes[at-1]))
}

// swaps are the places after a card that is not the last, whose face differs from
// the one's before.
func swaps(p *play) (all []int) {
	for i := 1; i < len(p.cards)-1; i++ {
		if p.cards[i] != p.cards[i-1] {
			all = append(all, i)
		}
	}
	return all
}

// foreign is a face that is not in the round, seen in a card's box.
func foreign(p *play, at int) {
	if i := p.find(place, at); i >= 0 && p.Placement == round.PlacementRFID {
		for p.beats[i].in.Card = round.CardAt(0); slices.Contains(p.cards, p.beats[i].in.Card); {
			p.beats[i].in.Card = round.CardAt(p.beats[i].in.Card.Index() + 1)
		}
		if p.Reader == readerMasked {
			p.mark(p.find(naming, len(p.cards)-1), 0)
			return
		}
		p.mark(i, readerLate)
	}
}

// thirdNotPlaced: a masked reader goes on to name the faces.
func thirdNotPlaced(p *play, at int) {
	i := p.find(place, at)
	switch {
	case i < 0:
	case p.Reader == readerMasked:
		p.drop(at, place)
		p.mark(p.boxKnown(at, draw), placeWait)
	default:
		notPlaced(p, at)
	}
}

func unsignalled(p *play, _ int) {
	p.drop(-1, signal)
	p.mark(p.find(draw, 0), 0)
}

// ruled: the reader gives a verdict on the cards so far.
func ruled(p *play, at int) {
	verdict := p.beats[p.find(ruling, len(p.cards))].in
	p.undeal(at)
	p.beats = append(p.beats, shows(endPace, verdict))
}

// begun: the dealer clears the table and begins the next round; a reader that has
// rules takes its first card for the due one.
func begun(p *play, at int) {
	p.undeal(at)
	p.drop(0, naming)
	from, box := len(p.beats), p.boxes[at]
	cards, boxes := p.cards, p.boxes
	p.cards, p.boxes = cards[:at], boxes[:at]
	p.clear(time.Second)
	p.cards, p.boxes = cards, boxes
	p.begin()
	next := p.find(quiet, -1)
	for i := from; i < len(p.beats); i++ {
		if p.beats[i].of == quiet {
			next = i
		}
	}
	p.beats[next].wait = 500 * time.Millisecond
	if next+1 < len(p.beats) {
		p.mark(next+1, 0)
		return
	}
	card := p.cards[at] // the due one
	p.say(mishap, 0, drawPace, p.drawn(card, box))
	if p.watched() {
		p.say(mishap, 0, placePace, p.placed(card, round.P1))
		p.mark(from, placeWait+500*time.Millisecond)
	}
}

// ended: the dealer presses end. A masked reader names nothing, for it waits for
// the card.
func ended(p *play, at int) {
	p.undeal(at)
	p.drop(0, naming)
	p.beats = append(p.beats, shows(endPace, round.Input{Kind: round.InButton, Button: round.ButtonEnd}))
}

// nextHand: the reader deals the next card to a new round.
func nextHand(p *play, at int) {
	p.undeal(at)
	p.drop(0, naming)
	p.beats = append(p.beats, shows(drawPace, p.drawn(p.cards[at], round.P1)))
}

func skipped(p *play, at int) {
	i := p.find(draw, at)
	p.beats[i].in.Pos++
	p.mark(i, 0)
}

func otherHand(p *play, at int) {
	i, side := p.find(draw, at), 3-p.boxes[at].Side()
	pos := uint8(1)
	for _, b := range p.boxes[:at] {
		if b.Side() == side {
			pos = min(pos+1, 3)
		}
	}
	p.beats[i].in.To, p.beats[i].in.Pos = round.To(side), pos
	if at >= 4 {
		i = p.boxKnown(at, draw)
	}
	p.mark(i, 0)
}

func started(p *play, at int) {
	if p.Reader.tells() {
		before(round.Input{Kind: round.InReader, Reader: round.ReaderStart})(p, at)
	}
}

// lost: the telegram of a card that is not the last is missing. Numbered ones show
// it at the next one, RFID soon after the card lies in its box, presence where the next card
// lies in a box that is not its own.
func lost(p *play, at int) {
	i := p.find(draw, at)
	p.beats = slices.Delete(p.beats, i, i+1)
	switch next := p.find(draw, at+1); {
	case p.Placement == round.PlacementRFID && p.Reader != readerMasked:
		p.mark(p.find(place, at), readerLate)
	case p.Reader.tells():
		p.insert(next, shows(drawPace, round.Input{Kind: round.InReader, Reader: round.ReaderGap}))
	case p.Placement == round.PlacementPresence:
		p.mark(p.find(place, at+1), settle)
	}
}

// lostLast: the same of the last card.
func lostLast(p *play, at int) {
	i := p.find(draw, at)
	p.beats = slices.Delete(p.beats, i, i+1)
	p.drop(0, clearing)
	switch {
	case p.Placement == round.PlacementRFID && p.Reader != readerMasked:
		p.mark(p.find(place, at), readerLate)
	case p.Reader.tells():
		next := p.find(naming, 0)
		if next < 0 {
			next = p.find(ruling, len(p.cards))
		}
		p.insert(next, shows(drawPace, round.Input{Kind: round.InReader, Reader: round.ReaderGap}))
	default:
		p.mark(len(p.beats)-1, drawWait)
	}
}

// loses are the places of cards before the last, and last that of the last one,
// if no other in the round has their face: RFID would take one for the other.
func loses(p *play) []int { return slices.DeleteFunc(span(1, len(p.cards)-1), p.twin) }
func last(p *play) []int {
	return slices.DeleteFunc(span(len(p.cards)-1, len(p.cards)), p.twin)
}

func (p *play) twin(i int) bool {
	return slices.Contains(p.cards[:i], p.cards[i]) || slices.Contains(p.cards[i+1:], p.cards[i])
}

func reconnected(p *play, at int) {
	p.insert(p.find(draw, at), oops(500*time.Millisecond, round.Input{Kind: round.InLink, Name: "reader"}),
		shows(5*time.Second, round.Input{Kind: round.InLink, Name: "reader", On: true}))
}

func pairDiffers(p *play, _ int) {
	i := p.find(ruling, len(p.cards))
	p.beats[i].in.Verdict.PlayerPair = !p.beats[i].in.Verdict.PlayerPair
	p.mark(i, 0)
}

func faceDiffers(p *play, at int) {
	// A masked reader names one card twice, with two faces.
	i := p.find(naming, at)
	again := p.beats[i]
	again.in.Card = round.CardAt((again.in.Card.Index() + 1) % round.Faces)
	again.mark = true
	p.insert(i+1, again)
}

// burnedMore: the dealer burns one more. A reader takes it for the first card.
func burnedMore(p *play, _ int) {
	i := p.lastBurn() + 1
	p.stop(i)
	p.beats = append(p.beats, oops(drawPace, p.drawn(p.cards[0], round.P1)))
	limit := time.Duration(0)
	if p.Start != round.StartBets && p.Start != round.StartButton {
		limit = placeWait
	}
	p.mark(i, limit)
}

// burnedLess: the dealer burns one card too few. A reader takes the first card of
// the round for the last burned one, and is one behind from there on.
func burnedLess(p *play, _ int) {
	i := p.lastBurn()
	missing := p.beats[i].in
	p.beats = slices.Delete(p.beats, i, i+1)
	missing.Card = p.cards[0]
	p.beats[p.find(draw, 0)].in = missing
	i = p.find(draw, 1)
	p.beats[i].in = p.drawn(p.cards[1], p.boxes[0])
	if p.watched() {
		i = p.find(place, 1)
		p.mark(i, settle)
	}
	p.stop(i + 1)
}

// saysLess: the reader begins the round with a card still to be burned.
func saysLess(p *play, _ int) {
	i := p.lastBurn()
	p.beats = slices.Delete(p.beats, i, i+1)
	p.mark(p.find(draw, 0), 0)
}

// arrange puts nine kings and more on top of a shoe.
func arrange(t *table, _ int) {
	cards := t.shoe.cards
	for i := range 11 {
		cards[len(cards)-1-i] = round.NewCard(13, round.Suit(i%4+1))
	}
}

func arranged(p *play, _ int) { p.mark(p.find(opening, 8), 0) }

func cutLate(p *play, _ int) { p.mark(p.find(cutting, p.cut), 0) }

func tooMany(p *play, _ int) {
	for p.table.shoe.Left() > 0 {
		p.beats = append(p.beats, oops(drawPace, p.drawn(p.another(), round.P1)))
	}
	p.beats = append(p.beats, shows(drawPace, p.drawn(round.CardAt(0), round.P1)))
}

func turnedFirst(p *play, _ int) {
	hands := p.all(turn)
	a, b := &p.beats[hands[0]], &p.beats[hands[1]]
	a.in, b.in = b.in, a.in
	p.mark(hands[0], 0)
}

// oneHand: Banker's hand alone is insured.
func oneHand(p *play) bool { return round.Total(p.cards[1], p.cards[3]) >= 7 }
