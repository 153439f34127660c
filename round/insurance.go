package round

import (
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

// span of totals, both ends included; hidden where the hand is not shown.
type span struct{ Low, High uint8 }

func (s span) holds(total uint8) bool { return s.Low <= total && total <= s.High }

// insuranceRow is one offer of the table: when it is made, what it wins on and
// what it pays.
type insuranceRow struct {
	No                       uint8 // as the table numbers it
	Side                     Side
	Stage                    Stage
	PlayerTotal, BankerTotal span
	WinsOn                   Outcome
	Pays                     Ratio
}

// maxInsuranceRows bounds the table: seed 000 has 24.
const maxInsuranceRows = 28

// InsuranceTable is what insurance the house offers.
type InsuranceTable struct {
	N    uint8
	Rows [maxInsuranceRows]insuranceRow
}

//go:embed insurance.csv
var insuranceCSV string

// DefaultInsurance is the table of seed 000.
var DefaultInsurance = must(ParseInsurance(insuranceCSV))

// ParseInsurance reads a table of insurance in CSV: row, side, stage,
// player_cards, banker_cards, player_total, banker_total, wins_on, pays_num,
// pays_den. A total is a number, a span like 0-5, or not_shown.
func ParseInsurance(text string) (InsuranceTable, error) {
	var t InsuranceTable
	err := parseTable(text, "row side stage player_cards banker_cards player_total banker_total wins_on pays_num pays_den", func(f []string) error {
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

func parseInsuranceRow(f []string) (r insuranceRow, err error) {
	no, err := strconv.ParseUint(f[0], 10, 8)
	if err != nil || no == 0 {
		return r, fmt.Errorf("row %q: want a number from 1 to 255", f[0])
	}
	r.No = uint8(no)
	if err = enum(&r.Side, f[1], sideText); err != nil {
		return r, err
	}
	if err = enum(&r.Stage, f[2], stageText); err != nil {
		return r, err
	}
	if cards := stageCards[r.Stage]; f[3] != cards[0] || f[4] != cards[1] {
		return r, fmt.Errorf("stage %s has %s and %s cards, not %s and %s", f[2], cards[0], cards[1], f[3], f[4])
	}
	if r.PlayerTotal, err = parseSpan(f[5]); err != nil {
		return r, err
	}
	if r.BankerTotal, err = parseSpan(f[6]); err != nil {
		return r, err
	}
	if one := (r.PlayerTotal.Low == hidden) != (r.BankerTotal.Low == hidden); one != (r.Stage == StageOneHand) {
		return r, fmt.Errorf("stage %s with totals %s and %s: just one hand is not shown in one_hand_shown, none elsewhere", f[2], f[5], f[6])
	}
	if err = enum(&r.WinsOn, f[7], outcomeText); err != nil {
		return r, err
	}
	r.Pays, err = parseRatio(f[8], f[9])
	r.Pays = r.Pays.reduce()
	return r, err
}

func parseSpan(text string) (span, error) {
	if text == "not_shown" {
		return span{hidden, hidden}, nil
	}
	low, high, ok := strings.Cut(text, "-")
	if !ok {
		high = low
	}
	a, err1 := strconv.ParseUint(low, 10, 8)
	b, err2 := strconv.ParseUint(high, 10, 8)
	if err1 != nil || err2 != nil || a > b || b > 9 {
		return span{}, fmt.Errorf("total %q: want 0 to 9, a span like 0-5, or not_shown", text)
	}
	return span{uint8(a), uint8(b)}, nil
}

// CSV is the table as ParseInsurance reads it.
func (t *InsuranceTable) CSV() string {
	text := "row,side,stage,player_cards,banker_cards,player_total,banker_total,wins_on,pays_num,pays_den\n"
	for _, r := range t.Rows[:t.N] {
		cards := stageCards[r.Stage]
		text += fmt.Sprintf("%d,%s,%s,%s,%s,%s,%s,%s,%d,%d\n", r.No, r.Side, r.Stage, cards[0], cards[1],
			r.PlayerTotal, r.BankerTotal, r.WinsOn, r.Pays.Num, r.Pays.Den)
	}
	return text
}

func (s span) String() string {
	switch {
	case s.Low == hidden:
		return "not_shown"
	case s.Low == s.High:
		return strconv.Itoa(int(s.Low))
	}
	return fmt.Sprintf("%d-%d", s.Low, s.High)
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

// situationOf derives the stage from the cards in their boxes; the zero one
// when none is reached or no card is due any more.
func situationOf(at *[7]Card, n uint8) situation {
	known := func(boxes ...Box) (shown int) {
		for _, b := range boxes {
			if at[b].Known() {
				shown++
			}
		}
		return shown
	}
	p, b := known(P1, P2), known(B1, B2)
	player, banker := uint8(Total(at[P1], at[P2])), uint8(Total(at[B1], at[B2]))
	switch {
	case n == 4 && p == 2 && b == 0:
		return situation{StageOneHand, player, hidden}
	case n == 4 && p == 0 && b == 2:
		return situation{StageOneHand, hidden, banker}
	case p != 2 || b != 2:
		return situation{}
	}
	due := dueThird(*at, at[P3])
	switch {
	case n == 4 && due != 0:
		return situation{StageFourCards, player, banker}
	case n == 5 && due == B3 && at[P3].Known():
		return situation{StageFiveCards, uint8(Total(at[P1], at[P2], at[P3])), banker}
	}
	return situation{}
}

func (r *insuranceRow) matches(s situation) bool {
	return r.Stage == s.stage && r.PlayerTotal.holds(s.player) && r.BankerTotal.holds(s.banker)
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
	at := r.shownAt()
	s := situationOf(&at, r.N)
	if s.stage <= r.Insured.Stage {
		return
	}
	rows := t.matching(s)
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
	if order := t.Rules.RevealOrder; s.stage == StageOneHand &&
		(order == RevealPlayerFirst && s.player == hidden || order == RevealBankerFirst && s.banker == hidden) {
		t.exposed(Fact{Kind: FactRevealOrder, N: uint16(order)}, Fact{Kind: FactOtherHandFirst})
	}
}

// matching is the set of the table's rows, by index, for a situation.
func (t *step) matching(s situation) (rows uint32) {
	for i := range t.Rules.InsuranceTable.Rows[:t.Rules.InsuranceTable.N] {
		if s.stage != 0 && t.Rules.InsuranceTable.Rows[i].matches(s) {
			rows |= 1 << i
		}
	}
	return rows
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
	row := &t.Rules.InsuranceTable.Rows[m.Row-1]
	return Offer{Row: row.No, Side: row.Side, WinsOn: row.WinsOn, Pays: row.Pays, Posted: m.Posted}
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
		if !m.Void && t.matching(situationBefore(at, m.Stage, t.Rules.InsuranceTable.Rows[m.Row-1]))&(1<<(m.Row-1)) == 0 {
			m.Void, wrong = true, true
		}
	}
	return wrong
}

// situationBefore is what a stage would have shown of these cards.
func situationBefore(at *[7]Card, stage Stage, row insuranceRow) situation {
	seen, n := *at, uint8(4)
	switch stage {
	case StageOneHand:
		if row.PlayerTotal.Low == hidden {
			seen[P1], seen[P2] = 0, 0
		} else {
			seen[B1], seen[B2] = 0, 0
		}
		seen[P3], seen[B3] = 0, 0
	case StageFourCards:
		seen[P3], seen[B3] = 0, 0
	default:
		seen[B3], n = 0, 5
	}
	return situationOf(&seen, n)
}
