package main

import (
	"io"
	"strings"
	"testing"

	"shoed/round"
	"shoed/scanner"
)

// TestDrawGate: by rule the reader is locked while no card is due, and told again
// when its line comes back. That it then says to be locked is nobody's alarm.
func TestDrawGate(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "shoe.change_unproven=accept", "verdict=wait", "draw_gate=on")
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	told := func(what, want string) {
		t.Helper()
		got := make([]byte, 10)
		if _, err := io.ReadFull(tb.line.Shoe, got); err != nil || !strings.HasPrefix(string(got), "\x02OPLK"+want) {
			t.Fatalf("%s: the reader is told %q, %v, want LK %s", what, got, err, want)
		}
	}
	says := func(seq byte, in round.Input) {
		t.Helper()
		b, err := scanner.AngelTelegram(seq, in)
		if err != nil {
			t.Fatal(err)
		}
		tb.send(b)
	}
	const unlock, lock = "01", "02"
	told("at the start", unlock)
	for i, c := range []string{"9s", "2h", "Kd", "3c"} {
		tb.send(card(t, byte('1'+i), round.To(1+i%2), uint8(1+i/2), c))
	}
	told("after the last card", lock)
	tb.unplug()
	tb.plug()
	told("after its line was lost, a question being open", unlock)
	if err := tb.answer("confirm"); err != nil {
		t.Fatal(err)
	}
	told("after the answer", lock)
	says('5', round.Input{Kind: round.InLock, On: true})
	says('6', round.Input{Kind: round.InVerdict, Verdict: round.Verdict{Outcome: round.PlayerWins}})
	eventually(t, "the round", auditor.see(func(a *witness) bool { return a.state.Last != nil }))
	told("after the round", unlock)
	says('7', round.Input{Kind: round.InLock})
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	auditor.see(func(a *witness) bool {
		for _, e := range a.events {
			if e.Code == "reader.locked" {
				t.Error("its own lock is an alert")
			}
		}
		return true
	})()
	tb.verify()
}

// TestDrawGateUnable: a reader that cannot be locked is refused with the rule.
func TestDrawGateUnable(t *testing.T) {
	_, _, err := shoedCommand("run", "--config", secretFile(t, "rules = ['draw_gate=on', 'round_start=first_card']\n[reader]\nprotocol = 'barcode'\n"))
	if err == nil || !strings.Contains(err.Error(), "draw_gate=on, but a barcode reader takes no orders") {
		t.Error(err)
	}
}
