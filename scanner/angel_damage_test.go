package scanner

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

// again is d restored from its own snapshot into a new decoder.
func again(t testing.TB, d *angel) *angel {
	t.Helper()
	fresh := newDecoder(t)
	if err := fresh.Restore(d.Snapshot()); err != nil {
		t.Fatalf("%v\n%s", err, d.Snapshot())
	}
	return fresh
}

func same(t testing.TB, what string, got, want []Reading) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: readings differ:\n%s\nwant\n%s", what, strings.Join(says(got), "\n"), strings.Join(says(want), "\n"))
	}
}

// However a stream is cut, and whether or not the program starts again at each
// cut, the readings, the counts and the snapshot are the same.
func TestSplits(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, name := range captures(t) {
		b := capture(t, name)
		whole := newDecoder(t)
		want := whole.Feed(start, b, nil)
		for _, most := range []int{1, 3, 20, 500} {
			for _, restore := range []bool{false, true} {
				d := newDecoder(t)
				var got []Reading
				for rest := b; len(rest) > 0; {
					n := min(1+r.IntN(most), len(rest))
					got = d.Feed(start, rest[:n], got)
					rest = rest[n:]
					if restore {
						d = again(t, d)
					}
				}
				same(t, fmt.Sprintf("%s, cuts up to %d, restored %t", name, most, restore), got, want)
				if !bytes.Equal(d.Snapshot(), whole.Snapshot()) || d.Stats() != whole.Stats() {
					t.Fatalf("%s: ends as %s, want %s", name, d.Snapshot(), whole.Snapshot())
				}
			}
		}
	}
}

// inputs without those that only say that something is missing.
func inputs(rs []Reading) (all []round.Input) {
	for _, r := range rs {
		if r.Err == nil && r.Input.Reader != round.ReaderGap {
			all = append(all, r.Input)
		}
	}
	return all
}

// within reports whether part comes in all, in that order.
func within(part, all []round.Input) bool {
	for _, in := range part {
		i := slices.Index(all, in)
		if i < 0 {
			return false
		}
		all = all[i+1:]
	}
	return true
}

// damage calls fn with b damaged in every way that a single byte can be: each bit
// turned, each byte lost, each replaced by every control character.
func damage(b []byte, fn func(what string, at int, damaged []byte)) {
	bad := bytes.Clone(b)
	for i, was := range b {
		for bit := range 8 {
			bad[i] = was ^ 1<<bit
			fn("bit turned", i, bad)
		}
		for _, c := range []byte{0, stx, etx, enq, ack, nak, 0x7f, 0xff} {
			bad[i] = c
			fn("byte replaced", i, bad)
		}
		bad[i] = was
		fn("byte lost", i, slices.Delete(bytes.Clone(b), i, i+1))
	}
}

// single is one copy of every kind of telegram that stands by itself: no d, whose
// meaning hangs on an E that damage may take away.
func single(t testing.TB) []byte {
	var b []byte
	seq := byte('0')
	for _, in := range []round.Input{
		{Kind: round.InReader, Reader: round.ReaderStart},
		{Kind: round.InCard, To: round.ToFirst, Card: card(t, "2c")},
		{Kind: round.InCard, To: round.ToBurn, Pos: 1, Card: card(t, "Jd")},
		{Kind: round.InCard, To: round.ToBurn, Pos: 0, Card: card(t, "2c")},
		{Kind: round.InCard, To: round.ToPlayer, Pos: 1, Card: round.Masked},
		{Kind: round.InCard, To: round.ToBanker, Pos: 1, Card: card(t, "Kh")},
		{Kind: round.InCard, To: round.ToPlayer, Pos: 1, Card: card(t, "8s"), Again: true},
		{Kind: round.InShow, To: round.ToPlayer, Pos: 3, Card: card(t, "Ac")},
		{Kind: round.InShow, To: round.ToPlayer, Pos: 1, Card: card(t, "9d"), Over: true},
		{Kind: round.InCut},
		{Kind: round.InFault, Code: 2, On: true},
		{Kind: round.InFault, Code: 2},
		{Kind: round.InVerdict, Verdict: round.Verdict{Outcome: round.Tie, BankerPair: true}},
		{Kind: round.InLock, On: true},
		{Kind: round.InSetting, On: true, Address: "01", Value: "0005"},
		{Kind: round.InReader, Reader: round.ReaderStandby},
	} {
		telegram, err := AngelTelegram(seq, in)
		if err != nil {
			t.Fatal(err)
		}
		b, seq = append(b, telegram...), AngelNext(seq)
	}
	return b
}

