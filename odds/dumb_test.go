package odds

import (
	"math/big"
	"strings"

	"shoed/round"
)

// A second, dumb implementation: every card one after the other, written from
// the printed rules (seed 000's table), in big integers. It shares no code and
// no tables with the package.

// dumbTable: Banker's two-card total, and Player's third cards against which
// it draws.
var dumbTable = map[int]string{
	0: "0123456789", 1: "0123456789", 2: "0123456789",
	3: "012345679", 4: "234567", 5: "4567", 6: "67", 7: "",
}

// dumbRound is a complete round: the values of the cards of both hands.
type dumbRound struct{ player, banker []int }

func (r dumbRound) total(cards []int) int {
	sum := 0
	for _, v := range cards {
		sum += v
	}
	return sum % 10
}

// dumbDeal deals the rounds that fit what is known. It calls end with the
// number of ordered ways of the cards it drew, and how many it drew.
type dumbDeal struct {
	left                   [10]int
	player, banker         []int // known values, -1 for an unknown card
	playerThird, bankThird bool  // dealt
	end                    func(r dumbRound, ways *big.Int, drawn int)
}

// place gives the next card of a hand a value, known or each possible one.
func (d *dumbDeal) place(known []int, i int, ways *big.Int, drawn int, then func(v int, ways *big.Int, drawn int)) {
	if i < len(known) && known[i] >= 0 {
		then(known[i], ways, drawn)
		return
	}
	for v := range 10 {
		if d.left[v] == 0 {
			continue
		}
		more := new(big.Int).Mul(ways, big.NewInt(int64(d.left[v])))
		d.left[v]--
		then(v, more, drawn+1)
		d.left[v]++
	}
}

func (d *dumbDeal) run() {
	one := big.NewInt(1)
	d.place(d.player, 0, one, 0, func(p1 int, w *big.Int, n int) {
		d.place(d.banker, 0, w, n, func(b1 int, w *big.Int, n int) {
			d.place(d.player, 1, w, n, func(p2 int, w *big.Int, n int) {
				d.place(d.banker, 1, w, n, func(b2 int, w *big.Int, n int) {
					d.thirds(dumbRound{[]int{p1, p2}, []int{b1, b2}}, w, n)
				})
			})
		})
	})
}

func (d *dumbDeal) thirds(r dumbRound, ways *big.Int, drawn int) {
	p, b := r.total(r.player), r.total(r.banker)
	finish := func(r dumbRound, ways *big.Int, drawn int) {
		if d.playerThird && len(r.player) == 2 || d.bankThird && len(r.banker) == 2 {
			return // not what was dealt
		}
		if d.bankThird && !d.playerThird && len(r.player) == 3 {
			return // Banker never draws before Player
		}
		d.end(r, ways, drawn)
	}
	if p == 8 || p == 9 || b == 8 || b == 9 {
		finish(r, ways, drawn)
		return
	}
	if p == 6 || p == 7 {
		if b == 6 || b == 7 {
			finish(r, ways, drawn)
			return
		}
		d.place(d.banker, 2, ways, drawn, func(v int, ways *big.Int, drawn int) {
			finish(dumbRound{r.player, []int{r.banker[0], r.banker[1], v}}, ways, drawn)
		})
		return
	}
	d.place(d.player, 2, ways, drawn, func(third int, ways *big.Int, drawn int) {
		three := []int{r.player[0], r.player[1], third}
		if !strings.ContainsRune(dumbTable[b], rune('0'+third)) {
			finish(dumbRound{three, r.banker}, ways, drawn)
			return
		}
		d.place(d.banker, 2, ways, drawn, func(v int, ways *big.Int, drawn int) {
			finish(dumbRound{three, []int{r.banker[0], r.banker[1], v}}, ways, drawn)
		})
	})
}

// dumbFalling is n(n−1)…, k factors.
func dumbFalling(n, k int) *big.Int {
	ways := big.NewInt(1)
	for i := range k {
		ways.Mul(ways, big.NewInt(int64(n-i)))
	}
	return ways
}

// dumbJoint counts final hands over draws of six cards, by cards and totals.
func dumbJoint(shoe [10]int) map[[4]int]*big.Int {
	n := 0
	for _, c := range shoe {
		n += c
	}
	joint := map[[4]int]*big.Int{}
	d := dumbDeal{left: shoe}
	d.end = func(r dumbRound, ways *big.Int, drawn int) {
		key := [4]int{len(r.player), len(r.banker), r.total(r.player), r.total(r.banker)}
		if joint[key] == nil {
			joint[key] = new(big.Int)
		}
		joint[key].Add(joint[key], new(big.Int).Mul(ways, dumbFalling(n-drawn, 6-drawn)))
	}
	d.run()
	return joint
}

// dumbOutcomes gives the probabilities of Player, Banker and Tie; false when
// the hands cannot have been dealt.
func dumbOutcomes(h Hands, shoe [10]int) (probability [4]*big.Rat, ok bool) {
	n := 0
	for _, c := range shoe {
		n += c
	}
	d := dumbDeal{left: shoe, player: dumbKnown(h.Player), banker: dumbKnown(h.Banker), playerThird: h.Player.N == 3, bankThird: h.Banker.N == 3}
	var ways [4][7]big.Int // by outcome and cards drawn
	d.end = func(r dumbRound, w *big.Int, drawn int) {
		o := round.Tie
		switch p, b := r.total(r.player), r.total(r.banker); {
		case p > b:
			o = round.PlayerWins
		case b > p:
			o = round.BankerWins
		}
		ways[o][drawn].Add(&ways[o][drawn], w)
	}
	d.run()
	sum := new(big.Rat)
	for o := range probability {
		probability[o] = new(big.Rat)
		for drawn := range ways[o] {
			if ways[o][drawn].Sign() != 0 {
				probability[o].Add(probability[o], new(big.Rat).SetFrac(&ways[o][drawn], dumbFalling(n, drawn)))
			}
		}
		sum.Add(sum, probability[o])
	}
	if sum.Sign() == 0 {
		return probability, false
	}
	for o := range probability {
		probability[o].Quo(probability[o], sum)
	}
	return probability, true
}

func dumbKnown(h round.Hand) (known []int) {
	for _, c := range h.Cards[:h.N] {
		v := -1
		if c.Known() {
			v = c.Rank()
			if v >= 10 {
				v = 0
			}
		}
		known = append(known, v)
	}
	return known
}
