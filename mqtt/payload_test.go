package mqtt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/odds"
	"shoed/round"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden(t *testing.T, name string, message any) {
	t.Helper()
	body, err := encode(message)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *rewrite {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("%s is\n%swant\n%s(with -rewrite it is written anew)", path, &pretty, want)
	}
}

func envelope(kind string, seq uint64) Envelope {
	return Envelope{
		Schema: kind + "/1.0", Site: site, Table: desk, Epoch: "0123456789abcdef", Seq: seq,
		TS: stamp(time.Date(2026, 3, 1, 20, 0, 0, 123_456_789, time.FixedZone("", 7*3600))), Clock: "synced",
	}
}

// play steps a new table through inputs as game.md section 7 writes them,
// without at; a second passes with each.
func play(t *testing.T, rules []string, inputs ...string) round.State {
	t.Helper()
	r := round.DefaultRules()
	for _, rule := range rules {
		if err := r.Set(rule); err != nil {
			t.Fatal(err)
		}
	}
	s := round.New(r)
	for i, text := range inputs {
		at := time.Date(2026, 3, 1, 20, 0, i, 0, time.UTC).Format(time.RFC3339)
		in, err := round.ParseInput([]byte(`{"at":"` + at + `",` + text[1:]))
		if err != nil {
			t.Fatal(err)
		}
		if s, _, err = s.Step(in, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func cards(faces ...string) []string {
	for i, face := range faces {
		faces[i] = `{"in":"card","card":"` + face + `"}`
	}
	return faces
}

var (
	plain = []string{"burn=none", "round_start=first_card"}
	shoe  = `{"in":"shoe","decks":8}`
)

func TestGoldenDocuments(t *testing.T) {
	status := Status{Envelope: envelope("status", 41), State: Online, Instance: "I1", Session: 7, Version: "1.2.3"}
	golden(t, "status-online", status)
	status.State, status.Reason, status.Sim = Offline, "connection lost", true
	golden(t, "status-offline", status)

	golden(t, "info", Info{
		Envelope: envelope("info", 41), Names: map[string]string{"en": "Table 1", "th": "โต๊ะ 1"},
		Game: Game{
			Decks: 8, Rules: []string{"decks=8", "burn=none"}, RulesHash: strings.Repeat("f", 64), RulesRelaxed: []string{},
			Bets:      []Bet{{"banker", "win", "19:20", 0}, {"small", "win", "3:2", 30}},
			Insurance: []Insurance{{1, "banker", "one_hand_shown", "not_shown", "7", "player", "2:1"}},
			RTPMax:    &odds.Fraction{Rat: big.NewRat(9894, 10000)},
		},
		Limits: &Limits{Currency: "THB", Min: 100, Max: 50000, Differential: 200000, Bets: map[string]BetLimit{"tie": {Min: 100, Max: 5000}}},
		Reader: Reader{Protocol: "angel", Masked: new(bool), Device: "/dev/serial/by-id/usb-FTDI"}, Placement: "none", Locales: []string{"en"}, ConfigHash: strings.Repeat("c", 64),
		Software: Software{Version: "1.2.3", Commit: "b4e3538", SHA256: strings.Repeat("0", 64)}, Contract: Contract, TimeZone: "Asia/Bangkok",
		PublicKey: key.Public().(ed25519.PublicKey),
	})
	age, free, low := int64(1234), int64(5_000_000_000), false
	env := envelope("health", 41)
	golden(t, "health", Health{
		Envelope: env, UptimeS: 3600, RSSBytes: 12 << 20, Machine: Machine{DataFreeBytes: &free, Undervoltage: &low},
		Reader: &ReaderHealth{Frames: 99, Refused: map[string]uint64{"checksum": 2, "length": 1}, LastFrameAgeMS: &age},
		MQTT:   Backlog{Outbox: 3, OldestAgeMS: &age, Reconnects: 1}, Storage: "ok",
		Chain: chainOf(&env, &Record{Seq: 44, Head: headOf(44)}, key),
	})
	rev := uint8(0)
	golden(t, "cmd", Command{
		Schema: "cmd/1.0", CmdID: "01JNP5Z7Q8N4W3X2Y1V0T9S8R7", IssuedAt: "2026-03-01T20:00:00.123Z", TTLMS: 30000,
		Expect: &Expect{Epoch: "0123456789abcdef", ShoeID: ShoeID(desk, 731), RoundID: RoundID(desk, 731, 41), Rev: &rev, Alert: AlertID(desk, 123), Phase: PhasePaused},
		Args:   []byte(`{"cards":{"P2":"8s"}}`), Reason: "seen on camera", Sig: "c2lnbmF0dXJl",
	})
	golden(t, "rsp", Rsp{Envelope: envelope("rsp", 41), Reply: Reply{
		CmdID: "01JNP5Z7Q8N4W3X2Y1V0T9S8R7", Status: Rejected, Code: CodeConflict, Message: "rev is not as expected", Result: Current{Alerts: []string{}},
	}})
	golden(t, "rsp-to-nobodys-command", Rsp{Envelope: envelope("rsp", 41), Reply: *Refuse(CodeBadRequest, "cmd_id: want a ULID")})
	given := Given{User: "anna", Command: "void", By: "anna+bela", Seq: 41, Reply: Reply{CmdID: "01JNP5Z7Q8N4W3X2Y1V0T9S8R7", Status: Done, Code: CodeOK},
		Body: Command{Schema: "cmd/1.0", CmdID: "01JNP5Z7Q8N4W3X2Y1V0T9S8R7", IssuedAt: "2026-03-01T20:00:00.123Z", TTLMS: 30000}}
	golden(t, "audit-command", Audit{Event: Event{Envelope: envelope("audit", 41), EventText: round.EventText{Ev: commandEv}}, JSeq: 99, Given: &given})
	golden(t, "replay", ReplayBatch{Envelope: envelope("replay", 41), CmdID: "01JNP5Z7Q8N4W3X2Y1V0T9S8R7", Events: []json.RawMessage{[]byte(`{"seq":41}`)}, Last: true})
	golden(t, "health-before-the-first-frame", Health{Envelope: envelope("health", 0), Reader: &ReaderHealth{Refused: map[string]uint64{}}})
}

func TestGame(t *testing.T) {
	rules := round.DefaultRules()
	strict := gameOf(rules)
	if strict.Decks != 8 || !slices.Equal(strict.Rules, rules.Texts()) || strict.RulesRelaxed == nil || len(strict.RulesRelaxed) > 0 || len(strict.RulesHash) != 64 {
		t.Errorf("%+v", strict)
	}
	if err := rules.Set("shoe.change_unproven=accept"); err != nil {
		t.Fatal(err)
	}
	loose := gameOf(rules)
	if !slices.Equal(loose.RulesRelaxed, []string{"shoe.change_unproven=accept"}) || loose.RulesHash == strict.RulesHash {
		t.Errorf("%+v", loose)
	}
}

// An alert for the full view only is neither counted nor named.
func TestPrivateAlertIsNotTold(t *testing.T) {
	s := play(t, plain, append(append([]string{shoe}, cards("2s", "Th")...), `{"in":"button","name":"call"}`)...)
	before := StateOf(envelope("state", 41), &s)
	s.Alerts[1] = s.Alerts[0]
	s.Alerts[0].No |= 1 << 31
	if after := StateOf(envelope("state", 41), &s); !reflect.DeepEqual(before, after) || before.AlertsActive != 1 {
		t.Errorf("%+v\n%+v", before, after)
	}
}

func TestGoldenState(t *testing.T) {
	squeeze := append([]string{"reveal=on_signal"}, plain...)
	for _, c := range []struct {
		name   string
		rules  []string
		inputs []string
		phase  Phase
	}{
		{"closed", plain, nil, PhaseClosed},
		{"burning", []string{"round_start=first_card"}, []string{shoe}, PhaseBurning},
		{"ready", plain, []string{shoe}, PhaseReady},
		{"betting", plain, []string{shoe, `{"in":"bets","open":true}`}, PhaseBetting},
		{"no-more-bets", plain, []string{shoe, `{"in":"bets","open":false}`}, PhaseNoMoreBets},
		{"dealing", plain, append([]string{shoe}, cards("2s", "Th", "3d")...), PhaseDealing},
		{"dealing-unseen", squeeze, append([]string{shoe}, cards("2s", "Th", "3d", "7c")...), PhaseDealing},
		{"insurance", plain, append([]string{shoe}, cards("6s", "Th", "Td", "5c")...), PhaseInsurance},
		{"decided", plain, append([]string{shoe}, cards("9s", "Th", "Td", "7c")...), PhaseDecided},
		{"betting-after-a-round", plain, append(append([]string{shoe}, cards("9s", "Th", "Td", "7c")...), `{"in":"bets","open":true}`), PhaseBetting},
		{"paused", plain, append(append([]string{shoe}, cards("2s", "Th")...), `{"in":"button","name":"call"}`), PhasePaused},
		{"void", plain, append(append([]string{shoe}, cards("2s", "Th")...), `{"in":"button","name":"call"}`, `{"in":"answer","do":"void","by":"pit"}`), PhaseVoid},
		{"last-round-over", plain, append([]string{shoe, `{"in":"cut"}`}, cards("9s", "Th", "Td", "7c")...), PhaseLastRoundOver},
		{"reader-down", plain, []string{shoe, `{"in":"link","device":"reader","up":false}`}, PhaseReady},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, c.rules, c.inputs...)
			doc := StateOf(envelope("state", 41), &s)
			if doc.Phase != c.phase {
				t.Errorf("phase %s, want %s", doc.Phase, c.phase)
			}
			golden(t, "state-"+c.name, doc)
		})
	}
}

