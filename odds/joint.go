package odds

import "shoed/round"

// Joint counts the ordered draws of six unseen cards, whether or not the round
// uses them all, by what the round comes to.
type Joint struct {
	Den  uint64               // N(N−1)…(N−5): the sum of all Ways
	Ways [2][2][10][10]uint64 // by cards P less 2, cards B less 2, total P, total B
}

// Count replaces j by the joint count over the unseen cards (doc.go explains
// the method). It fails when they are fewer than six or more than MaxCards. It
// does not allocate.
func (j *Joint) Count(unseen Values) error {
	n, err := unseen.enough(roundCards)
	if err != nil {
		return err
	}
	*j = Joint{Den: falling(n, roundCards)}
	c := counter{cards: n}
	c.pairs.init(&unseen)
	c.nobodyDraws(j)
	for b := range liveTotals - 1 {
		c.hands.add(&c.pairs, b)
		if b == drawTotals-1 {
			c.bankerDraws(j)
		}
		for d, k := range drawsUpTo {
			if k == b && unseen[d] > 0 {
				c.playerDraws(d, j)
			}
		}
	}
	return nil
}

// counter is the working space of one Count.
type counter struct {
	cards uint64
	pairs pairs
	hands drawn
}

// nobodyDraws counts the rounds of four cards.
func (c *counter) nobodyDraws(j *Joint) {
	q := &c.pairs
	rest := (c.cards - 4) * (c.cards - 5)
	for b := range 10 {
		from := liveTotals // of Player's totals that end the round against b
		switch {
		case b >= liveTotals:
			from = 0
		case b >= drawTotals:
			from = drawTotals
		}
		for p := from; p < 10; p++ {
			apart := q.all[p]*q.all[b] - 4*q.weighOne(p, &q.partner[b])
			if p == b {
				apart += 2 * q.all[p]
			}
			j.Ways[0][0][p][b] = apart * rest
		}
	}
}

// bankerDraws counts the rounds in which Player stood and Banker drew.
func (c *counter) bankerDraws(j *Joint) {
	q, h := &c.pairs, &c.hands
	for p := drawTotals; p < liveTotals; p++ {
		for t := range 10 {
			holding := &h.holding[t]
			third := mod10[10+t-p]
			apart := q.all[p]*h.all[t] - 2*q.weighOne(p, holding) + 2*q.cards[third]*holding[third]
			j.Ways[0][1][p][t] = apart * (c.cards - 5)
		}
	}
}

// playerDraws counts the rounds in which Player's third card has value d, once
// the hands that Banker draws to against it, and no others, were added.
func (c *counter) playerDraws(d int, j *Joint) {
	ways, fifth := c.pairs.cards[d], c.cards-5
	q := c.pairs
	q.take(d)
	var alone, both [drawTotals]*[10]uint64 // Ways by Player's pair
	for p := range both {
		total := mod10[p+d]
		alone[p], both[p] = &j.Ways[1][0][total], &j.Ways[1][1][total]
	}
	var sums [drawTotals]uint64
	for b := drawsUpTo[d] + 1; b < liveTotals; b++ {
		q.weigh(&q.partner[b], &sums)
		if b < drawTotals {
			sums[b] -= q.all[b] / 2 // the pair inside the hand
		}
		for p, to := range alone {
			to[b] += ways * fifth * (q.all[p]*q.all[b] - 4*sums[p])
		}
	}
	var weight [20]uint64
	for t := range 10 {
		holding := &c.hands.holding[t]
		hands := c.hands.all[t] - holding[d]
		left, orders := &q.partner[mod10[10+t-d]], &bothHeld[d][t]
		for v := range left {
			w := hands - 2*(holding[v]-left[v]*uint64(orders[v]))
			weight[v], weight[v+10] = w, w
		}
		q.weigh((*[10]uint64)(weight[:]), &sums)
		cards, third := (*[drawTotals]uint64)(q.cards[t+5:]), (*[drawTotals]uint64)(weight[t+5:]) // of value t−p at 5−p
		for p, to := range both {
			to[t] += ways * (sums[p] + cards[5-p]*(hands-third[5-p]))
		}
	}
}

// bothHeld is in how many orders a three-card hand of Banker's, drawn to
// against Player's third card, holds two particular cards: [d][t][v], one of
// that card's value d, the other of value v, the hand of total t. Each of the
// three cards may be the third if the other two are a total to draw on.
var bothHeld = func() (orders [10][10][10]uint8) {
	for d, upTo := range drawsUpTo {
		for t := range 10 {
			for v := range 10 {
				for _, pair := range [...]int{d + v, t - v, t - d} {
					if (10+pair)%10 <= upTo {
						orders[d][t][v] += 2
					}
				}
			}
		}
	}
	return
}()

// Outcomes are the ways of each outcome.
func (j *Joint) Outcomes() Outcomes {
	o := Outcomes{Den: j.Den}
	for p := range 10 {
		for b := range 10 {
			ways := j.Ways[0][0][p][b] + j.Ways[0][1][p][b] + j.Ways[1][0][p][b] + j.Ways[1][1][p][b]
			switch {
			case p > b:
				o.Player += ways
			case b > p:
				o.Banker += ways
			default:
				o.Tie += ways
			}
		}
	}
	return o
}

// sum of the ways of the results on which a condition holds. It is asked of
// possible ones only; pairs are not in their tags.
func (j *Joint) sum(holds func(round.Result) bool) uint64 {
	sum := uint64(0)
	for pc := range j.Ways {
		for bc := range j.Ways[pc] {
			for p := range 10 {
				for b, ways := range j.Ways[pc][bc][p] {
					if ways == 0 {
						continue
					}
					if holds(resultOf(pc+2, bc+2, p, b)) {
						sum += ways
					}
				}
			}
		}
	}
	return sum
}

// resultOf is a cell of the joint count as the bets see it.
func resultOf(playerCards, bankerCards, player, banker int) round.Result {
	return round.Result{
		PlayerCards: playerCards, BankerCards: bankerCards,
		PlayerTotal: player, BankerTotal: banker,
		PlayerNatural: playerCards == 2 && round.Natural(player),
		BankerNatural: bankerCards == 2 && round.Natural(banker),
		Outcome:       round.OutcomeOf(player, banker),
	}
}
