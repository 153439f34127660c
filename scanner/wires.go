package scanner

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"shoed/round"
)

/*
Wires of a GPIO chip, as package device hands them over.

Hardware: up to 16 lines of one request of the Linux GPIO character device, uAPI
version 2 (linux/gpio.h, struct gpio_v2_line_event). Active and inactive are
logical: the kernel turns wires round that are active low.

Example, wire 3 becomes active 1.000000007 s after the computer's start, the
258th edge since the wires were opened; all numbers little endian:

	01 03 00 00 02 01 00 00 07 CA 9A 3B 00 00 00 00
	 |  |  +--+  +--------+  +--------------------+--- time, ns of CLOCK_MONOTONIC
	 |  |  |     +------------------------------------ seq
	 |  |  +------------------------------------------ levels, a bit for each wire, 1 active
	 |  +--------------------------------------------- wire, its place in the request
	 +------------------------------------------------ kind

	kind                  wire  levels  seq                     time
	1 the wire is active  0-15  0       the kernel's number,    the kernel's stamp
	2 it is inactive      0-15  0       from 1 at each opening  the kernel's stamp
	3 levels              0     all     the highest that was    when they were read
	4 levels, unsteady    0     all     read so far, 0 none     when they were read

Unsteady are levels of which two reads differed. Levels come first after each
opening; once there was silence for QuietTime after edges, which proves that
nothing more came until then; right after the edge of a strobe; and when a look
once a second finds others than were told. A look that finds nothing new is not
told, so there may be no record for hours.

Oddities:
  - The kernel hands over edges of different wires out of order, but numbers them
    in the interrupt. Within a read they are sorted; what comes early across reads
    is held here until the missing one comes.
  - An edge is lost when the next one of its wire comes before the kernel's thread
    has run, when the kernel's buffer is full, and when a wire changes more often
    than device lets through. Then its number is missing, which shows only with
    the next edge. Levels, or more edges held than an interrupt can be overtaken
    by, prove that it will not come: a gap.
  - An edge whose number has passed is a copy, or was given up. Both are dropped,
    and counted as duplicates.
  - Records bear no mark by which to find them, and need none: a read is whole
    records. So a record that cannot be is refused as a whole, and the next one
    begins 16 bytes on. Its edge is then a gap.
  - What is refused, a record or a word of many, has its place at the record that
    proved it.
  - A number that goes back without a new opening (levels tell) is an anomaly, and
    counted as such; reading goes on with it.
*/

const (
	wireRecordBytes = 16
	wiresMost       = 16 // of a request: the bits of levels

	// wiresHeld bounds the edges that wait for one before them. While an edge is on
	// its way from interrupt to thread it can be overtaken by one of each other wire,
	// or by two of a quick one.
	wiresHeld = 2 * wiresMost
)

// QuietTime is the silence after edges that is told by a record of levels. What
// has to be proved by silence must not take longer.
const QuietTime = 25 * time.Millisecond

type wireKind uint8

const (
	wireActive wireKind = iota + 1
	wireInactive
	wireLevels
	wireUnsteady
)

// wireRecord is one record.
type wireRecord struct {
	kind   wireKind
	wire   uint8
	levels uint16
	seq    uint32
	time   int64 // ns
}

func (r wireRecord) append(dst []byte) []byte {
	dst = append(dst, byte(r.kind), r.wire)
	dst = binary.LittleEndian.AppendUint16(dst, r.levels)
	dst = binary.LittleEndian.AppendUint32(dst, r.seq)
	return binary.LittleEndian.AppendUint64(dst, uint64(r.time))
}

// parseWireRecord reads one record of a request of n wires, or says why it can be
// none.
func parseWireRecord(b []byte, n int) (wireRecord, Reason) {
	r := wireRecord{
		kind:   wireKind(b[0]),
		wire:   b[1],
		levels: binary.LittleEndian.Uint16(b[2:]),
		seq:    binary.LittleEndian.Uint32(b[4:]),
		time:   int64(binary.LittleEndian.Uint64(b[8:])),
	}
	edge := r.kind == wireActive || r.kind == wireInactive
	switch {
	case r.kind < wireActive || r.kind > wireUnsteady:
		return r, BadCode
	case edge && int(r.wire) >= n:
		return r, BadIndex
	case edge && r.levels != 0, !edge && r.wire != 0, r.levels>>n != 0, r.time < 0:
		return r, BadPayload
	}
	return r, 0
}

