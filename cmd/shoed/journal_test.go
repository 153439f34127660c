package main

import (
	"strings"
	"testing"

	"shoed/round"
)

// TestJournalKeepsSecrets: show and export leave out faces that the table has
// not shown, in inputs and in raw bytes, and the export of a finished shoe
// replays to the same events.
func TestJournalKeepsSecrets(t *testing.T) {
	tb := newTable(t, "", "reveal=on_signal")
	tb.plug()
	tb.running()
	tb.send(append(append(card(t, '1', round.ToFirst, 0, "Ad"), card(t, '2', round.ToBurn, 0, "Kc")...), card(t, '3', round.ToPlayer, 1, "2s")...))
	eventually(t, "the card", func() bool { return tb.lastSeq() >= 7 })
	for _, sub := range []string{"show", "export"} {
		out, _, err := shoedCommand("journal", sub, tb.file())
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"Kc", "2s", "ad 03", "b2 03"} {
			if strings.Contains(out, secret) {
				t.Errorf("journal %s gives away %s:\n%s", sub, secret, out)
			}
		}
		if !strings.Contains(out, "Ad") {
			t.Errorf("journal %s hides the first card, which was shown:\n%s", sub, out)
		}
	}
	if strings.Contains(tb.log.String(), "2s") {
		t.Errorf("the log gives a card away:\n%s", tb.log)
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
}

// TestExportReplays: the inputs in an export give its events again.
func TestExportReplays(t *testing.T) {
	tb := newTable(t, "")
	tb.plug()
	tb.running()
	startShoe(t, tb)
	eventually(t, "the card", func() bool { return tb.lastSeq() >= 7 })
	tb.send(card(t, '4', round.ToBanker, 1, "7c"))
	tb.send(card(t, '5', round.ToPlayer, 2, "7d"))
	tb.send(card(t, '6', round.ToBanker, 2, "2d"))
	eventually(t, "the outcome", func() bool { return tb.lastSeq() >= 12 })
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	out, _, err := shoedCommand("journal", "export", tb.file())
	if err != nil {
		t.Fatal(err)
	}
	var inputs, events []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"in":`) {
			inputs = append(inputs, line)
		} else {
			events = append(events, line)
		}
	}
	got, _, err := shoed(t, strings.Join(inputs, ""), "replay", "--rules", "round_start=reader", "--all", "-") // no offers here, so no edges
	if err != nil || got != strings.Join(events, "") {
		t.Errorf("%v: replayed\n%s\nexported\n%s", err, got, strings.Join(events, ""))
	}
}
