package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"shoed/mqtt"
	"shoed/round"
	"shoed/sim"
)

// board is mqtt/testdata/board.py in a process of its own: a consumer written
// from the contract.
type board struct {
	t      testing.TB
	cmd    *exec.Cmd
	out    lockedBuffer // the summary
	log    lockedBuffer
	exited chan error
}

// startBoard starts one and waits until the broker has granted its topics. The
// Python is the system's, which has Debian's MQTT library.
func startBoard(t testing.TB, addr, site, table string, options ...string) *board {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	b := &board{t: t, exited: make(chan error, 1)}
	b.cmd = exec.Command("/usr/bin/python3", append([]string{filepath.Join("..", "..", "mqtt", "testdata", "board.py"),
		"--port", port, "--site", site, "--table", table, "--timeout", "60"}, options...)...)
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.log
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { b.exited <- b.cmd.Wait() }()
	t.Cleanup(func() {
		b.cmd.Process.Kill() // ended long ago, unless the test failed
		b.end()
		if t.Failed() {
			t.Logf("board %v:\n%s%s", options, &b.log, &b.out)
		}
	})
	b.says("following ")
	return b
}

// end waits for the end of the process.
func (b *board) end() error {
	err := <-b.exited // --timeout bounds it
	b.exited <- err
	return err
}

// says waits for a text in what the board prints.
func (b *board) says(text string) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("the board says %q; needed for this test: apt-get install python3-paho-mqtt", text), func() bool {
		select {
		case err := <-b.exited:
			b.exited <- err
			return true // what is missing is seen below
		default:
			return strings.Contains(b.log.String(), text)
		}
	})
	if !strings.Contains(b.log.String(), text) {
		b.t.Fatalf("the board ended without saying %q", text)
	}
}

// drawnRoads are what the board draws itself, of a roads document.
type drawnRoads struct {
	ShoeID       *string  `json:"shoe_id"`
	ThroughRound *uint16  `json:"through_round"`
	Bead         []string `json:"bead"`
	LeadTies     int      `json:"lead_ties"`
	BigRoad      [][5]any `json:"big_road"`
}

// summary is what the board says at its end.
type summary struct {
	Gaps, Repeats, Adopted, Windows, Compared, Dropped, Syncs int
	Mismatches                                                []string
	Results                                                   []struct {
		RoundID        string `json:"round_id"`
		Outcome        string
		Player, Banker *round.HandText
		Tags           []string
	}
	Drawn, Received *drawnRoads
}

// summary waits for the board's end, which must be a good one.
func (b *board) summary() summary {
	b.t.Helper()
	if err := b.end(); err != nil {
		b.t.Fatalf("board: %v", err)
	}
	var s summary
	if err := json.Unmarshal([]byte(b.out.String()), &s); err != nil {
		b.t.Fatal(err)
	}
	if len(s.Mismatches) > 0 || s.Drawn == nil || s.Received == nil || !reflect.DeepEqual(s.Drawn, s.Received) {
		b.t.Errorf("mismatches %v; drawn %+v, received %+v", s.Mismatches, s.Drawn, s.Received)
	}
	return s
}

// lines are the results as demo prints them.
func (s *summary) lines() []string {
	var all []string
	for _, r := range s.Results {
		all = append(all, roundLine(&mqtt.Event{RoundID: r.RoundID, EventText: round.EventText{
			Outcome: r.Outcome, Player: r.Player, Banker: r.Banker, Tags: r.Tags}}))
	}
	return all
}

// roadsOf keeps the last roads document of a shoe.
func roadsOf(t testing.TB, server, site, table, shoe string) func() *drawnRoads {
	t.Helper()
	var mu sync.Mutex
	last := &drawnRoads{}
	ctx, cancel := context.WithCancel(context.Background())
	ended, err := mqtt.Subscribe(ctx, mqtt.Account{Server: server}, site, table, func(topic string, _ bool, payload []byte) {
		doc := &drawnRoads{}
		if !strings.HasSuffix(topic, "/roads") || json.Unmarshal(payload, doc) != nil || doc.ShoeID == nil || *doc.ShoeID != shoe {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		last = doc
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); <-ended })
	return func() *drawnRoads {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

const boardSeed = 7 // of the simulated shoe: 75 rounds, with ties, pairs and dragon tails

// firstShoe is what the simulated dealer deals in its first shoe.
func firstShoe(t testing.TB) (outcomes []round.Outcome) {
	t.Helper()
	dealer, err := sim.New(sim.Options{Seed: boardSeed, Sleep: sim.NoSleep})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = dealer.Play(ctx, &bytes.Buffer{}, 0, func(d sim.Dealt) {
		if d.Shoe > 1 {
			cancel()
			return
		}
		outcomes = append(outcomes, d.Outcome)
	})
	if !errors.Is(err, context.Canceled) || len(outcomes) < 60 {
		t.Fatalf("%d rounds, %v", len(outcomes), err)
	}
	return outcomes
}

// startDemo plays one whole shoe and the beginning of the next. The result is
// demo's output at its end, which says whether what arrived is what the
// journal has.
func startDemo(t testing.TB, addr string, rounds int) (out *lockedBuffer, ended <-chan error) {
	t.Helper()
	out = &lockedBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	done := task(func() error {
		return run(ctx, []string{"demo", "--seed", strconv.Itoa(boardSeed), "--speed", "300", "--rounds", strconv.Itoa(rounds), "--mqtt", addr}, nil, out, out)
	})
	stopped := make(chan error, 1)
	go func() { stopped <- <-done; close(stopped) }()
	t.Cleanup(func() {
		cancel()
		for range stopped {
		}
	})
	return out, stopped
}

// demoLines are the rounds of the first shoe in demo's output.
func demoLines(out string) []string {
	return slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "demo-S000001-R") || !strings.Contains(line, "  Player ")
	})
}

