package scanner

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"shoed/round"
)

func TestParseCode(t *testing.T) {
	for text, want := range map[string]string{
		"1A2B": "1A2B", "1a2b": "1A2B", "0x1A2B": "1A2B", "00": "00",
		"'1010'": "31303130", "'''": "27", "' '": "20", "'a=b'": "613D62",
		strings.Repeat("ff", maxCodeBytes): strings.Repeat("FF", maxCodeBytes),
		"":                                 "", "0x": "", "1": "", "1A2": "", "1G": "", " 1A": "", "1A ": "", "0X1A": "", "1A 2B": "",
		"''": "", "'": "", "'1": "", "1'": "", "'\t'": "", "'é'": "", `"1010"`: "",
		strings.Repeat("ff", maxCodeBytes+1): "", "'" + strings.Repeat("a", maxCodeBytes+1) + "'": "",
	} {
		got, err := ParseCode(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestParseCodes(t *testing.T) {
	got, err := ParseCodes([]string{"1A2B=As", "'a=b'=Td", "ff=cut", "1a2c=As"})
	want := Codes{"1A2B": {Card: card(t, "As")}, "613D62": {Card: card(t, "Td")}, "FF": {Cut: true}, "1A2C": {Card: card(t, "As")}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for entries, want := range map[string]string{
		"1A2B":           `codes[0]: "1A2B" is no code with its card`,
		"1A=As 1a=2s":    `codes[1]: code 1A is given twice, in codes[0] as As`,
		"1A=As '\x1a'=2": `codes[1]: "'\x1a'" is no code`,
		"1A=":            `codes[0]: "" is no card`,
		"1A=??":          `codes[0]: "??" is no card`,
		"1A=sA":          `codes[0]: "sA" is no card`,
		"1A=CUT":         `codes[0]: "CUT" is no card`,
		"=As":            `codes[0]: "" is no code`,
	} {
		if got, err := ParseCodes(strings.Fields(entries)); err == nil || !strings.HasPrefix(err.Error(), want) || got != nil {
			t.Errorf("%q: %v, %v; want %s", entries, got, err, want)
		}
	}
}

func TestReadCodes(t *testing.T) {
	for text, want := range map[string]string{
		"code,card\n": "",
		"# first\ncode,card\r\n1A,As\r\n# no\n\n1b,cut\n": "1A As, 1B cut",
		"code,card\n'1,0', As\n":                          "record on line 2: wrong number of fields", // the comma parts the columns
		"code,card\n\"'1,0'\",As":                         "312C30 As",
		"":                                                "a file of codes begins with the line code,card",
		"1A,As\n":                                         "a file of codes begins with the line code,card",
		"card,code\n":                                     "a file of codes begins with the line code,card",
		"code,card\n\n1A,As\n1B,2s\n1a,2s\n":              "line 5: code 1A is given twice, in line 3 as As",
		"code,card\n1A,As\n\n1A2,As\n":                    `line 4: "1A2" is no code`,
		"code,card\n1A,1s\n":                              `line 2: "1s" is no card`,
		"code,card\n1A\n":                                 "record on line 2: wrong number of fields",
		"code,card\n1A,As,\n":                             "record on line 2: wrong number of fields",
		"code,card\n1A,\"As\n":                            "parse error on line 2",
	} {
		got, err := ReadCodes(strings.NewReader(text))
		var all []string
		for _, code := range got.sorted() {
			all = append(all, fmt.Sprintf("%s %v", code, got[code]))
		}
		said := strings.Join(all, ", ")
		if err != nil {
			said = err.Error()
		}
		if said != want && (err == nil || !strings.HasPrefix(said, want)) {
			t.Errorf("%q: %s; want %s", text, said, want)
		}
	}
	var many strings.Builder
	many.WriteString(CodesHeader + "\n")
	for i := range maxCodes + 1 {
		fmt.Fprintf(&many, "%04x,As\n", i)
	}
	if _, err := ReadCodes(strings.NewReader(many.String())); err == nil || err.Error() != "line 2050: more than 2048 codes" {
		t.Error(err)
	}
}

func TestCodesAdd(t *testing.T) {
	c, more := Codes{"1A": {Cut: true}}, Codes{"1B": {Card: card(t, "As")}}
	if err := c.Add(more); err != nil || len(c) != 2 {
		t.Error(c, err)
	}
	if err := c.Add(Codes{"1B": {Card: card(t, "2s")}, "1C": {Cut: true}}); err == nil || len(c) != 2 || err.Error() != "code 1B is given twice, as As and as 2s: remove one" {
		t.Error(c, err)
	}
}

// deck is a code for every card, and one for the cut card: those of a letter with
// the card's number.
func deck() Codes {
	c := Codes{codeOf([]byte("Kcut")): {Cut: true}}
	for i := range round.Faces {
		c[codeOf(fmt.Appendf(nil, "K%03d", i))] = Meaning{Card: round.CardAt(i)}
	}
	return c
}

// A reader whose table lacks a card would leave every such card unread.
func TestNewWantsEveryCard(t *testing.T) {
	o := Options{Frame: Frame{Framing: "line", PayloadBytes: 4}}
	for _, c := range []struct {
		change func(Codes)
		want   string
	}{
		{func(Codes) {}, ""},
		{func(c Codes) { delete(c, codeOf([]byte("Kcut"))) }, ""},
		{func(c Codes) { c["31313131"] = Meaning{Card: card(t, "As")} }, ""},
		{func(c Codes) { delete(c, codeOf([]byte("K001"))); delete(c, codeOf([]byte("K051"))) }, "generic: no code means 2s Kc: give codes for all 52 cards"},
		{func(c Codes) { c["313131"] = Meaning{Card: card(t, "As")} }, "generic: code 313131 (As) has 3 bytes: the reader's have 4"},
		{func(c Codes) { clear(c) }, "generic: no code means As 2s 3s"},
	} {
		o.Codes = deck()
		c.change(o.Codes)
		d, err := New("generic", o)
		if got := fmt.Sprint(err); (d == nil) != (c.want != "") || c.want != "" && !strings.HasPrefix(got, c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	o.Codes, o.Learning = nil, true
	d, err := New("generic", o)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Feed(start, []byte("K000\r"), nil); len(got) != 1 || got[0].Code != "4B303030" || got[0].Input.Kind != round.InUnread {
		t.Errorf("while learning: %v", says(got))
	}
}

// FuzzReadCodes: what is read and written again is read the same.
func FuzzReadCodes(f *testing.F) {
	f.Add("code,card\n1A,As\n# x\n'1010',2s\nff,cut\n")
	f.Add("code,card\n\"'\"\"'\",As\n")
	f.Fuzz(func(t *testing.T, text string) {
		var again strings.Builder
		again.WriteString(CodesHeader + "\n")
		order := []string{}
		err := EachCode(strings.NewReader(text), func(code string, m Meaning) {
			fmt.Fprintf(&again, "%s,%v\n", code, m)
			order = append(order, code)
		})
		codes, readErr := ReadCodes(strings.NewReader(text))
		if (err == nil) != (readErr == nil) || err == nil && len(codes) != len(order) {
			t.Fatalf("%v, %v; %d and %d codes", err, readErr, len(order), len(codes))
		}
		if err != nil {
			return
		}
		back, err := ReadCodes(strings.NewReader(again.String()))
		if err != nil || !maps.Equal(back, codes) {
			t.Fatalf("%v: %v, want %v", err, back, codes)
		}
		for code, m := range codes {
			if same, err := ParseCode(code); err != nil || same != code || m.Cut == m.Card.Known() {
				t.Fatalf("%q means %v: %v", code, m, err)
			}
		}
	})
}
