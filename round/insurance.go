package round

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// Stage of a round at which insurance is offered (game.md section 3; seed 000).
type Stage uint8

const (
	StageOneHand   Stage = iota + 1 // four cards dealt, one hand fully shown, nothing of the other
	StageFourCards                  // both hands shown, a card is still due
	StageFiveCards                  // Player's third shown, Banker's is still due
	stages         = iota + 1
)

var stageText = []string{"", "one_hand_shown", "four_cards", "five_cards"}

func (s Stage) String() string { return stageText[s] }

// hidden stands for a total that is not shown.
const hidden = 0xff

// Totals is a range of a hand's totals, both ends included, or not shown.
type Totals struct{ Low, High uint8 }

// Shown reports whether there is a total to see.
func (s Totals) Shown() bool { return s.Low != hidden }

func (s Totals) holds(total uint8) bool { return s.Low <= total && total <= s.High }

// String is the range as the table writes it: 7, 0-5, not_shown.
func (s Totals) String() string {
	switch {
	case !s.Shown():
		return "not_shown"
	case s.Low == s.High:
		return strconv.Itoa(int(s.Low))
	}
	return fmt.Sprintf("%d-%d", s.Low, s.High)
}

// InsuranceRow is one offer of the table: when it is made, what it wins on and
// what it pays.
type InsuranceRow struct {
	No                       uint8 // as the table numbers it
	Side                     Side  // whose bet is insured
	Stage                    Stage
	PlayerTotal, BankerTotal Totals
	WinsOn                   Outcome
	Pays                     Ratio // in lowest terms
}

// maxInsuranceRows bounds the table: seed 000 has 24.
const maxInsuranceRows = 28

// InsuranceTable is what insurance the house offers: Rows[:N].
type InsuranceTable struct {
	N    uint8
	Rows [maxInsuranceRows]InsuranceRow
}

//go:embed insurance.csv
var insuranceCSV string

// DefaultInsurance is the table of seed 000.
var DefaultInsurance = must(ParseInsurance(insuranceCSV))

const insuranceColumns = "row,side,stage,player_cards,banker_cards,player_total,banker_total,wins_on,pays_num,pays_den"

// ParseInsurance reads a table of insurance in CSV: row, side, stage,
// player_cards, banker_cards, player_total, banker_total, wins_on, pays_num,
// pays_den. A total is a number, a range like 0-5, or not_shown. It refuses what
// it does not know, and a row that could never be offered.
func ParseInsurance(text string) (InsuranceTable, error) {
	var t InsuranceTable
	err := parseTable(text, insuranceColumns, "", func(f []string) error {
		if int(t.N) == len(t.Rows) {
			return fmt.Errorf("more than %d rows", maxInsuranceRows)
		}
		r, err := parseInsuranceRow(f)
		if err != nil {
			return err
		}
		for _, o := range t.Rows[:t.N] {
			if o.No == r.No {
				return fmt.Errorf("row %d is there twice", r.No)
			}
		}
		t.Rows[t.N] = r
		t.N++
		return nil
	})
	if err != nil {
		return InsuranceTable{}, fmt.Errorf("insurance table: %w", err)
	}
	return t, nil
}

// stageCards are the cards that the hands hold at a stage.
var stageCards = [stages][2]string{StageOneHand: {"2", "2"}, StageFourCards: {"2", "2"}, StageFiveCards: {"3", "2"}}

func parseInsuranceRow(f []string) (r InsuranceRow, err error) {
	no, err := strconv.ParseUint(f[0], 10, 8)
	if err != nil || no == 0 {
		return r, fmt.Errorf("row %q: want a number from 1 to 255", f[0])
	}
	r.No = uint8(no)
	if err = enum(&r.Side, f[1], sideText); err != nil {
		return r, fmt.Errorf("side %w", err)
	}
	if err = enum(&r.Stage, f[2], stageText); err != nil {
		return r, fmt.Errorf("stage %w", err)
	}
	if cards := stageCards[r.Stage]; f[3] != cards[0] || f[4] != cards[1] {
		return r, fmt.Errorf("stage %s has %s and %s cards, not %s and %s", f[2], cards[0], cards[1], f[3], f[4])
	}
	if r.PlayerTotal, err = parseTotals(f[5]); err != nil {
		return r, err
	}
	if r.BankerTotal, err = parseTotals(f[6]); err != nil {
		return r, err
	}
	if p, b := r.PlayerTotal.Shown(), r.BankerTotal.Shown(); !p && !b || (p && b) == (r.Stage == StageOneHand) {
		return r, fmt.Errorf("stage %s with totals %s and %s: just one hand is not shown in one_hand_shown, none elsewhere", f[2], f[5], f[6])
	}
	if enum(&r.WinsOn, f[7], outcomeText) != nil || f[7] == f[1] {
		return r, fmt.Errorf("wins_on %q: want the other side or tie", f[7])
	}
	r.Pays, err = parsePays(f[8], f[9])
	return r, err
}

