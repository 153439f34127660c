package scanner

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"time"

	"shoed/round"
)

/*
Barcode shoe, as studios use it: a scanner in the shoe's mouth reads a code
printed on each card.

Hardware: a barcode scanner on a serial line (or one that types as a USB
keyboard, which is not read here). Never seen by us: the layout is from
angel.md, "Other readers", and every capture in testdata is synthetic.

Example, the ace of spades:

	31 30 31 30 0D
	 | +------+  +---- line end, CR, LF or both
	 |    +----------- rank, 010 ace to 090 nine, 100 ten, 110 jack, 120 queen, 130 king
	 +---------------- suit, 1 spade, 2 heart, 3 club, 4 diamond

Oddities:
  - There is no checksum and no number: a lost line shows nowhere, a damaged one
    only where it is no card's code. Nothing longer or shorter than four digits
    is ever taken for one.
  - The code does not tell one deck's card from another's, so a card scanned twice
    looks like its twin. Nothing is dropped: card_gap_ms pauses the table, and the
    supervisor decides.
  - It says neither whose card it is nor where a round begins: round_start must be
    another than reader.
*/

const barcodeProtocol = "barcode"

const (
	barcodeDigits = 4
	barcodeRun    = 64 // refused bytes in one report: more than any line has by accident
)

var barcodeSuits = map[byte]round.Suit{'1': round.Spade, '2': round.Heart, '3': round.Club, '4': round.Diamond}

type barcode struct {
	offset int64  // of the next byte
	line   []byte // since the last line end, at most barcodeRun
	long   bool   // of this line a piece was refused already
	cut    bool   // the connection was lost in this line
	stats  Stats
}

func newBarcode() *barcode { return &barcode{} }

func (d *barcode) Feed(at time.Time, b []byte, out []Reading) []Reading {
	if d.cut {
		d.cut, d.long = false, false
		out = d.refuse(Truncated, 0, out)
	}
	for _, c := range b {
		d.offset++
		if c == '\r' || c == '\n' {
			out = d.end(at, out)
			continue
		}
		d.line = append(d.line, c)
		if len(d.line) == barcodeRun {
			d.long = true
			out = d.refuse(BadLength, 0, out)
		}
	}
	return out
}

// end takes the line that has ended.
func (d *barcode) end(at time.Time, out []Reading) []Reading {
	long := d.long
	d.long = false
	switch {
	case len(d.line) == 0: // CR LF, or the last piece ended just here
		return out
	case long:
		return d.refuse(BadLength, 1, out)
	}
	card, why := barcodeCard(d.line)
	if why != 0 {
		return d.refuse(why, 1, out)
	}
	d.stats.Frames++
	d.line = d.line[:0]
	return append(out, Reading{Input: round.Input{At: at, Kind: round.InCard, Card: card}})
}

// barcodeCard reads a line, or says why it is no card.
func barcodeCard(line []byte) (round.Card, Reason) {
	for _, c := range line {
		if c < '0' || c > '9' {
			return 0, Garbage
		}
	}
	if len(line) != barcodeDigits {
		return 0, BadLength
	}
	suit, known := barcodeSuits[line[0]]
	rank := int(line[1]-'0')*10 + int(line[2]-'0')
	if !known || rank < 1 || rank > 13 || line[3] != '0' {
		return 0, BadCard
	}
	return round.NewCard(rank, suit), 0
}

// refuse reports what is in line; after is how many bytes were read since.
func (d *barcode) refuse(why Reason, after int64, out []Reading) []Reading {
	n := int64(len(d.line))
	d.stats.Refused[why]++
	d.stats.GarbageBytes += uint64(n)
	err := &FrameError{Protocol: barcodeProtocol, Reason: why, Offset: d.offset - after - n, Bytes: bytes.Clone(d.line)}
	d.line = d.line[:0]
	return append(out, Reading{Err: err})
}

// Reconnect begins a new line. One that was begun is refused with the next Feed.
func (d *barcode) Reconnect() { d.cut = len(d.line) > 0 }

func (d *barcode) Stats() Stats { return d.stats }

// barcodeState is what a snapshot has besides the counts.
type barcodeState struct {
	Offset int64  `json:"offset"`
	Line   string `json:"line"` // hex
	Long   bool   `json:"long"`
	Cut    bool   `json:"cut"`
}

const barcodeSnapshotVersion = 2

func (d *barcode) Snapshot() []byte {
	return takeSnapshot(barcodeProtocol, barcodeSnapshotVersion, d.stats, barcodeState{d.offset, hex.EncodeToString(d.line), d.long, d.cut})
}

// Restore takes only what Snapshot writes, byte for byte.
func (d *barcode) Restore(b []byte) error {
	stats, shot, err := readSnapshot[barcodeState](barcodeProtocol, barcodeSnapshotVersion, b)
	if err != nil {
		return err
	}
	line, err := hex.DecodeString(shot.Line)
	if err != nil || len(line) >= barcodeRun || bytes.ContainsAny(line, "\r\n") || shot.Offset < int64(len(line)) || shot.Cut && len(line) == 0 {
		return fmt.Errorf("%s snapshot: an impossible line", barcodeProtocol)
	}
	*d = barcode{offset: shot.Offset, line: line, long: shot.Long, cut: shot.Cut, stats: stats}
	return nil
}