// Damage to one byte may lose the telegram it is in, which then shows as a gap.
// It never makes a fact that the undamaged line did not have.
func TestDamageInventsNothing(t *testing.T) {
	b := single(t)
	clean := read(t, b)
	if len(inputs(clean)) != len(clean) || len(clean) != 16 {
		t.Fatalf("undamaged: %v", says(clean))
	}
	damage(b, func(what string, at int, damaged []byte) {
		rs := read(t, damaged)
		got := inputs(rs)
		if !within(got, inputs(clean)) {
			t.Fatalf("%s at %d: %v", what, at, says(rs))
		}
		lost := len(clean) - len(got)
		// The first and the last one lost leave nothing to show it by.
		inner := at >= 6 && at < len(b)-6
		if gaps := len(rs) - len(got) - refusals(rs); lost > 1 || lost == 1 && inner && gaps != 1 {
			t.Fatalf("%s at %d: %d lost, %d gaps: %v", what, at, lost, gaps, says(rs))
		}
	})
}

func refusals(rs []Reading) (n int) {
	for _, r := range rs {
		if r.Err != nil {
			n++
		}
	}
	return n
}

// With its copies, a telegram survives damage to any one byte: nothing is lost,
// nothing invented, and no gap is seen.
func TestDamageToOneCopy(t *testing.T) {
	for _, name := range []string{"angel_eye_capture.hex", "open.hex", "overdraw.hex"} {
		b := capture(t, name)
		if name == "angel_eye_capture.hex" { // up to a stand-by; the rest is of the same kind
			b = b[:1400+bytes.Index(b[1400:], []byte{'P', etx})-2]
		}
		want := inputs(read(t, b))
		damage(b, func(what string, at int, damaged []byte) {
			rs := read(t, damaged)
			if got := inputs(rs); !slices.Equal(got, want) || len(rs) != len(got)+refusals(rs) {
				t.Fatalf("%s, %s at %d: %v", name, what, at, says(rs))
			}
		})
	}
}

// A stream cut short anywhere gives the beginning of the readings.
func TestTruncated(t *testing.T) {
	for _, name := range captures(t) {
		b := capture(t, name)
		want := read(t, b)
		d := newDecoder(t)
		var got []Reading
		for i := range b {
			got = d.Feed(start, b[i:i+1], got)
			if len(got) > len(want) {
				t.Fatalf("%s cut at %d: %v", name, i, says(got))
			}
			if n := len(got); n > 0 {
				same(t, name, got[n-1:], want[n-1:n])
			}
		}
	}
}

// A telegram torn at any place, even to its last byte, hides nothing of the next.
func TestTornBeforeGood(t *testing.T) {
	good := unhex(t, "05 32 44 91 CD 03 32 39")
	for _, torn := range [][]byte{unhex(t, "05 31 44 81 B8 03 34 46"), unhex(t, "05 31 4D 30 31 30 30 30 35 03 34 38"),
		unhex(t, "02 52 30 31 03 35 30"), unhex(t, "15 02"), unhex(t, "ff ff ff ff c5 fc")} {
		for n := range torn {
			rs := read(t, append(bytes.Clone(torn[:n]), good...))
			if got := inputs(rs); len(got) != 1 || got[0].Card != card(t, "Kh") || refusals(rs) != min(n, 1) {
				t.Errorf("% X then good: %v", torn[:n], says(rs))
			}
		}
	}
}

// dumb finds telegrams as the specification says it: match at the first byte that
// can start a frame, or drop one byte and look again.
func dumb(b []byte) (telegrams [][]byte, dropped, replies int) {
	for len(b) > 0 {
		n := dumbMatch(b)
		switch {
		case n == 0:
			dropped++
			n = 1
		case b[0] == enq:
			telegrams = append(telegrams, b[:n])
		default:
			replies++
		}
		b = b[n:]
	}
	return telegrams, dropped, replies
}

