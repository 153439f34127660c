package round

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Bet is a bet that the table may offer. Its name binds to its condition here;
// what it pays, when it pushes and its last round are data (BetTable).
type Bet uint8

const (
	BetPlayer Bet = iota + 1
	BetBanker
	BetBankerNoCommission
	BetTie
	BetPlayerPair
	BetBankerPair
	BetAnyPair
	BetPerfectPair
	BetPlayerNatural
	BetBankerNatural
	BetPlayerBonus
	BetBankerBonus
	BetLuckySix
	BetLuckySix2
	BetLuckySix3
	BetLuckySeven
	BetLuckySeven2
	BetLuckySeven3
	BetSuperLuckySeven
	bets = iota + 1
)

var betText = []string{"", "player", "banker", "banker_no_commission", "tie", "player_pair", "banker_pair", "any_pair",
	"perfect_pair", "player_natural", "banker_natural", "player_bonus", "banker_bonus", "lucky_six", "lucky_six_2",
	"lucky_six_3", "lucky_seven", "lucky_seven_2", "lucky_seven_3", "super_lucky_seven"}

func (b Bet) String() string { return betText[b] }

// ParseBet reads a bet's name.
func ParseBet(text string) (Bet, error) {
	var b Bet
	err := enum(&b, text, betText)
	return b, err
}

// Tier of a bet: the way in which it wins.
type Tier uint8

const (
	TierWin Tier = iota + 1
	TierWinWith6
	TierNatural
	TierBy4
	TierBy5
	TierBy6
	TierBy7
	TierBy8
	TierBy9
	TierTwoCards
	TierThreeCards
	TierFourCards
	TierFiveCards
	TierSixCards
)

var tierText = []string{"", "win", "win_with_6", "natural", "by_4", "by_5", "by_6", "by_7", "by_8", "by_9",
	"two_cards", "three_cards", "four_cards", "five_cards", "six_cards"}

func (t Tier) String() string { return tierText[t] }

// Push says on what a bet is given back; 0 is never.
type Push uint8

const (
	PushTie Push = iota + 1
	PushTieOfNaturals
)

var pushText = []string{"", "tie", "tie_of_naturals"}

func (p Push) String() string { return pushText[p] }

// betForms are the tiers that a bet's condition knows, all of which a table
// names, and the one push that it may name.
var betForms = [bets]struct {
	tiers []Tier
	push  Push
}{
	BetPlayer:             {[]Tier{TierWin}, PushTie},
	BetBanker:             {[]Tier{TierWin}, PushTie},
	BetBankerNoCommission: {[]Tier{TierWin, TierWinWith6}, PushTie},
	BetTie:                {[]Tier{TierWin}, 0},
	BetPlayerPair:         {[]Tier{TierWin}, 0},
	BetBankerPair:         {[]Tier{TierWin}, 0},
	BetAnyPair:            {[]Tier{TierWin}, 0},
	BetPerfectPair:        {[]Tier{TierWin}, 0},
	BetPlayerNatural:      {[]Tier{TierWin}, 0},
	BetBankerNatural:      {[]Tier{TierWin}, 0},
	BetPlayerBonus:        {[]Tier{TierNatural, TierBy4, TierBy5, TierBy6, TierBy7, TierBy8, TierBy9}, PushTieOfNaturals},
	BetBankerBonus:        {[]Tier{TierNatural, TierBy4, TierBy5, TierBy6, TierBy7, TierBy8, TierBy9}, PushTieOfNaturals},
	BetLuckySix:           {[]Tier{TierTwoCards, TierThreeCards}, 0},
	BetLuckySix2:          {[]Tier{TierWin}, 0},
	BetLuckySix3:          {[]Tier{TierWin}, 0},
	BetLuckySeven:         {[]Tier{TierTwoCards, TierThreeCards}, 0},
	BetLuckySeven2:        {[]Tier{TierWin}, 0},
	BetLuckySeven3:        {[]Tier{TierWin}, 0},
	BetSuperLuckySeven:    {[]Tier{TierFourCards, TierFiveCards, TierSixCards}, 0},
}

// BetRow is one bet and tier of the table.
type BetRow struct {
	Bet  Bet
	Tier Tier
	Push Push
	Last uint8 // last round of a shoe in which it is open (seed 001); 0 is any
	Pays Ratio // in lowest terms; what the house pays is Rules.Pays
}

