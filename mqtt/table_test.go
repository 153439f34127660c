package mqtt

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"shoed/odds"
	"shoed/round"
)

// table is a journal and a core in memory: it deals and keeps the events.
type table struct {
	t   testing.TB
	rng *rand.Rand

	mu         sync.Mutex
	at         time.Time
	state      round.State
	shoe       []round.Card
	records    []Record
	full       []Record // private events too, and commands
	delivered  uint64
	deliveries []uint64
	sessions   uint64
	broken     error // of Events
	behind     int   // steps by which the adopted state lags the journal
	adopted    []round.State
	wake       func()
	seen       func(*round.Event, *round.State) // optional: each public event, and the state after its step
}

func newTable(t testing.TB, seed uint64) *table {
	rules := round.DefaultRules()
	for _, rule := range []string{"burn=none", "round_start=first_card"} {
		if err := rules.Set(rule); err != nil {
			t.Fatal(err)
		}
	}
	return &table{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), at: time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC),
		state: round.New(rules), wake: func() {},
	}
}

var factsOfTests = Facts{Setup: Setup{ConfigHash: strings.Repeat("c", 64)}}

func (d *table) outbox() Outbox {
	return Outbox{
		Facts: func() *Facts { return &factsOfTests },
		Events: func(after uint64, max int) ([]Record, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.broken != nil {
				return nil, d.broken
			}
			rest := d.records[min(after, uint64(len(d.records))):]
			return rest[:min(len(rest), max)], nil
		},
		Deliver: func(seq uint64) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			if seq <= d.delivered || seq > uint64(len(d.records)) {
				d.t.Errorf("cursor moved from %d to %d of %d", d.delivered, seq, len(d.records))
			}
			d.delivered = seq
			d.deliveries = append(d.deliveries, seq)
			return nil
		},
		Delivered: func() uint64 { return d.cursor() },
		Session: func() (uint64, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.sessions++
			return d.sessions, nil
		},
		Table: func() round.State {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.behind > 0 {
				return d.adopted[0]
			}
			return d.state
		},
	}
}

func (d *table) cursor() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.delivered
}

func (d *table) last() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(len(d.records))
}

// now is when the table's last input was.
func (d *table) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

// fail makes the outbox unreadable, nil makes it readable again.
func (d *table) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = err
}

var errBroken = errors.New("injected: the disk is gone")

// deal draws cards, each durable with what follows from it before the
// publisher is woken.
func (d *table) deal(cards int) {
	for range cards {
		d.mu.Lock()
		if len(d.shoe) < 20 {
			d.shuffle()
		}
		d.step(round.Input{Kind: round.InCard, Card: d.shoe[0]})
		d.shoe = d.shoe[1:]
		wake := d.wake
		d.mu.Unlock()
		wake()
	}
}

// do gives the table another input.
func (d *table) do(in round.Input) {
	d.mu.Lock()
	d.step(in)
	wake := d.wake
	d.mu.Unlock()
	wake()
}

// shuffle ends the shoe with its cut card and loads the next.
func (d *table) shuffle() {
	if d.state.Shoe.No > 0 {
		d.step(round.Input{Kind: round.InCut})
		for ; d.state.Round.Open; d.shoe = d.shoe[1:] {
			d.step(round.Input{Kind: round.InCard, Card: d.shoe[0]})
		}
	}
	d.step(round.Input{Kind: round.InShoe})
	d.shoe = nil
	for range d.state.Shoe.Decks {
		for i := range round.Faces {
			d.shoe = append(d.shoe, round.CardAt(i))
		}
	}
	d.rng.Shuffle(len(d.shoe), func(i, j int) { d.shoe[i], d.shoe[j] = d.shoe[j], d.shoe[i] })
}

func (d *table) step(in round.Input) {
	d.at = d.at.Add(time.Second)
	in.At = d.at
	next, events, err := d.state.Step(in, nil)
	if err != nil {
		d.t.Error(err)
		return
	}
	for i := range events {
		e := &events[i]
		_ = odds.Fill(e)
		body, err := e.AppendText(nil)
		if err != nil {
			d.t.Error(err)
		}
		d.full = append(d.full, Record{No: uint64(len(d.full) + 1), Seq: e.Seq, At: e.At, Body: body, Head: headOf(e.Seq)})
		if e.Seq == 0 {
			continue
		}
		d.records = append(d.records, d.full[len(d.full)-1])
		if d.seen != nil {
			d.seen(e, &next)
		}
	}
	if d.behind > 0 {
		d.adopted = append(d.adopted, d.state)
		d.adopted = d.adopted[max(len(d.adopted)-d.behind, 0):]
	}
	d.state = next
}
