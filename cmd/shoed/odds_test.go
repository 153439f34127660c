package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// runOdds runs the command alone.
func runOdds(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := oddsCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

// oddsJSON runs the command for a reader that keeps numbers as they are
// written.
func oddsJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	out, err := runOdds(append(args, "--json")...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	var answer map[string]any
	if err := d.Decode(&answer); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v: not one line of JSON (%v): %s", args, err, out)
	}
	return answer
}

func compact(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOddsBeforeRound(t *testing.T) {
	a := oddsJSON(t, "--decks", "8")
	for name, want := range map[string]string{
		"den": "4998398275503360", "player": "2230518282592256", "banker": "2292252566437888", "tie": "475627426473216",
		"insurance": "[]",
	} {
		if got := compact(t, a[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	bets := a["bets"].(map[string]any)
	if len(bets) != 19 {
		t.Errorf("%d bets, want 19", len(bets))
	}
	for name, want := range map[string]string{
		"player_pair": `{"den":172640,"edge":{"den":415,"num":43},"push":0,"tiers":[{"num":12896,"pays":"11:1"}]}`,
		"banker_no_commission": `{"den":4998398275503360,"edge":{"den":19524993263685,"num":284694798368},"push":475627426473216,` +
			`"tiers":[{"num":2023020261982208,"pays":"1:1"},{"num":269232304455680,"pays":"1:2"}]}`,
	} {
		if got := compact(t, bets[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := compact(t, bets["banker"].(map[string]any)["tiers"]); got != `[{"num":2292252566437888,"pays":"19:20"}]` {
		t.Errorf("banker tiers %s", got)
	}
}

// Integers from 2^53 on are strings.
func TestOddsWideIntegers(t *testing.T) {
	a := oddsJSON(t, "--decks", "12")
	if got := compact(t, a["den"]); got != `"57628452781710720"` {
		t.Errorf("den is %s", got)
	}
	if got := compact(t, a["tie"]); got != "5488795281294720" {
		t.Errorf("tie is %s, want a number: it is below 2^53", got)
	}
}

func TestOddsByValue(t *testing.T) {
	full := []string{"--counts", "128,32,32,32,32,32,32,32,32,32"}
	a, faces := oddsJSON(t, full...), oddsJSON(t)
	bets, all := a["bets"].(map[string]any), faces["bets"].(map[string]any)
	for name := range all {
		_, there := bets[name]
		if pair := strings.HasSuffix(name, "_pair"); there == pair {
			t.Errorf("%s: with --counts it is there: %v", name, there)
		}
		if there && compact(t, bets[name]) != compact(t, all[name]) {
			t.Errorf("%s differs by the way the shoe is given", name)
		}
	}
	// Hands are never taken from the counts, and always from the decks.
	five := oddsJSON(t, append(full, "--player-values", "0,1,6", "--banker-values", "0,6")...)
	if got := compact(t, five); !strings.Contains(got, `"den":416`) || five["bets"] != nil {
		t.Errorf("after five cards: %s", got)
	}
	named := oddsJSON(t, "--seen", "2s,3h", "--player", "Ks,Ad,6c", "--banker", "Th,6d")
	if got := compact(t, named["den"]); got != "409" {
		t.Errorf("two seen and five in hand of 416: %s unseen", got)
	}
}

func TestOddsInsurance(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string // of insurance
	}{
		{"four cards", []string{"--counts", "10,10,10,10,10,10,10,10,10,10", "--player-values", "0,6", "--banker-values", "0,0"},
			`[{"den":100,"edge":{"den":10,"num":-3},"lose":60,"pays":"3:1","push":10,"row":17,"side":"player","win":30,"wins_on":"banker"}]`},
		{"one hand shown, wins on a tie", []string{"--player-hidden", "--banker", "Ks,9d"}, ""},
		{"masked cards open nothing", []string{"--player", "??,6s", "--banker", "Ks,5d"}, "[]"},
		{"one hand dealt", []string{"--player", "Ks,7d"}, "[]"},
		{"no card is due", []string{"--player", "Ks,8d", "--banker", "Ks,5d"}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := oddsJSON(t, c.args...)
			got := compact(t, a["insurance"])
			if c.want != "" && got != c.want {
				t.Errorf("insurance %s, want %s", got, c.want)
			}
			if c.want == "" && !strings.Contains(got, `"row":3,`) {
				t.Errorf("insurance %s, want row 3", got)
			}
			if a["bets"] != nil {
				t.Error("bets in a round")
			}
		})
	}
}

func TestOddsTable(t *testing.T) {
	out, err := runOdds()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"416 cards unseen", "ways of 4998398275503360", "Player   44.624661 %  2230518282592256",
		"super_lucky_seven     100:1  0.271480 %", "player_bonus          push", "1.057906 %",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, err = runOdds("--player", "Ks,9d", "--banker-hidden")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"414 cards unseen", "insurance", "player     15   tie      10:1", "-3.359418 %"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "bet ") {
		t.Errorf("bets in a round:\n%s", out)
	}
}

func TestOddsRefuses(t *testing.T) {
	const full = "128,32,32,32,32,32,32,32,32,32"
	for _, c := range []struct {
		args, want string
	}{
		{"--decks 0", "--decks: 0 decks"},
		{"--decks 13", "--decks: 13 decks"},
		{"--decks x", "decks"},
		{"--decks 1 --seen 8s,8s", "--seen: card 8s"},
		{"--decks 1 --seen 8s --player 8s", "--player: card 8s"},
		{"--decks 1 --player 8s --banker 8s", "--banker: card 8s"},
		{"--seen 8x", `--seen: card "8x"`},
		{"--seen 8s,", `--seen: card ""`},
		{"--seen ??", "--seen: ??"},
		{"--player 8s,2s,3s,4s", "--player: 4 cards"},
		{"--player 8", `--player: card "8"`},
		{"--player 8s --player-hidden", "--player: not together with --player-hidden"},
		{"--counts " + full + " --banker-values 3 --banker-hidden", "--banker-values: not together with --banker-hidden"},
		{"--player Ks,6s,2s --banker Kh,3s", "--player, --banker: these hands"},
		{"--player Ks,2s,2s --banker Kh", "--player, --banker: 3 Player and 1 Banker"},
		{"--counts " + full + " --player-values 0,6,1 --banker-values 0,3", "--player-values, --banker-values: these hands"},
		{"--player-values 3,4", "--player-values: only with --counts"},
		{"--counts " + full + " --decks 8", "--decks: not together"},
		{"--counts " + full + " --seen 8s", "--seen: not together"},
		{"--counts " + full + " --player 8s", "--player: not together"},
		{"--counts " + full + " --player-values 10", `--player-values: value "10"`},
		{"--counts 1,2,3", "--counts: 3 numbers"},
		{"--counts 1,2,3,4,5,6,7,8,9,x", `--counts: "x"`},
		{"--counts 1,2,3,4,5,6,7,8,9,-1", "--counts: value 9: -1"},
		{"--counts 5,0,0,0,0,0,0,0,0,0", "--counts: 5 cards are unseen, up to 6"},
		{"--counts 193,0,0,0,0,0,0,0,0,0", "--counts: value 0: 193"},
		{"--counts ", "--counts: 0 numbers"},
		{"8", "unknown command"},
	} {
		t.Run(c.args, func(t *testing.T) {
			out, err := runOdds(strings.Split(c.args, " ")...)
			if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
				t.Fatalf("error %v, want one with %q; printed %q", err, c.want, out)
			}
			var usage usageError
			if !errors.As(err, &usage) && c.want != "decks" {
				t.Errorf("%v is not a usage error", err)
			}
		})
	}
}

// Every value of a hand, by value and by card, says the same.
func TestOddsHandsAgree(t *testing.T) {
	for v := range 10 {
		rank := "TA23456789"[v : v+1]
		counts := [10]int{128, 32, 32, 32, 32, 32, 32, 32, 32, 32}
		counts[v] -= 2
		counts[5]--
		text := strings.ReplaceAll(strings.Trim(fmt.Sprint(counts), "[]"), " ", ",")
		byValue := oddsJSON(t, "--counts", text, "--banker-values", fmt.Sprintf("%d,%d", v, v), "--player-values", "5")
		byCard := oddsJSON(t, "--banker", rank+"s,"+rank+"h", "--player", "5d")
		if a, b := compact(t, byValue), compact(t, byCard); a != b {
			t.Errorf("Banker's pair of value %d: %s by value, %s by card", v, a, b)
		}
	}
}