// maxBetRows bounds the table: the bets we know have 36 tiers in all.
const maxBetRows = 36

// BetTable is what the bets pay: Rows[:N], one for each bet and tier, a bet's
// own together.
type BetTable struct {
	N    uint8
	Rows [maxBetRows]BetRow
}

//go:embed bets.csv
var betsCSV string

// DefaultBets is the table of seeds 000, 001 and 002.
var DefaultBets = must(ParseBets(betsCSV))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // an embedded table is wrong: no program was built from a passing tree
	}
	return v
}

const betColumns = "bet,tier,pays_num,pays_den,push,last_round"

// ParseBets reads a table of bets in CSV: bet, tier, pays_num, pays_den, push,
// last_round and, if any, seed, its source. It refuses names and pushes for
// which there is no condition, a bet without all its tiers, and one whose tiers
// differ in push or last round.
func ParseBets(text string) (BetTable, error) {
	var t BetTable
	err := parseTable(text, betColumns, "seed", func(f []string) error {
		r, err := parseBetRow(f)
		if err != nil {
			return err
		}
		return t.add(r)
	})
	if err != nil {
		return BetTable{}, fmt.Errorf("bets table: %w", err)
	}
	for _, r := range t.Rows[:t.N] {
		if t.tiers(r.Bet) != len(betForms[r.Bet].tiers) {
			return BetTable{}, fmt.Errorf("bets table: bet %s lacks some of its tiers", r.Bet)
		}
	}
	return t, nil
}

func parseBetRow(f []string) (r BetRow, err error) {
	if err = enum(&r.Bet, f[0], betText); err != nil {
		return r, fmt.Errorf("bet %w", err)
	}
	form := &betForms[r.Bet]
	if enum(&r.Tier, f[1], tierText) != nil || !slices.Contains(form.tiers, r.Tier) {
		return r, fmt.Errorf("bet %s has no tier %q", r.Bet, f[1])
	}
	if r.Pays, err = parsePays(f[2], f[3]); err != nil {
		return r, err
	}
	if f[4] != "" && (enum(&r.Push, f[4], pushText) != nil || r.Push != form.push) {
		return r, fmt.Errorf("bet %s cannot push on %q", r.Bet, f[4])
	}
	if f[5] != "" {
		n, err := strconv.ParseUint(f[5], 10, 8)
		if err != nil || n == 0 {
			return r, fmt.Errorf("last_round %q: want 1 to 255 or nothing", f[5])
		}
		r.Last = uint8(n)
	}
	return r, nil
}

// add takes a row in. There is room: no tier is there twice.
func (t *BetTable) add(r BetRow) error {
	for _, o := range t.Rows[:t.N] {
		if o.Bet != r.Bet {
			continue
		}
		switch {
		case o.Tier == r.Tier:
			return fmt.Errorf("bet %s: tier %s is there twice", r.Bet, r.Tier)
		case o.Push != r.Push || o.Last != r.Last:
			return fmt.Errorf("bet %s: push and last_round differ between its rows", r.Bet)
		case t.Rows[t.N-1].Bet != r.Bet:
			return fmt.Errorf("bet %s: its rows do not stand together", r.Bet)
		}
	}
	t.Rows[t.N] = r
	t.N++
	return nil
}

func (t *BetTable) tiers(b Bet) (n int) {
	for _, r := range t.Rows[:t.N] {
		if r.Bet == b {
			n++
		}
	}
	return n
}