func TestGoldenAlerts(t *testing.T) {
	s := play(t, plain, dealt([]string{"2s", "Th"}, call, `{"in":"link","device":"reader","up":false}`, `{"in":"answer","do":"ack","by":"pit","alert":"A000001"}`)...)
	raised := func(uint64) *round.EventText {
		return &round.EventText{Expected: "the round going on", Seen: "the dealer calls", Rule: "game.md 5"}
	}
	golden(t, "alerts", AlertsOf(envelope("alerts", 41), &s, raised))
	golden(t, "alerts-without-evidence", AlertsOf(envelope("alerts", 41), &s, func(uint64) *round.EventText { return nil }))
	calm := play(t, plain)
	wires := play(t, plain, shoe, `{"in":"wire","device":"panel","line":"call","what":"stuck"}`, `{"in":"wire","device":"boxes","line":"P1","what":"bouncing"}`,
		`{"in":"wire","device":"panel","line":"call","what":"stuck"}`)
	golden(t, "alerts-wires", AlertsOf(envelope("alerts", 41), &wires, func(uint64) *round.EventText {
		return &round.EventText{Expected: "every wire of panel well", Seen: "line call is stuck", Rule: "game.md 5", Device: "panel", Line: "call"}
	}))
	golden(t, "alerts-none", AlertsOf(envelope("alerts", 41), &calm, raised))
}

