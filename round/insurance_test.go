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

// A table whose rows hold any totals is still matched only where a card is
// due.
func TestMatchWantsACardDue(t *testing.T) {
	wide, err := round.ParseInsurance(insuranceColumns + "1,banker,four_cards,2,2,0-9,0-9,player,2,1\n2,banker,five_cards,3,2,0-9,0-9,player,2,1\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		player, banker string
		rows           uint32
	}{
		{"Ks 5d", "Kh 7d", 0b01},
		{"Ks 7d", "Kh 5d", 0b01},
		{"Ks 7d", "Kh 6d", 0},
		{"Ks 8d", "Kh 2d", 0},
		{"Ks 2d", "Kh 9d", 0},
		{"Ks 5d 6d", "Kh 6d", 0b10},
		{"Ks 5d 6d", "Kh 7d", 0},
		{"Ks 5d 5c", "Kh 6d", 0},
	} {
		if got := wide.Match(hand(t, c.player), hand(t, c.banker)); got != c.rows {
			t.Errorf("%s against %s: rows %b, want %b", c.player, c.banker, got, c.rows)
		}
	}
}

// The next card closes the question: what is shown afterwards opens no window
// on four cards (game.md section 3).
func TestNoWindowOnceTheFifthCardIsOut(t *testing.T) {
	for _, c := range []struct {
		fifth string
		want  int // windows
	}{{"", 1}, {`{"in":"card","card":"2d"}`, 0}} {
		lines := []string{`{"in":"shoe","decks":8}`, `{"in":"card","card":"4s"}`, `{"in":"card","card":"Kh"}`, `{"in":"card","card":"3s"}`,
			`{"in":"card","card":"3h"}`, c.fifth, `{"in":"reveal","hand":"player"}`}
		opened := 0
		for _, e := range play(t, "reveal=on_signal", lines...) {
			if e.Kind == round.InsuranceOpened {
				opened++
			}
		}
		if opened != c.want {
			t.Errorf("fifth card %q: %d windows, want %d", c.fifth, opened, c.want)
		}
	}
}

// Corrections after the outcome void the offers that should not have existed,
// and only those (game.md section 3).
func TestCorrectedOffers(t *testing.T) {
	const correct = `{"in":"answer","do":"correct","by":"anna","round":1,"cards":`
	// Player 5 draws a king, Banker 3 draws: row 20, Banker wins.
	five := []string{`{"in":"shoe","decks":8}`, `{"in":"card","card":"2s"}`, `{"in":"card","card":"Kh"}`, `{"in":"card","card":"3s"}`,
		`{"in":"card","card":"3h"}`, `{"in":"card","card":"Kd"}`, `{"in":"card","card":"Kc"}`}
	// Player shows 7 first, then Banker 5, which draws: row 13, Banker wins.
	one := []string{`{"in":"shoe","decks":8}`, `{"in":"card","card":"4s"}`, `{"in":"card","card":"Kh"}`, `{"in":"card","card":"3s"}`,
		`{"in":"card","card":"5h"}`, `{"in":"reveal","hand":"player"}`, `{"in":"reveal","hand":"banker"}`,
		`{"in":"card","card":"Kd"}`, `{"in":"reveal","hand":"banker"}`}
	for _, c := range []struct {
		name, rules string
		lines       []string
		row         uint8
		correction  string
		was, now    round.OfferResult
	}{
		{"same totals", "", five, 20, `{"P3":"Qd"}}`, round.OfferLost, round.OfferLost},
		{"another result", "", five, 20, `{"B3":"6c"}}`, round.OfferLost, round.OfferWon},
		{"another total", "", five, 20, `{"P3":"Ad"}}`, round.OfferLost, round.OfferVoid},
		{"the same total by a draw that was not due", "", five, 20, `{"P2":"4s","P3":"9d"},"as_dealt":true}`, round.OfferLost, round.OfferVoid},
		{"no third card was due to Player", "", five, 20, `{"P2":"5s","P3":"8d"},"as_dealt":true}`, round.OfferLost, round.OfferVoid},
		{"the hidden hand", "reveal=on_signal", one, 13, `{"B2":"4h"}}`, round.OfferLost, round.OfferLost},
		{"the shown hand", "reveal=on_signal", one, 13, `{"P2":"2s"}}`, round.OfferLost, round.OfferVoid},
	} {
		var got []round.OfferResult
		for _, e := range play(t, c.rules, append(c.lines, correct+c.correction)...) {
			for _, o := range e.Offers[:e.NOffers] {
				if e.Kind == round.InsuranceSettled && o.Row == c.row {
					got = append(got, o.Result)
				}
			}
		}
		if want := []round.OfferResult{c.was, c.now}; !slices.Equal(got, want) {
			t.Errorf("%s: row %d was settled as %v, want %v", c.name, c.row, got, want)
		}
	}
}

// play gives the events of inputs, a second apart; an empty line is none.
func play(t *testing.T, texts string, lines ...string) (events []round.Event) {
	t.Helper()
	rules := round.DefaultRules()
	set(t, &rules, append(strings.Fields(texts), "burn=none", "round_start=first_card")...)
	s := round.New(rules)
	for i, line := range lines {
		if line == "" {
			continue
		}
		in, err := round.ParseInput(withTime(line, start.Add(time.Duration(i)*time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		if s, events, err = s.Step(in, events); err != nil {
			t.Fatal(err)
		}
	}
	return events
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
