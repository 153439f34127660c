package scanner

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func newPresenceDecoder(t testing.TB) Decoder {
	return build(t, "presence", Options{Uses: boxNames})
}

// hum moves a wire to and fro n times, a change every so often.
func (p *tape) hum(wire uint8, n int, every time.Duration) *tape {
	for range n {
		p.edge(wire, true).wait(every).edge(wire, false).wait(every)
	}
	return p
}

func TestPresence(t *testing.T) {
	for _, v := range []struct {
		name    string
		tape    *tape
		want    string
		bounces uint64
	}{
		{"placed and lifted", newTape().edge(0, true).quiet(1).wait(time.Second).edge(0, false).quiet(0), "placed P1, lifted P1", 0},
		{"each box", newTape().edge(0, true).edge(1, true).edge(2, true).edge(3, true).edge(4, true).edge(5, true).quiet(0x3f), "placed P1, placed P2, placed P3, placed B1, placed B2, placed B3", 0},
		{"in the order in which it was done", newTape().edge(4, true).wait(ms).edge(1, true).quiet(1<<4 | 1<<1), "placed B2, placed P2", 0},
		{"not proved yet", newTape().edge(0, true).wait(19 * ms).levels(1), "", 0},
		{"proved", newTape().edge(0, true).wait(20 * ms).levels(1), "placed P1", 0},
		{"proved by another wire", newTape().edge(0, true).wait(20*ms).edge(3, true), "placed P1", 0},
		{"proved by its own next change", newTape().edge(0, true).wait(20*ms).edge(0, false).quiet(0), "placed P1, lifted P1", 0},
		{"bounces", newTape().edge(0, true).wait(2*ms).edge(0, false).wait(ms).edge(0, true).quiet(1), "placed P1", 2},
		{"only touched", newTape().edge(0, true).wait(19*ms).edge(0, false).quiet(0), "", 1},
		{"lifted for a moment", newTape().edge(0, true).quiet(1).wait(time.Second).edge(0, false).wait(9*ms).edge(0, true).quiet(1), "placed P1", 1},
		{"unsteady levels", newTape().unsteady(1), "", 0},

		{"there from the start", (&tape{now: time.Hour}).levels(1 << 3), "placed B1", 0},
		{"found by levels", newTape().wait(time.Hour).levels(1).wait(time.Hour).levels(0), "placed P1, lifted P1", 0},
		{"its edge is lost", newTape().lose(1).wait(ms).edge(1, true).quiet(3), "placed P2, placed P1", 0},
		{"levels amid bounces", newTape().edge(0, true).wait(ms).edge(0, false).wait(ms).levels(1).wait(ms).edge(0, false).quiet(0), "", 2},
		{"levels amid bounces, then there", newTape().edge(0, true).wait(ms).edge(0, false).wait(ms).levels(1).quiet(1), "placed P1", 1},
		{"an edge that levels told already", newTape().wait(time.Hour).levels(1).wait(-ms).edge(0, true).wait(ms).quiet(1), "placed P1", 0},
		{"twice active, once lost", newTape().edge(0, true).wait(ms).lose(1).wait(ms).edge(0, true).quiet(1), "placed P1", 1},
		{"the end of a bounce is lost", newTape().edge(0, true).wait(ms).lose(1).wait(30*ms).edge(3, true).quiet(1 << 3), "placed B1", 0},
		{"the end of a bounce is lost, more edges come", newTape().edge(0, true).lose(1).wait(30*ms).edge(3, true).wait(19*ms).edge(3, false).quiet(0), "", 1},
		{"lost, and a next edge", newTape().edge(0, true).wait(ms).lose(1).wait(ms).edge(0, true).wait(20*ms).edge(3, true).quiet(1<<3 | 1), "placed P1, placed B1", 1},
		{"lost, and long after proved", newTape().edge(0, true).lose(1).wait(30*ms).edge(3, true).wait(20*ms).edge(3, false).quiet(1), "placed B1, placed P1, lifted B1", 0},
	} {
		d := newPresenceDecoder(t)
		got := whys(d.Feed(start, v.tape.b, nil))
		if got != v.want || d.Stats().Bounces != v.bounces {
			t.Errorf("%s: read %q, %d bounces, want %q, %d", v.name, got, d.Stats().Bounces, v.want, v.bounces)
		}
	}
}

// Edges that wait for one that is lost are told once levels give it up.
func TestPresenceHeldByAHole(t *testing.T) {
	d := newPresenceDecoder(t)
	p := newTape().lose(1).edge(0, true).wait(QuietTime)
	if got := whys(d.Feed(start, p.b, nil)); got != "" {
		t.Errorf("read %q", got)
	}
	p.b = nil
	if got := whys(d.Feed(start, p.levels(1).b, nil)); got != "placed P1" || d.Stats().LostEdges != 1 {
		t.Errorf("read %q, %+v", got, d.Stats())
	}
}

