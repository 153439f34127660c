package round_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shoed/round"
)

// resultsOf reads a sequence of P, B and T.
func resultsOf(t testing.TB, sequence string) []round.RoadResult {
	t.Helper()
	var results []round.RoadResult
	for _, letter := range sequence {
		i := strings.IndexRune("PBT", letter)
		if i < 0 {
			t.Fatalf("%q in sequence %s", letter, sequence)
		}
		results = append(results, round.RoadResult{Outcome: round.Outcome(i + 1)})
	}
	return results
}

// TestRoadsVectors: every row of the vectors, every road in it (game.md
// section 6).
func TestRoadsVectors(t *testing.T) {
	f, err := os.Open("testdata/roads/roads_vectors.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 65 {
		t.Fatalf("%d rows, want the header and 64", len(rows))
	}
	for _, row := range rows[1:] {
		want := map[string]string{}
		for i, column := range rows[0] {
			want[column] = row[i]
		}
		t.Run(want["kind"]+" "+want["name"], func(t *testing.T) {
			got := vectorOf(round.Roads(resultsOf(t, want["sequence"])))
			for column, text := range got {
				if w, ok := want[column]; !ok || text != w {
					t.Errorf("%s\n%s\nwant\n%s", column, text, w)
				}
			}
		})
	}
}

// vectorOf writes roads as the vectors' columns.
func vectorOf(s round.RoadSet) map[string]string {
	var heights, ties, cells []string
	height := 0
	for i, c := range s.Big {
		height++
		if i+1 == len(s.Big) || s.Big[i+1].Side != c.Side {
			heights, height = append(heights, strconv.Itoa(height)), 0
		}
		ties = append(ties, strconv.Itoa(c.Ties))
		cells = append(cells, fmt.Sprintf("%d.%d", c.Col, c.Row))
	}
	colours := func(road []round.MarkCell) string {
		text := ""
		for _, c := range road {
			text += c.Mark.String()
		}
		return text
	}
	return map[string]string{
		"big_road_column_heights":                       strings.Join(heights, " "),
		"leading_ties":                                  strconv.Itoa(s.LeadTies),
		"tie_marks_per_big_road_cell":                   strings.Join(ties, " "),
		"big_road_cells_col.row_stay_in_row_after_turn": strings.Join(cells, " "),
		"big_eye_boy":                                   colours(s.Derived[0]),
		"small_road":                                    colours(s.Derived[1]),
		"cockroach_pig":                                 colours(s.Derived[2]),
	}
}

