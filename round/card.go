package round

import "fmt"

// Card is one playing card as rank and suit, or Masked.
//
// The zero Card is no card at all. A card's text is its rank, one of
// A23456789TJQK, and its suit, one of s h d c: 8s, Th.
type Card uint8

// Masked is a card that left the shoe without its face being told ("??").
const Masked Card = 0xff

// Suit of a card, in the order used by Card.Index.
type Suit uint8

const (
	Spade Suit = iota + 1
	Heart
	Diamond
	Club
)

// Faces is the number of different faces in one deck: no jokers.
const Faces = 52

const (
	rankText = "A23456789TJQK"
	suitText = "shdc"
)

// NewCard is the card of a rank (1 ace … 13 king) and a suit, or the zero
// Card when either is out of range.
func NewCard(rank int, suit Suit) Card {
	if rank < 1 || rank > 13 || suit < Spade || suit > Club {
		return 0
	}
	return Card(rank) | Card(suit)<<4
}

// CardAt is the inverse of Index; i must be in [0, Faces).
func CardAt(i int) Card { return NewCard(i%13+1, Suit(i/13+1)) }

// ParseCard reads a card's two-character text, "??" being Masked.
func ParseCard(text string) (Card, error) {
	if text == "??" {
		return Masked, nil
	}
	if len(text) == 2 {
		for r := range rankText {
			for s := range suitText {
				if text[0] == rankText[r] && text[1] == suitText[s] {
					return NewCard(r+1, Suit(s+1)), nil
				}
			}
		}
	}
	return 0, fmt.Errorf("card %q is not a rank A23456789TJQK with a suit shdc, nor ??", text)
}

// Known reports whether c has a face.
func (c Card) Known() bool { return c != 0 && c != Masked }

// Rank is 1 for an ace to 13 for a king; 0 when c has no face.
func (c Card) Rank() int {
	if !c.Known() {
		return 0
	}
	return int(c & 0x0f)
}

// Suit of c; 0 when c has no face.
func (c Card) Suit() Suit {
	if !c.Known() {
		return 0
	}
	return Suit(c >> 4)
}

// Value in baccarat: ace 1, 2–9 as printed, ten and faces 0 (game.md
// section 1; seed 001). A card without a face counts 0: ask Known first.
func (c Card) Value() int {
	if r := c.Rank(); r < 10 {
		return r
	}
	return 0
}

// Index numbers the faces 0 … 51; c must have one.
func (c Card) Index() int { return int(c>>4-1)*13 + int(c&0x0f) - 1 }

// String is the card's text, "??" when it has no face.
func (c Card) String() string {
	if !c.Known() {
		return "??"
	}
	return rankText[c.Rank()-1:c.Rank()] + suitText[c.Suit()-1:c.Suit()]
}
