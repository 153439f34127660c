package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"shoed/odds"
	"shoed/round"
)

func oddsCommand() *cobra.Command {
	var q oddsQuery
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "odds [--decks N | --counts n0,…,n9]",
		Short: "Compute the exact odds of a shoe and of a round in hand",
		Long: `Odds prints the exact probabilities of Player, Banker and Tie, before a round
those of every bet, and those of the insurance offered on the hands given: as
integers over one denominator. A positive edge is the house's (5 % commission,
ties push).

The shoe is --decks less --seen and the cards of both hands, or --counts, from
which nothing is taken. Lists are comma-separated: cards like 8s,Th (?? for one
dealt and not shown), values 0 (ten and faces) to 9. --player-hidden and
--banker-hidden are hands of two cards of which the table has shown nothing.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := q.answer(cmd.Flags().Changed)
			if err != nil {
				return usageError{err}
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(answer)
			}
			return answer.print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.IntVar(&q.decks, "decks", 8, "decks in the full shoe, 1 to 12")
	f.StringVar(&q.seen, "seen", "", "cards shown before this round")
	f.StringVar(&q.player.cards, "player", "", "Player's cards, taken from the shoe")
	f.StringVar(&q.banker.cards, "banker", "", "Banker's cards, taken from the shoe")
	f.BoolVar(&q.player.hidden, "player-hidden", false, "Player has two cards, not shown")
	f.BoolVar(&q.banker.hidden, "banker-hidden", false, "Banker has two cards, not shown")
	f.StringVar(&q.counts, "counts", "", "unseen cards by value, ten numbers, instead of --decks")
	f.StringVar(&q.player.values, "player-values", "", "Player's cards by value, with --counts")
	f.StringVar(&q.banker.values, "banker-values", "", "Banker's cards by value, with --counts")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// oddsQuery is the command line as given.
type oddsQuery struct {
	decks          int
	seen, counts   string
	player, banker handQuery
}

type handQuery struct {
	cards, values string
	hidden        bool
}

// answer computes what was asked; its errors name the flag.
func (q *oddsQuery) answer(given func(flag string) bool) (*oddsAnswer, error) {
	for _, flag := range []string{"decks", "seen", "player", "banker"} {
		if given("counts") && given(flag) {
			return nil, fmt.Errorf("--%s: not together with --counts", flag)
		}
	}
	for _, flag := range []string{"player-values", "banker-values"} {
		if given(flag) && !given("counts") {
			return nil, fmt.Errorf("--%s: only with --counts; with --decks name the cards", flag)
		}
	}
	var hands odds.Hands
	var err error
	if hands.Player, err = q.player.hand("player"); err != nil {
		return nil, err
	}
	if hands.Banker, err = q.banker.hand("banker"); err != nil {
		return nil, err
	}
	shoe, err := q.shoe(given, hands)
	if err != nil {
		return nil, err
	}
	a, err := ask(shoe, hands)
	switch {
	case errors.Is(err, odds.ErrAgainstRules) && given("counts"):
		return nil, fmt.Errorf("--player-values, --banker-values: %w", err)
	case errors.Is(err, odds.ErrAgainstRules):
		return nil, fmt.Errorf("--player, --banker: %w", err)
	case err != nil && given("counts"):
		return nil, fmt.Errorf("--counts: %w", err)
	case err != nil:
		return nil, fmt.Errorf("--decks, --seen: %w", err)
	}
	return a, nil
}

// shoe is the unseen cards: hands are taken from --decks, never from --counts.
func (q *oddsQuery) shoe(given func(string) bool, hands odds.Hands) (odds.Composition, error) {
	var none odds.Composition
	if given("counts") {
		counts, err := parseCounts(q.counts)
		if err != nil {
			return none, fmt.Errorf("--counts: %w", err)
		}
		c, err := odds.ByValue(counts)
		if err != nil {
			return none, fmt.Errorf("--counts: %w", err)
		}
		return c, nil
	}
	c, err := odds.FullShoe(q.decks)
	if err != nil {
		return none, fmt.Errorf("--decks: %w", err)
	}
	seen, err := parseCards(q.seen)
	if err != nil {
		return none, fmt.Errorf("--seen: %w", err)
	}
	if slices.Contains(seen, round.Masked) {
		return none, errors.New("--seen: ?? was not seen; leave it out")
	}
	if c, err = c.Without(seen...); err != nil {
		return none, fmt.Errorf("--seen: %w", err)
	}
	if c, err = c.Without(hands.Player.Cards[:hands.Player.N]...); err != nil {
		return none, fmt.Errorf("--player: %w", err)
	}
	if c, err = c.Without(hands.Banker.Cards[:hands.Banker.N]...); err != nil {
		return none, fmt.Errorf("--banker: %w", err)
	}
	return c, nil
}

// hand reads one side's cards as the table has shown them.
func (q *handQuery) hand(side string) (h round.Hand, err error) {
	flag, cards := side, []round.Card(nil)
	if cards, err = parseCards(q.cards); err == nil && q.values != "" {
		flag = side + "-values"
		cards, err = parseValues(q.values)
	}
	switch {
	case err != nil:
		return h, fmt.Errorf("--%s: %w", flag, err)
	case len(cards) > len(h.Cards):
		return h, fmt.Errorf("--%s: %d cards, a hand has at most %d", flag, len(cards), len(h.Cards))
	case q.hidden && len(cards) > 0:
		return h, fmt.Errorf("--%s: not together with --%s-hidden", flag, side)
	case q.hidden:
		cards = []round.Card{round.Masked, round.Masked}
	}
	h.N = uint8(copy(h.Cards[:], cards))
	return h, nil
}

// list splits at commas; an empty text is an empty list.
func list(text string) []string {
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func parseCards(text string) (cards []round.Card, err error) {
	for _, part := range list(text) {
		c, err := round.ParseCard(part)
		if err != nil {
			return nil, err
		}
		cards = append(cards, c)
	}
	return cards, nil
}

// parseValues reads values as cards of no matter which suit.
func parseValues(text string) (cards []round.Card, err error) {
	for _, part := range list(text) {
		if part == "??" {
			cards = append(cards, round.Masked)
			continue
		}
		v, err := strconv.Atoi(part)
		if err != nil || v < 0 || v > 9 {
			return nil, fmt.Errorf("value %q: want 0 (ten and faces) to 9, or ??", part)
		}
		if v == 0 {
			v = 10
		}
		cards = append(cards, round.NewCard(v, round.Spade))
	}
	return cards, nil
}

func parseCounts(text string) (counts [10]int, err error) {
	parts := list(text)
	if len(parts) != len(counts) {
		return counts, fmt.Errorf("%d numbers, want 10: of value 0 (ten and faces), 1 … 9", len(parts))
	}
	for i, part := range parts {
		if counts[i], err = strconv.Atoi(part); err != nil {
			return counts, fmt.Errorf("%q of value %d is not a whole number", part, i)
		}
	}
	return counts, nil
}

// oddsAnswer is the command's answer, in JSON as it stands.
type oddsAnswer struct {
	Den       odds.Integer       `json:"den"`
	Player    odds.Integer       `json:"player"`
	Banker    odds.Integer       `json:"banker"`
	Tie       odds.Integer       `json:"tie"`
	Bets      map[string]betOdds `json:"bets,omitempty"` // before a round only
	Insurance []offerOdds        `json:"insurance"`

	unseen int
	order  []string // of Bets, as in their table
}

type betOdds struct {
	Den   odds.Integer  `json:"den"`
	Tiers []tierOdds    `json:"tiers"`
	Push  odds.Integer  `json:"push"`
	Edge  odds.Fraction `json:"edge"`
}

type tierOdds struct {
	Pays string       `json:"pays"`
	Num  odds.Integer `json:"num"`
}

type offerOdds struct {
	Row    uint8         `json:"row"`
	Side   string        `json:"side"`
	WinsOn string        `json:"wins_on"`
	Pays   string        `json:"pays"`
	Win    odds.Integer  `json:"win"`
	Push   odds.Integer  `json:"push"`
	Lose   odds.Integer  `json:"lose"`
	Den    odds.Integer  `json:"den"`
	Edge   odds.Fraction `json:"edge"`

	fair *big.Rat
}

// ask computes the odds of the default house on its tables.
func ask(shoe odds.Composition, hands odds.Hands) (*oddsAnswer, error) {
	rules := round.DefaultRules()
	o, err := hands.Outcomes(shoe.Values())
	if err != nil {
		return nil, err
	}
	a := &oddsAnswer{
		Den: odds.Whole(o.Den), Player: odds.Whole(o.Player), Banker: odds.Whole(o.Banker), Tie: odds.Whole(o.Tie),
		Insurance: []offerOdds{}, unseen: shoe.Cards(),
	}
	if hands == (odds.Hands{}) {
		return a, a.askBets(shoe, &rules)
	}
	offers := odds.Offers(&rules.InsuranceTable, hands, nil)
	if err := odds.FillOffers(offers, hands, shoe.Values(), rules.InsuranceTie); err != nil {
		return nil, err
	}
	for _, of := range offers {
		a.Insurance = append(a.Insurance, offerOdds{
			Row: of.Row, Side: of.Side.String(), WinsOn: of.WinsOn.String(), Pays: of.Pays.String(),
			Win: odds.Whole(of.Win), Push: odds.Whole(of.Push), Lose: odds.Whole(of.Lose), Den: odds.Whole(of.Den),
			Edge: odds.Fraction{Rat: odds.Edge(of)}, fair: odds.Fair(of),
		})
	}
	return a, nil
}

func (a *oddsAnswer) askBets(shoe odds.Composition, rules *round.Rules) error {
	prices, err := odds.Prices(shoe, rules)
	if err != nil {
		return err
	}
	a.Bets = map[string]betOdds{}
	for _, p := range prices {
		b := betOdds{Den: odds.Whole(p.Den), Push: odds.Whole(p.Push), Edge: odds.Fraction{Rat: p.Edge}}
		for _, t := range p.Tiers {
			b.Tiers = append(b.Tiers, tierOdds{t.Pays.String(), odds.Whole(t.Num)})
		}
		a.Bets[p.Bet.String()] = b
		a.order = append(a.order, p.Bet.String())
	}
	return nil
}

// print writes the answer as tables to read.
func (a *oddsAnswer) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d cards unseen\n\noutcome\tprobability\tways of %v\n", a.unseen, a.Den)
	for _, o := range []struct {
		name string
		ways odds.Integer
	}{{"Player", a.Player}, {"Banker", a.Banker}, {"Tie", a.Tie}} {
		fmt.Fprintf(w, "%s\t%s\t%v\n", o.name, percent(o.ways.Over(a.Den)), o.ways)
	}
	if a.Bets != nil {
		fmt.Fprint(w, "\nbet\tpays\tprobability\tways\tof\tedge\n")
	}
	for _, name := range a.order {
		b := a.Bets[name]
		for i, t := range b.Tiers {
			edge := ""
			if i == 0 {
				edge = percent(b.Edge.Rat)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%v\t%s\n", name, t.Pays, percent(t.Num.Over(b.Den)), t.Num, b.Den, edge)
		}
		if b.Push.Sign() != 0 {
			fmt.Fprintf(w, "%s\tpush\t%s\t%v\t%v\t\n", name, percent(b.Push.Over(b.Den)), b.Push, b.Den)
		}
	}
	if len(a.Insurance) > 0 {
		fmt.Fprint(w, "\ninsurance\trow\twins on\tpays\tfair\twin\tpush\tlose\tedge\n")
	}
	for _, of := range a.Insurance {
		fair := "never wins"
		if of.fair != nil {
			fair = of.fair.FloatString(4) + ":1"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%v\t%v\t%v\t%s\n", of.Side, of.Row, of.WinsOn, of.Pays, fair, of.Win, of.Push, of.Lose, percent(of.Edge.Rat))
	}
	return w.Flush()
}

func percent(r *big.Rat) string {
	return new(big.Rat).Mul(r, big.NewRat(100, 1)).FloatString(6) + " %"
}
