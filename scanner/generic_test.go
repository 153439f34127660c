package scanner

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

var seed = flag.Uint64("seed", 0, "seed of the tests that draw by chance; 0 for another each time")

// chance prints its seed.
func chance(t testing.TB) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// sampleFrames are the frames of the captures, by name, and of every example.
var sampleFrames = map[string]Frame{
	"line":       {Framing: "line", PayloadBytes: 4},
	"line_crc":   {Framing: "line", Start: "23", PayloadBytes: 6, Checksum: "crc16_modbus", ChecksumForm: "hex", ChecksumCovers: "start payload", CodeOffset: 2},
	"rdm6300":    {Framing: "stx_etx", PayloadBytes: 10, Checksum: "xor", ChecksumForm: "hex", ChecksumPlace: "before_end", ChecksumCovers: "decoded", CodeForm: "hex", CodeOffset: 2},
	"stx_etx":    {Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after_end", ChecksumCovers: "payload end"},
	"fixed":      {Framing: "fixed", Start: "AA55", PayloadBytes: 4, Checksum: "crc16_ccitt_false", ChecksumCovers: "start payload"},
	"fixed_bare": {Framing: "fixed", Start: "AA", End: "BB", PayloadBytes: 4},
	"length":     {Framing: "length", Start: "7E", End: "7F", LengthCounts: "length payload checksum", PayloadBytes: 5, Checksum: "sum", ChecksumPlace: "before_end", ChecksumCovers: "length payload", CodeOffset: 1},
}

// everyFrame is every combination of framing, checksum and its fields that New
// takes, of a payload of six bytes whose last four are the code.
func everyFrame(t testing.TB) (all []Frame) {
	for _, framing := range []Frame{
		{Framing: "line"}, {Framing: "line", Start: "3A"}, {Framing: "stx_etx"}, {Framing: "stx_etx", Start: "0102", End: "3E"},
		{Framing: "fixed", Start: "AA"}, {Framing: "fixed", Start: "AA55", End: "AA"}, {Framing: "length", Start: "01", LengthCounts: "start length payload checksum"}, {Framing: "length", Start: "4B", End: "0D"},
	} {
		framing.PayloadBytes, framing.CodeOffset = 6, 2
		for _, form := range []string{"text", "hex", "binary"} {
			for _, sum := range []string{"none", "xor", "sum", "crc16_modbus", "crc16_ccitt_false", "crc16_xmodem", "crc16_kermit"} {
				for _, sumForm := range []string{"binary", "hex"} {
					for _, order := range []string{"", "low_first"} {
						for _, place := range []string{"", "before_end", "after_end"} {
							for _, covers := range []string{"payload", "start payload", "start length payload end", "decoded end"} {
								f := framing
								f.CodeForm, f.Checksum, f.ChecksumForm, f.ChecksumOrder, f.ChecksumPlace, f.ChecksumCovers = form, sum, sumForm, order, place, covers
								if _, err := newShape(f); err == nil {
									all = append(all, f)
								}
							}
						}
					}
				}
			}
		}
	}
	if len(all) < 300 {
		t.Fatalf("only %d", len(all))
	}
	return all
}

// frameWith is the frame of a payload, written down from the description of Frame
// without the decoder's tables.
func frameWith(f Frame, payload []byte) []byte {
	bytesOf := func(digits string) []byte { b, _ := hex.DecodeString(digits); return b }
	part := map[string][]byte{"start": bytesOf(f.Start), "payload": payload, "end": bytesOf(f.End), "decoded": bytesOf(string(payload))}
	if f.Framing == "stx_etx" && f.Start == "" {
		part["start"] = []byte{2}
	}
	if f.Framing == "stx_etx" && f.End == "" {
		part["end"] = []byte{3}
	}
	hasSum := f.Checksum != "" && f.Checksum != "none"
	size := 0
	if hasSum {
		size = 1
		if strings.HasPrefix(f.Checksum, "crc") {
			size = 2
		}
		if f.ChecksumForm == "hex" {
			size *= 2
		}
	}
	if f.Framing == "length" {
		part["length"] = []byte{1} // for its own size
		counts := f.LengthCounts
		if counts == "" {
			counts = "payload"
		}
		n := 0
		for _, word := range strings.Fields(counts) {
			if n += len(part[word]); word == "checksum" {
				n += size
			}
		}
		part["length"] = []byte{byte(n)}
	}
	if hasSum {
		part["checksum"] = sumOf(f, part)
	}
	var all []byte
	order := []string{"start", "length", "payload", "checksum", "end"}
	if f.ChecksumPlace == "after_end" {
		order = []string{"start", "length", "payload", "end", "checksum"}
	}
	for _, word := range order {
		all = append(all, part[word]...)
	}
	if f.Framing == "line" {
		all = append(all, '\r', '\n')
	}
	return all
}

func sumOf(f Frame, part map[string][]byte) []byte {
	covers := f.ChecksumCovers
	if covers == "" {
		covers = "payload"
	}
	var covered []byte
	for _, word := range strings.Fields(covers) {
		covered = append(covered, part[word]...)
	}
	x := dumbChecksum(f.Checksum, covered)
	sum := []byte{byte(x)}
	if strings.HasPrefix(f.Checksum, "crc") {
		sum = []byte{byte(x >> 8), byte(x)}
		if f.ChecksumOrder == "low_first" || f.ChecksumOrder == "" && (f.Checksum == "crc16_modbus" || f.Checksum == "crc16_kermit") {
			slices.Reverse(sum)
		}
	}
	if f.ChecksumForm == "hex" {
		return fmt.Appendf(nil, "%X", sum)
	}
	return sum
}

// codesFor is a table for a frame, and payloadFor the payload of a code in it.
func codesFor(f Frame) Codes {
	s, err := newShape(f)
	if err != nil {
		panic(err)
	}
	c := Codes{}
	for i := range round.Faces + 1 {
		m := Meaning{Card: round.Card(0), Cut: i == round.Faces}
		if !m.Cut {
			m.Card = round.CardAt(i)
		}
		number := fmt.Sprintf("%04d", 4*i+3)
		if f.CodeForm == "binary" {
			number = string([]byte{0xaa, byte(i), byte(7 * i), 0x55})
		}
		code := []byte(number)[4-min(4, s.codeBytes()):]
		if f.CodeForm == "hex" {
			code, _ = hex.DecodeString(fmt.Sprintf("%0*d", 2*s.codeBytes(), 4*i+3))
		}
		c[codeOf(code)] = m
	}
	return c
}

func payloadFor(f Frame, code string) []byte {
	b, _ := hex.DecodeString(code)
	if f.CodeForm == "hex" {
		b = []byte(code)
	}
	return append(bytes.Repeat([]byte{'4'}, f.CodeOffset), b...)
}

func newFramed(t testing.TB, f Frame) *generic {
	t.Helper()
	d, err := New("generic", Options{Frame: f, Codes: codesFor(f)})
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	return d.(*generic)
}

// facts are the readings as text without refusals: cards, cut, unread.
func facts(rs []Reading) (all []string) {
	for _, r := range rs {
		switch {
		case r.Err != nil:
		case r.Input.Kind == round.InCard:
			all = append(all, r.Input.Card.String())
		case r.Input.Kind == round.InUnread:
			all = append(all, "unread")
		default:
			all = append(all, r.Input.Kind.String())
		}
	}
	return all
}

// Every frame there can be carries every card, and a code that means none.
func TestGenericFrames(t *testing.T) {
	all := everyFrame(t)
	for name := range sampleFrames {
		all = append(all, sampleFrames[name])
	}
	for _, f := range all {
		codes := codesFor(f)
		var stream []byte
		var want []string
		var told []string
		for _, code := range codes.sorted() {
			stream = append(stream, frameWith(f, payloadFor(f, code))...)
			want = append(want, codes[code].String())
			told = append(told, code)
		}
		none := strings.Repeat("39", len(told[0])/2)
		stream = append(stream, frameWith(f, payloadFor(f, none))...)
		want, told = append(want, "unread"), append(told, none)
		d := newFramed(t, f)
		got := d.Feed(start, stream, nil)
		if !slices.Equal(facts(got), want) || len(got) != len(want) {
			t.Fatalf("%+v: %q gave %v, want %v", f, stream, says(got), want)
		}
		for i, r := range got {
			if r.Code != told[i] || !r.Input.At.Equal(start) {
				t.Fatalf("%+v: %+v, want code %s", f, r, told[i])
			}
		}
		if s := d.Stats(); s.Frames != uint64(len(want)) || s.GarbageBytes != 0 {
			t.Fatalf("%+v: %+v", f, s)
		}
	}
}

func TestGenericRefusesOptions(t *testing.T) {
	for _, c := range []struct {
		frame Frame
		want  string
	}{
		{Frame{}, `framing "" is unknown: write line, stx_etx, fixed or length`},
		{Frame{Framing: "LINE"}, `framing "LINE" is unknown`},
		{Frame{Framing: "line"}, "payload_bytes 0: write at least 1"},
		{Frame{Framing: "line", PayloadBytes: -1}, "payload_bytes -1"},
		{Frame{Framing: "line", PayloadBytes: 64}, "payload_bytes 64: write at least 1; and the whole frame, now 64 bytes, has at most 63"},
		{Frame{Framing: "line", PayloadBytes: 4, End: "0D"}, "frame_end: a line ends with CR, LF or both"},
		{Frame{Framing: "line", PayloadBytes: 4, Start: "02"}, `frame_start "02": a line has printable characters only`},
		{Frame{Framing: "line", PayloadBytes: 4, Start: "0"}, `frame_start "0": write 1 to 4 bytes in hex`},
		{Frame{Framing: "fixed", PayloadBytes: 4, Start: "0102030405", Checksum: "xor"}, "frame_start"},
		{Frame{Framing: "fixed", PayloadBytes: 4, Start: "01", End: "0203"}, "frame_end"},
		{Frame{Framing: "fixed", PayloadBytes: 4, Checksum: "xor"}, "frame_start: framing fixed needs one"},
		{Frame{Framing: "length", PayloadBytes: 4, Checksum: "xor"}, "frame_start: framing length needs one"},
		{Frame{Framing: "fixed", PayloadBytes: 4, Start: "01"}, "checksum is none: with framing fixed write which, or frame_end"},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Start: "03"}, "frame_start 03, frame_end 03: in framing stx_etx they must differ"},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, End: "41"}, "frame_start 02, frame_end 41"},
		{Frame{Framing: "line", PayloadBytes: 4, Checksum: "crc"}, `checksum "crc" is unknown: write none, crc16_ccitt_false, `},
		{Frame{Framing: "line", PayloadBytes: 4, Checksum: "xor"}, "checksum_form binary: it could be a line end"},
		{Frame{Framing: "line", PayloadBytes: 4, Checksum: "xor", ChecksumForm: "hexa"}, `checksum_form "hexa": write binary or hex`},
		{Frame{Framing: "line", PayloadBytes: 4, Checksum: "xor", ChecksumForm: "hex", ChecksumPlace: "before_end"}, "checksum_place: "},
		{Frame{Framing: "line", PayloadBytes: 4, Checksum: "xor", ChecksumForm: "hex", ChecksumOrder: "low_first"}, "checksum_order: xor has one byte"},
		{Frame{Framing: "line", PayloadBytes: 4, Checksum: "crc16_modbus", ChecksumForm: "hex", ChecksumOrder: "low"}, `checksum_order "low": write high_first or low_first`},
		{Frame{Framing: "line", PayloadBytes: 4, ChecksumForm: "hex"}, "checksum is none: write which, or leave"},
		{Frame{Framing: "line", PayloadBytes: 4, ChecksumOrder: "low_first"}, "checksum is none"},
		{Frame{Framing: "line", PayloadBytes: 4, ChecksumCovers: "start payload"}, "checksum is none"},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, ChecksumPlace: "after_end"}, "checksum is none"},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor"}, `checksum_place "": write before_end or after_end`},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after"}, `checksum_place "after": write before_end or after_end`},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "before_end"}, "checksum_form binary: before the end it could look like it"},
		{Frame{Framing: "fixed", Start: "01", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after_end"}, "checksum_place: it says on which side"},
		{Frame{Framing: "fixed", Start: "01", PayloadBytes: 4, Checksum: "xor", LengthCounts: "start payload"}, "length_counts: framing fixed has no length byte"},
		{Frame{Framing: "length", Start: "01", PayloadBytes: 4, Checksum: "xor", LengthCounts: "checksum"}, `length_counts "checksum": name the payload too`},
		{Frame{Framing: "length", Start: "01", PayloadBytes: 4, Checksum: "xor", LengthCounts: "payload end"}, `length_counts "payload end": there is no end in this frame`},
		{Frame{Framing: "length", Start: "01", PayloadBytes: 4, Checksum: "xor", LengthCounts: "payload length"}, `length_counts "payload length": name each part once, in the order of the frame`},
		{Frame{Framing: "length", Start: "01", PayloadBytes: 4, Checksum: "xor", LengthCounts: "payload payload"}, "length_counts"},
		{Frame{Framing: "length", Start: "01", PayloadBytes: 4, Checksum: "xor", LengthCounts: "text"}, `length_counts "text": there is no text`},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumForm: "hex", ChecksumPlace: "before_end", ChecksumCovers: "payload end"}, `checksum_covers "payload end": the end comes after it`},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after_end", ChecksumCovers: "payload checksum"}, `checksum_covers "payload checksum": a checksum does not cover itself`},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after_end", ChecksumCovers: "start"}, `checksum_covers "start": name the payload too`},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after_end", ChecksumCovers: " "}, `checksum_covers " ": name the payload too`},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after_end", ChecksumCovers: "decoded"}, "checksum_covers: decoded needs code_form hex"},
		{Frame{Framing: "stx_etx", PayloadBytes: 4, Checksum: "xor", ChecksumPlace: "after_end", CodeForm: "hex", ChecksumCovers: "decoded payload"}, "checksum_covers"},
		{Frame{Framing: "line", PayloadBytes: 4, CodeForm: "digits"}, `code_form "digits": write text, hex or binary`},
		{Frame{Framing: "line", PayloadBytes: 4, CodeForm: "binary"}, "code_form binary: framing line carries characters"},
		{Frame{Framing: "line", PayloadBytes: 4, CodeOffset: -1}, "code_offset -1, code_bytes 0: the code does not lie within the payload of 4 bytes"},
		{Frame{Framing: "line", PayloadBytes: 4, CodeOffset: 4}, "code_offset 4"},
		{Frame{Framing: "line", PayloadBytes: 4, CodeOffset: 1, CodeBytes: 4}, "code_offset 1, code_bytes 4"},
		{Frame{Framing: "line", PayloadBytes: 4, CodeBytes: -1}, "code_offset 0, code_bytes -1"},
		{Frame{Framing: "line", PayloadBytes: 4, CodeForm: "hex", CodeBytes: 3}, "code_bytes 3: hex digits come in pairs"},
		{Frame{Framing: "line", PayloadBytes: 40}, "code_bytes 40: a code has at most 32 bytes"},
	} {
		d, err := New("generic", Options{Frame: c.frame, Codes: deck()})
		if d != nil || err == nil || !strings.HasPrefix(err.Error(), "generic: "+c.want) {
			t.Errorf("%+v: %v, want %s", c.frame, err, c.want)
		}
	}
}