func TestPresenceBouncing(t *testing.T) {
	for _, v := range []struct {
		name string
		tape *tape
		want string
	}{
		{"the mains", newTape().hum(0, 50, 10*ms).quiet(0), "wire P1 bouncing"},
		{"a nervous hand", newTape().hum(0, 20, 25*ms).quiet(0), strings.TrimSuffix(strings.Repeat("placed P1, lifted P1, ", 20), ", ")},
		{"once", newTape().hum(0, 500, 10*ms).quiet(0), "wire P1 bouncing"},
		{"just not", newTape().hum(0, 30, 5*ms).quiet(0), ""},
		{"its level, once it is quiet", newTape().hum(0, 50, 10*ms).edge(0, true).quiet(1), "wire P1 bouncing, placed P1"},
		{"well again with its next change", newTape().hum(0, 50, 10*ms).edge(0, true).quiet(1).wait(time.Minute).edge(0, false).quiet(0),
			"wire P1 bouncing, placed P1, wire P1 ok, lifted P1"},
		{"well again with another's", newTape().hum(0, 50, 10*ms).quiet(0).wait(time.Minute).edge(5, true).quiet(1 << 5), "wire P1 bouncing, wire P1 ok, placed B3"},
		{"no rest yet", newTape().hum(0, 50, 10*ms).quiet(0).wait(900*ms).edge(5, true).quiet(1 << 5), "wire P1 bouncing, placed B3"},
		{"and again", newTape().hum(0, 50, 10*ms).quiet(0).wait(time.Minute).hum(0, 50, 10*ms).quiet(0), "wire P1 bouncing, wire P1 ok, wire P1 bouncing"},
		{"beside others", newTape().hum(0, 40, 10*ms).edge(3, true).hum(0, 10, 10*ms).quiet(1 << 3), "wire P1 bouncing, placed B1"},
	} {
		if got := whys(newPresenceDecoder(t).Feed(start, v.tape.b, nil)); got != v.want {
			t.Errorf("%s: read %q, want %q", v.name, got, v.want)
		}
	}
}

// After a new opening the first levels tell what is other than was told, and
// nothing else; and a wire that bounced has a new chance.
func TestPresenceReconnect(t *testing.T) {
	for _, v := range []struct {
		name   string
		before *tape
		after  uint16
		want   string
	}{
		{"as before", newTape().edge(0, true).quiet(1), 1, "placed P1"},
		{"one more", newTape().edge(0, true).quiet(1), 3, "placed P1, placed P2"},
		{"taken away", newTape().edge(0, true).quiet(1), 0, "placed P1, lifted P1"},
		{"not told, and there", newTape().edge(0, true), 1, "placed P1"},
		{"not told, and gone", newTape().edge(0, true), 0, ""},
		{"bouncing", newTape().hum(0, 50, 10*ms), 1, "wire P1 bouncing, wire P1 ok, placed P1"},
	} {
		after := appendLevels(nil, v.after, false, 0, v.before.now+time.Minute)
		rs := openedAgain(t, func() Decoder { return newPresenceDecoder(t) }, records(v.before.b), after)
		if got := whys(rs); got != v.want {
			t.Errorf("%s: read %q, want %q", v.name, got, v.want)
		}
	}
}

// Wherever the wires are opened again, the first levels leave nothing open.
func TestPresenceReconnectAnywhere(t *testing.T) {
	r := seeded(t)
	day := records(recorded(layoutDay(r, 4), func(int) bool { return r.IntN(20) == 0 }))
	for i := range len(day) + 1 {
		levels := uint16(r.IntN(64))
		rs := openedAgain(t, func() Decoder { return newPresenceDecoder(t) }, day[:i], appendLevels(nil, levels, false, 0, 2*time.Hour))
		var now uint16
		for _, reading := range rs {
			what, box, _ := strings.Cut(saying(reading), " ")
			bit := uint16(1) << slices.Index(boxNames, box)
			if (now&bit != 0) == (what == "placed") {
				t.Fatalf("opened again after %d records: %v", i, sayings(rs))
			}
			now ^= bit
		}
		if now != levels {
			t.Fatalf("opened again after %d records: told %b, levels are %b", i, now, levels)
		}
	}
}

