package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// closedJournal makes a journal of n records, cleanly closed, and gives its file, records and head.
func closedJournal(t *testing.T, n int) (file []byte, records []Record, end tip, head Head) {
	t.Helper()
	path := journalPath(t)
	j, _ := mustOpen(t, path, Options{})
	for len(records) < n {
		records = append(records, mustAppend(t, j, min(7, n-len(records)))...)
	}
	if err := j.Deliver(j.LastSeq() - 1); err != nil {
		t.Fatal(err)
	}
	end.No, end.Hash = j.end()
	head = lastHead(t, j)
	mustClose(t, j)
	return read(t, path), records, end, head
}

// mustFind checks that Verify names the record (0 for the file) and that Open refuses when the damage is in its range.
func mustFind(t *testing.T, path string, no uint64, inOpen bool, known ...Head) {
	t.Helper()
	r, err := Verify(path, known...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Findings, func(d Damage) bool { return d.No == no && d.What != "" }) {
		t.Errorf("verify finds %v, not record %d", r.Findings, no)
	}
	if !inOpen {
		return
	}
	j, _, err := Open(path, Options{})
	switch {
	case err == nil:
		j.abandon()
		t.Error("open accepts it")
	case !errors.Is(err, ErrDamaged):
		t.Errorf("open: %v", err)
	case !strings.Contains(err.Error(), "shoed journal verify"), no > 0 && !strings.Contains(err.Error(), fmt.Sprintf("record %d ", no)):
		t.Errorf("open does not say where or what to do: %v", err)
	}
}

// Each flipped bit in each field of each record is found, in that record; by Open too, from the last snapshot on.
func TestFlippedField(t *testing.T) {
	file, records, _, _ := closedJournal(t, 50)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	const snapshot = 40
	for _, r := range records {
		bit := uint64(1) << (20 + random.IntN(30))
		flipped := func(b []byte) []byte {
			b = append([]byte{}, b...)
			if len(b) == 0 {
				return []byte{0}
			}
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
			return b
		}
		hash := func() []byte { b := [32]byte{}; b[random.IntN(32)] = 1 << random.IntN(8); return b[:] }()
		for _, c := range []struct {
			field string
			value any
			set   string
		}{
			{"no", int64(r.No ^ bit), "no = ?"},
			{"at", r.At.UnixNano() ^ int64(bit), "at = ?"},
			{"kind", int64(r.Kind) ^ 1<<random.IntN(3), "kind = ?"},
			{"kind beyond a byte", int64(r.Kind) + 256, "kind = ?"},
			{"source", string(flipped([]byte(r.Source))), "source = ?"},
			{"seq", int64(r.Seq ^ bit), "seq = ?"},
			{"body", flipped(r.Body), "body = ?"},
			{"hash", xor(stored(t, lay(t, dir, file, nil), r.No), hash), "hash = ?"},
		} {
			path := lay(t, dir, file, nil)
			tamper(t, path, "UPDATE record SET "+c.set+" WHERE no = ?", c.value, int64(r.No))
			// A snapshot under another number is another snapshot to Open, which refuses that one.
			inOpen := r.No >= snapshot && (r.No != snapshot || c.field != "no")
			t.Run(fmt.Sprint(r.No, " ", c.field), func(t *testing.T) { mustFind(t, path, r.No, inOpen) })
		}
	}
}

