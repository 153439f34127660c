package odds

import "shoed/round"

// deal counts how a round with some unknown cards can end.
type deal struct {
	player, banker hand
	unseen         *Values // not yet given a place
	cards          uint64  // their number
	thirds         int     // third cards, of unknown value, that every counted draw has
	out            Outcomes
}

// run counts the draws of all unknown cards, each for ways.
func (d *deal) run(ways uint64) {
	p, b := &d.player, &d.banker
	noThird := p.third == notDealt && b.third == notDealt
	switch {
	case p.unknown+b.unknown == 0:
		d.draw(ways)
	case noThird && p.unknown+b.unknown == 2 && p.unknown != 1:
		d.hidden(ways)
	case p.unknown == 0 || p.unknown == 2 && b.unknown == 1:
		d.reveal(b, ways)
	default:
		d.reveal(p, ways)
	}
}

// reveal goes through the values of one unknown card of a hand.
func (d *deal) reveal(h *hand, ways uint64) {
	before := *h
	d.cards--
	for v := range d.unseen {
		n := uint64(d.unseen[v])
		if n == 0 {
			continue
		}
		d.unseen[v]--
		h.total, h.unknown = int(mod10[before.total+v]), before.unknown-1
		d.run(ways * n)
		d.unseen[v]++
	}
	d.cards++
	*h = before
}

// draw counts the third cards, the first four being known.
func (d *deal) draw(ways uint64) {
	p, b := d.player.total, d.banker.total
	switch third := d.player.third; {
	case over(p, b):
		if third == notDealt && d.banker.third == notDealt {
			d.end(p, b, ways*falling(d.cards, d.thirds))
		}
	case p >= drawTotals:
		if third == notDealt {
			d.bankerThird(p, b, d.cards, d.thirds, ways)
		}
	case third >= 0:
		d.afterPlayerThird(p, b, third, d.cards, d.thirds, ways)
	case third == masked || d.banker.third == notDealt:
		for v := range d.unseen {
			if n := uint64(d.unseen[v]); n > 0 {
				d.unseen[v]--
				d.afterPlayerThird(p, b, v, d.cards-1, d.thirds-1, ways*n)
				d.unseen[v]++
			}
		}
	}
}

// over reports whether two-card totals end the round.
func over(p, b int) bool {
	return round.Natural(p) || round.Natural(b) || p >= drawTotals && b >= drawTotals
}

// afterPlayerThird counts Banker's play against Player's third card.
func (d *deal) afterPlayerThird(p, b, third int, cards uint64, thirds int, ways uint64) {
	p = int(mod10[p+third])
	switch {
	case b <= drawsUpTo[third]:
		d.bankerThird(p, b, cards, thirds, ways)
	case d.banker.third == notDealt:
		d.end(p, b, ways*falling(cards, thirds))
	}
}

// bankerThird counts Banker's third card against Player's final total p.
func (d *deal) bankerThird(p, b int, cards uint64, thirds int, ways uint64) {
	if third := d.banker.third; third >= 0 {
		d.end(p, int(mod10[b+third]), ways*falling(cards, thirds))
		return
	}
	ways *= falling(cards-1, thirds-1)
	less, same, more := d.unseen.split(p, b, cards)
	d.out.Player += ways * less
	d.out.Tie += ways * same
	d.out.Banker += ways * more
}

// split sorts cards by what they make of Banker's total b: less than p, the
// same, or more.
func (v *Values) split(p, b int, cards uint64) (less, same, more uint64) {
	same = uint64(v[mod10[10+p-b]])
	if p < 5 { // the shorter way
		less = v.making(0, p, b)
		return less, same, cards - same - less
	}
	more = v.making(p+1, 10, b)
	return cards - same - more, same, more
}

// making counts the cards that make of b one of the totals from…to−1.
func (v *Values) making(from, to, b int) (cards uint64) {
	for t := from; t < to; t++ {
		cards += uint64(v[mod10[10+t-b]])
	}
	return cards
}

func (d *deal) end(p, b int, ways uint64) {
	switch round.OutcomeOf(p, b) {
	case round.PlayerWins:
		d.out.Player += ways
	case round.BankerWins:
		d.out.Banker += ways
	default:
		d.out.Tie += ways
	}
}

// hidden counts a round in which nothing of one hand is known, all of the
// other is, and no third card is dealt.
func (d *deal) hidden(ways uint64) {
	var q pairs
	q.init(d.unseen)
	p, b := d.player.total, d.banker.total
	total := &p
	if d.banker.unknown == 2 {
		total = &b
	}
	for t := range 10 {
		*total = t
		switch {
		case over(p, b):
			d.end(p, b, ways*q.all[t]*falling(d.cards-2, d.thirds))
		case p >= drawTotals:
			rest := ways * falling(d.cards-3, d.thirds-1)
			for v, n := range q.first[t] {
				d.end(p, int(mod10[b+v]), rest*(q.cards[v]*q.all[t]-2*n))
			}
		default:
			for v := range 10 {
				d.hiddenThird(&q, t, p, b, v, ways)
			}
		}
	}
}

// hiddenThird is hidden when the unknown hand's total is t and Player's third
// card has value third.
func (d *deal) hiddenThird(q *pairs, t, p, b, third int, ways uint64) {
	ways *= q.cards[third]
	if ways == 0 {
		return
	}
	p = int(mod10[p+third])
	apart := q.all[t] - 2*q.partner[t][third] // pairs without Player's third card
	if b > drawsUpTo[third] {
		d.end(p, b, ways*apart*falling(d.cards-3, d.thirds-1))
		return
	}
	ways *= falling(d.cards-4, d.thirds-2)
	partner := int(mod10[10+t-third])
	less, same := uint64(0), uint64(0)
	for final := range p + 1 {
		less += same
		last := int(mod10[10+final-b])
		cards, held := q.cards[last], q.partner[t][last]
		if last == third {
			cards--
		}
		if last == partner {
			held--
		}
		same = cards * (apart - 2*held)
	}
	d.out.Player += ways * less
	d.out.Tie += ways * same
	d.out.Banker += ways * (apart*(d.cards-3) - less - same)
}

// thirdsAtMost is how many third cards of unknown value the round may have,
// or -1 when those dealt are against the draw rules.
func thirdsAtMost(player, banker hand) int {
	most := -1
	fromP, toP := player.span()
	fromB, toB := banker.span()
	for p := fromP; p <= toP; p++ {
		for b := fromB; b <= toB; b++ {
			most = max(most, thirdsOn(p, b, player.third, banker.third))
		}
	}
	return most
}

// span of the totals that the first two cards may have.
func (h *hand) span() (from, to int) {
	if h.unknown > 0 {
		return 0, 9
	}
	return h.total, h.total
}

// thirdsOn is thirdsAtMost for two-card totals p and b and the third cards
// player and banker.
func thirdsOn(p, b, player, banker int) int {
	switch {
	case over(p, b):
		if player == notDealt && banker == notDealt {
			return 0
		}
		return -1
	case p >= drawTotals:
		switch {
		case player != notDealt:
			return -1
		case banker >= 0:
			return 0
		}
		return 1
	case player == notDealt && banker != notDealt:
		return -1
	}
	n, upTo := 1, liveTotals-2 // some third card makes Banker draw on 6
	if player >= 0 {
		n, upTo = 0, drawsUpTo[player]
	}
	switch {
	case b > upTo && banker != notDealt:
		return -1
	case b <= upTo && banker < 0:
		n++
	}
	return n
}
