package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// Reader reads a journal and changes nothing, also while a daemon is writing it. Every record it gives out has been
// checked against its hash. Its methods may be called from several goroutines.
type Reader struct {
	path string
	// Held shared for one batch of reading, exclusively to replace or close the handle.
	mu  sync.RWMutex
	db  *sql.DB
	why error // why there is no db
}

// OpenRead opens an existing journal for reading only, for show and export. It checks the format, not the records.
func OpenRead(path string) (*Reader, error) {
	r := &Reader{path: resolve(path)}
	if err := r.open(); err != nil {
		return nil, failure(path, err)
	}
	if err := r.view(func(tx *sql.Tx, _ tip) error { return checkFormat(tx) }); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) open() error {
	db, err := connect(r.path, "ro", readCache)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(2) // the publisher and someone asking for a replay
	db.SetMaxIdleConns(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.db = db
	return nil
}

// Close ends reading, after the batch in progress.
func (r *Reader) Close() error { return r.end(ErrClosed) }

// end closes the handle and lets reading fail with why until it is opened again.
func (r *Reader) end(why error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = why
	if r.db == nil {
		return nil
	}
	err := r.db.Close()
	r.db = nil
	return err
}

// view runs fn on one state of the journal, with the anchor of its chain.
func (r *Reader) view(fn func(tx *sql.Tx, anchor tip) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.db == nil {
		return failure(r.path, r.why)
	}
	err := view(r.db, fn)
	return failure(r.path, err)
}

func view(db *sql.DB, fn func(tx *sql.Tx, anchor tip) error) error {
	tx, err := db.BeginTx(background, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	anchor, err := anchorOf(tx)
	if err != nil {
		return err
	}
	return fn(tx, anchor)
}

// A batch of Read ends at either bound: memory on a small board.
const (
	batchRecords = 256
	batchBytes   = 256 << 10
)

// Read hands the records from number from on, or from the first one kept, to fn in order until the last one or until
// fn gives an error, which it returns. It holds nothing while fn runs, so fn may be slow. When records are dropped
// by a Prune before it came to them, the error is ErrPruned.
func (r *Reader) Read(from uint64, fn func(Record) error) error {
	var at tip
	for first := true; ; first = false {
		batch, end, err := r.batch(at, from, first)
		if err != nil {
			return err
		}
		for _, rec := range batch {
			if err := fn(rec); err != nil {
				return err
			}
		}
		if len(batch) == 0 {
			return nil
		}
		at = end
	}
}

// batch reads the records after at, or those from number from when it is the first batch.
func (r *Reader) batch(at tip, from uint64, first bool) (batch []Record, end tip, err error) {
	err = r.view(func(tx *sql.Tx, anchor tip) error {
		switch {
		case first:
			if at, err = before(tx, anchor, from); err != nil {
				return err
			}
		case at.No < anchor.No:
			return fmt.Errorf("records %d to %d were %w meanwhile", at.No+1, anchor.No, ErrPruned)
		}
		size := 0
		end, err = walk(tx, at, func(rec *Record, _ tip) error {
			batch = append(batch, *rec)
			if size += len(rec.Body); len(batch) == batchRecords || size >= batchBytes {
				return errStop
			}
			return nil
		})
		return err
	})
	return batch, end, err
}

// before gives the tip before record no, or before the first one kept.
func before(tx *sql.Tx, anchor tip, no uint64) (tip, error) {
	if no <= anchor.No+1 {
		return anchor, nil
	}
	t := tip{No: no - 1}
	var hash []byte
	err := tx.QueryRow("SELECT hash FROM record WHERE no = ?", int64(no-1)).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return t, nil // beyond the last one: nothing follows
	}
	if err != nil {
		return t, err
	}
	copy(t.Hash[:], hash)
	t.seq, err = lastEvent(tx, anchor, no)
	return t, err
}

// LastSnapshot gives the newest snapshot, from which a replay starts; false if there is none.
func (r *Reader) LastSnapshot() (last Record, found bool, err error) {
	err = r.view(func(tx *sql.Tx, anchor tip) error {
		last, _, found, err = lastSnapshot(tx, anchor)
		return err
	})
	return last, found, err
}

// Counted is where the counter of that name stands; 0 when nothing was counted.
func (r *Reader) Counted(name string) (n uint64, err error) {
	err = r.view(func(tx *sql.Tx, _ tip) error {
		n, err = counted(tx, name)
		return err
	})
	return n, err
}

// Told gives the events and commands after record number after, up to number through, in order, at most max of them:
// what may be told to surveillance. Those dropped by a Prune are passed over.
func (r *Reader) Told(after, through uint64, max int) (records []Record, err error) {
	err = r.view(func(tx *sql.Tx, anchor tip) error {
		const where = "r.no > ? AND r.no <= ? AND r.kind IN (3, 6) ORDER BY r.no LIMIT ?"
		return checked(tx, anchor, "NOT INDEXED", where, []any{int64(after), int64(through), int64(max)}, func(rec *Record, _ tip) error {
			records = append(records, *rec)
			return nil
		})
	})
	return records, err
}

// Command gives the newest command with that source; false if there is none, or none any more.
func (r *Reader) Command(source string) (last Record, found bool, err error) {
	err = r.view(func(tx *sql.Tx, anchor tip) error {
		const where = "r.kind = 6 AND r.source = ? ORDER BY r.no DESC LIMIT 1"
		return checked(tx, anchor, "INDEXED BY command", where, []any{source}, func(rec *Record, _ tip) error {
			last, found = *rec, true
			return nil
		})
	})
	return last, found, err
}

// Events gives the public events after seq in order, at most max of them, without a gap. When some of those were
// dropped the error is ErrPruned.
func (r *Reader) Events(after uint64, max int) ([]Record, error) {
	const newest = 1<<63 - 1
	return r.events(after, newest, max)
}

func (r *Reader) events(after, through uint64, max int) (events []Record, err error) {
	err = r.view(func(tx *sql.Tx, anchor tip) error {
		if after < anchor.seq {
			return fmt.Errorf("events %d to %d were %w", after+1, anchor.seq, ErrPruned)
		}
		const where = "r.seq > 0 AND r.seq > ? AND r.seq <= ? ORDER BY r.seq LIMIT ?"
		args := []any{int64(after), int64(through), int64(max)}
		due := after
		secret, err := blindOf(tx)
		if err != nil {
			return err
		}
		return checked(tx, anchor, "INDEXED BY event", where, args, func(rec *Record, t tip) error {
			if due++; rec.Seq != due {
				return &Damage{No: rec.No, What: fmt.Sprintf("has seq %d where %d was due", rec.Seq, due)}
			}
			rec.Head = secret.hash(t.next(rec).Hash)
			events = append(events, *rec)
			return nil
		})
	})
	return events, err
}