// three is the stream of three cards with a frame, and where each begins.
func three(f Frame) (stream []byte, cards []string, at []int) {
	codes := codesFor(f)
	sorted := codes.sorted()
	for _, code := range []string{sorted[3], sorted[20], sorted[41]} {
		at = append(at, len(stream))
		stream = append(stream, frameWith(f, payloadFor(f, code))...)
		cards = append(cards, codes[code].String())
	}
	return stream, cards, append(at, len(stream))
}

// With a checksum no damage to one byte makes a card that was not sent. Nor does it
// reach beyond its own frame, and what has the right shape is an unread card, with
// two exceptions: the LF after a CR is the next line's; and where the start may come
// within a frame, or is the end too, a frame may be sought that begins there.
func TestGenericDamage(t *testing.T) {
	for _, f := range everyFrame(t) {
		if f.Checksum == "none" {
			continue
		}
		stream, cards, at := three(f)
		proto := newFramed(t, f)
		s := proto.shape
		alike := !s.text && (bytes.Count(stream, s.start) > len(cards) || bytes.HasPrefix(s.start, s.end) && len(s.end) > 0)
		damage(stream, func(what string, i int, damaged []byte) {
			hit := 0
			for i >= at[hit+1] {
				hit++
			}
			if s.line && i == at[hit+1]-1 {
				hit++
			}
			if hit == len(cards) || bytes.Equal(damaged, stream) {
				return
			}
			got := facts(coded("generic", s, proto.codes).Feed(start, damaged, nil))
			whole := slices.Delete(slices.Clone(cards), hit, hit+1)
			unread := slices.Insert(slices.Clone(whole), hit, "unread")
			ok := slices.Equal(got, whole) || slices.Equal(got, unread) || slices.Equal(got, cards)
			if p := i - at[hit]; what != "byte lost" && p >= 0 && p < s.n && s.fits(p, damaged[i]) == 0 && !slices.Equal(got, cards) {
				ok = slices.Equal(got, unread)
			}
			if alike {
				ok = sentOnly(got, cards)
			}
			if !ok {
				t.Fatalf("%+v: %s at %d: %q gave %v, want %v but for one", f, what, i, damaged, got, cards)
			}
		})
	}
}

