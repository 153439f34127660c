package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
	"shoed/sim"
)

var (
	chaosSeed = flag.Uint64("chaos-seed", 0, "seed of TestChaos; 0 takes one of the day")
	chaosRuns = flag.Int("chaos", 240, "how many storms TestChaos makes")
)

const (
	chaosTables = 4  // that suffer at the same time
	chaosLife   = 60 // storms that one table lives through at most
	hurried     = 40 // how much shorter the pauses of a table in a storm are
	moments     = 16 // of a storm, at which things change
)

// reading is a user who only reads: his commands have no effect and leave no
// record, so that one that comes again is answered anew.
const reading = "tv"

// clockSteps names the file with the seconds by which a test steps the clock of
// the program. Where it is set, pauses are short as well.
const clockSteps = "SHOED_TEST_CLOCK_STEPS"

// hurry makes the program one that a storm tests.
func hurry() {
	file := os.Getenv(clockSteps)
	os.Unsetenv(clockSteps)
	if file == "" {
		return
	}
	after = func(d time.Duration) <-chan time.Time { return time.After(d / hurried) }
	wall = func(t time.Time) time.Time {
		text, _ := os.ReadFile(file)
		s, _ := time.ParseDuration(string(text))
		return t.Add(s)
	}
}

// TestChaos lets tables deal and be commanded while what they rest on fails, one
// or two at a time and at any moment: see faults. After each storm the auditor,
// who hears events as they come and asks with sync for those that he missed, has
// every event of the journal once, in order, and as the journal has it. Each
// command was answered, has at most one effect, and one reply.
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test ./cmd/shoed -run TestChaos -chaos %d -chaos-seed %d", seed, *chaosRuns, seed)
	var lives sync.WaitGroup
	turn := make(chan bool, chaosTables)
	counts := tally{n: map[string]int{}}
	for life := 0; life*chaosLife < *chaosRuns; life++ {
		runs := min(chaosLife, *chaosRuns-life*chaosLife)
		turn <- true
		lives.Go(func() {
			defer func() { <-turn }()
			t.Run(fmt.Sprint("table ", life), func(t *testing.T) {
				newStorm(t, func(run int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(life*1000+run))) }, runs, &counts).live(runs)
			})
		})
	}
	lives.Wait()
	t.Log(&counts)
	if *chaosRuns < 200 {
		return
	}
	for _, f := range faults {
		if counts.n[f.name] == 0 {
			t.Errorf("%q never happened", f.name)
		}
	}
	for _, what := range []string{"event repeated", "event asked for", "command", "reply repeated", "round decided", "command approved", "command refused: expired"} {
		if counts.n[what] == 0 {
			t.Errorf("%q was not seen once: the storms prove nothing of it", what)
		}
	}
}

// tally counts what happened in all storms.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what] += n
}

func (c *tally) String() string {
	text := ""
	for _, what := range slices.Sorted(maps.Keys(c.n)) {
		text += fmt.Sprintf("\n%6d  %s", c.n[what], what)
	}
	return text
}

// storm is a table with the two brokers of its list, the auditor and the people
// who command it.
type storm struct {
	t       *testing.T
	dice    func(run int) *rand.Rand // of each run its own: what the one before took is chance
	r       *rand.Rand               // of this run
	tb      *table
	brokers [2]*mosquitto
	posts   [2]paho.Client // of auditor and people, one at each broker
	auditor *auditor
	disk    string // the directory that the journal fills
	line    []byte // what the shoe sends in its life
	sent    int    // of it
	most    int    // of it at a moment
	full    bool   // the disk is

	asked  []*asked // commands, oldest first
	open   []*asked // those that are not answered
	told   string   // this run's faults
	counts *tally
}

// asked is a command that is repeated until it is answered.
type asked struct {
	user, name string
	cmd        mqtt.Command
	at         time.Time // when it was last sent
}