// circuit is what is connected to the wires. It learns what happens in its order
// and tells through w what that means.
type circuit interface {
	edge(w *wires, e wireRecord)
	levels(w *wires, l wireRecord) // steady or not; every edge before it was told or is a gap
	gap(w *wires, missing int32)   // so many edges, between the one before and whatever comes next
	cut(w *wires)                  // the wires were opened again: nothing goes on from before

	// state is what a snapshot keeps of it; with is a copy that has this state
	// instead, or an error saying what is impossible in it.
	state() any
	with(state []byte) (circuit, error)
}

// wires is the Decoder of all protocols over wires: it finds records, puts edges
// in order, and leaves their meaning to a circuit.
type wires struct {
	protocol string
	count    int // of wires
	circuit  circuit

	record [wireRecordBytes]byte
	n      int          // bytes of record that came
	offset int64        // of the next byte
	next   uint32       // number of the edge to come
	held   []wireRecord // edges that came early, by number
	cutOff bool         // opened again since the last Feed
	fresh  bool         // opened, and no levels came yet
	stats  Stats

	at  time.Time // of the Feed in hand, as is
	out []Reading
}

func newWires(protocol string, count int, c circuit) *wires {
	return &wires{protocol: protocol, count: count, circuit: c, next: 1, fresh: true, held: make([]wireRecord, 0, wiresHeld+1)}
}

func (w *wires) Feed(at time.Time, b []byte, out []Reading) []Reading {
	w.at, w.out = at, out
	if w.cutOff {
		w.reopen()
	}
	for len(b) > 0 {
		n := copy(w.record[w.n:], b)
		w.n, w.offset, b = w.n+n, w.offset+int64(n), b[n:]
		if w.n == wireRecordBytes {
			w.take()
			w.n = 0
		}
	}
	out, w.out = w.out, nil
	return out
}

// take takes a whole record.
func (w *wires) take() {
	switch r, why := parseWireRecord(w.record[:], w.count); {
	case why != 0:
		w.stats.GarbageBytes += wireRecordBytes
		w.refuse(why)
	case r.kind <= wireInactive:
		w.order(r)
	default:
		w.giveUp()
		if ahead := int32(r.seq + 1 - w.next); ahead > 0 {
			w.gap(ahead)
		} else if ahead < 0 {
			w.stats.Anomalies++
		}
		w.next = r.seq + 1
		w.circuit.levels(w, r)
		w.fresh = false
	}
}

// order tells an edge in its turn.
func (w *wires) order(e wireRecord) {
	ahead := int32(e.seq - w.next) // it wraps
	switch {
	case ahead < 0:
		w.stats.Duplicates++
		return
	case ahead == 0:
		w.edge(e)
	default:
		w.hold(e)
	}
	if len(w.held) == 0 {
		return
	}
	if len(w.held) > wiresHeld {
		w.gap(int32(w.held[0].seq - w.next))
		w.next = w.held[0].seq
	}
	n := 0
	for n < len(w.held) && w.held[n].seq == w.next {
		w.edge(w.held[n])
		n++
	}
	w.held = slices.Delete(w.held, 0, n)
}

func (w *wires) hold(e wireRecord) {
	ahead := e.seq - w.next
	i, copied := slices.BinarySearchFunc(w.held, ahead, func(h wireRecord, ahead uint32) int { return int(h.seq-w.next) - int(ahead) })
	if copied {
		w.stats.Duplicates++
		return
	}
	w.held = slices.Insert(w.held, i, e)
}

// giveUp tells the held edges, and what is missing before each.
func (w *wires) giveUp() {
	for _, e := range w.held {
		if missing := int32(e.seq - w.next); missing > 0 {
			w.gap(missing)
		}
		w.edge(e)
	}
	w.held = w.held[:0]
}

func (w *wires) edge(e wireRecord) {
	w.next = e.seq + 1
	w.circuit.edge(w, e)
}

func (w *wires) gap(missing int32) {
	w.stats.LostEdges += uint64(missing)
	w.circuit.gap(w, missing)
}

// Reconnect lets numbers start anew. What was begun is refused with the next
// Feed.
func (w *wires) Reconnect() { w.cutOff = true }

func (w *wires) reopen() {
	w.giveUp()
	w.circuit.cut(w)
	if w.n > 0 {
		w.stats.GarbageBytes += uint64(w.n)
		w.refuse(Truncated)
	}
	w.n, w.next, w.cutOff, w.fresh = 0, 1, false, true
}

