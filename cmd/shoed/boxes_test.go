package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
	"shoed/sim"
)

// tags is a file of codes with a tag for each card of a deck: 04 and the face.
func tags(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintln(&text, scanner.CodesHeader)
	for i := range round.Faces {
		fmt.Fprintf(&text, "040000%02X,%v\n", i, round.CardAt(i))
	}
	file := filepath.Join(t.TempDir(), "tags.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTagReaders: RFID readers see which card lies where, over a kill too. A card
// in a wrong box and one of another set pause the table, and readers that are away
// are an alert.
func TestTagReaders(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "shoe.change_unproven=accept", "placement=rfid", "placement_settle_ms=10", "insurance=off")
	layout, err := sim.OpenPair()
	if err != nil {
		t.Fatal(err)
	}
	defer layout.Close()
	port := filepath.Join(tb.dir, "layout")
	if err := os.Symlink(layout.Path, port); err != nil {
		t.Fatal(err)
	}
	tb.rewrite("[journal]", fmt.Sprintf("[boxes]\nprotocol = 'rfid'\ndevice = %q\ncodes_file = %q\n[journal]", port, tags(t)))
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	put := func(box, card string) {
		t.Helper()
		uid := "-"
		if card != "" {
			face, err := round.ParseCard(card)
			if err != nil {
				t.Fatal(err)
			}
			for i := range round.Faces {
				if round.CardAt(i) == face {
					uid = fmt.Sprintf("040000%02X", i)
				}
			}
		}
		if _, err := fmt.Fprintf(layout.Shoe, "%s %s\r\n", box, uid); err != nil {
			t.Fatal(err)
		}
	}
	paused := func(code string) {
		t.Helper()
		eventually(t, "paused by "+code, auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == code }))
	}
	goesOn := func() {
		t.Helper()
		eventually(t, "it goes on", auditor.see(func(a *witness) bool { return a.state.Paused == nil }))
	}
	stands := func(code string, want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s stands: %v", code, want), auditor.see(func(a *witness) bool {
			stands := false
			for _, i := range a.alerts.Items {
				stands = stands || i.Code == code && i.State != "returned"
			}
			return stands == want
		}))
	}
	dealt := []struct{ box, card string }{{"P1", "9s"}, {"B1", "2h"}, {"P2", "Kd"}, {"B2", "3c"}}
	for i, d := range dealt[:2] {
		tb.send(card(t, byte('1'+i), round.To(1+i%2), 1, d.card))
		eventually(t, "the card", auditor.see(func(a *witness) bool { return a.state.Shoe != nil && int(a.state.Shoe.CardsOut) == i+1 }))
		put(d.box, d.card)
	}
	put("B2", "2h") // the reader of B2 sees the card of B1 too: it stays where it was
	put("B1", "")   // now it lies in B2
	paused("deal.wrong_box")
	put("B2", "")
	put("B1", "2h")
	goesOn()

	tb.kill()
	tb.listening()
	paused("power.mid_round")
	if err := tb.answer("confirm"); err != nil {
		t.Fatal(err)
	}
	goesOn()
	if _, err := layout.Shoe.WriteString("P2 04FFFFFF\r\n"); err != nil {
		t.Fatal(err)
	}
	paused("shoe.foreign_card")
	if err := tb.answer("void"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "void", auditor.see(func(a *witness) bool { return a.state.Round != nil && a.state.Round.Void }))

	os.Remove(port)
	layout.Close()
	stands("sensors.lost", true)
	if layout, err = sim.OpenPair(); err != nil {
		t.Fatal(err)
	}
	defer layout.Close()
	if err := os.Symlink(layout.Path, port); err != nil {
		t.Fatal(err)
	}
	stands("sensors.lost", false)
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
	eventually(t, "stopped", auditor.see(func(a *witness) bool { return a.status.State == mqtt.Stopped }))
}