// dumbMatch is the length of the frame that b begins with, 0 for none.
func dumbMatch(b []byte) int {
	switch {
	case b[0] == ack:
		return 1
	case b[0] == nak && len(b) > 1 && b[1] != enq:
		return 2
	case b[0] != enq && b[0] != stx:
		return 0
	}
	end := bytes.IndexByte(b, etx)
	if end < 0 || len(b) < end+3 {
		return 0
	}
	bcc := string(b[end+1 : end+3])
	for _, c := range b[1:end] {
		if c < ' ' {
			return 0
		}
	}
	x := xor(b[1 : end+1])
	if b[0] == stx {
		if end < 2 || end+3 > angelMaxReply || bcc != fmt.Sprintf("%02X", x) && bcc != fmt.Sprintf("%02X", x^stx) {
			return 0
		}
		return end + 3
	}
	if end < 3 || end > 3+angelMaxPayload || b[1] < '0' || b[1] > '9' || bcc != fmt.Sprintf("%02X", x) {
		return 0
	}
	return end + 3
}

// The splitter, which never looks at a byte twice, against the dumb one.
func TestSplitAgainstDumb(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	good := single(t)
	parts := [][]byte{good[:6], good[6:14], unhex(t, "02 52 30 31 03 35 30"), unhex(t, "02 52 30 31 03 35 32"), {ack}, {nak, stx}, {nak}, {enq}, {stx}, {etx}, {0xff}}
	for range 20000 {
		var b []byte
		for range 1 + r.IntN(12) {
			part := bytes.Clone(parts[r.IntN(len(parts))])
			switch r.IntN(4) {
			case 0:
				part = part[:r.IntN(len(part)+1)]
			case 1:
				part[r.IntN(len(part))] = []byte{byte(r.Uint32()), enq, etx, stx, nak, ack}[r.IntN(6)]
			}
			b = append(b, part...)
		}
		b = append(b, bytes.Repeat([]byte{0xff}, 2*angelMaxReply)...) // an end to whatever is open
		var (
			s   angelSplit
			got [][]byte
		)
		for _, c := range b {
			if p, ok := s.push(c); ok && p.why == 0 {
				got = append(got, bytes.Clone(p.bytes))
			}
		}
		want, dropped, replies := dumb(b)
		if !reflect.DeepEqual(got, want) || s.garbage != uint64(dropped) || s.replies != uint64(replies) {
			t.Fatalf("% x:\n% x, %d dropped, %d replies, want\n% x, %d, %d", b, got, s.garbage, s.replies, want, dropped, replies)
		}
	}
}

// The reported runs are the refused bytes, all of them, at their offsets.
func TestRunsAreTheGarbage(t *testing.T) {
	for _, name := range captures(t) {
		b := capture(t, name)
		d := newDecoder(t)
		var n uint64
		for _, r := range d.Feed(start, append(bytes.Clone(b), enq), nil) {
			if r.Err == nil {
				continue
			}
			if !bytes.Equal(r.Err.Bytes, b[r.Err.Offset:][:len(r.Err.Bytes)]) {
				t.Errorf("%s: %v is not % x", name, r.Err, r.Err.Bytes)
			}
			if r.Err.Reason <= BadChecksum {
				n += uint64(len(r.Err.Bytes))
			}
		}
		if name != "refused.hex" && n != d.Stats().GarbageBytes {
			t.Errorf("%s: %d bytes reported, %d counted", name, n, d.Stats().GarbageBytes)
		}
	}
}

