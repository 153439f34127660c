package mqtt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoed/round"
)

// picture is what a consumer makes of the events: what state, roads and
// insurance say, as far as events alone tell it.
type picture struct {
	shoe, round, last      string
	player, banker, result string // cards; outcome, or void
	counts                 Counts
	bead                   []string // nil when the roads of the shoe are not known
	through                uint16
	rounds                 map[uint16]int // place on the bead plate by round number, of those followed
	window                 string         // stage of the open insurance window; unknown until told
}

const unknown = "?"

func pictureOf(s *State) picture {
	p := picture{counts: s.Counts, window: unknown}
	if s.Shoe != nil {
		p.shoe = s.Shoe.ID
	}
	if r := s.Round; r != nil {
		p.round, p.player, p.banker = r.ID, strings.Join(r.Player.Cards, " "), strings.Join(r.Banker.Cards, " ")
		if r.Outcome != nil {
			p.result = *r.Outcome
		}
		if r.Void {
			p.result = "void"
		}
	}
	if s.Last != nil {
		p.last = s.Last.ID
	}
	return p
}

// draw takes the table's roads in place of the consumer's own.
func (p *picture) draw(r *Roads) {
	p.bead, p.rounds, p.through = append([]string{}, r.Bead...), map[uint16]int{}, 0
	if r.ThroughRound != nil {
		p.through = *r.ThroughRound
	}
}

// cellOf is a result as the bead plate has it.
func cellOf(e *Event) string {
	cell := map[string]string{"player": "P", "banker": "B", "tie": "T"}[e.Outcome]
	for _, tag := range []struct{ name, flag string }{{"player_pair", "p"}, {"banker_pair", "b"}, {"natural", "n"}} {
		if slices.Contains(e.Tags, tag.name) {
			cell += tag.flag
		}
	}
	return cell
}

func (c *Counts) add(cell string, n uint16) {
	for letter, count := range map[string]*uint16{
		"P": &c.Player, "B": &c.Banker, "T": &c.Tie, "p": &c.PlayerPair, "b": &c.BankerPair, "n": &c.Natural} {
		if strings.Contains(cell, letter) {
			*count += n
		}
	}
	c.Rounds += n
}

// apply moves the picture on by one event. False: the event needs what this
// consumer never had, so only documents can tell what follows.
func (p *picture) apply(e *Event) bool {
	hand := map[string]*string{"player": &p.player, "banker": &p.banker}[e.Hand]
	switch e.Ev {
	case "shoe.loaded":
		*p = picture{shoe: e.ShoeID, bead: []string{}, rounds: map[uint16]int{}, window: ""}
	case "round.opened":
		p.round, p.player, p.banker, p.result, p.window = e.RoundID, "", "", "", ""
	case "card.dealt":
		if hand != nil { // otherwise it is of no hand yet: burned, or held
			*hand = strings.TrimSpace(*hand + " " + e.Card)
		}
	case "card.shown": // turned, or corrected
		if hand != nil && e.RoundID == p.round {
			cards := strings.Fields(*hand)
			if int(e.Pos) > len(cards) {
				return false
			}
			cards[e.Pos-1] = e.Card
			*hand = strings.Join(cards, " ")
		}
	case "insurance.opened":
		p.window = e.Stage
	case "insurance.closed", "insurance.voided":
		p.window = ""
	case "round.voided":
		p.result, p.through = "void", *e.Round
		p.counts.Void++
	case "round.decided":
		p.result, p.last, p.through = e.Outcome, e.RoundID, *e.Round
		p.counts.add(cellOf(e), 1)
		if p.bead != nil {
			p.rounds[*e.Round] = len(p.bead)
			p.bead = append(p.bead, cellOf(e))
		}
	case "round.corrected":
		return p.correct(e)
	}
	return true
}

func (p *picture) correct(e *Event) bool {
	place, known := p.rounds[*e.Round]
	if !known {
		return false
	}
	p.counts.add(p.bead[place], ^uint16(0))
	p.bead[place] = cellOf(e)
	p.counts.add(p.bead[place], 1)
	if e.RoundID == p.round {
		p.result = e.Outcome
		p.player, p.banker = strings.Join(e.Player.Cards, " "), strings.Join(e.Banker.Cards, " ")
	}
	return true
}