func newStorm(t *testing.T, dice func(int) *rand.Rand, runs int, counts *tally) *storm {
	r := dice(0)
	s := &storm{t: t, dice: dice, r: r, counts: counts, auditor: &auditor{replies: map[string][]mqtt.Rsp{}}}
	s.line, _ = dealtBytes(t, sim.Options{Seed: r.Uint64(), Decks: 1, Copies: 1, Masked: r.IntN(2) == 0}, 2*runs)
	s.most = len(s.line)/(runs*moments) + 1 // a round a storm
	for i := range s.brokers {
		s.brokers[i] = startMosquitto(t)
		s.posts[i] = s.post(s.brokers[i])
	}
	s.tb = newTable(t, s.brokers[0].url(), "decks=1")
	replaceIn(t, s.tb.config, "servers = [", fmt.Sprintf("servers = [%q, ", s.brokers[1].url()))
	replaceIn(t, s.tb.config, "[mqtt]", fmt.Sprintf("[mqtt]\nkeep_alive_s = 5\nwrite_timeout_ms = 1000\nwindow = %d", []int{1, 1, 4, 16}[r.IntN(4)]))
	s.tb.staffed("")
	s.disk = s.tb.smallDisk()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last faults: %s; log of the table:\n%s", s.told, tail(s.tb.log.String(), 4000))
		}
	})
	return s
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// post connects auditor and people to a broker, whenever it is there.
func (s *storm) post(b *mosquitto) paho.Client {
	o := paho.NewClientOptions().AddBroker(b.url()).SetClientID(fmt.Sprintf("post-%p", b)).SetProtocolVersion(4)
	o.SetAutoReconnect(true).SetConnectRetry(true).SetMaxReconnectInterval(50 * time.Millisecond).SetConnectRetryInterval(50 * time.Millisecond)
	o.SetWriteTimeout(time.Second)
	o.SetOnConnectHandler(func(c paho.Client) {
		c.SubscribeMultiple(map[string]byte{
			mqtt.Topic("test", "t1", "event"):   1,
			mqtt.Topic("test", "t1", "rsp/+/+"): 1, mqtt.Topic("test", "t1", "replay/+"): 1,
		}, s.auditor.take)
	})
	c := paho.NewClient(o)
	if token := c.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		s.t.Fatal(token.Error())
	}
	s.t.Cleanup(func() { c.Disconnect(0) })
	return c
}

// live is a table's life: its storms, its end, and what is left of it.
func (s *storm) live(runs int) {
	if s.tb.stepClock(0); s.r.IntN(2) == 0 {
		s.tb.stepClock(to1970())
	}
	eventually(s.t, "the table to start", s.up)
	for n := 1; n <= runs; n++ {
		s.r = s.dice(n)
		s.run(n)
		if s.t.Failed() {
			return
		}
	}
	s.tb.stepClock(0)
	s.told = "the end"
	s.catchUp()
	if err := s.tb.stop(); err != nil {
		s.t.Error(err)
	}
	s.tb.verify()
	s.catchUp() // nothing came after
	s.checkEffects()
}

// run is one storm. What fails and when is drawn before anything happens, so
// that its seed brings it again.
func (s *storm) run(n int) {
	var begins, ends [moments + 1][]func()
	s.told = fmt.Sprintf("run %d:", n)
	for _, i := range s.r.Perm(len(faults))[:1+s.r.IntN(5)/4] { // of five, one has two
		begin := s.r.IntN(moments / 2)
		end := min(begin+1+s.r.IntN(moments), moments)
		s.told += " " + faults[i].name
		s.counts.add(faults[i].name, 1)
		begins[begin] = append(begins[begin], func() { ends[end] = append(ends[end], faults[i].strike(s)) })
	}
	s.askSome()
	for moment := range moments + 1 {
		for _, change := range append(ends[moment], begins[moment]...) {
			change()
		}
		s.deal()
		s.repeat()
		wait(s.r, 30*time.Millisecond)
	}
	eventually(s.t, "the table to answer", s.up)
	s.catchUp()
	s.documentsAreThere()
}

// deal lets the shoe send some more, if there is somebody to read it.
func (s *storm) deal() {
	n := min(s.r.IntN(s.most)+1, len(s.line)-s.sent)
	if s.tb.cmd != nil && n > 0 {
		s.tb.send(s.line[s.sent : s.sent+n])
		s.sent += n
	}
}

