package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/round"
	"shoed/scanner"
)

// TestDescribedReader: a reader that only the configuration knows deals a round,
// over a kill; a frame with a wrong checksum is a card that left the shoe unread.
func TestDescribedReader(t *testing.T) {
	var table strings.Builder
	fmt.Fprintln(&table, scanner.CodesHeader)
	codes := map[string]int{}
	for i := range round.Faces {
		codes[round.CardAt(i).String()] = i
		fmt.Fprintf(&table, "'C%03d',%v\n", i, round.CardAt(i))
	}
	file := filepath.Join(t.TempDir(), "codes.csv")
	if err := os.WriteFile(file, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	frame := func(card string) []byte { // 02, a letter, the code, 03, XOR of all after 02 as two hex digits
		b := fmt.Appendf(nil, "K-C%03d\x03", codes[card])
		sum := byte(0)
		for _, c := range b {
			sum ^= c
		}
		return fmt.Appendf(nil, "\x02%s%02X", b, sum)
	}

	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "round_start=first_card", "shoe.change_unproven=accept")
	tb.rewrite("[reader]", fmt.Sprintf(`[reader]
protocol = "generic"
framing = "stx_etx"
payload_bytes = 6
checksum = "xor"
checksum_form = "hex"
checksum_place = "after_end"
checksum_covers = "payload end"
code_offset = 2
codes_file = %q`, file))
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	player := func(cards ...string) {
		t.Helper()
		eventually(t, fmt.Sprint("Player has ", cards), auditor.see(func(a *witness) bool {
			return a.state.Round != nil && fmt.Sprint(a.state.Round.Player.Cards) == fmt.Sprint(cards)
		}))
	}
	paused := func(code string) {
		t.Helper()
		eventually(t, "paused by "+code, auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == code }))
	}
	tb.send(frame("9s"))
	player("9s")
	tb.kill()
	tb.listening()
	paused("power.mid_round")
	if err := tb.answer("confirm"); err != nil {
		t.Fatal(err)
	}
	tb.send(append([]byte("?"), frame("2h")...))
	bad := frame("Kd")
	bad[4] ^= 1
	tb.send(bad)
	paused("reader.unread")
	tb.send(frame("Kd")) // dealt again, it is proposed
	eventually(t, "taken", func() bool { return tb.answer("confirm") == nil })
	player("9s", "Kd")
	tb.send(frame("3c"))
	eventually(t, "the round", auditor.see(func(a *witness) bool { return a.state.Last != nil && *a.state.Last.Outcome == "player" }))
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}
