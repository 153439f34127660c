package round_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"shoed/round"
)

const betColumns = "bet,tier,pays_num,pays_den,push,last_round\n"

// lucky is a table with a bet of two tiers.
const lucky = betColumns + "lucky_six,two_cards,12,1,,50\nlucky_six,three_cards,20,1,,50\n"

func TestDefaultBets(t *testing.T) {
	table := round.DefaultBets
	if int(table.N) != len(table.Rows) {
		t.Errorf("%d rows of %d: the bound is every tier that we know", table.N, len(table.Rows))
	}
	again, err := round.ParseBets(table.CSV())
	if err != nil || again != table {
		t.Errorf("%v: reading what it writes gives another table\n%s", err, again.CSV())
	}
}

func TestParseBets(t *testing.T) {
	want := round.BetRow{Bet: round.BetLuckySix, Tier: round.TierThreeCards, Last: 50, Pays: round.Ratio{Num: 20, Den: 1}}
	for name, text := range map[string]string{
		"plain":        lucky,
		"seed column":  strings.ReplaceAll(strings.Replace(lucky, "\n", ",seed\n", 1), ",50\n", ",50,001\n"),
		"lowest terms": strings.Replace(lucky, ",20,1,", ",40,2,", 1),
		"lines' ends":  strings.ReplaceAll(lucky, "\n", "\r\n"),
		"no last end":  strings.TrimSuffix(lucky, "\n"),
	} {
		if got, err := round.ParseBets(text); err != nil || got.N != 2 || got.Rows[1] != want {
			t.Errorf("%s: %+v, %v", name, got.Rows[:got.N], err)
		}
	}
}

