package round_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"shoed/round"
)

// TestRulesTexts: what Texts lists sets equal rules again, and so does JSON.
func TestRulesTexts(t *testing.T) {
	r := round.DefaultRules()
	set(t, &r, "decks=6", "burn=fixed:3", "deal_order=pairs", "rounds_after_cut=1", "cut_cards=10..20", "round_start=boxes",
		"reveal=on_signal", "reveal_order=banker_first", "verdict=wait", "bets_offered=player+banker+tie", "tie_main=lose",
		"commission_bp=400", "insurance=off", "insurance_tie=lose", "insurance_ms=5000", "insurance_post=dealer", "placement=rfid", "draw_gate=on",
		"placement_settle_ms=1", "place_wait_ms=2", "draw_wait_ms=3", "card_gap_ms=150", "resolve_ms=4", "free_hand_on_roads=yes",
		"deal.extra_card=burn", "reader.gap=void", "shoe.suspect_order=off")
	again := round.DefaultRules()
	set(t, &again, r.Texts()...)
	if again != r {
		t.Errorf("set again from %v:\n%+v\nwant\n%+v", r.Texts(), again, r)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back round.Rules
	if err := json.Unmarshal(b, &back); err != nil || back != r {
		t.Errorf("%v: rules changed on their way through JSON", err)
	}
	if got := r.Relaxed(); !slices.Equal(got, []string{"reader.gap=void"}) {
		t.Errorf("relaxed %v", got)
	}
}

// TestRulesRefuse: a refused rule is named with what it may be, and changes
// nothing.
func TestRulesRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"decks":                "name=value",
		"decks=0":              "from 1 to 12",
		"decks=13":             "from 1 to 12",
		"burn=fixed":           "fixed:N",
		"burn=fixed:99":        "from 0 to 20",
		"burn=all":             `"all" is none of first_card`,
		"round_start=card":     "none of reader, bets, button, boxes, first_card",
		"bets_offered=roulet":  "none of player, banker",
		"commission_bp=10001":  "from 0 to 10000",
		"cut_cards=40..8":      "like 8..40",
		"insurance_ms=0":       "from 1 to 3600000",
		"free_hand_on_roads=":  "want no or yes",
		"deal.extra_card=void": "want one of default, next_round, burn, free_hand",
		"deal.late=void":       "want one of default",
		"deal.unheard=void":    "unknown",
	} {
		r := round.DefaultRules()
		err := r.Set(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
		if r != round.DefaultRules() {
			t.Errorf("%s was refused, yet it changed the rules", text)
		}
	}
}
