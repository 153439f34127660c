package scanner

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

var seedFlag = flag.Uint64("wire-seed", 0, "seed of the tests of wires, as a failure printed it")

// appendEdge appends the record of an edge at now since the computer's start.
func appendEdge(dst []byte, wire uint8, active bool, seq uint32, now time.Duration) []byte {
	kind := wireInactive
	if active {
		kind = wireActive
	}
	return wireRecord{kind, wire, 0, seq, int64(now)}.append(dst)
}

// appendLevels appends a record of levels; two reads of unsteady ones differed.
func appendLevels(dst []byte, levels uint16, unsteady bool, seq uint32, now time.Duration) []byte {
	kind := wireLevels
	if unsteady {
		kind = wireUnsteady
	}
	return wireRecord{kind, 0, levels, seq, int64(now)}.append(dst)
}

// tape makes wire records as device does.
type tape struct {
	b   []byte
	seq uint32
	now time.Duration
}

func newTape() *tape { return (&tape{now: time.Hour}).levels(0) }

func (p *tape) wait(d time.Duration) *tape {
	p.now += d
	return p
}

func (p *tape) edge(wire uint8, active bool) *tape {
	p.seq++
	p.b = appendEdge(p.b, wire, active, p.seq, p.now)
	return p
}

func (p *tape) levels(levels uint16) *tape {
	p.b = appendLevels(p.b, levels, false, p.seq, p.now)
	return p
}

// quiet is the levels that come after a silence.
func (p *tape) quiet(levels uint16) *tape { return p.wait(QuietTime).levels(levels) }

// lose are edges that device never told.
func (p *tape) lose(n uint32) *tape {
	p.seq += n
	return p
}

// records cuts a stream into its records.
func records(b []byte) [][]byte { return slices.Collect(slices.Chunk(b, wireRecordBytes)) }

// seeded is a source of chance whose seed a failure shows.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if *seedFlag != 0 {
		seed = *seedFlag
	}
	t.Logf("seed %d: -wire-seed repeats it", seed)
	return rand.New(rand.NewPCG(seed, 7))
}

