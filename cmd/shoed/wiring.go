package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"shoed/config"
	"shoed/device"
	"shoed/scanner"
)

// What the lines and decoders of the sources get of the configuration.

// fits tells why a protocol cannot be read from a line.
func fits(protocol string, o device.Options) error {
	wired, want, chip := scanner.Wired(protocol), scanner.Wires(protocol), isChip(o.Address)
	switch {
	case wired && !chip:
		return fmt.Errorf("%s is read from wires: give such as device = \"gpio:pinctrl-bcm2711\", which shoed lines tells", protocol)
	case !wired && chip:
		return fmt.Errorf("%s is read from a serial line: give a port, which shoed ports tells", protocol)
	case wired && (len(o.Wires) == 0 || want > 0 && len(o.Wires) != want):
		return fmt.Errorf("%s has %d wires, and lines names %d: see the example of the configuration", protocol, max(want, 1), len(o.Wires))
	}
	return nil
}

// readerOptions are those of a reader's decoder.
func readerOptions(r *config.Reader) (scanner.Options, error) {
	if scanner.Reads(r.Protocol) != scanner.Cards {
		return scanner.Options{}, fmt.Errorf("reader protocol %q is unknown: use one of %s", r.Protocol, strings.Join(scanner.Protocols(scanner.Cards), ", "))
	}
	o := scanner.Options{Bits: r.WordBits, Hold: time.Duration(r.HoldMS) * time.Millisecond, Frame: scanner.Frame{
		Framing: r.Framing, Start: r.FrameStart, End: r.FrameEnd, LengthCounts: r.LengthCounts, PayloadBytes: r.PayloadBytes,
		Checksum: r.Checksum, ChecksumForm: r.ChecksumForm, ChecksumOrder: r.ChecksumOrder, ChecksumPlace: r.ChecksumPlace, ChecksumCovers: r.ChecksumCovers,
		CodeForm: r.CodeForm, CodeOffset: r.CodeOffset, CodeBytes: r.CodeBytes,
	}}
	if !scanner.Coded(r.Protocol) {
		if len(r.Codes) > 0 || r.CodesFile != "" {
			return o, fmt.Errorf("a %s reader names the cards itself: remove codes and codes_file", r.Protocol)
		}
		return o, nil
	}
	var err error
	o.Codes, err = codes(r.Codes, r.CodesFile)
	return o, err
}

func boxesOptions(b *config.Boxes) (scanner.Options, error) {
	o := scanner.Options{Uses: uses(b.Lines), Steady: time.Duration(b.SteadyMS) * time.Millisecond}
	if !scanner.Coded(b.Protocol) {
		return o, nil
	}
	var err error
	o.Codes, err = codes(b.Codes, b.CodesFile)
	return o, err
}

func panelOptions(p *config.Panel) scanner.Options {
	return scanner.Options{Uses: uses(p.Lines), Steady: time.Duration(p.SteadyMS) * time.Millisecond}
}

// codes are those of the configuration and of the file that it names.
func codes(list []string, file string) (scanner.Codes, error) {
	all, err := scanner.ParseCodes(list)
	if err != nil || file == "" {
		return all, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("codes_file: %w", err)
	}
	defer f.Close()
	more, err := scanner.ReadCodes(f)
	if err != nil {
		return nil, fmt.Errorf("codes_file %s: %w", file, err)
	}
	return all, all.Add(more)
}

// uses are what the wires "use=wire" are for.
func uses(lines []string) []string {
	all := make([]string, len(lines))
	for i, text := range lines {
		all[i], _, _ = strings.Cut(text, "=")
	}
	return all
}

func readerLine(r *config.Reader) device.Options {
	o := device.Options{Name: r.Name, Address: r.Device, BaudRate: r.BaudRate, DataBits: r.DataBits, Parity: r.Parity, StopBits: r.StopBits,
		Settle: time.Duration(r.SettleUS) * time.Microsecond}
	for i, line := range r.Lines {
		w := wire("", line, r.Active, r.Bias)
		w.Limit = device.PulseLimit
		switch r.Protocol {
		case "wiegand": // a pulse is a bit; where it ends says nothing
			w.Use, w.Edges = fmt.Sprintf("D%d", i), device.ActiveEdge
		case "parallel8":
			w.Use, w.Edges = fmt.Sprintf("bit %d", i), device.NoEdges
			if i == len(r.Lines)-1 {
				w.Use, w.Edges, w.Strobe = "strobe", device.ActiveEdge, true
			}
		}
		o.Wires = append(o.Wires, w)
	}
	return o
}

func boxesLine(b *config.Boxes) device.Options {
	return device.Options{Name: "boxes", Address: b.Device, BaudRate: b.BaudRate, DataBits: b.DataBits, Parity: b.Parity, StopBits: b.StopBits,
		Wires: switches(b.Lines, b.Active, b.Bias, b.SteadyMS)}
}

func panelLine(p *config.Panel) device.Options {
	return device.Options{Name: "panel", Address: p.Device, Wires: switches(p.Lines, p.Active, p.Bias, p.SteadyMS)}
}

// switches are wires "use=line" with contacts, of which the kernel keeps off the
// bouncing: the decoder wants them steady for four times as long.
func switches(lines []string, active, bias string, steadyMS int) (all []device.Wire) {
	for _, text := range lines {
		use, line, _ := strings.Cut(text, "=")
		w := wire(use, line, active, bias)
		w.Debounce = time.Duration(steadyMS) * time.Millisecond / 4
		all = append(all, w)
	}
	return all
}

func wire(use, line, active, bias string) device.Wire {
	return device.Wire{Use: use, Line: line, ActiveLow: active == "low", Bias: map[string]string{"up": "up", "down": "down", "off": "none"}[bias]}
}

func lampOptions(l *config.Lamps) device.LampOptions {
	o := device.LampOptions{Name: "lamps", Address: l.Device}
	for _, text := range l.Lines {
		use, line, _ := strings.Cut(text, "=")
		o.Lamps = append(o.Lamps, device.Lamp{Use: use, Line: line, ActiveLow: l.Active == "low"})
	}
	return o
}