func parseTotals(text string) (Totals, error) {
	if text == "not_shown" {
		return Totals{hidden, hidden}, nil
	}
	low, high, ok := strings.Cut(text, "-")
	if !ok {
		high = low
	}
	digit := func(s string) bool { return len(s) == 1 && s[0] >= '0' && s[0] <= '9' }
	if !digit(low) || !digit(high) || low > high {
		return Totals{}, fmt.Errorf("total %q: want 0 to 9, a range like 0-5, or not_shown", text)
	}
	return Totals{low[0] - '0', high[0] - '0'}, nil
}

// CSV is the table as ParseInsurance reads it.
func (t *InsuranceTable) CSV() string {
	text := insuranceColumns + "\n"
	for _, r := range t.Rows[:t.N] {
		cards := stageCards[r.Stage]
		text += fmt.Sprintf("%d,%s,%s,%s,%s,%s,%s,%s,%d,%d\n", r.No, r.Side, r.Stage, cards[0], cards[1],
			r.PlayerTotal, r.BankerTotal, r.WinsOn, r.Pays.Num, r.Pays.Den)
	}
	return text
}

// Match is the set of the rows, a bit each by index, that are offered on the
// hands as the table has shown them: a card dealt and not shown is Masked.
func (t *InsuranceTable) Match(player, banker Hand) (rows uint32) {
	return t.match(situationOf(&player, &banker))
}

func (t *InsuranceTable) match(s situation) (rows uint32) {
	for i := range t.Rows[:t.N] {
		if t.Rows[i].matches(s) {
			rows |= 1 << i
		}
	}
	return rows
}

// Offer is one insurance that can be bought now, or was. The counts of how it
// ends, over Den, are filled in by package odds; Den is 0 until then.
type Offer struct {
	Row    uint8
	Side   Side
	WinsOn Outcome
	Pays   Ratio

	Win, Push, Lose, Den uint64

	Result OfferResult // insurance.settled
	Posted Ratio       // what the dealer laid out for it, if told
}

// OfferResult is what became of an offer.
type OfferResult uint8

const (
	OfferWon OfferResult = iota + 1
	OfferLost
	OfferPush
	OfferVoid
)

var offerResultText = []string{"", "won", "lost", "push", "void"}

func (r OfferResult) String() string { return offerResultText[r] }

// maxOffers made in one round: one a stage in seed 000's table, with room for
// a house that offers both sides.
const maxOffers = 4

// made is an offer that was made in a round.
type made struct {
	Row    uint8 // index in the table, plus one
	Stage  Stage
	Void   bool
	Posted Ratio
}

// insured is the insurance of a round: the window and all offers so far.
type insured struct {
	Stage    Stage // of the last window; 0 none yet
	Open     bool
	ByPause  bool // it closed for a pause: only a supervisor opens it again
	Posted   bool // the dealer laid out rates in this window
	ClosesAt int64
	N        uint8
	Made     [maxOffers]made
}

// WindowClose says why a window closed.
type WindowClose uint8

const (
	CloseDealer WindowClose = iota + 1
	CloseTimer
	CloseCard
	CloseShown
	ClosePaused
	CloseOutcome
)

var closeText = []string{"", "dealer", "timer", "card", "shown", "paused", "outcome"}

// situation is what the table has shown, as the insurance table sees it.
type situation struct {
	stage          Stage
	player, banker uint8 // totals; hidden when not shown
}

// situationOf is where the hands stand, the zero situation when no stage is
// reached or, in the last two, no card is due any more.
func situationOf(player, banker *Hand) situation {
	if banker.N != 2 || player.N != 2 && player.N != 3 {
		return situation{}
	}
	at := [7]Card{P1: player.Cards[0], P2: player.Cards[1], B1: banker.Cards[0], B2: banker.Cards[1]}
	p, b := shownOf(at[P1], at[P2]), shownOf(at[B1], at[B2])
	playerTotal, bankerTotal := uint8(Total(player.Cards[:player.N]...)), uint8(Total(at[B1], at[B2]))
	due, third := dueThird(at, 0), player.Cards[2]
	at[P3] = third
	switch {
	case player.N == 2 && p == 2 && b == 0:
		return situation{StageOneHand, playerTotal, hidden}
	case player.N == 2 && p == 0 && b == 2:
		return situation{StageOneHand, hidden, bankerTotal}
	case p != 2 || b != 2 || due == 0:
	case player.N == 2:
		return situation{StageFourCards, playerTotal, bankerTotal}
	case due == P3 && third.Known() && dueThird(at, third) == B3:
		return situation{StageFiveCards, playerTotal, bankerTotal}
	}
	return situation{}
}

