package scanner

import (
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
}

// DuplicateWindow by default. The copies of a telegram come 50 ms apart, six
// were seen, and a serial device server may hold them back for a while; the same
// bytes with a new meaning need nine telegrams in between, which no dealer
// manages in two seconds.
const DuplicateWindow = 2 * time.Second

// Stats counts what a decoder met.
type Stats struct {
	Frames       uint64 // with a good checksum, copies and refused content included
	Duplicates   uint64 // of those, copies that were dropped
	Anomalies    uint64 // of those, the last sequence number on other bytes
	Gaps         uint64 // ReaderGap inputs made
	Replies      uint64 // answers to commands
	GarbageBytes uint64 // bytes that belong to no frame with a good checksum
	Refused      [reasons]uint64
}

// refusals are those that were counted, as a snapshot has them.
func (s *Stats) refusals() map[Reason]uint64 {
	counted := map[Reason]uint64{}
	for _, r := range Reasons() {
		if n := s.Refused[r]; n > 0 {
			counted[r] = n
		}
	}
	return counted
}

// protocols that New knows.
var protocols = map[string]func(Options) Decoder{
	angelProtocol:   func(o Options) Decoder { return newAngel(o) },
	barcodeProtocol: func(Options) Decoder { return newBarcode() },
}

// New makes the decoder of a protocol. An error names the protocols there are,
// or the option that makes no sense.
func New(protocol string, o Options) (Decoder, error) {
	build, ok := protocols[protocol]
	if !ok {
		return nil, fmt.Errorf("reader protocol %q is unknown: use one of %s", protocol, strings.Join(Protocols(), ", "))
	}
	if o.DuplicateWindow < 0 {
		return nil, fmt.Errorf("%s: duplicate window %v is negative: use 0 for the default of %v", protocol, o.DuplicateWindow, DuplicateWindow)
	}
	if o.DuplicateWindow == 0 {
		o.DuplicateWindow = DuplicateWindow
	}
	return build(o), nil
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

// Places reports whether readers of the protocol say whose card each is, so that
// a round may begin at their Player 1.
func Places(protocol string) bool { return protocol != barcodeProtocol }

// Protocols that New knows, sorted.
func Protocols() []string {
	return slices.Sorted(maps.Keys(protocols))
}
