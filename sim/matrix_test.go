package sim

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoed/round"
)

var (
	rewrite     = flag.Bool("rewrite", false, "write sim/testdata/matrix.md anew")
	cleanRounds = flag.Int("clean-rounds", 30_000, "clean rounds dealt over all settings")
	matrixSeed  = flag.Uint64("matrix-seed", 0, "of the shoes; 0 takes one of the day")
)

const matrixFile = "testdata/matrix.md"

func seedOf(t *testing.T) uint64 {
	seed := *matrixSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (-matrix-seed)", seed)
	return seed
}

// nonsense says why no table is set so; "" where one may be.
func (s setting) nonsense() string {
	switch {
	case s.Start == round.StartReader && s.Reader == readerBare:
		return "`round_start=reader` needs a reader that says boxes: no round would ever open"
	case s.Start == round.StartBoxes && !s.watched():
		return "`round_start=boxes` needs sensors: nothing would say that the boxes are empty"
	}
	return ""
}

// settings are all that make sense, in a fixed order.
func settings() (all []setting) {
	for placement := round.PlacementNone; placement <= round.PlacementRFID; placement++ {
		for reader := readerOpen; reader <= readerMasked; reader++ {
			for reveal := round.RevealOnDraw; reveal <= round.RevealOnSignal; reveal++ {
				for start := round.StartReader; start <= round.StartFirstCard; start++ {
					s := setting{placement, reader, reveal, start}
					if s.nonsense() == "" {
						all = append(all, s)
					}
				}
			}
		}
	}
	return all
}

// raised is an alert, and whether a deadline made it or the input of a beat.
type raised struct {
	code     round.Code
	priority uint8
	at       time.Time
	beat     int
	tick     bool
}

// watch is shoed at the table: its state, fed with inputs and with a tick at each
// deadline, as the daemon does.
type watch struct {
	state   round.State
	at      time.Time
	out     []round.Event
	alerts  []raised
	offers  []round.Offer // of the open window
	decided []round.Event
	beat    int
	shut    int // beats after which the draw gate was shut
}

func newWatch(s setting, decks uint8) *watch {
	return &watch{state: round.New(s.rules(decks)), at: time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)}
}

func (w *watch) step(in round.Input, tick bool) error {
	in.At = w.at
	var err error
	if w.state, w.out, err = w.state.Step(in, w.out[:0]); err != nil {
		return err
	}
	for i := range w.out {
		switch e := &w.out[i]; e.Kind {
		case round.AlertRaised:
			w.alerts = append(w.alerts, raised{e.Code, e.Priority, w.at, w.beat, tick})
		case round.InsuranceOpened:
			w.offers = slices.Clone(e.Offers[:e.NOffers])
		case round.InsuranceClosed, round.InsuranceVoided:
			w.offers = nil
		case round.RoundDecided:
			w.decided = append(w.decided, *e)
		}
	}
	return nil
}

// wait lets time pass, with a tick at each deadline.
func (w *watch) wait(until time.Time) error {
	for range 50 {
		d := w.state.Deadline()
		if d == 0 || d > until.UnixNano() {
			w.at = until
			return nil
		}
		if due := time.Unix(0, d).UTC(); due.After(w.at) {
			w.at = due
		}
		if err := w.step(round.Input{Kind: round.InTick}, true); err != nil {
			return err
		}
	}
	return fmt.Errorf("50 ticks did not settle a deadline of %v", time.Unix(0, w.state.Deadline()).UTC())
}

// take is one beat: its wait, then its input.
func (w *watch) take(b *beat) error {
	if err := w.wait(w.at.Add(b.wait)); err != nil {
		return err
	}
	in := b.in
	if b.of == rates {
		if len(w.offers) == 0 {
			return nil
		}
		in.Insurance = layOut(w.offers[0], b.lays)
	}
	if in.Kind == round.InCard && w.state.GateShut() {
		return fmt.Errorf("the draw gate is shut before card %v of beat %d", in.Card, w.beat)
	}
	if err := w.step(in, false); err != nil {
		return err
	}
	if w.state.GateShut() {
		w.shut++
	}
	return nil
}

