package mqtt

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/odds"
	"shoed/round"
)

var (
	natural    = []string{"9s", "Th", "Td", "7c"} // Player 9, Banker 7
	fourStage  = []string{"6s", "Th", "Td", "5c"} // Player 6 stands, Banker 5 draws
	call       = `{"in":"button","name":"call"}`
	voidIt     = `{"in":"answer","do":"void","by":"pit"}`
	voidOffers = `{"in":"answer","do":"void_insurance","by":"pit"}`
)

// dealt is a shoe with the faces drawn from it, then the inputs.
func dealt(faces []string, then ...string) []string {
	return append(append([]string{shoe}, cards(slices.Clone(faces)...)...), then...)
}

func TestGoldenRoads(t *testing.T) {
	tie := []string{"9s", "Th", "Td", "9c"}
	rounds := slices.Concat(tie, natural, fourStage, []string{"2h"}, natural, []string{"2s", "Th"})
	for _, c := range []struct {
		name    string
		inputs  []string
		through uint16
	}{
		{"no-shoe", nil, 0},
		{"new-shoe", []string{shoe}, 0},
		{"rounds", dealt(rounds), 4},
		{"void", dealt(rounds, call, voidIt), 5},
		{"corrected", append(dealt(natural), `{"in":"answer","do":"correct","by":"pit","round":1,"cards":{"P1":"6s"},"as_dealt":true}`), 1},
		{"next-shoe", append(append(dealt(natural), `{"in":"cut"}`), dealt(nil)...), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, plain, c.inputs...)
			doc := RoadsOf(envelope("roads", 41), &s)
			if through := doc.ThroughRound; (through == nil) != (c.through == 0) || through != nil && *through != c.through {
				t.Errorf("through round %v, want %d", through, c.through)
			}
			golden(t, "roads-"+c.name, doc)
		})
	}
}

func TestGoldenInsurance(t *testing.T) {
	squeeze := append([]string{"reveal=on_signal"}, plain...)
	for _, c := range []struct {
		name   string
		rules  []string
		inputs []string
		state  string
	}{
		{"no-shoe", plain, nil, "closed"},
		{"no-round", plain, []string{shoe}, "closed"},
		{"no-window", plain, dealt(natural), "closed"},
		{"open", plain, dealt(fourStage), "open"},
		{"open-one-hand", squeeze, dealt([]string{"Ts", "Th", "2d", "7c"}, `{"in":"reveal","hand":"banker"}`), "open"},
		{"closed", plain, dealt(append(slices.Clone(fourStage), "2h")), "closed"},
		{"void", plain, dealt(fourStage, voidOffers), "void"},
		{"void-round", plain, dealt(fourStage, call, voidIt), "void"},
		{"next-round", plain, dealt(append(slices.Clone(fourStage), "2h", "3h")), "closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, c.rules, c.inputs...)
			doc := InsuranceOf(envelope("insurance", 41), &s)
			if doc.State != c.state || (doc.State == "open") != (len(doc.Offers) > 0) || (doc.State == "open") != (doc.ClosesAt != nil) {
				t.Errorf("%+v, want %s", doc, c.state)
			}
			golden(t, "insurance-"+c.name, doc)
		})
	}
}

// An open window offers what its event does, to the last integer.
func TestInsuranceIsTheEvents(t *testing.T) {
	d := newTable(t, 31)
	windows := 0
	d.seen = func(e *round.Event, after *round.State) {
		if e.Kind != round.InsuranceOpened {
			return
		}
		if err := odds.Fill(e); err != nil {
			t.Fatal(err)
		}
		windows++
		want := e.Text()
		doc := InsuranceOf(envelope("insurance", e.Seq), after)
		if !reflect.DeepEqual(doc.Offers, want.Offers) || *doc.Stage != want.Stage || *doc.ClosesAt != want.ClosesAt ||
			*doc.RoundID != RoundID(desk, *want.Shoe, *want.Round) || *doc.WindowID != fmt.Sprintf("%s-W%d", *doc.RoundID, e.Stage) {
			t.Errorf("event %+v\ndocument %+v", want, doc)
		}
		if doc.Offers[0].Den == nil || doc.Offers[0].Edge != nil {
			t.Errorf("offer %+v", doc.Offers[0])
		}
	}
	d.deal(2000)
	if windows < 100 {
		t.Errorf("%d windows only", windows)
	}
}

// Two states that SameRoads takes for alike have the same document.
func TestSameRoads(t *testing.T) {
	d := newTable(t, 32)
	told := d.state
	same, other := 0, 0
	for range 2000 {
		d.deal(1)
		alike := reflect.DeepEqual(RoadsOf(Envelope{Table: desk}, &told), RoadsOf(Envelope{Table: desk}, &d.state))
		if said := d.state.SameRoads(&told); said != alike {
			t.Fatalf("round %d: SameRoads %v, the documents %v", d.state.Round.No, said, alike)
		}
		if alike {
			same++
		} else {
			other++
		}
		told = d.state
	}
	if same < 1000 || other < 300 {
		t.Errorf("%d alike, %d not", same, other)
	}
	// Two corrections between two looks leave the tally as it was.
	told.Past[0], told.Past[1] = round.Past{Outcome: round.PlayerWins}, round.Past{Outcome: round.BankerWins}
	swapped := told
	swapped.Past[0], swapped.Past[1] = told.Past[1], told.Past[0]
	if swapped.SameRoads(&told) {
		t.Error("corrected rounds go unseen")
	}
}

