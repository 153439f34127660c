package odds

import "shoed/round"

// pairBets are the bets on ranks and suits: not on totals, so not on a joint
// count. Each is one tier.
var pairBets = map[round.Bet]func(*Composition) (num, den uint64){
	round.BetPlayerPair:  (*Composition).pair,
	round.BetBankerPair:  (*Composition).pair,
	round.BetAnyPair:     (*Composition).anyPair,
	round.BetPerfectPair: (*Composition).perfectPair,
}

// pair counts two cards of equal rank, out of two.
func (c *Composition) pair() (num, den uint64) {
	for _, n := range c.ranks() {
		num += falling(n, 2)
	}
	return num, falling(uint64(c.Cards()), 2)
}

// anyPair counts a pair of equal rank in either of two hands, out of four
// cards.
func (c *Composition) anyPair() (num, den uint64) {
	ranks := c.ranks()
	return eitherPair(ranks[:], uint64(c.Cards()))
}

// perfectPair counts a pair of equal rank and suit in either of two hands.
func (c *Composition) perfectPair() (num, den uint64) {
	var faces [round.Faces]uint64
	for i, n := range c.faces {
		faces[i] = uint64(n)
	}
	return eitherPair(faces[:], uint64(c.Cards()))
}

// eitherPair counts the draws of two hands of two cards, one or both hands of
// one kind, given how many cards of each kind there are.
func eitherPair(kinds []uint64, cards uint64) (num, den uint64) {
	pairs, both := uint64(0), uint64(0) // both: of one hand and of the other
	for _, n := range kinds {
		p := falling(n, 2)
		pairs += p
		both += falling(n, 4) - p*p // of the same kind there are fewer than p·p
	}
	both += pairs * pairs
	return 2*pairs*falling(cards-2, 2) - both, falling(cards, 4)
}

func (c *Composition) ranks() (ranks [13]uint64) {
	for i, n := range c.faces {
		ranks[round.CardAt(i).Rank()-1] += uint64(n)
	}
	return ranks
}
