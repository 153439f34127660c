package scanner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

const bitTime = 1500 * time.Microsecond // of readers in the field

// wiegandCodes are a table for words of 26 bits.
var wiegandCodes = allCodes("A5C3%02X", map[string]string{"123456": "8s", "000000": "Kh", "FFFFFF": "Ac", "C07CAD": "cut"})

// newWiegandDecoder reads words of 26 bits by that table.
func newWiegandDecoder(t testing.TB) Decoder {
	return build(t, "wiegand", Options{Codes: wiegandCodes})
}

// wordBits is the word of a code, written down by the standard's text: even parity,
// code, odd parity.
func wordBits(code string) string {
	var data string
	for _, digit := range code {
		data += fmt.Sprintf("%04b", strings.IndexRune(upperHexText, digit))
	}
	half := len(data) / 2
	even, odd := "0", "1"
	if strings.Count(data[:half], "1")%2 == 1 {
		even = "1"
	}
	if strings.Count(data[half:], "1")%2 == 1 {
		odd = "0"
	}
	return even + data + odd
}

// pulses are those of a word, one a bit, the next one due after the last.
func (p *tape) pulses(bits string) *tape {
	for _, bit := range bits {
		p.edge(uint8(bit-'0'), true).wait(bitTime)
	}
	return p
}

// word is a whole card.
func (p *tape) word(code string) *tape { return p.pulses(wordBits(code)).wait(-bitTime).quiet(0) }

func TestWiegandWords(t *testing.T) {
	for _, v := range []struct {
		name string
		bits int
		tape *tape
		want []string
	}{
		{"card", 0, newTape().word("123456"), []string{"card 8s code 123456"}},
		{"all zeros", 26, newTape().word("000000"), []string{"card Kh code 000000"}},
		{"all ones", 26, newTape().word("FFFFFF"), []string{"card Ac code FFFFFF"}},
		{"cut card", 26, newTape().word("C07CAD"), []string{"cut code C07CAD"}},
		{"no card of the table", 26, newTape().word("0A0B0C"), []string{"unread, code is not a card 0A0B0C"}},
		{"34 bits", 34, newTape().word("DEADBEEF"), []string{"card 2d code DEADBEEF"}},
		{"no end yet", 26, newTape().pulses(wordBits("123456")), nil},
		{"ended by the next pulse", 26, newTape().pulses(wordBits("123456")).wait(30*time.Millisecond).edge(0, true), []string{"card 8s code 123456"}},
		{"at the standard's longest", 26, newTape().pulses(wordBits("123456")[:20]).wait(20*time.Millisecond - bitTime).pulses(wordBits("123456")[20:]).quiet(0), []string{"card 8s code 123456"}},
		{"beyond it", 26, newTape().pulses(wordBits("123456")[:20]).wait(20*time.Millisecond - bitTime + 1).pulses(wordBits("123456")[20:]).quiet(0),
			[]string{"unread, refused bad_length", "unread, cannot read", "unread, refused bad_length", "unread, cannot read"}},
		{"levels within", 26, newTape().pulses(wordBits("123456")[:7]).levels(1).pulses(wordBits("123456")[7:]).quiet(0), []string{"card 8s code 123456"}},
	} {
		codes := wiegandCodes
		if v.bits == 34 {
			codes = allCodes("A5C3F0%02X", map[string]string{"DEADBEEF": "2d"})
		}
		got := build(t, "wiegand", Options{Codes: codes, Bits: v.bits}).Feed(start, v.tape.b, nil)
		wantSayings(t, v.name, placeless(got), v.want...)
	}
}

// placeless are readings whose refusals say no more than the reason.
func placeless(rs []Reading) []Reading {
	rs = slices.Clone(rs)
	for i, r := range rs {
		if r.Err != nil {
			rs[i].Err = nil
			rs[i].Input = round.Input{Kind: round.InUnread, Name: "refused " + r.Err.Reason.String()}
		}
	}
	return rs
}

// whys are the readings in few words: cards, and why there is none.
func whys(rs []Reading) string {
	var all []string
	for _, r := range rs {
		switch {
		case r.Err != nil:
			all = append(all, r.Err.Reason.String())
		case r.Input.Kind == round.InUnread:
			all = append(all, "unread")
		default:
			all = append(all, saying(r))
		}
	}
	return strings.Join(all, ", ")
}

