package main

import (
	"strings"
	"testing"
)

// TestBarcodeReader: a table with a barcode shoe deals a round; lines that are no
// code are counted and dealt to nobody; a card scanned twice, or whose code is
// none, is the supervisor's.
func TestBarcodeReader(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "round_start=first_card", "shoe.change_unproven=accept", "card_gap_ms=1000")
	replaceIn(t, tb.config, "[reader]", "[reader]\nprotocol = 'barcode'")
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	if err := tb.answer("new_shoe"); err == nil {
		t.Error("a new shoe without a question")
	}
	tb.send([]byte("1090\r4x1\r"))
	eventually(t, "the first card", auditor.see(func(a *witness) bool { return a.state.Round != nil && len(a.state.Round.Player.Cards) == 1 }))
	tb.send([]byte("1090\r"))
	eventually(t, "the question", auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == "deal.double_card" }))
	if err := tb.answer("confirm"); err != nil { // it is its twin
		t.Fatal(err)
	}
	eventually(t, "both cards", auditor.see(func(a *witness) bool { return a.state.Round != nil && len(a.state.Round.Banker.Cards) == 1 }))
	eventually(t, "the refusal in the log", func() bool { return strings.Contains(tb.log.String(), "bad_length=1") })
	tb.send([]byte("4x10\r"))
	eventually(t, "the unread card", auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == "reader.unread" }))
}
