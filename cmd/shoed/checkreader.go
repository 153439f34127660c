package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"shoed/device"
	"shoed/mqtt"
	"shoed/scanner"
)

// isTCP tells a device server, of which nothing can be seen from here.
func isTCP(address string) bool { return strings.HasPrefix(address, "tcp:") }

// checkSources looks at what tells of the table, and at the lamps.
func checkSources(ctx context.Context, p *inspected) []mqtt.Finding {
	var found []mqtt.Finding
	for _, s := range p.sources {
		if isChip(s.line.Address) {
			found = append(found, p.wires(s.line)...)
		} else {
			found = append(found, p.port(s.name, s.line)...)
		}
		found = append(found, p.heard(ctx, s)...)
	}
	if l := lampOptions(&p.cfg.Lamps); l.Address != "" {
		o := device.Options{Name: l.Name, Address: l.Address}
		for _, lamp := range l.Lamps {
			o.Wires = append(o.Wires, device.Wire{Use: lamp.Use, Line: lamp.Line})
		}
		found = append(found, p.wires(o)...)
	}
	return found
}

func isChip(address string) bool { return strings.HasPrefix(address, "gpio:") }

// wires looks at the lines of a GPIO chip without requesting them: are they there,
// and does somebody else have them.
func (p *inspected) wires(o device.Options) []mqtt.Finding {
	name := o.Name + " wires"
	path, err := device.FindWires(p.root, o)
	switch {
	case errors.Is(err, device.ErrTaken) && p.running:
		return passed(name, "%s has them, in use as they should be while shoed runs here", path)
	case err != nil:
		return failed(name, err)
	}
	return passed(name, "%s (%s) has them, free", o.Address, path)
}

// port looks at a source's port without opening it: is it there, who may and who
// does open it, and who might come to.
func (p *inspected) port(of string, o device.Options) []mqtt.Finding {
	name, address := of+" port", o.Address
	if isTCP(address) {
		return passed(name, "%s is a device server: its line is set there", address)
	}
	port, err := device.Find(p.root, o)
	if err != nil {
		return failed(name, err)
	}
	found := p.portAccess(name, &port)
	if moves(address) && port.Address != address {
		found = append(found, warned(name, "the number of %s may change: give device = %q", address, port.Address)...)
	}
	found = append(found, p.logins(of+" login", strings.TrimPrefix(port.Device, "/dev/"))...)
	return append(found, p.modemManager(of+" modem", &port)...)
}

// moves tells a name that the next adapter to be plugged in may get.
func moves(address string) bool {
	return strings.HasPrefix(address, "/dev/ttyUSB") || strings.HasPrefix(address, "/dev/ttyACM")
}

// portAccess says who may open the port and who has.
func (p *inspected) portAccess(name string, port *device.Port) []mqtt.Finding {
	if port.Denied != "" {
		return failed(name, fmt.Errorf("%s: %s may not open it: %s", port.Device, port.User, port.Denied))
	}
	found := passed(name, "%s belongs to %s:%s with mode %s, %s may open it", port.Device, port.Owner, port.Group, port.Mode, port.User)
	switch holders := strings.Join(port.HeldBy, " and "); {
	case p.running: // whether it has the port it says itself
	case holders != "":
		return append(found, failed(name, fmt.Errorf("in use by %s; stop it", holders))...)
	case port.Unseen:
		return append(found, warned(name, "whether another user's program has it open only root sees: run this with sudo")...)
	}
	return found
}

// logins finds what else talks on the terminal: a getty, now or at the next
// start, and the kernel's console.
func (p *inspected) logins(name, tty string) []mqtt.Finding {
	unit := "serial-getty@" + tty + ".service"
	off := "; turn it off: sudo systemctl mask --now " + unit
	if who := p.process(func(words []string) bool {
		return strings.HasSuffix(filepath.Base(words[0]), "getty") && slices.Contains(words[1:], tty)
	}); who != "" {
		return failed(name, errors.New(who+" waits for a login on "+tty+off))
	}
	if target, _ := os.Readlink(p.under("etc/systemd/system/" + unit)); target != "/dev/null" {
		for _, dir := range []string{"etc/systemd/system", "run/systemd/generator"} {
			if links, _ := filepath.Glob(p.under(dir + "/*.wants/" + unit)); len(links) > 0 {
				return failed(name, errors.New("a login on "+tty+" starts with the machine"+off))
			}
		}
	}
	for word := range strings.FieldsSeq(firstLine(p.under("proc/cmdline"))) {
		if console, _, _ := strings.Cut(word, ","); console == "console="+tty {
			return failed(name, fmt.Errorf("the kernel writes its messages there; remove %s from its command line (on a Raspberry Pi /boot/firmware/cmdline.txt) and reboot", word))
		}
	}
	return passed(name, "nobody waits for a login on %s", tty)
}

// modemManager tells whether ModemManager would take an adapter for a modem.
func (p *inspected) modemManager(name string, port *device.Port) []mqtt.Finding {
	const service = "ModemManager.service"
	if port.USB == nil {
		return nil
	}
	who := p.process(func(words []string) bool { return filepath.Base(words[0]) == "ModemManager" })
	links, _ := filepath.Glob(p.under("etc/systemd/system/*.wants/" + service))
	switch {
	case who == "" && len(links) == 0:
		return passed(name, "no ModemManager runs here")
	case p.leftAlone(port):
		return passed(name, "ModemManager leaves the port alone")
	}
	return warned(name, "ModemManager may write to the reader; turn it off: sudo systemctl mask --now %s; or let a udev rule give the adapter ENV{ID_MM_DEVICE_IGNORE}=\"1\"", service)
}