func TestWiegandRefuses(t *testing.T) {
	word := wordBits("123456")
	const us = time.Microsecond
	for _, v := range []struct {
		name string
		tape *tape
		want string
	}{
		{"a bit short", newTape().pulses(word[1:]).quiet(0), "bad_length, unread"},
		{"a bit long", newTape().pulses(word + "0").quiet(0), "bad_length, unread"},
		{"two words without a break", newTape().pulses(word + word).quiet(0), "bad_length, unread"},
		{"first half", newTape().pulses("1" + word[1:]).quiet(0), "bad_parity, unread"},
		{"second half", newTape().pulses(word[:25] + "1").quiet(0), "bad_parity, unread"},
		{"two at once", newTape().edge(0, true).edge(1, true).wait(bitTime).pulses(word[2:]).quiet(0), "both_wires, unread"},
		{"two in haste", newTape().edge(0, true).wait(99*us).edge(0, true).wait(bitTime).pulses(word[2:]).quiet(0), "too_close, unread"},
		{"two in the least time", newTape().edge(0, true).wait(100*us).edge(0, true).wait(bitTime).pulses(word[2:]).quiet(0), "card 8s code 123456"},
		{"a time that goes back", newTape().pulses(word[:9]).wait(-5 * bitTime).pulses(word[9:]).quiet(0), "too_close, unread"},

		{"lost within", newTape().pulses(word[:9]).lose(1).wait(bitTime).pulses(word[10:]).quiet(0), "lost_edges, unread"},
		{"lost and made up for", newTape().pulses(word[:9]).lose(1).pulses(word[9:]).quiet(0), "lost_edges, unread"},
		{"lost before", newTape().lose(1).word("123456"), "lost_edges, unread"},
		{"lost at its end", newTape().pulses(word[:25]).lose(1).quiet(0), "lost_edges, unread"},
		{"lost between", newTape().word("123456").lose(26).word("000000"), "card 8s code 123456, gap, lost_edges, unread"},
		{"lost between, without levels", newTape().pulses(word).lose(3).wait(time.Second).word("000000"), "lost_edges, unread, lost_edges, unread"},
		{"nothing but lost", newTape().lose(26).quiet(0), "gap, lost_edges, unread"},
		{"nothing but almost a word", newTape().lose(25).quiet(0), "lost_edges, unread"},
		{"lost before nothing", newTape().word("123456").lose(2).quiet(0).word("000000"), "card 8s code 123456, lost_edges, unread, card Kh code 000000"},

		{"one pulse", newTape().edge(1, true).quiet(0), "glitch"},
		{"one pulse between words", newTape().word("123456").wait(time.Second).edge(0, true).wait(time.Second).word("000000"), "card 8s code 123456, glitch, card Kh code 000000"},
		{"a plug", newTape().edge(1, true).wait(3*us).edge(0, true).wait(150*us).edge(1, true).quiet(0), "glitch"},
		{"two pulses", newTape().edge(1, true).wait(200*us).edge(1, true).quiet(0), "bad_length, unread"},
		{"one pulse and lost", newTape().lose(1).edge(1, true).quiet(0), "lost_edges, unread"},
		{"only ends of pulses", newTape().edge(1, false).wait(bitTime).edge(0, false).quiet(0), ""},
		{"chatter", newTape().pulses(strings.Repeat("0", 300)).quiet(0).word("123456"), "bad_length, unread, card 8s code 123456"},
		{"chatter of the longest word", newTape().pulses(strings.Repeat("0", 64)).quiet(0).word("123456"), "bad_length, unread, card 8s code 123456"},
	} {
		got := newWiegandDecoder(t).Feed(start, v.tape.b, nil)
		if whys(got) != v.want {
			t.Errorf("%s: read %q, want %q", v.name, whys(got), v.want)
		}
	}
}

func TestWiegandOptions(t *testing.T) {
	for _, o := range []Options{{Bits: 25}, {Bits: -26}, {Bits: 34, Codes: wiegandCodes}, {Codes: allCodes("11%02X", nil)}, {Codes: Codes{}}, {Learning: true, Codes: Codes{"1234": {}}}} {
		if _, err := New("wiegand", o); err == nil {
			t.Errorf("%+v was taken", o)
		} else {
			t.Log(err)
		}
	}
}

