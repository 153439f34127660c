package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/round"
	"shoed/scanner"
)

// shoed runs the program and returns what it wrote.
func shoed(t testing.TB, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), err
}

const angelData = "../../scanner/testdata/angel"

// captureRules are those under which the real capture holds its 16 rounds: it
// begins in mid-shoe, has a shoe without a cut card, and a start in mid-round.
const captureRules = "burn=unchecked,reader.gap=void,shoe.change_unproven=accept,round_start=reader"

// capturedRounds are the rounds that the capture's shoe itself reported.
func capturedRounds(t *testing.T) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(angelData, "angel_eye_rounds.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	outcome := map[string]string{"P": "player", "B": "banker", "T": "tie"}
	pairs := map[string]string{"0": "", "1": "player_pair", "2": "banker_pair", "3": "player_pair banker_pair"}
	var rounds []string
	suits := strings.NewReplacer("S", "s", "H", "h", "D", "d", "C", "c")
	for _, row := range rows[1:] {
		row[1], row[2] = suits.Replace(row[1]), suits.Replace(row[2])
		rounds = append(rounds, strings.Join([]string{row[1], row[2], row[3], row[4], outcome[row[5]], pairs[row[6]]}, "|"))
	}
	return rounds
}

// decidedRound is a round.decided event in the form of capturedRounds; "" for
// any other event.
func decidedRound(t testing.TB, line []byte) string {
	t.Helper()
	var e round.EventText
	if err := json.Unmarshal(line, &e); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if e.Ev != round.RoundDecided.String() {
		return ""
	}
	var pairs []string
	for _, tag := range e.Tags {
		if tag == "player_pair" || tag == "banker_pair" {
			pairs = append(pairs, tag)
		}
	}
	total := func(h *round.HandText) string { b, _ := json.Marshal(h.Total); return string(b) }
	return strings.Join([]string{strings.Join(e.Player.Cards, " "), strings.Join(e.Banker.Cards, " "),
		total(e.Player), total(e.Banker), e.Outcome, strings.Join(pairs, " ")}, "|")
}

func decidedRounds(t *testing.T, events string) []string {
	t.Helper()
	var rounds []string
	for line := range strings.Lines(events) {
		if r := decidedRound(t, []byte(line)); r != "" {
			rounds = append(rounds, r)
		}
	}
	return rounds
}

// TestCapture: the real capture, decoded and replayed, gives the rounds that
// its shoe reported, in order, and no other.
func TestCapture(t *testing.T) {
	inputs, counts, err := shoed(t, "", "decode", "--protocol", "angel", filepath.Join(angelData, "angel_eye_capture.hex"))
	if err != nil {
		t.Fatal(err)
	}
	var stats scanner.Stats
	if err := json.Unmarshal([]byte(counts), &stats); err != nil {
		t.Fatal(err)
	}
	if refused := stats.Refused.ByReason(); stats.Frames != 627 || refused[scanner.Garbage] != 1 || len(refused) != 1 {
		t.Errorf("counts %s: want 627 frames and the one run of power-up noise", counts)
	}
	events, _, err := shoed(t, inputs, "replay", "--rules", captureRules, "-")
	if err != nil {
		t.Fatal(err)
	}
	got, want := decidedRounds(t, events), capturedRounds(t)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rounds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	again, _, _ := shoed(t, inputs, "replay", "--rules", captureRules, "-")
	if again != events {
		t.Error("the same inputs gave other events")
	}
}

func TestReplayRefuses(t *testing.T) {
	good := `{"at":"2026-01-02T20:00:00Z","in":"tick"}` + "\n"
	for name, c := range map[string]struct{ in, rules, want string }{
		"bad JSON":           {good + `{"at":`, "", "standard input:2:"},
		"no object":          {`[1]`, "", "not a JSON object"},
		"unknown input":      {good + good + `{"at":"2026-01-02T20:00:00Z","in":"crad"}`, "", `standard input:3: field "in": "crad" is none of`},
		"unknown field":      {`{"at":"2026-01-02T20:00:00Z","in":"card","card":"8s","suit":"h"}`, "", `field "suit" is unknown for input "card"`},
		"impossible card":    {`{"at":"2026-01-02T20:00:00Z","in":"card","card":"1s"}`, "", `card "1s"`},
		"impossible place":   {`{"at":"2026-01-02T20:00:00Z","in":"card","card":"8s","to":"player","pos":4}`, "", "position 4"},
		"missing time":       {`{"in":"tick"}`, "", `field "at" is missing`},
		"two values":         {`{"at":"2026-01-02T20:00:00Z","in":"tick"} {}`, "", "more than one"},
		"unknown rule":       {good, "brun=none", `rule "brun" is unknown`},
		"impossible setting": {good, "deal.extra_card=void", "want one of default, next_round, burn, free_hand"},
		"impossible number":  {good, "decks=13", "from 1 to 12"},
		"line too long":      {`{"at":"` + strings.Repeat("x", maxLine) + `"}`, "", "standard input:1: token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := shoed(t, c.in, "replay", "--rules", c.rules, "-")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if _, _, err := shoed(t, "", "replay", "no-such-file"); err == nil {
		t.Error("a missing file was no error")
	}
	if _, _, err := shoed(t, "", "replay"); report(err, &bytes.Buffer{}) != 2 {
		t.Errorf("no file named: %v, want a usage error", err)
	}
}

// TestReplayViews: without --all nothing but public events.
func TestReplayViews(t *testing.T) {
	in := `{"at":"2026-01-02T20:00:00Z","in":"reader","what":"standby"}` + "\n"
	public, _, err := shoed(t, in, "replay", "-")
	if err != nil || public != "" {
		t.Errorf("public view %q, %v; a stand-by is nothing to the public", public, err)
	}
	full, _, err := shoed(t, in, "replay", "--all", "-")
	if err != nil || !strings.Contains(full, "reader stands by") {
		t.Errorf("full view %q, %v", full, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		in   string
		want string
	}{
		"bad hex":          {[]string{"decode", "-"}, "05 3\n", "line 1"},
		"two protocols":    {[]string{"decode", "--protocol", "angel", "--config", "x", "-"}, "", "give --protocol, or --config"},
		"device of none":   {[]string{"decode", "--device", "boxes", "-"}, "", "give --protocol, or --config"},
		"unknown protocol": {[]string{"decode", "--protocol", "angle", "-"}, "", "angel"},
		"no file":          {[]string{"decode", "no-such-file"}, "", "no-such-file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := shoed(t, c.in, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	out, counts, err := shoed(t, "# noise only\nff ff 05 31 44 00\n", "decode", "-")
	if err != nil || out != "" || !strings.Contains(counts, `"frames":0`) {
		t.Errorf("noise: %q %q %v; want no input, no frame, no error", out, counts, err)
	}
}