// TestRoadsText: the payload's form, with pairs, naturals and ties.
func TestRoadsText(t *testing.T) {
	const natural, player, banker = round.TagNatural, round.TagPlayerPair, round.TagBankerPair
	for name, c := range map[string]struct {
		results []round.RoadResult
		want    string
	}{
		"empty": {nil, `{"rows":6,"bead":[],"lead_ties":0,"big_road":[],"big_eye":[],"small":[],"cockroach":[],"ask":{"player":"---","banker":"---"}}`},
		"ties only": {[]round.RoadResult{{Outcome: round.Tie, Tags: natural}, {Outcome: round.Tie}},
			`{"rows":6,"bead":["Tn","T"],"lead_ties":2,"big_road":[],"big_eye":[],"small":[],"cockroach":[],"ask":{"player":"---","banker":"---"}}`},
		"flags": {[]round.RoadResult{
			{Outcome: round.Tie, Tags: player},
			{Outcome: round.PlayerWins, Tags: player | banker | natural | round.TagPerfectPair | round.TagCorrected},
			{Outcome: round.Tie, Tags: banker | natural},
			{Outcome: round.BankerWins, Tags: banker},
			{Outcome: round.BankerWins, Tags: natural},
			{Outcome: 0, Tags: natural},
			{Outcome: round.PlayerWins, Tags: player | natural},
		}, `{"rows":6,"bead":["Tp","Ppbn","Tbn","Bb","Bn","Ppn"],"lead_ties":1,` +
			`"big_road":[[0,0,"P",2,"pbn"],[1,0,"B",0,"b"],[1,1,"B",0,"n"],[2,0,"P",0,"pn"]],` +
			`"big_eye":[[0,0,"B"],[0,1,"B"]],"small":[],"cockroach":[],"ask":{"player":"RB-","banker":"BR-"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(round.Roads(c.results).Text())
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want\n%s", got, err, c.want)
			}
		})
	}
}

// A second implementation, written from the rule's words alone and slow. The
// big road is drawn on a grid, cell by cell. A derived road is read off a grid
// of streaks, one whole column each, by looking left.

type dumbGrid map[[2]int]bool

// dumbDraw lays out streaks of the given lengths, in entry order.
func dumbDraw(lengths []int) (cells [][2]int) {
	taken := dumbGrid{}
	column := 0
	for _, length := range lengths {
		for taken[[2]int{column, 0}] {
			column++
		}
		at := [2]int{column, 0}
		right := false
		for n := range length {
			if n > 0 {
				below := [2]int{at[0], at[1] + 1}
				if below[1] == 6 || taken[below] {
					right = true
				}
				if right {
					at[0]++
				} else {
					at = below
				}
			}
			if taken[at] {
				panic(fmt.Sprint("two entries in one cell: ", lengths))
			}
			taken[at] = true
			cells = append(cells, at)
		}
	}
	return cells
}

// dumbStreaks are the lengths of runs of equal letters.
func dumbStreaks(letters string) (lengths []int) {
	for i := range letters {
		if i == 0 || letters[i] != letters[i-1] {
			lengths = append(lengths, 0)
		}
		lengths[len(lengths)-1]++
	}
	return lengths
}

// dumbDerived are the letters R and B of the derived road of offset k, for
// the wins of a shoe; aligned, with - where it has no mark.
func dumbDerived(wins string, k int) string {
	lengths := dumbStreaks(wins)
	grid := dumbGrid{}
	for column, length := range lengths {
		for row := range length {
			grid[[2]int{column, row}] = true
		}
	}
	look := func(column, row int) string {
		left := grid[[2]int{column - k, row}]
		aboveLeft := grid[[2]int{column - k, row - 1}]
		if aboveLeft && !left {
			return "B"
		}
		return "R" // beside an entry, or two or more below the last
	}
	marks := ""
	for column, length := range lengths {
		for row := range length {
			switch {
			case row > 0 && column >= k:
				marks += look(column, row)
			case row == 0 && column >= k+1: // what going on with the last streak would not have given
				marks += map[string]string{"R": "B", "B": "R"}[look(column-1, lengths[column-1])]
			default:
				marks += "-"
			}
		}
	}
	return marks
}

func dumbRoads(results []round.RoadResult) (s round.RoadSet) {
	letter := map[round.Outcome]string{round.PlayerWins: "P", round.BankerWins: "B"}
	wins := ""
	for _, r := range results {
		wins += letter[r.Outcome]
	}
	cells := dumbDraw(dumbStreaks(wins))
	s.Bead = results
	for _, r := range results {
		n := len(s.Big)
		switch {
		case r.Outcome != round.Tie:
			s.Big = append(s.Big, round.BigCell{Col: cells[n][0], Row: cells[n][1], Side: round.Side(r.Outcome), Tags: r.Tags})
			if n == 0 {
				s.Big[0].Ties = s.LeadTies
			}
		case n == 0:
			s.LeadTies++
		default:
			s.Big[n-1].Ties++
		}
	}
	mark := map[byte]round.Mark{'R': round.Red, 'B': round.Blue}
	for i := range s.Derived {
		marks := strings.Trim(dumbDerived(wins, i+1), "-")
		for n, cell := range dumbDraw(dumbStreaks(marks)) {
			s.Derived[i] = append(s.Derived[i], round.MarkCell{Col: cell[0], Row: cell[1], Mark: mark[marks[n]]})
		}
		asked := dumbDerived(wins+"P", i+1)
		s.AskPlayer[i] = mark[asked[len(asked)-1]]
		asked = dumbDerived(wins+"B", i+1)
		s.AskBanker[i] = mark[asked[len(asked)-1]]
	}
	return s
}

// randomResults are up to most rounds with any tags. Some shoes run in streaks,
// some chop, some are full of ties.
func randomResults(r *rand.Rand, most int) []round.RoadResult {
	results := make([]round.RoadResult, r.IntN(most+1))
	sticky, ties := r.Float64(), r.Float64()*r.Float64()*0.6
	side := round.Outcome(r.IntN(2) + 1)
	for i := range results {
		if r.Float64() >= sticky {
			side = 3 - side
		}
		results[i] = round.RoadResult{Outcome: side, Tags: round.Tags(r.IntN(64))}
		if r.Float64() < ties {
			results[i].Outcome = round.Tie
		}
	}
	return results
}

func TestRoadsAgainstDumb(t *testing.T) {
	count := 2500
	if testing.Short() { // an emulated processor
		count = 250
	}
	for _, seed := range seeds(t, 4) {
		r := rand.New(rand.NewPCG(seed, 8))
		for range count {
			results := randomResults(r, 120)
			got, want := round.Roads(results), dumbRoads(results)
			if !sameRoads(got, want) {
				t.Fatalf("seed %d: %v\n%+v\nwant\n%+v", seed, results, got, want)
			}
		}
	}
}

// sameRoads takes an empty list for an absent one.
func sameRoads(a, b round.RoadSet) bool {
	return slices.Equal(a.Bead, b.Bead) && a.LeadTies == b.LeadTies && slices.Equal(a.Big, b.Big) &&
		reflect.DeepEqual(markTexts(a), markTexts(b)) && a.AskPlayer == b.AskPlayer && a.AskBanker == b.AskBanker
}

func markTexts(s round.RoadSet) (texts []string) {
	for _, road := range s.Derived {
		texts = append(texts, fmt.Sprint(len(road), road))
	}
	return texts
}

// TestRoadsAsk: what is asked is what comes when that side wins, and a road
// that is asked - gets nothing.
func TestRoadsAsk(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		r := rand.New(rand.NewPCG(seed, 9))
		for range 1000 {
			results := randomResults(r, 120)
			now := round.Roads(results)
			for outcome, ask := range map[round.Outcome][3]round.Mark{round.PlayerWins: now.AskPlayer, round.BankerWins: now.AskBanker} {
				then := round.Roads(append(slices.Clip(results), round.RoadResult{Outcome: outcome}))
				for i, mark := range ask {
					var got round.Mark
					if n := len(now.Derived[i]); len(then.Derived[i]) == n+1 {
						got = then.Derived[i][n].Mark
					} else if len(then.Derived[i]) != n {
						t.Fatalf("seed %d: %v: one win, %d marks", seed, results, len(then.Derived[i])-n)
					}
					if got != mark {
						t.Fatalf("seed %d: %v then %s: road %d asked %s, got %s", seed, results, outcome, i, mark, got)
					}
				}
			}
		}
	}
}

// TestRoadsGrow: a round more moves no cell that was drawn.
func TestRoadsGrow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 10))
	for range 100 {
		results := randomResults(r, 120)
		all := round.Roads(results)
		for n := range results {
			part := round.Roads(results[:n])
			for i, c := range part.Big {
				if w := all.Big[i]; c.Col != w.Col || c.Row != w.Row || c.Side != w.Side || c.Tags != w.Tags {
					t.Fatalf("%v: after %d rounds cell %d is %v, at last %v", results, n, i, c, w)
				}
			}
			for k, road := range part.Derived {
				if !slices.Equal(road, all.Derived[k][:len(road)]) {
					t.Fatalf("%v: after %d rounds road %d is %v, at last %v", results, n, k, road, all.Derived[k])
				}
			}
		}
	}
}

// dealtResults are the rounds of a real shoe of that many decks, burned and
// dealt by the draw table until cut cards are left.
func dealtResults(r *rand.Rand, decks, cut int) (results []round.RoadResult) {
	shoe := r.Perm(decks * round.Faces)
	next := func() round.Card {
		c := round.CardAt(shoe[0] % round.Faces)
		shoe = shoe[1:]
		return c
	}
	burn := next().Value()
	if burn == 0 {
		burn = 10
	}
	shoe = shoe[burn:]
	for len(shoe) > cut {
		p, b := []round.Card{next()}, []round.Card{next()}
		p, b = append(p, next()), append(b, next())
		var tags round.Tags
		if p[0].Rank() == p[1].Rank() {
			tags |= round.TagPlayerPair
		}
		if b[0].Rank() == b[1].Rank() {
			tags |= round.TagBankerPair
		}
		pt, bt := round.Total(p...), round.Total(b...)
		switch {
		case round.Natural(pt) || round.Natural(bt):
			tags |= round.TagNatural
		case round.PlayerDraws(pt):
			p = append(p, next())
			if round.BankerDraws(bt, p[2].Value()) {
				b = append(b, next())
			}
		case round.BankerDrawsAlone(bt):
			b = append(b, next())
		}
		results = append(results, round.RoadResult{Outcome: round.OutcomeOf(round.Total(p...), round.Total(b...)), Tags: tags})
	}
	return results
}

func textSize(t testing.TB, results []round.RoadResult) int {
	t.Helper()
	text, err := json.Marshal(round.Roads(results).Text())
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// TestRoadsSize bounds the document, in bytes, without the envelope. The
// contract's 4 KB hold for most shoes only; what holds is 4.5 KB for a shoe as
// it is dealt and 6 KB for 100 rounds, the most that 8 decks can give, of any
// shape with every flag set.
func TestRoadsSize(t *testing.T) {
	const dealtBytes, anyBytes, fullShoe = 4608, 6144, 100
	r := rand.New(rand.NewPCG(1, 11))
	largest, over := 0, 0
	for range 2000 {
		n := textSize(t, dealtResults(r, 8, 14))
		largest = max(largest, n)
		if n > 4096 {
			over++
		}
	}
	t.Logf("2000 dealt shoes: at most %d bytes, %d over 4096", largest, over)
	if largest > dealtBytes {
		t.Errorf("a dealt shoe took %d bytes, want at most %d", largest, dealtBytes)
	}
	full := func(sequence string) {
		results := resultsOf(t, sequence)
		for i := range results {
			results[i].Tags = round.TagNatural | round.TagPlayerPair | round.TagBankerPair
		}
		n := textSize(t, results)
		largest = max(largest, n)
		if n > anyBytes {
			t.Errorf("%s took %d bytes, want at most %d", sequence, n, anyBytes)
		}
	}
	for _, period := range []string{"P", "PB", "PPB", "PPBB", "PBB", "PPPBB", "PPPPPPPPB", "PBT", "T"} {
		full(strings.Repeat(period, fullShoe)[:fullShoe])
	}
	for range 1000 {
		letters := make([]byte, fullShoe)
		for i := range letters {
			letters[i] = "PB"[r.IntN(2)]
		}
		full(string(letters))
	}
	t.Logf("%d rounds of the worst: %d bytes", fullShoe, largest)
}

func BenchmarkRoads(b *testing.B) {
	results := dealtResults(rand.New(rand.NewPCG(1, 12)), 8, 14)
	b.Run("draw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			round.Roads(results)
		}
	})
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			json.Marshal(round.Roads(results).Text())
		}
	})
}

// TestResults: what is on the roads are decided rounds; void ones never, free
// hands where the house puts them there (free_hand_on_roads).
func TestResults(t *testing.T) {
	for _, c := range []struct {
		rules []string
		want  int
	}{{nil, 2}, {[]string{"free_hand_on_roads=yes"}, 3}} {
		rules := round.DefaultRules()
		set(t, &rules, append(c.rules, "burn=none", "round_start=first_card", "deal.extra_card=free_hand")...)
		s := round.New(rules)
		s = step(t, s, round.Input{At: start, Kind: round.InShoe})
		natural := func() {
			for _, text := range []string{"4s", "2h", "4d", "7c"} {
				card, err := round.ParseCard(text)
				if err != nil {
					t.Fatal(err)
				}
				s = step(t, s, round.Input{At: start, Kind: round.InCard, Card: card})
			}
		}
		natural()
		s = step(t, s, round.Input{At: start, Kind: round.InCard, Card: round.Masked, Outside: round.OutsideOverdraw})
		for range 3 { // the held card and these are the free hand
			s = step(t, s, round.Input{At: start, Kind: round.InCard, Card: round.NewCard(13, round.Club)})
		}
		s = step(t, s, round.Input{At: start, Kind: round.InShow, To: round.ToPlayer, Pos: 1, Card: round.NewCard(9, round.Club)})
		s = step(t, s, round.Input{At: start, Kind: round.InCard, Card: round.NewCard(2, round.Club)}) // void by the call
		s = step(t, s, round.Input{At: start, Kind: round.InButton, Button: round.ButtonCall})
		s = step(t, s, round.Input{At: start, Kind: round.InAnswer, Answer: round.Answer{Do: round.DoVoid, By: "anna"}})
		natural()
		if got := s.Results(); len(got) != c.want {
			t.Errorf("%v: %d rounds on the roads of %d, want %d", c.rules, len(got), s.Shoe.Rounds, c.want)
		}
	}
}
