package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
	"shoed/sim"
)

// TestCaptureOnTheLine: the real capture, written into a pty or sent by a device
// server that shoed run reads, with a real broker: a subscriber sees the shoe's
// rounds, in order, and no other.
func TestCaptureOnTheLine(t *testing.T) {
	t.Run("serial port", func(t *testing.T) { testCaptureOnTheLine(t, (*table).plug) })
	t.Run("device server", func(t *testing.T) { testCaptureOnTheLine(t, (*table).serveLine) })
}

func testCaptureOnTheLine(t *testing.T, connect func(*table)) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url(), strings.Split(captureRules, ",")...)
	connect(tb)
	tb.running()
	tb.play(func([]byte) {})
	checkCapturedRounds(t, tb, auditor)
}

// play sends the real capture, calling sent after each part, until all of it is
// in the journal.
func (tb *table) play(sent func(part []byte)) {
	tb.t.Helper()
	f, err := os.Open(filepath.Join(angelData, "angel_eye_capture.hex"))
	if err != nil {
		tb.t.Fatal(err)
	}
	defer f.Close()
	n := 0
	err = scanner.ParseCapture(f, func(_ int64, _ int, b []byte) error {
		n += len(b)
		tb.send(b)
		sent(b)
		return nil
	})
	if err != nil {
		tb.t.Fatal(err)
	}
	eventually(tb.t, "the capture's last byte in the journal", func() bool { return tb.taken() == n })
}

// checkCapturedRounds stops the table and compares what the auditor got with the
// rounds of the real capture.
func checkCapturedRounds(t *testing.T, tb *table, auditor *witness) {
	t.Helper()
	if err := tb.stop(); err != nil {
		t.Fatal(err)
	}
	last := tb.lastSeq()
	eventually(t, "the last event", func() bool { return auditor.last() == last })
	checkStream(t, auditor, last)
	if got, want := auditor.decided(t), capturedRounds(t); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rounds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	eventually(t, "status stopped", auditor.see(func(a *witness) bool { return a.status.State == mqtt.Stopped }))
	tb.verify()
}

// card is the telegram of a drawn card.
func card(t testing.TB, seq byte, to round.To, pos uint8, c string) []byte {
	t.Helper()
	face, err := round.ParseCard(c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := scanner.AngelTelegram(seq, round.Input{Kind: round.InCard, To: to, Pos: pos, Card: face})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startShoe sends a first card with its one burned card, and Player 1.
func startShoe(t testing.TB, tb *table) {
	t.Helper()
	tb.send(card(t, '1', round.ToFirst, 0, "Ad"))
	tb.send(card(t, '2', round.ToBurn, 0, "Kc"))
	eventually(t, "the shoe in play", func() bool { return tb.lastSeq() >= 5 })
	tb.send(card(t, '3', round.ToPlayer, 1, "2s"))
}

// TestUnplugged: without a reader shoed stays up and says so; when it comes
// back an open round waits to be confirmed.
func TestUnplugged(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url())
	tb.running()
	eventually(t, "reader down in state", auditor.see(func(a *witness) bool { return a.state.Devices.Reader == "down" }))
	tb.plug()
	eventually(t, "reader up in state", auditor.see(func(a *witness) bool { return a.state.Devices.Reader == "up" }))
	startShoe(t, tb)
	eventually(t, "round 1 open", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhaseDealing }))
	tb.unplug()
	eventually(t, "reader.lost", auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == "reader.lost" }))
	tb.plug()
	eventually(t, "the alert reader.gap", auditor.see(func(a *witness) bool {
		return a.state.Devices.Reader == "up" && a.state.Phase == mqtt.PhasePaused
	}))
	if err := tb.answer("confirm"); err != nil {
		t.Fatal(err)
	}
	tb.send(card(t, '4', round.ToBanker, 1, "7c"))
	eventually(t, "the next card", auditor.see(func(a *witness) bool {
		return a.state.Round != nil && len(a.state.Round.Banker.Cards) == 1
	}))
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
	for _, want := range []string{"code=device.down", "code=device.up", tb.port()} {
		if !strings.Contains(tb.log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, tb.log)
		}
	}
}