func TestPresenceOptions(t *testing.T) {
	for _, o := range []Options{
		{}, {Uses: []string{"P1", "P4"}}, {Uses: []string{"P1", ""}}, {Uses: []string{"P1", "B1", "P1"}}, {Uses: make([]string, 17)},
		{Uses: boxNames, Steady: -1}, {Uses: boxNames, Steady: QuietTime + 1},
	} {
		if _, err := New("presence", o); err == nil {
			t.Errorf("%+v was taken", o)
		} else {
			t.Log(err)
		}
	}
	d := build(t, "presence", Options{Uses: []string{"B3", "P1"}, Steady: 5 * ms})
	if got := whys(d.Feed(start, newTape().edge(0, true).wait(5*ms).edge(1, true).quiet(3).b, nil)); got != "placed B3, placed P1" {
		t.Errorf("read %q", got)
	}
}

// change is one of a wire, in truth.
type change struct {
	wire  uint8
	level bool
	at    time.Duration
}

// layoutDay are changes of boxes at random, with bounces, in the order of time.
func layoutDay(r *rand.Rand, n int) []change {
	var all []change
	for wire := range uint8(6) {
		now, level := time.Hour, false
		for range n {
			now += time.Duration(1+r.IntN(300)) * ms
			for range 1 + 2*r.IntN(3)*r.IntN(2) { // odd: it ends on the other level
				level = !level
				all = append(all, change{wire, level, now})
				now += time.Duration(1+r.IntN(24_000)) * time.Microsecond
			}
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return int(a.at - b.at) })
	return all
}

// recorded are the records of changes, some of them lost, with levels after each
// silence.
func recorded(changes []change, lost func(i int) bool) []byte {
	b := appendLevels(nil, 0, false, 0, time.Hour)
	levels, high := uint16(0), uint32(0)
	for i, c := range changes {
		levels &^= 1 << c.wire
		if c.level {
			levels |= 1 << c.wire
		}
		if !lost(i) {
			high = uint32(i + 1)
			b = appendEdge(b, c.wire, c.level, high, c.at)
		}
		if quiet := c.at + QuietTime; i+1 == len(changes) || changes[i+1].at > quiet {
			b = appendLevels(b, levels, false, high, quiet)
		}
	}
	return b
}

