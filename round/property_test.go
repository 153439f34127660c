package round_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"shoed/round"
)

// seeds of a random test: a fixed few, so that a run is repeatable, and one of
// the day, printed, so that runs differ.
func seeds(t *testing.T, n int) []uint64 {
	all := []uint64{uint64(time.Now().UnixNano())}
	for i := range n {
		all = append(all, uint64(i))
	}
	t.Logf("seeds 0–%d and %d", n-1, all[0])
	return all
}

// randomInput is any input, sensible or not.
func randomInput(r *rand.Rand) round.Input {
	in := round.Input{At: start, Kind: round.Kind(r.IntN(23))}
	card := func() round.Card {
		if r.IntN(8) == 0 {
			return round.Masked
		}
		return round.CardAt(r.IntN(round.Faces))
	}
	if r.IntN(2) == 0 {
		in.Kind = round.InCard // the commonest fact
	}
	in.Card, in.To, in.Pos = card(), round.To(r.IntN(5)), uint8(r.IntN(4))
	in.Again, in.Over, in.Outside = r.IntN(12) == 0, r.IntN(4) == 0, round.Outside(max(0, r.IntN(20)-15))
	in.Box, in.Hand, in.Open, in.On = round.Box(r.IntN(7)), round.Side(r.IntN(3)), r.IntN(2) == 0, r.IntN(2) == 0
	in.Reader, in.Button = round.ReaderSays(r.IntN(4)), round.Button(r.IntN(5))
	in.Decks, in.Code, in.Name = uint8(r.IntN(3)), uint8(r.IntN(8)), []string{"reader", "boxes", "panel", "lamps"}[max(0, r.IntN(8)-4)]
	in.Foreign, in.Line, in.Wire = r.IntN(8) == 0, []string{"call", "P1"}[r.IntN(2)], round.WireSays(r.IntN(4))
	if in.Kind == round.InPlaced && in.Foreign {
		in.Card = 0
	}
	in.Insurance = round.Insurance{Do: round.InsuranceDo(r.IntN(4)), Side: round.Side(r.IntN(3)), WinsOn: round.Outcome(r.IntN(4)),
		Pays: round.Ratio{Num: uint16(r.IntN(5)), Den: uint16(r.IntN(3))}, Spot: round.Side(r.IntN(3))}
	in.Verdict = round.Verdict{Outcome: round.Outcome(r.IntN(3) + 1), PlayerPair: r.IntN(9) == 0, Quit: r.IntN(30) == 0}
	in.Answer = round.Answer{Do: round.Do(r.IntN(13)), By: "anna", Alert: uint32(r.IntN(3)), Where: round.Where(r.IntN(5)), Exposed: r.IntN(5) == 0,
		Round: uint16(max(0, r.IntN(12)-8)), AsDealt: r.IntN(2) == 0}
	for b := range in.Answer.Cards {
		if r.IntN(3) == 0 {
			in.Answer.Cards[b] = card()
		}
	}
	in.Answer.Cards[0] = 0
	return in
}

func randomRules(t *testing.T, r *rand.Rand) round.Rules {
	rules := round.DefaultRules()
	pick := func(texts ...string) { set(t, &rules, texts[r.IntN(len(texts))]) }
	pick("decks=1", "decks=8")
	pick("burn=first_card", "burn=none", "burn=fixed:3", "burn=unchecked")
	pick("deal_order=alternate", "deal_order=pairs")
	pick("rounds_after_cut=0", "rounds_after_cut=1")
	pick("round_start=reader", "round_start=bets", "round_start=button", "round_start=boxes", "round_start=first_card")
	pick("reveal=on_draw", "reveal=on_signal")
	pick("verdict=compare", "verdict=wait")
	pick("deal.extra_card=default", "deal.extra_card=burn", "deal.extra_card=next_round", "deal.extra_card=free_hand")
	pick("reader.gap=default", "reader.gap=void")
	pick("shoe.change_unproven=default", "shoe.change_unproven=accept")
	pick("placement=none", "placement=presence", "placement=rfid")
	pick("card_gap_ms=0", "card_gap_ms=900")
	pick("draw_gate=off", "draw_gate=on")
	pick("insurance_post=none", "insurance_post=dealer")
	pick("reveal_order=any", "reveal_order=player_first")
	pick("insurance.exposed=default", "insurance.exposed=void")
	pick("deal.wrong_box=default", "deal.wrong_box=void")
	pick("deal.double_card=default", "deal.double_card=void")
	pick("reader.out_of_game=default", "reader.out_of_game=pause")
	return rules
}

