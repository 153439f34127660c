package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoed/round"
	"shoed/scanner"
)

// TestRestart: a restart waits for the change of the shoe, or comes now and
// resumes the round.
func TestRestart(t *testing.T) {
	systemd := pretendSystemd(t, filepath.Join(t.TempDir(), "notify"))
	tb := newTable(t, "mqtt://127.0.0.1:1")
	tb.env = systemd.env()
	tb.plug()
	tb.running()
	startShoe(t, tb)
	systemd.until("round 1 dealing")

	tb.restart("at the change of the shoe")
	systemd.until("round 1 dealing; reader up; broker away; 0 alerts; restarts at the change of the shoe")
	begun := time.Now()
	tb.restart("now", "--now")
	tb.endsWell()
	tb.running()
	systemd.until("READY=1")
	systemd.until("shoe 1 round 1 paused")
	took := time.Since(begun)
	t.Logf("the round is back after %v, without what systemd waits", took)
	if took > 2*time.Second {
		t.Error("that is too long")
	}
	tb.confirmAll()
	systemd.until("shoe 1 round 1 dealing")

	tb.restart("at the change of the shoe")
	systemd.until("restarts at the change of the shoe")
	lastRound(t, tb)
	tb.endsWell()
	tb.running()
	systemd.until("READY=1")
	tb.restart("now")
	tb.endsWell()
}

// lastRound ends the round that startShoe began, and the shoe with it.
func lastRound(t testing.TB, tb *table) {
	t.Helper()
	cut, err := scanner.AngelTelegram('4', round.Input{Kind: round.InCut})
	if err != nil {
		t.Fatal(err)
	}
	tb.send(cut)
	tb.send(card(t, '5', round.ToBanker, 1, "3c"))
	tb.send(card(t, '6', round.ToPlayer, 2, "6h"))
	tb.send(card(t, '7', round.ToBanker, 2, "4d"))
}

// restart is shoed restart, accepted.
func (tb *table) restart(want string, more ...string) {
	tb.t.Helper()
	out, errs, err := shoedCommand(append([]string{"restart", "--config", tb.config}, more...)...)
	if err != nil || !strings.HasPrefix(out, "accepted: ") || !strings.Contains(out, want) {
		tb.t.Fatalf("restart %s: %v %s%s", more, err, out, errs)
	}
}

// endsWell waits for the end that systemd answers with a start.
func (tb *table) endsWell() {
	tb.t.Helper()
	select {
	case err := <-tb.exited:
		if err != nil {
			tb.t.Errorf("it ended with %v\n%s", err, tb.log)
		}
	case <-time.After(patience):
		tb.t.Fatalf("still running\n%s", tb.log)
	}
	tb.cmd = nil
}

// TestRestartRefused: nothing ends a table that would not come back.
func TestRestartRefused(t *testing.T) {
	tb := newTable(t, "mqtt://127.0.0.1:1")
	tb.running()
	refused := func(want string) {
		t.Helper()
		_, _, err := shoedCommand("restart", "--now", "--config", tb.config, "--socket", tb.socket())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	refused("not run under systemd")
	if err := os.WriteFile(tb.config, []byte("[tabel]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("tabel")
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(tb.config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("no shoed answers")
}