// ready is a table at which a mistake can be made, with shoed watching it.
type ready struct {
	watch watch
	table *table
	shoe  bool   // a new shoe comes first
	seed  uint64 // of that one
}

// play is what is to happen, with the mistake's shoe when it arranges one.
func (r *ready) play(m *mistake, at int, pace uint64) *play {
	t := r.table.clone(pace)
	p := &play{setting: t.setting, table: t}
	if r.shoe {
		t.shoe = NewShoe(rand.New(rand.NewPCG(r.seed, 3)), int(t.Decks), t.Behind)
	}
	if m.stack != nil && at >= 0 {
		m.stack(t, at)
	}
	if r.shoe {
		p.open(t.shoe)
	}
	if t.shoe.Left() < maxRound {
		return p // nothing but the round's first card is drawn
	}
	p.deal()
	p.round()
	return p
}

// trial makes a mistake once. happened is false when there was none to see; wrong
// says what is not as it must be.
func (r *ready) trial(m *mistake, p *play, codes []round.Code) (happened bool, wrong string) {
	w := r.watch
	w.out, w.alerts, w.decided, w.offers = nil, nil, nil, nil
	mark, markAt := -1, time.Time{}
	for i := range p.beats {
		b := &p.beats[i]
		w.beat = i
		if b.mark && b.ifOpen && len(w.offers) == 0 {
			return false, ""
		}
		if err := w.take(b); err != nil {
			return true, err.Error()
		}
		if b.mark {
			mark, markAt = i, w.at
		}
		if w.stopped(codes) {
			break
		}
	}
	if len(codes) == 0 {
		return true, judge(m, p, codes, w.alerts, mark, markAt)
	}
	if mark < 0 {
		return true, "the mistake has no mark"
	}
	w.beat++
	if end := markAt.Add(p.beats[mark].limit); end.After(w.at) {
		if err := w.wait(end); err != nil {
			return true, err.Error()
		}
	}
	return true, judge(m, p, codes, w.alerts, mark, markAt)
}

// stopped: the alert stands that the mistake must raise. One that is only noted
// stops nothing: the round goes on to its end.
func (w *watch) stopped(codes []round.Code) bool {
	return slices.ContainsFunc(w.alerts, func(a raised) bool { return a.priority < 4 && slices.Contains(codes, a.code) })
}

// judge compares the alerts with what must come of the mistake: one of the codes
// when it first can be known, and none of P1 to P3 before it.
func judge(m *mistake, p *play, codes []round.Code, alerts []raised, mark int, markAt time.Time) string {
	seen := false
	for _, a := range alerts {
		switch {
		case slices.Contains(m.Before, a.code):
		case len(codes) == 0:
			return fmt.Sprintf("alarm %s at beat %d", a.code, a.beat)
		case slices.Contains(codes, a.code):
			limit := p.beats[mark].limit
			onTime := !a.tick && a.beat == mark
			if limit > 0 {
				onTime = !a.at.Before(markAt) && !a.at.After(markAt.Add(limit))
			}
			if !onTime {
				return fmt.Sprintf("%s at beat %d, %v after beat %d, which shows the mistake", a.code, a.beat, a.at.Sub(markAt), mark)
			}
			if seen = true; a.priority < 4 {
				return ""
			}
		case a.priority < 4:
			return fmt.Sprintf("false alarm %s at beat %d", a.code, a.beat)
		}
	}
	if !seen {
		return undetected
	}
	return ""
}

const undetected = "not detected"

// shapes are how a round can go: every one of them is tried.
func shape(p *play) string {
	s := fmt.Sprintf("%d %v", len(p.cards), p.boxes[len(p.cards)-1])
	if oneHand(p) {
		s += " insured"
	}
	if natural(p) {
		s += " natural"
	}
	return s
}

