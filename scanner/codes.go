package scanner

import "shoed/round"

// Codes say what each code that a reader tells means. A code is hexadecimal
// digits in upper case, two for each of its bytes.
type Codes map[string]Meaning

// Meaning of a code: a card, or the cut card.
type Meaning struct {
	Card round.Card // 0 for the cut card
	Cut  bool
}