// Every kind of event keeps all its fields on the way from the journal.
func TestGoldenEvents(t *testing.T) {
	card := func(text string) round.Card {
		c, err := round.ParseCard(text)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	hand := func(faces ...string) (h round.Hand) {
		for _, face := range faces {
			h.Cards[h.N] = card(face)
			h.N++
		}
		return h
	}
	at := time.Date(2026, 3, 1, 13, 0, 0, 123_456_789, time.UTC)
	events := []round.Event{
		{Kind: round.ShoeLoaded, Decks: 8, Cards: 416},
		{Kind: round.ShoeBurned, Cards: 7, Card: card("7h")},
		{Kind: round.ShoeCutCard, Cards: 400, Last: true},
		{Kind: round.ShoeReconciled, Cards: 410, Shown: 380, Lost: 6},
		{Kind: round.RoundOpened, Round: 41, Bets: 1<<round.BetPlayer | 1<<round.BetTie},
		{Kind: round.CardDealt, Round: 41, Hand: round.Banker, Pos: 3, Card: round.Masked},
		{Kind: round.CardDealt, Round: 41, Card: round.Masked, Held: true},
		{Kind: round.CardShown, Round: 41, Hand: round.Banker, Pos: 3, Card: card("Th")},
		{Kind: round.RoundDecided, Round: 41, Outcome: round.BankerWins, Player: hand("2s", "3d"), Banker: hand("Th", "7c"), Tags: round.TagPlayerPair},
		{Kind: round.RoundCorrected, Round: 41, Rev: 1, Outcome: round.Tie, Was: round.BankerWins, Player: hand("2s", "??"), Banker: hand()},
		{Kind: round.RoundVoided, Round: 41, Code: round.DealerCall},
		{Kind: round.TablePaused, Code: round.ReaderUnread},
		{Kind: round.AlertRaised, Round: 41, Alert: 123, Code: round.DealExtraCard, Priority: 2,
			Expected: round.Fact{Kind: round.FactNoCardDue}, Seen: round.Fact{Kind: round.FactCard}},
		{Kind: round.AlertCleared, Alert: 123, Code: round.DealExtraCard, By: "pit"},
		{Kind: round.AnswerRefused, Do: round.DoResume, Refusal: round.RefusedBlocked, By: "pit"},
		{Kind: round.ReaderNoted, Note: round.NoteReaderFault, Fault: 3},
		{Kind: round.DeviceLost, Device: "reader"},
		{Kind: round.RoundSettled, Round: 41, Rev: 1, NBets: 2},
		{Kind: round.InsuranceOpened, Round: 41, Stage: round.StageFourCards, ClosesAt: at.UnixNano(), NOffers: 1},
		{Kind: round.InsuranceClosed, Round: 41, Stage: round.StageFourCards, Why: round.CloseTimer},
	}
	settled, opened := &events[len(events)-3], &events[len(events)-2]
	settled.Settled[0] = round.Settled{Bet: round.BetTie, Result: round.BetWon, Pays: round.Ratio{Num: 8, Den: 1}}
	settled.Settled[1] = round.Settled{Bet: round.BetPlayer, Result: round.BetPush}
	opened.Offers[0] = round.Offer{Row: 12, Side: round.Banker, WinsOn: round.Tie, Pays: round.Ratio{Num: 3, Den: 2}, Win: 1 << 60, Push: 2, Lose: 3, Den: 1<<60 + 5}
	for i := range events {
		e := &events[i]
		e.Seq, e.At, e.Shoe = uint64(i+1), at, 731
		body, err := e.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		env := envelope("event", e.Seq)
		env.TS, env.Delayed = stamp(e.At), i == 0
		doc, err := EventOf(env, Record{Seq: e.Seq, At: e.At, Body: body, Head: headOf(e.Seq)}, key)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("event-%02d-%s", i+1, e.Kind), doc)
		sent, err := encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		sameFields(t, body, sent)
	}
}

