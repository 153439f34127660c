package journal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"
)

const (
	applicationID = 0x73686f65 // "shoe", in the file's header
	formatVersion = 2          // user_version; a higher one is a newer program's
)

// schema is compared word for word when a journal is opened.
var schema = [...]string{
	`CREATE TABLE record (no INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, source TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, hash BLOB NOT NULL) STRICT`,
	`CREATE UNIQUE INDEX event ON record (seq) WHERE seq > 0`,
	`CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL) STRICT, WITHOUT ROWID`,
	`CREATE INDEX command ON record (source, no) WHERE kind = 6`,
}

const (
	// Few pages are ever wanted again, so the caches are small: KiB, SQLite's sign for it being minus.
	writeCache = "cache_size(-512)"
	readCache  = "cache_size(-256)"
	// A technician's sqlite3 may hold the write lock for a moment.
	busyTimeout = "busy_timeout(2000)"
	// Pages after which SQLite checkpoints by itself, in mid-append. Flush comes long before; this bounds the log
	// at 16 MB if it is never called.
	autoCheckpoint = "wal_autocheckpoint(4000)"
	// Bytes kept of a log that has grown beyond, when it starts over: blocks that are there need no new metadata.
	logLimit = "journal_size_limit(4194304)"
)

// setup prepares the library, whose switches hold for the process. fdatasync leaves out only the time stamps. Without
// OFD locks, anyone in this process opening and closing the file would drop SQLite's locks on it, and a technician's
// sqlite3 could then delete the log under us.
var setup = sync.OnceValue(func() error {
	if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		return err
	}
	_, err := sqlite.Fdatasync(true)
	return err
})

// connect gives a pool of SQLite connections to the file; mode is ro or rw, and nothing is created.
func connect(path, mode string, pragmas ...string) (*sql.DB, error) {
	if err := setup(); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"mode": {mode}, "_defensive": {"1"}, "_error_rc": {"1"}, "_txlock": {"immediate"}}
	q["_pragma"] = append([]string{busyTimeout, "cell_size_check(ON)", "trusted_schema(OFF)"}, pragmas...)
	u := url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}
	return sql.Open("sqlite", u.String())
}

// store is the one writing connection.
type store struct {
	db     *sql.DB
	insert *sql.Stmt
}

