package scanner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"shoed/round"
)

// Reading is one thing a decoder has to say: a fact, or bytes it refused.
type Reading struct {
	Input round.Input // what was observed; only when Err is nil
	Err   *FrameError

	// Code is what the card's code was, in the form of Codes, on every card that a
	// coded protocol reads, known or not. It may tell a card that the table has not
	// shown.
	Code string
}

// Decoder reads one protocol. It belongs to one goroutine.
type Decoder interface {
	// Feed decodes the bytes of one read and appends what they complete to out.
	// at is when they arrived, and becomes the At of every input.
	Feed(at time.Time, b []byte, out []Reading) []Reading

	// Reconnect says that the line was opened again: an unfinished frame is
	// refused as truncated, reported with the next Feed. What the reader's own
	// sequence numbers prove is kept.
	Reconnect()

	// Stats counts since the start, restored snapshots included.
	Stats() Stats

	// Snapshot is everything that later readings depend on, in a form that
	// Restore takes, at any byte boundary. Options are not in it. It may hold a
	// card that the table has not shown, so it is for the journal.
	Snapshot() []byte

	// Restore continues from a Snapshot. An error means that b is not one, and
	// changes nothing.
	Restore(b []byte) error
}

// Options of a decoder; the zero Options are the defaults.
type Options struct {
	// DuplicateWindow is how long after a telegram the same bytes are taken for
	// a copy of it; 0 means the constant of that name. A line that runs faster
	// than life needs a shorter one.
	DuplicateWindow time.Duration

	Codes    Codes // what each code means, every card among them; of generic, parallel8, rfid and wiegand
	Learning bool  // there are no Codes yet: every card is told unread, with its Code

	// Uses say what each wire is for, in the order of the request: boxes ("P1") of
	// presence, switches ("start") of panel.
	Uses   []string
	Steady time.Duration // how long a switch must keep its level to count; of presence and panel; 0 is SteadyTime
	Bits   int           // of a wiegand word, parity included: 26 or 34; 0 is 26
	Hold   time.Duration // how long after its strobe a parallel8 code is there; 0 is HoldTime
	Frame  Frame         // of generic
}

// DuplicateWindow by default. The copies of a telegram come 50 ms apart, six
// were seen, and a serial device server may hold them back for a while; the same
// bytes with a new meaning need nine telegrams in between, which no dealer
// manages in two seconds.
const DuplicateWindow = 2 * time.Second

// SteadyTime by default: switches of a layout bounce for a few milliseconds, and
// a hand takes ten times as long.
const SteadyTime = 20 * time.Millisecond

// HoldTime by default.
const HoldTime = 10 * time.Millisecond

// Stats counts what a decoder met.
type Stats struct {
	Frames       uint64   `json:"frames"`               // with a good checksum, copies and refused content included
	Duplicates   uint64   `json:"duplicates"`           // of those, copies that were dropped
	Anomalies    uint64   `json:"anomalies"`            // of those, the last sequence number on other bytes
	Gaps         uint64   `json:"gaps"`                 // ReaderGap inputs made
	Replies      uint64   `json:"replies"`              // answers to commands
	GarbageBytes uint64   `json:"garbage_bytes"`        // bytes that belong to no frame with a good checksum; of wires, to no record
	LostEdges    uint64   `json:"lost_edges,omitempty"` // of wires, edges that did not come
	Bounces      uint64   `json:"bounces,omitempty"`    // of switches, edges that came before the one before had settled
	Refused      Refusals `json:"refused"`
}

// Refusals counts what was refused, by Reason. In JSON it has the reasons' texts,
// which outlive a change of the numbers behind them.
type Refusals [reasons]uint64

// ByReason are those that were counted.
func (r Refusals) ByReason() map[Reason]uint64 {
	counted := map[Reason]uint64{}
	for reason, n := range r {
		if n > 0 {
			counted[Reason(reason)] = n
		}
	}
	return counted
}