// The first telegram proves nothing, a clock that is set back makes no second
// card, and the window can be set.
func TestDuplicateWindow(t *testing.T) {
	b := unhex(t, "05 31 44 81 80 03 37 37")
	for _, v := range []struct {
		window, after time.Duration
		copy          bool
	}{
		{0, 0, true}, {0, DuplicateWindow, true}, {0, DuplicateWindow + 1, false},
		{0, -DuplicateWindow, true}, {0, -DuplicateWindow - 1, false},
		{20 * time.Millisecond, 20 * time.Millisecond, true}, {20 * time.Millisecond, 21 * time.Millisecond, false},
	} {
		d, err := New("angel", Options{DuplicateWindow: v.window})
		if err != nil {
			t.Fatal(err)
		}
		first := d.Feed(start, b, nil)
		second := d.Feed(start.Add(v.after), b, nil)
		if want := map[bool]int{true: 0, false: 2}[v.copy]; len(first) != 1 || len(second) != want {
			t.Errorf("%+v: %v then %v", v, says(first), says(second))
		}
	}
	// It is counted from the first copy: copies for ever are not one telegram.
	d := newDecoder(t)
	n := 0
	for i := range 50 {
		n += len(d.Feed(start.Add(time.Duration(i)*time.Second/10), b, nil))
	}
	if n != 1+2+2 {
		t.Errorf("five seconds of copies gave %d readings", n)
	}
}

// A face that the table has not shown gets into no error text (game.md section 4).
func TestFrameErrorHidesBytes(t *testing.T) {
	rs := read(t, unhex(t, "05 31 44 84 B8 03 34 41"))
	if len(rs) != 2 || rs[1].Err == nil {
		t.Fatal(says(rs))
	}
	if text := rs[1].Err.Error(); text != "angel: bad_index: 8 bytes refused at offset 0" {
		t.Error(text)
	}
}

func TestNew(t *testing.T) {
	for protocol, o := range map[string]Options{"angle": {}, "": {}, "angel": {DuplicateWindow: -1}} {
		d, err := New(protocol, o)
		if err == nil || d != nil || !strings.Contains(err.Error(), "angel") && !strings.Contains(err.Error(), "-1ns") {
			t.Errorf("%q %v: %v, %v", protocol, o, d, err)
		}
	}
}

func TestReasonText(t *testing.T) {
	for _, r := range Reasons() {
		text, err := r.MarshalText()
		var back Reason
		if err != nil || back.UnmarshalText(text) != nil || back != r || string(text) != r.String() || len(text) == 0 {
			t.Errorf("%d: %q %v %v", r, text, err, back)
		}
	}
	var r Reason
	if _, err := r.MarshalText(); err == nil || r.UnmarshalText([]byte("odd")) == nil {
		t.Error("no reason has a text, or odd is a reason")
	}
}

// What is no snapshot is refused, and changes nothing.
func TestRestoreRefuses(t *testing.T) {
	stream := capture(t, "angel_eye_capture.hex")[:1000]
	for tail, changes := range map[string][][2]string{
		"ff ff 05 31": { // an unfinished frame
			{`"v":2`, `"v":3`}, {`"angel"`, `"barcode"`}, {`"v":2`, `"v":2,"more":0`}, {`{`, ` {`}, {`}}`, `}}}`}, {`}}`, `}`},
			{`"0531"`, `"3105"`}, {`"0531"`, `"06"`}, {`"0531"`, `"053"`}, {`"0531"`, `"053144817F"`},
			{`"run":""`, `"run":"ff","why":"garbage"`}, {`"run":""`, `"run":"","why":"garbage"`},
			{`"offset":1004`, `"offset":1`}, {`"offset":1004`, `"offset":-1`},
			{`"last":"05`, `"last":"06`}, {`"last":"05`, `"last":"0505`}, {`32","last_at"`, `33","last_at"`},
			{`"bad_seq_char":1`, `"odd":1`}, {`"bad_seq_char":1`, `"bad_seq_char":-1`},
		},
		"06 ff 31": { // a pending run
			{`"ff31"`, `""`}, {`"ff31"`, `"ff05"`}, {`"ff31"`, `"0531"`}, {`"ff31"`, `"` + strings.Repeat("ff", maxRun) + `"`},
			{`"ff31"`, `"` + strings.Repeat("ff", maxRun+1) + `"`},
			{`"garbage","last"`, `"bad_card","last"`}, {`"garbage","last"`, `"truncated","last"`}, {`,"why":"garbage"`, ``},
		},
	} {
		d := newDecoder(t)
		d.Feed(start, append(bytes.Clone(stream), unhex(t, tail)...), nil)
		before := d.Snapshot()
		again(t, d)
		for _, c := range changes {
			bad := strings.Replace(string(before), c[0], c[1], 1)
			if bad == string(before) {
				t.Errorf("%s is not in %s", c[0], before)
				continue
			}
			if err := d.Restore([]byte(bad)); err == nil {
				t.Errorf("took %s", bad)
			}
			if !bytes.Equal(d.Snapshot(), before) {
				t.Fatalf("changed by %s", bad)
			}
		}
	}
}

