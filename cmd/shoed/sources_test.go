package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
	"shoed/sim"
)

// TestTwoReaders: the cards of the reader in use are dealt; one of the other is an
// alert and counts for nothing; a spare takes over in mid-round, over a kill too.
func TestTwoReaders(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "round_start=first_card", "shoe.change_unproven=accept")
	spare, err := sim.OpenPair()
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	text, err := os.ReadFile(tb.config)
	if err != nil {
		t.Fatal(err)
	}
	two := strings.Replace(string(text), "[reader]\n", "[[reader]]\nname = 'left'\nprotocol = 'barcode'\n", 1) +
		fmt.Sprintf("[[reader]]\nname = 'right'\nprotocol = 'angel'\ndevice = %q\n", spare.Path)
	if err := os.WriteFile(tb.config, []byte(two), 0o600); err != nil {
		t.Fatal(err)
	}
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	cards := func(player, banker int) func() bool {
		return auditor.see(func(a *witness) bool {
			return a.state.Round != nil && len(a.state.Round.Player.Cards) == player && len(a.state.Round.Banker.Cards) == banker
		})
	}
	stands := func(code string) func() bool {
		return auditor.see(func(a *witness) bool {
			for _, i := range a.alerts.Items {
				if i.Code == code {
					return true
				}
			}
			return code == ""
		})
	}
	telegram := func(seq byte, face string, to round.To, pos uint8) {
		t.Helper()
		c, err := round.ParseCard(face)
		if err != nil {
			t.Fatal(err)
		}
		b, err := scanner.AngelTelegram(seq, round.Input{Kind: round.InCard, Card: c, To: to, Pos: pos})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spare.Shoe.Write(b); err != nil {
			t.Fatal(err)
		}
	}

	tb.send([]byte("1090\r")) // the nine of spades
	eventually(t, "the first card", cards(1, 0))
	telegram('1', "2h", round.ToPlayer, 1)
	eventually(t, "the other reader's card", stands("reader.inactive"))
	if !cards(1, 0)() {
		t.Error("a card of the reader that is not in use was dealt")
	}
	if err := tb.answer("swap_reader", "device=middle"); err == nil || !strings.Contains(err.Error(), `["right"]`) {
		t.Errorf("a reader that there is not: %v", err)
	}
	if err := tb.answer("swap_reader", "device=right"); err != nil {
		t.Fatal(err)
	}
	if err := tb.answer("confirm"); err != nil {
		t.Fatal(err)
	}
	telegram('2', "3h", round.ToBanker, 1)
	eventually(t, "the spare's card", cards(1, 1))
	tb.kill()
	tb.listening()
	eventually(t, "the question after the kill", stands("power.mid_round"))
	if err := tb.answer("confirm"); err != nil {
		t.Fatal(err)
	}
	telegram('3', "Td", round.ToPlayer, 2)
	eventually(t, "the next card", cards(2, 1))
	tb.send([]byte("1090\r"))
	eventually(t, "a card of the first, which is not in use now", stands("reader.inactive"))
	eventually(t, "health of both", auditor.see(func(a *witness) bool {
		return reflect.DeepEqual(a.state.Devices, mqtt.Devices{Reader: "up", Active: "right"})
	}))
}

// TestOtherReader: another reader is configured, in mid-round too, and then a third
// under another name: the table starts, with what it knows, and the new one's cards
// are dealt. What the old one has sent is not taken for the new one's.
func TestOtherReader(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "round_start=first_card", "shoe.change_unproven=accept")
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	dealt := func(n int) func() bool {
		return auditor.see(func(a *witness) bool { return a.state.Shoe != nil && int(a.state.Shoe.CardsOut) == n })
	}
	eight := card(t, '1', round.ToPlayer, 1, "8s")
	tb.send(eight)
	eventually(t, "the first card", dealt(1))
	tb.send(eight[:3])
	for i, other := range []string{"protocol = 'barcode'", "protocol = 'barcode'\nname = 'other'"} {
		tb.kill()
		tb.rewrite("[reader]", "[reader]\n"+other)
		tb.listening()
		eventually(t, "its line", func() bool { return strings.Contains(tb.log.String(), "code=device.up") })
		eventually(t, "the question", auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == "power.mid_round" }))
		if err := tb.answer("confirm"); err != nil {
			t.Fatal(err)
		}
		tb.send([]byte("\r1090\r")) // what the old one had begun ends, then a nine of spades
		eventually(t, "its card", dealt(2+i))
		tb.rewrite("[reader]\n"+other, "[reader]")
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}

// TestSourcesRefuse: what a protocol cannot be read from, and what nothing at the
// table tells, is refused before anything is opened, and by a reload too.
func TestSourcesRefuse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[reader]\nprotocol = 'wiegand'\nlines = []\n", "wiegand is read from wires: give such as device"},
		{"[reader]\nprotocol = 'wiegand'\ndevice = 'gpio:shoe'\nlines = ['1']\n", "wiegand has 2 wires, and lines names 1"},
		{"[reader]\nprotocol = 'parallel8'\ndevice = 'gpio:shoe'\nlines = ['1', '2']\n", "parallel8 has 9 wires, and lines names 2"},
		{"[reader]\nprotocol = 'angel'\ndevice = 'gpio:shoe'\n", "angel is read from a serial line"},
		{"[reader]\nprotocol = 'presence'\n", "reader protocol \"presence\" is unknown: use one of angel, barcode, generic, parallel8, wiegand"},
		{"[reader]\nprotocol = 'angel'\ncodes = ['1A=As']\n", "a angel reader names the cards itself"},
		{"[reader]\nprotocol = 'generic'\npayload_bytes = 4\ncodes = ['1A=As']\n", "generic: no code means 2s 3s"},
		{"[reader]\nprotocol = 'generic'\npayload_bytes = 4\ncodes_file = '/none'\n", "codes_file: open /none"},
		{"[boxes]\ndevice = '/dev/ttyUSB0'\n", "presence is read from wires"},
		{"[boxes]\ndevice = 'gpio:layout'\nlines = ['P1=1', 'B1=2']\n", "presence has 6 wires, and lines names 2"},
		{"[panel]\ndevice = 'gpio:panel'\n", "panel has 1 wires, and lines names 0"},
		{"rules = ['round_start=button']\n[panel]\ndevice = 'gpio:panel'\nlines = ['call=1']\n", "round_start=button, but there is none"},
		{"rules = ['round_start=bets']\n", "round_start=bets, but nothing tells"},
		{"rules = ['round_start=boxes']\n", "round_start=boxes, but nothing sees"},
		{"rules = ['placement=presence']\n", "placement=presence, but no such sensors"},
		{"rules = ['placement=rfid']\n[boxes]\ndevice = 'gpio:layout'\n", "placement=rfid, but no such sensors"},
	} {
		out, _, err := shoedCommand("check", "--config", secretFile(t, c.text), "--listen", "0")
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v\n%s\nwant %s", c.text, err, out, c.want)
		}
	}
}