const (
	eachShape = 3 // rounds of each shape
	eachShoe  = 4 // shoes for each mistake at a shoe's begin or end
	shapesAll = 8 // 4 cards with or without natural and insurance, 5 with B3 or P3, 6
)

// prepare deals clean shoes and keeps what is needed before each kind of place.
func prepare(s setting, seed uint64) (map[where][]ready, error) {
	all := map[where][]ready{}
	kept := map[string]int{}
	for n := uint64(0); len(all[inRound]) < eachShape*shapesAll && n < 6; n++ {
		if err := prepareRounds(s, seed+n, kept, all); err != nil {
			return nil, err
		}
	}
	for n := range uint64(eachShoe) {
		t := newTable(s, 8, 20, seed+n)
		all[atOpening] = append(all[atOpening], ready{watch: *newWatch(s, 8), table: t, shoe: true, seed: seed + n})
		for _, end := range []struct {
			where  where
			behind int
		}{{smallShoe, 20}, {atEnd, 20}, {lateCut, 7}, {runDown, 0}} {
			r, err := prepareSmall(s, end.where, end.behind, seed+n)
			if err != nil {
				return nil, err
			}
			all[end.where] = append(all[end.where], r)
		}
	}
	return all, nil
}

// prepareRounds keeps rounds of every shape, from the third of a shoe on while
// more than 80 cards are left.
func prepareRounds(s setting, seed uint64, kept map[string]int, all map[where][]ready) error {
	t, w := newTable(s, 8, 20, seed), newWatch(s, 8)
	for n := 0; t.shoe == nil || t.shoe.Left() > 80; n++ {
		r := ready{watch: *w}
		if t.shoe != nil {
			r.table = t.clone(seed + uint64(n))
		}
		p := t.next()
		if n >= 2 && kept[shape(p)] < eachShape {
			kept[shape(p)]++
			all[inRound] = append(all[inRound], r)
		}
		if err := w.clean(p); err != nil {
			return err
		}
	}
	return nil
}

// prepareSmall plays a shoe of one deck up to a place.
func prepareSmall(s setting, at where, behind int, seed uint64) (ready, error) {
	for ; ; seed += eachShoe {
		t, w := newTable(s, 1, behind, seed), newWatch(s, 1)
		p := &play{setting: s, table: t}
		p.open(NewShoe(t.cards, 1, behind))
		for {
			if err := w.clean(p); err != nil {
				return ready{}, err
			}
			r := ready{watch: *w, table: t.clone(seed)}
			if left := t.shoe.Left(); at == smallShoe || at == runDown && left > 0 && left < maxRound {
				return r, nil
			} else if left < maxRound {
				break // another shoe
			}
			if p = t.next(); t.last && at != runDown {
				return r, nil
			}
		}
	}
}

// clean plays what has no mistake in it.
func (w *watch) clean(p *play) error { return w.expect(p, nil) }

// expect plays a round that raises just these alerts and is decided as dealt.
func (w *watch) expect(p *play, codes []round.Code) error {
	w.alerts, w.decided = w.alerts[:0], w.decided[:0]
	for i := range p.beats {
		if err := w.take(&p.beats[i]); err != nil {
			return err
		}
	}
	if !slices.EqualFunc(w.alerts, codes, func(a raised, code round.Code) bool { return a.code == code }) {
		return fmt.Errorf("%+v, want %v, in round %v %v, at %+v", w.alerts, codes, p.cards, p.boxes, p.setting)
	}
	if len(p.cards) == 0 {
		return nil
	}
	v := p.verdict()
	if len(w.decided) != 1 || w.decided[0].Outcome != v.Outcome || int(w.decided[0].Player.N+w.decided[0].Banker.N) != len(p.cards) {
		return fmt.Errorf("round %v %v decided as %+v", p.cards, p.boxes, w.decided)
	}
	return nil
}

// cell is what a setting makes of a mistake.
type cell struct {
	text   string // 100%, or a reason
	why    bool   // text is a reason
	cannot bool   // of those why it cannot happen
	trials int
}

const all100 = "100%"

