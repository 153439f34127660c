package round_test

import (
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
	in := round.Input{At: start, Kind: round.Kind(r.IntN(22))}
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
	in.Decks, in.Code, in.Name = uint8(r.IntN(3)), uint8(r.IntN(8)), "reader"
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
			if t.Failed() {
				return
			}
		}
	}
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

// TestUnseenFacesChangeNothing runs two shoes that differ only in faces that
// the table never shows (game.md section 4): their public events are equal,
// byte for byte. Faces are drawn so that both shoes are legal.
func TestUnseenFacesChangeNothing(t *testing.T) {
	for _, seed := range seeds(t, 300) {
		r := rand.New(rand.NewPCG(seed, 2))
		rules := round.DefaultRules()
		set(t, &rules, "reveal=on_signal", "burn=fixed:2", []string{"round_start=reader", "round_start=first_card"}[seed%2])
		left, right := round.New(rules), round.New(rules)
		deckL, deckR := rand.New(rand.NewPCG(seed, 3)).Perm(8*round.Faces), rand.New(rand.NewPCG(seed, 4)).Perm(8*round.Faces)
		next, shownAny := 0, false
		var outL, outR []byte
		feed := func(in round.Input, l, rr round.Card) {
			a, b := in, in
			a.Card, b.Card = l, rr
			outL, left = publicText(t, left, a, outL)
			outR, right = publicText(t, right, b, outR)
		}
		draw := func(in round.Input) {
			if next < len(deckL) {
				feed(in, round.CardAt(deckL[next]%round.Faces), round.CardAt(deckR[next]%round.Faces))
				next++
			}
		}
		feed(round.Input{At: start, Kind: round.InShoe}, 0, 0)
		for range 40 {
			switch r.IntN(12) {
			case 0:
				feed(round.Input{At: start, Kind: round.InButton, Button: round.ButtonCall}, 0, 0)
				draw(round.Input{At: start, Kind: round.InCard})
				answer(feed, round.Answer{Do: round.DoHoldCard, Where: round.Where(r.IntN(4) + 1)})
				answer(feed, round.Answer{Do: []round.Do{round.DoResume, round.DoVoid}[r.IntN(2)]})
			case 1:
				draw(round.Input{At: start, Kind: round.InCard, Outside: round.Outside(r.IntN(4) + 1)})
			case 2:
				feed(round.Input{At: start, Kind: round.InButton, Button: round.ButtonEnd}, 0, 0)
			case 3:
				answer(feed, round.Answer{Do: []round.Do{round.DoConfirm, round.DoVoid, round.DoResume, round.DoHoldCard}[r.IntN(4)], Where: round.Where(r.IntN(5))})
			case 4:
				feed(round.Input{At: start, Kind: []round.Kind{round.InRestart, round.InTick, round.InCut, round.InUnread}[r.IntN(4)]}, 0, 0)
			case 5:
				feed(round.Input{At: start, Kind: round.InReader, Reader: round.ReaderSays(r.IntN(3) + 1)}, 0, 0)
			case 6:
				feed(round.Input{At: start, Kind: round.InVerdict, Verdict: round.Verdict{Outcome: round.Tie}}, 0, 0)
			case 7:
				feed(round.Input{At: start, Kind: round.InFault, Code: uint8(r.IntN(7) + 1), On: r.IntN(2) == 0}, 0, 0)
			default:
				to := []round.To{0, round.ToPlayer, round.ToBanker}[r.IntN(3)]
				pos := uint8(0)
				if to != 0 {
					pos = uint8(r.IntN(3) + 1)
				}
				draw(round.Input{At: start, Kind: round.InCard, To: to, Pos: pos})
			}
		}
		shownAny = shownAny || left.Last.No != 0
		if shownAny {
			t.Fatalf("seed %d: a round was decided although nothing was revealed", seed)
		}
		if string(outL) != string(outR) {
			t.Fatalf("seed %d: unseen faces show:\n%s", seed, firstDifference(string(outL), string(outR)))
		}
	}
}

func answer(feed func(round.Input, round.Card, round.Card), a round.Answer) {
	a.By = "anna"
	feed(round.Input{At: start, Kind: round.InAnswer, Answer: a}, 0, 0)
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
