package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"shoed/config"
	"shoed/round"
	"shoed/scanner"
)

// reader is one of the table's card readers: its decoder, with counts and
// sequence of its own, and its line.
type reader struct {
	name, protocol string
	decoder        scanner.Decoder
	orders         chan []byte // to it
	up             bool        // its line is open
	refused        uint64      // refusals already logged
}

// openReaders makes the readers of a configuration; the first is in use at
// first.
func openReaders(cfg *config.Config, o scanner.Options) ([]*reader, error) {
	var all []*reader
	for _, r := range cfg.Readers() {
		decoder, err := scanner.New(r.Protocol, o)
		if err != nil {
			return nil, fmt.Errorf("reader %s: %w", r.Name, err)
		}
		all = append(all, &reader{name: r.Name, protocol: r.Protocol, decoder: decoder, orders: make(chan []byte)})
	}
	return all, nil
}

// reader finds one by its name; the first where the configuration knows the
// name no more.
func (c *core) reader(name string) *reader {
	for _, r := range c.readers {
		if r.name == name {
			return r
		}
	}
	return c.readers[0]
}

// inUse is the reader whose cards are dealt.
func (c *core) inUse() *reader { return c.reader(c.state.Active) }

// others names the readers that are not in use.
func (c *core) others() []string {
	var names []string
	for _, r := range c.readers {
		if r != c.inUse() {
			names = append(names, r.name)
		}
	}
	return names
}

// feed decodes what came from a reader. Of one that is not in use only this
// much counts: that it tells something, and whether that is a card.
func (c *core) feed(r *reader, at time.Time, b []byte, out []scanner.Reading) []scanner.Reading {
	inputs := inputsOf(r.decoder.Feed(at, b, out))
	if r == c.inUse() {
		c.learnMask(inputs)
		return inputs
	}
	for i := range inputs {
		in := &inputs[i].Input
		says := round.SpareOther
		if in.Kind == round.InCard || in.Kind == round.InUnread {
			says = round.SpareCard
		}
		*in = round.Input{At: in.At, Kind: round.InInactive, Name: r.name, Spare: says}
	}
	return inputs
}

// line is the input that a reader's line leads to.
func (c *core) line(r *reader, at time.Time, up bool) round.Input {
	switch {
	case r == c.inUse():
		return round.Input{At: at, Kind: round.InLink, Name: r.name, On: up}
	case up:
		return round.Input{At: at, Kind: round.InInactive, Name: r.name, Spare: round.SpareUp}
	}
	return round.Input{At: at, Kind: round.InInactive, Name: r.name, Spare: round.SpareDown}
}

// beforeStep tells a decoder what an input means for its line.
func (c *core) beforeStep(in *round.Input) {
	up := in.Kind == round.InLink && in.On || in.Kind == round.InInactive && in.Spare == round.SpareUp
	for _, r := range c.readers {
		if up && r.name == in.Name {
			r.decoder.Reconnect()
		}
	}
}

// stats are the counts of each reader.
func (c *core) stats() map[string]scanner.Stats {
	all := map[string]scanner.Stats{}
	for _, r := range c.readers {
		all[r.name] = r.decoder.Stats()
	}
	return all
}

// snapshots are those of each decoder.
func (c *core) snapshots() map[string][]byte {
	all := map[string][]byte{}
	for _, r := range c.readers {
		all[r.name] = r.decoder.Snapshot()
	}
	return all
}

// restoreReaders continues from snapshots. Of a reader that is no more nothing
// is needed.
func (c *core) restoreReaders(s *snapshot) error {
	if s.Decoder != nil { // of a version that knew one reader
		return c.readers[0].decoder.Restore(s.Decoder)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Decoders)) {
		r := c.reader(name)
		if r.name != name && len(s.Decoders) > 1 {
			continue
		}
		if err := r.decoder.Restore(s.Decoders[name]); err != nil {
			return fmt.Errorf("reader %s: %w", r.name, err)
		}
	}
	return nil
}
