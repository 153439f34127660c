package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Nothing here is cancelled half-way: a write ends with its sync, a read with its batch.
var background = context.Background()

// Options of a journal. The zero value keeps everything.
type Options struct {
	MaxAge   time.Duration    // Prune drops what is older; 0 is no bound
	MaxBytes int64            // Prune drops the oldest when more is used; 0 is no bound
	Now      func() time.Time // the clock, for the notes of the journal itself and for MaxAge; nil is time.Now
}

// Opening says what Open found.
type Opening struct {
	Created   bool   // there was no journal: this one is new, with a new epoch
	Clean     bool   // the last user closed it
	TornBytes int64  // bytes of a write that a crash cut short, dropped from the write-ahead log; none of it was acknowledged
	Records   uint64 // records kept
	Pruned    uint64 // records dropped by Prune before those
	Verified  uint64 // the newest records, checked now: those from the last snapshot on, or all
}

// Journal is the open log. Append is for one goroutine; Events, Read, Deliver, Count and the rest may be called by
// others meanwhile.
type Journal struct {
	path   string
	o      Options
	epoch  string
	lock   *os.File
	reader *Reader

	head      atomic.Pointer[tip] // the last record acknowledged
	delivered atomic.Uint64       // as reported; what is stored may lag behind

	// mu is held by the one who writes. It guards what follows.
	mu      sync.Mutex
	store   *store // nil when the handle was given up; the next write opens it again
	anchor  tip
	secret  blind
	stored  uint64 // delivered, as in the file
	commits int    // since the last checkpoint
	closed  bool
}

// Open opens the journal at path for writing, or creates it when there is none; its directory must exist. It drops
// what a crash left half written, makes durable what it found, and checks the chain from the last snapshot on. The
// errors are ErrLocked, ErrDamaged, ErrFull and ErrIO.
func Open(path string, o Options) (*Journal, Opening, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	path = resolve(path)
	lock, err := acquire(path)
	if err != nil {
		return nil, Opening{}, err
	}
	j := &Journal{path: path, o: o, lock: lock, reader: &Reader{path: path}}
	opening, err := j.begin()
	if err != nil {
		j.detach()
		lock.Close()
		return nil, Opening{}, failure(path, err)
	}
	return j, opening, nil
}

// acquire takes the lock that only one writer has. The lock is the descriptor's and ends with the process.
func acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, failure(path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("journal %s is %w: stop the other shoed first (`fuser %s.lock` shows it)", path, ErrLocked, path)
	}
	return nil, failure(path, err)
}

func (j *Journal) begin() (o Opening, err error) {
	if _, err := os.Stat(j.path); errors.Is(err, fs.ErrNotExist) {
		if err := create(j.path); err != nil {
			return o, err
		}
		o.Created = true
	}
	f, err := j.attach()
	if err != nil {
		return o, err
	}
	j.epoch = f.epoch
	j.head.Store(&f.head)
	j.delivered.Store(f.delivered)
	o.Clean, o.TornBytes, o.Verified = f.clean && f.torn == 0, f.torn, f.verified
	o.Records, o.Pruned = f.head.No-f.anchor.No, f.anchor.No
	err = j.commit(func(tx *sql.Tx, head tip) (tip, error) {
		if err := putUint(tx, metaClean, 0); err != nil || f.torn == 0 {
			return head, err
		}
		return j.note(tx, head, note{Note: "repaired", TornBytes: f.torn})
	})
	if err == nil {
		err = j.store.checkpoint("TRUNCATE") // so that the mark survives whatever becomes of the log
	}
	return o, err
}

// found is what the files hold.
type found struct {
	epoch        string
	secret       blind
	head, anchor tip
	delivered    uint64
	clean        bool
	torn         int64
	verified     uint64
}

// attach opens the files and takes stock. What memory believes of the records is the caller's to compare.
func (j *Journal) attach() (found, error) {
	log, err := settleWAL(j.path + "-wal")
	if err != nil {
		return found{}, err
	}
	if j.store, err = openStore(j.path); err != nil {
		return found{}, err
	}
	var f found
	err = view(j.store.db, func(tx *sql.Tx, anchor tip) error {
		f, err = take(tx, anchor)
		return err
	})
	if err == nil {
		err = j.reader.open()
	}
	if err != nil {
		j.detach()
		return found{}, err
	}
	f.torn = log.torn
	j.anchor, j.secret, j.stored, j.commits = f.anchor, f.secret, f.delivered, 0
	return f, nil
}

