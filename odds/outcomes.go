package odds

import (
	"errors"
	"fmt"

	"shoed/round"
)

// Hands are the cards of a round in hand as the table has shown them, in their
// boxes' order. A card that was dealt and not shown is round.Masked; a card
// not dealt yet is not counted in N.
type Hands struct {
	Player, Banker round.Hand
}

// Outcomes are the ways a round can still end; Den is their sum.
type Outcomes struct {
	Player, Banker, Tie, Den uint64
}

// Of is the ways of one outcome.
func (o Outcomes) Of(outcome round.Outcome) uint64 {
	switch outcome {
	case round.PlayerWins:
		return o.Player
	case round.BankerWins:
		return o.Banker
	case round.Tie:
		return o.Tie
	}
	return 0
}

// Outcomes of the round, given the hands and the unseen cards: every card that
// the table has not shown, wherever it is (the hands' masked cards among them).
// It fails when the hands are against the draw rules or the cards are too few.
//
// With the first four cards known it takes nanoseconds, with one hand unknown
// about a microsecond, with nothing known a Joint. Otherwise it goes through
// the values of the unknown cards: the worst, all four masked although third
// cards are dealt, takes some hundred microseconds. It does not allocate.
func (h Hands) Outcomes(unseen Values) (Outcomes, error) {
	if p, b := h.Player.N, h.Banker.N; p|b > 3 || (p == 3 || b == 3) && (p < 2 || b < 2) {
		return Outcomes{}, fmt.Errorf("%d Player and %d Banker cards: a third comes after the first four, and no fourth: %w", p, b, ErrAgainstRules)
	}
	player, banker := readHand(&h.Player), readHand(&h.Banker)
	unknown := player.unknown + banker.unknown
	thirds := 0
	switch {
	case unknown == 0:
		thirds = thirdsOn(player.total, banker.total, player.third, banker.third)
		if thirds == 1 && (player.third >= 0 || player.total >= drawTotals) {
			return lastCard(player, banker, &unseen)
		}
	case unknown == 4 && player.third == notDealt && banker.third == notDealt:
		return beforeRound(unseen)
	default:
		thirds = thirdsAtMost(player, banker)
	}
	if thirds < 0 {
		return Outcomes{}, ErrAgainstRules
	}
	cards, err := unseen.enough(unknown + thirds)
	if err != nil {
		return Outcomes{}, err
	}
	d := deal{player: player, banker: banker, unseen: &unseen, cards: cards, thirds: thirds}
	d.run(1)
	d.out.Den = d.out.Player + d.out.Banker + d.out.Tie
	if d.out.Den == 0 {
		return Outcomes{}, ErrAgainstRules
	}
	return d.out, nil
}

// ErrAgainstRules is of hands that cannot have been dealt.
var ErrAgainstRules = errors.New("these hands cannot have been dealt under the draw rules")

// lastCard is the case in which only Banker's third card is open.
func lastCard(player, banker hand, unseen *Values) (Outcomes, error) {
	cards, err := unseen.enough(1)
	if err != nil {
		return Outcomes{}, err
	}
	p := player.total
	if player.third >= 0 {
		p = int(mod10[p+player.third])
	}
	less, same, more := unseen.split(p, banker.total, cards)
	return Outcomes{Player: less, Banker: more, Tie: same, Den: cards}, nil
}

// beforeRound is the case in which the table has shown nothing.
func beforeRound(unseen Values) (Outcomes, error) {
	var j Joint
	if err := j.Count(unseen); err != nil {
		return Outcomes{}, err
	}
	return j.Outcomes(), nil
}

// What is known of a hand's third card when it is not its value.
const (
	notDealt = -1
	masked   = -2
)

// hand is what one side's cards come to.
type hand struct {
	total   int // of the known ones among the first two
	unknown int // of the first two
	third   int // value, notDealt or masked
}

// valueOf is each card's value, masked for one that has no face.
var valueOf = func() (values [256]int8) {
	for i := range values {
		values[i] = masked
	}
	for i := range round.Faces {
		values[round.CardAt(i)] = int8(round.CardAt(i).Value())
	}
	return
}()

// readHand adds up what is known of a hand.
func readHand(h *round.Hand) hand {
	r := hand{third: notDealt}
	v1, v2 := int(valueOf[h.Cards[0]]), int(valueOf[h.Cards[1]])
	if h.N < 1 || v1 < 0 {
		v1 = 0
		r.unknown++
	}
	if h.N < 2 || v2 < 0 {
		v2 = 0
		r.unknown++
	}
	r.total = int(mod10[v1+v2])
	if h.N == 3 {
		r.third = int(valueOf[h.Cards[2]])
	}
	return r
}
