package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// shoes appends n runs of 200 records: a snapshot and 199 others, of which 19 are public events.
func shoes(t *testing.T, j *Journal, n int, at time.Time) {
	t.Helper()
	for range n {
		records := make([]Record, 200)
		seq := j.LastSeq()
		for i := range records {
			r := Record{At: at.Add(time.Duration(i) * time.Second), Kind: Input, Body: make([]byte, 300)}
			if i == 0 {
				r.Kind = Snapshot
			} else if i%10 == 0 {
				seq++
				r.Kind, r.Seq = Event, seq
			}
			records[i] = r
		}
		if err := j.Append(records); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Hour)
	}
}

func mustPrune(t *testing.T, j *Journal) Pruned {
	t.Helper()
	p, err := j.Prune()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func deliverAll(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Deliver(j.LastSeq()); err != nil {
		t.Fatal(err)
	}
}

func TestPruneBySize(t *testing.T) {
	path := journalPath(t)
	const bound = 400 << 10
	j, _ := mustOpen(t, path, Options{MaxBytes: bound, Now: func() time.Time { return start }})
	shoes(t, j, 30, start)
	before, hash := j.end()
	lastSeq := j.LastSeq()

	p := mustPrune(t, j)
	if p.Records != 0 || p.Bytes < bound || !strings.Contains(p.Kept, "event 1 was not delivered") {
		t.Fatalf("nothing was delivered: %+v", p)
	}
	if no, h := j.end(); no != before || h != hash {
		t.Fatalf("a Prune that dropped nothing moved the head to %d", no)
	}

	deliverAll(t, j)
	if p = mustPrune(t, j); p.Records != runsPerPrune*200 || !strings.Contains(p.Kept, "call again") {
		t.Fatalf("the first call: %+v", p)
	}
	for calls := 0; p.Kept != ""; calls++ {
		if p = mustPrune(t, j); calls > 5 {
			t.Fatalf("no end: %+v", p)
		}
	}
	if p.Bytes > bound || p.Bytes < bound/2 {
		t.Errorf("pruned to %d bytes", p.Bytes)
	}
	kept := readAll(t, j, 0)
	if kept[0].Kind != Snapshot {
		t.Errorf("the first record kept is a %v", kept[0].Kind)
	}
	notes := 0
	dropped := uint64(0)
	for _, r := range kept {
		if r.Kind == Note {
			var n note
			if err := json.Unmarshal(r.Body, &n); err != nil || n.Note != "pruned" || n.Reason != "size" || n.From != dropped+1 {
				t.Errorf("note %s: %v", r.Body, err)
			}
			dropped, notes = n.To, notes+1
		}
	}
	if dropped+1 != kept[0].No || notes == 0 {
		t.Errorf("%d notes up to record %d, kept from %d", notes, dropped, kept[0].No)
	}
	if _, err := j.Events(0, 1); !errors.Is(err, ErrPruned) {
		t.Errorf("events that are gone: %v", err)
	}
	if j.LastSeq() != lastSeq {
		t.Errorf("last seq %d became %d", lastSeq, j.LastSeq())
	}
	if r := mustVerify(t, path, Head{Seq: 1}, lastHead(t, j)); r.FirstSeq == 1 { // what is gone proves nothing
		t.Errorf("first event kept: %d", r.FirstSeq)
	}
	mustClose(t, j)
	st, err := os.Stat(path)
	if err != nil || st.Size() > bound+(freeReserve+16)*4096 {
		t.Errorf("the file has %d bytes: %v", st.Size(), err)
	}

	j, o := mustOpen(t, path, Options{})
	if o.Pruned != dropped || o.Records+o.Pruned != before+uint64(notes) {
		t.Errorf("opened: %+v", o)
	}
	shoes(t, j, 1, start)
	mustVerify(t, path)
}

// Also when every event is gone, the next one has the next number, and the newest run stays whatever the bounds.
func TestPruneKeepsNewestRun(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{MaxBytes: 1})
	shoes(t, j, 3, start)
	if err := j.Append([]Record{{At: start, Kind: Snapshot, Body: []byte("state")}}); err != nil {
		t.Fatal(err)
	}
	deliverAll(t, j)
	lastSeq := j.LastSeq()
	p := mustPrune(t, j)
	if p.Records != 600 || !strings.Contains(p.Kept, "newest run") {
		t.Errorf("%+v", p)
	}
	if p = mustPrune(t, j); p.Records != 0 || p.Kept == "" {
		t.Errorf("again: %+v", p)
	}
	j.abandon()
	j, _ = mustOpen(t, path, Options{})
	snapshot, ok, err := j.LastSnapshot()
	if err != nil || !ok || string(snapshot.Body) != "state" || j.LastSeq() != lastSeq || j.Delivered() != lastSeq {
		t.Errorf("snapshot %v %v %v, last seq %d of %d, delivered %d", snapshot, ok, err, j.LastSeq(), lastSeq, j.Delivered())
	}
	if events, err := j.Events(lastSeq, 5); err != nil || len(events) != 0 {
		t.Errorf("events: %v %v", events, err)
	}
	shoes(t, j, 1, start)
	if events, err := j.Events(lastSeq, 5); err != nil || len(events) != 5 || events[0].Seq != lastSeq+1 {
		t.Errorf("events: %v %v", events, err)
	}
	mustVerify(t, path)
}