// take reads the variables and checks the chain from the last snapshot on, or all of it.
func take(tx *sql.Tx, anchor tip) (f found, err error) {
	if err := checkFormat(tx); err != nil {
		return f, err
	}
	epoch, err := meta(tx, metaEpoch)
	if err != nil {
		return f, err
	}
	if f.secret, err = blindOf(tx); err != nil {
		return f, err
	}
	clean, err := metaUint(tx, metaClean)
	if err != nil {
		return f, err
	}
	if f.delivered, err = metaUint(tx, metaDelivered); err != nil {
		return f, err
	}
	_, from, ok, err := lastSnapshot(tx, anchor)
	if err != nil {
		return f, err
	}
	if !ok {
		from = anchor
	} else if from.seq, err = lastEvent(tx, anchor, from.No+1); err != nil {
		return f, err
	}
	if f.head, err = walk(tx, from, func(*Record, tip) error { return nil }); err != nil {
		return f, err
	}
	f.epoch, f.anchor, f.clean, f.verified = string(epoch), anchor, clean == 1, f.head.No-from.No
	return f, checkCursor(f.head, f.delivered)
}

func checkCursor(head tip, delivered uint64) error {
	if delivered <= head.seq {
		return nil
	}
	return &Damage{No: head.No + 1, What: fmt.Sprintf("and more are missing: the end was cut off, for event %d was delivered and event %d is the last one here", delivered, head.seq)}
}

var errReopening = errors.New("it failed and is being opened again")

// detach gives up all handles. Who reads meanwhile gets ErrIO.
func (j *Journal) detach() error {
	err := j.reader.end(errReopening)
	if j.store != nil {
		err = errors.Join(err, j.store.close())
		j.store = nil
	}
	return err
}

// Epoch is the id of this journal: 16 hexadecimal digits, chosen when it was created.
func (j *Journal) Epoch() string { return j.epoch }

// LastSeq is the number of the last public event, 0 before the first.
func (j *Journal) LastSeq() uint64 { return j.head.Load().seq }

// Append makes the records durable, all or none, in one sync, and sets their No and, of public events, their Head.
// Public events must have the next Seq. It also stores the cursor reported by Deliver.
//
// After ErrFull or ErrIO nothing was changed and the same Append may be repeated. After a failure that puts the disk
// in doubt the files are closed and opened again, and only when they hold what memory believes does the journal go
// on; when they turn out to hold the new records too, safely, Append has succeeded. When they cannot be opened, later
// calls try again, and may then give ErrAhead. Its other errors are ErrDamaged, ErrClosed, and plain ones for records
// that cannot be stored.
func (j *Journal) Append(records []Record) error {
	if len(records) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.check(records); err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	err := j.commit(func(tx *sql.Tx, t tip) (tip, error) {
		for i := range records {
			r := &records[i]
			var err error
			if t, err = j.store.add(tx, t, *r); err != nil {
				return t, err
			}
			if r.No = t.No; r.Seq != 0 {
				r.Head = j.secret.hash(t.Hash)
			}
		}
		return t, nil
	})
	return failure(j.path, err)
}

func (j *Journal) check(records []Record) error {
	due := j.LastSeq() + 1
	for i := range records {
		r := &records[i]
		if err := r.check(); err != nil {
			return fmt.Errorf("record %d of %d to append: %w", i+1, len(records), err)
		}
		if r.Seq == 0 {
			continue
		}
		if r.Seq != due {
			return fmt.Errorf("record %d of %d to append has seq %d, the next one is %d", i+1, len(records), r.Seq, due)
		}
		due++
	}
	return nil
}

// commit runs fn in one transaction, with the cursor if it moved, and adopts the tip that fn gives.
func (j *Journal) commit(fn func(tx *sql.Tx, head tip) (tip, error)) error {
	if err := j.ready(); err != nil {
		return err
	}
	head, delivered := *j.head.Load(), j.delivered.Load()
	want, err := j.store.transaction(head, func(tx *sql.Tx) (tip, error) {
		if delivered > j.stored {
			if err := putUint(tx, metaDelivered, delivered); err != nil {
				return head, err
			}
		}
		return fn(tx, head)
	})
	if err != nil {
		return j.afterFailure(head, want, err)
	}
	j.head.Store(&want)
	j.stored = max(j.stored, delivered)
	j.commits++
	return nil
}

// ready opens the files again if they were given up.
func (j *Journal) ready() error {
	if j.closed {
		return ErrClosed
	}
	if j.store != nil {
		return nil
	}
	f, err := j.attach()
	if err != nil {
		return err
	}
	return j.agree(f)
}

// agree gives the files up unless they end where memory says.
func (j *Journal) agree(f found) error {
	head := *j.head.Load()
	if f.head == head {
		return nil
	}
	j.detach()
	if f.head.No > head.No {
		return fmt.Errorf("%w: record %d instead of %d; restart to replay them", ErrAhead, f.head.No, head.No)
	}
	return &Damage{No: head.No, What: fmt.Sprintf("was acknowledged but the file ends with record %d", f.head.No)}
}

// afterFailure decides what a failed transaction leaves. One that found no room, or another program's lock, is rolled
// back and the handle is good. After anything else, a failed sync above all, the kernel may have dropped what it had:
// the handle is worth nothing.
func (j *Journal) afterFailure(head, want tip, cause error) error {
	switch primary(cause) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY:
		return cause
	}
	j.detach() // its error would only repeat the cause
	f, err := j.attach()
	switch {
	case err != nil:
		return fmt.Errorf("%w; then: %w", cause, err) // the next write tries again
	case want != head && f.head == want:
		j.head.Store(&want)
		return nil
	}
	if err := j.agree(f); err != nil {
		return err
	}
	return cause
}

