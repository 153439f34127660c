package scanner

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// snapshot is the form of a Snapshot: what the decoder has counted, and the rest
// of its state in a form of its own.
type snapshot[T any] struct {
	Version  int    `json:"v"` // of T
	Protocol string `json:"protocol"`
	Counted  counts `json:"counted"`
	State    T      `json:"state"`
}

// counts are Stats as a snapshot keeps them: what was refused by its name, which
// outlives a change of the numbers behind it.
type counts struct {
	Frames       uint64            `json:"frames"`
	Duplicates   uint64            `json:"duplicates"`
	Anomalies    uint64            `json:"anomalies"`
	Gaps         uint64            `json:"gaps"`
	Replies      uint64            `json:"replies"`
	GarbageBytes uint64            `json:"garbage_bytes"`
	LostEdges    uint64            `json:"lost_edges,omitempty"`
	Bounces      uint64            `json:"bounces,omitempty"`
	Refused      map[Reason]uint64 `json:"refused"`
}

// takeSnapshot writes a decoder's state. Fields of T are numbers and texts.
func takeSnapshot[T any](protocol string, version int, s Stats, state T) []byte {
	b, err := json.Marshal(snapshot[T]{version, protocol, counts{
		s.Frames, s.Duplicates, s.Anomalies, s.Gaps, s.Replies, s.GarbageBytes, s.LostEdges, s.Bounces, s.refusals(),
	}, state})
	if err != nil {
		panic(err) // numbers, texts, and reasons that are all known
	}
	return b
}

// readSnapshot takes only what takeSnapshot writes, byte for byte. Whether T is a
// state that any bytes lead to is for the caller to prove.
func readSnapshot[T any](protocol string, version int, b []byte) (Stats, T, error) {
	var shot snapshot[T]
	var none T
	if err := json.Unmarshal(b, &shot); err != nil {
		return Stats{}, none, fmt.Errorf("%s snapshot: %w", protocol, err)
	}
	if shot.Version != version || shot.Protocol != protocol {
		return Stats{}, none, fmt.Errorf("%s snapshot: version %d of protocol %q: this program reads version %d: decode again from the start",
			protocol, shot.Version, shot.Protocol, version)
	}
	c := shot.Counted
	s := Stats{Frames: c.Frames, Duplicates: c.Duplicates, Anomalies: c.Anomalies, Gaps: c.Gaps, Replies: c.Replies, GarbageBytes: c.GarbageBytes, LostEdges: c.LostEdges, Bounces: c.Bounces}
	for r, n := range c.Refused {
		s.Refused[r] = n
	}
	if !bytes.Equal(takeSnapshot(protocol, version, s, shot.State), b) {
		return Stats{}, none, fmt.Errorf("%s snapshot: not in the form in which it is written", protocol)
	}
	return s, shot.State, nil
}