// TestBrokerAway: without a broker the table deals and keeps; what it kept is
// sent, marked, when the broker comes.
func TestBrokerAway(t *testing.T) {
	broker := startMosquitto(t)
	broker.kill()
	tb := newTable(t, broker.url())
	tb.plug()
	tb.running()
	startShoe(t, tb)
	eventually(t, "the card in the journal", func() bool { return tb.lastSeq() >= 7 })
	broker.start()
	auditor := audit(t, broker.url())
	last := tb.lastSeq()
	eventually(t, "every event", func() bool { return auditor.last() == last })
	checkStream(t, auditor, last)
	auditor.mu.Lock()
	defer auditor.mu.Unlock()
	for _, e := range auditor.events {
		if !e.Delayed {
			t.Errorf("event %d was kept, yet is not marked delayed", e.Seq)
		}
	}
}

// TestBrokerStops: a broker that no longer answers is noticed, and nothing is
// lost when it does again.
func TestBrokerStops(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url())
	tb.plug()
	tb.running()
	eventually(t, "online", auditor.see(func(a *witness) bool { return a.status.State == mqtt.Online }))
	broker.cmd.Process.Signal(syscall.SIGSTOP)
	startShoe(t, tb)
	eventually(t, "the log to say so", func() bool { return strings.Contains(tb.log.String(), "code=broker_lost") })
	broker.cmd.Process.Signal(syscall.SIGCONT)
	last := tb.lastSeq()
	eventually(t, "every event", func() bool { return auditor.last() == last })
	checkStream(t, auditor, last)
}

// TestNoise: noise, truncated telegrams and wrong checksums are refused,
// counted and said; the cards between them are dealt.
func TestNoise(t *testing.T) {
	tb := newTable(t, "")
	tb.plug()
	tb.running()
	noise, _ := hex.DecodeString("fffffffffcc5")
	startShoe(t, tb)
	tb.send(noise)
	tb.send(card(t, '4', round.ToBanker, 1, "7c")[:5])
	bad := card(t, '4', round.ToBanker, 1, "7c")
	bad[4] ^= 1
	tb.send(bad)
	tb.send(card(t, '4', round.ToBanker, 1, "7c"))
	eventually(t, "the card after the noise", func() bool {
		out, _, err := shoedCommand("journal", "export", tb.file())
		return err == nil && strings.Contains(out, `"hand":"banker","pos":1,"card":"7c"`)
	})
	eventually(t, "the log to count what was refused", func() bool { return strings.Contains(tb.log.String(), "code=device.refused") })
	if log := tb.log.String(); regexp.MustCompile(`\b(7c|2s|Kc)\b`).MatchString(log) {
		t.Errorf("a card is in the log:\n%s", log)
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}

// TestFullDisk: while the disk is full nothing is published and nothing lost;
// the table says so and goes on when there is room.
func TestFullDisk(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url())
	disk := tb.smallDisk()
	fill, seq := tb.heldInRound(auditor, disk)
	before := auditor.last()
	tb.send(card(t, seq, round.ToBanker, 1, "7c"))
	if err := tb.answer("confirm"); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("an answer while the journal cannot be written: %v, want busy", err)
	}
	if got := auditor.last(); got != before {
		t.Errorf("event %d was published while nothing could be kept", got)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the card that was held", auditor.see(func(a *witness) bool {
		return a.state.Round != nil && len(a.state.Round.Banker.Cards) == 1
	}))
	for _, kind := range []string{"alert.raised", "alert.returned"} {
		eventually(t, kind+" of storage.lost", auditor.see(func(a *witness) bool {
			return slices.ContainsFunc(a.lines, func(line []byte) bool {
				return bytes.Contains(line, []byte(kind)) && bytes.Contains(line, []byte("storage.lost"))
			})
		}))
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(tb.log.String(), "code=storage.restored") {
		t.Errorf("the log does not say that it goes on:\n%s", tb.log)
	}
	tb.verify()
}

