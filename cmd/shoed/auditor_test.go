package main

import (
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	paho "github.com/eclipse/paho.mqtt.golang"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
)

// screen is a board that has just been switched on.
type screen struct {
	mu   sync.Mutex
	seen map[string]mqtt.Envelope
	on   bool
}

func (b *screen) take(topic string, _ bool, payload []byte) {
	var m mqtt.Status
	if json.Unmarshal(payload, &m) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name := topic[strings.LastIndexByte(topic, '/')+1:]
	if b.seen == nil {
		b.seen = map[string]mqtt.Envelope{}
	}
	b.seen[name] = m.Envelope
	if name == "status" {
		b.on = m.State == mqtt.Online && m.Epoch != "another"
	}
}

func (b *screen) complete(last uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range []string{"info", "roads", "insurance", "alerts"} {
		if b.seen[name].Schema == "" {
			return false
		}
	}
	return b.on && b.seen["state"].Seq >= last
}

// auditor keeps the contiguous chain of events, whichever way they come, and
// the replies to everybody.
type auditor struct {
	mu       sync.Mutex
	epoch    string
	chain    []mqtt.Event // the one numbered n is at n-1
	compared int          // of them, with the journal
	repeats  int          // of events
	again    int          // of replies
	replies  map[string][]mqtt.Rsp
	wrong    []error
}

func (a *auditor) take(_ paho.Client, m paho.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.message(m.Topic(), m.Payload()); err != nil {
		a.wrong = append(a.wrong, err)
	}
}

func (a *auditor) message(topic string, payload []byte) error {
	if len(payload) == 0 { // a document is wiped
		return nil
	}
	if err := follows(topic, payload); err != nil {
		return err
	}
	switch strings.Split(topic, "/")[4] {
	case "event":
		return a.event(payload)
	case "replay":
		var b mqtt.ReplayBatch
		if err := json.Unmarshal(payload, &b); err != nil {
			return err
		}
		for _, e := range b.Events {
			if err := a.event(e); err != nil {
				return err
			}
		}
	case "rsp":
		var r mqtt.Rsp
		if err := json.Unmarshal(payload, &r); err != nil {
			return err
		}
		a.replies[r.CmdID] = append(a.replies[r.CmdID], r)
		if r.Duplicate {
			a.again++
		}
	}
	return nil
}

// event takes the next event. One that comes again must say the same; one that
// comes too early is not taken, so that those before it are asked for.
func (a *auditor) event(payload []byte) error {
	var e mqtt.Event
	if err := json.Unmarshal(payload, &e); err != nil {
		return err
	}
	a.epoch = cmp.Or(a.epoch, e.Epoch)
	e.Delayed, e.Clock = false, "" // not of the event
	switch n := uint64(len(a.chain)); {
	case e.Epoch != a.epoch || e.Seq == 0:
		return fmt.Errorf("event %d of epoch %s: %s", e.Seq, e.Epoch, payload)
	case e.Seq == n+1:
		a.chain = append(a.chain, e)
	case e.Seq <= n:
		a.repeats++
		if was, is := text(&a.chain[e.Seq-1]), text(&e); was != is {
			return fmt.Errorf("event %d came as\n%s\nand again as\n%s", e.Seq, was, is)
		}
	}
	return nil
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (a *auditor) last() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return uint64(len(a.chain))
}

func (a *auditor) heardEpoch() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.epoch
}

func (a *auditor) repliesTo(id string) []mqtt.Rsp {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.replies[id]), func(r mqtt.Rsp) bool { return r.Code == mqtt.CodeBusy })
}

// noRoom tells whether a command was refused because others of its user wait for
// a second person: they may wait for a minute.
func (a *auditor) noRoom(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.replies[id], func(r mqtt.Rsp) bool { return strings.Contains(r.Message, "wait for another person") })
}

// compare holds the chain against the journal, from where it last ended.
func (a *auditor) compare(r *journal.Reader, key ed25519.PrivateKey, counts *tally) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts.add("event repeated", a.repeats)
	counts.add("reply repeated", a.again)
	a.repeats, a.again = 0, 0
	for a.compared < len(a.chain) {
		records, err := r.Events(uint64(a.compared), 256)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return fmt.Errorf("event %d came, and is not in the journal", a.compared+1)
		}
		for _, rec := range records[:min(len(records), len(a.chain)-a.compared)] {
			got := &a.chain[a.compared]
			a.compared++
			want, err := mqtt.EventOf(got.Envelope, outboxRecord(rec), key)
			if err != nil {
				return err
			}
			want.TS = rec.At.UTC().Format(round.EventTime)
			if rec.Seq != uint64(a.compared) || text(&want) != text(got) {
				return fmt.Errorf("event %d came as\n%s\nand is in the journal as\n%s", got.Seq, text(got), text(&want))
			}
			if want.Ev == round.RoundDecided.String() {
				counts.add("round decided", 1)
			}
			counts.add("event", 1)
		}
	}
	return errors.Join(a.wrong...)
}

// same refuses replies to one command that differ in more than that they are
// repeats: only one that it is accepted, and one that says what came of it.
func same(replies []mqtt.Rsp) error {
	var accepted, final string
	for _, r := range replies {
		r.Duplicate = false
		now := fmt.Sprint(r.Seq, text(&r.Reply))
		first := &final
		if r.Status == mqtt.Accepted {
			first = &accepted
		}
		if *first = cmp.Or(*first, now); *first != now {
			return fmt.Errorf("was answered\n%s\nand then\n%s", *first, now)
		}
	}
	return nil
}
