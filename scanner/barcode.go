package scanner

import (
	"fmt"

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
    only where it is no card's code. Nothing longer or shorter than four characters
    is ever taken for a code; four that are none are a card that was not read.
  - The code does not tell one deck's card from another's, so a card scanned twice
    looks like its twin. Nothing is dropped: card_gap_ms pauses the table, and the
    supervisor decides.
  - It says neither whose card it is nor where a round begins: round_start must be
    another than reader.
*/

const barcodeProtocol = "barcode"

// barcodeFrame describes it as a generic reader.
var barcodeFrame = Frame{Framing: "line", PayloadBytes: 4}

var barcodeSuits = [...]round.Suit{1: round.Spade, 2: round.Heart, 3: round.Club, 4: round.Diamond}

func newBarcode() (Decoder, error) {
	s, err := newShape(barcodeFrame)
	if err != nil {
		return nil, err
	}
	codes := Codes{}
	for digit, suit := range barcodeSuits {
		for rank := 1; rank <= 13 && suit != 0; rank++ {
			codes[codeOf(fmt.Appendf(nil, "%d%03d", digit, 10*rank))] = Meaning{Card: round.NewCard(rank, suit)}
		}
	}
	return coded(barcodeProtocol, s, codes), nil
}
