package scanner

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"shoed/round"
)

func newBarcodes(t testing.TB) *generic {
	t.Helper()
	d, err := New("barcode", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*generic)
}

// barcodes reads a whole stream.
func barcodes(t testing.TB, b []byte) []Reading {
	t.Helper()
	return newBarcodes(t).Feed(start, b, nil)
}

// Every card's code, by the table of angel.md, "Other readers".
func TestBarcodeCards(t *testing.T) {
	for s, suit := range []byte("shcd") {
		for r, rank := range []byte("A23456789TJQK") {
			line := fmt.Appendf(nil, "%d%03d\r", s+1, (r+1)*10)
			want := card(t, string([]byte{rank, suit}))
			got := barcodes(t, line)
			if len(got) != 1 || got[0].Err != nil || got[0].Input != (round.Input{At: start, Kind: round.InCard, Card: want}) {
				t.Errorf("%q: %v, want %v", line, says(got), want)
			}
		}
	}
}

func TestBarcodeRefuses(t *testing.T) {
	long := bytes.Repeat([]byte("1010"), 40)
	for _, c := range []struct {
		line string
		want []Reason
	}{
		{"\r\n\r\n", nil},
		{"1010", nil}, // its end has not come
		{"101\r", []Reason{BadLength}},
		{"10100\r", []Reason{BadLength}},
		{"010\r", []Reason{BadLength}},
		{"10101010\r", []Reason{BadLength}}, // two cards run together are none
		{"x1010\r", []Reason{BadLength}},
		{" 1010\r", []Reason{BadLength}},
		{"1010 \r", []Reason{BadLength}},
		{"\x001010\r", []Reason{BadLength}},
		{"\x00101\r", []Reason{BadByte}},
		{"101\x80\r", []Reason{BadByte}},
		{string(long) + "\r", []Reason{BadLength, BadLength, BadLength}},
		{string(long[:maxRun]) + "\r", []Reason{BadLength}},
	} {
		got := barcodes(t, []byte(c.line))
		var why []Reason
		at := int64(0)
		for _, r := range got {
			if r.Err == nil {
				t.Errorf("%q: %v", c.line, says(got))
				continue
			}
			why = append(why, r.Err.Reason)
			if r.Err.Offset < at || !bytes.HasPrefix([]byte(c.line)[r.Err.Offset:], r.Err.Bytes) {
				t.Errorf("%q: refused %q at %d", c.line, r.Err.Bytes, r.Err.Offset)
			}
			at = r.Err.Offset + int64(len(r.Err.Bytes))
		}
		if fmt.Sprint(why) != fmt.Sprint(c.want) {
			t.Errorf("%q: refused as %v, want %v", c.line, why, c.want)
		}
	}
}

// Four characters that are no card's code are a card that was not read.
func TestBarcodeUnread(t *testing.T) {
	for _, line := range []string{"0010", "5010", "1000", "1140", "1011", "x101", "1 10", "FAIL"} {
		got := barcodes(t, []byte(line+"\r"))
		if len(got) != 1 || got[0].Err != nil || got[0].Input != (round.Input{At: start, Kind: round.InUnread, Name: "code is not a card"}) {
			t.Errorf("%q: %v", line, says(got))
		}
	}
}

// A line that the connection was lost in is none, however it goes on.
func TestBarcodeReconnect(t *testing.T) {
	d := newBarcodes(t)
	got := d.Feed(start, []byte("1010\r10"), nil)
	d.Reconnect()
	got = d.Feed(start, []byte("2020\r"), got)
	if len(got) != 3 || got[0].Input.Card != card(t, "As") || got[1].Err == nil || got[1].Err.Reason != Truncated || got[2].Input.Card != card(t, "2h") {
		t.Errorf("%v", says(got))
	}
	if s := d.Stats(); s.Frames != 2 || s.Refused[Truncated] != 1 || s.GarbageBytes != 2 {
		t.Errorf("%+v", s)
	}
}

// FuzzBarcode: whatever comes, a card is a line of four digits and nothing else;
// chunks and a restart at any byte make no difference.
func FuzzBarcode(f *testing.F) {
	f.Add([]byte("1010\r\n4130\r"), uint64(1))
	f.Add([]byte("101\r01010\r\n\n1010x\r2100\r"), uint64(2))
	line := regexp.MustCompile(`(?:^|[\r\n])([1-4](?:0[1-9]|1[0-3])0)(?:[\r\n])`)
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		whole := barcodes(t, b)
		cards := 0
		for _, r := range whole {
			if r.Input.Kind == round.InCard {
				cards++
			}
		}
		want := 0
		for rest := b; ; want++ {
			at := line.FindIndex(rest)
			if at == nil {
				break
			}
			rest = rest[at[1]-1:] // its end may be the next one's beginning
		}
		if cards != want {
			t.Fatalf("%q: %d cards, want %d", b, cards, want)
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newBarcodes(t)
		var cut []Reading
		for rest := b; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			cut = d.Feed(start, rest[:n], cut)
			rest = rest[n:]
			restored := newBarcodes(t)
			if err := restored.Restore(d.Snapshot()); err != nil {
				t.Fatal(err)
			}
			d = restored
		}
		same(t, "in pieces", cut, whole)
	})
}

func TestBarcodeRestoreRefuses(t *testing.T) {
	d := newBarcodes(t)
	d.Feed(start, []byte("101"), nil)
	good := string(d.Snapshot())
	for _, bad := range []string{"", "{}", "null", `{"version":1,"protocol":"angel"}`, good + " ", good[:len(good)-1],
		string(bytes.Replace([]byte(good), []byte(`"offset":3`), []byte(`"offset":1`), 1)),
		string(bytes.Replace([]byte(good), []byte(`"line":"`), []byte(`"line":"0d`), 1))} {
		fresh := newBarcodes(t)
		if err := fresh.Restore([]byte(bad)); err == nil || fresh.split.state().Offset != 0 {
			t.Errorf("%q was taken", bad)
		}
	}
}
