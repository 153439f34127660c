package scanner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"shoed/round"
)

/*
RFID: a reader under each box, which tells what card lies there by the number of
its tag.

Hardware: tag readers, or a board in front of several, that send text lines on a
serial line. None was seen by us: the form of the lines is ours, for whoever
programs such a board, and every capture in testdata is synthetic.

Example, a card was put into Player's first box:

	50 31 20 30 34 41 32 42 33 43 34 44 35 45 36 38 30 0D 0A
	+---+  | +---------------------------------------+ +---+
	  |    |                    |                        +--- line end, CR, LF or both
	  |    |                    +---------------------------- the tag's UID, or - for none
	  |    +------------------------------------------------- space
	  +------------------------------------------------------ box, P1 P2 P3 B1 B2 B3

A UID is 4, 7 or 10 bytes in hex (ISO/IEC 14443-3), in the order in which the reader
tells it.

Oddities:
  - A reader may repeat itself, or tell changes only. What is not new says nothing.
  - One tag for another is the one lifted and the other placed.
  - A tag of no enrolled card is told as foreign; a card without a tag is not seen.
  - A tag is in one box. While one box has it another one's claim is refused; it
    counts once the first lets the tag go, for antennas overlap, and a card may be
    seen in its new box before it is missed in the old one.
  - After the line was opened again the next report of each box is told, whatever
    it is. What it says is newer than what the others said before.
  - The cut card lies in no box: its tag says that no card is there.
  - There is no checksum: damage may turn a UID into another, most likely a
    foreign one.
*/

const rfidProtocol = "rfid"

var rfidLine = regexp.MustCompile(`^([PB][123]) (-|[0-9A-Fa-f]+)$`)

// rfidUIDs are the lengths of a UID in bytes.
var rfidUIDs = []int{4, 7, 10}

type rfid struct {
	codes Codes
	split lines
	boxes rfidBoxes
	stats Stats
}

// rfidBoxes are what lies where, by box; that of no box is not used.
type rfidBoxes [round.B3 + 1]rfidBox

type rfidBox struct {
	UID  string `json:"uid"`  // in upper case; "" of no card
	Told bool   `json:"told"` // that it lies there; else another box has it
	Old  bool   `json:"old"`  // from before the line was opened
}

func newRFID(o Options) (Decoder, error) {
	if err := o.Codes.lengths(rfidUIDs...); err != nil {
		return nil, fmt.Errorf("%s: %w", rfidProtocol, err)
	}
	d := &rfid{codes: o.Codes}
	d.boxes.age()
	return d, nil
}

func (d *rfid) Feed(at time.Time, b []byte, out []Reading) []Reading {
	var pieces []piece
	for _, c := range b {
		pieces = d.split.push(c, pieces[:0])
		for _, p := range pieces {
			out = d.line(at, p, out)
		}
	}
	return out
}

// line reads a line.
func (d *rfid) line(at time.Time, p piece, out []Reading) []Reading {
	box, uid, why := parseRFID(p.bytes)
	if p.why == 0 {
		p.why = why
	}
	if p.why != 0 {
		d.stats.GarbageBytes += uint64(len(p.bytes))
		return append(out, d.stats.refuse(rfidProtocol, p))
	}
	d.stats.Frames++
	if d.codes[uid].Cut {
		uid = ""
	}
	if was := d.boxes[box]; was.UID == uid && !was.Old {
		d.stats.Duplicates++
		return out
	}
	out, taken := d.report(at, box, uid, out)
	if taken {
		p.why = SameTag
		out = append(out, d.stats.refuse(rfidProtocol, p))
	}
	return out
}

// parseRFID reads a line; uid is "" where no card lies.
func parseRFID(line []byte) (box round.Box, uid string, why Reason) {
	if slices.ContainsFunc(line, unprintable) {
		return 0, "", BadByte
	}
	words := rfidLine.FindSubmatch(line)
	if words == nil {
		return 0, "", Garbage
	}
	box, _ = round.ParseBox(string(words[1])) // the pattern has all there are
	uid = strings.ToUpper(string(words[2]))
	switch {
	case uid == "-":
		return box, "", 0
	case len(uid)%2 != 0, !slices.Contains(rfidUIDs, len(uid)/2):
		return 0, "", BadLength
	}
	return box, uid, 0
}