// up reports whether the table deals and answers; it starts one that does not
// run. What was not taken in is sent again.
func (s *storm) up() bool {
	if s.tb.cmd == nil {
		s.tb.plug()
		s.sent = s.tb.taken()
		s.tb.start()
	}
	select {
	case err := <-s.tb.exited: // as it may while the disk is full
		s.told += fmt.Sprintf(" (not started: %v)", err)
		s.tb.cmd = nil
		return false
	default:
	}
	if s.full || s.tb.answer("identify") != nil {
		return false
	}
	s.goOn()
	return true
}

// to1970 is the step to where a board without a battery starts.
func to1970() time.Duration { return time.Until(time.Unix(3600, 0)) }

// stepClock sets the table's clock, ahead of now or behind. A table whose clock
// is stepped must be so from its start.
func (tb *table) stepClock(step time.Duration) {
	tb.t.Helper()
	file := filepath.Join(tb.dir, "clock")
	tb.env = []string{clockSteps + "=" + file}
	if err := os.WriteFile(file+".new", []byte(step.String()), 0o600); err != nil {
		tb.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		tb.t.Fatal(err)
	}
}

// goOn is the supervisor at the table, who gets it to deal again: he tries
// answers until none helps.
func (s *storm) goOn() {
	answers := [][]string{{"resume"}, {"confirm"}, {"hold_card", "where=use"}, {"hold_card", "where=burn"}, {"new_shoe"}}
	for range 20 {
		if !slices.ContainsFunc(answers, func(words []string) bool { return s.tb.answer(words...) == nil }) {
			return
		}
	}
}

// fault is something that fails, until what strike returns is called.
type fault struct {
	name   string
	strike func(*storm) (end func())
}

var faults = []fault{
	{"broker killed", func(s *storm) func() {
		for _, b := range s.brokers {
			b.kill()
		}
		return func() {
			for _, b := range s.brokers {
				b.up()
			}
		}
	}},
	{"broker moved", func(s *storm) func() { // only the other address of the list answers
		b := s.brokers[s.r.IntN(2)]
		b.kill()
		return b.up
	}},
	{"broker paused", func(s *storm) func() {
		var paused []*os.Process
		for _, b := range s.brokers {
			if b.cmd != nil {
				b.cmd.Process.Signal(syscall.SIGSTOP)
				paused = append(paused, b.cmd.Process)
			}
		}
		return func() {
			for _, p := range paused {
				p.Signal(syscall.SIGCONT) // it may be dead meanwhile
			}
		}
	}},
	{"retained wiped", func(s *storm) func() {
		for _, document := range []string{"info", "roads", "insurance", "alerts", "state"} {
			s.publish(document, true, nil)
		}
		return func() {}
	}},
	{"client id taken over", func(s *storm) func() {
		var thieves []paho.Client
		for _, b := range s.brokers {
			o := paho.NewClientOptions().AddBroker(b.url()).SetClientID("shoed-test-t1").SetProtocolVersion(4).SetAutoReconnect(false)
			thief := paho.NewClient(o)
			thief.Connect() // as far as it can
			thieves = append(thieves, thief)
		}
		return func() {
			for _, thief := range thieves {
				thief.Disconnect(0)
			}
		}
	}},
	{"another process publishes", func(s *storm) func() {
		body, err := json.Marshal(mqtt.Status{
			Envelope: mqtt.Envelope{Schema: "status/1.0", Site: "test", Table: "t1", Epoch: "another", TS: "2026-01-01T00:00:00.000Z", Clock: "synced"},
			State:    mqtt.Online, Instance: "another", Session: 7, Version: "1",
		})
		if err != nil {
			s.t.Fatal(err)
		}
		s.publish("status", false, body)
		return func() {}
	}},
	{"daemon killed", func(s *storm) func() {
		s.tb.kill()
		return func() { eventually(s.t, "the table to start", func() bool { return s.up() || s.full }) }
	}},
	{"disk full", func(s *storm) func() {
		fill := fillDisk(s.t, s.disk)
		s.full = true
		return func() {
			s.full = false
			if err := os.Remove(fill); err != nil {
				s.t.Fatal(err)
			}
		}
	}},
	{"clock stepped", func(s *storm) func() {
		s.tb.stepClock(to1970())
		s.askSome()
		return func() { s.tb.stepClock(0) }
	}},
}

// up starts the broker again, without anything that it had kept.
func (m *mosquitto) up() {
	if m.cmd == nil {
		m.start()
	}
}