// TestRoadsSize bounds the message. The contract's 4 KB cannot hold every
// shoe: of 8 decks, 100 rounds of any shape, with every flag and the longest
// names stay under 6.5 KB.
func TestRoadsSize(t *testing.T) {
	const fullShoe, most = 100, 6656
	env := envelope("roads", 1<<63)
	env.Site, env.Table = strings.Repeat("s", 32), strings.Repeat("t", 32)
	env.Clock, env.Sim = "holdover", true
	largest := 0
	size := func(letters string) {
		s := round.New(round.DefaultRules())
		s.Shoe = round.Shoe{No: 999_999, Phase: round.ShoeInPlay, Decks: 8, Rounds: fullShoe}
		for i := range fullShoe {
			s.Past[i] = round.Past{
				Outcome: map[byte]round.Outcome{'P': round.PlayerWins, 'B': round.BankerWins, 'T': round.Tie}[letters[i]],
				Tags:    round.TagNatural | round.TagPlayerPair | round.TagBankerPair,
			}
		}
		doc := RoadsOf(env, &s)
		if len(doc.Bead) != fullShoe || *doc.ThroughRound != fullShoe {
			t.Fatalf("%d cells through round %d", len(doc.Bead), *doc.ThroughRound)
		}
		body, err := encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		if largest = max(largest, len(body)); len(body) > most {
			t.Errorf("%s: %d bytes, want at most %d", letters, len(body), most)
		}
	}
	for _, period := range []string{"P", "PB", "PPB", "PPBB", "PBB", "PPPBB", "PPPPPPPPB", "PBT", "T"} {
		size(strings.Repeat(period, fullShoe)[:fullShoe])
	}
	rng := rand.New(rand.NewPCG(1, 33))
	for range 1000 {
		letters := make([]byte, fullShoe)
		for i := range letters {
			letters[i] = "PB"[rng.IntN(2)]
		}
		size(string(letters))
	}
	t.Logf("%d rounds of the worst: %d bytes", fullShoe, largest)
}

// contract.md, Order 4: per change the events, then roads and insurance if
// they changed, and the state last.
func TestDocumentOrder(t *testing.T) {
	brokers(t, func(t *testing.T, addr string) {
		d := newTable(t, 34)
		px := newProxy(t, addr)
		in := newInbox(t, addr)
		publish(t, d, px.addr, func(o *Options) { o.HealthEvery = time.Hour })
		in.has("online", func(m message) bool { return m.State == Online })
		card := func(text string) round.Input {
			c, err := round.ParseCard(text)
			if err != nil {
				t.Fatal(err)
			}
			return round.Input{Kind: round.InCard, Card: c}
		}
		for _, step := range []struct {
			in   round.Input
			want []string
		}{
			{round.Input{Kind: round.InShoe}, []string{"roads", "state"}},
			{card("6s"), []string{"insurance", "state"}}, // of another round
			{card("Th"), []string{"state"}},
			{card("Td"), []string{"state"}},
			{card("5c"), []string{"insurance", "state"}},          // a window opens
			{card("2h"), []string{"roads", "insurance", "state"}}, // it closes, the round is decided
			{card("9s"), []string{"insurance", "state"}},
			{card("Th"), []string{"state"}},
			{card("Td"), []string{"state"}},
			{card("7c"), []string{"roads", "state"}}, // decided without insurance
		} {
			before := len(px.packets())
			d.do(step.in)
			in.hasState(d.last())
			got := slices.DeleteFunc(sequence(t, px.packets()[before:]), func(word string) bool { return strings.HasPrefix(word, "event ") })
			for i := range got {
				got[i] = filepath.Base(strings.TrimSuffix(got[i], " qos=1 retain=true"))
			}
			if !slices.Equal(got, step.want) {
				t.Errorf("%v: %v, want %v", step.in.Card, got, step.want)
			}
		}
		in.check(d.last())

		late := newInbox(t, addr)
		for _, name := range announced {
			late.has(name, func(m message) bool { return m.name == name && m.retained })
		}
		was, is := in.of("roads"), late.of("roads")
		if len(is) != 1 || !slices.Equal(is[0].body, was[len(was)-1].body) || !strings.Contains(string(is[0].body), `"through_round":2,"rows":6,"bead":["B","Pn"]`) {
			t.Errorf("retained roads: %s", is[0].body)
		}
		if doc := late.of("insurance"); len(doc) != 1 || !strings.Contains(string(doc[0].body), `"window_id":null,"state":"closed","round_id":"table-1-S000001-R002","stage":null,"offers":[],"closes_at":null`) {
			t.Errorf("retained insurance: %s", doc[0].body)
		}
	})
}

// A clock that is set is no change of a document.
func TestClockIsNoChange(t *testing.T) {
	d := newTable(t, 35)
	px := newProxy(t, openBroker(t).TCP)
	in := newInbox(t, px.target)
	clocks := []string{"unset", "synced"}
	n := 0 // used by Run only
	r := publish(t, d, px.addr, func(o *Options) {
		o.HealthEvery = time.Hour
		o.Clock = func() string { n++; return clocks[n%2] }
	})
	in.has("online", func(m message) bool { return m.State == Online })
	for range 5 {
		r.Wake()
	}
	d.do(round.Input{Kind: round.InShoe})
	in.hasState(d.last())
	if n := len(in.of("insurance")); n != 1 {
		t.Errorf("%d documents of the same insurance", n)
	}
}

func BenchmarkDocuments(b *testing.B) {
	d := newTable(b, 36)
	d.deal(300)
	for _, doc := range documents[1:] {
		b.Run(doc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(doc.build(nil, envelope(doc.name, 1), &d.state)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("same roads", func(b *testing.B) {
		told := d.state
		for b.Loop() {
			if !d.state.SameRoads(&told) {
				b.Fatal("not the same")
			}
		}
	})
}