// shownOf is how many of a hand's first two cards are shown.
func shownOf(first, second Card) (n int) {
	if first.Known() {
		n++
	}
	if second.Known() {
		n++
	}
	return n
}

func (r *InsuranceRow) matches(s situation) bool {
	return r.Stage == s.stage && r.PlayerTotal.holds(s.player) && r.BankerTotal.holds(s.banker)
}

// Offer is what the row offers, its counts not filled in.
func (r *InsuranceRow) Offer() Offer {
	return Offer{Row: r.No, Side: r.Side, WinsOn: r.WinsOn, Pays: r.Pays}
}

// situation is where the round's shown cards stand, the zero one while the box
// of a third card is not known.
func (r *Round) situation() situation {
	player, banker := r.Shown(Player), r.Shown(Banker)
	if player.N+banker.N != r.N {
		return situation{}
	}
	return situationOf(&player, &banker)
}

// shownAt is the round's faces by box, as far as the table has shown them.
func (r *Round) shownAt() (at [7]Card) {
	for i := range r.Cards[:r.N] {
		if d := &r.Cards[i]; d.Box != 0 && d.Shown {
			at[d.Box] = d.Card
		}
	}
	return at
}

// openWindow offers what the table has for what has been shown, once a stage.
func (t *step) openWindow() {
	r := &t.Round
	if t.Rules.Insurance != InsuranceOn || r.Free || t.Shoe.Left() <= 0 {
		return
	}
	s := r.situation()
	if s.stage <= r.Insured.Stage {
		return
	}
	rows := t.Rules.InsuranceTable.match(s)
	if rows == 0 {
		return
	}
	r.Insured.Stage = s.stage
	r.Insured.Posted = false
	for i := range t.Rules.InsuranceTable.Rows[:t.Rules.InsuranceTable.N] {
		if rows&(1<<i) != 0 && int(r.Insured.N) < len(r.Insured.Made) {
			r.Insured.Made[r.Insured.N] = made{Row: uint8(i + 1), Stage: s.stage}
			r.Insured.N++
		}
	}
	t.announceWindow()
	if order := cmp.Or(r.Order, t.Rules.RevealOrder); s.stage == StageOneHand &&
		(order == RevealPlayerFirst && s.player == hidden || order == RevealBankerFirst && s.banker == hidden) {
		t.exposed(Fact{Kind: FactRevealOrder, N: uint16(order)}, Fact{Kind: FactOtherHandFirst})
	}
}

func (t *step) announceWindow() {
	w := &t.Round.Insured
	w.Open, w.ByPause = true, false
	w.ClosesAt = t.now + ms(t.Rules.InsuranceMS)
	e := Event{Kind: InsuranceOpened, Stage: w.Stage, ClosesAt: w.ClosesAt, Player: t.Round.Shown(Player), Banker: t.Round.Shown(Banker),
		TieLoses: t.Rules.InsuranceTie == TieLoses, Unseen: t.Shoe.unseen()}
	for _, m := range w.Made[:w.N] {
		if m.Stage == w.Stage && !m.Void {
			e.Offers[e.NOffers] = t.offer(m)
			e.NOffers++
		}
	}
	t.emit(e)
}

func (t *step) offer(m made) Offer {
	o := t.Rules.InsuranceTable.Rows[m.Row-1].Offer()
	o.Posted = m.Posted
	return o
}

// unseen counts, by value, the cards of the shoe that the table has not shown.
// Burned, held and masked cards are among them: nobody at the table knows them.
func (s *Shoe) unseen() (left [10]uint16) {
	for i, n := range s.Shown {
		left[CardAt(i).Value()] += uint16(s.Decks) - uint16(n)
	}
	return left
}

// closeWindow ends the offers of the open window. Nobody buying changes
// nothing.
func (t *step) closeWindow(why WindowClose) {
	w := &t.Round.Insured
	if !w.Open {
		return
	}
	w.Open, w.ByPause = false, why == ClosePaused
	t.Round.ActedAt = t.now
	t.emit(Event{Kind: InsuranceClosed, Stage: w.Stage, Why: why})
	if t.Rules.InsurancePost == PostDealer && !w.Posted {
		t.remark(InsuranceNotPosted, Fact{Kind: FactRatesLaidOut}, Fact{Kind: FactNoRates})
	}
}