// tryAll makes a mistake at every place of the prepared rounds.
func tryAll(t *testing.T, m *mistake, s setting, tables []ready, places map[int]int) cell {
	if m.Cannot != nil {
		if why := m.Cannot(s); why != "" {
			return cell{text: why, why: true, cannot: true}
		}
	}
	codes, why := m.Seen(s)
	trials, failed, quiet := 0, 0, 0
	for n := range tables {
		for at, p := range tables[n].made(m, uint64(n)) {
			happened, wrong := tables[n].trial(m, p, codes)
			if !happened {
				continue
			}
			trials++
			places[at]++
			switch {
			case wrong == undetected && why != "":
				quiet++
			case wrong != "" && why == "":
				if failed++; failed <= 2 {
					t.Errorf("%s, at %d of %v %v: %s", m.Name, at, p.cards, p.boxes, wrong)
				}
			}
		}
	}
	switch {
	case trials == 0:
		t.Errorf("%s: it could not be made at all", m.Name)
	case why == "":
		return cell{text: all100, trials: trials}
	case quiet == 0:
		t.Errorf("%s is said to be undetectable (%s), but every trial raised an alert", m.Name, why)
	}
	return cell{text: why, why: true, trials: trials}
}

// made is the mistake at every place of one table's round.
func (r *ready) made(m *mistake, pace uint64) iter.Seq2[int, *play] {
	return func(yield func(int, *play) bool) {
		ats := []int{0}
		if p := r.play(m, -1, pace); len(p.cards) > 0 {
			ats = m.at(p)
		}
		for _, at := range ats {
			p := r.play(m, at, pace)
			if len(p.cards) > 0 && !slices.Contains(m.at(p), at) {
				continue // the arranged cards make another round
			}
			m.inject(p, at)
			if !yield(at, p) {
				return
			}
		}
	}
}