// sentOnly reports whether the cards in got are some of those that were sent, in
// their order.
func sentOnly(got, sent []string) bool {
	for _, card := range got {
		if card == "unread" {
			continue
		}
		i := slices.Index(sent, card)
		if i < 0 {
			return false
		}
		sent = sent[i+1:]
	}
	return true
}

// Without a checksum a damaged code may be another card's, and nothing shows it. It
// takes a byte of the code that turned into another; one that was lost never does.
func TestGenericDamageWithoutChecksum(t *testing.T) {
	wrong := 0
	for _, f := range everyFrame(t) {
		if f.Checksum != "none" {
			continue
		}
		stream, cards, at := three(f)
		proto := newFramed(t, f)
		s := proto.shape
		damage(stream, func(what string, i int, damaged []byte) {
			got := facts(coded("generic", s, proto.codes).Feed(start, damaged, nil))
			if sentOnly(got, cards) {
				return
			}
			wrong++
			hit := 0
			for i >= at[hit+1] {
				hit++
			}
			if p := i - at[hit]; what == "byte lost" || p < s.code.from || p >= s.code.to {
				t.Fatalf("%+v: %s at %d: %q gave %v, want some of %v", f, what, i, damaged, got, cards)
			}
		})
	}
	if wrong == 0 {
		t.Error("no damage made another card: a checksum would be of no use")
	}
}