// leftAlone: udev has told ModemManager so, or a rule will.
func (p *inspected) leftAlone(port *device.Port) bool {
	id := firstLine(p.under("sys/class/tty/" + filepath.Base(port.Device) + "/dev"))
	known, _ := os.ReadFile(p.under("run/udev/data/c" + id))
	texts := []string{string(known)}
	for _, dir := range []string{"etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d"} {
		rules, _ := filepath.Glob(p.under(dir + "/*.rules"))
		for _, file := range rules {
			text, _ := os.ReadFile(file)
			if strings.Contains(string(text), `"`+port.USB.VID+`"`) {
				texts = append(texts, string(text))
			}
		}
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(text, "ID_MM_DEVICE_IGNORE") || strings.Contains(text, "ID_MM_PORT_IGNORE")
	})
}

// process names a program whose command line fits; "" when none runs that we may see.
func (p *inspected) process(fits func(words []string) bool) string {
	lines, _ := filepath.Glob(p.under("proc/[0-9]*/cmdline"))
	for _, file := range lines {
		text, _ := os.ReadFile(file) // gone, or of the kernel
		words := strings.Split(string(text), "\x00")
		if fits(words) {
			return fmt.Sprintf("%s (process %s)", filepath.Base(words[0]), filepath.Base(filepath.Dir(file)))
		}
	}
	return ""
}

// heard tells whether a source is: the running shoed says so, or its line is opened
// and listened to.
func (p *inspected) heard(ctx context.Context, s *source) []mqtt.Finding {
	name := s.name + " frames"
	d := p.said(s.name)
	switch {
	case p.running && p.says == nil:
		return warned(name, "shoed runs here and has the line, but does not tell this user: ask as its user or root, with sudo")
	case p.running && d == nil:
		return warned(name, "the running shoed does not know this device yet: start it again")
	case p.running && !d.Up:
		return failed(name, errors.New("shoed runs here and has no connection to it; see why: journalctl -u shoed -p warning"))
	case p.running && d.LastFrameAgeMS == nil:
		return warned(name, "shoed is connected, but nothing came since it started: is it on? draw no card, turn its key and check again")
	case p.running:
		return passed(name, "%d until now, the line was last heard %v ago", d.Frames, time.Duration(*d.LastFrameAgeMS)*time.Millisecond)
	case p.listen <= 0:
		return warned(name, "the line was not opened")
	case isChip(s.line.Address):
		return p.levels(ctx, s)
	}
	return p.listenTo(ctx, name, s)
}

// said is what the running shoed says of a source; nil when it says nothing.
func (p *inspected) said(name string) *lineDiagnosis {
	if p.says == nil {
		return nil
	}
	i := slices.IndexFunc(p.says.Readers, func(d lineDiagnosis) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &p.says.Readers[i]
}

// levels reads a source's wires once. Those of a reader rest while no card is drawn.
func (p *inspected) levels(ctx context.Context, s *source) []mqtt.Finding {
	name := s.name + " levels"
	line, err := device.Open(ctx, s.line)
	if err != nil {
		return failed(name, err)
	}
	defer line.Close()
	chunk, err := line.Read(ctx)
	if err != nil {
		return failed(name, err)
	}
	records, err := device.ParseWireRecords(chunk.Bytes)
	if err != nil || len(records) == 0 {
		return failed(name, fmt.Errorf("the chip tells none: %v", err))
	}
	var active []string
	for i, w := range s.line.Wires {
		if records[0].Levels>>i&1 != 0 && w.Edges != device.NoEdges {
			active = append(active, w.Use)
		}
	}
	switch {
	case len(active) == 0:
		return passed(name, "they can be read; none is active")
	case s.reads == scanner.Cards:
		return warned(name, "%s is active although nothing is drawn: a cut wire, or active or bias in the configuration is wrong", strings.Join(active, ", "))
	}
	return passed(name, "they can be read; active now: %s", strings.Join(active, ", "))
}

// listenTo opens a source's line until a frame has come, or for some time. What
// frames say is nobody's business here.
func (p *inspected) listenTo(ctx context.Context, name string, s *source) []mqtt.Finding {
	o := s.line
	if !isTCP(o.Address) {
		port, err := device.Find(p.root, o)
		if err != nil || port.Denied != "" || len(port.HeldBy) > 0 {
			return warned(name, "the line was not opened, for the port is not free")
		}
		o.Address = p.under(port.Device)
	}
	ctx, stop := context.WithTimeout(ctx, p.listen)
	defer stop()
	line, err := device.Open(ctx, o)
	if err != nil {
		return failed(name, err)
	}
	defer line.Close()
	read := 0
	for s.decoder.Stats().Frames == 0 {
		chunk, err := line.Read(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return failed(name, err)
		}
		read += len(chunk.Bytes)
		s.decoder.Feed(chunk.At, chunk.Bytes, nil)
	}
	as := fmt.Sprintf("%d baud, %d data bits, parity %s, %d stop bits", o.BaudRate, o.DataBits, o.Parity, o.StopBits)
	switch {
	case s.decoder.Stats().Frames > 0:
		return passed(name, "%s speaks %s, at %s", s.name, s.protocol, as)
	case read > 0:
		return failed(name, fmt.Errorf("%d bytes in %v, but no frame of %s: wrong protocol, or the line is not %s, or a bad cable", read, p.listen, s.protocol, as))
	}
	return warned(name, "the line opens, at %s, but is silent for %v: is it on and its cable in? turn its key and check again", as, p.listen)
}
