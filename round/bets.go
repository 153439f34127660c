package round

import (
	_ "embed"
	"encoding/csv"
	"fmt"
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

// tier of a bet: the way in which it wins.
type tier uint8

const (
	tierWin tier = iota + 1
	tierWinWith6
	tierNatural
	tierBy4
	tierBy5
	tierBy6
	tierBy7
	tierBy8
	tierBy9
	tierTwoCards
	tierThreeCards
	tierFourCards
	tierFiveCards
	tierSixCards
)

var (
	tierText = []string{"", "win", "win_with_6", "natural", "by_4", "by_5", "by_6", "by_7", "by_8", "by_9",
		"two_cards", "three_cards", "four_cards", "five_cards", "six_cards"}
	pushText = []string{"", "tie", "tie_of_naturals"}
)

// betTiers are the tiers that a bet's condition knows.
var betTiers = [bets][]tier{
	BetPlayer: {tierWin}, BetBanker: {tierWin}, BetBankerNoCommission: {tierWin, tierWinWith6}, BetTie: {tierWin},
	BetPlayerPair: {tierWin}, BetBankerPair: {tierWin}, BetAnyPair: {tierWin}, BetPerfectPair: {tierWin},
	BetPlayerNatural: {tierWin}, BetBankerNatural: {tierWin},
	BetPlayerBonus:     {tierNatural, tierBy4, tierBy5, tierBy6, tierBy7, tierBy8, tierBy9},
	BetBankerBonus:     {tierNatural, tierBy4, tierBy5, tierBy6, tierBy7, tierBy8, tierBy9},
	BetLuckySix:        {tierTwoCards, tierThreeCards},
	BetLuckySix2:       {tierWin},
	BetLuckySix3:       {tierWin},
	BetLuckySeven:      {tierTwoCards, tierThreeCards},
	BetLuckySeven2:     {tierWin},
	BetLuckySeven3:     {tierWin},
	BetSuperLuckySeven: {tierFourCards, tierFiveCards, tierSixCards},
}

// push says when a bet is given back.
type push uint8

const (
	pushTie push = iota + 1
	pushTieOfNaturals
)

// betRow is one bet and tier of the table.
type betRow struct {
	Bet  Bet
	Tier tier
	Push push
	Last uint8 // last round of a shoe in which it is open (seed 001); 0 is any
	Pays Ratio
}

// maxBetRows bounds the table: the bets we know have 36 tiers in all.
const maxBetRows = 36

// BetTable is what the bets pay, a row for each bet and tier.
type BetTable struct {
	N    uint8
	Rows [maxBetRows]betRow
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

// ParseBets reads a table of bets in CSV: bet, tier, pays_num, pays_den, push,
// last_round. It refuses unknown names and bets without all their tiers.
func ParseBets(text string) (BetTable, error) {
	var t BetTable
	err := parseTable(text, "bet tier pays_num pays_den push last_round", func(f []string) error {
		var r betRow
		if err := enum(&r.Bet, f[0], betText); err != nil {
			return err
		}
		if err := enum(&r.Tier, f[1], tierText); err != nil {
			return err
		}
		if !slices.Contains(betTiers[r.Bet], r.Tier) {
			return fmt.Errorf("bet %s has no tier %q", r.Bet, f[1])
		}
		if f[4] != "" {
			if err := enum(&r.Push, f[4], pushText); err != nil {
				return err
			}
		}
		var err error
		if r.Pays, err = parseRatio(f[2], f[3]); err != nil {
			return err
		}
		if f[5] != "" {
			n, err := strconv.ParseUint(f[5], 10, 8)
			if err != nil || n == 0 {
				return fmt.Errorf("last_round %q: want 1 to 255 or nothing", f[5])
			}
			r.Last = uint8(n)
		}
		for _, o := range t.Rows[:t.N] {
			if o.Bet == r.Bet && o.Tier == r.Tier {
				return fmt.Errorf("bet %s, tier %s is there twice", f[0], f[1])
			}
		}
		if n := t.N; n > 0 && t.Rows[n-1].Bet != r.Bet && t.tiers(r.Bet) > 0 {
			return fmt.Errorf("the tiers of bet %s do not stand together", f[0])
		}
		t.Rows[t.N] = r // cannot overflow: no tier is there twice
		t.N++
		return nil
	})
	if err != nil {
		return BetTable{}, fmt.Errorf("bets table: %w", err)
	}
	for _, r := range t.Rows[:t.N] {
		if t.tiers(r.Bet) != len(betTiers[r.Bet]) {
			return BetTable{}, fmt.Errorf("bets table: bet %s lacks some of its tiers", r.Bet)
		}
	}
	return t, nil
}

func (t *BetTable) tiers(b Bet) (n int) {
	for _, r := range t.Rows[:t.N] {
		if r.Bet == b {
			n++
		}
	}
	return n
}

// parseTable reads CSV with a header that begins with the named columns.
func parseTable(text, columns string, row func([]string) error) error {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return err
	}
	names := strings.Fields(columns)
	if len(rows) == 0 || len(rows[0]) < len(names) || !slices.Equal(rows[0][:len(names)], names) {
		return fmt.Errorf("line 1: want the columns %s", strings.Join(names, ","))
	}
	for i, f := range rows[1:] {
		if err := row(f); err != nil {
			return fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	return nil
}

func parseRatio(num, den string) (Ratio, error) {
	n, err1 := strconv.ParseUint(num, 10, 16)
	d, err2 := strconv.ParseUint(den, 10, 16)
	if err1 != nil || err2 != nil || d == 0 {
		return Ratio{}, fmt.Errorf("%s:%s is no ratio of whole numbers", num, den)
	}
	return Ratio{uint16(n), uint16(d)}, nil
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

// final is a complete round as the bets see it.
type final struct {
	player, banker               Hand
	playerTotal, bankerTotal     int
	playerNatural, bankerNatural bool
	outcome                      Outcome
	tags                         Tags
}

func finalOf(player, banker Hand) final {
	f := final{player: player, banker: banker}
	f.playerTotal, _ = player.Total()
	f.bankerTotal, _ = banker.Total()
	f.outcome = OutcomeOf(f.playerTotal, f.bankerTotal)
	f.playerNatural = Natural(Total(player.Cards[0], player.Cards[1]))
	f.bankerNatural = Natural(Total(banker.Cards[0], banker.Cards[1]))
	if f.playerNatural || f.bankerNatural {
		f.tags |= TagNatural
	}
	if pair(player) {
		f.tags |= TagPlayerPair
	}
	if pair(banker) {
		f.tags |= TagBankerPair
	}
	if player.Cards[0] == player.Cards[1] || banker.Cards[0] == banker.Cards[1] {
		f.tags |= TagPerfectPair
	}
	return f
}

// pair: the first two cards are of equal rank; king and ten are no pair.
func pair(h Hand) bool { return h.Cards[0].Rank() == h.Cards[1].Rank() }

// won reports whether a bet wins in a tier: the conditions of game.md section 2.
func (f *final) won(b Bet, t tier) bool {
	switch b {
	case BetPlayer:
		return f.outcome == PlayerWins
	case BetBanker:
		return f.outcome == BankerWins
	case BetBankerNoCommission:
		return f.outcome == BankerWins && (f.bankerTotal == 6) == (t == tierWinWith6)
	case BetTie:
		return f.outcome == Tie
	case BetPlayerPair:
		return f.tags&TagPlayerPair != 0
	case BetBankerPair:
		return f.tags&TagBankerPair != 0
	case BetAnyPair:
		return f.tags&(TagPlayerPair|TagBankerPair) != 0
	case BetPerfectPair:
		return f.tags&TagPerfectPair != 0
	case BetPlayerNatural:
		return f.playerNatural
	case BetBankerNatural:
		return f.bankerNatural
	case BetPlayerBonus:
		return f.outcome == PlayerWins && bonus(t, f.playerNatural, f.playerTotal-f.bankerTotal)
	case BetBankerBonus:
		return f.outcome == BankerWins && bonus(t, f.bankerNatural, f.bankerTotal-f.playerTotal)
	}
	return f.lucky(b, t)
}

// bonus: a natural pays the same whatever the margin; else the margin counts.
func bonus(t tier, natural bool, margin int) bool {
	if natural {
		return t == tierNatural
	}
	return t >= tierBy4 && t <= tierBy9 && margin == 4+int(t-tierBy4)
}

// lucky: Banker wins with 6, or Player with 7 (seed 001 leaves out "wins" for
// the six; without it the bettor would gain 86 %).
func (f *final) lucky(b Bet, t tier) bool {
	six := f.outcome == BankerWins && f.bankerTotal == 6
	seven := f.outcome == PlayerWins && f.playerTotal == 7
	switch b {
	case BetLuckySix:
		return six && (f.banker.N == 2) == (t == tierTwoCards)
	case BetLuckySix2:
		return six && f.banker.N == 2
	case BetLuckySix3:
		return six && f.banker.N == 3
	case BetLuckySeven:
		return seven && (f.player.N == 2) == (t == tierTwoCards)
	case BetLuckySeven2:
		return seven && f.player.N == 2
	case BetLuckySeven3:
		return seven && f.player.N == 3
	case BetSuperLuckySeven:
		return seven && f.bankerTotal == 6 && int(f.player.N+f.banker.N) == 4+int(t-tierFourCards)
	}
	return false
}

func (f *final) pushes(p push) bool {
	switch p {
	case pushTie:
		return f.outcome == Tie
	case pushTieOfNaturals:
		return f.outcome == Tie && f.playerNatural && f.bankerNatural
	}
	return false
}

// open reports whether a row's bet is open in a round of the shoe.
func (r *betRow) open(no uint16) bool { return r.Last == 0 || no <= uint16(r.Last) }

// openBets lists the bets that the table offers in a round, as a set.
func (r *Rules) openBets(no uint16) (set uint32) {
	for i := range r.Bets.Rows[:r.Bets.N] {
		if row := &r.Bets.Rows[i]; row.open(no) {
			set |= 1 << row.Bet
		}
	}
	return set & r.offered()
}

func (r *Rules) offered() uint32 {
	if r.BetsOffered == 0 {
		return 1<<bets - 1
	}
	return r.BetsOffered
}

// settle gives the result of every bet that the table offers, in the table's
// order.
func (r *Rules) settle(f *final, no uint16) (all [bets]Settled, n uint8) {
	for i := range r.Bets.Rows[:r.Bets.N] {
		row := &r.Bets.Rows[i]
		if r.offered()&(1<<row.Bet) == 0 {
			continue
		}
		if n == 0 || all[n-1].Bet != row.Bet {
			all[n] = Settled{Bet: row.Bet, Result: BetLost}
			n++
		}
		s := &all[n-1]
		main := row.Bet == BetPlayer || row.Bet == BetBanker || row.Bet == BetBankerNoCommission
		switch {
		case !row.open(no):
			s.Result = BetClosedOut
		case f.won(row.Bet, row.Tier):
			s.Result, s.Pays = BetWon, r.pays(row)
		case s.Result == BetLost && f.pushes(row.Push) && !(main && r.TieMain == TieLoses):
			s.Result = BetPush
		}
	}
	return all, n
}

// pays is what a row pays. A commission set as a rule outranks the table's.
func (r *Rules) pays(row *betRow) Ratio {
	if row.Bet == BetBanker && r.CommissionSet {
		return Ratio{10000 - r.CommissionBP, 10000}.reduce()
	}
	return row.Pays.reduce()
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
	text := "bet,tier,pays_num,pays_den,push,last_round\n"
	for _, r := range t.Rows[:t.N] {
		last := ""
		if r.Last != 0 {
			last = strconv.Itoa(int(r.Last))
		}
		text += fmt.Sprintf("%s,%s,%d,%d,%s,%s\n", betText[r.Bet], tierText[r.Tier], r.Pays.Num, r.Pays.Den, pushText[r.Push], last)
	}
	return text
}