// What parity sees of wrong bits in a word of the right length: every odd number
// in a half. All words that differ in one to three bits, and how many of those get
// through.
func TestWiegandBitErrors(t *testing.T) {
	for _, v := range []struct {
		bits int
		code string
		want [4]int // by number of wrong bits
	}{
		{26, "123456", [4]int{1, 0, 2 * 13 * 12 / 2, 0}},
		{34, "DEADBEEF", [4]int{1, 0, 2 * 17 * 16 / 2, 0}},
	} {
		var through [4]int
		d := build(t, "wiegand", Options{Bits: v.bits, Learning: true})
		p := newTape()
		for mask := uint64(0); mask < 1<<v.bits; mask++ {
			n := ones(mask)
			if n > 3 {
				mask |= mask&-mask - 1 // no lower ones have fewer
				continue
			}
			p.b = p.b[:0]
			got := d.Feed(start, p.pulses(wrong(wordBits(v.code), mask)).quiet(0).b, nil)
			if whys(got) != "bad_parity, unread" {
				through[n]++
			}
		}
		if through != v.want {
			t.Errorf("%d bits: %v get through, want %v", v.bits, through, v.want)
		}
	}
}

func ones(mask uint64) (n int) {
	for ; mask != 0; mask &= mask - 1 {
		n++
	}
	return n
}

// wrong is the word with the bits of mask turned.
func wrong(word string, mask uint64) string {
	b := []byte(word)
	for i := range b {
		b[i] ^= byte(mask >> i & 1)
	}
	return string(b)
}

// A pulse that the wire loses while it gets another one elsewhere keeps the length:
// what parity sees of every such change to a word.
func TestWiegandPulseMoved(t *testing.T) {
	word := wordBits("123456")
	d := build(t, "wiegand", Options{Learning: true})
	p := newTape()
	unread, asSent, other := 0, 0, 0
	for from := range word {
		for to := range word {
			for _, bit := range []string{"0", "1"} {
				rest := word[:from] + word[from+1:]
				moved := rest[:to] + bit + rest[to:]
				even := strings.Count(moved[:13], "1")%2 == 0 && strings.Count(moved[13:], "1")%2 == 1
				p.b = p.b[:0]
				refused := whys(d.Feed(start, p.pulses(moved).quiet(0).b, nil)) == "bad_parity, unread"
				switch {
				case refused == even:
					t.Fatalf("%s: refused %t", moved, refused)
				case refused:
					unread++
				case moved == word:
					asSent++
				default:
					other++
				}
			}
		}
	}
	if unread != 832 || asSent != 58 || other != 462 {
		t.Errorf("%d are unread, %d as sent, %d another word", unread, asSent, other)
	}
}

// pulse is one on a wire, in truth.
type pulse struct {
	wire  uint8
	at    time.Duration
	quiet bool // silence was told after it
}

// day is what wires carried and what came of it as records.
type day struct {
	pulses []pulse
	lost   map[int]bool // by number
	b      []byte
}

// wiegandDay makes words, well and ill, glitches between, and losses, copies and
// changes of order on the way to us.
func wiegandDay(r *rand.Rand, words int) day {
	d := day{lost: map[int]bool{}}
	now := time.Hour
	codes := []string{"123456", "000000", "FFFFFF", "C07CAD"}
	pulse1 := func(wire uint8) { d.pulses = append(d.pulses, pulse{wire: wire, at: now}) }
	for range words {
		word := []byte(wordBits(codes[r.IntN(len(codes))]))
		for range r.IntN(3) * r.IntN(2) {
			word[r.IntN(len(word))] ^= 1
		}
		if r.IntN(6) == 0 {
			i := r.IntN(len(word))
			word = slices.Delete(word, i, i+1)
		}
		if r.IntN(6) == 0 {
			word = slices.Insert(word, r.IntN(len(word)), '0'+byte(r.IntN(2)))
		}
		for _, bit := range word {
			pulse1(bit - '0')
			now += []time.Duration{bitTime, bitTime, bitTime, 250 * time.Microsecond, 19 * time.Millisecond}[r.IntN(5)]
			if r.IntN(200) == 0 { // static
				pulse1(uint8(r.IntN(2)))
				now += time.Duration(r.IntN(400)) * time.Microsecond
			}
		}
		if r.IntN(8) == 0 {
			now += 300 * time.Millisecond
			pulse1(uint8(r.IntN(2)))
		}
		now += time.Duration(15+r.IntN(100)) * time.Millisecond
	}
	d.send(r)
	return d
}

