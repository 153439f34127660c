package scanner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

var parallel8Codes = allCodes("%02X", map[string]string{"5A": "8s", "FF": "Kh", "80": "cut"})

func newParallel8Decoder(t testing.TB) Decoder {
	return build(t, "parallel8", Options{Codes: parallel8Codes})
}

// strobe is the strobe, and after a time the sample of a code.
func (p *tape) strobe(after time.Duration, code byte) *tape {
	return p.edge(8, true).wait(after).levels(1<<8 | uint16(code))
}

// unsteady is a sample whose two reads differed.
func (p *tape) unsteady(code byte) *tape {
	p.b = appendLevels(p.b, uint16(code), true, p.seq, p.now)
	return p
}

func TestParallel8(t *testing.T) {
	const us = time.Microsecond
	for _, v := range []struct {
		name string
		tape *tape
		want string
	}{
		{"card", newTape().strobe(50*us, 0x5a), "card 8s code 5A"},
		{"after its strobe's end", newTape().edge(8, true).wait(50 * us).levels(0xff), "card Kh code FF"},
		{"cut card", newTape().strobe(50*us, 0x80), "cut code 80"},
		{"no card of the table", newTape().strobe(50*us, 0x77), "unread"},
		{"one sample, one card", newTape().strobe(50*us, 0x5a).edge(8, false).quiet(0xff).wait(time.Second).levels(0x5a), "card 8s code 5A"},
		{"levels without a strobe", newTape().levels(0x5a).edge(8, false).wait(us).levels(0x5a), ""},
		{"edges of bits", newTape().edge(0, true).edge(1, true).wait(us).strobe(50*us, 0x5a), "card 8s code 5A"},
		{"no sample yet", newTape().edge(8, true), ""},
		{"at the last moment", newTape().strobe(10*time.Millisecond, 0x5a), "card 8s code 5A"},
		{"later", newTape().strobe(10*time.Millisecond+1, 0x5a), "late_sample, unread"},
		{"levels from before", newTape().edge(8, true).wait(-us).levels(0xff).wait(2 * us).levels(0x5a), "card 8s code 5A"},
		{"unsteady", newTape().edge(8, true).wait(us).unsteady(0x5a).quiet(0x5a), "unsteady, unread"},
		{"unsteady without a strobe", newTape().unsteady(0x5a), ""},
		{"no sample", newTape().edge(8, true).wait(time.Second).strobe(50*us, 0xff), "no_sample, unread, card Kh code FF"},
		{"strobe twice", newTape().edge(8, true).wait(us).strobe(50*us, 0xff).wait(time.Second).strobe(50*us, 0x5a), "too_close, unread, card 8s code 5A"},
		{"twice, then no sample", newTape().edge(8, true).wait(us).edge(8, true).wait(time.Second).strobe(50*us, 0xff), "no_sample, unread, card Kh code FF"},
		{"one lost before", newTape().lose(1).strobe(50*us, 0x5a), "lost_edges, unread, card 8s code 5A"},
		{"three lost before", newTape().lose(3).strobe(50*us, 0x5a), "gap, lost_edges, unread, card 8s code 5A"},
		{"lost before the sample", newTape().edge(8, true).lose(1).wait(us).levels(0x5a), "gap, lost_edges, unread"},
	} {
		got := whys(newParallel8Decoder(t).Feed(start, v.tape.b, nil))
		if got != v.want {
			t.Errorf("%s: read %q, want %q", v.name, got, v.want)
		}
	}
}

func TestParallel8Hold(t *testing.T) {
	b := newTape().strobe(2*time.Millisecond, 0x5a).b
	for hold, want := range map[time.Duration]string{time.Millisecond: "late_sample, unread", 2 * time.Millisecond: "card 8s code 5A"} {
		got := whys(build(t, "parallel8", Options{Codes: parallel8Codes, Hold: hold}).Feed(start, b, nil))
		if got != want {
			t.Errorf("held for %v: read %q, want %q", hold, got, want)
		}
	}
	for _, o := range []Options{{Hold: -1, Codes: parallel8Codes}, {Hold: time.Minute, Codes: parallel8Codes}, {Codes: wiegandCodes}} {
		if _, err := New("parallel8", o); err == nil {
			t.Errorf("%v was taken", o.Hold)
		} else {
			t.Log(err)
		}
	}
}

// Every wrong bit is another code: it is a card only where the table has it.
func TestParallel8BitErrors(t *testing.T) {
	for bit := range 8 {
		code := byte(0x5a) ^ 1<<bit
		want := "unread"
		if m, known := parallel8Codes[fmt.Sprintf("%02X", code)]; known {
			want = fmt.Sprintf("card %v code %02X", m.Card, code)
		}
		got := whys(newParallel8Decoder(t).Feed(start, newTape().strobe(time.Microsecond, code).b, nil))
		if got != want {
			t.Errorf("%02X: read %q, want %q", code, got, want)
		}
	}
}

