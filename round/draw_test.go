package round_test

import (
	"strings"
	"testing"
	"time"

	"shoed/round"
)

// dumbTable is the draw table written out from seed 001's printed rows, a
// second time and on purpose not as hand.go has it: for Banker's total, the
// values of Player's third card on which Banker draws.
var dumbTable = map[int]string{
	0: "0123456789", 1: "0123456789", 2: "0123456789",
	3: "01234567 9", 4: "234567", 5: "4567", 6: "67", 7: "", 8: "", 9: "",
}

func TestDrawTable(t *testing.T) { // game.md section 1; seed 001
	for total := range 10 {
		if got, want := round.PlayerDraws(total), strings.ContainsRune("012345", rune('0'+total)); got != want {
			t.Errorf("Player draws on %d: %v, want %v", total, got, want)
		}
		if got, want := round.BankerDrawsAlone(total), strings.ContainsRune("012345", rune('0'+total)); got != want {
			t.Errorf("Banker draws on %d alone: %v, want %v", total, got, want)
		}
		if got, want := round.Natural(total), total == 8 || total == 9; got != want {
			t.Errorf("%d is a natural: %v, want %v", total, got, want)
		}
		for third := range 10 {
			want := strings.ContainsRune(dumbTable[total], rune('0'+third))
			if got := round.BankerDraws(total, third); got != want {
				t.Errorf("Banker draws on %d against %d: %v, want %v", total, third, got, want)
			}
		}
	}
}

// dumbRound deals values by the rules as a person would say them, one
// sentence a line, and returns the cards taken and the outcome.
func dumbRound(next func() int) (taken int, outcome round.Outcome) {
	p1, b1, p2, b2 := next(), next(), next(), next()
	taken = 4
	player, banker := (p1+p2)%10, (b1+b2)%10
	if player < 8 && banker < 8 {
		third := -1
		if player < 6 {
			third = next()
			taken++
			player = (player + third) % 10
		}
		draws := banker < 6
		if third >= 0 {
			draws = strings.ContainsRune(dumbTable[banker], rune('0'+third))
		}
		if draws {
			banker = (banker + next()) % 10
			taken++
		}
	}
	if player > banker {
		return taken, round.PlayerWins
	}
	if banker > player {
		return taken, round.BankerWins
	}
	return taken, round.Tie
}

// TestWholeShoe sends every ordered deal of values from a full shoe through
// Step and counts them by outcome. The published numbers are those of
// wizardofodds.com's baccarat appendix 1; two enumerations of our own agree.
func TestWholeShoe(t *testing.T) {
	e := enumeration{}
	for v := range e.left {
		e.left[v] = 32
	}
	e.left[0] = 128
	rules := round.DefaultRules()
	set(t, &rules, "burn=none", "round_start=first_card")
	s := step(t, round.New(rules), round.Input{At: start, Kind: round.InShoe})
	e.deal(t, s, 0, 1)
	want := [4]uint64{round.PlayerWins: 2_230_518_282_592_256, round.BankerWins: 2_292_252_566_437_888, round.Tie: 475_627_426_473_216}
	if e.ways != want {
		t.Errorf("ways by outcome %v, want %v", e.ways, want)
	}
}

type enumeration struct {
	left   [10]uint64
	drawn  [6]int
	ways   [4]uint64
	events []round.Event
}

// deal tries every value as the next card; ways is how many ordered deals of
// cards lead here.
func (e *enumeration) deal(t *testing.T, s round.State, n int, ways uint64) {
	for v, left := range e.left {
		if left == 0 {
			continue
		}
		rank := v
		if v == 0 {
			rank = 10 + n%4
		}
		after, events, err := s.Step(round.Input{At: start, Kind: round.InCard, Card: round.NewCard(rank, round.Spade)}, e.events[:0])
		if err != nil {
			t.Fatal(err)
		}
		e.events = events
		e.drawn[n] = v
		if !after.Round.Decided {
			e.left[v]--
			e.deal(t, after, n+1, ways*left)
			e.left[v]++
			continue
		}
		total := ways * left
		for k := n + 1; k < 6; k++ {
			total *= uint64(416 - k) // the cards a shorter round leaves undrawn
		}
		e.ways[after.Round.Outcome] += total
		i := -1
		taken, outcome := dumbRound(func() int { i++; return e.drawn[i] })
		if taken != n+1 || outcome != after.Round.Outcome {
			t.Fatalf("%v: %d cards, %v; the dumb deal says %d, %v", e.drawn[:n+1], n+1, after.Round.Outcome, taken, outcome)
		}
	}
}

var start = time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)

func set(t testing.TB, r *round.Rules, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := r.Set(text); err != nil {
			t.Fatal(err)
		}
	}
}

func step(t testing.TB, s round.State, in round.Input) round.State {
	t.Helper()
	s, _, err := s.Step(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