// TestRandomWalk takes every input in every state that random walks reach: no
// panic, a refused input changes nothing, equal inputs give equal events, and
// what must always hold does.
func TestRandomWalk(t *testing.T) {
	for _, seed := range seeds(t, 60) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := round.New(randomRules(t, r))
		seq, at := uint64(0), start
		for n := range 1500 {
			in := randomInput(r)
			at = at.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			in.At = at
			before := s
			after, events, err := s.Step(in, nil)
			again, eventsAgain, _ := before.Step(in, nil)
			if before != s || after != again || !slices.Equal(events, eventsAgain) {
				t.Fatalf("seed %d step %d: Step is not a pure function of state and input", seed, n)
			}
			if err != nil {
				if after != before || len(events) != 0 {
					t.Fatalf("seed %d step %d: a refused input changed something: %v", seed, n, err)
				}
				continue
			}
			s = after
			for _, e := range events {
				if e.Seq != 0 {
					if e.Seq != seq+1 {
						t.Fatalf("seed %d step %d: seq %d after %d", seed, n, e.Seq, seq)
					}
					seq = e.Seq
				}
			}
			checkInvariants(t, seed, n, &s, events)
			checkDeadline(t, seed, n, s)
			if t.Failed() {
				return
			}
		}
	}
}

// checkDeadline: a tick at the time of the next limit passes it, so that who
// waits for limits never ticks without end.
func checkDeadline(t *testing.T, seed uint64, n int, s round.State) {
	for range 40 { // several may be due one after the other
		due := s.Deadline()
		if due == 0 {
			return
		}
		s = step(t, s, round.Input{At: time.Unix(0, due), Kind: round.InTick})
	}
	t.Errorf("seed %d step %d: 40 ticks, each at its limit, and still one is due", seed, n)
}

func checkInvariants(t *testing.T, seed uint64, n int, s *round.State, events []round.Event) {
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("seed %d step %d: "+format, append([]any{seed, n}, args...)...)
	}
	known, shown := 0, 0
	for i := range s.Shoe.Known {
		known += int(s.Shoe.Known[i])
		shown += int(s.Shoe.Shown[i])
		if s.Shoe.Shown[i] > s.Shoe.Known[i] {
			fail("%v shown %d times, known %d", round.CardAt(i), s.Shoe.Shown[i], s.Shoe.Known[i])
		}
	}
	if known > int(s.Shoe.Out) {
		fail("%d faces known of %d cards out", known, s.Shoe.Out)
	}
	acc := s.Accounted()
	sum := acc.Rounds + acc.Burned + acc.Held + acc.OutOfGame + acc.Void + acc.Drained
	if s.Round.Open {
		sum += uint16(s.Round.N)
	}
	if sum != s.Shoe.Out {
		fail("%d cards out of the shoe, accounted for %d: %+v", s.Shoe.Out, sum, acc)
	}
	checkGate(s, fail)
	holds := false
	for _, a := range s.Alerts {
		holds = holds || a.No != 0 && a.Holds != 0
	}
	if holds != (s.Paused() != 0) {
		fail("paused by %v, but an alert holds: %v", s.Paused(), holds)
	}
	if s.Round.Open && s.Round.Decided || s.Usable > s.Waiting.N {
		fail("round open and decided, or more cards usable than wait")
	}
	for _, e := range events {
		if e.Kind != round.RoundDecided && e.Kind != round.RoundCorrected {
			continue
		}
		p, pk := e.Player.Total()
		b, bk := e.Banker.Total()
		if !pk || !bk || e.Player.N < 2 || e.Banker.N < 2 || e.Outcome != round.OutcomeOf(p, b) {
			fail("decided %v on %v and %v", e.Outcome, e.Player, e.Banker)
		}
	}
}

// checkGate: the reader is not to be locked where a card may be due.
func checkGate(s *round.State, fail func(string, ...any)) {
	if !s.GateShut() {
		return
	}
	r := &s.Round
	if s.Rules.DrawGate != round.GateOn || s.Shoe.Phase != round.ShoeInPlay || s.ReaderDown || s.Manual || s.Waiting.N+s.Next.N > 0 {
		fail("the draw gate is shut without rule, shoe or reader, or with cards held")
	}
	for i := range r.Cards[:r.N] {
		if r.Open && (r.Due != 0 || r.N < 4 || r.Cards[i].Box == 0 || !r.Cards[i].Shown || !r.Cards[i].Card.Known()) {
			fail("the draw gate is shut with %v due after %+v", r.Due, r.Cards[:r.N])
		}
	}
	for _, a := range s.Alerts {
		if a.No != 0 && a.Code == round.DealMissingCard {
			fail("the draw gate is shut with a card missing")
		}
	}
}