// Cards at random, with strobes and samples that go missing: each strobe that came
// is a card or one unread, each that did not is told, and no card is another than
// its strobe's.
func TestParallel8Days(t *testing.T) {
	r := seeded(t)
	for range 500 {
		p := newTape()
		var want []string
		lost := uint64(0)
		waits := false // a strobe without its sample
		miss := func() {
			if waits {
				want = append(want, "no_sample, unread")
			}
			waits = false
		}
		for range 20 {
			code := []byte{0x5a, 0xff, 0x80, 0x90}[r.IntN(4)]
			p.wait(time.Duration(100+r.IntN(900)) * time.Millisecond)
			switch r.IntN(8) {
			case 0: // the sample is lost
				miss()
				p.edge(8, true)
				waits = true
			case 1: // the strobe is lost, and told by the next one
				n := 1 + r.IntN(2)
				p.lose(uint32(n)).wait(time.Second).strobe(40*time.Microsecond, code)
				lost += uint64(n)
				if n > 1 || waits {
					want = append(want, "gap")
				}
				waits = false
				want = append(want, "lost_edges, unread", parallel8Says(code))
			case 2:
				miss()
				p.edge(8, true).wait(time.Microsecond).unsteady(code)
				want = append(want, "unsteady, unread")
			case 3:
				miss()
				p.strobe(11*time.Millisecond, code)
				want = append(want, "late_sample, unread")
			default:
				miss()
				p.strobe(time.Duration(r.IntN(9000))*time.Microsecond, code)
				want = append(want, parallel8Says(code))
			}
		}
		d := newParallel8Decoder(t)
		got := whys(d.Feed(start, p.b, nil))
		if got != strings.Join(want, ", ") || d.Stats().LostEdges != lost {
			t.Fatalf("read\n%s\nwant\n%s; %d edges lost, %+v", got, strings.Join(want, ", "), lost, d.Stats())
		}
	}
}

func parallel8Says(code byte) string {
	switch m, known := parallel8Codes[fmt.Sprintf("%02X", code)]; {
	case !known:
		return "unread"
	case m.Cut:
		return fmt.Sprintf("cut code %02X", code)
	default:
		return fmt.Sprintf("card %v code %02X", m.Card, code)
	}
}

func TestParallel8Splits(t *testing.T) {
	p := newTape().strobe(time.Microsecond, 0x5a).wait(time.Second).edge(8, true).wait(time.Second).lose(1).strobe(time.Microsecond, 0xff)
	p.edge(8, true).wait(time.Microsecond).edge(8, true).wait(time.Microsecond).unsteady(1)
	sameEverywhere(t, seeded(t), func() Decoder { return newParallel8Decoder(t) }, p.b)
}

// The line is lost at every record.
func TestParallel8Reconnect(t *testing.T) {
	all := records(newTape().strobe(time.Microsecond, 0x5a).edge(8, false).wait(time.Second).strobe(time.Microsecond, 0xff).b)
	after := newTape().strobe(time.Microsecond, 0x80).b
	for i, want := range []string{"", "", "truncated, unread, ", "card 8s code 5A, ", "card 8s code 5A, ", "card 8s code 5A, truncated, unread, ", "card 8s code 5A, card Kh code FF, "} {
		rs := openedAgain(t, func() Decoder { return newParallel8Decoder(t) }, all[:i], after)
		if want += "cut code 80"; whys(rs) != want {
			t.Errorf("lost after %d records: read %q, want %q", i, whys(rs), want)
		}
	}
}

func TestParallel8Golden(t *testing.T) {
	goldens(t, "parallel8", func(string) Decoder { return newParallel8Decoder(t) })
}

func TestParallel8SnapshotRefuses(t *testing.T) {
	d := newParallel8Decoder(t)
	d.Feed(start, newTape().lose(1).strobe(1, 0x5a).b[:2*wireRecordBytes], nil)
	refusesSnapshots(t, d, [2]string{`"next":1`, `"next":2`}, [2]string{`"waits":false,"at":0`, `"waits":false,"at":1`},
		[2]string{`"waits":false,"at":0`, `"waits":true,"at":-1`}, [2]string{`"at":0`, `"at":0,"why":"glitch"`})
}

func FuzzParallel8(f *testing.F) {
	f.Add([]byte{0, 17, 5, 8, 0x5a, 1, 8, 0, 200}, uint64(1))
	f.Add([]byte{0, 17, 1, 11, 3, 5, 10, 3, 1, 13, 8, 1, 15, 4, 4, 14, 1, 1, 8, 1, 250}, uint64(2))
	f.Fuzz(func(t *testing.T, chance []byte, seed uint64) {
		fuzzWires(t, func() Decoder { return newParallel8Decoder(t) }, 9, chance, seed)
	})
}

func BenchmarkParallel8(b *testing.B) {
	d := newParallel8Decoder(b)
	p := newTape()
	d.Feed(start, p.b, nil)
	out := make([]Reading, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		p.b = p.b[:0]
		out = d.Feed(start, p.wait(time.Second).strobe(time.Microsecond, 0x5a).b, out[:0])
	}
	if len(out) != 1 || out[0].Input.Kind != round.InCard {
		b.Fatal(says(out))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/record")
}