func TestAngelNext(t *testing.T) {
	for seq, want := range map[byte]byte{'0': '1', '1': '2', '8': '9', '9': '1', 0: '1', 'A': '1'} {
		if got := AngelNext(seq); got != want {
			t.Errorf("after %q comes %q, want %q", seq, got, want)
		}
	}
}

// FuzzFeed: no bytes panic, memory and output are bounded, and a cut with a
// restart in it makes no difference.
func FuzzFeed(f *testing.F) {
	for _, name := range captures(f) {
		b := capture(f, name)
		f.Add(b[:min(len(b), 400)], uint16(7), false)
	}
	f.Add(single(f), uint16(3), true)
	f.Fuzz(func(t *testing.T, b []byte, cut uint16, reconnect bool) {
		whole, halves := newDecoder(t), newDecoder(t)
		n := int(cut) % (len(b) + 1)
		want := whole.Feed(start, b[:n], nil)
		got := halves.Feed(start, b[:n], nil)
		if reconnect {
			whole.Reconnect()
			halves.Reconnect()
		}
		halves = again(t, halves)
		want = whole.Feed(start, b[n:], want)
		for i := range b[n:] {
			got = halves.Feed(start, b[n+i:n+i+1], got)
		}
		same(t, "cut", got, want)
		again(t, halves)
		if !bytes.Equal(halves.Snapshot(), whole.Snapshot()) || len(whole.Snapshot()) > 1200 {
			t.Fatalf("%s\n%s", halves.Snapshot(), whole.Snapshot())
		}
		refused := 0
		for _, r := range want {
			if r.Err == nil {
				continue
			}
			if e := r.Err; len(e.Bytes) == 0 || len(e.Bytes) > maxRun || !bytes.Equal(e.Bytes, b[e.Offset:][:len(e.Bytes)]) {
				t.Fatalf("%+v", e)
			}
			refused += len(r.Err.Bytes)
		}
		if facts := len(want) - refusals(want); refused > len(b) || facts > 2*len(b)/6 {
			t.Fatalf("%d bytes refused and %d facts from %d bytes", refused, facts, len(b))
		}
	})
}

// FuzzRestore: what is taken is written back the same, and goes on.
func FuzzRestore(f *testing.F) {
	d := newDecoder(f)
	b := capture(f, "noise.hex")
	for i := range b {
		d.Feed(start, b[i:i+1], nil)
		f.Add(d.Snapshot())
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDecoder(t)
		fresh := d.Snapshot()
		if err := d.Restore(b); err != nil {
			if !bytes.Equal(d.Snapshot(), fresh) {
				t.Fatalf("%v, but it changed", err)
			}
			return
		}
		if !bytes.Equal(d.Snapshot(), b) {
			t.Fatalf("took %s as %s", b, d.Snapshot())
		}
		d.Feed(start, unhex(t, "ff 05 31 44 81 B8 03 34 46"), nil)
		again(t, d)
	})
}

// A telegram with its two copies; the buffer is the caller's, so that only what is
// refused costs memory.
func BenchmarkFeed(b *testing.B) {
	stream := capture(b, "angel_eye_capture.hex")
	d := newDecoder(b)
	out := make([]Reading, 0, 1000)
	b.ReportAllocs()
	for b.Loop() {
		out = d.Feed(start, stream, out[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/627, "ns/telegram")
}

// No allocation for a telegram.
func TestFeedAllocs(t *testing.T) {
	d, stream, out := newDecoder(t), single(t)[:14], make([]Reading, 0, 10)
	if n := testing.AllocsPerRun(100, func() { out = d.Feed(start, stream, out[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