// Bound changes MaxAge and MaxBytes.
func (j *Journal) Bound(maxAge time.Duration, maxBytes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.o.MaxAge, j.o.MaxBytes = maxAge, maxBytes
}

// Deliver reports that all public events through seq were acknowledged by the broker. The highest report counts; it
// becomes durable with the next Append or Flush. To report an event that is not in the journal is an error.
func (j *Journal) Deliver(seq uint64) error {
	if last := j.LastSeq(); seq > last {
		return fmt.Errorf("journal %s: event %d was reported as delivered but %d is the last one", j.path, seq, last)
	}
	for {
		old := j.delivered.Load()
		if seq <= old || j.delivered.CompareAndSwap(old, seq) {
			return nil
		}
	}
}

// Delivered is the highest seq reported, over the journal's whole life. A crash may take it back to where it was at
// the last Append or Flush.
func (j *Journal) Delivered() uint64 { return j.delivered.Load() }

// checkpointCommits is how many transactions Flush lets pass between checkpoints: about 2 MB of log, and a few
// minutes at a table.
const checkpointCommits = 128

// Flush stores a cursor that moved, and now and then moves the log into the file. Call it about once a second when
// the table is idle: the latter takes several syncs.
func (j *Journal) Flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.delivered.Load() > j.stored || j.closed {
		if err := j.commit(func(_ *sql.Tx, head tip) (tip, error) { return head, nil }); err != nil {
			return failure(j.path, err)
		}
	}
	if j.store == nil || j.commits < checkpointCommits {
		return nil
	}
	return failure(j.path, j.maintain(func() error {
		j.commits = 0
		return j.store.checkpoint("PASSIVE")
	}))
}

// maintain runs fn, which changes no record, and gives the handle up when it fails.
func (j *Journal) maintain(fn func() error) error {
	err := fn()
	if err == nil {
		return nil
	}
	head := *j.head.Load()
	return j.afterFailure(head, head, err)
}

// Count adds one to the counter of that name, durably, and returns it: 1 the first time.
func (j *Journal) Count(name string) (uint64, error) {
	return j.count(name, func(n uint64) uint64 { return n + 1 })
}

// Raise makes the counter of that name at least n, durably: what another journal has counted goes on here.
func (j *Journal) Raise(name string, n uint64) error {
	_, err := j.count(name, func(now uint64) uint64 { return max(now, n) })
	return err
}

func (j *Journal) count(name string, next func(uint64) uint64) (n uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.commit(func(tx *sql.Tx, head tip) (tip, error) {
		now, err := counted(tx, name)
		if err != nil {
			return head, err
		}
		n = next(now)
		return head, putUint(tx, metaCount+name, n)
	})
	if err != nil {
		return 0, failure(j.path, err)
	}
	return n, nil
}

// Read is Reader.Read.
func (j *Journal) Read(from uint64, fn func(Record) error) error { return j.reader.Read(from, fn) }

// LastSnapshot is Reader.LastSnapshot.
func (j *Journal) LastSnapshot() (Record, bool, error) { return j.reader.LastSnapshot() }

// Told is Reader.Told.
func (j *Journal) Told(after, through uint64, max int) ([]Record, error) {
	return j.reader.Told(after, through, max)
}

// Command is Reader.Command.
func (j *Journal) Command(source string) (Record, bool, error) { return j.reader.Command(source) }

// Events is Reader.Events, with nothing that Append has not yet acknowledged.
func (j *Journal) Events(after uint64, max int) ([]Record, error) {
	return j.reader.events(after, j.LastSeq(), max)
}

// Close stores the cursor, marks the journal as cleanly closed, moves the log into the file and gives up the lock.
// A second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	err := j.commit(func(tx *sql.Tx, head tip) (tip, error) { return head, putUint(tx, metaClean, 1) })
	if err == nil {
		err = j.store.checkpoint("TRUNCATE")
	}
	j.closed = true
	return failure(j.path, errors.Join(err, j.detach(), j.reader.Close(), j.lock.Close()))
}

// note is the body of the journal's own records.
type note struct {
	Note      string `json:"note"` // repaired, pruned
	TornBytes int64  `json:"torn_bytes,omitempty"`
	Reason    string `json:"reason,omitempty"` // age, size
	From      uint64 `json:"from,omitempty"`   // first record dropped
	To        uint64 `json:"to,omitempty"`     // last record dropped, the chain's new anchor
	Seq       uint64 `json:"seq,omitempty"`    // last public event dropped, ever
	Hash      string `json:"hash,omitempty"`   // of record To
}

// note adds a record of the journal's own.
func (j *Journal) note(tx *sql.Tx, head tip, n note) (tip, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return head, err
	}
	return j.store.add(tx, head, Record{At: j.o.Now(), Kind: Note, Body: body})
}