// sameFields checks that a message has every field of the journal's line,
// alike, but at and alert, and beyond those only the envelope and ids.
func sameFields(t *testing.T, line, message []byte) {
	t.Helper()
	var kept, sent map[string]any
	if err := json.Unmarshal(line, &kept); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(message, &sent); err != nil {
		t.Fatal(err)
	}
	if a, ok := kept["alert"]; ok && sent["alert"] != "table-1-"+a.(string) {
		t.Errorf("alert %v is sent as %v", a, sent["alert"])
	}
	if kept["at"] != sent["ts"] {
		t.Errorf("at %v is sent as %v", kept["at"], sent["ts"])
	}
	delete(kept, "alert")
	delete(kept, "at")
	for name, v := range kept {
		if !reflect.DeepEqual(v, sent[name]) {
			t.Errorf("%s: %v is sent as %v", name, v, sent[name])
		}
		delete(sent, name)
	}
	for _, name := range strings.Fields("alert schema site table epoch ts clock delayed shoe_id round_id chain") {
		delete(sent, name)
	}
	if len(sent) > 0 {
		t.Errorf("sent beyond the journal's fields: %v", sent)
	}
}

// Whatever a game leads to goes out as the journal has it.
func TestEventsOfGames(t *testing.T) {
	d := newTable(t, 21)
	d.deal(2000)
	kinds := map[string]int{}
	for _, r := range d.records {
		doc, err := EventOf(envelope("event", r.Seq), r, key)
		if err != nil {
			t.Fatal(err)
		}
		doc.TS = stamp(r.At)
		body, err := encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		sameFields(t, r.Body, body)
		kinds[doc.Ev]++
	}
	if len(kinds) < 8 {
		t.Errorf("few kinds of event: %v", kinds)
	}
}

