package main

import (
	"flag"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"shoed/mqtt"
	"shoed/round"
)

var traced = flag.Bool("traced", false, "run the tests of a slow and of a read-only disk, which need strace")

// TestSlowDisk: a disk that takes a tenth of a second for each sync loses nothing
// and invents nothing: the real capture comes out as from a fast one.
func TestSlowDisk(t *testing.T) {
	if !*traced {
		t.Skip("make disk-test runs it")
	}
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url(), strings.Split(captureRules, ",")...)
	tb.under = []string{"-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_enter=100ms"}
	tb.plug()
	tb.running()
	tb.play(func([]byte) {})
	checkCapturedRounds(t, tb, auditor)
}

// TestReadOnlyDisk: while the kernel refuses every write, as it does once it has
// found a card broken, the table holds and tells nothing; it goes on when
// writing works again.
func TestReadOnlyDisk(t *testing.T) {
	if !*traced {
		t.Skip("make disk-test runs it")
	}
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url())
	tb.plug()
	tb.running()
	startShoe(t, tb)
	eventually(t, "the first card", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhaseDealing }))
	kernel := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-p", strconv.Itoa(tb.cmd.Process.Pid), "-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EROFS")
	if err := kernel.Start(); err != nil {
		t.Fatal(err)
	}
	// Before it has taken hold some telegrams may be written still.
	seq := tb.standbyUntilHeld('4')
	before := auditor.last()
	tb.send(card(t, seq, round.ToBanker, 1, "7c"))
	if err := tb.answer("confirm"); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("an answer while nothing can be written: %v, want busy", err)
	}
	if got := auditor.last(); got != before {
		t.Errorf("event %d was published while nothing could be kept", got)
	}
	kernel.Process.Signal(os.Interrupt) // it lets go
	kernel.Wait()
	eventually(t, "the table goes on", func() bool { return strings.Contains(tb.log.String(), "code=storage.restored") })
	eventually(t, "the card that was held", auditor.see(func(a *witness) bool {
		return a.state.Round != nil && len(a.state.Round.Banker.Cards) == 1
	}))
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}