// send makes the records.
func (d *day) send(r *rand.Rand) {
	d.b = appendLevels(nil, 0, false, 0, time.Hour)
	var wait [][]byte // until the read ends
	read := func() {
		for range r.IntN(3) { // out of order
			if n := len(wait); n > 1 {
				i := r.IntN(n - 1)
				wait[i], wait[i+1] = wait[i+1], wait[i]
			}
		}
		for _, b := range wait {
			d.b = append(d.b, b...)
		}
		wait = nil
	}
	lossy := r.IntN(4) == 0
	high := 0
	for i := range d.pulses {
		p := &d.pulses[i]
		if lossy && r.IntN(60) == 0 && i+1 < len(d.pulses) { // the last one's loss would show with the next day's first
			d.lost[i] = true
		} else {
			high = i + 1
			b := appendEdge(nil, p.wire, true, uint32(i+1), p.at)
			wait = append(wait, b)
			if r.IntN(50) == 0 {
				wait = append(wait, b)
			}
		}
		if silent := i+1 == len(d.pulses) || d.pulses[i+1].at-p.at > QuietTime+10*time.Millisecond; silent {
			read()
			p.quiet = true
			d.b = appendLevels(d.b, 0, false, uint32(high), p.at+QuietTime+5*time.Millisecond)
		}
	}
}

// judge is a second, dumb decoder. It looks at the whole day at once, knows which
// edges were lost, and takes words for texts.
func (d *day) judge() string {
	var (
		all                []string
		word               string
		first, last        time.Duration
		gap, spoilt, known bool // known: it was too long and is judged
		fault              Reason
	)
	say := func(what string) { all = append(all, what) }
	end := func() {
		switch {
		case word == "" || known:
		case spoilt:
			say("lost_edges, unread")
		case last-first < 200*time.Microsecond:
			say("glitch")
		case fault != 0:
			say(fault.String() + ", unread")
		case len(word) != 26:
			say("bad_length, unread")
		case strings.Count(word[:13], "1")%2 == 1 || strings.Count(word[13:], "1")%2 == 0:
			say("bad_parity, unread")
		default:
			say(judged(word))
		}
		word, spoilt, known, fault = "", false, false, 0
	}
	for i, p := range d.pulses {
		if d.lost[i] {
			gap = true
		} else {
			spoilt = spoilt || gap && word != ""
			if p.at-last > 20*time.Millisecond {
				end()
			}
			spoilt, gap = spoilt || gap, false
			if word == "" {
				first = p.at
			} else if p.at-last < 100*time.Microsecond && fault == 0 {
				fault = TooClose
				if word[len(word)-1] != '0'+p.wire {
					fault = BothWires
				}
			}
			if len(word) == 64 {
				end()
				known = true
			}
			word, last = word+string(rune('0'+p.wire)), p.at
		}
		if p.quiet {
			end()
		}
	}
	return strings.Join(all, ", ")
}

// judged is what a whole word means.
func judged(word string) string {
	code, err := strconv.ParseUint(word[1:25], 2, 24)
	if err != nil {
		panic(err)
	}
	switch m, known := wiegandCodes[fmt.Sprintf("%06X", code)]; {
	case !known:
		return "unread"
	case m.Cut:
		return fmt.Sprintf("cut code %06X", code)
	default:
		return fmt.Sprintf("card %v code %06X", m.Card, code)
	}
}

// Whatever happens to edges, words come out as the dumb decoder says: a card only
// from a word of which every pulse came and none is too many, unless parity cannot
// see it; and every lost edge is counted.
func TestWiegandDays(t *testing.T) {
	r := seeded(t)
	cards, unread := 0, 0
	for range 300 {
		d := wiegandDay(r, 12)
		decoder := newWiegandDecoder(t)
		rs := decoder.Feed(start, d.b, nil)
		got, want := whys(rs), d.judge()
		if got != want {
			t.Fatalf("read\n%s\nwant\n%s", got, want)
		}
		if s := decoder.Stats(); s.LostEdges != uint64(len(d.lost)) || s.Anomalies != 0 {
			t.Fatalf("%d edges lost, %d counted; %+v", len(d.lost), s.LostEdges, s)
		}
		cards += strings.Count(got, "card ")
		unread += strings.Count(got, "unread")
	}
	if cards < 300 || unread < 300 {
		t.Errorf("%d cards and %d unread prove little", cards, unread)
	}
}