// However a stream is cut, and whether or not the program starts again at each cut,
// the readings and the snapshot are the same.
func TestGenericSplits(t *testing.T) {
	r := chance(t)
	for _, f := range everyFrame(t) {
		stream, _, _ := three(f)
		for range 3 { // damage it
			stream[r.IntN(len(stream))] ^= 1 << r.IntN(8)
		}
		whole := newFramed(t, f)
		want := whole.Feed(start, stream, nil)
		for _, most := range []int{1, 7} {
			d := coded("generic", whole.shape, whole.codes)
			var got []Reading
			for rest := stream; len(rest) > 0; {
				n := min(1+r.IntN(most), len(rest))
				got = d.Feed(start, rest[:n], got)
				rest = rest[n:]
				fresh := coded("generic", whole.shape, whole.codes)
				if err := fresh.Restore(d.Snapshot()); err != nil {
					t.Fatalf("%+v: %v\n%s", f, err, d.Snapshot())
				}
				d = fresh
			}
			same(t, fmt.Sprintf("%+v of %q", f, stream), got, want)
			if !bytes.Equal(d.Snapshot(), whole.Snapshot()) || d.Stats() != whole.Stats() {
				t.Fatalf("%+v: ends as %s, want %s", f, d.Snapshot(), whole.Snapshot())
			}
		}
	}
}