// TestOverflow: what a reader sends while the disk is full is kept in bounded
// memory. What did not fit is reader.gap, never silence.
func TestOverflow(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url())
	replaceIn(t, tb.config, "[reader]", "[reader]\nbuffer_bytes = 4096")
	disk := tb.smallDisk()
	fill, seq := tb.heldInRound(auditor, disk)
	for range 4500 { // 31 KB: more than the pty and the buffer hold together
		seq = tb.standby(seq)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	eventually(t, "reader.gap", auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == "reader.gap" }))
	eventually(t, "the log to say what was lost", func() bool { return strings.Contains(tb.log.String(), "code=device.overflow") })
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}

// heldInRound starts a round and fills the disk until the table holds. It gives
// the file that fills the disk and the sequence of the next telegram.
func (tb *table) heldInRound(auditor *witness, disk string) (fill string, seq byte) {
	tb.t.Helper()
	tb.plug()
	tb.running()
	startShoe(tb.t, tb)
	eventually(tb.t, "round 1 open", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhaseDealing }))
	fill = fillDisk(tb.t, disk)
	return fill, tb.standbyUntilHeld('4')
}

// smallDisk puts the journal on a disk of its own, of 16 MB.
func (tb *table) smallDisk() string {
	tb.t.Helper()
	disk := filepath.Join(tb.dir, "journal")
	if err := os.MkdirAll(disk, 0o750); err != nil {
		tb.t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk).CombinedOutput(); err != nil {
		tb.t.Fatalf("mount a small disk (needs root): %v: %s", err, out)
	}
	tb.t.Cleanup(func() { tb.kill(); syscall.Unmount(disk, 0) })
	return disk
}

// fillDisk takes every last byte, in a file.
func fillDisk(t testing.TB, disk string) string {
	t.Helper()
	fill := filepath.Join(disk, "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 512))
	}
	return fill
}

// standbyUntilHeld uses up what room the journal's own files still have.
func (tb *table) standbyUntilHeld(seq byte) byte {
	tb.t.Helper()
	eventually(tb.t, "the log to say that the table holds", func() bool {
		if strings.Contains(tb.log.String(), "code=storage.lost") {
			return true
		}
		seq = tb.standby(seq)
		return false
	})
	return seq
}

// standby sends a telegram that means nothing.
func (tb *table) standby(seq byte) (next byte) {
	tb.t.Helper()
	b, err := scanner.AngelTelegram(seq, round.Input{Kind: round.InReader, Reader: round.ReaderStandby})
	if err != nil {
		tb.t.Fatal(err)
	}
	tb.send(b)
	return scanner.AngelNext(seq)
}