// consumer follows a table as contract.md, Order, says, and holds every
// document against what it has made of the events by itself.
type consumer struct {
	t       testing.TB
	began   bool
	last    uint64 // every event up to it is in the picture
	ahead   uint64 // the highest seq heard of
	gap     bool   // noticed, not yet closed
	waiting map[uint64]*Event
	drawn   uint64 // the latest event that changed the roads
	picture *picture

	// The latest documents of this subscription; nil before they came.
	state  *State
	roads  *Roads
	window *Window
	bodies map[string][]byte

	applied, stood      map[uint64]bool // events applied; those that a state stood for
	first               uint64          // adopted first
	kinds               map[string]int  // events applied, by name
	gaps, repeats, same int             // same: comparisons
}

func newConsumer(t testing.TB) *consumer {
	c := &consumer{t: t, waiting: map[uint64]*Event{}, applied: map[uint64]bool{}, stood: map[uint64]bool{}, kinds: map[string]int{}}
	c.joined()
	return c
}

// joined begins another subscription: what is retained comes again, in any
// order, and documents held from before may be of the past.
func (c *consumer) joined() {
	c.state, c.roads, c.window, c.bodies = nil, nil, nil, map[string][]byte{}
}

func (c *consumer) take(name string, body []byte) {
	var err error
	switch name {
	case "event":
		e := &Event{}
		err = json.Unmarshal(body, e)
		c.event(e)
	case "state":
		doc := &State{}
		err = json.Unmarshal(body, doc)
		c.tableState(doc, body)
	case "roads":
		doc := &Roads{}
		if err = json.Unmarshal(body, doc); c.roads == nil || doc.Seq >= c.roads.Seq {
			c.roads, c.bodies[name] = doc, body
			c.lookAtRoads()
		}
	case "insurance":
		doc := &Window{}
		if err = json.Unmarshal(body, doc); c.window == nil || doc.Seq >= c.window.Seq {
			c.window = doc
		}
	case "health":
		doc := &Health{}
		err = json.Unmarshal(body, doc)
		c.heard(doc.Seq)
	}
	if err != nil {
		c.t.Errorf("%s: %v", name, err)
	}
}

func (c *consumer) heard(seq uint64) {
	c.ahead = max(c.ahead, seq)
	if behind := c.began && c.last < c.ahead; behind != c.gap {
		c.gap = behind
		if behind {
			c.gaps++
		}
	}
}

func (c *consumer) event(e *Event) {
	if c.waiting[e.Seq] != nil || c.began && e.Seq <= c.last {
		c.repeats++
		return
	}
	c.waiting[e.Seq] = e
	c.drain()
	c.heard(e.Seq)
}

func (c *consumer) drain() {
	for c.began && c.waiting[c.last+1] != nil {
		c.last++
		e := c.waiting[c.last]
		delete(c.waiting, c.last)
		c.applied[c.last] = true
		c.kinds[e.Ev]++
		if e.Ev == "shoe.loaded" || strings.HasPrefix(e.Ev, "round.") && e.Ev != "round.opened" && e.Ev != "round.settled" {
			c.drawn = e.Seq
		}
		if c.picture != nil && !c.picture.apply(e) {
			c.picture = nil
		}
	}
	c.heard(0)
}

// tableState adopts a state that is ahead, and compares one that is not.
func (c *consumer) tableState(doc *State, body []byte) {
	if c.state != nil && doc.Seq < c.state.Seq {
		return
	}
	c.state, c.bodies["state"] = doc, body
	if !c.began || doc.Seq > c.last {
		c.heard(doc.Seq)
		if !c.began {
			c.first = doc.Seq
		}
		for seq := c.last + 1; c.began && seq <= doc.Seq; seq++ {
			c.stood[seq] = true
		}
		maps.DeleteFunc(c.waiting, func(seq uint64, _ *Event) bool { return seq <= doc.Seq })
		c.began, c.last, c.drawn, c.picture = true, doc.Seq, 0, nil
	}
	if doc.Seq == c.last {
		c.compare(doc)
	}
	c.drain()
}

