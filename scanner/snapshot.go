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
	Counted  Stats  `json:"counted"`
	State    T      `json:"state"`
}

// takeSnapshot writes a decoder's state. Fields of T are numbers and texts.
func takeSnapshot[T any](protocol string, version int, s Stats, state T) []byte {
	b, err := json.Marshal(snapshot[T]{version, protocol, s, state})
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
	if !bytes.Equal(takeSnapshot(protocol, version, shot.Counted, shot.State), b) {
		return Stats{}, none, fmt.Errorf("%s snapshot: not in the form in which it is written", protocol)
	}
	return shot.Counted, shot.State, nil
}