// A frame that the connection was lost in is none, however it goes on, and the first
// one after it is read.
func TestGenericReconnect(t *testing.T) {
	for name, f := range sampleFrames {
		stream, cards, at := three(f)
		s := newFramed(t, f).shape
		for cut := at[0] + 1; cut <= at[0]+s.n; cut++ { // in the first frame, or before its line end
			if !s.line && cut == at[0]+s.n {
				break
			}
			d := newFramed(t, f)
			got := d.Feed(start, stream[:cut], nil)
			d.Reconnect()
			got = d.Feed(start, stream[at[1]:], got)
			if !slices.Equal(facts(got), cards[1:]) || got[0].Err == nil || got[0].Err.Reason != Truncated || !bytes.Equal(got[0].Err.Bytes, stream[:cut]) {
				t.Errorf("%s cut at %d: %v", name, cut, says(got))
			}
		}
	}
}

// A line that is too long ends with its connection, whatever was refused of it before.
func TestLongLineReconnect(t *testing.T) {
	d := newFramed(t, sampleFrames["line"])
	card := frameWith(sampleFrames["line"], []byte("0003"))
	got := d.Feed(start, bytes.Repeat([]byte("0"), maxRun), nil)
	d.Reconnect()
	got = d.Feed(start, card, got)
	if len(got) != 2 || got[0].Err == nil || got[0].Err.Reason != BadLength || got[1].Input.Card != round.CardAt(0) {
		t.Errorf("%v", says(got))
	}
}

// A frame with a wrong checksum is one unread card, also when something in it looks
// like the start of another.
func TestGenericOneCardUnreadOnce(t *testing.T) {
	f := Frame{Framing: "fixed", Start: "AA", PayloadBytes: 4, Checksum: "crc16_xmodem", CodeForm: "binary"}
	d := newFramed(t, f)
	bad := frameWith(f, []byte{0xaa, 0xaa, 0xaa, 0xaa})
	bad[5] ^= 1
	good := frameWith(f, []byte{0xaa, 1, 7, 0x55})
	got := d.Feed(start, append(bad, good...), nil)
	if !slices.Equal(facts(got), []string{"unread", "2s"}) {
		t.Errorf("%v", says(got))
	}
}

