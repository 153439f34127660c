package round_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

const (
	insuranceColumns = "row,side,stage,player_cards,banker_cards,player_total,banker_total,wins_on,pays_num,pays_den\n"
	insuranceRow     = "1,banker,one_hand_shown,2,2,not_shown,7,player,2,1\n"
)

func TestDefaultInsurance(t *testing.T) {
	table := round.DefaultInsurance
	if table.N != 24 {
		t.Errorf("%d rows, seed 000 has 24", table.N)
	}
	again, err := round.ParseInsurance(table.CSV())
	if err != nil || again != table {
		t.Errorf("%v: reading what it writes gives another table\n%s", err, again.CSV())
	}
}

func TestParseInsuranceRefuses(t *testing.T) {
	good := insuranceColumns + insuranceRow
	with := func(old, new string) string { return insuranceColumns + strings.Replace(insuranceRow, old, new, 1) }
	if table, err := round.ParseInsurance(good); err != nil || table.N != 1 || table.Rows[0].BankerTotal != (round.Totals{Low: 7, High: 7}) || table.Rows[0].PlayerTotal.Shown() {
		t.Fatalf("%+v, %v", table.Rows[0], err)
	}
	for _, c := range []struct{ want, text string }{
		{"line 1: want the columns", ""},
		{"line 1: want the columns", strings.Replace(good, "side", "seite", 1)},
		{"line 1: want the columns", strings.Replace(strings.Replace(good, "pays_den\n", "pays_den,seed\n", 1), "2,1\n", "2,1,000\n", 1)},
		{"no rows", insuranceColumns},
		{"line 3: row 1 is there twice", good + insuranceRow},
		{`row "0"`, with("1,banker", "0,banker")},
		{`row "256"`, with("1,banker", "256,banker")},
		{`row "x"`, with("1,banker", "x,banker")},
		{`side "bank"`, with("banker", "bank")},
		{`side ""`, with("banker", "")},
		{`stage "one"`, with("one_hand_shown", "one")},
		{"stage one_hand_shown has 2 and 2 cards, not 3 and 2", with("2,2,", "3,2,")},
		{"stage five_cards has 3 and 2 cards", with("one_hand_shown", "five_cards")},
		{"stage one_hand_shown with totals 3 and 7", with("not_shown,7", "3,7")},
		{"stage one_hand_shown with totals not_shown and not_shown", with("not_shown,7", "not_shown,not_shown")},
		{"stage four_cards with totals not_shown and 7", with("one_hand_shown", "four_cards")},
		{"stage four_cards with totals not_shown and not_shown", with("one_hand_shown,2,2,not_shown,7", "four_cards,2,2,not_shown,not_shown")},
		{`total "10"`, with(",7,", ",10,")},
		{`total "07"`, with(",7,", ",07,")},
		{`total "7-3"`, with(",7,", ",7-3,")},
		{`total "0-"`, with(",7,", ",0-,")},
		{`total ""`, with(",7,", ",,")},
		{`wins_on "banker": want the other side or tie`, with("player,2", "banker,2")},
		{`wins_on "player": want the other side or tie`, with("1,banker", "1,player")},
		{`wins_on "both"`, with("player,2", "both,2")},
		{"pays 0 to 1", with("player,2", "player,0")},
		{"pays 2 to 0", with("2,1\n", "2,0\n")},
		{"pays 99999 to 1", with("player,2", "player,99999")},
		{"pays -2 to 1", with("player,2", "player,-2")},
		{"wrong number of fields", insuranceColumns + "1,banker\n"},
		{"line 30: more than 28 rows", insuranceColumns + manyRows(29)},
	} {
		got, err := round.ParseInsurance(c.text)
		if err == nil || !strings.Contains(err.Error(), "insurance table: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
		if got != (round.InsuranceTable{}) {
			t.Errorf("%q: a table beside the error", c.want)
		}
	}
	if _, err := round.ParseInsurance(insuranceColumns + manyRows(28)); err != nil {
		t.Error(err)
	}
}

func manyRows(n int) (text string) {
	for no := range n {
		text += strings.Replace(insuranceRow, "1,banker", strconv.Itoa(no+1)+",banker", 1)
	}
	return text
}

// The stage is taken from the draw table alone: a third card that Player was
// not to draw leads to none (game.md section 3: while a card is still due).
func TestMatchWantsALegalDeal(t *testing.T) {
	for _, c := range []struct {
		player, banker string
		rows           uint32 // by index: a row's number less one
	}{
		{"Ks 5d", "Kh 3d", 0},
		{"Ks 5d", "Kh 4d", 1 << 15},
		{"Ks 5d Kd", "Kh 3d", 1 << 19},
		{"Ks 5d 3d", "Kh 3d", 1 << 22},
		{"Ks 5d 8d", "Kh 3d", 0}, // Banker stands on 3 against an 8
		{"Ks 6d 9d", "Kh 3d", 0}, // Player stood on 6
		{"Ks 8d 7d", "Kh 3d", 0},
		{"Ks 5d Kd", "Kh 9d", 0},
		{"?? ??", "Kh 7d", 1 << 0},
		{"Ks 7d", "?? ??", 1 << 12},
		{"Ks 7d", "?? 2h", 0},
		{"Ks 5d ??", "Kh 3d", 0},
		{"Ks 5d", "Kh 3d Ks", 0},
		{"Ks 5d", "Kh", 0},
	} {
		player, banker := hand(t, c.player), hand(t, c.banker)
		if got := round.DefaultInsurance.Match(player, banker); got != c.rows {
			t.Errorf("%s against %s: rows %b, want %b", c.player, c.banker, got, c.rows)
		}
	}
}

func hand(t *testing.T, text string) (h round.Hand) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		c, err := round.ParseCard(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Cards[h.N] = c
		h.N++
	}
	return h
}