// compare holds the picture against the documents of its seq.
func (c *consumer) compare(doc *State) {
	want := pictureOf(doc)
	if c.roads != nil && c.roads.Seq <= doc.Seq {
		want.draw(c.roads)
	}
	if c.window != nil && c.window.Seq <= doc.Seq {
		want.window = ""
		if c.window.State == "open" {
			want.window = *c.window.Stage
		}
	}
	if c.picture == nil {
		c.picture = &want
		return
	}
	got := *c.picture
	got.rounds = want.rounds
	if want.bead == nil || got.bead == nil {
		want.bead, want.through, got.bead, got.through = nil, 0, nil, 0
	}
	if want.window == unknown || got.window == unknown {
		got.window, want.window = unknown, unknown
	}
	if c.same++; !reflect.DeepEqual(got, want) {
		c.t.Errorf("silently wrong at seq %d:\nevents    %+v\ndocuments %+v", doc.Seq, got, want)
	}
	if c.picture.window == unknown {
		c.picture.window = want.window
	}
}

// lookAtRoads compares them, or takes them when the picture has none.
func (c *consumer) lookAtRoads() {
	r, p := c.roads, c.picture
	shoe := ""
	if r.ShoeID != nil {
		shoe = *r.ShoeID
	}
	c.heard(r.Seq)
	switch {
	case p == nil || r.Seq > c.last || r.Seq < c.drawn || p.bead == nil && shoe != p.shoe:
		// A newer one follows, or a state.
	case p.bead == nil:
		p.draw(r)
	default:
		want := picture{}
		want.draw(r)
		if c.same++; !slices.Equal(want.bead, p.bead) || want.through != p.through || shoe != p.shoe {
			c.t.Errorf("silently wrong at seq %d:\ndrawn %v through %d of %s\nroads %v through %d of %s", c.last,
				p.bead, p.through, p.shoe, want.bead, want.through, shoe)
		}
	}
}

// poorLine is a consumer's way to the broker: it loses and repeats events, and
// breaks.
type poorLine struct {
	t      testing.TB
	server string
	rng    *rand.Rand
	leave  func()

	mu     sync.Mutex // of all below, and of what the consumer has
	to     *consumer
	served []*consumer
	joins  int // only the latest subscription is heard
	lose   float64
	got    map[uint64]bool // events by seq: given to the consumer, or only lost
	passed [][]byte        // events given to it
	lost   int
}

// join subscribes, again or as somebody new.
func (l *poorLine) join(to *consumer) {
	l.t.Helper()
	l.leave()
	l.mu.Lock()
	if l.to != to {
		l.to, l.got, l.passed, l.served = to, map[uint64]bool{}, nil, append(l.served, to)
	}
	l.joins++
	join := l.joins
	to.joined()
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	ended, err := Subscribe(ctx, Account{Server: "mqtt://" + l.server}, site, desk, func(topic string, _ bool, body []byte) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if join == l.joins {
			l.pass(topic[strings.LastIndexByte(topic, '/')+1:], body)
		}
	})
	if err != nil {
		cancel()
		l.t.Fatal(err)
	}
	l.leave = sync.OnceFunc(func() { cancel(); <-ended })
}

func (l *poorLine) pass(name string, body []byte) {
	if name != "event" {
		l.to.take(name, body)
		return
	}
	var e Envelope
	if err := json.Unmarshal(body, &e); err != nil {
		l.t.Error(err)
	}
	if l.rng.Float64() < l.lose {
		if !l.got[e.Seq] {
			l.got[e.Seq] = false
		}
		l.lost++
		return
	}
	l.got[e.Seq] = true
	l.passed = append(l.passed, body)
	l.to.take(name, body)
	for l.rng.IntN(10) == 0 {
		l.to.take(name, l.passed[l.rng.IntN(len(l.passed))])
	}
}

// mistakes gives the table a void or a correction, if it takes one.
func mistakes(t testing.TB, d *table, rng *rand.Rand) {
	d.mu.Lock()
	open, rounds := d.state.Round.Open, int(d.state.ThroughRound())
	d.mu.Unlock()
	texts := []string{call, voidIt}
	if !open || rng.IntN(2) == 0 {
		face := round.CardAt(rng.IntN(round.Faces))
		texts = []string{fmt.Sprintf(`{"in":"answer","do":"correct","by":"pit","round":%d,"cards":{"P1":"%v"},"as_dealt":true}`, 1+rng.IntN(max(rounds, 1)), face)}
	}
	for _, text := range texts {
		in, err := round.ParseInput([]byte(`{"at":"2026-03-01T20:00:00Z",` + text[1:])) // the table has its own time
		if err != nil {
			t.Fatal(err)
		}
		d.do(in)
	}
}