// TestUnseenFacesChangeNothing runs two shoes that differ only in faces that
// the table never shows (game.md section 4): their public events are equal,
// byte for byte, and so is the draw gate, which anybody can hear. Rounds with common faces, which are turned or named, and
// rounds with secret ones, which are not, follow each other with mistakes and
// answers; burned, held and stray cards are secret.
func TestUnseenFacesChangeNothing(t *testing.T) {
	decided, shut := 0, 0
	for _, seed := range seeds(t, 400) {
		p := newTwin(t, seed)
		for range 300 {
			p.step()
			if p.s[0].Awaited() != p.s[1].Awaited() || p.s[0].Waits() != p.s[1].Waits() {
				t.Fatalf("seed %d: the lamps tell of unseen faces: %v %v, %v %v", seed, p.s[0].Awaited(), p.s[1].Awaited(), p.s[0].Waits(), p.s[1].Waits())
			}
			if p.s[0].GateShut() != p.s[1].GateShut() {
				t.Fatalf("seed %d: unseen faces move the draw gate", seed)
			}
			if p.s[0].GateShut() && p.s[0].Round.Open {
				shut++
			}
		}
		if string(p.out[0]) != string(p.out[1]) {
			t.Fatalf("seed %d: unseen faces show:\n%s", seed, firstDifference(string(p.out[0]), string(p.out[1])))
		}
		decided += bytes.Count(p.out[0], []byte("round.decided"))
	}
	if decided < 200 || shut < 50 {
		t.Errorf("only %d rounds were decided, and the gate was shut in one %d times: the common ones are not turned", decided, shut)
	}
}

// twin is two tables that get the same inputs but for the faces.
type twin struct {
	t      *testing.T
	r      *rand.Rand
	s      [2]round.State
	out    [2][]byte
	left   [2][round.Faces]int // each shoe's cards: both are legal
	shoe   uint32
	at     time.Time
	secret bool // the faces of the cards drawn now differ
	masked bool // the reader names no faces by itself
}

func newTwin(t *testing.T, seed uint64) *twin {
	p := &twin{t: t, r: rand.New(rand.NewPCG(seed, 2)), at: start, masked: seed%3 == 0}
	rules := round.DefaultRules()
	set(t, &rules, "reveal=on_signal", "burn=fixed:2", "draw_gate=on", []string{"round_start=reader", "round_start=first_card"}[seed%2])
	if seed%7 == 0 {
		set(t, &rules, "round_start=button")
	}
	if seed%11 == 0 {
		set(t, &rules, "verdict=wait")
	}
	if seed%5 == 0 {
		set(t, &rules, "placement=presence")
	}
	for i := range p.s {
		p.s[i] = round.New(rules)
	}
	p.feed(round.Input{Kind: round.InShoe}, 0, 0)
	return p
}

func (p *twin) feed(in round.Input, faces ...round.Card) {
	p.at = p.at.Add(time.Duration(p.r.IntN(4000)) * time.Millisecond)
	in.At = p.at
	for i := range p.s {
		in.Card = faces[i]
		p.out[i], p.s[i] = publicText(p.t, p.s[i], in, p.out[i])
	}
}

// draw is one card: the same in both shoes, or a secret one.
func (p *twin) draw(in round.Input, secret bool) {
	if p.shoe != p.s[0].Shoe.No {
		p.shoe = p.s[0].Shoe.No
		for i := range p.left[0] {
			p.left[0][i], p.left[1][i] = 8, 8
		}
	}
	l, rr := p.r.IntN(round.Faces), p.r.IntN(round.Faces)
	if !secret {
		rr = l
	}
	if p.left[0][l] == 0 || p.left[1][rr] == 0 {
		return
	}
	p.left[0][l]--
	p.left[1][rr]--
	left, right := round.CardAt(l), round.CardAt(rr)
	in.Kind = round.InCard
	if p.masked && in.Outside == 0 {
		left, right = round.Masked, round.Masked
	}
	p.feed(in, left, right)
}

func (p *twin) both(in round.Input) { p.feed(in, 0, 0) }

func (p *twin) answer(dos ...round.Do) {
	p.both(round.Input{Kind: round.InAnswer, Answer: round.Answer{Do: dos[p.r.IntN(len(dos))], By: "anna", Where: round.Where(p.r.IntN(5))}})
}