func openStore(path string) (*store, error) {
	db, err := connect(path, "rw", "synchronous(FULL)", writeCache, autoCheckpoint, logLimit)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &store{db: db}
	if err := s.prepare(); err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

func (s *store) prepare() error {
	var mode string
	var synchronous int
	if err := s.db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := s.db.QueryRow("PRAGMA synchronous").Scan(&synchronous); err != nil {
		return err
	}
	if mode != "wal" || synchronous != 2 {
		return &Damage{What: fmt.Sprintf("journal_mode is %s and synchronous is %d instead of wal and 2", mode, synchronous)}
	}
	err := s.upgrade()
	if err != nil {
		return err
	}
	s.insert, err = s.db.Prepare("INSERT INTO record (no, at, kind, source, seq, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)")
	return err
}

// upgrade brings a journal of version 1, which knew no commands and no blind, to this one.
func (s *store) upgrade() error {
	var id, version int
	err := errors.Join(s.db.QueryRow("PRAGMA application_id").Scan(&id), s.db.QueryRow("PRAGMA user_version").Scan(&version))
	if err != nil || id != applicationID || version != 1 {
		return err
	}
	_, err = s.transaction(tip{}, func(tx *sql.Tx) (tip, error) {
		_, err := tx.Exec(schema[len(schema)-1] + fmt.Sprintf("; PRAGMA user_version=%d", formatVersion))
		return tip{}, errors.Join(err, putBlind(tx))
	})
	return err
}

// transaction runs fn and commits, which is one sync. The tip is the one fn gives: after an error of the commit, and
// only then, the file may hold it all the same.
func (s *store) transaction(head tip, fn func(*sql.Tx) (tip, error)) (tip, error) {
	tx, err := s.db.Begin()
	if err != nil {
		return head, err
	}
	want, err := fn(tx)
	if err != nil {
		// SQLite may have rolled back already, which is an error here. A transaction that stays open shows at
		// the next Begin.
		_ = tx.Rollback()
		return head, err
	}
	return want, tx.Commit()
}

// add inserts r as the record after t and gives the tip after it.
func (s *store) add(tx *sql.Tx, t tip, r Record) (tip, error) {
	r.No = t.No + 1
	t = t.next(&r)
	body := r.Body
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	_, err := tx.Stmt(s.insert).Exec(int64(t.No), r.At.UnixNano(), int64(r.Kind), r.Source, int64(r.Seq), body, t.Hash[:])
	return t, err
}

// checkpoint moves the log's pages into the file.
func (s *store) checkpoint(mode string) error {
	var busy, inLog, moved int
	return s.db.QueryRow("PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &inLog, &moved)
}

// pages tells the size of a page, how many hold something, and how many are free for reuse.
func (s *store) pages() (size, used, free int64, err error) {
	var count int64
	err = errors.Join(
		s.db.QueryRow("PRAGMA page_size").Scan(&size),
		s.db.QueryRow("PRAGMA page_count").Scan(&count),
		s.db.QueryRow("PRAGMA freelist_count").Scan(&free))
	return size, count - free, free, err
}

func (s *store) close() error {
	return s.db.Close()
}

// The journal's own variables. Each has a checksum, for they are outside the chain.
const (
	metaEpoch     = "epoch"     // text
	metaBlind     = "blind"     // 32 secret random bytes
	metaAnchor    = "anchor"    // No, seq and hash of the last record dropped, or the chain's seed
	metaDelivered = "delivered" // highest public seq that was acknowledged
	metaClean     = "clean"     // 1 after Close
	metaCount     = "count:"    // and a name: persistent counters
)

func metaSum(name string, value []byte) []byte {
	sum := sha256.Sum256(append([]byte(name+"\n"), value...))
	return sum[:8] // against accidents, not forgers
}

// meta gives a variable's value, nil if there is none.
func meta(tx *sql.Tx, name string) ([]byte, error) {
	var value, sum []byte
	err := tx.QueryRow("SELECT value, sum FROM meta WHERE name = ?", name).Scan(&value, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil && !bytes.Equal(sum, metaSum(name, value)) {
		err = &Damage{What: fmt.Sprintf("the variable %q does not match its checksum", name)}
	}
	return value, err
}

func putMeta(tx *sql.Tx, name string, value []byte) error {
	_, err := tx.Exec("INSERT INTO meta (name, value, sum) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value, sum = excluded.sum",
		name, value, metaSum(name, value))
	return err
}

func metaUint(tx *sql.Tx, name string) (uint64, error) {
	b, err := meta(tx, name)
	if err == nil && len(b) != 8 {
		err = &Damage{What: fmt.Sprintf("the variable %q is gone or is no number", name)}
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b), nil
}

// counted is where a counter stands; 0 when nothing was counted.
func counted(tx *sql.Tx, name string) (uint64, error) {
	b, err := meta(tx, metaCount+name)
	if err != nil || b == nil {
		return 0, err
	}
	return metaUint(tx, metaCount+name)
}

func putUint(tx *sql.Tx, name string, v uint64) error {
	return putMeta(tx, name, binary.BigEndian.AppendUint64(nil, v))
}

// putBlind chooses the journal's secret.
func putBlind(tx *sql.Tx) error {
	var secret blind
	rand.Read(secret[:]) // never fails
	return putMeta(tx, metaBlind, secret[:])
}

func blindOf(tx *sql.Tx) (blind, error) {
	b, err := meta(tx, metaBlind)
	if err == nil && len(b) != len(blind{}) {
		err = &Damage{What: "the secret that blinds published heads is gone or has the wrong length"}
	}
	if err != nil {
		return blind{}, err
	}
	return blind(b), nil
}

func anchorOf(tx *sql.Tx) (tip, error) {
	var t tip
	b, err := meta(tx, metaAnchor)
	if err == nil && len(b) != 16+sha256.Size {
		err = &Damage{What: "the anchor of the chain is gone or has the wrong length"}
	}
	if err != nil {
		return t, err
	}
	t.No, t.seq = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	copy(t.Hash[:], b[16:])
	return t, nil
}

func putAnchor(tx *sql.Tx, t tip) error {
	b := binary.BigEndian.AppendUint64(nil, t.No)
	b = binary.BigEndian.AppendUint64(b, t.seq)
	return putMeta(tx, metaAnchor, append(b, t.Hash[:]...))
}

// checkFormat refuses a file that is no journal, is a newer program's, or was altered.
func checkFormat(tx *sql.Tx) error {
	var id, version int
	if err := errors.Join(
		tx.QueryRow("PRAGMA application_id").Scan(&id),
		tx.QueryRow("PRAGMA user_version").Scan(&version)); err != nil {
		return err
	}
	if id != applicationID || version != formatVersion {
		return &Damage{What: fmt.Sprintf("no journal of this program: application %#x version %d instead of %#x version %d",
			id, version, applicationID, formatVersion)}
	}
	rows, err := tx.Query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if n >= len(schema) || text != schema[n] {
			return &Damage{What: fmt.Sprintf("the tables were altered: %s", text)}
		}
	}
	if n < len(schema) && rows.Err() == nil {
		return &Damage{What: "a table or index is gone"}
	}
	return rows.Err()
}

var errStop = errors.New("stop")

const recordColumns = "r.no, r.at, r.kind, r.source, r.seq, r.body, r.hash"

// walk reads and checks the records after t in order and hands each to fn, with the tip after it, until fn gives
// errStop. It returns the last tip. What the journal gives out has passed here or through checked.
func walk(tx *sql.Tx, t tip, fn func(*Record, tip) error) (tip, error) {
	rows, err := tx.Query("SELECT "+recordColumns+" FROM record r NOT INDEXED WHERE r.no > ? ORDER BY r.no", int64(t.No))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		r, hash, err := scanRecord(rows, t.No+1)
		if err != nil {
			return t, err
		}
		if t, err = t.accept(&r, hash); err != nil {
			return t, err
		}
		switch err := fn(&r, t); {
		case errors.Is(err, errStop):
			return t, nil
		case err != nil:
			return t, err
		}
	}
	return t, rows.Err()
}

// scanRecord reads a row; due names the record should it be unreadable.
func scanRecord(rows *sql.Rows, due uint64, more ...any) (Record, []byte, error) {
	var no, at, kind, seq int64
	var r Record
	var hash []byte
	err := rows.Scan(append([]any{&no, &at, &kind, &r.Source, &seq, &r.Body, &hash}, more...)...)
	if err != nil {
		return r, nil, &Damage{No: due, What: fmt.Sprintf("cannot be read: %v", err)}
	}
	r.No, r.Seq, r.At = uint64(no), uint64(seq), time.Unix(0, at).UTC()
	if kind == int64(uint8(kind)) {
		r.Kind = Kind(kind)
	}
	return r, hash, nil
}

// checked reads records found in another way than in order and checks each against its predecessor's hash. With each
// comes the tip before it.
func checked(tx *sql.Tx, anchor tip, index, where string, args []any, fn func(r *Record, before tip) error) error {
	rows, err := tx.Query("SELECT "+recordColumns+", p.hash FROM record r "+index+
		" LEFT JOIN record p ON p.no = r.no - 1 WHERE "+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var previous []byte
		r, hash, err := scanRecord(rows, 0, &previous)
		if err != nil {
			return err
		}
		before := tip{No: r.No - 1, seq: r.Seq - 1}
		if anchor.No == before.No {
			before.Hash = anchor.Hash
		} else {
			copy(before.Hash[:], previous)
		}
		if _, err := before.accept(&r, hash); err != nil {
			return err
		}
		if err := fn(&r, before); err != nil {
			return err
		}
	}
	return rows.Err()
}

// lastWhere gives the last record that meets the condition, checked, and the tip before it. It reads backwards
// through the records themselves: no index can hide one.
func lastWhere(tx *sql.Tx, anchor tip, where string, args ...any) (last Record, before tip, found bool, err error) {
	err = checked(tx, anchor, "NOT INDEXED", where+" ORDER BY r.no DESC LIMIT 1", args, func(r *Record, t tip) error {
		last, before, found = *r, t, true
		return nil
	})
	return last, before, found, err
}

func lastSnapshot(tx *sql.Tx, anchor tip) (Record, tip, bool, error) {
	return lastWhere(tx, anchor, "r.kind = ?", int64(Snapshot))
}

// lastEvent gives the seq of the last public event before record no.
func lastEvent(tx *sql.Tx, anchor tip, no uint64) (uint64, error) {
	r, _, found, err := lastWhere(tx, anchor, "r.seq > 0 AND r.no < ?", int64(no))
	if err != nil || !found {
		return anchor.seq, err
	}
	return r.Seq, nil
}
