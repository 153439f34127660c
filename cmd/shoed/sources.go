package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"shoed/config"
	"shoed/device"
	"shoed/round"
	"shoed/scanner"
)

// source is a device that tells of the table: a card reader, the sensors of the
// boxes, or the dealer's panel. It has a decoder, with counts and sequence of its
// own, and a line.
type source struct {
	name, protocol string
	reads          scanner.What
	decoder        scanner.Decoder
	line           device.Options
	orders         chan []byte // to it
	up             bool        // its line is open
	refused        uint64      // refusals already logged

	settings string // of its decoder, to be compared
	changed  bool   // the journal's last snapshot knows it with other settings, or not at all
}

// openSources makes those of a configuration. The readers come first, of these
// the one in use at first.
func openSources(cfg *config.Config, o scanner.Options) ([]*source, error) {
	var all []*source
	var wrong error
	add := func(section, protocol string, line device.Options, options scanner.Options, err error) {
		if err == nil {
			err = fits(protocol, line)
		}
		var d scanner.Decoder
		if err == nil {
			d, err = scanner.New(protocol, options)
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%v: %s: %w", cfg.Where(section+".protocol"), section, err))
			return
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %+v", protocol, options))
		all = append(all, &source{name: line.Name, protocol: protocol, reads: scanner.Reads(protocol), decoder: d, line: line,
			orders: make(chan []byte), settings: hex.EncodeToString(sum[:8])})
	}
	for i, r := range cfg.Readers() {
		options, err := readerOptions(&r)
		options.DuplicateWindow = o.DuplicateWindow
		add(config.ReaderSection(i), r.Protocol, readerLine(&r), options, err)
	}
	if b := &cfg.Boxes; b.Device != "" {
		options, err := boxesOptions(b)
		add("boxes", b.Protocol, boxesLine(b), options, err)
	}
	if p := &cfg.Panel; p.Device != "" {
		add("panel", "panel", panelLine(p), panelOptions(p), nil)
	}
	return all, wrong
}

// source finds one by its name, "" being the first; nil when the configuration
// knows it no more.
func (c *core) source(name string) *source {
	for _, s := range c.sources {
		if s.name == name || name == "" {
			return s
		}
	}
	return nil
}

// inUse is the reader whose cards are dealt; the first where the configuration
// knows no more the one that was.
func (c *core) inUse() *source {
	if s := c.source(c.state.Active); s != nil {
		return s
	}
	return c.sources[0]
}

// readers are the sources that tell of cards.
func (c *core) readers() []*source {
	return slices.DeleteFunc(slices.Clone(c.sources), func(s *source) bool { return s.reads != scanner.Cards })
}

// spares names the readers that are not in use.
func (c *core) spares() []string {
	var names []string
	for _, r := range c.readers() {
		if r != c.inUse() {
			names = append(names, r.name)
		}
	}
	return names
}

// feed decodes what came from a source. Of a reader that is not in use only this
// much counts: that it tells something, and whether that is a card.
func (c *core) feed(s *source, at time.Time, b []byte, out []scanner.Reading) []scanner.Reading {
	inputs := inputsOf(s.decoder.Feed(at, b, out))
	for i := range inputs {
		if in := &inputs[i].Input; in.Kind == round.InWire {
			in.Name = s.name // a decoder does not know whose wires they are
		}
	}
	switch {
	case s.reads != scanner.Cards:
		return inputs
	case s == c.inUse():
		c.learnMask(inputs)
		return inputs
	}
	for i := range inputs {
		in := &inputs[i].Input
		says := round.SpareOther
		if in.Kind == round.InCard || in.Kind == round.InUnread {
			says = round.SpareCard
		}
		*in = round.Input{At: in.At, Kind: round.InInactive, Name: s.name, Spare: says}
	}
	return inputs
}

// link is the input that a source's line leads to.
func (c *core) link(s *source, at time.Time, up bool) round.Input {
	switch {
	case s.reads != scanner.Cards || s == c.inUse():
		return round.Input{At: at, Kind: round.InLink, Name: s.name, On: up}
	case up:
		return round.Input{At: at, Kind: round.InInactive, Name: s.name, Spare: round.SpareUp}
	}
	return round.Input{At: at, Kind: round.InInactive, Name: s.name, Spare: round.SpareDown}
}

// beforeStep tells a decoder what an input means for its line.
func (c *core) beforeStep(in *round.Input) {
	up := in.Kind == round.InLink && in.On || in.Kind == round.InInactive && in.Spare == round.SpareUp
	for _, s := range c.sources {
		if up && s.name == in.Name {
			s.decoder.Reconnect()
		}
	}
}

// stats are the counts of each source.
func (c *core) stats() map[string]scanner.Stats {
	all := map[string]scanner.Stats{}
	for _, s := range c.sources {
		all[s.name] = s.decoder.Stats()
	}
	return all
}

// decoded is a source's decoder in a snapshot.
type decoded struct {
	Settings string `json:"settings"`
	State    []byte `json:"state"`
}

// snapshots are those of each decoder.
func (c *core) snapshots() map[string]decoded {
	all := map[string]decoded{}
	for _, s := range c.sources {
		all[s.name] = decoded{s.settings, s.decoder.Snapshot()}
	}
	return all
}

// restoreSources continues from the decoders of a snapshot. One that was set up
// otherwise then begins anew, and so does one that an older program wrote in a
// form that this one cannot read: what the journal has of it since is not decoded
// again.
func (c *core) restoreSources(all map[string]decoded, sameProgram bool) error {
	for _, s := range c.sources {
		was, known := all[s.name]
		if s.changed = !known || was.Settings != s.settings; s.changed {
			continue
		}
		err := s.decoder.Restore(was.State)
		if err != nil && sameProgram {
			return fmt.Errorf("the decoder of %s: %w", s.name, err)
		}
		if s.changed = err != nil; s.changed {
			c.tell(slog.LevelWarn, "decoder.anew", "a decoder begins anew: another version of the program has written its state", "device", s.name, "cause", err)
		}
	}
	return nil
}