func TestEventOfRefuses(t *testing.T) {
	for _, body := range []string{"", "{", "null", `{"seq":2,"ev":"round.opened"}`, `{"seq":1}`, `{"seq":1,"ev":7}`, `[1]`} {
		if _, err := EventOf(envelope("event", 1), Record{Seq: 1, Body: []byte(body)}, key); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
}

func FuzzEventOf(f *testing.F) {
	f.Add([]byte(`{"seq":1,"at":"2026-03-01T20:00:00.000Z","ev":"card.dealt","shoe":731,"round":41,"hand":"banker","pos":3,"card":"??"}`))
	f.Add([]byte(`{"seq":1,"ev":"alert.raised","alert":"A000123","answers":[]}`))
	f.Add([]byte(`{"seq":1,"ev":"round.decided","player":{"cards":["8s"],"total":null},"tags":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := EventOf(envelope("event", 1), Record{Seq: 1, Body: body}, key)
		if err != nil {
			return
		}
		sent, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var again Event
		if err := json.Unmarshal(sent, &again); err != nil || !reflect.DeepEqual(doc, again) {
			t.Errorf("%v: %s\n%+v\n%+v", err, sent, doc, again)
		}
	})
}

func TestEncodeBound(t *testing.T) {
	if _, err := encode(Status{Reason: strings.Repeat("x", maxMessage)}); err == nil {
		t.Error("a message over 32 KB")
	}
}

// game.md section 4: two runs that differ only in unseen faces say the same.
func TestUnseenFacesAreNotTold(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	differed, insured := 0, 0
	for game := 0; game < 300 || insured == 0 && game < 5000; game++ {
		rules := round.DefaultRules()
		for _, rule := range append([]string{"reveal=on_signal"}, plain...) {
			if err := rules.Set(rule); err != nil {
				t.Fatal(err)
			}
		}
		a, b := round.New(rules), round.New(rules)
		// Six cards, of which the runs agree in those that are shown.
		shown := rng.IntN(64)
		deck := rng.Perm(round.Faces)
		n := 4 + rng.IntN(3)
		both := func(in round.Input, other round.Card) {
			t.Helper()
			in.At = time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC)
			var err error
			if a, _, err = a.Step(in, nil); err != nil {
				t.Fatal(err)
			}
			if in.Kind == round.InCard {
				in.Card = other
			}
			if b, _, err = b.Step(in, nil); err != nil {
				t.Fatal(err)
			}
			docsA, docsB := tellAll(t, &a), tellAll(t, &b)
			if !bytes.Equal(docsA, docsB) {
				t.Fatalf("game %d: unseen faces are told:\n%s\n%s", game, docsA, docsB)
			}
			if a != b && bytes.Contains(docsA, []byte(`"den"`)) {
				insured++
			}
		}
		both(round.Input{Kind: round.InShoe}, 0)
		for i := range n {
			face, other := round.CardAt(deck[i]), round.CardAt(deck[10+i])
			if shown>>i&1 == 1 {
				other = face
			}
			both(round.Input{Kind: round.InCard, Card: face}, other)
		}
		for i, box := range []round.Box{round.P1, round.B1, round.P2, round.B2} {
			if shown>>i&1 == 1 {
				both(round.Input{Kind: round.InReveal, Box: box}, 0)
			}
		}
		if a != b {
			differed++
		}
	}
	if differed < 100 {
		t.Errorf("the states differed in %d games only: nothing is tested", differed)
	}
	if insured == 0 {
		t.Error("no insurance was open with cards unseen: of it nothing is tested")
	}
}

// tellAll is every document that tells of the cards.
func tellAll(t *testing.T, s *round.State) (all []byte) {
	t.Helper()
	p := &Publisher{o: Options{Outbox: Outbox{Events: func(uint64, int) ([]Record, error) { return nil, nil }}}}
	for _, d := range documents {
		if d.name == "info" {
			continue
		}
		body, err := encode(d.build(p, envelope(d.name, s.Seq), s))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, body...), '\n')
	}
	return all
}

// TestInfoTellsWhatIsOffered: bets and insurance as the house pays them, and
// the return of the best bet, seed 001's 98.94 %.
func TestInfoTellsWhatIsOffered(t *testing.T) {
	rules := round.DefaultRules()
	game := gameOf(rules)
	if len(game.Bets) != 36 || game.Bets[1] != (Bet{"banker", "win", "19:20", 0}) {
		t.Errorf("%d bets, the second %+v", len(game.Bets), game.Bets[1])
	}
	if len(game.Insurance) != 24 || game.Insurance[0] != (Insurance{1, "banker", "one_hand_shown", "not_shown", "7", "player", "2:1"}) {
		t.Errorf("%d rows of insurance, the first %+v", len(game.Insurance), game.Insurance[0])
	}
	if got := game.RTPMax.FloatString(4); got != "0.9894" {
		t.Errorf("rtp_max %s, seed 001 prints 98.94 %%", got)
	}
	for _, text := range []string{"bets_offered=player+tie", "insurance=off"} {
		if err := rules.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if game = gameOf(rules); len(game.Bets) != 2 || len(game.Insurance) != 0 || game.RTPMax.FloatString(4) != "0.9876" {
		t.Errorf("%+v", game)
	}
}
