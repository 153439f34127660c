package round_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoed/odds"
	"shoed/round"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts' events anew; read the difference before you commit it")

// A transcript is a file of inputs with the events that follow, indented
// below each. It names the clause that it shows. An input without a time comes
// one second after the last.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playTranscript(t, string(want))
			if *rewrite {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the events differ (run with -rewrite and read the difference)\n%s", file, firstDifference(string(want), string(got)))
			}
		})
	}
}

func playTranscript(t *testing.T, text string) []byte {
	t.Helper()
	rules := round.DefaultRules()
	var s round.State
	started := false
	at := time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	clause := false
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "  "): // events: written anew
			continue
		case strings.HasPrefix(line, "#"):
			clause = clause || strings.Contains(line, "game.md")
		case strings.HasPrefix(line, "rules "):
			for _, rule := range strings.Fields(line)[1:] {
				if err := rules.Set(rule); err != nil {
					t.Fatalf("line %d: %v", n+1, err)
				}
			}
		case strings.HasPrefix(line, "{"):
			if !started {
				s, started = round.New(rules), true
			}
			at = at.Add(time.Second)
			in, err := round.ParseInput(withTime(line, at))
			if err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			at = in.At
			out.WriteString(line + "\n")
			var events []round.Event
			if s, events, err = s.Step(in, nil); err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			for i := range events {
				out.WriteString("  " + eventLine(t, &events[i]) + "\n")
			}
			continue
		}
		out.WriteString(line + "\n")
	}
	if !clause {
		t.Error("the transcript names no clause of game.md")
	}
	return out.Bytes()
}

func withTime(line string, at time.Time) []byte {
	if strings.Contains(line, `"at"`) {
		return []byte(line)
	}
	return fmt.Appendf(nil, `{"at":%q,%s`, at.Format(time.RFC3339), line[1:])
}

// eventLine is an event for a reader of the rules: without number and time,
// the full view's own marked, and of settled bets only those not simply lost.
func eventLine(t *testing.T, e *round.Event) string {
	t.Helper()
	if err := odds.Fill(e); err != nil {
		t.Fatal(err)
	}
	text := e.Text()
	text.Shoe = nil
	if e.Kind == round.RoundOpened {
		text.Bets = nil
	}
	if all, ok := text.Bets.(map[string]round.BetText); ok {
		maps.DeleteFunc(all, func(_ string, b round.BetText) bool { return b.Result == "lost" })
	}
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	line := string(b)
	if e.Seq == 0 {
		line += " (full view)"
	}
	return line
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// TestEveryRuleHasATranscript: a code or a setting that no transcript shows is
// a rule that nobody can read.
func TestEveryRuleHasATranscript(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, setting := range []string{"decks=6", "burn=none", "burn=fixed:", "burn=unchecked", "deal_order=pairs", "rounds_after_cut=1",
		"cut_cards=", "round_start=reader", "round_start=bets", "round_start=button", "round_start=boxes", "round_start=first_card",
		"reveal=on_signal", "reveal_order=player_first", "reveal_order=banker_first", "verdict=wait", "bets_offered=", "tie_main=lose",
		"commission_bp=", "insurance=off", "insurance_tie=lose", "insurance_ms=", "insurance_post=dealer", "placement=presence",
		"placement=rfid", "placement_settle_ms=", "place_wait_ms=", "draw_wait_ms=", "draw_gate=on", "card_gap_ms=", "resolve_ms="} {
		if !strings.Contains(all.String(), setting) {
			t.Errorf("%s is set in no transcript", setting)
		}
	}
	for _, code := range round.Codes() {
		if !strings.Contains(all.String(), `"alert.raised"`) || !strings.Contains(all.String(), fmt.Sprintf(`"code":%q`, code)) {
			t.Errorf("%v is raised in no transcript", code)
		}
		for _, setting := range code.Settings() {
			if !strings.Contains(all.String(), setting) {
				t.Errorf("%s is set in no transcript", setting)
			}
		}
	}
}