func TestPruneByAge(t *testing.T) {
	path := journalPath(t)
	now := start
	j, _ := mustOpen(t, path, Options{MaxAge: 24 * time.Hour, Now: func() time.Time { return now }})
	if p := mustPrune(t, j); p.Records != 0 || p.Kept != "" {
		t.Errorf("an empty journal: %+v", p)
	}
	shoes(t, j, 4, start) // at 0, 1, 2 and 3 hours
	deliverAll(t, j)
	for _, c := range []struct {
		after time.Duration
		drops uint64
		kept  string
	}{
		{24 * time.Hour, 0, ""},
		{25*time.Hour - time.Second, 0, ""},
		{25*time.Hour + time.Second, 200, ""}, // the snapshot that ended the first run is older than a day
		{26 * time.Hour, 0, ""},
		{28 * time.Hour, 400, "newest run"},
	} {
		now = start.Add(c.after)
		if p := mustPrune(t, j); p.Records != c.drops || !strings.Contains(p.Kept, c.kept) || c.kept == "" && p.Kept != "" {
			t.Errorf("after %v: %+v, want %d dropped", c.after, p, c.drops)
		}
	}
	mustVerify(t, path)
}

// The events of a run hold it until the last of them is delivered.
// What was written before the clock was set is as old as what came after: it is
// not dropped as soon as the clock is right.
func TestPruneBeforeTheClockWasSet(t *testing.T) {
	now := start.Add(time.Hour)
	j, _ := mustOpen(t, journalPath(t), Options{MaxAge: 24 * time.Hour, Now: func() time.Time { return now }})
	shoes(t, j, 2, time.Unix(60, 0))
	shoes(t, j, 1, start)
	deliverAll(t, j)
	if p := mustPrune(t, j); p.Records != 0 || p.Kept != "" {
		t.Errorf("an hour old: %+v", p)
	}
	now = start.Add(25 * time.Hour)
	if p := mustPrune(t, j); p.Records != 400 {
		t.Errorf("a day old: %+v, want the two shoes of 200 records before the clock was set", p)
	}
}

func TestPruneWaitsForDelivery(t *testing.T) {
	j, _ := mustOpen(t, journalPath(t), Options{MaxBytes: 1})
	shoes(t, j, 3, start)
	for _, c := range []struct {
		delivered, drops uint64
	}{{18, 0}, {19, 200}, {37, 0}, {38, 200}} {
		if err := j.Deliver(c.delivered); err != nil {
			t.Fatal(err)
		}
		if p := mustPrune(t, j); p.Records != c.drops || p.Kept == "" {
			t.Errorf("delivered %d: %+v, want %d dropped", c.delivered, p, c.drops)
		}
	}
}

// Damage is evidence: it is not dropped, nor sealed under a new anchor.
func TestPruneKeepsDamage(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{MaxBytes: 1})
	shoes(t, j, 3, start)
	deliverAll(t, j)
	tamper(t, path, "UPDATE record SET body = x'01' WHERE no = 77")
	if p, err := j.Prune(); !errors.Is(err, ErrDamaged) || !strings.Contains(fmt.Sprint(err), "record 77 ") || p.Records != 0 {
		t.Errorf("%+v %v", p, err)
	}
	j.abandon()
	mustFind(t, path, 77, false)
}

// Records dropped while someone reads are told to him, never passed over.
func TestReadWhilePruned(t *testing.T) {
	j, _ := mustOpen(t, journalPath(t), Options{MaxBytes: 1})
	shoes(t, j, 6, start)
	deliverAll(t, j)
	n := 0
	err := j.Read(0, func(Record) error {
		if n++; n == 10 {
			mustPrune(t, j)
		}
		return nil
	})
	if !errors.Is(err, ErrPruned) || n != batchRecords {
		t.Errorf("%d records, then %v", n, err)
	}
	if first := readAll(t, j, 0)[0].No; first != 1001 {
		t.Errorf("the first record kept is %d", first)
	}
}

// The bounds of a running journal can be changed.
func TestBound(t *testing.T) {
	j, _ := mustOpen(t, journalPath(t), Options{})
	shoes(t, j, 3, start)
	deliverAll(t, j)
	if p := mustPrune(t, j); p.Records != 0 {
		t.Errorf("without bounds: %+v", p)
	}
	j.Bound(0, 1)
	if p := mustPrune(t, j); p.Records == 0 {
		t.Errorf("of one byte: %+v", p)
	}
}
