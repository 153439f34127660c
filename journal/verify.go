package journal

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Report is what Verify found.
type Report struct {
	Epoch     string
	Records   uint64 // kept and in order up to the first bad one
	Events    uint64 // public events among them
	Snapshots uint64
	First     uint64 // number of the first record kept
	FirstSeq  uint64 // of the first public event kept, or of the next one
	Last      uint64 // number of the last good record
	Head      Head   // at the last good public event
	Delivered uint64
	Findings  []Damage // what is wrong; of the chain only the first bad record, for nothing after it can be trusted
}

// OK tells that nothing is wrong.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// find adds damage to the report and gives back any other error.
func (r *Report) find(err error) error {
	if err == nil || !isDamage(err) {
		return err
	}
	d := &Damage{What: err.Error()}
	errors.As(err, &d)
	r.Findings = append(r.Findings, *d)
	return nil
}

// Verify checks a whole journal, also beside a running daemon, and changes nothing: SQLite's pages, the chain from
// its start or the anchor left by Prune, the contiguity of No and Seq, the variables, the cursor against the end, the
// write-ahead log, and that the events of the known heads are the ones they were. A head at an event dropped since
// proves nothing and is passed over. An error means that the files could not be read, and says nothing about them.
func Verify(path string, known ...Head) (Report, error) {
	var r Report
	path = resolve(path)
	if _, err := os.Stat(path); err != nil {
		return r, failure(path, err)
	}
	if err := r.find(checkLog(path + "-wal")); err != nil {
		return r, failure(path, err)
	}
	db, err := connect(path, "ro", readCache)
	if err != nil {
		return r, failure(path, err)
	}
	defer db.Close()
	tx, err := db.BeginTx(background, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		defer tx.Rollback()
		err = errors.Join(r.find(checkFormat(tx)), r.checkPages(tx), r.find(r.checkChain(tx, known)))
	}
	if err = r.find(err); err != nil {
		return r, failure(path, err)
	}
	return r, nil
}

// checkLog looks for damage in the write-ahead log. A daemon may be writing it, and a log that starts over while it
// is read looks damaged: only what is seen twice is believed.
func checkLog(path string) error {
	var last walScan
	for {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		s, err := scanWAL(f)
		f.Close()
		if err != nil || s.damage() == nil {
			return err
		}
		if s.salts == last.salts && s.broken == last.broken && s.header == last.header {
			return s.damage()
		}
		last = s
	}
}

// checkPages lets SQLite check its own structures.
func (r *Report) checkPages(tx *sql.Tx) error {
	rows, err := tx.Query("PRAGMA integrity_check(20)")
	if err != nil {
		return r.find(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			r.Findings = append(r.Findings, Damage{What: "SQLite: " + line})
		}
	}
	return r.find(rows.Err())
}

func (r *Report) checkChain(tx *sql.Tx, known []Head) error {
	epoch, err := meta(tx, metaEpoch)
	if err != nil {
		return err
	}
	r.Epoch = string(epoch)
	if r.Delivered, err = metaUint(tx, metaDelivered); err != nil {
		return err
	}
	secret, err := blindOf(tx)
	if err != nil {
		return err
	}
	anchor, err := anchorOf(tx)
	if err != nil {
		return err
	}
	if anchor.No == 0 && anchor != seed(r.Epoch) {
		return &Damage{What: "the chain does not begin with this journal's epoch"}
	}
	r.First, r.FirstSeq = anchor.No+1, anchor.seq+1
	if err := checkBefore(tx, anchor); err != nil {
		return err
	}
	hashes := hashesOf(known)
	var pruned note
	head, err := walk(tx, anchor, func(rec *Record, t tip) error {
		r.Records++
		r.Last = rec.No
		if rec.Seq != 0 {
			r.Events++
			r.Head = Head{Seq: rec.Seq, Hash: secret.hash(t.Hash)}
			return checkHead(rec, r.Head.Hash, hashes[rec.Seq])
		}
		r.look(rec, &pruned)
		return nil
	})
	if err != nil {
		return err
	}
	if anchor.No > 0 && (pruned.To != anchor.No || pruned.Hash != hex.EncodeToString(anchor.Hash[:])) {
		return &Damage{What: fmt.Sprintf("records up to %d are gone and no note says that they were pruned", anchor.No)}
	}
	if err := checkEnd(known, head); err != nil {
		return err
	}
	return checkCursor(head, r.Delivered)
}

// hashesOf gives the hashes known of each event.
func hashesOf(known []Head) map[uint64][][sha256.Size]byte {
	hashes := map[uint64][][sha256.Size]byte{}
	for _, k := range known {
		hashes[k.Seq] = append(hashes[k.Seq], k.Hash)
	}
	return hashes
}

// checkHead compares a public event's place in the chain with what is known of it.
func checkHead(rec *Record, hash [sha256.Size]byte, known [][sha256.Size]byte) error {
	for _, k := range known {
		if k != hash {
			return &Damage{No: rec.No, What: fmt.Sprintf("is not the one it was: at event %d the chain differs from the head known of it, so that or an earlier record was rebuilt", rec.Seq)}
		}
	}
	return nil
}

// checkEnd looks for known events beyond the journal's end.
func checkEnd(known []Head, end tip) error {
	for _, k := range known {
		if k.Seq > end.seq {
			return &Damage{No: end.No + 1, What: fmt.Sprintf("and more are missing: the end was cut off, for event %d is known to have been there", k.Seq)}
		}
	}
	return nil
}

// checkBefore looks for records before the beginning, which a walk does not see.
func checkBefore(tx *sql.Tx, anchor tip) error {
	var stray sql.NullInt64
	err := tx.QueryRow("SELECT min(no) FROM record WHERE no <= ?", int64(anchor.No)).Scan(&stray)
	if err == nil && stray.Valid {
		err = &Damage{What: fmt.Sprintf("a record numbered %d stands before the first one", stray.Int64)}
	}
	return err
}

// look counts a snapshot and remembers the last note of a pruning.
func (r *Report) look(rec *Record, pruned *note) {
	switch rec.Kind {
	case Snapshot:
		r.Snapshots++
	case Note:
		var n note
		if err := json.Unmarshal(rec.Body, &n); err == nil && n.Note == "pruned" {
			*pruned = n
		}
	}
}