// A correction after which Player was not to draw, dealt so all the same: the
// offer on its third card should not have existed, though the totals are those
// of its row (game.md section 3, voiding).
func TestOfferOnADrawThatWasNotDue(t *testing.T) {
	rules := round.DefaultRules()
	set(t, &rules, "burn=none", "round_start=first_card")
	s := round.New(rules)
	var settled []round.OfferResult
	for i, line := range []string{
		`{"in":"shoe","decks":8}`, `{"in":"card","card":"2s"}`, `{"in":"card","card":"Kh"}`, `{"in":"card","card":"3s"}`,
		`{"in":"card","card":"3h"}`, `{"in":"card","card":"Kd"}`, `{"in":"card","card":"Kc"}`,
		`{"in":"answer","do":"correct","by":"anna","round":1,"cards":{"P2":"4s","P3":"9d"},"as_dealt":true}`,
	} {
		in, err := round.ParseInput(withTime(line, start.Add(time.Duration(i)*time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		var events []round.Event
		if s, events, err = s.Step(in, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			for _, o := range e.Offers[:e.NOffers] {
				if e.Kind == round.InsuranceSettled && o.Row == 20 {
					settled = append(settled, o.Result)
				}
			}
		}
	}
	if want := []round.OfferResult{round.OfferLost, round.OfferVoid}; !slices.Equal(settled, want) {
		t.Errorf("row 20 was settled as %v, want %v", settled, want)
	}
}

// FuzzParseInsurance: no text makes the parser panic, and what it takes is
// written and read again as it is, by itself and among the rules.
func FuzzParseInsurance(f *testing.F) {
	f.Add(round.DefaultInsurance.CSV())
	f.Add(insuranceColumns + insuranceRow)
	f.Add(insuranceColumns + "9,player,five_cards,3,2,0-9,3-3,tie,10,4\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := round.ParseInsurance(text)
		if err != nil {
			return
		}
		if again, err := round.ParseInsurance(table.CSV()); err != nil || again != table {
			t.Errorf("%q: %v\n%s", text, err, again.CSV())
		}
		rules := round.DefaultRules()
		rules.InsuranceTable = table
		rulesAgain(t, rules)
	})
}
