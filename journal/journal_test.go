package journal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain runs the test binary as one of the child processes of the tests when it is told so.
func TestMain(m *testing.M) {
	child, ok := children[os.Getenv("SHOED_JOURNAL_CHILD")]
	if !ok {
		os.Exit(m.Run())
	}
	if err := child(os.Getenv("SHOED_JOURNAL_PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var children = map[string]func(path string) error{
	"append": appendForever,
	"full":   fillDisk,
	"limit":  exceedLimit,
	"sync":   failSync,
}

var start = time.Date(2026, 11, 1, 20, 0, 0, 123456789, time.UTC)

// made gives the record of that number in a made-up table's life: every seventh is a public event, every fortieth a
// snapshot. It depends on nothing but its arguments, so that it can be compared later.
func made(no, seq uint64) Record {
	r := Record{No: no, At: start.Add(time.Duration(no) * time.Second), Kind: Chunk, Source: "reader", Body: []byte{0x02, byte(no), 0x00, 0xff, 0x03}}
	switch {
	case no%40 == 0:
		r.Kind, r.Source, r.Body = Snapshot, "", bytes.Repeat([]byte{byte(no)}, 500)
	case no%7 == 0:
		r.Kind, r.Source, r.Seq = Event, "", seq
		r.Body = fmt.Appendf(nil, `{"ev":"card","no":%d,"seq":%d}`, no, seq)
	case no%3 == 0:
		r.Kind, r.Source = Input, ""
		r.Body = fmt.Appendf(nil, `{"input":%d,"pad":"%s"}`, no, strings.Repeat("x", int(no%200)))
	case no%11 == 0:
		r.Body = nil
	}
	return r
}

// batch makes the next n records of the journal.
func batch(j *Journal, n int) []Record {
	no, _ := j.end()
	seq := j.LastSeq()
	records := make([]Record, n)
	for i := range records {
		no++
		records[i] = made(no, seq+1)
		seq = max(seq, records[i].Seq)
		records[i].No = 0
	}
	return records
}

func same(a, b Record) bool {
	return a.No == b.No && a.At.Equal(b.At) && a.Kind == b.Kind && a.Source == b.Source && a.Seq == b.Seq && bytes.Equal(a.Body, b.Body)
}

func mustOpen(t *testing.T, path string, o Options) (*Journal, Opening) {
	t.Helper()
	j, opening, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j, opening
}

func mustAppend(t *testing.T, j *Journal, n int) []Record {
	t.Helper()
	records := batch(j, n)
	if err := j.Append(records); err != nil {
		t.Fatal(err)
	}
	return records
}

func mustClose(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// end is the number and the hash of the last record.
func (j *Journal) end() (no uint64, hash [32]byte) {
	t := j.head.Load()
	return t.No, t.Hash
}

// lastHead is the published head at the last public event.
func lastHead(t *testing.T, j *Journal) Head {
	t.Helper()
	events, err := j.Events(j.LastSeq()-1, 1)
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events: %v", len(events), err)
	}
	return Head{events[0].Seq, events[0].Head}
}

type readable interface {
	Read(uint64, func(Record) error) error
}

func readAll(t *testing.T, j readable, from uint64) (all []Record) {
	t.Helper()
	if err := j.Read(from, func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func mustVerify(t *testing.T, path string, known ...Head) Report {
	t.Helper()
	r, err := Verify(path, known...)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Fatalf("verify: %v", r.Findings)
	}
	return r
}

// tamper runs SQL on the journal's file behind its back.
func tamper(t *testing.T, path string, query string, args ...any) {
	t.Helper()
	db, err := connect(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func journalPath(t *testing.T) string { return filepath.Join(t.TempDir(), "journal.db") }

func TestRoundTrip(t *testing.T) {
	path := journalPath(t)
	j, o := mustOpen(t, path, Options{})
	if !o.Created || !o.Clean || o.Records != 0 {
		t.Errorf("a new journal: %+v", o)
	}
	epoch := j.Epoch()
	if b, err := hex.DecodeString(epoch); err != nil || len(b) != 8 {
		t.Errorf("epoch %q", epoch)
	}
	var want []Record
	for n := 1; len(want) < 700; n = n%60 + 1 {
		want = append(want, mustAppend(t, j, n)...)
	}
	for round := range 2 { // once beside the writer, once after a restart
		got := readAll(t, j, 0)
		if len(got) != len(want) {
			t.Fatalf("round %d: %d records instead of %d", round, len(got), len(want))
		}
		for i := range got {
			if !same(got[i], want[i]) || got[i].No != uint64(i+1) {
				t.Fatalf("round %d: got %+v, want %+v", round, got[i], want[i])
			}
		}
		no, hash := j.end()
		if got := readAll(t, j, 699); len(got) != int(no)-698 || got[0].No != 699 {
			t.Errorf("from 699: %d records", len(got))
		}
		if got := readAll(t, j, no+5); len(got) != 0 {
			t.Errorf("beyond the end: %d records", len(got))
		}
		snapshot, ok, err := j.LastSnapshot()
		if last := no / 40 * 40; err != nil || !ok || !same(snapshot, want[last-1]) {
			t.Errorf("last snapshot: %v %v %v", snapshot.No, ok, err)
		}
		mustVerify(t, path, lastHead(t, j))
		mustClose(t, j)
		var o Opening
		j, o = mustOpen(t, path, Options{})
		if n, h := j.end(); n != no || h != hash || j.Epoch() != epoch || !o.Clean || o.Created || o.Records != no {
			t.Fatalf("after a restart: head %d, epoch %s, %+v", n, j.Epoch(), o)
		}
		if o.Verified != no-snapshot.No+1 {
			t.Errorf("verified %d records, the last snapshot is %d of %d", o.Verified, snapshot.No, no)
		}
	}
}

// The layout of the hash is forever: this recomputes it from doc.go's drawing alone.
func TestChainLayout(t *testing.T) {
	previous := seed("00112233445566ff")
	r := Record{No: 1, At: time.Unix(0, 0x0102030405060708), Kind: Event, Source: "ab", Seq: 9, Body: []byte("xyz")}
	layout := hex.EncodeToString(previous.Hash[:]) +
		"0000000000000001" + "0102030405060708" + "03" + "00000002" + "6162" + "0000000000000009" + "00000003" + "78797a"
	b, err := hex.DecodeString(layout)
	if err != nil {
		t.Fatal(err)
	}
	got := r.digest(previous.Hash)
	const fixed = "23a6325928e51e4946d166cff6f0d992448c5a566a676bd04ceedf3449a9c795"
	if want := sha256.Sum256(b); got != want || hex.EncodeToString(got[:]) != fixed {
		t.Errorf("hash %x, by the layout %x, as ever %s", got, want, fixed)
	}
}

// The head that outsiders have is forever too: HMAC-SHA-256 of the chain's hash under the journal's secret. Append,
// Events beside the writer and after a restart, and Verify give the same; without the secret it tells nothing of the
// hash, so two journals of equal records have nothing in common.
func TestHead(t *testing.T) {
	var heads [2][]Record
	for i := range heads {
		path := journalPath(t)
		j, _ := mustOpen(t, path, Options{})
		for _, r := range mustAppend(t, j, 60) {
			if mac := hmac.New(sha256.New, j.secret[:]); r.Seq != 0 {
				mac.Write(stored(t, path, r.No))
				if !bytes.Equal(mac.Sum(nil), r.Head[:]) {
					t.Fatalf("event %d: head %x", r.Seq, r.Head)
				}
				heads[i] = append(heads[i], r)
			} else if r.Head != [32]byte{} {
				t.Errorf("record %d is no event, yet has a head", r.No)
			}
		}
		for range 2 {
			events, err := j.Events(0, 100)
			if err != nil || len(events) != 8 {
				t.Fatalf("%d events: %v", len(events), err)
			}
			for n, e := range events {
				if e.Head != heads[i][n].Head {
					t.Errorf("event %d: head %x, Append gave %x", e.Seq, e.Head, heads[i][n].Head)
				}
			}
			if r := mustVerify(t, path); r.Head != lastHead(t, j) || r.FirstSeq != 1 {
				t.Errorf("verify: %+v", r)
			}
			mustClose(t, j)
			j, _ = mustOpen(t, path, Options{})
		}
	}
	for n := range heads[0] {
		if heads[0][n].Head == heads[1][n].Head {
			t.Errorf("event %d has the same head in two journals", n+1)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	j, _ := mustOpen(t, journalPath(t), Options{})
	good := Record{At: start, Kind: Input}
	event := func(seq uint64) Record { return Record{At: start, Kind: Event, Seq: seq} }
	for _, c := range []struct {
		name    string
		records []Record
	}{
		{"no kind", []Record{good, {At: start}}},
		{"unknown kind", []Record{{At: start, Kind: Command + 1}}},
		{"no time", []Record{{Kind: Input}}},
		{"time out of range", []Record{{Kind: Input, At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}}},
		{"seq on an input", []Record{{At: start, Kind: Input, Seq: 1}}},
		{"seq skipped", []Record{event(2)}},
		{"seq twice", []Record{event(1), good, event(1)}},
		{"long source", []Record{{At: start, Kind: Chunk, Source: strings.Repeat("s", maxSource+1)}}},
		{"long body", []Record{good, {At: start, Kind: Chunk, Body: make([]byte, maxBody+1)}}},
	} {
		if err := j.Append(c.records); err == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
	if no, _ := j.end(); no != 0 || len(readAll(t, j, 0)) != 0 {
		t.Errorf("refused records left something: head %d", no)
	}
	if err := j.Append([]Record{event(1), good, event(2)}); err != nil || j.LastSeq() != 2 {
		t.Errorf("after the refusals: %v, last seq %d", err, j.LastSeq())
	}
	if err := j.Append(nil); err != nil {
		t.Error(err)
	}
}

func TestEvents(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	var want []Record
	for range 30 {
		for _, r := range mustAppend(t, j, 10) {
			if r.Seq != 0 {
				want = append(want, r)
			}
		}
	}
	r, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, events := range []func(uint64, int) ([]Record, error){j.Events, r.Events} {
		var got []Record
		for {
			more, err := events(uint64(len(got)), 7)
			if err != nil {
				t.Fatal(err)
			}
			if len(more) == 0 {
				break
			}
			got = append(got, more...)
		}
		if len(got) != len(want) {
			t.Fatalf("%d events instead of %d", len(got), len(want))
		}
		for i := range got {
			if !same(got[i], want[i]) {
				t.Errorf("got %+v, want %+v", got[i], want[i])
			}
		}
	}
}

func TestDeliver(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	mustAppend(t, j, 35) // five events
	reopen := func(how func() error) uint64 {
		t.Helper()
		if err := how(); err != nil {
			t.Fatal(err)
		}
		j.abandon()
		j, _ = mustOpen(t, path, Options{})
		return j.Delivered()
	}
	deliver := func(seq uint64) {
		t.Helper()
		if err := j.Deliver(seq); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Deliver(6); err == nil {
		t.Error("an event that is not there was delivered")
	}
	deliver(2)
	if got := reopen(func() error { return nil }); got != 0 {
		t.Errorf("the cursor is %d without a write", got)
	}
	deliver(3)
	deliver(1)
	if got := j.Delivered(); got != 3 {
		t.Errorf("the cursor went back to %d", got)
	}
	if got := reopen(j.Flush); got != 3 {
		t.Errorf("after Flush %d", got)
	}
	deliver(4)
	if got := reopen(func() error { return j.Append(batch(j, 1)) }); got != 4 {
		t.Errorf("after Append %d", got)
	}
	deliver(5)
	if got := reopen(func() error { return j.Close() }); got != 5 {
		t.Errorf("after Close %d", got)
	}
}

// abandon drops the handles and the lock as the end of the process would, without marking anything.
func (j *Journal) abandon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.detach()
	j.lock.Close()
	j.closed = true
}

func TestRaise(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	for _, c := range []struct{ to, next uint64 }{{57, 58}, {12, 59}, {59, 60}} {
		if err := j.Raise("session", c.to); err != nil {
			t.Fatal(err)
		}
		if got, err := j.Count("session"); err != nil || got != c.next {
			t.Errorf("after %d: %d, %v, want %d", c.to, got, err, c.next)
		}
	}
	r, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, want := range map[string]uint64{"session": 60, "other": 0} {
		if got, err := r.Counted(name); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	mustClose(t, j)
}

func TestCount(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	for want := uint64(1); want < 6; want++ {
		if got, err := j.Count("session"); err != nil || got != want {
			t.Fatalf("got %d, %v, want %d", got, err, want)
		}
		j.abandon()
		j, _ = mustOpen(t, path, Options{})
	}
	if got, err := j.Count("other"); err != nil || got != 1 {
		t.Errorf("another counter: %d, %v", got, err)
	}
	mustVerify(t, path)
}

// A command is found by its source, the newest of them, and after a restart too.
func TestCommand(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	command := func(source, body string) Record {
		return Record{At: start, Kind: Command, Source: source, Body: []byte(body)}
	}
	mustAppend(t, j, 5)
	if err := j.Append([]Record{command("anna/1", "a"), command("anna/2", "b"), command("anna/1", "c"), {At: start, Kind: Chunk, Source: "anna/3", Body: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for source, want := range map[string]string{"anna/1": "c", "anna/2": "b", "anna/3": "", "": ""} {
			rec, found, err := j.Command(source)
			if err != nil || found != (want != "") || string(rec.Body) != want {
				t.Errorf("%q: %q, %v, %v; want %q", source, rec.Body, found, err, want)
			}
		}
		mustClose(t, j)
		j, _ = mustOpen(t, path, Options{})
	}
	mustClose(t, j)
	tamper(t, path, "UPDATE record SET body = x'00' WHERE source = 'anna/2'")
	r, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := r.Command("anna/2"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a command that was changed: %v", err)
	}
}

// A journal that was begun before there were commands goes on.
func TestVersion1IsBroughtForward(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	mustAppend(t, j, 7)
	mustClose(t, j)
	tamper(t, path, "DROP INDEX command; DELETE FROM meta WHERE name = 'blind'; PRAGMA user_version=1")
	j, opening := mustOpen(t, path, Options{})
	if opening.Created || opening.Records == 0 {
		t.Errorf("%+v", opening)
	}
	mustAppend(t, j, 2)
	mustClose(t, j)
	mustVerify(t, path)
}

func TestSecondOpenIsRefused(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	if _, _, err := Open(path, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("second open: %v", err)
	}
	mustAppend(t, j, 3)
	mustClose(t, j)
	mustClose(t, j)
	if err := j.Append(batch(j, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if _, err := j.Events(0, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("events after close: %v", err)
	}
	if err := j.Flush(); !errors.Is(err, ErrClosed) {
		t.Errorf("flush after close: %v", err)
	}
	mustOpen(t, path, Options{})
}

func TestOpenRefusesWhatIsNoJournal(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"empty file", func(t *testing.T, path string) { write(t, path, nil) }},
		{"text", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("no journal\n"), 1000)) }},
		{"log without its file", func(t *testing.T, path string) { write(t, path+"-wal", []byte("x")) }},
		{"another database", func(t *testing.T, path string) {
			write(t, path, nil)
			tamper(t, path, "PRAGMA journal_mode=WAL; CREATE TABLE t (x)")
		}},
		{"newer version", func(t *testing.T, path string) {
			j, _ := mustOpen(t, path, Options{})
			mustClose(t, j)
			tamper(t, path, "PRAGMA user_version=3")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := journalPath(t)
			c.make(t, path)
			if _, _, err := Open(path, Options{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "journal verify") {
				t.Errorf("open: %v", err)
			}
			if _, err := os.Stat(path); err != nil {
				return
			}
			if r, err := Verify(path); err != nil || r.OK() {
				t.Errorf("verify: %+v, %v", r, err)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "nowhere", "journal.db")
	if _, _, err := Open(missing, Options{}); !errors.Is(err, ErrIO) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := Verify(missing); !errors.Is(err, ErrIO) {
		t.Errorf("verify of nothing: %v", err)
	}
	if _, err := OpenRead(missing); err == nil {
		t.Errorf("reading nothing succeeded")
	}
}

// A creation that was cut short leaves no file of the journal's name, and the next one clears its remains.
func TestCreateAfterInterruption(t *testing.T) {
	path := journalPath(t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		write(t, path+".new"+suffix, []byte("half"))
	}
	if _, o := mustOpen(t, path, Options{}); !o.Created {
		t.Errorf("%+v", o)
	}
	left, err := filepath.Glob(path + ".new*")
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %v %v", left, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm()&0o007 != 0 {
		t.Errorf("others may use it: %v %v", st.Mode(), err)
	}
}

// When the files were given up after a failure, the journal goes on only if they hold what memory believes.
func TestReopenCompares(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	mustAppend(t, j, 50)
	j.detach()
	if _, err := j.Events(0, 9); !errors.Is(err, ErrIO) {
		t.Errorf("events without a handle: %v", err)
	}
	mustAppend(t, j, 2)
	if got := readAll(t, j, 0); len(got) != 52 {
		t.Errorf("%d records", len(got))
	}

	j.detach()
	insert(t, path, made(53, 0), *j.head.Load())
	for range 2 {
		if err := j.Append(batch(j, 1)); !errors.Is(err, ErrAhead) {
			t.Errorf("file ahead: %v", err)
		}
	}
	tamper(t, path, "DELETE FROM record WHERE no > 51")
	if err := j.Append(batch(j, 1)); !errors.Is(err, ErrDamaged) {
		t.Errorf("file behind: %v", err)
	}
}

// insert adds a record after t behind the journal's back, with the hash that it should have.
func insert(t *testing.T, path string, r Record, after tip) {
	t.Helper()
	hash := after.next(&r).Hash
	tamper(t, path, "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?)",
		int64(r.No), r.At.UnixNano(), int64(r.Kind), r.Source, int64(r.Seq), append([]byte{}, r.Body...), hash[:])
}

func TestConcurrentReaders(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	const last = 3000
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { // the publisher
		for seq := uint64(0); seq < last/7-last/280; {
			events, err := j.Events(seq, 16)
			if err != nil {
				t.Error(err)
				return
			}
			for _, e := range events {
				if seq++; e.Seq != seq || !same(e, made(e.No, seq)) {
					t.Errorf("event %+v where %d was due", e, seq)
					return
				}
			}
			if err := j.Deliver(seq); err != nil {
				t.Error(err)
				return
			}
		}
	})
	group.Go(func() { // shoed journal verify and export
		for {
			if r, err := Verify(path); err != nil || !r.OK() {
				t.Errorf("beside the writer: %v %v", r.Findings, err)
				return
			}
			r, err := OpenRead(path)
			if err != nil {
				t.Error(err)
				return
			}
			due := uint64(0)
			err = r.Read(0, func(rec Record) error {
				if due++; rec.No != due {
					return fmt.Errorf("record %d where %d was due", rec.No, due)
				}
				return nil
			})
			if err := errors.Join(err, r.Close()); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for no := uint64(0); no < last; no, _ = j.end() {
		mustAppend(t, j, 5)
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	group.Wait()
}

// A technician's sqlite3 that sits in a transaction fails an Append after a while, and nothing else.
func TestAppendWhileLocked(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	mustAppend(t, j, 30)
	db, err := connect(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	before := j.store
	if err := j.Append(batch(j, 3)); !errors.Is(err, ErrIO) || j.store != before {
		t.Errorf("while locked: %v", err)
	}
	if events, err := j.Events(0, 2); err != nil || len(events) != 2 {
		t.Errorf("reading while locked: %v %v", events, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, 3)
	mustVerify(t, path)
}

// A link to the file is the file: one lock, one log.
func TestOpenThroughLink(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(link, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second open through a link: %v", err)
	}
	mustAppend(t, j, 3)
	j.abandon()
	j, o := mustOpen(t, link, Options{})
	if o.Records != 3 {
		t.Errorf("%+v", o)
	}
	mustVerify(t, link)
	mustClose(t, j)
}

// A query that sorts would hold the whole journal in memory.
func TestQueriesDoNotSort(t *testing.T) {
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	mustAppend(t, j, 100)
	const from = "EXPLAIN QUERY PLAN SELECT " + recordColumns + ", p.hash FROM record r "
	const join = " LEFT JOIN record p ON p.no = r.no - 1 WHERE "
	for query, want := range map[string]string{
		from + "NOT INDEXED" + join + "r.kind = 4 ORDER BY r.no DESC LIMIT 1":                                    "SCAN r",
		from + "NOT INDEXED" + join + "r.seq > 0 AND r.no < 9 ORDER BY r.no DESC LIMIT 1":                        "SEARCH r USING INTEGER PRIMARY KEY",
		from + "INDEXED BY event" + join + "r.seq > 0 AND r.seq > ?1 AND r.seq <= ?1 ORDER BY r.seq LIMIT ?1":    "SEARCH r USING INDEX event",
		"EXPLAIN QUERY PLAN SELECT " + recordColumns + " FROM record r NOT INDEXED WHERE r.no > 5 ORDER BY r.no": "SEARCH r USING INTEGER PRIMARY KEY",
	} {
		rows, err := j.store.db.Query(query, 5)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, step)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "; "); !strings.HasPrefix(text, want) || strings.Contains(text, "TEMP") {
			t.Errorf("%s: %s", query, text)
		}
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{0: "kind(0)", Chunk: "chunk", Input: "input", Event: "event", Snapshot: "snapshot", Note: "note", Command: "command", 7: "kind(7)"} {
		if k.String() != want {
			t.Errorf("%d is %q, want %q", uint8(k), k, want)
		}
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
