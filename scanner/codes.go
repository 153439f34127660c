package scanner

import (
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"shoed/round"
)

// Codes say what each code that a reader tells means. A code is hexadecimal
// digits in upper case, two for each of its bytes. Cards that look alike may have
// one code, or each its own.
type Codes map[string]Meaning

// Meaning of a code: a card, or the cut card.
type Meaning struct {
	Card round.Card // 0 for the cut card
	Cut  bool
}

const (
	maxCodeBytes = 32   // a QR code's serial number fits
	maxCodes     = 2048 // three times twelve decks with a code for each card
)

// CodesHeader is the first line of a file of codes.
const CodesHeader = "code,card"

const cutText = "cut"

func (m Meaning) String() string {
	if m.Cut {
		return cutText
	}
	return m.Card.String()
}

// parseMeaning reads a card's text, or cut.
func parseMeaning(text string) (Meaning, error) {
	if text == cutText {
		return Meaning{Cut: true}, nil
	}
	card, err := round.ParseCard(text)
	if err != nil || !card.Known() {
		return Meaning{}, fmt.Errorf("%q is no card: write its rank A23456789TJQK and its suit shdc, such as As, or %s for the cut card", text, cutText)
	}
	return Meaning{Card: card}, nil
}

// ParseCode reads a code as people write it, in the form of Codes: its bytes in
// hex, such as 1A2B or 0x1A2B, or its characters in quotes, such as '1010'.
func ParseCode(text string) (string, error) {
	b := []byte(text)
	var err error
	if n := len(text); n > 2 && text[0] == '\'' && text[n-1] == '\'' {
		if b = b[1 : n-1]; slices.ContainsFunc(b, unprintable) {
			err = errors.New("not printable")
		}
	} else {
		b, err = hex.DecodeString(strings.TrimPrefix(text, "0x"))
	}
	if err != nil || len(b) == 0 || len(b) > maxCodeBytes {
		return "", fmt.Errorf("%q is no code: write 1 to %d bytes in hex, such as 1A2B, or characters in quotes, such as '1010'", text, maxCodeBytes)
	}
	return codeOf(b), nil
}

// codeOf is a code's form in Codes.
func codeOf(b []byte) string { return strings.ToUpper(hex.EncodeToString(b)) }

func unprintable(b byte) bool { return b < ' ' || b > '~' }

// ParseCodes reads a list of codes, each "CODE=CARD": see ParseCode; the card such
// as As, or cut. An error names the entry by its place in the list, from 0 on.
func ParseCodes(entries []string) (Codes, error) {
	t := newCodeTable()
	for i, entry := range entries {
		place := fmt.Sprintf("codes[%d]", i)
		at := strings.LastIndexByte(entry, '=') // a code may have one too
		if at < 0 {
			return nil, fmt.Errorf("%s: %q is no code with its card: write such as 1A2B=As", place, entry)
		}
		if _, _, err := t.add(place, entry[:at], entry[at+1:]); err != nil {
			return nil, err
		}
	}
	return t.codes, nil
}

// ReadCodes reads a file of codes: see EachCode.
func ReadCodes(r io.Reader) (Codes, error) {
	codes := Codes{}
	err := EachCode(r, func(code string, m Meaning) { codes[code] = m })
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// EachCode calls fn for each code in a file of them, in its order: CSV with the
// header code,card and a code with its card in each line, as ParseCodes takes
// them. # begins a comment. An error names the line.
func EachCode(r io.Reader, fn func(code string, m Meaning)) error {
	rows := csv.NewReader(r)
	rows.Comment, rows.FieldsPerRecord, rows.TrimLeadingSpace, rows.ReuseRecord = '#', 2, true, true
	header, err := rows.Read()
	if err == nil && strings.Join(header, ",") != CodesHeader || errors.Is(err, io.EOF) {
		err = fmt.Errorf("a file of codes begins with the line %s", CodesHeader)
	}
	t := newCodeTable()
	for err == nil {
		var row []string
		if row, err = rows.Read(); err != nil {
			break
		}
		line, _ := rows.FieldPos(0)
		var code string
		var m Meaning
		if code, m, err = t.add(fmt.Sprintf("line %d", line), row[0], row[1]); err == nil {
			fn(code, m)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// codeTable is Codes in the making.
type codeTable struct {
	codes  Codes
	places map[string]string // where each was given
}

func newCodeTable() *codeTable { return &codeTable{Codes{}, map[string]string{}} }

func (t *codeTable) add(place, codeText, cardText string) (code string, m Meaning, err error) {
	if code, err = ParseCode(codeText); err == nil {
		m, err = parseMeaning(cardText)
	}
	switch before, twice := t.places[code]; {
	case err != nil:
	case twice:
		err = fmt.Errorf("code %s is given twice, in %s as %v: remove one", code, before, t.codes[code])
	case len(t.codes) == maxCodes:
		err = fmt.Errorf("more than %d codes", maxCodes)
	}
	if err != nil {
		return "", m, fmt.Errorf("%s: %w", place, err)
	}
	t.codes[code], t.places[code] = m, place
	return code, m, nil
}

// Add takes over other codes. It refuses, and then c is as it was, a code that is
// in both.
func (c Codes) Add(more Codes) error {
	for _, code := range more.sorted() {
		if before, twice := c[code]; twice {
			return fmt.Errorf("code %s is given twice, as %v and as %v: remove one", code, before, more[code])
		}
	}
	maps.Copy(c, more)
	return nil
}

// complete refuses a table that lacks a card, of which each one would be unread.
func (c Codes) complete() error {
	found := map[round.Card]bool{}
	for _, m := range c {
		found[m.Card] = true
	}
	var missing []string
	for i := range round.Faces {
		if card := round.CardAt(i); !found[card] {
			missing = append(missing, card.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no code means %s: give codes for all %d cards, or learn them: shoed learn", strings.Join(missing, " "), round.Faces)
	}
	return nil
}

// lengths refuses a code of another length in bytes than those that a reader tells.
func (c Codes) lengths(known ...int) error {
	for _, code := range c.sorted() {
		if n := len(code) / 2; !slices.Contains(known, n) {
			return fmt.Errorf("code %s (%v) has %d bytes: the reader's have %s", code, c[code], n, list(known))
		}
	}
	return nil
}

func (c Codes) sorted() []string { return slices.Sorted(maps.Keys(c)) }

// list is "4, 7, 10".
func list[T any](all []T) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}

// unknownCode is why a card counts as unread that has a code which means none.
const unknownCode = "code is not a card"

// reading is what a code tells that came at a time. One that is unknown means that
// a card left the shoe unread.
func (c Codes) reading(at time.Time, code string) Reading {
	in := round.Input{At: at, Kind: round.InUnread, Name: unknownCode}
	switch m, known := c[code]; {
	case known && m.Cut:
		in = round.Input{At: at, Kind: round.InCut}
	case known:
		in = round.Input{At: at, Kind: round.InCard, Card: m.Card}
	}
	return Reading{Input: in, Code: code}
}
