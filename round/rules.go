package round

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Rules are what the house decides (game.md): journaled with the shoe.
// The zero value is not valid: start from DefaultRules.
type Rules struct {
	Decks          uint8 // decks in a new shoe, 1–12
	Burn           BurnRule
	BurnCards      uint8 // with BurnFixed
	DealOrder      DealOrder
	RoundsAfterCut uint8 // 0: the round of the cut card is the last; 1: one more
	RoundStart     RoundStart
	Reveal         RevealRule
	Verdict        VerdictRule
	On             [codes]Setting // what happens on an error code; 0 its default
}

// MaxDecks is the most decks a shoe may have.
const MaxDecks = 12

// BurnRule says how the cards burned from a new shoe are checked.
type BurnRule uint8

const (
	BurnFirstCard BurnRule = iota + 1 // as many as the first card's value
	BurnNone
	BurnFixed
	BurnUnchecked // what the reader says
)

// DealOrder of the first four cards.
type DealOrder uint8

const (
	DealAlternate DealOrder = iota + 1 // P1 B1 P2 B2
	DealPairs                          // P1 P2 B1 B2 (seed 003)
)

// RoundStart says which fact opens a round.
type RoundStart uint8

const (
	StartReader    RoundStart = iota + 1 // the reader's own Player 1
	StartBets                            // the first card after bets were closed
	StartButton                          // the dealer's start button
	StartBoxes                           // the first card after all boxes were empty
	StartFirstCard                       // any card
)

// RevealRule says when the table has shown a card (game.md section 4).
type RevealRule uint8

const (
	RevealOnDraw RevealRule = iota + 1
	RevealOnSignal
)

// VerdictRule says what the reader's own outcome is for.
type VerdictRule uint8

const (
	VerdictCompare VerdictRule = iota + 1 // decide at the last due face, compare later
	VerdictWait                           // decide only when it agrees
)

// Setting of an error code other than its default.
type Setting uint8

const (
	SetVoid      Setting = iota + 1 // the round is void by itself
	SetAccept                       // taken as right
	SetNextRound                    // the card opens the next round
	SetBurn                         // the card is burned
	SetFreeHand                     // the card opens a free hand
	SetPause                        // the table pauses
)

var (
	burnText       = []string{"", "first_card", "none", "fixed", "unchecked"}
	dealOrderText  = []string{"", "alternate", "pairs"}
	roundStartText = []string{"", "reader", "bets", "button", "boxes", "first_card"}
	revealText     = []string{"", "on_draw", "on_signal"}
	verdictText    = []string{"", "compare", "wait"}
	settingText    = []string{"", "void", "accept", "next_round", "burn", "free_hand", "pause"}
)

// DefaultRules are the house rules of game.md with nothing decided otherwise.
func DefaultRules() Rules {
	return Rules{
		Decks: 8, Burn: BurnFirstCard, DealOrder: DealAlternate,
		RoundStart: StartReader, Reveal: RevealOnDraw, Verdict: VerdictCompare,
	}
}

// Set changes one rule from its text, name=value as game.md writes it.
func (r *Rules) Set(text string) error {
	name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
	if !ok {
		return fmt.Errorf("rule %q: write it as name=value", text)
	}
	if code, ok := codeByName(name); ok {
		return r.setCode(code, value)
	}
	number := func(lo, hi uint64) (uint8, error) {
		n, err := strconv.ParseUint(value, 10, 8)
		if err != nil || n < lo || n > hi {
			return 0, fmt.Errorf("rule %s=%s: want a whole number from %d to %d", name, value, lo, hi)
		}
		return uint8(n), nil
	}
	var err error
	switch name {
	case "decks":
		r.Decks, err = number(1, MaxDecks)
	case "burn":
		err = r.setBurn(value)
	case "deal_order":
		err = choose(&r.DealOrder, name, value, dealOrderText)
	case "rounds_after_cut":
		r.RoundsAfterCut, err = number(0, 1)
	case "round_start":
		err = choose(&r.RoundStart, name, value, roundStartText)
	case "reveal":
		err = choose(&r.Reveal, name, value, revealText)
	case "verdict":
		err = choose(&r.Verdict, name, value, verdictText)
	default:
		err = fmt.Errorf("rule %q is unknown", name)
	}
	return err
}

func (r *Rules) setBurn(value string) error {
	if fixed, ok := strings.CutPrefix(value, "fixed:"); ok {
		n, err := strconv.ParseUint(fixed, 10, 8)
		if err != nil || n > maxBurn {
			return fmt.Errorf("rule burn=%s: want fixed:N with N from 0 to %d", value, maxBurn)
		}
		r.Burn, r.BurnCards = BurnFixed, uint8(n)
		return nil
	}
	if value == "fixed" {
		return fmt.Errorf("rule burn=fixed: want fixed:N with N from 0 to %d", maxBurn)
	}
	r.BurnCards = 0
	return choose(&r.Burn, "burn", value, burnText)
}

func (r *Rules) setCode(code Code, value string) error {
	if value == "default" {
		r.On[code] = 0
		return nil
	}
	for _, s := range alertRules[code].settings {
		if settingText[s] == value {
			r.On[code] = s
			return nil
		}
	}
	allowed := []string{"default"}
	for _, s := range alertRules[code].settings {
		allowed = append(allowed, settingText[s])
	}
	return fmt.Errorf("rule %s=%s: want one of %s", code, value, strings.Join(allowed, ", "))
}

func choose[T ~uint8](to *T, name, value string, texts []string) error {
	for i, t := range texts {
		if t != "" && t == value {
			*to = T(i)
			return nil
		}
	}
	return fmt.Errorf("rule %s=%s: want one of %s", name, value, strings.Join(texts[1:], ", "))
}

// Texts lists every rule as name=value, in a fixed order; codes only where
// they differ from their default. Setting them all again gives equal Rules.
func (r Rules) Texts() []string {
	burn := burnText[r.Burn]
	if r.Burn == BurnFixed {
		burn = fmt.Sprintf("fixed:%d", r.BurnCards)
	}
	texts := []string{
		fmt.Sprintf("decks=%d", r.Decks),
		"burn=" + burn,
		"deal_order=" + dealOrderText[r.DealOrder],
		fmt.Sprintf("rounds_after_cut=%d", r.RoundsAfterCut),
		"round_start=" + roundStartText[r.RoundStart],
		"reveal=" + revealText[r.Reveal],
		"verdict=" + verdictText[r.Verdict],
	}
	for code, s := range r.On {
		if s != 0 {
			texts = append(texts, Code(code).String()+"="+settingText[s])
		}
	}
	return texts
}

// Relaxed lists the rules that are looser than the defaults: they let pass,
// or void without asking, what otherwise waits for a supervisor.
func (r Rules) Relaxed() []string {
	var texts []string
	if r.Burn == BurnUnchecked {
		texts = append(texts, "burn=unchecked")
	}
	for code, s := range r.On {
		if s == SetAccept || s == SetVoid {
			texts = append(texts, Code(code).String()+"="+settingText[s])
		}
	}
	return texts
}

// MarshalJSON writes the rules as their texts, so that a journal outlives a
// change of the numbers behind them.
func (r Rules) MarshalJSON() ([]byte, error) { return json.Marshal(r.Texts()) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Rules) UnmarshalJSON(b []byte) error {
	var texts []string
	if err := json.Unmarshal(b, &texts); err != nil {
		return err
	}
	*r = DefaultRules()
	for _, text := range texts {
		if err := r.Set(text); err != nil {
			return err
		}
	}
	return nil
}