func TestParseBetsRefuses(t *testing.T) {
	for _, c := range []struct{ want, text string }{
		{"line 1: want the columns", ""},
		{"line 1: want the columns", "bet,tier\nplayer,win\n"},
		{"line 1: want the columns", strings.Replace(lucky, "push", "pushes", 1)},
		{"line 1: want the columns", strings.Replace(strings.ReplaceAll(lucky, ",50\n", ",50,001\n"), "\n", ",source\n", 1)},
		{"no rows", betColumns},
		{"line 2: bet \"dragon\" is none of player, banker", strings.ReplaceAll(lucky, "lucky_six", "dragon")},
		{"line 3: bet lucky_six has no tier \"four_cards\"", strings.Replace(lucky, "three_cards", "four_cards", 1)},
		{"bet lucky_six has no tier \"both\"", strings.Replace(lucky, "three_cards", "both", 1)},
		{"bet lucky_six has no tier \"\"", strings.Replace(lucky, "three_cards", "", 1)},
		{"line 3: bet lucky_six: tier two_cards is there twice", strings.Replace(lucky, "three_cards", "two_cards", 1)},
		{"lacks some of its tiers", betColumns + "lucky_six,two_cards,12,1,,50\n"},
		{"push and last_round differ", strings.Replace(lucky, ",50", ",40", 1)},
		{"push and last_round differ", strings.Replace(lucky, ",50", ",", 1)},
		{"push and last_round differ", betColumns + "banker_no_commission,win,1,1,tie,\nbanker_no_commission,win_with_6,1,2,,\n"},
		{"bet lucky_six cannot push on \"tie\"", strings.ReplaceAll(lucky, ",1,,", ",1,tie,")},
		{"bet player cannot push on \"tie_of_naturals\"", betColumns + "player,win,1,1,tie_of_naturals,\n"},
		{"bet player cannot push on \"loss\"", betColumns + "player,win,1,1,loss,\n"},
		{"last_round \"x\"", strings.ReplaceAll(lucky, ",50", ",x")},
		{"last_round \"0\"", strings.ReplaceAll(lucky, ",50", ",0")},
		{"last_round \"256\"", strings.ReplaceAll(lucky, ",50", ",256")},
		{"pays 0 to 1", strings.Replace(lucky, ",12,1", ",0,1", 1)},
		{"pays 12 to 0", strings.Replace(lucky, ",12,1", ",12,0", 1)},
		{"pays -12 to 1", strings.Replace(lucky, ",12,1", ",-12,1", 1)},
		{"pays 12 to 65536", strings.Replace(lucky, ",12,1", ",12,65536", 1)},
		{"do not stand together", strings.Replace(lucky, "lucky_six,three", "tie,win,8,1,,\nlucky_six,three", 1)},
		{"line 2: wrong number of fields", betColumns + "player,win\n"},
		{"line 5: bet \"dragon\"", strings.Replace(lucky, "\n", "\n\n", 1) + "dragon,win,40,1,,\n"},
	} {
		got, err := round.ParseBets(c.text)
		if err == nil || !strings.Contains(err.Error(), "bets table: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
		if got != (round.BetTable{}) {
			t.Errorf("%q: a table beside the error", c.want)
		}
	}
}

// What the house decides: commission_bp outranks the table's pays of banker,
// and of nothing else; tie_main touches the main bets; bets_offered.
func TestHouseOnBets(t *testing.T) {
	row := func(name string, tier round.Tier) round.BetRow {
		for _, r := range round.DefaultBets.Rows {
			if r.Bet.String() == name && r.Tier == tier {
				return r
			}
		}
		t.Fatalf("no row %s %v", name, tier)
		return round.BetRow{}
	}
	for _, c := range []struct {
		rules, bet string
		pays       string
		push       string
		offered    bool
	}{
		{"", "banker", "19:20", "tie", true},
		{"commission_bp=400", "banker", "24:25", "tie", true},
		{"commission_bp=0", "banker", "1:1", "tie", true},
		{"commission_bp=10000", "banker", "0:1", "tie", true},
		{"commission_bp=400", "player", "1:1", "tie", true},
		{"commission_bp=400", "banker_no_commission", "1:1", "tie", true},
		{"tie_main=lose", "player", "1:1", "", true},
		{"tie_main=lose", "banker", "19:20", "", true},
		{"tie_main=lose", "banker_no_commission", "1:1", "", true},
		{"tie_main=lose", "tie", "8:1", "", true},
		{"tie_main=lose bets_offered=banker+tie", "tie", "8:1", "", true},
		{"bets_offered=banker+tie", "player", "1:1", "tie", false},
		{"bets_offered=all", "player", "1:1", "tie", true},
	} {
		rules := round.DefaultRules()
		set(t, &rules, strings.Fields(c.rules)...)
		r := row(c.bet, round.TierWin)
		got := fmt.Sprint(rules.Pays(r), " ", rules.Push(r), " ", rules.Offered(r.Bet))
		if want := fmt.Sprint(c.pays, " ", c.push, " ", c.offered); got != want {
			t.Errorf("%s, %s: %s, want %s", c.rules, c.bet, got, want)
		}
	}
	lose := round.DefaultRules()
	set(t, &lose, "tie_main=lose")
	if p := lose.Push(row("player_bonus", round.TierNatural)); p != round.PushTieOfNaturals {
		t.Errorf("tie_main=lose: player_bonus pushes on %q", p)
	}
	for _, e := range play(t, "bets_offered=banker+tie", `{"in":"shoe","decks":8}`, `{"in":"card","card":"4s"}`) {
		if want := uint32(1<<round.BetBanker | 1<<round.BetTie); e.Kind == round.RoundOpened && e.Bets != want {
			t.Errorf("bets_offered=banker+tie: a round opens with the bets %b, want %b", e.Bets, want)
		}
	}
}

// FuzzParseBets: no text makes the parser panic, and what it takes is written
// and read again as it is, by itself and among the rules.
func FuzzParseBets(f *testing.F) {
	f.Add(round.DefaultBets.CSV())
	f.Add(lucky)
	f.Add("bet,tier,pays_num,pays_den,push,last_round,seed\nplayer,win,2,2,tie,255,\"0\n0\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := round.ParseBets(text)
		if err != nil {
			return
		}
		if again, err := round.ParseBets(table.CSV()); err != nil || again != table {
			t.Errorf("%q: %v\n%s", text, err, again.CSV())
		}
		rules := round.DefaultRules()
		rules.Bets = table
		rulesAgain(t, rules)
	})
}

// rulesAgain writes rules as a journal does and reads them back.
func rulesAgain(t *testing.T, rules round.Rules) {
	t.Helper()
	b, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	var again round.Rules
	if err := json.Unmarshal(b, &again); err != nil || again != rules {
		t.Errorf("%v: the rules change by being written: %s", err, b)
	}
}
