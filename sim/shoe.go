package sim

import (
	"math/rand/v2"

	"shoed/round"
)

// Shoe is shuffled cards with a cut card among them.
type Shoe struct {
	cards  []round.Card // the next one last
	behind int          // cards behind the cut card
}

// NewShoe shuffles decks by r and puts the cut card in front of the last behind
// cards.
func NewShoe(r *rand.Rand, decks, behind int) *Shoe {
	s := &Shoe{behind: behind}
	for range decks {
		for i := range round.Faces {
			s.cards = append(s.cards, round.CardAt(i))
		}
	}
	r.Shuffle(len(s.cards), func(i, j int) { s.cards[i], s.cards[j] = s.cards[j], s.cards[i] })
	return s
}

// Left is the number of cards in the shoe.
func (s *Shoe) Left() int { return len(s.cards) }

// Draw takes the next card out; cut says that the cut card came before it. There
// is no card in an empty shoe.
func (s *Shoe) Draw() (card round.Card, cut bool) {
	n := len(s.cards)
	if n == 0 {
		return 0, false
	}
	card, s.cards = s.cards[n-1], s.cards[:n-1]
	return card, n == s.behind
}
