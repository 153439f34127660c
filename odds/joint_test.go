package odds

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"shoed/round"
)

// The ranges this package counts by are the draw rules of round (game.md
// section 1), and the draw table is a staircase.
func TestDrawRanges(t *testing.T) {
	for total := range liveTotals {
		if round.PlayerDraws(total) != (total < drawTotals) || round.BankerDrawsAlone(total) != (total < drawTotals) {
			t.Errorf("total %d: drawTotals disagrees with round", total)
		}
		for third := range 10 {
			if round.BankerDraws(total, third) != (total <= drawsUpTo[third]) {
				t.Errorf("Banker %d against a third card %d: drawsUpTo disagrees with round", total, third)
			}
		}
	}
	for total := range 10 {
		if round.Natural(total) != (total >= liveTotals) {
			t.Errorf("total %d: liveTotals disagrees with round", total)
		}
	}
}

func TestPermutationCounts(t *testing.T) {
	for _, r := range readReference(t, "permutation_counts") {
		j := joint(t, fullShoe(t, r.int(t, "decks")).Values())
		o := j.Outcomes()
		got := map[string]uint64{"player": o.Player, "banker": o.Banker, "tie": o.Tie, "total": o.Player + o.Banker + o.Tie}[r["outcome"]]
		if got != r.uint(t, "computed_count") || j.Den != r.uint(t, "denominator") {
			t.Errorf("%s decks, %s: %d of %d, want %s of %s", r["decks"], r["outcome"], got, j.Den, r["computed_count"], r["denominator"])
		}
		if r["published_count"] != "" && got != r.uint(t, "published_count") {
			t.Errorf("%s decks, %s: %d, published is %s", r["decks"], r["outcome"], got, r["published_count"])
		}
	}
}

func TestJointTables(t *testing.T) {
	for _, table := range []struct {
		decks int
		count string
	}{{6, "count_of_878869206895680"}, {8, "count_of_4998398275503360"}} {
		j := joint(t, fullShoe(t, table.decks).Values())
		sum := uint64(0)
		for _, r := range readReference(t, fmt.Sprintf("joint_final_%ddeck", table.decks)) {
			got := j.Ways[r.int(t, "player_cards")-2][r.int(t, "banker_cards")-2][r.int(t, "player_total")][r.int(t, "banker_total")]
			if got != r.uint(t, table.count) {
				t.Errorf("%d decks, %v: %d", table.decks, r, got)
			}
			sum += got
		}
		if sum != j.Den { // so all other cells are empty
			t.Errorf("%d decks: the listed cells sum to %d of %d", table.decks, sum, j.Den)
		}
	}
}

func TestTieByTotal(t *testing.T) {
	j := joint(t, fullShoe(t, 8).Values())
	for _, r := range readReference(t, "tie_by_total_8deck") {
		total := r.int(t, "tie_total")
		got := j.sum(func(r round.Result) bool { return r.PlayerTotal == total && r.BankerTotal == total })
		if got != r.uint(t, "published_count") || got != r.uint(t, "computed_count") {
			t.Errorf("ties at %d: %d, published %s", total, got, r["published_count"])
		}
	}
}

func TestCompositionVectors(t *testing.T) {
	columns := map[string][2]string{
		"player": {"player", "win"}, "banker": {"banker", "win"}, "tie": {"tie", "win"},
		"banker6_2card": {"lucky_six", "two_cards"}, "banker6_3card": {"lucky_six", "three_cards"},
		"player7_2card": {"lucky_seven", "two_cards"}, "player7_3card": {"lucky_seven", "three_cards"},
		"p7b6_4cards": {"super_lucky_seven", "four_cards"}, "p7b6_5cards": {"super_lucky_seven", "five_cards"},
		"p7b6_6cards":        {"super_lucky_seven", "six_cards"},
		"player_natural_win": {"player_bonus", "natural"}, "banker_natural_win": {"banker_bonus", "natural"},
	}
	for margin := 4; margin <= 9; margin++ {
		for _, side := range []string{"player", "banker"} {
			columns[fmt.Sprintf("%s_bonus_win%d", side, margin)] = [2]string{side + "_bonus", fmt.Sprintf("by_%d", margin)}
		}
	}
	for _, r := range readReference(t, "composition_vectors") {
		var counts [10]int
		for v := range counts {
			counts[v] = r.int(t, fmt.Sprintf("n%d", v))
		}
		c, err := ByValue(counts)
		if err != nil {
			t.Fatal(err)
		}
		prices := pricesOf(t, c)
		ways := map[[2]string]uint64{}
		pushes := map[string]uint64{}
		for _, p := range prices {
			bet := p.Bet.String()
			pushes[bet] = p.Push
			for _, tier := range p.Tiers {
				ways[[2]string{bet, tier.Tier.String()}] = tier.Num
			}
			if p.Den != r.uint(t, "denominator") {
				t.Errorf("%v, %s: denominator %d", counts, bet, p.Den)
			}
		}
		if c.Cards() != r.int(t, "cards") {
			t.Errorf("%v: %d cards", counts, c.Cards())
		}
		for column, key := range columns {
			if ways[key] != r.uint(t, column) {
				t.Errorf("%v, %s: %d, want %s", counts, column, ways[key], r[column])
			}
		}
		if pushes["player_bonus"] != r.uint(t, "natural_tie") || pushes["banker_bonus"] != r.uint(t, "natural_tie") {
			t.Errorf("%v: natural ties %d and %d, want %s", counts, pushes["player_bonus"], pushes["banker_bonus"], r["natural_tie"])
		}
	}
}

