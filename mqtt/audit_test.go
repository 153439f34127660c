package mqtt

import (
	"encoding/json"
	"testing"
	"time"

	"shoed/round"
)

// audit gives the full view of the table.
func (d *table) audit(after, through uint64, max int) ([]Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var records []Record
	for _, r := range d.full {
		if r.No > after && r.No <= through && len(records) < max {
			records = append(records, r)
		}
	}
	return records, nil
}

// given puts a command on record.
func (d *table) given(g Given) {
	body, err := json.Marshal(g)
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = append(d.full, Record{No: uint64(len(d.full) + 1), At: d.at, Command: true, Body: body})
}

// TestAudit: surveillance gets every record of the full view in order and
// without a gap, over lost connections too, each before the public event that
// follows it; of commands that name cards not the cards.
func TestAudit(t *testing.T) {
	brokers(t, func(t *testing.T, addr string) {
		d := newTable(t, 61)
		px := newProxy(t, addr)
		in := newInbox(t, addr)
		in.listen(addr, "audit")
		publish(t, d, px.addr, func(o *Options) { o.Outbox.Audit = d.audit; o.Window = 3 })
		for n := range 6 {
			d.deal(40)
			d.do(round.Input{Kind: round.InReader, Reader: round.ReaderStandby}) // for the full view only
			body, err := NewCommand(d.at, map[string]any{"cards": map[string]string{"P1": "8s"}})
			if err != nil {
				t.Fatal(err)
			}
			d.given(Given{User: "anna", Command: "correct", By: "anna", Body: body, Reply: Reply{CmdID: body.CmdID, Status: Done, Code: CodeOK}})
			d.deal(40)
			if n%2 == 1 {
				px.cut()
			}
			in.hasEvent(d.last())
		}
		in.has("audit of the last event", func(m message) bool { return m.name == "audit" && m.Seq == d.last() }) // over its own connection
		d.mu.Lock()
		full := d.full
		d.mu.Unlock()
		last, lastSeq, private, commands := uint64(0), uint64(0), 0, 0
		for _, m := range in.of("audit") {
			var a Audit
			if err := json.Unmarshal(m.body, &a); err != nil {
				t.Fatal(err)
			}
			if a.JSeq <= last { // a repeat
				if !a.Delayed && a.Seq != 0 {
					t.Errorf("record %d comes again and is not marked", a.JSeq)
				}
				last = a.JSeq
				continue
			}
			if a.JSeq != last+1 {
				t.Fatalf("record %d follows record %d", a.JSeq, last)
			}
			last = a.JSeq
			r := full[a.JSeq-1]
			switch {
			case r.Command:
				commands++
				if a.Ev != commandEv || a.Given == nil || a.Given.Command != "correct" || len(a.Given.Body.Args) > 0 {
					t.Errorf("record %d: %s", a.JSeq, m.body)
				}
			case r.Seq == 0:
				private++
			case a.Seq != r.Seq:
				t.Errorf("record %d has seq %d, want %d", a.JSeq, a.Seq, r.Seq)
			}
			if a.Seq < lastSeq {
				t.Errorf("record %d: seq %d after %d", a.JSeq, a.Seq, lastSeq)
			}
			lastSeq = a.Seq
		}
		if lastSeq != d.last() || private < 6 || commands != 6 {
			t.Errorf("through event %d of %d, %d private ones, %d commands", lastSeq, d.last(), private, commands)
		}
	})
}

// An offer's edge is in audit, and nowhere else.
func TestAuditHasTheEdge(t *testing.T) {
	d := newTable(t, 31)
	p := &Publisher{o: Options{Site: site, Table: desk, Epoch: "e1", Key: key, Now: time.Now, Clock: func() string { return "synced" }}}
	edges := 0
	for range 40 {
		d.deal(50)
	}
	for _, r := range d.full {
		a, err := p.auditOf(r, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range a.Offers {
			if a.Ev == round.InsuranceOpened.String() && o.Den != nil && o.Edge == nil {
				t.Errorf("%s %s: no edge", a.Ev, o.Side)
			}
			if o.Edge != nil {
				edges++
				golden(t, "audit-offer", a)
			}
		}
		if edges > 0 {
			return
		}
	}
	t.Error("no offer with an edge")
}
