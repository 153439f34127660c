package scanner

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"shoed/round"
)

// tagOf is the UID of card i: of 4, 7 or 10 bytes, as comes.
func tagOf(i int) string { return fmt.Sprintf("04%0*X", 2*rfidUIDs[i%3]-2, 0xA2B300+i) }

// tags are those of a deck and of the cut card.
func tags() Codes {
	c := Codes{tagOf(round.Faces): {Cut: true}}
	for i := range round.Faces {
		c[tagOf(i)] = Meaning{Card: round.CardAt(i)}
	}
	return c
}

func newTags(t testing.TB) *rfid {
	t.Helper()
	d, err := New("rfid", Options{Codes: tags()})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*rfid)
}

// tell is what a decoder makes of lines. N stands for tag N; reconnect is what it says.
func tell(d *rfid, script string) []string {
	var all []string
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if words[0] == "reconnect" {
			d.Reconnect()
			continue
		}
		if n := 0; len(words) == 2 && len(words[1]) < 3 {
			if _, err := fmt.Sscan(words[1], &n); err == nil {
				words[1] = tagOf(n)
			}
		}
		for _, r := range d.Feed(start, []byte(strings.Join(words, " ")+"\r\n"), nil) {
			all = append(all, laid(r))
		}
	}
	return all
}

// laid is a reading of a box.
func laid(r Reading) string {
	in := r.Input
	switch {
	case r.Err != nil:
		return r.Err.Reason.String()
	case in.Kind == round.InPlaced && in.Foreign && in.Card == 0:
		return in.Box.String() + " foreign"
	case in.Kind == round.InPlaced && !in.Foreign:
		return fmt.Sprintf("%v %v", in.Box, in.Card)
	case in.Kind == round.InLifted && !in.Foreign:
		return fmt.Sprintf("%v -%v", in.Box, in.Card)
	}
	return fmt.Sprintf("%+v", r)
}