// randomShoe has n cards by value, of a shoe of up to twelve decks. Half of
// them are of few values, which brings out cards that meet in both hands.
func randomShoe(r *rand.Rand, n int) (shoe [10]int) {
	kinds := 10
	if r.IntN(2) == 0 {
		kinds = 1 + r.IntN(4)
	}
	order := r.Perm(10)
	for n > 0 {
		v := order[r.IntN(kinds)]
		if most := 48; v != 0 && shoe[v] == most || v == 0 && shoe[0] == 4*most {
			kinds = 10
			continue
		}
		shoe[v]++
		n--
	}
	return shoe
}

func values(shoe [10]int) (v Values) {
	for i, n := range shoe {
		v[i] = uint16(n)
	}
	return v
}

// seeded says its seed, so that a failure can be repeated.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func checkJoint(t *testing.T, shoe [10]int) {
	t.Helper()
	j := joint(t, values(shoe))
	want := dumbJoint(shoe)
	n := 0
	for _, c := range shoe {
		n += c
	}
	sum := new(big.Int)
	for pc := range 2 {
		for bc := range 2 {
			for p := range 10 {
				for b := range 10 {
					got := new(big.Int).SetUint64(j.Ways[pc][bc][p][b])
					w := want[[4]int{pc + 2, bc + 2, p, b}]
					if w == nil {
						w = new(big.Int)
					}
					if got.Cmp(w) != 0 {
						t.Fatalf("shoe %v, cards %d %d, totals %d %d: %v, want %v", shoe, pc+2, bc+2, p, b, got, w)
					}
					sum.Add(sum, got)
				}
			}
		}
	}
	if den := dumbFalling(n, 6); sum.Cmp(den) != 0 || den.Cmp(new(big.Int).SetUint64(j.Den)) != 0 {
		t.Fatalf("shoe %v: cells sum to %v, Den %d, want %v", shoe, sum, j.Den, den)
	}
}

func TestJointAgainstDumb(t *testing.T) {
	r := seeded(t)
	for range 40 {
		checkJoint(t, randomShoe(r, 6+r.IntN(25)))
	}
	for _, decks := range []int{1, 8, 12} {
		shoe := [10]int{16 * decks}
		for v := 1; v < 10; v++ {
			shoe[v] = 4 * decks
		}
		checkJoint(t, shoe)
	}
}

func TestJointOfEverySize(t *testing.T) {
	r := seeded(t)
	for n := range MaxCards + 30 {
		shoe := randomShoe(r, min(n, MaxCards))
		shoe[0] += max(0, n-MaxCards)
		var j Joint
		err := j.Count(values(shoe))
		if n < 6 || n > MaxCards {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(n)) {
				t.Fatalf("%d cards: error %v, want one that says how many", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d cards: %v", n, err)
		}
		sum := uint64(0)
		sumWide := new(big.Int)
		j.sum(func(r round.Result) bool {
			ways := j.Ways[r.PlayerCards-2][r.BankerCards-2][r.PlayerTotal][r.BankerTotal]
			sum += ways
			sumWide.Add(sumWide, new(big.Int).SetUint64(ways))
			return false
		})
		if sum != j.Den || sumWide.Cmp(dumbFalling(n, 6)) != 0 {
			t.Fatalf("%d cards, %v: cells sum to %v of %d", n, shoe, sumWide, j.Den)
		}
	}
}

// A 64-bit count would end at 1628 cards; a shoe has at most 624, whose count
// takes 56 bits. All cells are at most Den, so none can wrap.
func TestWidth(t *testing.T) {
	if n := dumbFalling(MaxCards, 6).BitLen(); n != 56 {
		t.Errorf("%d cards need %d bits", MaxCards, n)
	}
	if dumbFalling(1627, 6).BitLen() != 64 || dumbFalling(1628, 6).BitLen() != 65 {
		t.Error("composition.go names the wrong end of 64 bits")
	}
	if got := falling(MaxCards, 6); new(big.Int).SetUint64(got).Cmp(dumbFalling(MaxCards, 6)) != 0 {
		t.Errorf("falling(%d, 6) = %d", MaxCards, got)
	}
}

func TestAllocations(t *testing.T) {
	v := fullShoe(t, 8).Values()
	var j Joint
	table := &round.DefaultInsurance
	offers := make([]round.Offer, 0, 4)
	event := openedOn(Hands{handOf(1, 2), handOf(0, 4)}, v)
	for name, f := range map[string]func() error{
		"joint":  func() error { return j.Count(v) },
		"four":   func() error { _, err := Hands{handOf(1, 2), handOf(0, 4)}.Outcomes(v); return err },
		"five":   func() error { _, err := Hands{handOf(1, 2, 6), handOf(0, 4)}.Outcomes(v); return err },
		"hidden": func() error { _, err := Hands{handOf(-1, -1), handOf(0, 4)}.Outcomes(v); return err },
		"masked": func() error { _, err := Hands{handOf(-1, 2, 6), handOf(0, -1)}.Outcomes(v); return err },
		"window": func() error {
			h := Hands{handOf(1, 2), handOf(0, 4)}
			offers = Offers(table, h, offers[:0])
			return FillOffers(offers, h, v, round.TiePushes)
		},
		"event": func() error { return Fill(event) },
	} {
		var err error
		if n := testing.AllocsPerRun(100, func() { err = f() }); n != 0 || err != nil {
			t.Errorf("%s: %v allocations, error %v", name, n, err)
		}
	}
}