func TestGenericGolden(t *testing.T) {
	goldens(t, "generic", func(name string) Decoder { return newFramed(t, sampleFrames[name]) })
}

func TestGenericRestoreRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		tail    string // hex
		changes [][2]string
	}{
		"fixed": {"00 aa 55 01", [][2]string{
			{`"v":2`, `"v":1`}, {`"generic"`, `"barcode"`}, {`"aa5501"`, `"00aa5501"`}, {`"aa5501"`, `"AA5501"`},
			{`"aa5501"`, `"aa550"`}, {`"offset":4`, `"offset":2`}, {`"offset":4`, `"offset":-4`}, {`"long":false`, `"long":true`},
			{`"cut":false`, `"cut":false,"told":5`}, {`"cut":false`, `"cut":false,"told":-1`}, {`}}`, `}}}`},
		}},
		"line": {"31 32 33", [][2]string{
			{`"313233"`, `"310d33"`}, {`"313233"`, `"` + strings.Repeat("31", maxRun) + `"`}, {`"offset":3`, `"offset":2`}, {`"cut"`, `"Cut"`},
			{`"line":"313233","long":false,"cut":false`, `"line":"","long":false,"cut":true`},
		}},
	} {
		d := newFramed(t, sampleFrames[name])
		d.Feed(start, unhex(t, c.tail), nil)
		before := d.Snapshot()
		for _, change := range c.changes {
			bad := strings.Replace(string(before), change[0], change[1], 1)
			if err := d.Restore([]byte(bad)); err == nil || bad == string(before) {
				t.Errorf("%s: took %s", name, bad)
			}
			if !bytes.Equal(d.Snapshot(), before) {
				t.Fatalf("changed by %s", bad)
			}
		}
		if err := newFramed(t, sampleFrames[name]).Restore(before); err != nil {
			t.Error(err)
		}
	}
}

// FuzzGeneric: whatever comes, no byte is reported twice or out of order, memory is
// bounded, and a cut with a restart in it makes no difference.
func FuzzGeneric(f *testing.F) {
	names := []string{"line", "line_crc", "rdm6300", "stx_etx", "fixed", "fixed_bare", "length"}
	for i, name := range names {
		stream, _, _ := three(sampleFrames[name])
		f.Add(stream, uint8(i), uint16(11))
		f.Add(append(stream[1:], stream[:5]...), uint8(i), uint16(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, which uint8, cut uint16) {
		frame := sampleFrames[names[int(which)%len(names)]]
		whole, parts := newFramed(t, frame), newFramed(t, frame)
		n := int(cut) % (len(b) + 1)
		want := whole.Feed(start, b, nil)
		got := parts.Feed(start, b[:n], nil)
		fresh := newFramed(t, frame)
		if err := fresh.Restore(parts.Snapshot()); err != nil {
			t.Fatalf("%v\n%s", err, parts.Snapshot())
		}
		for i := range b[n:] {
			got = fresh.Feed(start, b[n+i:n+i+1], got)
		}
		same(t, "cut", got, want)
		if !bytes.Equal(fresh.Snapshot(), whole.Snapshot()) || len(whole.Snapshot()) > 600 {
			t.Fatalf("%s\n%s", fresh.Snapshot(), whole.Snapshot())
		}
		at, refused, frames := int64(0), 0, 0
		for _, r := range want {
			switch {
			case r.Err == nil && r.Input.Name != cannotRead:
				frames++
			case r.Err != nil:
				if r.Err.Offset < at || len(r.Err.Bytes) == 0 || len(r.Err.Bytes) > maxRun || !bytes.Equal(r.Err.Bytes, b[r.Err.Offset:][:len(r.Err.Bytes)]) {
					t.Fatalf("refused %+v after %d", r.Err, at)
				}
				at = r.Err.Offset + int64(len(r.Err.Bytes))
				refused += len(r.Err.Bytes)
			}
		}
		s := whole.shape
		if !s.line && refused+frames*s.n+len(whole.split.state().Bytes) != len(b) {
			t.Fatalf("%d bytes refused, %d frames of %d and %d held of %d", refused, frames, s.n, len(whole.split.state().Bytes), len(b))
		}
	})
}