// checkBoard holds a board's results and roads against what was dealt, what
// demo printed and the table's last roads document of the shoe; the board has
// missed the first rounds. A board that comes between an event and its state has
// a gap at once.
func checkBoard(t *testing.T, b *board, missed int, want []string, outcomes []round.Outcome, roads *drawnRoads) {
	t.Helper()
	s := b.summary()
	if got := s.lines(); !slices.Equal(got, want[missed:]) {
		t.Errorf("results\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want[missed:], "\n"))
	}
	for i, r := range s.Results {
		if r.Outcome != outcomes[missed+i].String() {
			t.Errorf("%s: %s, dealt was %v", r.RoundID, r.Outcome, outcomes[missed+i])
		}
	}
	if !reflect.DeepEqual(s.Drawn, roads) {
		t.Errorf("drawn %+v\ntable %+v", s.Drawn, roads)
	}
	if s.Compared < (len(outcomes)-missed)/2 || s.Windows == 0 || s.Gaps > min(missed, 1) {
		t.Errorf("%d roads compared of %d rounds, %d insurance windows, %d gaps", s.Compared, len(outcomes)-missed, s.Windows, s.Gaps)
	}
}

// TestBoard: a stranger's board follows a whole shoe and has its results and
// its roads; another that comes late and loses events has the roads all the
// same.
func TestBoard(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t)
	outcomes := firstShoe(t)
	roads := roadsOf(t, broker.url(), "house", "demo", "demo-S000001")
	whole := startBoard(t, broker.addr(), "house", "demo", "--until-shoe-ended")
	poor := startBoard(t, broker.addr(), "house", "demo", "--until-shoe-ended", "--join-late", "20", "--drop", "0.1", "--seed", "1")
	out, ended := startDemo(t, broker.addr(), len(outcomes)+1)
	if err := <-ended; err != nil || !strings.Contains(out.String(), " 0 lost") {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := demoLines(out.String())
	checkBoard(t, whole, 0, lines, outcomes, roads())

	s := poor.summary()
	if !reflect.DeepEqual(s.Drawn, roads()) {
		t.Errorf("the board that loses events has %+v\ntable %+v", s.Drawn, roads())
	}
	if s.Dropped < 20 || s.Gaps < 10 || s.Adopted < s.Gaps || len(s.Results) >= len(lines)-20 {
		t.Errorf("%d events dropped, %d gaps, state adopted %d times, %d results", s.Dropped, s.Gaps, s.Adopted, len(s.Results))
	}
	for _, line := range s.lines() {
		if !slices.Contains(lines, line) {
			t.Errorf("result %q is none of the table's", line)
		}
	}
}

// TestBoardEmbedded: the same on the embedded broker, which is there only once
// the table is, so that the board may come a few rounds late.
func TestBoardEmbedded(t *testing.T) {
	t.Parallel()
	outcomes := firstShoe(t)
	out, ended := startDemo(t, "127.0.0.1:0", len(outcomes)+1)
	address := regexp.MustCompile(`mqtt://(\S+)`)
	eventually(t, "the broker's address", func() bool { return address.MatchString(out.String()) })
	addr := address.FindStringSubmatch(out.String())[1]
	roads := roadsOf(t, "mqtt://"+addr, "house", "demo", "demo-S000001")
	b := startBoard(t, addr, "house", "demo", "--until-shoe-ended")
	if err := <-ended; err != nil || !strings.Contains(out.String(), " 0 lost") {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := demoLines(out.String())
	s := b.summary()
	missed := len(lines) - len(s.Results)
	if missed > 20 {
		t.Fatalf("the board missed %d rounds", missed)
	}
	checkBoard(t, b, missed, lines, outcomes, roads())
}

// TestBoardNoSignal: when the table is killed in an insurance window, the
// board closes it by itself and then greys its picture, until the table is back.
func TestBoardNoSignal(t *testing.T) {
	t.Parallel()
	broker := startMosquitto(t)
	tb := newTable(t, broker.url())
	b := startBoard(t, broker.addr(), "test", "t1")
	b.says("no state: sync") // nobody has published yet
	tb.plug()
	tb.running()
	startShoe(t, tb)
	for _, c := range []struct {
		seq  byte
		to   round.To
		pos  uint8
		face string
	}{{'4', round.ToBanker, 1, "Tc"}, {'5', round.ToPlayer, 2, "4d"}, {'6', round.ToBanker, 2, "5h"}} {
		tb.send(card(t, c.seq, c.to, c.pos, c.face))
	}
	b.says("insurance t1-S000001-R001-W2 open")
	tb.kill()
	b.says("insurance t1-S000001-R001-W2 closed by this board")
	b.says("no signal")
	tb.running()
	b.says("\nsignal\n")
	b.cmd.Process.Signal(os.Interrupt)
	if s := b.summary(); s.Syncs == 0 || s.Windows != 1 {
		t.Errorf("%+v", s)
	}
}
