package journal

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"
)

const (
	// runsPerPrune bounds one Prune, which holds up Append: a run is a shoe, about 1 MB.
	runsPerPrune = 8
	// freeReserve is how many free pages stay in the file, 1 MB, for the next shoe to use. To give back and take
	// again what the next shoe needs would only wear the card.
	freeReserve = 256
)

// Pruned says what Prune did.
type Pruned struct {
	Records uint64 // dropped now
	Bytes   int64  // the journal's size now, without room it keeps for reuse
	Kept    string // why a bound is still exceeded; "" when none is
}

// run is the oldest records up to a snapshot: what may be dropped together.
type run struct {
	end   tip       // its last record
	whole bool      // a snapshot follows
	ended time.Time // when, or the first time told after it; when it began if none follows
}

// dated reports whether a record's time is one. A board without a battery starts
// in 1970, and what it then wrote has no age but that of what follows.
func dated(at time.Time) bool { return at.Year() >= 2025 }

// Prune drops the oldest records while they are older than MaxAge or more than MaxBytes are used. It drops whole runs
// before a snapshot, never the last snapshot or what follows it, and never an event that was not delivered. With each
// run goes a Note in the same transaction; the number and hash of the last record dropped stay, so that the chain can
// be checked from there. It takes at most 8 runs a call and holds up Append for that long: call it between shoes, and
// for MaxAge only while the clock is trusted, for a clock that is years ahead makes everything old.
func (j *Journal) Prune() (Pruned, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var p Pruned
	err := j.ready()
	for n := 0; err == nil; n++ {
		var r run
		var reason string
		r, reason, err = j.due()
		if err != nil || reason == "" {
			break
		}
		if p.Kept = j.kept(r, n); p.Kept != "" {
			break
		}
		from := j.anchor.No + 1
		if err = j.drop(r, reason); err == nil {
			p.Records += r.end.No + 1 - from
		}
	}
	if err == nil && p.Records > 0 {
		err = j.maintain(j.giveBack)
	}
	if err == nil {
		var size, used int64
		size, used, _, err = j.store.pages()
		p.Bytes = size * used
	}
	return p, failure(j.path, err)
}

// due gives the oldest run and which bound wants it dropped, "" for none. The run's chain has been checked: damage is
// evidence and is never dropped.
func (j *Journal) due() (r run, reason string, err error) {
	size, used, _, err := j.store.pages()
	if err != nil {
		return r, "", err
	}
	err = view(j.store.db, func(tx *sql.Tx, anchor tip) error {
		_, err := walk(tx, anchor, func(rec *Record, t tip) error {
			if rec.Kind == Snapshot && rec.No != anchor.No+1 && !r.whole {
				r.whole, r.ended = true, time.Time{}
			}
			if r.ended.IsZero() && dated(rec.At) {
				r.ended = rec.At
			}
			switch {
			case !r.whole:
				r.end = t
			case !r.ended.IsZero():
				return errStop
			}
			return nil
		})
		return err
	})
	switch {
	case err != nil:
	case j.o.MaxBytes > 0 && size*used > j.o.MaxBytes:
		reason = "size"
	case j.o.MaxAge > 0 && !r.ended.IsZero() && j.o.Now().Sub(r.ended) > j.o.MaxAge:
		reason = "age"
	}
	return r, reason, err
}

// kept says why the run must stay, "" when it may go.
func (j *Journal) kept(r run, dropped int) string {
	switch delivered := j.delivered.Load(); {
	case !r.whole:
		return "no snapshot follows: the newest run always stays"
	case r.end.seq > delivered:
		return fmt.Sprintf("event %d was not delivered, only those through %d", delivered+1, delivered)
	case dropped == runsPerPrune:
		return "enough for one call: call again"
	}
	return ""
}

// drop deletes the run, moves the anchor to its last record and notes it, in one transaction.
func (j *Journal) drop(r run, reason string) error {
	n := note{Note: "pruned", Reason: reason, From: j.anchor.No + 1, To: r.end.No, Seq: r.end.seq, Hash: hex.EncodeToString(r.end.Hash[:])}
	err := j.commit(func(tx *sql.Tx, head tip) (tip, error) {
		if _, err := tx.Exec("DELETE FROM record WHERE no <= ?", int64(r.end.No)); err != nil {
			return head, err
		}
		if err := putAnchor(tx, r.end); err != nil {
			return head, err
		}
		return j.note(tx, head, n)
	})
	if err == nil {
		j.anchor = r.end
	}
	return err
}

// giveBack returns free pages beyond the reserve to the file system.
func (j *Journal) giveBack() error {
	_, _, free, err := j.store.pages()
	if err != nil || free <= freeReserve {
		return err
	}
	if _, err := j.store.db.Exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", free-freeReserve)); err != nil {
		return err
	}
	j.commits = 0
	return j.store.checkpoint("PASSIVE")
}