// TestConsumer: whoever follows the contract has, after losses, repeats, late
// joins and cuts on both sides, the table's state and roads, has noticed every
// gap, and was never wrong in between.
func TestConsumer(t *testing.T) {
	joins, cuts, lost := 0, 0, 0
	all := newConsumer(t)
	for range 2 {
		brokers(t, func(t *testing.T, addr string) {
			l, cut := followAtRandom(t, addr, rand.Uint64())
			l.mu.Lock()
			defer l.mu.Unlock()
			joins, cuts, lost = joins+l.joins, cuts+cut, lost+l.lost
			for _, c := range l.served {
				all.gaps, all.repeats, all.same = all.gaps+c.gaps, all.repeats+c.repeats, all.same+c.same
				for ev, n := range c.kinds {
					all.kinds[ev] += n
				}
			}
		})
	}
	t.Logf("%d events lost, %d joins, %d cuts; %d gaps, %d repeats, %d comparisons; %v",
		lost, joins, cuts, all.gaps, all.repeats, all.same, all.kinds)
	if lost < 50 || joins < 12 || all.gaps < 5 || all.repeats < 10 || all.same < 20 {
		t.Error("too little has happened")
	}
}

func followAtRandom(t *testing.T, addr string, seed uint64) (line *poorLine, cuts int) {
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	d := newTable(t, seed)
	px := newProxy(t, addr)
	publish(t, d, px.addr, func(o *Options) {
		o.HealthEvery, o.Window = time.Second, 1+rng.IntN(16)
	})
	l := &poorLine{t: t, server: addr, rng: rand.New(rand.NewPCG(seed, 2)), leave: func() {}, lose: rng.Float64() / 4}
	t.Cleanup(func() { l.leave() })
	l.join(newConsumer(t))
	for range 30 {
		switch rng.IntN(12) {
		case 0:
			l.join(newConsumer(t))
		case 1:
			l.join(l.to)
		case 2:
			cuts += px.cut()
		case 3, 4:
			l.caughtUp(d)
			mistakes(t, d, rng)
		case 5, 6, 7:
			d.deal(1 + rng.IntN(30))
		case 8, 9, 10, 11:
			for range rng.IntN(15) {
				d.deal(1)
				l.caughtUp(d)
			}
		}
	}
	l.caughtUp(d)
	l.check(d)
	l.leave()
	return l, cuts
}

// caughtUp waits until the consumer has all there is, and its documents.
func (l *poorLine) caughtUp(d *table) {
	l.t.Helper()
	until(l.t, "the consumer catches up", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		c := l.to
		return c.began && c.last == d.last() && !c.gap && c.state != nil && c.state.Seq == c.last && c.roads != nil
	})
}

// check holds the consumer against the table itself.
func (l *poorLine) check(d *table) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	c := l.to
	for name, doc := range map[string]any{"state": StateOf(c.state.Envelope, &d.state), "roads": RoadsOf(c.roads.Envelope, &d.state)} {
		want, err := encode(doc)
		if err != nil {
			l.t.Fatal(err)
		}
		if got := c.bodies[name]; !bytes.Equal(got, want) {
			l.t.Errorf("%s\n%s\nwant\n%s", name, got, want)
		}
	}
	for seq, got := range l.got {
		if !got && seq > c.first && (c.applied[seq] || !c.stood[seq]) {
			l.t.Errorf("event %d was lost, and this went unnoticed", seq)
		}
	}
}

// The sync that a stranger's board sends, written from the contract, is one.
func TestBoardSync(t *testing.T) {
	body, err := exec.Command("/usr/bin/python3", "-B", "-c",
		`import sys, json; sys.path.insert(0, "testdata"); import board; print(json.dumps(board.command("no state")))`).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: apt-get install python3-paho-mqtt\n%s", err, body)
	}
	c, err := parseCommand(body)
	if issued, bad := time.Parse(round.EventTime, c.IssuedAt); err != nil || bad != nil || time.Since(issued).Abs() > time.Minute {
		t.Errorf("%s: %+v, %v, %v", body, c, err, bad)
	}
}