// insurance takes what the dealer does with it. A window opens by itself, so
// opening one says nothing new.
func (t *step) insurance(in *Insurance) {
	switch {
	case in.Do == InsuranceClose:
		t.closeWindow(CloseDealer)
	case in.Do == InsurancePost && t.Rules.InsurancePost == PostDealer && t.Round.Insured.Open:
		t.post(in)
	}
}

// post compares the rates that the dealer laid out with the table's (seed 000,
// notes 2–4). Bets stand in every case; an offer settles at the table's rate.
func (t *step) post(in *Insurance) {
	w := &t.Round.Insured
	w.Posted = true
	for i := range w.Made[:w.N] {
		m := &w.Made[i]
		o := t.offer(*m)
		if m.Stage != w.Stage || o.WinsOn != in.WinsOn && o.Side == in.Side {
			continue
		}
		switch {
		case o.Side != in.Side || in.Spot != 0 && in.Spot != o.Side:
			t.remark(InsuranceWrongSpot, Fact{Kind: FactSpot, N: uint16(o.Side)}, Fact{Kind: FactSpot, N: uint16(3 - o.Side)})
		case in.Pays.Den != 0 && in.Pays.reduce() != o.Pays:
			t.remark(InsuranceWrongRate, Fact{Kind: FactPays, N: o.Pays.Num, M: o.Pays.Den}, Fact{Kind: FactPays, N: in.Pays.Num, M: in.Pays.Den})
		}
		m.Posted = in.Pays
	}
}

// exposed: insurance was offered on something that should not have been seen
// or was not so (seed 000, note 5). It is void; the round goes on.
func (t *step) exposed(expected, seen Fact) {
	if t.Rules.On[InsuranceExposed] == SetVoid {
		t.tell(InsuranceExposed, expected, seen)
		t.voidRound(InsuranceExposed, byRule)
		return
	}
	t.voidInsurance(InsuranceExposed)
	t.raise(InsuranceExposed, expected, seen)
}

// voidInsurance cancels all insurance of the round in hand.
func (t *step) voidInsurance(why Code) bool {
	w := &t.Round.Insured
	any := false
	for i := range w.Made[:w.N] {
		any = any || !w.Made[i].Void
		w.Made[i].Void = true
	}
	if !any {
		return false
	}
	w.Open, w.ByPause = false, false
	t.emit(Event{Kind: InsuranceVoided, Round: t.Round.No, Stage: w.Stage, Code: why})
	return true
}

// settleInsurance gives the result of every offer made in the round.
func (t *step) settleInsurance(w *insured, no uint16, outcome Outcome) {
	if w.N == 0 {
		return
	}
	e := Event{Kind: InsuranceSettled, Round: no}
	for _, m := range w.Made[:w.N] {
		o := t.offer(m)
		switch {
		case m.Void:
			o.Result = OfferVoid
		case o.WinsOn == outcome:
			o.Result = OfferWon
		case outcome == Tie && t.Rules.InsuranceTie == TiePushes:
			o.Result = OfferPush
		default:
			o.Result = OfferLost
		}
		e.Offers[e.NOffers] = o
		e.NOffers++
	}
	t.emit(e)
}

// reconsider compares the offers made with those that a corrected round would
// have had. It marks void those that should not have been, and reports whether
// there are any.
func (t *step) reconsider(w *insured, at *[7]Card) (wrong bool) {
	for i := range w.Made[:w.N] {
		m := &w.Made[i]
		row := &t.Rules.InsuranceTable.Rows[m.Row-1]
		if !m.Void && !row.matches(row.situation(at)) {
			m.Void, wrong = true, true
		}
	}
	return wrong
}

// situation is what the row's stage would have shown of these cards.
func (r *InsuranceRow) situation(at *[7]Card) situation {
	player := Hand{Cards: [3]Card{at[P1], at[P2]}, N: 2}
	banker := Hand{Cards: [3]Card{at[B1], at[B2]}, N: 2}
	switch {
	case r.Stage == StageFiveCards && at[P3] != 0:
		player.Cards[2], player.N = at[P3], 3
	case r.Stage == StageOneHand && !r.PlayerTotal.Shown():
		player.Cards = [3]Card{}
	case r.Stage == StageOneHand:
		banker.Cards = [3]Card{}
	}
	return situationOf(&player, &banker)
}