func stored(t *testing.T, path string, no uint64) (hash []byte) {
	t.Helper()
	db, err := connect(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT hash FROM record WHERE no = ?", int64(no)).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	return hash
}

func xor(a, b []byte) []byte {
	c := bytes.Clone(a)
	for i := range c {
		c[i] ^= b[i]
	}
	return c
}

func TestTampering(t *testing.T) {
	file, records, _, head := closedJournal(t, 100) // the last snapshot is 80
	anchorAt := func(t *testing.T, path string, no uint64) {
		after := tip{No: no, seq: no / 7}
		copy(after.Hash[:], stored(t, path, no))
		tamper(t, path, "DELETE FROM record WHERE no <= ?", int64(no))
		b := fmt.Appendf(nil, "%s%s%s", be(after.No), be(after.seq), after.Hash[:])
		tamper(t, path, "UPDATE meta SET value = ?, sum = ? WHERE name = 'anchor'", b, metaSum("anchor", b))
	}
	for _, c := range []struct {
		name   string
		do     func(t *testing.T, path string)
		no     uint64
		inOpen bool
	}{
		{"dropped early", sqlText("DELETE FROM record WHERE no = 30"), 30, false},
		{"dropped late", sqlText("DELETE FROM record WHERE no = 90"), 90, true},
		{"first dropped", sqlText("DELETE FROM record WHERE no = 1"), 1, false},
		{"dropped and closed up", sqlText("DELETE FROM record WHERE no = 85; UPDATE record SET no = no - 1 WHERE no > 85"), 85, true},
		{"event dropped", sqlText("DELETE FROM record WHERE no = 91"), 91, true},
		{"swapped late", swap(90, 95), 90, true},
		{"swapped early", swap(20, 21), 20, false},
		{"swapped events", swap(84, 91), 84, true},
		{"cut below the cursor", sqlText("DELETE FROM record WHERE no > 88"), 89, true},
		{"cut above the cursor, head known", sqlText("DELETE FROM record WHERE no > 97"), 98, false},
		{"beginning cut", sqlText("DELETE FROM record WHERE no <= 40"), 1, false},
		{"beginning cut, anchor forged", func(t *testing.T, path string) { anchorAt(t, path, 40) }, 0, false},
		{"anchor within the records", sqlText("UPDATE meta SET value = (SELECT value FROM meta WHERE name = 'epoch') WHERE name = 'anchor'"), 0, true},
		{"record before the first", sqlText("INSERT INTO record SELECT -5, at, kind, source, 0, body, hash FROM record WHERE no = 9"), 0, false},
		{"epoch", sqlText("UPDATE meta SET value = x'66' WHERE name = 'epoch'"), 0, true},
		{"epoch with its sum", func(t *testing.T, path string) {
			b := []byte("ffffffffffffffff")
			tamper(t, path, "UPDATE meta SET value = ?, sum = ? WHERE name = 'epoch'", b, metaSum("epoch", b))
		}, 0, false},
		{"cursor", sqlText("UPDATE meta SET value = x'0000000000000001' WHERE name = 'delivered'"), 0, true},
		{"cursor gone", sqlText("DELETE FROM meta WHERE name = 'delivered'"), 0, true},
		{"index gone", sqlText("DROP INDEX event"), 0, true},
		{"trigger", sqlText("CREATE TRIGGER x AFTER INSERT ON record BEGIN DELETE FROM record WHERE no = 1; END"), 0, true},
		{"column renamed", sqlText("ALTER TABLE record RENAME COLUMN body TO text"), 0, true},
		{"forged from here", func(t *testing.T, path string) {
			before := tip{No: 96}
			copy(before.Hash[:], stored(t, path, 96))
			tamper(t, path, "DELETE FROM record WHERE no > 96")
			forged := slices.Clone(records[96:])
			forged[0].Body = []byte("another card")
			for _, r := range forged {
				insert(t, path, r, before)
				before = before.next(&r)
			}
		}, 98, false},
		{"secret", sqlText("UPDATE meta SET value = zeroblob(32) WHERE name = 'blind'"), 0, true},
		{"secret gone", sqlText("DELETE FROM meta WHERE name = 'blind'"), 0, true},
		{"secret with its sum", func(t *testing.T, path string) {
			b := make([]byte, 32)
			tamper(t, path, "UPDATE meta SET value = ?, sum = ? WHERE name = 'blind'", b, metaSum("blind", b))
		}, 98, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := lay(t, t.TempDir(), file, nil)
			mustVerify(t, path, head)
			c.do(t, path)
			mustFind(t, path, c.no, c.inOpen, head)
		})
	}
}

func be(v uint64) []byte { return []byte{0, 0, 0, 0, 0, 0, byte(v >> 8), byte(v)} }