func build(t testing.TB, protocol string, o Options) Decoder {
	t.Helper()
	d, err := New(protocol, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// allCodes is a table with a code for every card, by a format, those of some given.
func allCodes(format string, given map[string]string) Codes {
	codes := Codes{}
	for i := range round.Faces {
		codes[fmt.Sprintf(format, i)] = Meaning{Card: round.CardAt(i)}
	}
	for code, text := range given {
		m, err := parseMeaning(text)
		if err != nil {
			panic(err)
		}
		codes[code] = m
	}
	return codes
}

// sayings are readings as golden lines.
func sayings(rs []Reading) []string {
	var all []string
	for _, r := range rs {
		all = append(all, saying(r))
	}
	return all
}

// saying is say, with the code of a card, and without the card where only boxes
// are told.
func saying(r Reading) string {
	switch {
	case r.Input.Kind == round.InPlaced || r.Input.Kind == round.InLifted:
		return fmt.Sprintf("%v %v", r.Input.Kind, r.Input.Box)
	case r.Input.Kind == round.InCard && r.Code != "":
		return fmt.Sprintf("card %v code %s", r.Input.Card, r.Code)
	case r.Input.Kind == round.InCut && r.Code != "":
		return "cut code " + r.Code
	}
	return say(r)
}

func wantSayings(t *testing.T, name string, got []Reading, want ...string) {
	t.Helper()
	if !slices.Equal(sayings(got), want) {
		t.Errorf("%s: read\n%s\nwant\n%s", name, strings.Join(sayings(got), "\n"), strings.Join(want, "\n"))
	}
}

// The layout is shared with package device, which cannot import this one: these
// bytes are in its tests too.
func TestWireRecordLayout(t *testing.T) {
	for _, v := range []struct {
		bytes string
		made  []byte
		want  wireRecord
	}{
		{"01 03 00 00 02 01 00 00 07 CA 9A 3B 00 00 00 00", appendEdge(nil, 3, true, 258, 1_000_000_007), wireRecord{wireActive, 3, 0, 258, 1_000_000_007}},
		{"02 0F 00 00 FF FF FF FF 00 00 00 00 01 00 00 00", appendEdge(nil, 15, false, 1<<32-1, 1<<32), wireRecord{wireInactive, 15, 0, 1<<32 - 1, 1 << 32}},
		{"03 00 01 80 02 01 00 00 07 CA 9A 3B 00 00 00 00", appendLevels(nil, 0x8001, false, 258, 1_000_000_007), wireRecord{wireLevels, 0, 0x8001, 258, 1_000_000_007}},
		{"04 00 01 80 00 00 00 00 00 00 00 00 00 00 00 00", appendLevels(nil, 0x8001, true, 0, 0), wireRecord{wireUnsteady, 0, 0x8001, 0, 0}},
	} {
		b := unhex(t, v.bytes)
		if !bytes.Equal(v.made, b) {
			t.Errorf("made % X, want %s", v.made, v.bytes)
		}
		if got, why := parseWireRecord(b, wiresMost); got != v.want || why != 0 {
			t.Errorf("%s: %+v, %v, want %+v", v.bytes, got, why, v.want)
		}
	}
}

// probe is a circuit that notes what it is told.
type probe struct{ told []string }

func (p *probe) note(format string, args ...any) {
	p.told = append(p.told, fmt.Sprintf(format, args...))
}
func (p *probe) edge(_ *wires, e wireRecord)   { p.note("%d", e.seq) }
func (p *probe) levels(_ *wires, l wireRecord) { p.note("levels %X", l.levels) }
func (p *probe) gap(*wires, int32)             { p.note("gap") }
func (p *probe) cut(*wires)                    { p.note("cut") }
func (p *probe) state() any                    { return len(p.told) }
func (p *probe) with([]byte) (circuit, error)  { return p, nil }

func TestWiresRefuse(t *testing.T) {
	good := appendEdge(nil, 4, true, 1, 5)
	for _, v := range []struct {
		at   int
		to   byte
		want Reason
	}{
		{0, 0, BadCode}, {0, 5, BadCode}, {0, 0xff, BadCode},
		{1, 5, BadIndex}, {1, 0xff, BadIndex},
		{2, 1, BadPayload}, {3, 0x80, BadPayload}, {15, 0x80, BadPayload},
		{0, byte(wireLevels), BadPayload}, // with a wire
	} {
		bad := bytes.Clone(good)
		bad[v.at] = v.to
		p := &probe{}
		w := newWires("probe", 5, p)
		rs := w.Feed(start, append(bytes.Clone(bad), good...), nil)
		if len(rs) != 1 || rs[0].Err == nil || rs[0].Err.Reason != v.want || rs[0].Err.Offset != 0 || !bytes.Equal(rs[0].Err.Bytes, bad) || !slices.Equal(p.told, []string{"1"}) {
			t.Errorf("byte %d as %d: %v, told %v, want %v", v.at, v.to, says(rs), p.told, v.want)
		}
		if s := w.Stats(); s.GarbageBytes != wireRecordBytes || s.Refused[v.want] != 1 {
			t.Errorf("%+v", s)
		}
	}
	levels := appendLevels(nil, 1<<5, false, 0, 5)
	if _, why := parseWireRecord(levels, 5); why != BadPayload {
		t.Errorf("a level of a sixth of five wires: %v", why)
	}
}

// numbered are edges with these numbers; 0 is levels after the highest so far.
func numbered(seqs ...uint32) []byte {
	var b []byte
	high := uint32(0)
	for _, s := range seqs {
		if s == 0 {
			b = appendLevels(b, 0, false, high, time.Second)
			continue
		}
		high = max(high, s)
		b = appendEdge(b, 0, true, s, time.Second)
	}
	return b
}

func TestWiresOrder(t *testing.T) {
	late := []uint32{2} // number 1 comes when it was given up
	want := "gap"
	for s := uint32(3); s <= wiresHeld+2; s++ {
		late = append(late, s)
	}
	for s := 2; s <= wiresHeld+2; s++ {
		want += fmt.Sprint(" ", s)
	}
	for _, v := range []struct {
		seqs       []uint32
		want       string
		lost, dups uint64
	}{
		{[]uint32{1, 2, 3}, "1 2 3", 0, 0},
		{[]uint32{3, 1, 2}, "1 2 3", 0, 0},
		{[]uint32{2, 4, 3}, "", 0, 0}, // 1 may still come
		{[]uint32{2, 4, 3, 1}, "1 2 3 4", 0, 0},
		{[]uint32{2, 4, 0}, "gap 2 gap 4 levels 0", 2, 0},
		{[]uint32{2, 4, 0, 1, 3, 5}, "gap 2 gap 4 levels 0 5", 2, 2},
		{[]uint32{1, 1, 3, 3, 2, 2}, "1 2 3", 0, 3},
		{append(late, 1, wiresHeld+3), want + fmt.Sprint(" ", wiresHeld+3), 1, 1},
	} {
		p := &probe{}
		w := newWires("probe", 1, p)
		w.Feed(start, numbered(v.seqs...), nil)
		if got := strings.Join(p.told, " "); got != v.want || w.stats.LostEdges != v.lost || w.stats.Duplicates != v.dups {
			t.Errorf("%v: told %q, %d lost, %d duplicates; want %q, %d, %d", v.seqs, got, w.stats.LostEdges, w.stats.Duplicates, v.want, v.lost, v.dups)
		}
	}
}

// Levels know how many edges were read: what they say is missing, and that the
// numbers began anew, however that came.
func TestWiresLevelsTellOfNumbers(t *testing.T) {
	p := &probe{}
	w := newWires("probe", 1, p)
	w.Feed(start, appendLevels(numbered(1, 2), 1, false, 5, time.Second), nil)
	w.Feed(start, appendEdge(nil, 0, true, 6, time.Second), nil)
	w.Feed(start, appendLevels(nil, 0, false, 1, time.Second), nil)
	w.Feed(start, appendEdge(nil, 0, true, 2, time.Second), nil)
	if got, want := strings.Join(p.told, " "), "1 2 gap levels 1 6 levels 0 2"; got != want || w.stats.LostEdges != 3 || w.stats.Anomalies != 1 {
		t.Errorf("told %q, want %q; %+v", got, want, w.stats)
	}
}

func TestWiresNumberWraps(t *testing.T) {
	p := &probe{}
	w := newWires("probe", 1, p)
	w.next = 1<<32 - 2
	w.Feed(start, numbered(1<<32-1, 1, 1<<32-2), nil)
	w.Feed(start, appendEdge(nil, 0, true, 0, time.Second), nil)
	if got, want := strings.Join(p.told, " "), "4294967294 4294967295 0 1"; got != want || w.stats.LostEdges != 0 {
		t.Errorf("told %q, want %q; %+v", got, want, w.stats)
	}
}

func TestWiresReconnect(t *testing.T) {
	p := &probe{}
	w := newWires("probe", 1, p)
	torn := numbered(1, 3)
	rs := w.Feed(start, append(bytes.Clone(torn), torn[:5]...), nil)
	w.Reconnect()
	w.Reconnect()
	rs = w.Feed(start, numbered(0, 1), rs)
	if got, want := strings.Join(p.told, " "), "1 gap 3 cut levels 0 1"; got != want || w.stats.LostEdges != 1 || w.stats.GarbageBytes != 5 {
		t.Errorf("told %q, want %q; %+v", got, want, w.stats)
	}
	if len(rs) != 1 || rs[0].Err.Reason != Truncated || rs[0].Err.Offset != 32 || !bytes.Equal(rs[0].Err.Bytes, torn[:5]) {
		t.Errorf("%v", says(rs))
	}
}

// Whatever is lost, doubled and reordered: edges are told in order and each once,
// and each that is not told is counted as lost.
func TestWiresAnyOrder(t *testing.T) {
	r := seeded(t)
	for range 3000 {
		n := 1 + r.IntN(120)
		var seqs []uint32
		sent := 0
		for s := 1; s <= n; s++ {
			for range []int{0, 1, 1, 1, 1, 2}[r.IntN(6)] {
				seqs = append(seqs, uint32(s))
				sent++
			}
		}
		if len(seqs) == 0 {
			continue
		}
		for range r.IntN(2 * n) { // each moves by a few places
			i := r.IntN(len(seqs))
			j := min(i+r.IntN(6), len(seqs)-1)
			seqs[i], seqs[j] = seqs[j], seqs[i]
		}
		for range r.IntN(3) {
			seqs = slices.Insert(seqs, r.IntN(len(seqs)+1), 0)
		}
		seqs = append(seqs, 0)
		p := &probe{}
		w := newWires("probe", 1, p)
		w.Feed(start, numbered(seqs...), nil)
		checkOrder(t, seqs, p.told, w.stats, sent)
	}
}

func checkOrder(t *testing.T, seqs []uint32, told []string, s Stats, sent int) {
	t.Helper()
	edges, last, gap := uint64(0), 0, false
	for _, text := range told {
		var seq int
		if _, err := fmt.Sscan(text, &seq); err != nil {
			gap = gap || text == "gap"
			continue
		}
		if seq <= last || (seq != last+1) != gap {
			t.Fatalf("%v: told %v: %d after %d", seqs, told, seq, last)
		}
		last, gap = seq, false
		edges++
	}
	high := uint64(slices.Max(seqs))
	if edges+s.LostEdges != high || edges+s.Duplicates != uint64(sent) {
		t.Fatalf("%v: %d edges told, %d lost, %d duplicates, of %d numbers and %d records", seqs, edges, s.LostEdges, s.Duplicates, high, sent)
	}
}

// sameEverywhere proves of a stream: however it is cut, whether the program starts
// again at a cut or not, readings, counts and snapshot are the same.
func sameEverywhere(t testing.TB, r *rand.Rand, fresh func() Decoder, b []byte) {
	t.Helper()
	whole := fresh()
	want := whole.Feed(start, b, nil)
	for _, most := range []int{1, wireRecordBytes, 5 * wireRecordBytes} {
		for _, restore := range []bool{false, true} {
			d := fresh()
			var got []Reading
			for rest := b; len(rest) > 0; {
				n := min(1+r.IntN(most), len(rest))
				got, rest = d.Feed(start, rest[:n], got), rest[n:]
				if restore {
					d = revived(t, fresh, d)
				}
			}
			same(t, fmt.Sprintf("cuts up to %d, restored %t", most, restore), got, want)
			if !bytes.Equal(d.Snapshot(), whole.Snapshot()) || d.Stats() != whole.Stats() {
				t.Fatalf("ends as %s, want %s", d.Snapshot(), whole.Snapshot())
			}
		}
	}
}

// revived is d restored from its own snapshot.
func revived(t testing.TB, fresh func() Decoder, d Decoder) Decoder {
	t.Helper()
	to := fresh()
	if err := to.Restore(d.Snapshot()); err != nil {
		t.Fatalf("%v\n%s", err, d.Snapshot())
	}
	if !bytes.Equal(to.Snapshot(), d.Snapshot()) {
		t.Fatalf("restored as %s, want %s", to.Snapshot(), d.Snapshot())
	}
	return to
}

// openedAgain are the readings of records, the wires being opened again, and what
// came then. The program starts again in between.
func openedAgain(t *testing.T, fresh func() Decoder, before [][]byte, after []byte) []Reading {
	t.Helper()
	d := fresh()
	var rs []Reading
	for _, b := range before {
		rs = d.Feed(start, b, rs)
	}
	d.Reconnect()
	return revived(t, fresh, d).Feed(start, after, rs)
}

// refusesSnapshots proves that d takes no snapshot but such as it writes.
func refusesSnapshots(t *testing.T, d Decoder, more ...[2]string) {
	t.Helper()
	good := string(d.Snapshot())
	bad := []string{"", "{}", "null", good + " ", good[:len(good)-1], strings.Replace(good, `"v":1`, `"v":9`, 1)}
	for _, change := range append(more, [2]string{`"record":"`, `"record":"zz`}, [2]string{`"held":"`, `"held":"01`}, [2]string{`"offset":`, `"offset":-`}) {
		if !strings.Contains(good, change[0]) {
			t.Fatalf("%s is not in %s", change[0], good)
		}
		bad = append(bad, strings.Replace(good, change[0], change[1], 1))
	}
	for _, b := range bad {
		if err := d.Restore([]byte(b)); err == nil {
			t.Errorf("%s was taken", b)
		}
		if string(d.Snapshot()) != good {
			t.Fatalf("%s changed the decoder", b)
		}
	}
}

// wireSoup makes records of any kind out of the bytes of a fuzzer, most of them
// possible and in an order that a kernel might give, the others not.
func wireSoup(wires uint8, chance []byte) []byte {
	var b []byte
	now, seq := time.Hour, uint32(0)
	for len(chance) >= 3 {
		what, arg, dt := chance[0], chance[1], chance[2]
		chance = chance[3:]
		now += time.Duration(dt) * time.Duration(dt) * 1000 * (1 + time.Duration(what>>4)*40)
		switch what & 0x0f {
		default:
			seq++
			b = appendEdge(b, arg>>1%wires, arg&1 != 0, seq, now)
		case 8, 9:
			b = appendLevels(b, binary.LittleEndian.Uint16([]byte{arg, arg * 37})&(1<<wires-1), false, seq, now)
		case 10:
			b = appendLevels(b, uint16(arg)&(1<<wires-1), true, seq, now)
		case 11:
			seq += uint32(arg%4) + 1
		case 12: // one that comes late
			b = appendEdge(b, arg%wires, arg&0x80 != 0, seq-uint32(arg%3), now-time.Duration(arg)*1000)
		case 13: // the next two change places
			b = appendEdge(appendEdge(b, arg%wires, true, seq+2, now+1000), arg%wires, false, seq+1, now)
			seq += 2
		case 14:
			b = append(b, bytes.Repeat([]byte{arg}, 16)...)
		case 15:
			seq = uint32(arg) // anew
		}
	}
	return b
}

// fuzzWires is what every decoder of wires keeps, whatever comes: no panic, the
// same readings however the bytes are cut, and after a restart; nothing is told
// without a record, and a record is never refused without being counted.
func fuzzWires(t *testing.T, fresh func() Decoder, wires uint8, chance []byte, seed uint64) {
	b := append(wireSoup(wires, chance), chance...) // and a piece that is no record at all
	r := rand.New(rand.NewPCG(seed, 1))
	whole, d := fresh(), fresh()
	var cut []Reading
	for rest := b; len(rest) > 0; d = revived(t, fresh, d) {
		n := min(1+r.IntN(5*wireRecordBytes), len(rest))
		cut, rest = d.Feed(start, rest[:n], cut), rest[n:]
	}
	same(t, "in pieces", cut, whole.Feed(start, b, nil))
	if !bytes.Equal(d.Snapshot(), whole.Snapshot()) {
		t.Fatalf("ends as %s, want %s", d.Snapshot(), whole.Snapshot())
	}
	d = fresh()
	var got []Reading
	for i := range records(b) {
		if r.IntN(16) == 0 {
			d.Reconnect()
		}
		end := min((i+1)*wireRecordBytes, len(b))
		before := len(got)
		got = d.Feed(start, b[i*wireRecordBytes:end], got)
		for _, reading := range got[before:] {
			if err := reading.Err; err != nil && (err.Offset > int64(end) || !bytes.HasPrefix(b[err.Offset:], err.Bytes)) {
				t.Fatalf("record %d: refused % x at %d", i, err.Bytes, err.Offset)
			}
		}
		d = revived(t, fresh, d)
	}
	counted := uint64(0)
	for _, n := range d.Stats().Refused {
		counted += n
	}
	if int(counted) != refusals(got) {
		t.Fatalf("%d refusals, %d counted", refusals(got), counted)
	}
}

// FuzzWiresRestore: no bytes but a snapshot are taken, and one that is taken is
// written again as it was and breaks nothing.
func FuzzWiresRestore(f *testing.F) {
	all := map[string]Options{"wiegand": {Codes: wiegandCodes}, "parallel8": {Codes: parallel8Codes}, "presence": {Uses: boxNames}, "panel": {Uses: panelWires}}
	for protocol, o := range all {
		d := build(f, protocol, o)
		d.Feed(start, newTape().edge(0, true).lose(2).edge(1, true).b, nil)
		f.Add(d.Snapshot())
		d.Reconnect()
		f.Add(d.Snapshot())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for protocol, o := range all {
			d := build(t, protocol, o)
			was := d.Snapshot()
			if d.Restore(b) != nil {
				b = was
			}
			if !bytes.Equal(d.Snapshot(), b) {
				t.Fatalf("%s: restored as %s, want %s", protocol, d.Snapshot(), b)
			}
			d.Feed(start, newTape().edge(0, true).wait(time.Minute).edge(1, false).quiet(0).b, nil)
			d.Reconnect()
			d.Feed(start, newTape().edge(1, true).quiet(0).b, nil)
		}
	})
}