// MarshalJSON is ByReason in JSON.
func (r Refusals) MarshalJSON() ([]byte, error) { return json.Marshal(r.ByReason()) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Refusals) UnmarshalJSON(b []byte) error {
	var counted map[Reason]uint64
	if err := json.Unmarshal(b, &counted); err != nil {
		return err
	}
	*r = Refusals{}
	for reason, n := range counted {
		r[reason] = n
	}
	return nil
}

// refuse counts a refusal and reports it.
func (s *Stats) refuse(protocol string, p piece) Reading {
	s.Refused[p.why]++
	return Reading{Err: &FrameError{protocol, p.why, p.offset, p.bytes}}
}

// protocol is a row of the table of New.
type protocol struct {
	reads  What
	wired  bool // it decodes the wire records of a GPIO chip, not the bytes of a serial line
	wires  int  // so many; 0 any
	coded  bool // Codes give its cards
	places bool // it says whose card each is, so that a round may begin at its Player 1
	build  func(Options) (Decoder, error)
}

// What a protocol tells of.
type What uint8

const (
	Cards What = iota + 1 // that leave the shoe
	Boxes                 // what lies in them
	Panel                 // the dealer's buttons, keys and switches
)

// protocols that New knows.
var protocols = map[string]protocol{
	angelProtocol:     {reads: Cards, places: true, build: func(o Options) (Decoder, error) { return newAngel(o), nil }},
	barcodeProtocol:   {reads: Cards, build: func(Options) (Decoder, error) { return newBarcode() }},
	genericProtocol:   {reads: Cards, coded: true, build: newGeneric},
	panelProtocol:     {reads: Panel, wired: true, build: newPanel},
	parallel8Protocol: {reads: Cards, wired: true, wires: parallel8Wires, coded: true, build: newParallel8},
	presenceProtocol:  {reads: Boxes, wired: true, wires: len(boxNames), build: newPresence},
	rfidProtocol:      {reads: Boxes, coded: true, build: newRFID},
	wiegandProtocol:   {reads: Cards, wired: true, wires: 2, coded: true, build: newWiegand},
}

// New makes the decoder of a protocol. An error names the protocols there are,
// or the option that makes no sense.
func New(name string, o Options) (Decoder, error) {
	p, ok := protocols[name]
	if !ok {
		return nil, fmt.Errorf("reader protocol %q is unknown: use one of %s", name, strings.Join(slices.Sorted(maps.Keys(protocols)), ", "))
	}
	if o.DuplicateWindow < 0 {
		return nil, fmt.Errorf("%s: duplicate window %v is negative: use 0 for the default of %v", name, o.DuplicateWindow, DuplicateWindow)
	}
	if o.DuplicateWindow == 0 {
		o.DuplicateWindow = DuplicateWindow
	}
	if p.coded && !o.Learning {
		if err := o.Codes.complete(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return p.build(o)
}

// ReaderDo is what a reader can be told.
type ReaderDo uint8

const (
	Lock ReaderDo = iota + 1
	Unlock
	CancelError
)

// Order is what to write to a reader of the protocol; no is that of the error to
// cancel. An error says that it cannot be told this.
func Order(protocol string, do ReaderDo, no uint8) ([]byte, error) {
	if protocol != angelProtocol {
		return nil, fmt.Errorf("a %s reader takes no orders", protocol)
	}
	return AngelCommand{Do: map[ReaderDo]AngelDo{Lock: AngelLock, Unlock: AngelUnlock, CancelError: AngelCancelError}[do], Error: no}.Bytes()
}

// Reads is what the protocol tells of; 0 for one that New does not know.
func Reads(name string) What { return protocols[name].reads }

// Places reports whether readers of the protocol say whose card each is, so that
// a round may begin at their Player 1.
func Places(name string) bool { return protocols[name].places }

// Wired reports whether the protocol is read from the wires of a GPIO chip.
func Wired(name string) bool { return protocols[name].wired }

// Wires are how many of them it has; 0 when that is open.
func Wires(name string) int { return protocols[name].wires }

// Coded reports whether the protocol's cards are codes, which Codes explain.
func Coded(name string) bool { return protocols[name].coded }

// Protocols that tell of something, sorted.
func Protocols(of What) []string {
	var names []string
	for name, p := range protocols {
		if p.reads == of {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
