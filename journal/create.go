package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// resolve follows links to the file itself, for SQLite puts its log beside that.
func resolve(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// create makes an empty journal, complete before it has its name, so that a file of that name is never half made.
func create(path string) error {
	if _, err := os.Lstat(path + "-wal"); err == nil {
		return &Damage{What: "the file is gone but its write-ahead log is there: put the file back, or move the log away to begin a new journal"}
	}
	made := path + ".new"
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(made + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Cards that the table has not shown are in it: no reading by others. SQLite gives its other files the same mode.
	f, err := os.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return err
	}
	f.Close()
	if err := fill(made); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

func fill(path string) error {
	db, err := connect(path, "rw", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(FULL)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = func() error {
		var id [8]byte
		rand.Read(id[:]) // never fails
		epoch := hex.EncodeToString(id[:])
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		head := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, formatVersion)
		for _, q := range append(schema[:], head) {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		if err := errors.Join(putMeta(tx, metaEpoch, []byte(epoch)), putBlind(tx)); err != nil {
			return err
		}
		if err := putAnchor(tx, seed(epoch)); err != nil {
			return err
		}
		if err := errors.Join(putUint(tx, metaDelivered, 0), putUint(tx, metaClean, 1)); err != nil {
			return err
		}
		return tx.Commit()
	}()
	return errors.Join(err, db.Close()) // Close checkpoints, syncs and removes the log
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