// parseTable reads CSV with just these columns, the optional one last if it is
// there, and at least one row.
func parseTable(text, columns, optional string, row func([]string) error) error {
	r := csv.NewReader(strings.NewReader(text))
	header, err := r.Read()
	if err != nil && err != io.EOF {
		return err
	}
	if names := strings.Join(header, ","); names != columns && (optional == "" || names != columns+","+optional) {
		return fmt.Errorf("line 1: want the columns %s", columns)
	}
	for n := 0; ; n++ {
		f, err := r.Read()
		switch {
		case err == io.EOF && n == 0:
			return errors.New("no rows below the columns")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := row(f); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// parsePays reads a ratio in two fields and brings it to lowest terms.
func parsePays(num, den string) (Ratio, error) {
	n, err1 := strconv.ParseUint(num, 10, 16)
	d, err2 := strconv.ParseUint(den, 10, 16)
	if err1 != nil || err2 != nil || n == 0 || d == 0 {
		return Ratio{}, fmt.Errorf("pays %s to %s: want whole numbers from 1 to 65535", num, den)
	}
	return Ratio{uint16(n), uint16(d)}.reduce(), nil
}

// reduce brings a ratio to its lowest terms.
func (r Ratio) reduce() Ratio {
	a, b := r.Num, r.Den
	for b != 0 {
		a, b = b, a%b
	}
	if a == 0 {
		return r
	}
	return Ratio{r.Num / a, r.Den / a}
}

// BetResult is what became of a bet.
type BetResult uint8

const (
	BetWon BetResult = iota + 1
	BetLost
	BetPush
	BetClosedOut // not open in this round
)

var betResultText = []string{"", "won", "lost", "push", "closed"}

func (r BetResult) String() string { return betResultText[r] }

// Settled is one bet's result, with what it pays when won.
type Settled struct {
	Bet    Bet
	Result BetResult
	Pays   Ratio
}

// Result is a complete round in numbers, as the bets see it.
type Result struct {
	PlayerCards, BankerCards     int
	PlayerTotal, BankerTotal     int
	PlayerNatural, BankerNatural bool // that hand's first two cards are one
	Outcome                      Outcome
	Tags                         Tags // of which the bets see the pairs
}

// resultOf is the result of two complete hands, all of whose cards are shown.
func resultOf(player, banker Hand) Result {
	r := Result{PlayerCards: int(player.N), BankerCards: int(banker.N)}
	r.PlayerTotal, _ = player.Total()
	r.BankerTotal, _ = banker.Total()
	r.Outcome = OutcomeOf(r.PlayerTotal, r.BankerTotal)
	r.PlayerNatural = Natural(Total(player.Cards[0], player.Cards[1]))
	r.BankerNatural = Natural(Total(banker.Cards[0], banker.Cards[1]))
	if r.PlayerNatural || r.BankerNatural {
		r.Tags |= TagNatural
	}
	if pair(player) {
		r.Tags |= TagPlayerPair
	}
	if pair(banker) {
		r.Tags |= TagBankerPair
	}
	if player.Cards[0] == player.Cards[1] || banker.Cards[0] == banker.Cards[1] {
		r.Tags |= TagPerfectPair
	}
	return r
}

// pair: the first two cards are of equal rank; king and ten are no pair.
func pair(h Hand) bool { return h.Cards[0].Rank() == h.Cards[1].Rank() }

// Won reports whether a bet wins in a tier: the conditions of game.md section
// 2. The pairs are in the tags.
func (r *Result) Won(b Bet, t Tier) bool {
	switch b {
	case BetPlayer:
		return r.Outcome == PlayerWins
	case BetBanker:
		return r.Outcome == BankerWins
	case BetBankerNoCommission:
		return r.Outcome == BankerWins && (r.BankerTotal == 6) == (t == TierWinWith6)
	case BetTie:
		return r.Outcome == Tie
	case BetPlayerPair:
		return r.Tags&TagPlayerPair != 0
	case BetBankerPair:
		return r.Tags&TagBankerPair != 0
	case BetAnyPair:
		return r.Tags&(TagPlayerPair|TagBankerPair) != 0
	case BetPerfectPair:
		return r.Tags&TagPerfectPair != 0
	case BetPlayerNatural:
		return r.PlayerNatural
	case BetBankerNatural:
		return r.BankerNatural
	case BetPlayerBonus:
		return r.Outcome == PlayerWins && bonus(t, r.PlayerNatural, r.PlayerTotal-r.BankerTotal)
	case BetBankerBonus:
		return r.Outcome == BankerWins && bonus(t, r.BankerNatural, r.BankerTotal-r.PlayerTotal)
	}
	return r.lucky(b, t)
}

// bonus: a natural pays the same whatever the margin; else the margin counts.
func bonus(t Tier, natural bool, margin int) bool {
	if natural {
		return t == TierNatural
	}
	return t >= TierBy4 && t <= TierBy9 && margin == 4+int(t-TierBy4)
}

// lucky: Banker wins with 6, or Player with 7 (seed 001 leaves out "wins" for
// the six; without it the bettor would gain 86 %).
func (r *Result) lucky(b Bet, t Tier) bool {
	six := r.Outcome == BankerWins && r.BankerTotal == 6
	seven := r.Outcome == PlayerWins && r.PlayerTotal == 7
	switch b {
	case BetLuckySix:
		return six && (r.BankerCards == 2) == (t == TierTwoCards)
	case BetLuckySix2:
		return six && r.BankerCards == 2
	case BetLuckySix3:
		return six && r.BankerCards == 3
	case BetLuckySeven:
		return seven && (r.PlayerCards == 2) == (t == TierTwoCards)
	case BetLuckySeven2:
		return seven && r.PlayerCards == 2
	case BetLuckySeven3:
		return seven && r.PlayerCards == 3
	case BetSuperLuckySeven:
		return seven && r.BankerTotal == 6 && r.PlayerCards+r.BankerCards == 4+int(t-TierFourCards)
	}
	return false
}

// Pushes reports whether a bet that pushes on p, and did not win, is given
// back.
func (r *Result) Pushes(p Push) bool {
	switch p {
	case PushTie:
		return r.Outcome == Tie
	case PushTieOfNaturals:
		return r.Outcome == Tie && r.PlayerNatural && r.BankerNatural
	}
	return false
}

// open reports whether a row's bet is open in a round of the shoe.
func (r *BetRow) open(no uint16) bool { return r.Last == 0 || no <= uint16(r.Last) }

// openBets lists the bets that the table offers in a round, as a set.
func (r *Rules) openBets(no uint16) (set uint32) {
	for i := range r.Bets.Rows[:r.Bets.N] {
		if row := &r.Bets.Rows[i]; r.Offered(row.Bet) && row.open(no) {
			set |= 1 << row.Bet
		}
	}
	return set
}

// Offered reports whether the house offers a bet, provided that its table has
// it.
func (r *Rules) Offered(b Bet) bool { return r.BetsOffered == 0 || r.BetsOffered&(1<<b) != 0 }

// Pays is what the house pays on a row of its table, in lowest terms. A
// commission set as a rule outranks what the table says of Banker.
func (r *Rules) Pays(row BetRow) Ratio {
	if row.Bet == BetBanker && r.CommissionSet {
		return Ratio{10000 - r.CommissionBP, 10000}.reduce()
	}
	return row.Pays
}

// Push is on what the house gives back a row of its table. Where ties lose,
// they do so on the main bets.
func (r *Rules) Push(row BetRow) Push {
	main := row.Bet == BetPlayer || row.Bet == BetBanker || row.Bet == BetBankerNoCommission
	if main && r.TieMain == TieLoses {
		return 0
	}
	return row.Push
}

// settle gives the result of every bet that the table offers, in the table's
// order.
func (r *Rules) settle(f *Result, no uint16) (all [bets]Settled, n uint8) {
	for i := range r.Bets.Rows[:r.Bets.N] {
		row := &r.Bets.Rows[i]
		if !r.Offered(row.Bet) {
			continue
		}
		if n == 0 || all[n-1].Bet != row.Bet {
			all[n] = Settled{Bet: row.Bet, Result: BetLost}
			n++
		}
		s := &all[n-1]
		switch {
		case !row.open(no):
			s.Result = BetClosedOut
		case f.Won(row.Bet, row.Tier):
			s.Result, s.Pays = BetWon, r.Pays(*row)
		case s.Result == BetLost && f.Pushes(r.Push(*row)):
			s.Result = BetPush
		}
	}
	return all, n
}

// betNames lists a set of bets.
func betNames(set uint32) []string {
	names := []string{}
	for b := BetPlayer; b < bets; b++ {
		if set&(1<<b) != 0 {
			names = append(names, b.String())
		}
	}
	return names
}

// CSV is the table as ParseBets reads it.
func (t *BetTable) CSV() string {
	text := betColumns + "\n"
	for _, r := range t.Rows[:t.N] {
		last := ""
		if r.Last != 0 {
			last = strconv.Itoa(int(r.Last))
		}
		text += fmt.Sprintf("%s,%s,%d,%d,%s,%s\n", r.Bet, r.Tier, r.Pays.Num, r.Pays.Den, r.Push, last)
	}
	return text
}
