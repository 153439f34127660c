package round

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

	Bets          BetTable
	BetsOffered   uint32 // a bit each; 0 offers all
	TieMain       TieRule
	CommissionBP  uint16 // on Banker, in basis points
	CommissionSet bool   // by rule; else the table's own pays hold

	Insurance      InsuranceRule
	InsuranceTable InsuranceTable
	InsuranceTie   TieRule
	InsuranceMS    uint32
	InsurancePost  PostRule
	RevealOrder    RevealOrder

	DrawGate          GateRule
	Placement         PlacementRule
	PlacementSettleMS uint32
	PlaceWaitMS       uint32
	DrawWaitMS        uint32
	CardGapMS         uint32
	ResolveMS         uint32
	CutMin, CutMax    uint8 // cards behind the cut card
	FreeHandOnRoads   bool
}

// TieRule says what a tie does to bets that do not name it.
type TieRule uint8

const (
	TiePushes TieRule = iota + 1
	TieLoses
)

// InsuranceRule says whether insurance is offered.
type InsuranceRule uint8

const (
	InsuranceOn InsuranceRule = iota + 1
	InsuranceOff
)

// PostRule says who lays out insurance rates.
type PostRule uint8

const (
	PostNone PostRule = iota + 1
	PostDealer
)

// RevealOrder of the hands.
type RevealOrder uint8

const (
	RevealAny RevealOrder = iota + 1
	RevealPlayerFirst
	RevealBankerFirst
)

// PlacementRule says which sensors see where the cards lie.
type PlacementRule uint8

const (
	PlacementNone PlacementRule = iota + 1
	PlacementPresence
	PlacementRFID
)

func (p PlacementRule) String() string { return placementText[p] }

// GateRule says whether the reader is kept locked while no card is due.
type GateRule uint8

const (
	GateOff GateRule = iota + 1
	GateOn
)

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
	SetOff                          // not looked at
)

var (
	burnText        = []string{"", "first_card", "none", "fixed", "unchecked"}
	dealOrderText   = []string{"", "alternate", "pairs"}
	roundStartText  = []string{"", "reader", "bets", "button", "boxes", "first_card"}
	revealText      = []string{"", "on_draw", "on_signal"}
	verdictText     = []string{"", "compare", "wait"}
	tieText         = []string{"", "push", "lose"}
	insuranceOnText = []string{"", "on", "off"}
	gateText        = []string{"", "off", "on"}
	postText        = []string{"", "none", "dealer"}
	revealOrderText = []string{"", "any", "player_first", "banker_first"}
	placementText   = []string{"", "none", "presence", "rfid"}
	yesText         = []string{"no", "yes"}
	settingText     = []string{"", "void", "accept", "next_round", "burn", "free_hand", "pause", "off"}
)

