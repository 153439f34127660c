package odds

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

// rowOf is a row of seed 000's table by its number.
func rowOf(t testing.TB, no int) *round.InsuranceRow {
	t.Helper()
	r := &round.DefaultInsurance.Rows[no-1]
	if int(r.No) != no {
		t.Fatalf("row %d is numbered %d", no, r.No)
	}
	return r
}

// offer is what a row comes to in an average state.
func (a *average) offer(r *round.InsuranceRow, tie round.TieRule) round.Offer {
	of := map[round.Outcome]uint64{round.PlayerWins: a.player, round.BankerWins: a.banker, round.Tie: a.tie}
	o := r.Offer()
	o.Win, o.Den = of[r.WinsOn], a.den
	if r.WinsOn != round.Tie && tie == round.TiePushes {
		o.Push = a.tie
	}
	o.Lose = o.Den - o.Win - o.Push
	return o
}

// stateOf is a cell of a row as an average state.
func stateOf(r *round.InsuranceRow, player, banker int) state {
	switch r.Stage {
	case round.StageOneHand:
		return state{"two", player, banker, -1}
	case round.StageFourCards:
		return state{"four", player, banker, -1}
	}
	return state{"five", player, banker, -1}
}

func checkInsuranceCells(t *testing.T, bySize map[string]map[state]*average) {
	total := func(text string) int {
		if text == "not_shown" {
			return -1
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, r := range readReference(t, "insurance_seed000_cells") {
		is := rowOf(t, r.int(t, "row"))
		a := bySize[r["decks"]][stateOf(is, total(r["player_total"]), total(r["banker_total"]))]
		if a == nil || r["reachable"] != "yes" {
			t.Errorf("%v: no such state", r)
			continue
		}
		for o, column := range map[string]string{"player": "p_player_win", "banker": "p_banker_win", "tie": "p_tie"} {
			if !rounded(r[column], a.p(o)) {
				t.Errorf("%v: %s is %.12f", r, o, a.p(o))
			}
		}
		for tie, column := range map[round.TieRule]string{round.TiePushes: "house_edge_tie_push", round.TieLoses: "house_edge_tie_lose"} {
			if got := Edge(a.offer(is, tie)); !rounded(r[column], float(got)) {
				t.Errorf("%v: edge under tie rule %d is %.9f", r, tie, float(got))
			}
		}
	}
}

func checkInsuranceRows(t *testing.T, bySize map[string]map[state]*average) {
	for _, r := range readReference(t, "insurance_seed000") {
		is := rowOf(t, r.int(t, "row"))
		checkRowAsPrinted(t, r, is)
		push8, cells, worst := rowAverage(bySize["8"], is, round.TiePushes)
		lose8, _, _ := rowAverage(bySize["8"], is, round.TieLoses)
		push6, _, _ := rowAverage(bySize["6"], is, round.TiePushes)
		ratio := func(a, b uint64) float64 { return float64(a) / float64(b) }
		win := push8.Win
		if is.WinsOn == round.Tie && r["p_win_8d"] != r["p_tie_8d"] {
			t.Errorf("%v: wins on a tie", r)
		}
		for column, exact := range map[string]float64{
			"p_win_8d": ratio(win, push8.Den), "p_lose_8d": ratio(push8.Lose, push8.Den),
			"fair_odds_tie_push": float(Fair(push8)), "fair_odds_tie_lose": float(Fair(lose8)),
			"house_edge_tie_push_8d": float(Edge(push8)), "house_edge_tie_lose_8d": float(Edge(lose8)),
			"house_edge_tie_push_6d": float(Edge(push6)),
		} {
			if !rounded(r[column], exact) {
				t.Errorf("row %s: %s is %.9f, want %s", r["row"], column, exact, r[column])
			}
		}
		if is.WinsOn != round.Tie && !rounded(r["p_tie_8d"], ratio(push8.Push, push8.Den)) {
			t.Errorf("row %s: a tie is %.9f", r["row"], ratio(push8.Push, push8.Den))
		}
		edge, _, _ := strings.Cut(r["worst_cell_edge_for_house_tie_push"], " ")
		if cells != r.int(t, "cells") || !rounded(edge, float(worst)) {
			t.Errorf("row %s: %d cells, worst edge %.9f, want %s and %s", r["row"], cells, float(worst), r["cells"], edge)
		}
	}
}

// rowAverage is a row over all its cells, with their number and worst edge.
func rowAverage(all map[state]*average, r *round.InsuranceRow, tie round.TieRule) (o round.Offer, cells int, worst *big.Rat) {
	sum := average{}
	span := func(t round.Totals) (int, int) {
		if !t.Shown() {
			return -1, -1
		}
		return int(t.Low), int(t.High)
	}
	fromP, toP := span(r.PlayerTotal)
	fromB, toB := span(r.BankerTotal)
	for p := fromP; p <= toP; p++ {
		for b := fromB; b <= toB; b++ {
			a := all[stateOf(r, p, b)]
			if a == nil {
				continue
			}
			cells++
			if e := Edge(a.offer(r, tie)); worst == nil || e.Cmp(worst) < 0 {
				worst = e
			}
			// All cells of a row are out of as many cards.
			sum.player += a.player
			sum.banker += a.banker
			sum.tie += a.tie
			sum.den += a.den
		}
	}
	return sum.offer(r, tie), cells, worst
}

func checkRowAsPrinted(t *testing.T, r row, is *round.InsuranceRow) {
	t.Helper()
	playerCards := "2"
	if is.Stage == round.StageFiveCards {
		playerCards = "3"
	}
	pays := strconv.FormatFloat(float64(is.Pays.Num)/float64(is.Pays.Den), 'g', -1, 64)
	got := []string{is.Side.String(), playerCards, "2", is.PlayerTotal.String(), is.BankerTotal.String(), is.WinsOn.String(), pays}
	for i, column := range []string{"side", "player_cards", "banker_cards", "player_points", "banker_points", "wins_on", "pays_to_1"} {
		if got[i] != r[column] {
			t.Errorf("row %s: %s is %s, printed %s", r["row"], column, got[i], r[column])
		}
	}
}

// Other houses offer the same rows of seed 000, but for these prices.
func TestOtherPaytables(t *testing.T) {
	differs := map[string]string{
		"coin178 (columns printed swapped) 9/0-6":              "9", // seed 000: 10
		"Marina Bay Sands (seed 000 pays 3 here) 6/0":          "2", // seed 000: 3
		"seed 000 / truth.bet (identical except last row) see": "",
	}
	checked := 0
	for _, r := range readReference(t, "insurance_other_paytables") {
		if strings.HasPrefix(r["side"], "see ") {
			continue // names the other table
		}
		five := r.int(t, "player_cards") == 3
		found := false
		for _, is := range round.DefaultInsurance.Rows[:round.DefaultInsurance.N] {
			if is.Side.String() != r["side"] || is.WinsOn.String() != r["wins_on"] || five != (is.Stage == round.StageFiveCards) ||
				!within(t, r["player_points"], is.PlayerTotal) || !within(t, r["banker_points"], is.BankerTotal) {
				continue
			}
			found = true
			pays := strconv.FormatFloat(float64(is.Pays.Num)/float64(is.Pays.Den), 'g', -1, 64)
			key := fmt.Sprintf("%s %s/%s", r["paytable"], r["player_points"], r["banker_points"])
			if other, ok := differs[key]; ok != (pays != r["pays_to_1"]) || ok && other != r["pays_to_1"] {
				t.Errorf("%v: row %d pays %s", r, is.No, pays)
			}
			checked++
		}
		if !found {
			t.Errorf("%v: no row of seed 000 is like it", r)
		}
	}
	if checked != 17-1 {
		t.Errorf("%d rows were checked", checked)
	}
}

// within reports whether a printed range, 7 or 0-5, is in a row's.
func within(t *testing.T, text string, is round.Totals) bool {
	t.Helper()
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	from, err1 := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil {
		t.Fatalf("totals %q", text)
	}
	return is.Shown() && int(is.Low) <= from && to <= int(is.High)
}

// offered is seed 000's table once more, written as conditions, for every
// state of which the table may have shown the totals.
func offered(player, banker int, playerCards int, third int) (rows []int) {
	switch {
	case playerCards == 2 && player < 0:
		return map[int][]int{7: {1}, 8: {2}, 9: {3}}[banker]
	case playerCards == 2 && banker < 0:
		return map[int][]int{7: {13}, 8: {14}, 9: {15}}[player]
	case playerCards == 2:
		switch {
		case player >= 8 || banker >= 8 || player >= 6 && banker >= 6:
			return nil // no card is due
		case banker == 4 && player <= 3:
			return []int{4}
		case banker == 5 && player <= 4:
			return []int{5}
		case banker == 6 && player <= 5:
			return []int{6}
		case banker == 7 && player <= 5:
			return []int{7}
		case player == 5 && banker == 4:
			return []int{16}
		case player == 6 && banker <= 5:
			return []int{17}
		case player == 7 && banker <= 5:
			return []int{18}
		}
		return nil
	case banker > 7 || !strings.ContainsRune(dumbTable[banker], rune('0'+third)):
		return nil
	}
	final := (player + third) % 10
	switch {
	case final == 0 && banker >= 1 && banker <= 6:
		rows = append(rows, 8)
	case final == 1 && banker >= 2 && banker <= 6:
		rows = append(rows, 9)
	case final == 2 && banker >= 3 && banker <= 6:
		rows = append(rows, 10)
	case final == 3 && banker == 4:
		rows = append(rows, 11)
	case final == 4 && banker == 5:
		rows = append(rows, 12)
	case final == 4 && banker <= 3:
		rows = append(rows, 19)
	case final == 5 && banker <= 4:
		rows = append(rows, 20)
	case final == 6 && banker <= 5:
		rows = append(rows, 21)
	case final >= 7 && banker <= 6:
		rows = append(rows, final+15)
	}
	return rows
}

func TestOffers(t *testing.T) {
	check := func(h Hands, want []int) {
		t.Helper()
		var got []int
		for _, o := range Offers(&round.DefaultInsurance, h, nil) {
			got = append(got, int(o.Row))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v: rows %v, want %v", h, got, want)
		}
	}
	for p := range 10 {
		check(Hands{handOf(0, p), handOf(-1, -1)}, offered(p, -1, 2, 0))
		check(Hands{handOf(-1, -1), handOf(0, p)}, offered(-1, p, 2, 0))
		for b := range 10 {
			check(Hands{handOf(0, p), handOf(0, b)}, offered(p, b, 2, 0))
			for third := range 10 {
				want := offered(p, b, 3, third)
				if p > 5 {
					want = nil // Player never drew
				}
				check(Hands{handOf(0, p, third), handOf(0, b)}, want)
			}
		}
	}
	for name, h := range map[string]Hands{
		"nothing dealt":           {},
		"one hand dealt":          {Player: handOf(0, 7)},
		"three cards dealt":       {handOf(0, 7), handOf(-1)},
		"one card of it is shown": {handOf(0, 7), handOf(-1, 2)},
		"nothing shown":           {handOf(-1, -1), handOf(-1, -1)},
		"masked third":            {handOf(0, 4, -1), handOf(0, 5)},
		"all dealt":               {handOf(0, 1, 3), handOf(0, 5, 2)},
		"a masked first card":     {handOf(-1, 4, 3), handOf(0, 5)},
	} {
		if got := Offers(&round.DefaultInsurance, h, nil); len(got) != 0 {
			t.Errorf("%s: offers %+v", name, got)
		}
	}
}

func TestFillOffers(t *testing.T) {
	v := Values{100, 20, 20, 20, 20, 20, 20, 20, 20, 20}
	h := Hands{handOf(0, 3, 6), handOf(0, 2)} // row 24: Player 9, wins on a tie
	offers := append(Offers(&round.DefaultInsurance, h, nil), round.Offer{Row: 99, Side: round.Player, WinsOn: round.BankerWins, Pays: round.Ratio{Num: 3, Den: 2}})
	for tie, want := range map[round.TieRule][]round.Offer{
		round.TiePushes: {{Win: 20, Push: 0, Lose: 260, Den: 280}, {Win: 0, Push: 20, Lose: 260, Den: 280}},
		round.TieLoses:  {{Win: 20, Push: 0, Lose: 260, Den: 280}, {Win: 0, Push: 0, Lose: 280, Den: 280}},
	} {
		if err := FillOffers(offers, h, v, tie); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			o := offers[i]
			w.Row, w.Side, w.WinsOn, w.Pays = o.Row, o.Side, o.WinsOn, o.Pays
			if o != w {
				t.Errorf("tie rule %d: %+v, want %+v", tie, o, w)
			}
		}
		if got, want := Edge(offers[0]), big.NewRat(260-10*20, 280); got.Cmp(want) != 0 {
			t.Errorf("edge %v, want %v", got, want)
		}
		if got := Fair(offers[0]); got.Cmp(big.NewRat(13, 1)) != 0 || Fair(offers[1]) != nil {
			t.Errorf("fair prices %v and %v", got, Fair(offers[1]))
		}
	}
	before := offers[0]
	if err := FillOffers(offers, Hands{handOf(0, 6, 1), handOf(0, 2)}, v, round.TiePushes); err == nil || offers[0] != before {
		t.Errorf("hands against the rules: error %v, offer %+v", err, offers[0])
	}
	if err := FillOffers(offers, h, v, 0); err == nil || offers[0] != before {
		t.Errorf("no tie rule: error %v, offer %+v", err, offers[0])
	}
}

// openedOn is the event of a window on these hands.
func openedOn(h Hands, unseen Values) *round.Event {
	e := &round.Event{Kind: round.InsuranceOpened, Player: h.Player, Banker: h.Banker, Unseen: unseen}
	e.NOffers = uint8(len(Offers(&round.DefaultInsurance, h, e.Offers[:0])))
	return e
}

// Every window of shoes that round plays, shown at once and hand by hand:
// round offers what Offers does, and Fill counts from the event what is to be
// counted from the cards shown.
func TestFill(t *testing.T) {
	r := seeded(t)
	stages := map[round.Stage]int{}
	for i := range 12 {
		rules := house(t, "burn=none", "round_start=first_card", []string{"reveal=on_draw", "reveal=on_signal"}[i%2],
			[]string{"insurance_tie=push", "insurance_tie=lose"}[i/2%2])
		playShoe(t, r, *rules, func(e round.Event, shown [round.Faces]uint8) {
			before := e
			if err := Fill(&e); err != nil {
				t.Fatalf("%+v: %v", before, err)
			}
			if e.Kind != round.InsuranceOpened {
				if e != before {
					t.Fatalf("%+v became %+v", before, e)
				}
				return
			}
			stages[e.Stage]++
			unseen, err := Unseen(int(rules.Decks), shown)
			if err != nil {
				t.Fatal(err)
			}
			h := Hands{e.Player, e.Banker}
			want := Offers(&rules.InsuranceTable, h, nil)
			if err := FillOffers(want, h, unseen.Values(), rules.InsuranceTie); err != nil {
				t.Fatal(err)
			}
			if got := e.Offers[:e.NOffers]; len(want) == 0 || !slices.Equal(got, want) {
				t.Fatalf("on %+v round offers %+v, want %+v", h, got, want)
			}
		})
	}
	if len(stages) != 3 {
		t.Errorf("windows by stage: %v, want all three", stages)
	}
}

// playShoe deals most of a shoe, turning hands at random where they are dealt
// face down, and tells each event with the faces shown by then.
func playShoe(t *testing.T, r *rand.Rand, rules round.Rules, tell func(round.Event, [round.Faces]uint8)) {
	t.Helper()
	s := round.New(rules)
	at := time.Unix(1_800_000_000, 0).UTC()
	step := func(in round.Input) {
		t.Helper()
		at = at.Add(time.Second)
		in.At = at
		var events []round.Event
		var err error
		if s, events, err = s.Step(in, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			tell(e, s.Shoe.Shown)
		}
	}
	step(round.Input{Kind: round.InShoe, Decks: rules.Decks})
	cards := r.Perm(int(rules.Decks) * round.Faces)
	for len(cards) > 20 {
		if s.Round.Open && s.Round.Due == 0 {
			step(round.Input{Kind: round.InReveal, Hand: round.Player + round.Side(r.IntN(2))})
			continue
		}
		step(round.Input{Kind: round.InCard, Card: round.CardAt(cards[0] % round.Faces)})
		cards = cards[1:]
	}
	if s.Paused() != 0 || s.Tally.Rounds < 50 {
		t.Fatalf("paused by %v after %d rounds", s.Paused(), s.Tally.Rounds)
	}
}

// An edge below zero stays below zero (game.md section 3).
func TestNegativeEdge(t *testing.T) {
	c, err := fullShoe(t, 8).Without(cardsOf(t, "Ks 9s")...)
	if err != nil {
		t.Fatal(err)
	}
	h := Hands{handOf(0, 9), handOf(-1, -1)}
	offers := Offers(&round.DefaultInsurance, h, nil)
	if err := FillOffers(offers, h, c.Values(), round.TiePushes); err != nil {
		t.Fatal(err)
	}
	if len(offers) != 1 || offers[0].Row != 15 || Edge(offers[0]).Sign() >= 0 {
		t.Errorf("row 15 on a fresh shoe loses for the house: %+v, edge %v", offers, Edge(offers[0]))
	}
}

func cardsOf(t testing.TB, text string) (cards []round.Card) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		c, err := round.ParseCard(f)
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, c)
	}
	return cards
}
