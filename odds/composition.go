package odds

import (
	"fmt"

	"shoed/round"
)

// MaxCards bounds a composition: twelve decks, the largest shoe that round
// accepts. Every count of this package is at most N(N−1)…(N−5), 5.8e16 here; a
// uint64 would hold it up to N = 1627.
const MaxCards = round.MaxDecks * round.Faces

// roundCards is how many cards one round may take.
const roundCards = 6

// Values are counts of cards by baccarat value: ten and faces at 0, aces at 1.
type Values [10]uint16

// Cards is their sum.
func (v *Values) Cards() int {
	return int(v[0]) + int(v[1]) + int(v[2]) + int(v[3]) + int(v[4]) +
		int(v[5]) + int(v[6]) + int(v[7]) + int(v[8]) + int(v[9])
}

// Composition of the unseen cards. The zero value has none.
type Composition struct {
	faces  [round.Faces]uint16 // by round.Card.Index; meaningless unless Faced
	values Values
	faced  bool
}

// FullShoe is a new shoe of 1 to 12 decks.
func FullShoe(decks int) (Composition, error) {
	return Unseen(decks, [round.Faces]uint8{})
}

// Unseen is a shoe of decks less the cards shown, by round.Card.Index.
func Unseen(decks int, shown [round.Faces]uint8) (Composition, error) {
	if decks < 1 || decks > round.MaxDecks {
		return Composition{}, fmt.Errorf("%d decks: a shoe has 1 to %d", decks, round.MaxDecks)
	}
	var counts [round.Faces]int
	for i := range counts {
		if counts[i] = decks - int(shown[i]); counts[i] < 0 {
			return Composition{}, fmt.Errorf("card %v: %d were shown, a shoe of %d decks has %d", round.CardAt(i), shown[i], decks, decks)
		}
	}
	return ByFace(counts)
}

// ByFace makes a composition from the counts of all faces, by
// round.Card.Index.
func ByFace(counts [round.Faces]int) (Composition, error) {
	c := Composition{faced: true}
	for i, n := range counts {
		card := round.CardAt(i)
		if n < 0 || n > round.MaxDecks {
			return Composition{}, fmt.Errorf("card %v: %d unseen, a shoe has 0 to %d of a face", card, n, round.MaxDecks)
		}
		c.faces[i] = uint16(n)
		c.values[card.Value()] += uint16(n)
	}
	return c, nil
}

// ByValue makes a composition from counts by value. Bets on ranks and suits
// cannot be computed from it.
func ByValue(counts [10]int) (Composition, error) {
	var c Composition
	for v, n := range counts {
		most := 4 * round.MaxDecks
		if v == 0 {
			most *= 4 // ten, jack, queen, king
		}
		if n < 0 || n > most {
			return Composition{}, fmt.Errorf("value %d: %d unseen, a shoe has 0 to %d of them", v, n, most)
		}
		c.values[v] = uint16(n)
	}
	return c, nil
}

// Without is c less the cards given. A masked card stays unseen.
func (c Composition) Without(cards ...round.Card) (Composition, error) {
	for _, card := range cards {
		if !card.Known() {
			continue
		}
		if !c.faced {
			return Composition{}, fmt.Errorf("card %v: this composition is known by value only", card)
		}
		if c.faces[card.Index()] == 0 {
			return Composition{}, fmt.Errorf("card %v: none is left unseen", card)
		}
		c.faces[card.Index()]--
		c.values[card.Value()]--
	}
	return c, nil
}

// Values are the counts by value.
func (c Composition) Values() Values { return c.values }

// Cards is how many are unseen.
func (c Composition) Cards() int { return c.values.Cards() }

// Faced reports whether ranks and suits are known, not values alone.
func (c Composition) Faced() bool { return c.faced }

// enough checks that need cards are unseen, and not more than any shoe has.
func (v *Values) enough(need int) (cards uint64, err error) {
	n := v.Cards()
	if n < need || n > MaxCards {
		return 0, wrongNumber(n, need)
	}
	return uint64(n), nil
}

func wrongNumber(cards, need int) error {
	if cards < need {
		return fmt.Errorf("%d cards are unseen, up to %d may still be needed", cards, need)
	}
	return fmt.Errorf("%d cards are unseen, a shoe has at most %d", cards, MaxCards)
}

// falling is n(n−1)…, k factors: ordered draws of k cards out of n.
func falling(n uint64, k int) uint64 {
	ways := uint64(1)
	for ; k > 0; k-- {
		ways *= n
		n--
	}
	return ways
}
