package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// image is a journal's files as they are in mid-life, and how far each append reached.
type image struct {
	file, log []byte
	records   []Record
	ends      []int   // length of the log after Open and after each append
	counts    []int   // records at that time
	heads     []Head  // of the last event at that time
	frames    []int64 // frames at that time
}

// takeImage appends some batches of growing size and keeps the files without closing them.
func takeImage(t *testing.T) image {
	t.Helper()
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	defer j.abandon()
	var m image
	note := func() {
		head := Head{}
		if j.LastSeq() > 0 {
			head = lastHead(t, j)
		}
		m.log = read(t, path+"-wal")
		m.ends, m.counts, m.heads = append(m.ends, len(m.log)), append(m.counts, len(m.records)), append(m.heads, head)
		s, err := scanWAL(bytes.NewReader(m.log))
		if err != nil {
			t.Fatal(err)
		}
		m.frames = append(m.frames, int64(s.frames))
	}
	note()
	for n := range 9 {
		m.records = append(m.records, mustAppend(t, j, 1+3*n)...)
		note()
	}
	m.file = read(t, path)
	return m
}

// lay puts the files down in a new directory.
func lay(t *testing.T, dir string, file, log []byte) string {
	t.Helper()
	path := filepath.Join(dir, "journal.db")
	for _, suffix := range []string{"-wal", "-shm", ".lock"} {
		if err := os.RemoveAll(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, file)
	if log != nil {
		write(t, path+"-wal", log)
	}
	return path
}

// upTo gives the number of the last append that is whole in the first n bytes of the log.
func (m *image) upTo(n int) int {
	i := 0
	for i+1 < len(m.ends) && m.ends[i+1] <= n {
		i++
	}
	return i
}

// A log that ends anywhere, as after a power cut, gives the appends that are whole, and Open tells what it cut.
func TestTornLog(t *testing.T) {
	m := takeImage(t)
	seed := rand.Uint64()
	t.Logf("seed %d, log of %d bytes", seed, len(m.log))
	random := rand.New(rand.NewPCG(seed, 0))
	lengths := []int{0, 1, 8, 31, 32, 33, 47, 48, 55, 56, 57}
	const frame = frameHeader + 4096
	for at := walHeader; at <= len(m.log); at += frame {
		lengths = append(lengths, at-1, at, at+1, at+15, at+16, at+frameHeader, at+frame/2, at+random.IntN(frame))
	}
	dir := t.TempDir()
	for _, n := range lengths {
		if n > len(m.log) {
			continue
		}
		path := lay(t, dir, m.file, m.log[:n])
		j, o, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("length %d: %v", n, err)
		}
		last := m.upTo(n)
		torn := n - m.ends[last]
		if m.ends[last] == 0 && n == walHeader {
			torn = 0 // a header alone
		} else if m.ends[last] == 0 && n > walHeader {
			torn = n - walHeader
		}
		if o.Clean || o.TornBytes != int64(torn) || o.Records != uint64(m.counts[last]) {
			t.Errorf("length %d: %+v, want %d records and %d bytes torn", n, o, m.counts[last], torn)
		}
		got := readAll(t, j, 0)
		if torn > 0 { // the repair was noted
			if note := got[len(got)-1]; note.Kind != Note || !bytes.Contains(note.Body, []byte("repaired")) {
				t.Errorf("length %d: the last record is %+v", n, note)
			}
			got = got[:len(got)-1]
		}
		if !slices.EqualFunc(got, m.records[:m.counts[last]], same) {
			t.Fatalf("length %d: records are not the first %d", n, m.counts[last])
		}
		if n%5 == 0 {
			mustVerify(t, path, m.heads[last])
		}
		j.abandon()
	}
}

// Our reading of the log and SQLite's must be one.
func TestScanAgreesWithSQLite(t *testing.T) {
	m := takeImage(t)
	dir := t.TempDir()
	for n := walHeader; n <= len(m.log); n += 1711 {
		path := lay(t, dir, m.file, m.log[:n])
		s, err := scanWAL(bytes.NewReader(m.log[:n]))
		if err != nil {
			t.Fatal(err)
		}
		db, err := connect(path, "rw")
		if err != nil {
			t.Fatal(err)
		}
		var busy, frames, moved uint32
		err = db.QueryRow("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &frames, &moved)
		db.Close()
		if err != nil || s.frames != frames || int64(frames) != m.frames[m.upTo(n)] {
			t.Errorf("length %d: we see %d frames, SQLite %d, there are %d: %v", n, s.frames, frames, m.frames[m.upTo(n)], err)
		}
	}
}

// A flipped bit in the log is either refused, or it is in the last two appends, where it looks like a write that was
// cut short; then those are dropped and said to be torn. Never is a record different.
func TestFlippedLog(t *testing.T) {
	m := takeImage(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const frame = frameHeader + 4096
	var places []int
	for at := range walHeader {
		places = append(places, at)
	}
	for at := walHeader; at < len(m.log); at += frame {
		for range 3 {
			places = append(places, at+random.IntN(frameHeader), at+frameHeader+random.IntN(4096))
		}
	}
	dir := t.TempDir()
	refused, cut := 0, 0
	for _, at := range places {
		log := bytes.Clone(m.log)
		log[at] ^= 1 << random.IntN(8)
		path := lay(t, dir, m.file, log)
		r, verr := Verify(path)
		if verr != nil {
			t.Fatalf("byte %d: verify: %v", at, verr)
		}
		j, o, err := Open(path, Options{})
		if err != nil {
			if !errors.Is(err, ErrDamaged) || r.OK() {
				t.Errorf("byte %d: open: %v, verify: %v", at, err, r.Findings)
			}
			refused++
			continue
		}
		cut++
		got := readAll(t, j, 0)
		if o.TornBytes == 0 || int(o.Records) < m.counts[len(m.counts)-3] || !slices.EqualFunc(got[:o.Records], m.records[:o.Records], same) {
			t.Errorf("byte %d: %+v", at, o)
		}
		j.abandon()
	}
	t.Logf("%d flips refused, %d taken for a torn end", refused, cut)
	if refused < 3*cut {
		t.Error("too few flips were refused")
	}
}

// A log that a crash left longer than what was written reads as zeros; frames behind a header of zeros are damage.
func TestZeroedLog(t *testing.T) {
	m := takeImage(t)
	dir := t.TempDir()
	j, o, err := Open(lay(t, dir, m.file, make([]byte, len(m.log))), Options{})
	if err != nil || o.Records != 0 || o.TornBytes != int64(len(m.log)) {
		t.Fatalf("all zeros: %+v %v", o, err)
	}
	j.abandon()
	log := append(make([]byte, walHeader), m.log[walHeader:]...)
	if _, _, err := Open(lay(t, dir, m.file, log), Options{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a header of zeros: %v", err)
	}
}

func FuzzScanWAL(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 5000))
	f.Add([]byte("\x37\x7f\x06\x82\x00\x2d\xe2\x18\x00\x00\x02\x00\x00\x00\x00\x00abcdefgh12345678"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := scanWAL(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if s.end < 0 || s.torn < 0 || s.end+s.torn > int64(len(b)) {
			t.Errorf("%+v of %d bytes", s, len(b))
		}
	})
}