func (p *twin) step() {
	s, r := &p.s[0], p.r
	if !s.Round.Open {
		p.secret = r.IntN(3) == 0
	}
	n := r.IntN(400)
	if s.Paused() != 0 && n > 40 {
		n = 2 // a pause is mostly answered
	}
	switch n {
	case 0:
		p.both(round.Input{Kind: round.InButton, Button: round.Button(r.IntN(4) + 1)})
	case 1:
		p.draw(round.Input{Outside: round.Outside(r.IntN(4) + 1)}, true)
	case 2, 3, 4:
		p.answer(round.DoConfirm, round.DoVoid, round.DoResume, round.DoHoldCard, round.DoNewShoe, round.DoAck)
	case 5:
		p.both(round.Input{Kind: []round.Kind{round.InRestart, round.InTick, round.InCut, round.InUnread}[r.IntN(4)]})
	case 6:
		p.both(round.Input{Kind: round.InReader, Reader: round.ReaderSays(r.IntN(3) + 1)})
	case 7:
		p.both(round.Input{Kind: round.InVerdict, Verdict: round.Verdict{Outcome: round.Outcome(r.IntN(3) + 1)}})
	case 8:
		p.both(round.Input{Kind: round.InFault, Code: uint8(r.IntN(7) + 1), On: r.IntN(2) == 0})
	case 9:
		p.both(round.Input{Kind: round.InPlaced, Box: round.Box(r.IntN(6) + 1), Foreign: r.IntN(4) == 0})
	case 10:
		p.both(round.Input{Kind: round.InLock, On: r.IntN(2) == 0})
	case 11:
		p.both(round.Input{Kind: round.InLink, Name: []string{"boxes", "panel"}[r.IntN(2)], On: r.IntN(2) == 0})
	default:
		if !s.Round.Open && !s.Started && s.Rules.RoundStart == round.StartButton && n%8 != 0 {
			p.both(round.Input{Kind: round.InButton, Button: round.ButtonStart})
			return
		}
		if s.Round.N >= 4 && s.Round.Due == 0 && s.Round.Open && n%8 != 0 {
			p.turn()
			return
		}
		to, pos := round.To(0), uint8(0)
		if due := s.Round.Due; due != 0 || !s.Round.Open {
			due = max(due, round.P1)
			to, pos = round.To(due.Side()), due.Pos()
		}
		if s.Round.N >= 4 && r.IntN(3) == 0 { // a third card: the reader's own box would give the faces away
			to, pos = 0, 0
		}
		p.draw(round.Input{To: to, Pos: pos}, p.secret || s.Paused() != 0)
	}
}

// turn shows a box or names it, if both shoes have the same faces in the
// round.
func (p *twin) turn() {
	b := round.Box(p.r.IntN(6) + 1)
	for i := range p.s[0].Round.Cards {
		if p.s[0].Round.Cards[i].Card != p.s[1].Round.Cards[i].Card {
			return
		}
	}
	if !p.masked {
		p.both(round.Input{Kind: round.InReveal, Box: b})
		return
	}
	face := round.CardAt(p.r.IntN(round.Faces))
	p.feed(round.Input{Kind: round.InShow, To: round.To(b.Side()), Pos: b.Pos()}, face, face)
}

func publicText(t *testing.T, s round.State, in round.Input, out []byte) ([]byte, round.State) {
	t.Helper()
	s, events, err := s.Step(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if events[i].Seq == 0 {
			continue
		}
		if out, err = events[i].AppendText(out); err != nil {
			t.Fatal(err)
		}
		out = append(out, '\n')
	}
	return out, s
}

func FuzzParseInput(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-02T20:00:00.5Z","in":"card","card":"8s","to":"player","pos":1}`))
	f.Add([]byte(`{"at":"2026-01-02T20:00:00Z","in":"answer","do":"correct","cards":{"P2":"8s"},"alert":"A000001"}`))
	f.Add([]byte(`{"at":"2026-01-02T20:00:00Z","in":"insurance","do":"post","side":"banker","pays":"3:2"}`))
	f.Add([]byte(`{"at":"2026-01-02T20:00:00Z","in":"placed","box":"P1","foreign":true}`))
	f.Add([]byte(`{"at":"2026-01-02T20:00:00Z","in":"placed","box":"P1","card":"8s","foreign":false}`))
	f.Add([]byte(`{"at":"2026-01-02T20:00:00Z","in":"wire","device":"panel","line":"call","what":"bouncing"}`))
	f.Add([]byte(`{"at":"2026-01-02T20:00:00Z","in":"link","device":"boxes","up":false}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		in, err := round.ParseInput(line)
		if err != nil {
			return
		}
		text := in.AppendText(nil)
		again, err := round.ParseInput(text)
		if err != nil || again != in {
			t.Fatalf("%s\nread as %+v\nwritten as %s\nread again as %+v, %v", line, in, text, again, err)
		}
		s := round.New(round.DefaultRules())
		if _, _, err := s.Step(in, nil); err != nil {
			t.Fatalf("%s: parsed, yet Step refuses it: %v", line, err)
		}
	})
}

// TestStateSurvivesJSON: a snapshot is a state as JSON.
func TestStateSurvivesJSON(t *testing.T) {
	for _, seed := range seeds(t, 20) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := round.New(randomRules(t, r))
		for range 300 {
			s, _, _ = s.Step(randomInput(r), nil)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back round.State
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if back != s {
			t.Fatalf("seed %d: the state changed on its way through JSON", seed)
		}
	}
}
