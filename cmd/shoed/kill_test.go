package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"shoed/round"
	"shoed/scanner"
	"shoed/sim"
)

var (
	killSeed = flag.Uint64("kill-seed", 0, "seed of TestKilledAnywhere; 0 takes one of the day")
	kills    = flag.Int("kills", 100, "how often TestKilledAnywhere kills the daemon")
)

// dealtBytes is what a simulated shoe sends in some rounds, and the rounds
// that an undisturbed run decides on it.
func dealtBytes(t testing.TB, o sim.Options, rounds int) ([]byte, []string) {
	t.Helper()
	o.Sleep = sim.NoSleep
	dealer, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var line bytes.Buffer
	if err := dealer.Play(context.Background(), &line, rounds, nil); err != nil {
		t.Fatal(err)
	}
	decoder, err := scanner.New("angel", scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var decided []string
	s := round.New(round.DefaultRules())
	for _, r := range decoder.Feed(time.Now(), line.Bytes(), nil) {
		var events []round.Event
		if s, events, err = s.Step(r.Input, nil); err != nil {
			t.Fatal(err)
		}
		for i := range events {
			text, err := events[i].AppendText(nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := decidedRound(t, text); d != "" {
				decided = append(decided, d)
			}
		}
	}
	if len(decided) != rounds || s.Paused() != 0 {
		t.Fatalf("undisturbed: %d rounds decided of %d, paused by %v", len(decided), rounds, s.Paused())
	}
	return line.Bytes(), decided
}

// TestKilledAnywhere kills the daemon at random points, in the middle of
// rounds, of telegrams and of its own start, and cuts it off from the broker
// at others. The shoe sends again what was not taken in, and each pause is
// confirmed. The decided rounds are those of an undisturbed run, and the
// auditor has every event once, besides marked repeats.
func TestKilledAnywhere(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test ./cmd/shoed -run TestKilledAnywhere -kill-seed %d", seed, seed)
	r := rand.New(rand.NewPCG(seed, 1))
	sent, want := dealtBytes(t, sim.Options{Seed: seed, Masked: seed%2 == 0}, *kills)

	broker := startMosquitto(t)
	cutter := newProxy(t, broker.addr())
	auditor := audit(t, broker.url())
	tb := newTable(t, cutter.url())
	begun := time.Now()
	for range *kills {
		tb.plug()
		tb.stepClock(-time.Since(begun)) // copies of a telegram come at a shoe's pace, however slow this machine
		if r.IntN(5) == 0 {
			tb.start()
			wait(r, 60*time.Millisecond)
			tb.kill()
			continue
		}
		tb.running()
		tb.confirmAll()
		from := tb.taken()
		n := min(r.IntN(len(sent)/(*kills)*2+1), len(sent)-from)
		tb.send(sent[from : from+n])
		if r.IntN(3) == 0 {
			cutter.cut()
		}
		wait(r, 20*time.Millisecond)
		tb.kill()
	}
	tb.plug()
	tb.stepClock(-time.Since(begun))
	tb.running()
	tb.confirmAll()
	tb.send(sent[tb.taken():])
	eventually(t, "the shoe's last byte in the journal", func() bool { return tb.taken() == len(sent) })
	if err := tb.stop(); err != nil {
		t.Fatal(err)
	}
	tb.verify()
	last := tb.lastSeq()
	eventually(t, fmt.Sprintf("event %d at the auditor", last), func() bool { return auditor.last() == last })
	checkStream(t, auditor, last)
	if got := auditor.decided(t); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("decided\n%s\nundisturbed\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// wait lets a random time pass: where it ends is the point of the test.
func wait(r *rand.Rand, most time.Duration) {
	<-time.After(time.Duration(r.Int64N(int64(most))))
}

// confirmAll is the supervisor who confirms until nothing is asked any more.
func (tb *table) confirmAll() {
	tb.t.Helper()
	for range 10 {
		err := tb.answer("confirm")
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "no standing alert") {
			tb.t.Fatal(err)
		}
		if err := tb.answer("hold_card", "where=use"); err != nil {
			return // nothing waits either
		}
	}
	tb.t.Fatal("ten answers, and still a question")
}

func (tb *table) lastSeq() uint64 {
	tb.t.Helper()
	out, _, err := shoedCommand("journal", "export", tb.file())
	if err != nil {
		tb.t.Fatal(err)
	}
	return uint64(strings.Count(out, `{"seq":`))
}

// checkStream: every event up to last was received, once unless the copy is
// marked, and all copies say the same.
func checkStream(t *testing.T, a *witness, last uint64) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	first := map[uint64]int{}
	repeats := 0
	for i, e := range a.events {
		was, again := first[e.Seq]
		if !again {
			first[e.Seq] = i
			continue
		}
		repeats++
		if !e.Delayed {
			t.Errorf("event %d came again without a mark", e.Seq)
		}
		if !reflect.DeepEqual(a.events[was].EventText, e.EventText) || a.events[was].TS != e.TS {
			t.Errorf("event %d came again as another", e.Seq)
		}
	}
	for seq := uint64(1); seq <= last; seq++ {
		if _, ok := first[seq]; !ok {
			t.Errorf("event %d never came", seq)
		}
	}
	t.Logf("%d events, %d marked repeats", last, repeats)
}