// report tells what is new with a box, and with another one that waited for the
// tag which lay there. taken means that its own tag lies in another box.
func (d *rfid) report(at time.Time, box round.Box, uid string, out []Reading) (_ []Reading, taken bool) {
	was := d.boxes[box]
	d.boxes[box] = rfidBox{UID: uid}
	if was.Told && was.UID != uid || was.Old && uid == "" {
		out = append(out, d.lifted(at, box, was.UID))
		if next := d.holding(was.UID, false); next != 0 {
			out = append(out, d.placed(at, next))
		}
	}
	if uid == "" {
		return out, false
	}
	holder := d.holding(uid, true)
	if holder != 0 && !d.boxes[holder].Old {
		return out, true
	}
	if holder != 0 {
		d.boxes[holder] = rfidBox{Old: true}
		out = append(out, d.lifted(at, holder, uid))
	}
	return append(out, d.placed(at, box)), false
}

// holding is the box that a tag was told to lie in, or the first that waits for
// it; 0 when there is none.
func (d *rfid) holding(uid string, told bool) round.Box {
	for box := round.P1; box <= round.B3; box++ {
		if b := d.boxes[box]; uid != "" && b.UID == uid && b.Told == told {
			return box
		}
	}
	return 0
}

func (d *rfid) placed(at time.Time, box round.Box) Reading {
	b := &d.boxes[box]
	b.Told = true
	m, enrolled := d.codes[b.UID]
	return Reading{Input: round.Input{At: at, Kind: round.InPlaced, Box: box, Card: m.Card, Foreign: !enrolled}, Code: b.UID}
}

func (d *rfid) lifted(at time.Time, box round.Box, uid string) Reading {
	return Reading{Input: round.Input{At: at, Kind: round.InLifted, Box: box, Card: d.codes[uid].Card}}
}

// age says that nothing is certain but what will be told from now on.
func (b *rfidBoxes) age() {
	for box := round.P1; box <= round.B3; box++ {
		if !b[box].Told {
			b[box].UID = ""
		}
		b[box].Old = true
	}
}

// Reconnect begins a new line. One that was begun is refused with the next Feed.
func (d *rfid) Reconnect() {
	d.split.reconnect()
	d.boxes.age()
}

func (d *rfid) Stats() Stats { return d.stats }

// rfidState is what a snapshot has besides the counts.
type rfidState struct {
	held
	Boxes rfidBoxes `json:"boxes"`
}

const rfidSnapshotVersion = 1

func (d *rfid) Snapshot() []byte {
	return takeSnapshot(rfidProtocol, rfidSnapshotVersion, d.stats, rfidState{d.split.held, d.boxes})
}

// Restore takes only what Snapshot writes, byte for byte.
func (d *rfid) Restore(b []byte) error {
	stats, shot, err := readSnapshot[rfidState](rfidProtocol, rfidSnapshotVersion, b)
	if err != nil {
		return err
	}
	to := rfid{codes: d.codes, boxes: shot.Boxes, stats: stats}
	if err := resume(&to.split, shot.held); err != nil {
		return fmt.Errorf("%s snapshot: %w", rfidProtocol, err)
	}
	if !to.possible() {
		return fmt.Errorf("%s snapshot: impossible boxes", rfidProtocol)
	}
	*d = to
	return nil
}

// possible reports whether lines lead to what lies in the boxes: each tag was told
// of one box, and only then others can wait for it.
func (d *rfid) possible() bool {
	for box := round.P1; box <= round.B3; box++ {
		b, holder := d.boxes[box], d.holding(d.boxes[box].UID, true)
		_, uid, why := parseRFID(fmt.Appendf(nil, "%v %s", box, b.UID))
		switch {
		case b.UID == "" && !b.Told:
		case why != 0, uid != b.UID, uid == "":
			return false
		case b.Told && holder != box, !b.Told && (b.Old || holder == 0 || d.boxes[holder].Old):
			return false
		}
	}
	return d.boxes[0] == rfidBox{}
}
