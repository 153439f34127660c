package journal

import (
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
	Last      Link   // the last good record
	LastSeq   uint64
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
// write-ahead log, and that the records of the known links are the ones they were. A link to a record dropped since
// proves nothing and is passed over. An error means that the files could not be read, and says nothing about them.
func Verify(path string, known ...Link) (Report, error) {
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

func (r *Report) checkChain(tx *sql.Tx, known []Link) error {
	epoch, err := meta(tx, metaEpoch)
	if err != nil {
		return err
	}
	r.Epoch = string(epoch)
	if r.Delivered, err = metaUint(tx, metaDelivered); err != nil {
		return err
	}
	anchor, err := anchorOf(tx)
	if err != nil {
		return err
	}
	if anchor.No == 0 && anchor != seed(r.Epoch) {
		return &Damage{What: "the chain does not begin with this journal's epoch"}
	}
	r.First = anchor.No + 1
	if err := checkBefore(tx, anchor); err != nil {
		return err
	}
	var pruned note
	head, err := walk(tx, anchor, func(rec *Record, t tip) error {
		r.Records++
		r.Last, r.LastSeq = t.Link, t.seq
		return r.look(rec, t, known, &pruned)
	})
	if err != nil {
		return err
	}
	if anchor.No > 0 && (pruned.To != anchor.No || pruned.Hash != hex.EncodeToString(anchor.Hash[:])) {
		return &Damage{What: fmt.Sprintf("records up to %d are gone and no note says that they were pruned", anchor.No)}
	}
	if err := checkKnown(known, anchor, head); err != nil {
		return err
	}
	return checkCursor(head, r.Delivered)
}

// checkKnown compares with the journal's two ends what is known from outside.
func checkKnown(known []Link, anchor, head tip) error {
	for _, k := range known {
		switch {
		case k.No > head.No:
			return &Damage{No: head.No + 1, What: fmt.Sprintf("and more are missing: the end was cut off, for record %d is known to have been there", k.No)}
		case k.No == anchor.No && k != anchor.Link:
			return &Damage{What: fmt.Sprintf("the anchor does not have the hash known of record %d: the journal was rebuilt", k.No)}
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

// look counts a good record, compares it with what is known of it, and remembers the last note of a pruning.
func (r *Report) look(rec *Record, t tip, known []Link, pruned *note) error {
	for _, k := range known {
		if k.No == rec.No && k != t.Link {
			return &Damage{No: rec.No, What: "is not the one it was: its hash differs from the one known, so the journal was rebuilt"}
		}
	}
	switch {
	case rec.Seq != 0:
		r.Events++
	case rec.Kind == Snapshot:
		r.Snapshots++
	case rec.Kind == Note:
		var n note
		if err := json.Unmarshal(rec.Body, &n); err == nil && n.Note == "pruned" {
			*pruned = n
		}
	}
	return nil
}
