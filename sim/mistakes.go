package sim

import (
	"slices"
	"time"

	"shoed/round"
)

// where in a shoe a mistake happens.
type where uint8

const (
	inRound   where = iota // any round
	atOpening              // a new shoe and its first round
	smallShoe              // the first round of a shoe of one deck
	atEnd                  // the round of the cut card, 20 cards from the end
	lateCut                // the same, 7 cards from the end
	runDown                // fewer than 6 cards left and no cut card
)

// Places in a round.

func span(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func firstFour(p *play) []int { return span(0, 4) }
func end(p *play) []int       { return span(len(p.cards), len(p.cards)+1) }
func once(*play) []int        { return []int{0} }
func fifth(*play) []int       { return []int{4} }

// when keeps the places of rounds for which yes holds.
func when(yes func(*play) bool, at func(*play) []int) func(*play) []int {
	return func(p *play) []int {
		if !yes(p) {
			return nil
		}
		return at(p)
	}
}

// bankerStands: Player draws and Banker does not.
func bankerStands(p *play) bool { return len(p.cards) == 5 && p.boxes[4] == round.P3 }

// Edits of a play.

// find is the index of a card's beat; -1 when it has none.
func (p *play) find(of moment, card int) int {
	return slices.IndexFunc(p.beats, func(b beat) bool { return b.of == of && b.card == card })
}

func (p *play) insert(i int, beats ...beat) { p.beats = slices.Insert(p.beats, i, beats...) }

func (p *play) mark(i int, limit time.Duration) { p.beats[i].mark, p.beats[i].limit = true, limit }

func oops(wait time.Duration, in round.Input) beat { return beat{wait: wait, in: in, of: mishap} }

// shows is oops at which the mistake first shows.
func shows(wait time.Duration, in round.Input) beat {
	return beat{wait: wait, in: in, of: mishap, mark: true}
}

// before inserts a mishap ahead of card at's draw, where it shows.
func before(in round.Input) func(*play, int) {
	return func(p *play, at int) { p.insert(p.find(draw, at), shows(500*time.Millisecond, in)) }
}

// Angel's error numbers, as their decoder gives them (angel.md).
const (
	errorUnread   = 1
	errorOverdraw = 2
	errorReverse  = 4
	errorCode     = 6
)

func readerError(code uint8, on bool) round.Input {
	return round.Input{Kind: round.InFault, Code: code, On: on}
}

// another card out of the shoe. The cut card stays in front of the next one.
func (p *play) another() round.Card {
	card, cut := p.table.shoe.Draw()
	if cut {
		p.table.shoe.behind = p.table.shoe.Left()
	}
	return card
}

// over is one card more than the rules ask for, as the reader reports it.
func (p *play) over() []beat {
	card := p.drawn(p.another(), 0)
	if !p.Reader.tells() {
		b := shows(drawPace, card)
		if p.Start == round.StartFirstCard && p.watched() {
			b.limit = placeWait
		}
		return []beat{b}
	}
	card.To, card.Pos, card.Outside = 0, 0, round.OutsideOverdraw
	return []beat{shows(drawPace, readerError(errorOverdraw, true)), oops(200*time.Millisecond, card)}
}

const (
	settle    = 1500 * time.Millisecond // placement_settle_ms
	placeWait = 5 * time.Second         // place_wait_ms
	drawWait  = 30 * time.Second        // draw_wait_ms
	resolve   = 180 * time.Second       // resolve_ms

	readerLate = 500 * time.Millisecond // how much later than the sensors a reader may tell
)

// emptyBox is one where a card of the first four does not belong and none lies.
var emptyBox = [4]round.Box{round.B1, round.P2, round.B2, round.B3}

// otherSide is the other hand's box of the same number.
func otherSide(b round.Box) round.Box { return round.BoxOf(3-b.Side(), b.Pos()) }

func wrongBox(p *play, at int) {
	if i := p.find(place, at); i >= 0 {
		p.beats[i].in.Box = emptyBox[at]
		p.mark(i, settle)
	}
}

// boxKnown is the beat at which the box of a third card follows from what the
// table has shown.
func (p *play) boxKnown(at int, other moment) int {
	if p.Reader == readerMasked {
		return p.find(naming, at-1)
	}
	return p.find(other, at)
}

// wrongThird puts a third card before the other side, and then the next one where
// there is room.
func wrongThird(p *play, at int) {
	for i := at; i < len(p.cards); i++ {
		if b := p.find(place, i); b >= 0 {
			p.beats[b].in.Box = otherSide(p.boxes[i])
		}
	}
	if i := p.boxKnown(at, place); p.watched() {
		p.mark(i, settle)
	}
}

// corrected puts a card into a wrong box and at once into the right one.
func corrected(p *play, at int) {
	i := p.find(place, at)
	if i < 0 {
		return
	}
	right := p.beats[i].in
	wrong := otherSide(right.Box)
	if at < 4 {
		wrong = emptyBox[at]
	}
	p.beats[i].in.Box = wrong
	p.insert(i+1, oops(500*time.Millisecond, round.Input{Kind: round.InLifted, Box: wrong}), shows(400*time.Millisecond, right))
}

// foreignTag is a card that was never enrolled, in a card's box.
func foreignTag(p *play, at int) {
	i := p.find(place, at)
	p.beats[i].in.Card, p.beats[i].in.Foreign = 0, true
	p.mark(i, 0)
}

func notPlaced(p *play, at int) {
	if i := p.find(place, at); i >= 0 {
		p.beats[i].wait += placeWait + 2*time.Second
		p.mark(i-1, placeWait)
	}
}

func early(p *play, _ int) {
	p.beats = slices.DeleteFunc(p.beats, func(b beat) bool { return b.in.Kind == round.InBets && !b.in.Open })
	p.mark(p.find(draw, 0), 0)
}

func late(p *play, at int) {
	i := p.find(draw, at)
	p.beats[i].wait += drawWait + 10*time.Second
	p.mark(i-1, drawWait)
}

func together(p *play, at int) {
	i := p.find(draw, at)
	b := p.beats[i]
	b.wait, b.mark = 50*time.Millisecond, true
	p.beats = slices.Delete(p.beats, i, i+1)
	p.insert(p.find(draw, at-1)+1, b)
}

func whilePaused(p *play, at int) {
	i := p.find(draw, at)
	p.mark(i, 0)
	p.insert(i, oops(500*time.Millisecond, round.Input{Kind: round.InButton, Button: round.ButtonCall}))
}

func unresolved(p *play, at int) {
	i := p.find(draw, at)
	p.beats[i].wait += resolve + 10*time.Second
	p.insert(i, oops(500*time.Millisecond, round.Input{Kind: round.InButton, Button: round.ButtonCall}))
	p.mark(i, resolve)
}

// unread puts a failed read in the place of a card.
func unread(code uint8, why string) func(*play, int) {
	return func(p *play, at int) {
		i := p.find(draw, at)
		p.beats[i].in = round.Input{Kind: round.InUnread, Name: why}
		if p.Reader.tells() {
			p.beats[i].in = readerError(code, true)
		}
		p.mark(i, 0)
	}
}

func pushedBack(p *play, at int) {
	if p.Reader.tells() {
		p.insert(p.find(draw, at)+1, shows(500*time.Millisecond, readerError(errorReverse, true)))
	}
}

func differs(p *play, _ int) {
	i := p.find(ruling, len(p.cards))
	v := &p.beats[i].in.Verdict
	v.Outcome = v.Outcome%3 + 1
	p.mark(i, 0)
}

// lastBurn is the index of the last beat of an opening.
func (p *play) lastBurn() int {
	i := 0
	for p.beats[i].of == opening {
		i++
	}
	return i - 1
}

// saysMore: the reader reports one burned card more than there was to burn.
func saysMore(p *play, _ int) {
	p.insert(p.lastBurn()+1, shows(drawPace, p.opened(round.ToBurn, 0, p.another())))
}

func unproven(p *play, _ int) {
	i := len(p.beats)
	p.open(NewShoe(p.table.cards, int(p.table.Decks), 20))
	if p.Reader.tells() {
		i++ // a reader's start alone says nothing
	}
	p.mark(i, 0)
}

func cutHere(p *play, at int) { before(round.Input{Kind: round.InCut})(p, at) }

func drained(p *play, _ int) {
	p.beats = append(p.beats, shows(betsPace, p.drawn(p.another(), round.P1)))
}

func lateCard(p *play, _ int) {
	p.begin()
	p.beats = append(p.beats, shows(drawPace, p.drawn(p.another(), round.P1)))
}

// copyOut puts the shoe's first card, which is out, in the place of another one.
func copyOut(t *table, at int) { t.shoe.cards[len(t.shoe.cards)-1-at] = t.first }

func copied(p *play, at int) {
	if p.Reader == readerMasked {
		p.mark(p.find(naming, at), 0)
		return
	}
	p.mark(p.find(draw, at), 0)
}

// windows are the places where a window may be open, by number.
func windows(p *play) []int { return span(0, len(p.all(rates))) }

// all are the indices of a kind of beat.
func (p *play) all(of moment) (found []int) {
	for i := range p.beats {
		if p.beats[i].of == of {
			found = append(found, i)
		}
	}
	return found
}

// dealings are the windows after which a card is drawn.
func dealings(p *play) (at []int) {
	for n, i := range p.all(closing) {
		if p.beats[i+1].of == draw {
			at = append(at, n)
		}
	}
	return at
}

func (p *play) markOpen(i int) { p.beats[i].mark, p.beats[i].ifOpen = true, true }

func laid(l laying) func(*play, int) {
	return func(p *play, at int) {
		i := p.all(rates)[at]
		p.beats[i].lays = l
		p.markOpen(i)
	}
}

func notLaid(p *play, at int) {
	p.markOpen(p.all(closing)[at])
	i := p.all(rates)[at]
	p.beats = slices.Delete(p.beats, i, i+1)
}

func dealtThrough(p *play, at int) {
	i := p.all(closing)[at]
	p.markOpen(i + 1)
	p.beats = slices.Delete(p.beats, i, i+1)
}

func out(p *play, at int) {
	card := p.drawn(p.another(), 0)
	card.To, card.Pos, card.Outside = 0, 0, round.OutsideLock
	before(card)(p, at)
}