func (s *storm) publish(name string, retained bool, body []byte) {
	for _, p := range s.posts {
		p.Publish(mqtt.Topic("test", "t1", name), 1, retained, body)
	}
}

// askSome gives one or two commands, and an old one again.
func (s *storm) askSome() {
	for range 1 + s.r.IntN(2) {
		switch s.r.IntN(10) {
		case 0:
			s.ask("finn", "pause", nil)
		case 1:
			s.ask("finn", "resume", nil)
		case 2:
			s.ask("finn", "ack", nil)
		case 3:
			s.ask("finn", "dealer", map[string]string{"name": fmt.Sprint("dealer ", s.r.IntN(1000))})
		case 4:
			s.ask("anna", "limits", map[string]any{"currency": "THB", "min": 1 + s.r.IntN(100), "max": 5000})
		case 5, 9:
			s.ask("anna", "void", nil)
		case 6:
			s.ask("tess", "diag", nil)
		case 7:
			s.ask(reading, "sync", nil)
		case 8:
			s.ask(reading, "pause", nil) // not his to give
		}
	}
	if len(s.asked) > 0 {
		s.send(s.asked[s.r.IntN(len(s.asked))])
	}
}

// ask gives a command. Half of them say what they expect, as they must while the
// table's clock is not set.
func (s *storm) ask(user, name string, args any) *asked {
	a := &asked{user: user, name: name, cmd: command(s.t, args)}
	if epoch := s.auditor.heardEpoch(); s.r.IntN(2) == 0 && epoch != "" {
		a.cmd.Expect = &mqtt.Expect{Epoch: epoch}
	}
	s.asked, s.open = append(s.asked, a), append(s.open, a)
	s.counts.add("command", 1)
	s.send(a)
	return a
}