func TestRFID(t *testing.T) {
	for _, c := range []struct{ what, script, want string }{
		{"a card is placed and lifted", "P1 0\nP1 -", "P1 As|P1 -As"},
		{"every box", "P1 0\nP2 1\nP3 2\nB1 3\nB2 4\nB3 51", "P1 As|P2 2s|P3 3s|B1 4s|B2 5s|B3 Kc"},
		{"repeated", "P1 0\nP1 0\nP1 -\nP1 -\nP1 0", "P1 As|P1 -As|P1 As"},
		{"the first report of an empty box counts", "P1 -\nP1 -", "P1 -??"},
		{"foreign", "P1 99\nP1 99\nP1 -", "P1 foreign|P1 -??"},
		{"one for another", "P1 0\nP1 1\nP1 99", "P1 As|P1 -As|P1 2s|P1 -2s|P1 foreign"},
		{"one tag in two boxes", "P1 0\nP2 0\nP2 0", "P1 As|same_tag"},
		{"the second waits until the first lets go", "P1 0\nP2 0\nP1 -", "P1 As|same_tag|P1 -As|P2 As"},
		{"or has another", "P1 0\nP2 0\nP1 1", "P1 As|same_tag|P1 -As|P2 As|P1 2s"},
		{"or waits no more", "P1 0\nP2 0\nP2 -\nP1 -", "P1 As|same_tag|P1 -As"},
		{"the second has one already", "P1 0\nP2 1\nP2 0\nP1 -", "P1 As|P2 2s|P2 -2s|same_tag|P1 -As|P2 As"},
		{"three", "P1 0\nB1 0\nP2 0\nP1 -\nP2 -\nB1 -", "P1 As|same_tag|same_tag|P1 -As|P2 As|P2 -As|B1 As|B1 -As"},
		{"both foreign, but two tags", "P1 98\nP2 99", "P1 foreign|P2 foreign"},
		{"one foreign tag in two boxes", "P1 99\nP2 99\nP1 -", "P1 foreign|same_tag|P1 -??|P2 foreign"},
		{"the cut card is no card", "P1 52\nP1 0\nP1 52", "P1 -??|P1 As|P1 -As"},
		{"the next report counts", "P1 0\nP2 -\nreconnect\nP1 0\nP2 -\nP1 0\nP2 -", "P1 As|P2 -??|P1 As|P2 -??"},
		{"and tells what went on", "P1 0\nP2 1\nreconnect\nP1 -\nP2 2", "P1 As|P2 2s|P1 -As|P2 -2s|P2 3s"},
		{"moved meanwhile", "P1 0\nreconnect\nP2 0\nP1 -", "P1 As|P1 -As|P2 As|P1 -??"},
		{"waited, then the line was opened again", "P1 0\nP2 0\nreconnect\nP1 -\nP2 -", "P1 As|same_tag|P1 -As|P2 -??"},
		{"waited, and it is where it was", "P1 0\nP2 0\nreconnect\nP2 0\nP1 0", "P1 As|same_tag|P1 -As|P2 As|same_tag"},
	} {
		if got := strings.Join(tell(newTags(t), c.script), "|"); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestRFIDLines(t *testing.T) {
	uid := tagOf(0)
	for line, want := range map[string]string{
		"P1 " + uid: "P1 As", "P1 " + strings.ToLower(uid): "P1 As", "B3 " + tagOf(1): "B3 2s", "B3 " + tagOf(2): "B3 3s",
		"P1 04A2B3C4D5E680": "P1 foreign", "P1 04A2B3C4D5E68": "bad_length", "P1 04A2B3C4D5": "bad_length", "P1 04": "bad_length",
		"P1 04A2B3C4D5E6800102030405": "bad_length",
		"P4 " + uid:                   "garbage", "p1 " + uid: "garbage", "P1  " + uid: "garbage", "P1" + uid: "garbage", "P1 " + uid + " ": "garbage",
		" P1 " + uid: "garbage", "P1\t" + uid: "bad_byte", "P1 --": "garbage", "P1 ": "garbage", "P1": "garbage", "P1 0x" + uid: "garbage", "P1 04A2B3G4": "garbage",
		"P1 " + uid + "P2 " + uid: "garbage", "P1 " + strings.Repeat("0", 70): "bad_length|bad_length", "\x00P1 -": "bad_byte",
	} {
		var got []string
		for _, r := range newTags(t).Feed(start, []byte(line+"\n"), nil) {
			got = append(got, laid(r))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %v, want %s", line, got, want)
		}
	}
}

func TestRFIDCodes(t *testing.T) {
	if _, err := New("rfid", Options{}); err == nil || !strings.HasPrefix(err.Error(), "rfid: no code means As 2s") {
		t.Error(err)
	}
	short := tags()
	short["0102030405"] = Meaning{Card: card(t, "As")}
	if _, err := New("rfid", Options{Codes: short}); err == nil || err.Error() != "rfid: code 0102030405 (As) has 5 bytes: the reader's have 4, 7, 10" {
		t.Error(err)
	}
	d, err := New("rfid", Options{Learning: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Feed(start, []byte("P1 04a2b3c4\r"), nil); len(got) != 1 || got[0].Code != "04A2B3C4" || !got[0].Input.Foreign {
		t.Errorf("while learning: %v", says(got))
	}
}

// dumbBoxes is what a table would say that keeps every box's latest report and the
// order of the claims of a tag.
type dumbBoxes struct {
	report map[round.Box]string // latest, "" for nothing
	told   map[round.Box]string // what is told to lie there
}

// says that a box reported, with nothing lost in between.
func (d *dumbBoxes) says(box round.Box, uid string) {
	d.report[box] = uid
	if d.told[box] != uid {
		delete(d.told, box)
	}
	for _, b := range []round.Box{box, round.P1, round.P2, round.P3, round.B1, round.B2, round.B3} {
		claim := d.report[b]
		if free := !slices.Contains(slices.Collect(maps.Values(d.told)), claim); claim != "" && free {
			d.told[b] = claim
		}
	}
}

// By chance: what the readings add up to is what lies in the boxes, a tag never in
// two; no report is lost and none invented; a restart at any line changes nothing.
func TestRFIDByChance(t *testing.T) {
	r := chance(t)
	codes := tags()
	for range 300 {
		d := newTags(t)
		dumb := dumbBoxes{map[round.Box]string{}, map[round.Box]string{}}
		lie := map[round.Box]string{} // as the readings tell
		var script strings.Builder
		for range 60 {
			box, uid := round.Box(1+r.IntN(6)), ""
			if r.IntN(3) > 0 {
				uid = tagOf(r.IntN(4) * 30) // one of them is foreign
			}
			line := fmt.Sprintf("%v %s\n", box, cmp.Or(uid, "-"))
			script.WriteString(line)
			for _, reading := range d.Feed(start, []byte(line), nil) {
				in := reading.Input
				switch {
				case reading.Err != nil:
				case in.Kind == round.InLifted:
					if lie[in.Box] != "" && in.Card != codes[lie[in.Box]].Card {
						t.Fatalf("%s%+v is not what lay there", script.String(), in)
					}
					delete(lie, in.Box)
				case in.Kind == round.InPlaced:
					if lie[in.Box] != "" || slices.Contains(slices.Collect(maps.Values(lie)), reading.Code) {
						t.Fatalf("%s%+v on %v", script.String(), in, lie)
					}
					lie[in.Box] = reading.Code
				}
			}
			if dumb.says(box, uid); !maps.Equal(lie, dumb.told) {
				t.Fatalf("%s%v, want %v", script.String(), lie, dumb.told)
			}
			if r.IntN(4) == 0 {
				d = restoredRFID(t, d)
			}
		}
	}
}

func restoredRFID(t testing.TB, d *rfid) *rfid {
	t.Helper()
	fresh := newTags(t)
	if err := fresh.Restore(d.Snapshot()); err != nil {
		t.Fatalf("%v\n%s", err, d.Snapshot())
	}
	return fresh
}

func TestRFIDGolden(t *testing.T) { goldens(t, "rfid", func(string) Decoder { return newTags(t) }) }

func TestRFIDRestoreRefuses(t *testing.T) {
	d := newTags(t)
	tell(d, "P1 0\nP2 0\nB1 99")
	d.Feed(start, []byte("P3 04"), nil)
	before := string(d.Snapshot())
	restoredRFID(t, d)
	one := fmt.Sprintf(`{"uid":"%s","told":true,"old":false}`, tagOf(0))
	waits := fmt.Sprintf(`{"uid":"%s","told":false,"old":false}`, tagOf(0))
	none := `{"uid":"","told":false,"old":false}`
	for _, c := range [][2]string{
		{one, waits}, {waits, one}, {one, none}, {one, strings.Replace(one, "04", "4", 1)}, {one, strings.ToLower(one)},
		{waits, strings.Replace(waits, `"old":false`, `"old":true`, 1)}, {one, strings.Replace(one, `"old":false`, `"old":true`, 1)},
		{`"boxes":[` + none, `"boxes":[` + strings.Replace(none, `"old":false`, `"old":true`, 1)},
		{`"line":"50332030`, `"line":"0a332030`}, {`"v":1`, `"v":2`}, {`"told":true`, `"told":1`}, {none, strings.Replace(none, `"told":false`, `"told":true`, 1)},
	} {
		bad := strings.Replace(before, c[0], c[1], 1)
		if err := d.Restore([]byte(bad)); err == nil || bad == before {
			t.Errorf("took %s for %s: %s", c[1], c[0], bad)
		}
		if string(d.Snapshot()) != before {
			t.Fatalf("changed by %s", bad)
		}
	}
}

// FuzzRFID: whatever comes, a tag lies in one box, memory is bounded, and a cut with
// a restart in it makes no difference.
func FuzzRFID(f *testing.F) {
	f.Add([]byte("P1 04A2B300\r\nP2 04A2B300\r\nP1 -\r\n"), uint16(14), false)
	f.Add([]byte("P1 04A2B300\rB3 04000000A2B301\nP1 -\nP1 -\nP9 -\nP1 04"), uint16(30), true)
	f.Fuzz(func(t *testing.T, b []byte, cut uint16, reconnect bool) {
		whole, halves := newTags(t), newTags(t)
		n := int(cut) % (len(b) + 1)
		want, got := whole.Feed(start, b[:n], nil), halves.Feed(start, b[:n], nil)
		if reconnect {
			whole.Reconnect()
			halves.Reconnect()
		}
		halves = restoredRFID(t, halves)
		want = whole.Feed(start, b[n:], want)
		for i := range b[n:] {
			got = halves.Feed(start, b[n+i:n+i+1], got)
		}
		same(t, "cut", got, want)
		if !bytes.Equal(halves.Snapshot(), whole.Snapshot()) || len(whole.Snapshot()) > 1000 {
			t.Fatalf("%s\n%s", halves.Snapshot(), whole.Snapshot())
		}
		lie := map[round.Box]string{}
		for _, r := range want {
			switch {
			case r.Err != nil:
			case r.Input.Kind == round.InLifted:
				delete(lie, r.Input.Box)
			default:
				for box, uid := range lie {
					if uid == r.Code && box != r.Input.Box {
						t.Fatalf("%s in %v and %v", uid, box, r.Input.Box)
					}
				}
				lie[r.Input.Box] = r.Code
			}
		}
	})
}