// DefaultRules are the house rules of game.md with nothing decided otherwise.
func DefaultRules() Rules {
	return Rules{
		Decks: 8, Burn: BurnFirstCard, DealOrder: DealAlternate,
		RoundStart: StartReader, Reveal: RevealOnDraw, Verdict: VerdictCompare,
		Bets: DefaultBets, TieMain: TiePushes, CommissionBP: 500,
		Insurance: InsuranceOn, InsuranceTable: DefaultInsurance, InsuranceTie: TiePushes, InsuranceMS: 10_000,
		InsurancePost: PostNone, RevealOrder: RevealAny,
		DrawGate: GateOff, Placement: PlacementNone, PlacementSettleMS: 1500, PlaceWaitMS: 5000, DrawWaitMS: 30_000, ResolveMS: 180_000,
		CutMin: 8, CutMax: 40,
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
	set, ok := ruleSetters[name]
	if !ok {
		return fmt.Errorf("rule %q is unknown", name)
	}
	next := *r // a refused rule changes nothing
	if err := set(&next, value); err != nil {
		return fmt.Errorf("rule %s=%s: %w", name, value, err)
	}
	*r = next
	return nil
}

// ruleSetters is every rule by name; Texts lists them in the order of
// ruleNames.
var ruleSetters = map[string]func(*Rules, string) error{
	"decks":               func(r *Rules, v string) error { return number(&r.Decks, v, 1, MaxDecks) },
	"burn":                (*Rules).setBurn,
	"deal_order":          func(r *Rules, v string) error { return enum(&r.DealOrder, v, dealOrderText) },
	"rounds_after_cut":    func(r *Rules, v string) error { return number(&r.RoundsAfterCut, v, 0, 1) },
	"round_start":         func(r *Rules, v string) error { return enum(&r.RoundStart, v, roundStartText) },
	"reveal":              func(r *Rules, v string) error { return enum(&r.Reveal, v, revealText) },
	"verdict":             func(r *Rules, v string) error { return enum(&r.Verdict, v, verdictText) },
	"bets_offered":        (*Rules).setOffered,
	"tie_main":            func(r *Rules, v string) error { return enum(&r.TieMain, v, tieText) },
	"commission_bp":       (*Rules).setCommission,
	"insurance":           func(r *Rules, v string) error { return enum(&r.Insurance, v, insuranceOnText) },
	"insurance_tie":       func(r *Rules, v string) error { return enum(&r.InsuranceTie, v, tieText) },
	"insurance_ms":        func(r *Rules, v string) error { return number(&r.InsuranceMS, v, 1, longestMS) },
	"insurance_post":      func(r *Rules, v string) error { return enum(&r.InsurancePost, v, postText) },
	"reveal_order":        func(r *Rules, v string) error { return enum(&r.RevealOrder, v, revealOrderText) },
	"draw_gate":           func(r *Rules, v string) error { return enum(&r.DrawGate, v, gateText) },
	"placement":           func(r *Rules, v string) error { return enum(&r.Placement, v, placementText) },
	"placement_settle_ms": func(r *Rules, v string) error { return number(&r.PlacementSettleMS, v, 0, longestMS) },
	"place_wait_ms":       func(r *Rules, v string) error { return number(&r.PlaceWaitMS, v, 1, longestMS) },
	"draw_wait_ms":        func(r *Rules, v string) error { return number(&r.DrawWaitMS, v, 1, longestMS) },
	"card_gap_ms":         func(r *Rules, v string) error { return number(&r.CardGapMS, v, 0, longestMS) },
	"resolve_ms":          func(r *Rules, v string) error { return number(&r.ResolveMS, v, 1, longestMS) },
	"cut_cards":           (*Rules).setCutCards,
	"free_hand_on_roads":  (*Rules).setFreeHandOnRoads,
}

// longestMS bounds every time limit: an hour.
const longestMS = 3_600_000

func number[T ~uint8 | ~uint16 | ~uint32](to *T, value string, low, high uint64) error {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || n < low || n > high {
		return fmt.Errorf("want a whole number from %d to %d", low, high)
	}
	*to = T(n)
	return nil
}

// setOffered takes the names of the bets offered, joined by +.
func (r *Rules) setOffered(value string) error {
	set := uint32(0)
	for _, name := range strings.Split(value, "+") {
		if value == "all" {
			break
		}
		var b Bet
		if err := enum(&b, name, betText); err != nil {
			return fmt.Errorf("join bets by +, or all: %w", err)
		}
		set |= 1 << b
	}
	r.BetsOffered = set
	return nil
}

func (r *Rules) setCommission(value string) error {
	r.CommissionSet = true
	return number(&r.CommissionBP, value, 0, 10000)
}

func (r *Rules) setCutCards(value string) error {
	low, high, ok := strings.Cut(value, "..")
	var a, b uint8
	if !ok || number(&a, low, 0, 255) != nil || number(&b, high, 0, 255) != nil || a > b {
		return errors.New("want two numbers of cards like 8..40")
	}
	r.CutMin, r.CutMax = a, b
	return nil
}

func (r *Rules) setFreeHandOnRoads(value string) error {
	if i := slices.Index(yesText, value); i >= 0 {
		r.FreeHandOnRoads = i == 1
		return nil
	}
	return errors.New("want no or yes")
}

func (r *Rules) setBurn(value string) error {
	fixed, isFixed := strings.CutPrefix(value, "fixed:")
	switch {
	case isFixed:
		r.Burn = BurnFixed
		return number(&r.BurnCards, fixed, 0, maxBurn)
	case value == "fixed":
		return fmt.Errorf("want fixed:N with N from 0 to %d", maxBurn)
	}
	r.BurnCards = 0
	return enum(&r.Burn, value, burnText)
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
		"bets_offered=" + r.offeredText(),
		"tie_main=" + tieText[r.TieMain],
		"insurance=" + insuranceOnText[r.Insurance],
		"insurance_tie=" + tieText[r.InsuranceTie],
		fmt.Sprintf("insurance_ms=%d", r.InsuranceMS),
		"insurance_post=" + postText[r.InsurancePost],
		"reveal_order=" + revealOrderText[r.RevealOrder],
		"draw_gate=" + gateText[r.DrawGate],
		"placement=" + placementText[r.Placement],
		fmt.Sprintf("placement_settle_ms=%d", r.PlacementSettleMS),
		fmt.Sprintf("place_wait_ms=%d", r.PlaceWaitMS),
		fmt.Sprintf("draw_wait_ms=%d", r.DrawWaitMS),
		fmt.Sprintf("card_gap_ms=%d", r.CardGapMS),
		fmt.Sprintf("resolve_ms=%d", r.ResolveMS),
		fmt.Sprintf("cut_cards=%d..%d", r.CutMin, r.CutMax),
	}
	if r.CommissionSet {
		texts = append(texts, fmt.Sprintf("commission_bp=%d", r.CommissionBP))
	}
	if r.FreeHandOnRoads {
		texts = append(texts, "free_hand_on_roads=yes")
	}
	for code, s := range r.On {
		if s != 0 {
			texts = append(texts, Code(code).String()+"="+settingText[s])
		}
	}
	return texts
}

func (r *Rules) offeredText() string {
	if r.BetsOffered == 0 {
		return "all"
	}
	return strings.Join(betNames(r.BetsOffered), "+")
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

// rulesJSON keeps the rules by their texts, so that a journal outlives a change
// of the numbers behind them.
type rulesJSON struct {
	Rules     []string `json:"rules"`
	Bets      string   `json:"bets"`
	Insurance string   `json:"insurance"`
}

// MarshalJSON writes the rules and their tables as texts.
func (r Rules) MarshalJSON() ([]byte, error) {
	return json.Marshal(rulesJSON{r.Texts(), r.Bets.CSV(), r.InsuranceTable.CSV()})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Rules) UnmarshalJSON(b []byte) error {
	var j rulesJSON
	err := json.Unmarshal(b, &j)
	if err != nil {
		return err
	}
	*r = DefaultRules()
	if r.Bets, err = ParseBets(j.Bets); err != nil {
		return err
	}
	if r.InsuranceTable, err = ParseInsurance(j.Insurance); err != nil {
		return err
	}
	for _, text := range j.Rules {
		if err := r.Set(text); err != nil {
			return err
		}
	}
	return nil
}