func TestWiegandSplits(t *testing.T) {
	r := seeded(t)
	fresh := func() Decoder { return newWiegandDecoder(t) }
	for range 5 {
		sameEverywhere(t, r, fresh, wiegandDay(r, 6).b)
	}
}

// The line is lost at every record: what was begun is one card unread, and what
// comes then, numbered anew, is read as ever.
func TestWiegandReconnect(t *testing.T) {
	all := records(newTape().word("123456").word("000000").b)
	after := newTape().word("FFFFFF").b
	for i := range len(all) + 1 {
		rs := openedAgain(t, func() Decoder { return newWiegandDecoder(t) }, all[:i], after)
		want := "card Ac code FFFFFF"
		switch { // levels, 26 pulses, levels, 26 pulses, levels
		case i == 55:
			want = "card 8s code 123456, card Kh code 000000, " + want
		case i > 28:
			want = "card 8s code 123456, truncated, unread, " + want
		case i == 28:
			want = "card 8s code 123456, " + want
		case i > 1:
			want = "truncated, unread, " + want
		}
		if whys(rs) != want {
			t.Errorf("lost after %d records: read %q, want %q", i, whys(rs), want)
		}
	}
}

// A thousand cards at the pace of the field.
func TestWiegandThousand(t *testing.T) {
	d := newWiegandDecoder(t)
	p := newTape()
	cards := 0
	for i := range 1000 {
		code := []string{"123456", "000000", "FFFFFF"}[i%3]
		p.b = p.b[:0]
		for _, r := range d.Feed(start, p.word(code).wait(time.Second).b, nil) {
			if r.Err == nil && r.Input.Kind == round.InCard && r.Code == code {
				cards++
			}
		}
	}
	if s := d.Stats(); cards != 1000 || s != (Stats{Frames: 1000}) {
		t.Errorf("%d cards, %+v", cards, s)
	}
}

// A wire that is active in quiet levels is stuck, until quiet levels show otherwise;
// not while a word is under way.
func TestWiegandStuck(t *testing.T) {
	p := newTape().word("123456").edge(1, true).quiet(2).wait(time.Minute).edge(0, true).levels(3).quiet(2).wait(time.Hour).levels(1).wait(time.Hour).levels(0)
	want := "card 8s code 123456, glitch, wire D1 stuck, glitch, wire D0 stuck, wire D1 ok, wire D0 ok"
	if got := whys(newWiegandDecoder(t).Feed(start, p.b, nil)); got != want {
		t.Errorf("read %q, want %q", got, want)
	}
	sameEverywhere(t, seeded(t), func() Decoder { return newWiegandDecoder(t) }, p.b)
}

func TestWiegandGolden(t *testing.T) {
	goldens(t, "wiegand", func(string) Decoder { return newWiegandDecoder(t) })
}

func TestWiegandSnapshotRefuses(t *testing.T) {
	d := build(t, "wiegand", Options{Learning: true})
	d.Feed(start, newTape().lose(1).pulses("0101").b[:3*wireRecordBytes+5], nil)
	refusesSnapshots(t, d, [2]string{`"next":1`, `"next":2`}, [2]string{`"bits":0`, `"bits":65`}, [2]string{`"bits":0`, `"bits":-1`},
		[2]string{`"word":0`, `"word":1`}, [2]string{`"last":0`, `"last":-1`}, [2]string{`"told":false`, `"told":true`}, [2]string{`"stuck":0`, `"stuck":4`}, [2]string{`"state":{`, `"state":{"x":1,`})
}

func FuzzWiegand(f *testing.F) {
	f.Add([]byte{0, 1, 5, 0, 3, 5, 8, 0, 200}, uint64(1))
	f.Add([]byte{0, 1, 5, 11, 3, 5, 12, 3, 1, 13, 1, 1, 15, 4, 4, 14, 1, 1, 8, 1, 250}, uint64(2))
	f.Fuzz(func(t *testing.T, chance []byte, seed uint64) {
		fuzzWires(t, func() Decoder { return newWiegandDecoder(t) }, 2, chance, seed)
	})
}

func BenchmarkWiegand(b *testing.B) {
	word := newTape().word("123456").b
	d := newWiegandDecoder(b)
	d.Feed(start, word, nil)
	p := newTape()
	out := make([]Reading, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		p.b = p.b[:0]
		out = d.Feed(start, p.word("123456").b, out[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/27, "ns/record")
}