func (w *wires) Stats() Stats { return w.stats }

// tell tells an input.
func (w *wires) tell(in round.Input) {
	in.At = w.at
	w.out = append(w.out, Reading{Input: in})
}

// refuse tells why something is refused. Its place is the record that proved it.
func (w *wires) refuse(why Reason) {
	w.stats.Refused[why]++
	w.out = append(w.out, Reading{Err: &FrameError{w.protocol, why, w.offset - int64(w.n), bytes.Clone(w.record[:w.n])}})
}

// cannotRead is why a card counts as unread whose word, sample or frame is refused.
const cannotRead = "cannot read"

// unread refuses what a card was told by.
func (w *wires) unread(why Reason) {
	w.refuse(why)
	w.tell(round.Input{Kind: round.InUnread, Name: cannotRead})
}

// cardsLost tells that cards may be missing, nobody knows how many.
func (w *wires) cardsLost() {
	w.stats.Gaps++
	w.tell(round.Input{Kind: round.InReader, Reader: round.ReaderGap})
}

// wire tells what is wrong with a wire, or that nothing is any more. The device is
// left to whoever knows its name.
func (w *wires) wire(line string, says round.WireSays) {
	w.tell(round.Input{Kind: round.InWire, Line: line, Wire: says})
}

// code tells the card of a code.
func (w *wires) code(codes Codes, code string) {
	w.stats.Frames++
	w.out = append(w.out, codes.reading(w.at, code))
}

// wiresState is what a snapshot has besides the counts.
type wiresState struct {
	Offset int64           `json:"offset"`
	Record string          `json:"record"` // unfinished, hex
	Next   uint32          `json:"next"`
	Held   string          `json:"held"` // records, hex
	CutOff bool            `json:"cut_off"`
	Fresh  bool            `json:"fresh"`
	State  json.RawMessage `json:"state"` // of the circuit
}

const wiresSnapshotVersion = 1

func (w *wires) Snapshot() []byte {
	var held []byte
	for _, e := range w.held {
		held = e.append(held)
	}
	state, err := json.Marshal(w.circuit.state())
	if err != nil {
		panic(err) // numbers, and reasons that are all known
	}
	return takeSnapshot(w.protocol, wiresSnapshotVersion, w.stats, wiresState{
		w.offset, hex.EncodeToString(w.record[:w.n]), w.next, hex.EncodeToString(held), w.cutOff, w.fresh, state})
}

// Restore takes only what Snapshot writes, byte for byte.
func (w *wires) Restore(b []byte) error {
	stats, shot, err := readSnapshot[wiresState](w.protocol, wiresSnapshotVersion, b)
	if err != nil {
		return err
	}
	restored, err := w.with(stats, shot)
	if err != nil {
		return fmt.Errorf("%s snapshot: %w", w.protocol, err)
	}
	if !bytes.Equal(restored.Snapshot(), b) {
		return fmt.Errorf("%s snapshot: not in the form in which it is written", w.protocol)
	}
	*w = *restored
	return nil
}

// with is a copy of w that goes on from a snapshot.
func (w *wires) with(stats Stats, shot wiresState) (*wires, error) {
	c, err := w.circuit.with(shot.State)
	if err != nil {
		return nil, err
	}
	to := newWires(w.protocol, w.count, c)
	to.stats, to.offset, to.next, to.cutOff, to.fresh = stats, shot.Offset, shot.Next, shot.CutOff, shot.Fresh
	record, err := hex.DecodeString(shot.Record)
	if err != nil || len(record) >= wireRecordBytes || shot.Offset < int64(len(record)) {
		return nil, fmt.Errorf("an impossible record %q", shot.Record)
	}
	to.n = copy(to.record[:], record)
	held, err := hex.DecodeString(shot.Held)
	if err != nil || len(held)%wireRecordBytes != 0 || len(held) > wiresHeld*wireRecordBytes {
		return nil, fmt.Errorf("impossible edges %q", shot.Held)
	}
	for ; len(held) > 0; held = held[wireRecordBytes:] {
		e, why := parseWireRecord(held, w.count)
		if why != 0 || e.kind > wireInactive || int32(e.seq-to.next) <= 0 {
			return nil, fmt.Errorf("impossible edges %q", shot.Held)
		}
		to.hold(e) // another order than theirs is found by Restore
	}
	return to, nil
}
