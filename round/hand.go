package round

// Side is one of the two hands of a round. Never a person.
type Side uint8

const (
	Player Side = iota + 1
	Banker
)

// Box is a place on the layout for one card.
type Box uint8

const (
	P1 Box = iota + 1
	P2
	P3
	B1
	B2
	B3
)

// BoxOf is the box of a side's card 1, 2 or 3; 0 when there is none such.
func BoxOf(side Side, pos uint8) Box {
	if side < Player || side > Banker || pos < 1 || pos > 3 {
		return 0
	}
	return Box(uint8(side-Player)*3 + pos)
}

// Side the box belongs to; 0 for no box.
func (b Box) Side() Side {
	switch {
	case b >= P1 && b <= P3:
		return Player
	case b >= B1 && b <= B3:
		return Banker
	}
	return 0
}

// Pos is the place of the box within its hand, 1 to 3.
func (b Box) Pos() uint8 {
	if b == 0 {
		return 0
	}
	return uint8(b-1)%3 + 1
}

// Outcome of a round.
type Outcome uint8

const (
	PlayerWins Outcome = iota + 1
	BankerWins
	Tie
)

// OutcomeOf compares two totals.
func OutcomeOf(player, banker int) Outcome {
	switch {
	case player > banker:
		return PlayerWins
	case banker > player:
		return BankerWins
	}
	return Tie
}

// Total of a hand: the sum of its cards' values modulo ten.
func Total(cards ...Card) int {
	sum := 0
	for _, c := range cards {
		sum += c.Value()
	}
	return sum % 10
}

// Natural reports whether a two-card total ends the draw for both hands.
func Natural(total int) bool { return total >= 8 }

// PlayerDraws is Player's rule on a two-card total: draw on 0–5, stand on 6
// and 7 (game.md section 1; seed 001). Naturals are asked for first.
func PlayerDraws(total int) bool { return total <= 5 }

// BankerDraws is Banker's rule on a two-card total when Player took a third
// card of value third (game.md section 1; seed 001's table).
func BankerDraws(total, third int) bool {
	switch total {
	case 0, 1, 2:
		return true
	case 3:
		return third != 8
	case 4:
		return third >= 2 && third <= 7
	case 5:
		return third >= 4 && third <= 7
	case 6:
		return third == 6 || third == 7
	}
	return false
}

// BankerDrawsAlone is Banker's rule when Player stood: as Player's own.
func BankerDrawsAlone(total int) bool { return total <= 5 }