// plateaus are the levels that each wire kept for the steady time, as texts, by
// when they began: what there is to tell, told by the truth alone.
func plateaus(changes []change) []string {
	type plateau struct {
		at   time.Duration
		text string
	}
	var all []plateau
	for wire := range uint8(6) {
		told := false
		var own []change
		for _, c := range changes {
			if c.wire == wire {
				own = append(own, c)
			}
		}
		for i, c := range own {
			if kept := i+1 == len(own) || own[i+1].at-c.at >= SteadyTime; kept && c.level != told {
				told = c.level
				all = append(all, plateau{c.at, map[bool]string{true: "placed ", false: "lifted "}[told] + boxNames[wire]})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b plateau) int { return int(a.at - b.at) })
	var texts []string
	for _, p := range all {
		texts = append(texts, p.text)
	}
	return texts
}

// However switches bounce, exactly the levels that they kept are told, in the order
// in which they were taken.
func TestPresenceDays(t *testing.T) {
	r := seeded(t)
	told := 0
	for range 300 {
		changes := layoutDay(r, 8)
		d := newPresenceDecoder(t)
		got := sayings(d.Feed(start, recorded(changes, func(int) bool { return false }), nil))
		want := plateaus(changes)
		if !slices.Equal(got, want) {
			t.Fatalf("%v\nread %v\nwant %v", changes, got, want)
		}
		if s := d.Stats(); s.Frames != uint64(len(want)) || s.LostEdges != 0 {
			t.Fatalf("%+v", s)
		}
		told += len(got)
	}
	if told < 3000 {
		t.Errorf("%d changes prove little", told)
	}
}

// With edges lost: no level is told that the wire did not keep, or have when levels
// were told; after levels everything is as it is; and every lost edge is counted.
func TestPresenceLosses(t *testing.T) {
	r := seeded(t)
	for range 300 {
		changes := layoutDay(r, 8)
		lost := map[int]bool{}
		for i := range len(changes) - 1 { // the last one's loss would show with the next
			lost[i] = r.IntN(10) == 0
		}
		n := 0
		for _, is := range lost {
			if is {
				n++
			}
		}
		d := newPresenceDecoder(t)
		told := map[string]bool{}
		for _, b := range records(recorded(changes, func(i int) bool { return lost[i] })) {
			e, _ := parseWireRecord(b, 6)
			for _, reading := range d.Feed(start, b, nil) {
				text := saying(reading)
				what, box, _ := strings.Cut(text, " ")
				told[box] = what == "placed"
				if !keptOrTold(changes, e, uint8(slices.Index(boxNames, box)), told[box]) {
					t.Fatalf("%v, lost %v: %q at %+v", changes, lost, text, e)
				}
			}
			for i, box := range boxNames {
				if e.kind == wireLevels && told[box] != (e.levels>>i&1 != 0) {
					t.Fatalf("%v, lost %v: after levels %+v box %s is told %t", changes, lost, e, box, told[box])
				}
			}
		}
		if s := d.Stats(); s.LostEdges != uint64(n) {
			t.Fatalf("%d edges lost, %+v", n, s)
		}
	}
}

// keptOrTold reports whether a wire truly kept a level for the steady time until
// the time of some record up to e's, or has it in e's levels.
func keptOrTold(changes []change, e wireRecord, wire uint8, level bool) bool {
	if e.kind == wireLevels && (e.levels>>wire&1 != 0) == level {
		return true
	}
	now, since := false, time.Duration(0)
	for _, c := range changes {
		if c.at >= time.Duration(e.time) {
			break
		}
		if c.wire == wire {
			if now == level && c.at-since >= SteadyTime && c.at > time.Duration(e.time)-time.Second {
				return true
			}
			now, since = c.level, c.at
		}
	}
	return now == level && time.Duration(e.time)-since >= SteadyTime
}

// Ten thousand changes, at a pace that no layout has.
func TestPresenceTenThousand(t *testing.T) {
	d := newPresenceDecoder(t)
	p := newTape()
	told := 0
	for i := range 10_000 {
		wire, active := uint8(i/2%6), i%2 == 0
		p.b = p.b[:0]
		p.edge(wire, active).wait(3*ms).edge(wire, !active).wait(ms).edge(wire, active).wait(21 * ms)
		if i%3 == 0 {
			p.quiet(map[bool]uint16{true: 1 << wire}[active])
		}
		told += len(d.Feed(start, p.b, nil))
	}
	p.b = p.b[:0]
	told += len(d.Feed(start, p.quiet(0).b, nil))
	if want := (Stats{Frames: 10_000, Bounces: 20_000}); told != 10_000 || d.Stats() != want {
		t.Errorf("%d changes told, %+v", told, d.Stats())
	}
}

func TestPresenceSplits(t *testing.T) {
	r := seeded(t)
	fresh := func() Decoder { return newPresenceDecoder(t) }
	for range 3 {
		sameEverywhere(t, r, fresh, recorded(layoutDay(r, 3), func(int) bool { return r.IntN(20) == 0 }))
	}
	sameEverywhere(t, r, fresh, newTape().hum(0, 40, 10*ms).quiet(0).wait(time.Second).edge(3, true).quiet(1<<3).b)
}

func TestPresenceGolden(t *testing.T) {
	goldens(t, "presence", func(string) Decoder { return newPresenceDecoder(t) })
}

func TestPresenceSnapshotRefuses(t *testing.T) {
	d := newPresenceDecoder(t)
	d.Feed(start, newTape().lose(1).edge(0, true).b, nil)
	refusesSnapshots(t, d, [2]string{`"P1","P2"`, `"P2","P1"`}, [2]string{`"changes":0`, `"changes":-1`}, [2]string{`"wrong":0`, `"wrong":3`},
		[2]string{`"wires":[`, `"wires":[{"told":false,"level":false,"since":0,"unsure":false,"second":0,"changes":0,"wrong":0},`})
}

func FuzzPresence(f *testing.F) {
	f.Add([]byte{0, 1, 5, 0, 3, 5, 8, 0, 200}, uint64(1))
	f.Add([]byte{0, 1, 5, 11, 3, 5, 12, 3, 1, 13, 1, 1, 15, 4, 4, 14, 1, 1, 8, 1, 250}, uint64(2))
	f.Fuzz(func(t *testing.T, chance []byte, seed uint64) {
		fuzzWires(t, func() Decoder { return newPresenceDecoder(t) }, 6, chance, seed)
	})
}

// BenchmarkPresence is a box in use; chatter is a wire that changes without end.
func BenchmarkPresence(b *testing.B) {
	for name, make := range map[string]func(p *tape) *tape{
		"use":     func(p *tape) *tape { return p.edge(0, true).quiet(1).edge(0, false).quiet(0) },
		"chatter": func(p *tape) *tape { return p.hum(0, 2, ms) },
	} {
		b.Run(name, func(b *testing.B) {
			d := newPresenceDecoder(b)
			p := newTape()
			d.Feed(start, p.b, nil)
			out := []Reading{}
			b.ReportAllocs()
			for b.Loop() {
				p.b = p.b[:0]
				out = d.Feed(start, make(p).b, out[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4, "ns/record")
		})
	}
}
