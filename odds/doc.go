// Package odds computes exact probabilities from what the table has shown of
// a shoe: of Player, Banker and Tie, of every bet, of every insurance offer.
// All results are integers: ways over one denominator.
//
// Unseen cards are the full shoe less every card shown. Burned, held and
// masked cards stay unseen: the table does not know where they are, so every
// order of the unseen cards is equally likely.
//
// # Before a round
//
// Joint counts the ordered draws of six unseen cards by (cards P, cards B,
// total P, total B), out of N(N−1)…(N−5). The two cards of Player's hand that
// were dealt first are a pair; the question is always how many pairs of a
// total share no card with a Banker hand. A pair and a hand share 0, 1 or 2
// cards, and 1 − shared + [pair inside hand] is 1, 0, 0. Summed over all pairs
// of total p and all Banker hands of total t:
//
//	apart(p,t) = pairs(p)·hands(t) − 2·Σv pairs(p, first of value v)·holding(t,v) + inside(p,t)
//
// where holding(t,v) are the hands of total t that hold one particular card of
// value v. A two-card hand holds the pair inside it when p = t: inside =
// 2·pairs(p). A three-card hand holds a pair of total p once for each of its
// cards of value t−p: inside = 2·cards(t−p)·holding(t,t−p).
//
// When Player draws, that card d is taken out first. Its removal changes two
// entries of each row of pairs; of the Banker hands it takes those that hold
// it: holding(t,v) loses the hands with both particular cards, whose third
// card is one of the cards(t−d−v) left, in the orders that the draw rule
// allows. Which Banker totals draw against d is a range 0…k (the draw table is
// a staircase), so the three-card hands are counted once, growing by one
// two-card total after the other, and each d is done when its k is reached.
//
// That is 55 multiplications a row (third card d, Banker total t), 100 rows,
// and about 3,000 outside of them. Arithmetic is modulo 2^64; intermediate
// differences may wrap, results cannot: see MaxCards.
//
// # In a round
//
// Cards not known are drawn from the unseen ones. The denominator is
// N(N−1)… over the cards not known: those of the first four that the table
// has not shown, and as many third cards as may at most be drawn or are dealt
// and masked. That a third card was dealt is itself known: draws against the
// rules are not counted, and then the denominator is the number of draws left.
package odds