// send sends a command to each broker: the table must not mind.
func (s *storm) send(a *asked) {
	body, err := json.Marshal(a.cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	a.at = time.Now()
	s.publish("cmd/"+a.user+"/"+a.name, false, body)
}

// repeat sends again what was not answered. Another person approves what takes
// two.
func (s *storm) repeat() {
	waiting := s.open
	s.open = nil
	for _, a := range waiting {
		replies := s.auditor.repliesTo(a.cmd.CmdID)
		switch {
		case len(replies) == 0 && s.auditor.noRoom(a.cmd.CmdID):
			s.counts.add("command refused: no room to wait", 1)
		case len(replies) == 0:
			if time.Since(a.at) > 400*time.Millisecond { // two a second of a user's five
				s.send(a)
			}
			s.open = append(s.open, a)
		case replies[0].Code == mqtt.CodeNeedsSecond:
			s.ask("bela", "approve", map[string]string{"cmd_id": a.cmd.CmdID})
		case replies[0].Status == mqtt.Rejected:
			s.counts.add("command refused: "+string(replies[0].Code), 1)
		case a.name == "approve":
			s.counts.add("command approved", 1)
		}
	}
}

// catchUp waits until every command is answered and the auditor has every event
// that the journal has, and compares the two. What does not come he asks for.
func (s *storm) catchUp() {
	s.t.Helper()
	r, err := journal.OpenRead(s.tb.file())
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	waited := time.Now()
	eventually(s.t, "every event at the auditor, and a reply to every command", func() bool {
		<-time.After(10 * time.Millisecond)
		s.repeat()
		have := s.auditor.last()
		missing, err := r.Events(have, 1)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(missing) > 0 && s.tb.cmd != nil && time.Since(waited) > time.Second {
			waited = time.Now()
			s.counts.add("event asked for", 1)
			s.ask(reading, "sync", map[string]uint64{"from_seq": have + 1})
		}
		return len(missing) == 0 && len(s.open) == 0
	})
	key, err := openTableKey(s.disk, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.auditor.compare(r, key, s.counts); err != nil {
		s.t.Error(err)
	}
	for _, a := range s.asked {
		if err := same(s.auditor.repliesTo(a.cmd.CmdID)); err != nil && a.user != reading {
			s.t.Errorf("%s %s of %s: %v", a.name, a.cmd.CmdID, a.user, err)
		}
	}
}

// documentsAreThere waits until a board that is switched on now sees the table
// as it is. It asks again for what is not there, as the contract says.
func (s *storm) documentsAreThere() {
	s.t.Helper()
	ctx, off := context.WithCancel(s.t.Context())
	defer off()
	var screens [2]screen
	for i, b := range s.brokers {
		if _, err := mqtt.Subscribe(ctx, mqtt.Account{Server: b.url()}, "test", "t1", screens[i].take); err != nil {
			s.t.Fatal(err)
		}
	}
	asked := time.Now()
	eventually(s.t, "the documents on a broker", func() bool {
		<-time.After(5 * time.Millisecond)
		if time.Since(asked) > time.Second {
			asked = time.Now()
			s.counts.add("documents asked for", 1)
			s.ask(reading, "sync", nil)
		}
		s.repeat()
		last := s.auditor.last()
		return screens[0].complete(last) || screens[1].complete(last)
	})
}

// checkEffects holds what the journal has of commands against what it has of
// their effects: each was taken once, and nothing was done that none asked for.
func (s *storm) checkEffects() {
	s.t.Helper()
	r, err := journal.OpenRead(s.tb.file())
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	records, taken, asked, done := map[string][]mqtt.Outcome{}, map[string]bool{}, map[string]int{}, map[string]int{}
	err = r.Read(1, func(rec journal.Record) error {
		switch rec.Kind {
		case journal.Command:
			var g mqtt.Given
			if err := json.Unmarshal(rec.Body, &g); err != nil {
				return err
			}
			records[rec.Source] = append(records[rec.Source], g.Reply.Status)
			taken[g.Body.CmdID] = true
			if g.Reply.Status == mqtt.Done || g.Reply.Code == mqtt.CodeNotApplicable { // as far as round was asked
				asked[g.By+" "+g.Command]++
			}
		case journal.Input:
			in, err := round.ParseInput(rec.Body)
			if err == nil && in.Kind == round.InAnswer {
				done[in.Answer.By+" "+in.Answer.Do.String()]++
			}
			return err
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for what, n := range done {
		if asked[what] != n {
			s.t.Errorf("%s: asked for %d times, done %d times", what, asked[what], n)
		}
	}
	for source, outcomes := range records {
		if len(outcomes) > 2 || len(outcomes) == 2 && (outcomes[0] != mqtt.Accepted || outcomes[1] == mqtt.Accepted) {
			s.t.Errorf("command %s is in the journal as %v", source, outcomes)
		}
	}
	for _, a := range s.asked {
		if !taken[a.cmd.CmdID] && a.user != reading && !s.auditor.noRoom(a.cmd.CmdID) {
			s.t.Errorf("%s %s was answered, and is not in the journal", a.name, a.cmd.CmdID)
		}
	}
}

// TestClockNotSet: while the table's clock is in 1970 a command must say what it
// expects. When the clock is right it need not, and what was answered before
// gets the same reply.
func TestClockNotSet(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url())
	tb.staffed("")
	tb.stepClock(to1970())
	tb.plug()
	tb.listening()
	c := newConsole(t, broker.url())
	pause := command(t, nil)
	c.send("finn", "pause", pause)
	first := c.replied(pause.CmdID, 1)
	if first.Code != mqtt.CodeExpired || first.Clock != "unset" {
		t.Errorf("without expect: %+v", first)
	}
	expecting := command(t, nil)
	expecting.Expect = &mqtt.Expect{Phase: mqtt.PhaseClosed}
	c.send("finn", "pause", expecting)
	if r := c.replied(expecting.CmdID, 1); r.Status != mqtt.Done {
		t.Errorf("with expect: %+v", r)
	}
	eventually(t, "an event of 1970", auditor.see(func(a *witness) bool {
		return slices.ContainsFunc(a.events, func(e mqtt.Event) bool { return strings.HasPrefix(e.TS, "1970-") && e.Clock == "unset" })
	}))
	tb.stepClock(0)
	c.send("finn", "pause", pause)
	if again := c.replied(pause.CmdID, 2); !again.Duplicate || again.Message != first.Message {
		t.Errorf("again, with the clock right: %+v, want %+v", again, first)
	}
	if r := c.ask("finn", "resume", nil); r.Status != mqtt.Done || r.Clock == "unset" {
		t.Errorf("without expect, with the clock right: %+v", r)
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}
