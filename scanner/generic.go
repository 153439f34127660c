package scanner

import (
	"fmt"
	"time"

	"shoed/round"
)

/*
Generic: a reader without code of its own here, described in the configuration.

Hardware: any that sends a code for each card on a serial line, in frames that are
all of one length. None was seen by us: every capture in testdata is synthetic.

Example, framing stx_etx with checksum xor in hex before_end, covering the payload:

	02 31 30 31 30 30 30 03
	 | +---------+ +---+  +--- end
	 |      |        +-------- checksum
	 |      +----------------- payload, here the code's four characters
	 +------------------------ start

Oddities:
  - There is no sequence number: a frame that is lost, or damaged in its start, its
    length or its end, is at most a refusal. Only sensors tell that a card is
    missing.
  - A frame of the right shape tells of a card. Where its code means none, or its
    checksum is wrong, that card left the shoe unread.
  - Nothing is taken for a copy: a reader that sends each code twice deals each card
    twice.
  - It says neither whose card it is nor where a round begins: round_start must be
    another than reader.
*/

const genericProtocol = "generic"

// generic is the Decoder of every reader whose frames have one shape.
type generic struct {
	protocol string
	shape    *shape
	codes    Codes
	split    splitter
	told     int64 // offset up to which frames with a wrong checksum were told as unread cards
	stats    Stats
}

func newGeneric(o Options) (Decoder, error) {
	s, err := newShape(o.Frame)
	if err == nil {
		err = o.Codes.lengths(s.codeBytes())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", genericProtocol, err)
	}
	return coded(genericProtocol, s, o.Codes), nil
}

func coded(protocol string, s *shape, codes Codes) *generic {
	return &generic{protocol: protocol, shape: s, codes: codes, split: s.splitter()}
}

// splitter is a fresh one.
func (s *shape) splitter() splitter {
	if s.line {
		return new(lines)
	}
	return &frames{shape: s}
}

func (g *generic) Feed(at time.Time, b []byte, out []Reading) []Reading {
	var pieces []piece
	for _, c := range b {
		pieces = g.split.push(c, pieces[:0])
		for _, p := range pieces {
			out = g.read(at, p, out)
		}
	}
	return out
}

func (g *generic) read(at time.Time, p piece, out []Reading) []Reading {
	if p.why == 0 && g.shape.line {
		p.why = g.shape.whole(p.bytes)
	}
	if p.why == 0 {
		g.stats.Frames++
		return append(out, g.codes.reading(at, g.shape.codeIn(p.bytes)))
	}
	g.stats.GarbageBytes += uint64(len(p.bytes))
	out = append(out, g.stats.refuse(g.protocol, p))
	if p.why == BadChecksum && p.offset >= g.told { // else it begins within one that was told
		g.told = p.offset + int64(g.shape.n)
		out = append(out, Reading{Input: round.Input{At: at, Kind: round.InUnread, Name: cannotRead}})
	}
	return out
}

// Reconnect begins a new frame. One that was begun is refused with the next Feed.
func (g *generic) Reconnect() { g.split.state().reconnect() }

func (g *generic) Stats() Stats { return g.stats }

// genericState is what a snapshot has besides the counts.
type genericState struct {
	held
	Told int64 `json:"told,omitempty"`
}

const genericSnapshotVersion = 2

func (g *generic) Snapshot() []byte {
	return takeSnapshot(g.protocol, genericSnapshotVersion, g.stats, genericState{*g.split.state(), g.told})
}

// Restore takes only what Snapshot writes, byte for byte.
func (g *generic) Restore(b []byte) error {
	stats, shot, err := readSnapshot[genericState](g.protocol, genericSnapshotVersion, b)
	if err != nil {
		return err
	}
	split := g.shape.splitter()
	if err := resume(split, shot.held); err != nil {
		return fmt.Errorf("%s snapshot: %w", g.protocol, err)
	}
	if shot.Long && !g.shape.line || shot.Told < 0 || shot.Told > shot.Offset {
		return fmt.Errorf("%s snapshot: an impossible state", g.protocol)
	}
	g.split, g.told, g.stats = split, shot.Told, stats
	return nil
}