// TestMatrix makes every mistake in every setting at every card where it can be
// made, over random shoes, and compares what is detected with testdata/matrix.md
// (game.md section 5).
func TestMatrix(t *testing.T) {
	seed := seedOf(t)
	mistakes := mistakes()
	var mu sync.Mutex
	cells, places := found{}, map[string]map[int]int{}
	for _, m := range mistakes {
		cells[m.Name], places[m.Name] = map[setting]cell{}, map[int]int{}
	}
	t.Run("settings", func(t *testing.T) {
		for n, s := range settings() {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				tables, err := prepare(s, seed+uint64(n)*1000)
				if err != nil {
					t.Fatal(err)
				}
				for i := range mistakes {
					m := &mistakes[i]
					at := map[int]int{}
					c := tryAll(t, m, s, tables[m.where], at)
					mu.Lock()
					cells[m.Name][s] = c
					for p, n := range at {
						places[m.Name][p] += n
					}
					mu.Unlock()
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	checkPlaces(t, mistakes, places)
	text := render(mistakes, cells)
	t.Logf("%d trials\n%s", countTrials(cells), text)
	golden(t, text)
}

func golden(t *testing.T, text string) {
	if *rewrite {
		if err := os.WriteFile(matrixFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := os.ReadFile(matrixFile); err != nil || string(want) != text {
		t.Errorf("%s is not what was found (%v): run go test ./sim -run TestMatrix -rewrite and read the difference", matrixFile, err)
	}
}

// TestReadme: what cannot be detected is said to whoever chooses a table's
// sensors, in the same words.
func TestReadme(t *testing.T) {
	matrix, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(matrix), "## What cannot be detected\n")
	if !found || !strings.Contains(string(readme), "### What cannot be detected\n"+strings.TrimRight(list, "\n")) {
		t.Errorf("the README's list is not that of %s: copy it", matrixFile)
	}
}

// checkPlaces: a mistake that can be made at several cards was made at each.
func checkPlaces(t *testing.T, mistakes []mistake, places map[string]map[int]int) {
	for _, m := range mistakes {
		at := slices.Sorted(maps.Keys(places[m.Name]))
		for i := range at {
			if i > 0 && at[i] != at[i-1]+1 {
				t.Errorf("%s was made at %v: some are missing", m.Name, at)
			}
		}
	}
}

func countTrials(cells found) (n int) {
	for _, of := range cells {
		for _, c := range of {
			n += c.trials
		}
	}
	return n
}

// TestCleanRounds: no alert at all, every round decided as it was dealt, and the
// draw gate never shut before a card, in rounds without a mistake over all settings.
func TestCleanRounds(t *testing.T) {
	seed, settings := seedOf(t), settings()
	each := (*cleanRounds + len(settings) - 1) / len(settings)
	t.Run("settings", func(t *testing.T) {
		for n, s := range settings {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				table, w := newTable(s, 8, 14+n%10, seed+uint64(n)*1000+1), newWatch(s, 8)
				w.state.NextRules.DrawGate = round.GateOn
				for i := range each {
					if err := w.clean(table.next()); err != nil {
						t.Fatalf("round %d: %v", i, err)
					}
				}
				if signalled := s.Start != round.StartReader && s.Start != round.StartFirstCard; signalled && w.shut < each {
					t.Errorf("the draw gate was shut after %d beats of %d rounds", w.shut, each)
				}
			})
		}
	})
	t.Logf("%d clean rounds over %d settings", each*len(settings), len(settings))
}

var (
	placementNames = []string{"", "none", "presence", "rfid"}
	readerNames    = []string{"", "open", "bare", "masked"}
	revealNames    = []string{"", "on_draw", "on_signal"}
	startNames     = []string{"", "reader", "bets", "button", "boxes", "first_card"}
)

func (s setting) String() string {
	return strings.Join([]string{placementNames[s.Placement], readerNames[s.Reader], revealNames[s.Reveal], startNames[s.Start]}, ",")
}

// judge lets nothing pass but the right code at the right time.
func TestJudge(t *testing.T) {
	at := time.Date(2026, 1, 2, 20, 0, 0, 0, time.UTC)
	m := &mistake{Before: []round.Code{round.DealerCall}}
	now := &play{beats: make([]beat, 3)}
	within := &play{beats: []beat{{}, {limit: settle}, {}}}
	codes := []round.Code{round.DealWrongBox, round.DealSelfCorrected}
	for _, c := range []struct {
		name   string
		p      *play
		codes  []round.Code
		alerts []raised
		ok     bool
	}{
		{"at the input", now, codes, []raised{{round.DealWrongBox, 1, at, 1, false}}, true},
		{"after what comes with it", now, codes, []raised{{round.DealerCall, 2, at, 0, false}, {round.DealWrongBox, 1, at, 1, false}}, true},
		{"none", now, codes, nil, false},
		{"an input late", now, codes, []raised{{round.DealWrongBox, 1, at.Add(time.Second), 2, false}}, false},
		{"an input early", now, codes, []raised{{round.DealWrongBox, 1, at, 0, false}}, false},
		{"by a tick", now, codes, []raised{{round.DealWrongBox, 1, at, 1, true}}, false},
		{"another code", now, codes, []raised{{round.DealLate, 3, at, 1, false}}, false},
		{"a false alarm before", now, codes, []raised{{round.DealLate, 3, at, 0, false}, {round.DealWrongBox, 1, at, 1, false}}, false},
		{"a false alarm after a note", now, codes, []raised{{round.DealSelfCorrected, 4, at, 1, false}, {round.DealLate, 3, at, 2, false}}, false},
		{"in time", within, codes, []raised{{round.DealWrongBox, 1, at.Add(settle), 2, true}}, true},
		{"too late", within, codes, []raised{{round.DealWrongBox, 1, at.Add(settle + 1), 2, true}}, false},
		{"too early", within, codes, []raised{{round.DealWrongBox, 1, at.Add(-1), 0, true}}, false},
		{"undetectable, but noted", now, nil, []raised{{round.DealSelfCorrected, 4, at, 1, false}}, false},
	} {
		if wrong := judge(m, c.p, c.codes, c.alerts, 1, at); (wrong == "") != c.ok {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}
