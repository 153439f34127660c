package odds

import "shoed/round"

// The draw table of round, turned into the ranges this package counts by.
const (
	drawTotals = 6 // Player draws on 0…5; so does Banker when Player stood
	liveTotals = 8 // with 8 and 9 the round is over
)

// drawsUpTo is, by the value of Player's third card, the highest total that
// Banker draws on. Banker draws on every lower one too.
var drawsUpTo = func() (upTo [10]int) {
	for third := range upTo {
		for total := range liveTotals {
			if round.BankerDraws(total, third) {
				upTo[third] = total
			}
		}
	}
	return
}()

// mod10 reduces a sum of two digits, or a difference less than 10 below zero
// once 10 is added.
var mod10 = func() (digit [20]uint8) {
	for i := range digit {
		digit[i] = uint8(i % 10)
	}
	return
}()

// pairs are the ordered two-card hands that some cards make.
type pairs struct {
	cards   [20]uint64     // by value, twice over: cards[10+x] serves x = −10…9
	partner [10][10]uint64 // [t][v]: cards that make t with one particular card of value v
	first   [10][10]uint64 // [t][v]: pairs of total t whose first card has value v
	all     [10]uint64     // [t]: pairs of total t
}

func (q *pairs) init(cards *Values) {
	for v, n := range cards {
		q.cards[v], q.cards[v+10] = uint64(n), uint64(n)
	}
	for t := range q.all {
		partner, first := &q.partner[t], &q.first[t]
		for v := range partner {
			partner[v] = q.cards[10+t-v]
		}
		if t%2 == 0 { // a card is not its own partner
			partner[t/2]--
			partner[t/2+5]--
		}
		sum := uint64(0)
		for v, n := range partner {
			n *= q.cards[v]
			first[v] = n
			sum += n
		}
		q.all[t] = sum
	}
}

// take removes one card of value d.
func (q *pairs) take(d int) {
	q.cards[d]--
	q.cards[d+10]--
	left := q.cards[d]
	for t := range q.all {
		partner, first := &q.partner[t], &q.first[t]
		other := mod10[10+t-d]
		q.all[t] -= 2 * partner[d]
		partner[other]--
		first[d] = left * partner[d]
		first[other] = first[d]
	}
}

// weigh sums weight, by the first card's value, over the pairs of each total
// that Player draws on. Either card may be called the first, so equal factors
// are taken together: 33 products instead of 60.
func (q *pairs) weigh(weight *[10]uint64, sums *[drawTotals]uint64) {
	w0, w1, w2, w3, w4 := weight[0], weight[1], weight[2], weight[3], weight[4]
	w5, w6, w7, w8, w9 := weight[5], weight[6], weight[7], weight[8], weight[9]
	f := &q.first[0]
	sums[0] = f[0]*w0 + f[5]*w5 + f[1]*(w1+w9) + f[2]*(w2+w8) + f[3]*(w3+w7) + f[4]*(w4+w6)
	f = &q.first[1]
	sums[1] = f[0]*(w0+w1) + f[2]*(w2+w9) + f[3]*(w3+w8) + f[4]*(w4+w7) + f[5]*(w5+w6)
	f = &q.first[2]
	sums[2] = f[1]*w1 + f[6]*w6 + f[0]*(w0+w2) + f[3]*(w3+w9) + f[4]*(w4+w8) + f[5]*(w5+w7)
	f = &q.first[3]
	sums[3] = f[0]*(w0+w3) + f[1]*(w1+w2) + f[4]*(w4+w9) + f[5]*(w5+w8) + f[6]*(w6+w7)
	f = &q.first[4]
	sums[4] = f[2]*w2 + f[7]*w7 + f[0]*(w0+w4) + f[1]*(w1+w3) + f[5]*(w5+w9) + f[6]*(w6+w8)
	f = &q.first[5]
	sums[5] = f[0]*(w0+w5) + f[1]*(w1+w4) + f[2]*(w2+w3) + f[6]*(w6+w9) + f[7]*(w7+w8)
}

// weighOne is weigh for any one total.
func (q *pairs) weighOne(t int, weight *[10]uint64) uint64 {
	f := &q.first[t]
	return f[0]*weight[0] + f[1]*weight[1] + f[2]*weight[2] + f[3]*weight[3] + f[4]*weight[4] +
		f[5]*weight[5] + f[6]*weight[6] + f[7]*weight[7] + f[8]*weight[8] + f[9]*weight[9]
}

// drawn are the ordered three-card hands of Banker whose first two cards reach
// one of the totals added so far.
type drawn struct {
	all     [10]uint64     // [t]: hands of total t
	holding [10][10]uint64 // [t][v]: those that hold one particular card of value v
}

// add takes in the hands whose first two cards total b.
func (h *drawn) add(q *pairs, b int) {
	partner, first, all := &q.partner[b], &q.first[b], q.all[b]
	for third := range first {
		t := mod10[b+third]
		thirds := q.cards[third]
		h.all[t] += thirds*all - 2*first[third] // not a third card that is in the pair
		holding := &h.holding[t]
		for v, n := range partner { // the particular card in the pair, first or second
			holding[v] += 2 * n * thirds
		}
		holding[third] += all - 4*partner[third] // itself the third; and it cannot be both
		other := mod10[10+b-third]
		holding[other] -= 2 * partner[other] // nor can its partner
	}
}