func sqlText(q string) func(*testing.T, string) {
	return func(t *testing.T, path string) { tamper(t, path, q) }
}

func swap(a, b int) func(*testing.T, string) {
	return sqlText(fmt.Sprintf("UPDATE record SET no = -1 WHERE no = %d; UPDATE record SET no = %d WHERE no = %d; UPDATE record SET no = %d WHERE no = -1", a, a, b, b))
}

// What is read for publishing and for replay is checked on its own, without a Verify before.
func TestReadingRefusesDamage(t *testing.T) {
	file, records, _, _ := closedJournal(t, 50)
	path := lay(t, t.TempDir(), file, nil)
	tamper(t, path, "UPDATE record SET body = x'00' WHERE no IN (14, 40)") // an event and the snapshot
	r, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if events, err := r.Events(0, 1); err != nil || len(events) != 1 || !same(events[0], records[6]) {
		t.Errorf("a good event: %v %v", events, err)
	}
	if _, err := r.Events(1, 1); !errors.Is(err, ErrDamaged) {
		t.Errorf("a bad event: %v", err)
	}
	if _, _, err := r.LastSnapshot(); !errors.Is(err, ErrDamaged) {
		t.Errorf("a bad snapshot: %v", err)
	}
	n := 0
	if err := r.Read(5, func(Record) error { n++; return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("reading over it: %v", err)
	}
	stop := errors.New("enough")
	if err := r.Read(41, func(Record) error { return stop }); err != stop {
		t.Errorf("stopping: %v", err)
	}
}

// Whatever byte of the file changes, either Verify says so or every record still reads the same; and Open, reading
// and Verify end orderly.
func TestFlippedByte(t *testing.T) {
	const flips = 300
	file, records, end, head := closedJournal(t, 90)
	seed := rand.Uint64()
	t.Logf("seed %d, file of %d bytes", seed, len(file))
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	reported := 0
	for range flips {
		damaged := bytes.Clone(file)
		at := random.IntN(len(file))
		damaged[at] ^= byte(1 + random.IntN(255))
		path := lay(t, dir, damaged, nil)
		r, err := Verify(path, head)
		if err != nil {
			t.Fatalf("byte %d to %#x: %v", at, damaged[at], err)
		}
		if !r.OK() {
			reported++
		}
		complete, different := readsSame(path, records)
		if different != "" {
			t.Errorf("byte %d to %#x: %s", at, damaged[at], different)
		}
		if r.OK() && !complete {
			t.Errorf("byte %d to %#x: verify is content but not all can be read", at, damaged[at])
		}
		j, o, err := Open(path, Options{})
		switch {
		case err == nil:
			if no, hash := j.end(); no != end.No || hash != end.Hash || o.Records != end.No {
				t.Errorf("byte %d to %#x: opened at %d: %+v", at, damaged[at], no, o)
			}
			j.abandon()
		case !errors.Is(err, ErrDamaged):
			t.Errorf("byte %d to %#x: open: %v", at, damaged[at], err)
		}
	}
	t.Logf("%d of %d flips reported, the others harmless", reported, flips)
	if reported < flips/10 {
		t.Error("too few flips hit anything: the test is worth little")
	}
}

// readsSame reads all records and events; different says which one is not what was written.
func readsSame(path string, want []Record) (complete bool, different string) {
	r, err := OpenRead(path)
	if err != nil {
		return false, ""
	}
	defer r.Close()
	n := 0
	err = r.Read(0, func(rec Record) error {
		if n >= len(want) || !same(rec, want[n]) {
			different = fmt.Sprintf("record %d reads %+v", n+1, rec)
		}
		n++
		return nil
	})
	events, eventsErr := r.Events(0, len(want))
	for i, e := range events {
		if e.Seq != uint64(i+1) || e.No > uint64(len(want)) || !same(e, want[e.No-1]) {
			different = fmt.Sprintf("event %d reads %+v", i+1, e)
		}
	}
	return err == nil && n == len(want) && eventsErr == nil, different
}
