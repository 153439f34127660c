package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Damage is one thing found wrong in a journal. As an error it comes wrapped with ErrDamaged.
type Damage struct {
	No   uint64 // the record concerned; 0 when it is the file
	What string
}

// Error says what is wrong, and in which record.
func (d *Damage) Error() string {
	if d.No == 0 {
		return d.What
	}
	return fmt.Sprintf("record %d %s", d.No, d.What)
}

// Stable sentinels; every error of the package that has one of these causes wraps it.
var (
	// ErrFull: the disk has no room. Nothing was changed, and the call may be repeated when there is room.
	ErrFull = errors.New("disk full")
	// ErrIO: the disk or the store failed. Nothing was changed, and the call may be repeated.
	ErrIO = errors.New("the store failed")
	// ErrDamaged: the journal is not what was written. The file must be looked at by a person.
	ErrDamaged = errors.New("damaged")
	// ErrLocked: another process has the journal open for writing.
	ErrLocked = errors.New("in use by another process")
	// ErrAhead: the file holds records whose Append had reported a failure that looked final. The daemon
	// must restart and replay them.
	ErrAhead = errors.New("the file holds more than memory believes")
	// ErrPruned: the records asked for were dropped by Prune.
	ErrPruned = errors.New("pruned")
	// ErrClosed: the journal was used after Close.
	ErrClosed = errors.New("closed")
)

// failure wraps err with the journal's path, the sentinel of its cause and what to do. It gives nil for nil.
func failure(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrPruned), errors.Is(err, ErrClosed), errors.Is(err, ErrAhead):
		return fmt.Errorf("journal %s: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("journal %s: %w: %w: there is none; look at [journal] dir, or name the file", path, ErrIO, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("journal %s: %w: %w: give its directory to the user that runs shoed", path, ErrIO, err)
	case isDamage(err):
		return fmt.Errorf("journal %s is %w: %w; keep its files as they are and run `shoed journal verify %s`", path, ErrDamaged, err, path)
	case isFull(path, err):
		return fmt.Errorf("journal %s: %w: %w; make room on its file system", path, ErrFull, err)
	}
	return fmt.Errorf("journal %s: %w: %w; look at its disk", path, ErrIO, err)
}

func isDamage(err error) bool {
	var d *Damage
	if errors.As(err, &d) {
		return true
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR,
		sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_TOOBIG:
		return true
	}
	return e.Code() == sqlite3.SQLITE_IOERR_CORRUPTFS
}

// noRoom is the space below which a failure of the store is put down to a full disk: SQLite reports a log index that
// cannot grow by its 32 KiB as an I/O error.
const noRoom = 64 << 10

func isFull(path string, err error) bool {
	if primary(err) == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) {
		return true
	}
	var fs syscall.Statfs_t
	return syscall.Statfs(filepath.Dir(path), &fs) == nil && int64(fs.Bavail)*int64(fs.Bsize) < noRoom
}

func primary(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}