// TestRefusesToStart: what is wrong before the first card is said once,
// clearly, with exit code 1.
func TestRefusesToStart(t *testing.T) {
	fails := func(t *testing.T, tb *table, want ...string) {
		t.Helper()
		tb.start()
		var err error
		select {
		case err = <-tb.exited:
			tb.exited <- err
		case <-time.After(patience):
			t.Fatalf("it started\n%s", tb.log)
		}
		if err == nil || err.Error() != "exit status 1" {
			t.Errorf("ended with %v, want exit status 1", err)
		}
		for _, w := range want {
			if !strings.Contains(tb.log.String(), w) {
				t.Errorf("it does not say %q:\n%s", w, tb.log)
			}
		}
	}
	t.Run("typo", func(t *testing.T) {
		tb := newTable(t, "")
		appendTo(t, tb.config, "\n[raeder]\nname = \"x\"\n")
		fails(t, tb, tb.config+":", "raeder", "reader")
	})
	t.Run("rule", func(t *testing.T) {
		fails(t, newTable(t, "", "decks=8", "brun=none"), "shoed.toml:1:", `rule "brun" is unknown`)
	})
	t.Run("journal directory", func(t *testing.T) {
		if _, _, err := shoedCommand("journal", "verify", filepath.Join(t.TempDir(), "none.db")); err == nil || !strings.Contains(err.Error(), "there is none") {
			t.Errorf("verify of no journal: %v", err)
		}
		tb := newTable(t, "")
		if err := os.WriteFile(filepath.Join(tb.dir, "journal"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, tb, "journal directory", tb.dir)
	})
	t.Run("table's key", func(t *testing.T) {
		tb := newTable(t, "")
		if err := os.Mkdir(filepath.Join(tb.dir, "journal"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tb.dir, "journal", keyFile), []byte("-"), 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, tb, "the table's key", keyFile, "no PEM", "move it away")
	})
	t.Run("unknown command", func(t *testing.T) {
		if _, _, err := shoedCommand("frobnicate"); report(err, &bytes.Buffer{}) != 2 {
			t.Errorf("%v: want a usage error", err)
		}
	})
	t.Run("address taken", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		tb := newTable(t, "")
		replaceIn(t, tb.config, `listen = "127.0.0.1:0"`, fmt.Sprintf("listen = %q", l.Addr()))
		fails(t, tb, "address already in use", l.Addr().String())
	})
	t.Run("journal taken", func(t *testing.T) {
		first := newTable(t, "")
		first.plug()
		first.running()
		second := newTable(t, "")
		replaceIn(t, second.config, filepath.Join(second.dir, "journal"), filepath.Join(first.dir, "journal"))
		fails(t, second, "journal")
	})
	t.Run("journal damaged", func(t *testing.T) {
		tb := newTable(t, "")
		tb.plug()
		tb.running()
		startShoe(t, tb)
		eventually(t, "the card in the journal", func() bool { return tb.lastSeq() >= 7 })
		if err := tb.stop(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(tb.file())
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.ReplaceAll(b, []byte("round.opened"), []byte("round.opener"))
		if err := os.WriteFile(tb.file(), b, 0o640); err != nil {
			t.Fatal(err)
		}
		fails(t, tb, "record", "journal verify")
		if _, _, err := shoedCommand("journal", "verify", tb.file()); err == nil {
			t.Error("journal verify finds nothing")
		}
	})
}

// TestPortProblems: a taken port and a missing permission are said with what
// to do, and the table stays up.
func TestPortProblems(t *testing.T) {
	first := newTable(t, "")
	first.plug()
	first.running()
	eventually(t, "the port in use", func() bool { return strings.Contains(first.log.String(), "code=device.up") })
	second := newTable(t, "")
	if err := os.Symlink(first.line.Path, second.port()); err != nil {
		t.Fatal(err)
	}
	second.running()
	eventually(t, "the log to say who holds the port", func() bool {
		log := second.log.String()
		return strings.Contains(log, "code=device.down") && strings.Contains(log, "in use")
	})
	if err := second.stop(); err != nil {
		t.Error(err)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func replaceIn(t testing.TB, path, old, now string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(old)) {
		t.Fatalf("%s: no %q", path, old)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte(old), []byte(now)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDemo: what a stranger runs first.
func TestDemo(t *testing.T) {
	out, errs, err := shoedCommand("demo", "--rounds", "20", "--speed", "200", "--seed", "7", "--mqtt", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var events int
	if _, err := fmt.Sscanf(lines[len(lines)-1], "20 rounds, %d events, 0 lost", &events); err != nil || events < 100 {
		t.Errorf("last line %q", lines[len(lines)-1])
	}
	if decided := strings.Count(out, "  Player "); decided != 20 {
		t.Errorf("%d lines of rounds, want 20", decided)
	}
	dealer, err := sim.New(sim.Options{Seed: 7, Sleep: sim.NoSleep})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = dealer.Play(context.Background(), &bytes.Buffer{}, 20, func(d sim.Dealt) {
		n++
		if want := fmt.Sprintf("demo-S%06d-R%03d  Player", d.Shoe, d.Round); !strings.Contains(lines[n], want) || !strings.Contains(lines[n], d.Outcome.String()) {
			t.Errorf("line %q, dealt %+v", lines[n], d)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDemoStopped: Ctrl-C ends it with its summary and exit code 0. It uses the
// broker that is there.
func TestDemoStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &lockedBuffer{}
	broker := startMosquitto(t)
	auditor := auditTable(t, broker.url(), "house", "demo")
	done := task(func() error {
		return run(ctx, []string{"demo", "--speed", "200", "--mqtt", broker.addr()}, nil, out, out)
	})
	eventually(t, "three rounds", func() bool { return strings.Count(out.String(), "  Player ") >= 3 })
	eventually(t, "events at another consumer", func() bool { return auditor.last() > 0 })
	cancel()
	select {
	case err := <-done:
		if err != nil || !strings.Contains(out.String(), " 0 lost") {
			t.Errorf("%v\n%s", err, out)
		}
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
}
