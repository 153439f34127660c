package device

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Chip is a GPIO chip of this machine.
type Chip struct {
	Device string `json:"device"` // such as /dev/gpiochip0; the number may change at each boot
	Name   string `json:"name,omitempty"`
	Label  string `json:"label,omitempty"` // what the chip is called, at each boot
	// Address is what to configure: by label, or by name where other chips have
	// the same label.
	Address string     `json:"address,omitempty"`
	Lines   []ChipLine `json:"lines"` // at their offsets
	Access
}

// ChipLine is one line of a Chip.
type ChipLine struct {
	Line     string   `json:"line"` // what to configure: its name, or its offset where that is no name of one line
	Offset   int      `json:"offset"`
	Name     string   `json:"name,omitempty"`
	Used     bool     `json:"used"`               // somebody has it, or the kernel keeps it
	Consumer string   `json:"consumer,omitempty"` // who has it, as he calls himself
	Output   bool     `json:"output"`             // it is driven, not read
	Flags    []string `json:"flags"`              // such as active-low, pull-up, debounce 5ms
}

// Chips lists the GPIO chips below root ("/" but in tests). Chips are opened to
// be asked, which does nothing to a line; one that this user may not open has no
// name and no lines.
func Chips(root string) []Chip { return chips(linux{}, root) }

func chips(k kernel, root string) []Chip {
	open, denied := openChips(k, root)
	found := []Chip{}
	for _, c := range open {
		known := Chip{Device: deviceName(c.path), Name: c.name(), Label: c.label(), Address: "gpio:" + bestChipAddress(c, open)}
		known.Access, _ = access(known.Device, c.path)
		known.Lines = c.describe()
		found = append(found, known)
	}
	for _, c := range open {
		c.close()
	}
	for _, d := range denied {
		closed := Chip{Device: deviceName(d.Path), Lines: []ChipLine{}}
		var st unix.Stat_t
		if closed.Access, st = access(closed.Device, d.Path); closed.Denied == "" {
			closed.Denied = forbidden(st) // by the kernel, whatever the file says
		}
		found = append(found, closed)
	}
	return found
}

// FindWires looks for the lines of the options' wires without requesting them, and
// gives the path of their chip. Its error is that of Open.
func FindWires(root string, o Options) (path string, err error) {
	o.root = root
	if o, err = o.checked(); err != nil {
		return "", err
	}
	c, err := o.chip()
	if err != nil {
		return "", err
	}
	defer c.close()
	return deviceName(c.path), o.find(c, o.settings())
}

func deviceName(path string) string { return "/dev/" + filepath.Base(path) }

// describe lists the lines, none if the chip has just gone.
func (c *chip) describe() []ChipLine {
	lines, _ := c.lines()
	described := make([]ChipLine, len(lines))
	for i, l := range lines {
		described[i] = ChipLine{
			Line: lineAddress(lines, i), Offset: i, Name: fromKernel(l.Name),
			Used: l.Flags&flagUsed != 0, Consumer: fromKernel(l.Consumer), Output: l.Flags&flagOutput != 0, Flags: flagTexts(l),
		}
	}
	return described
}

// lineAddress is the line's name, if no other has it, and else its offset.
func lineAddress(lines []unix.GPIOV2LineInfo, offset int) string {
	name := fromKernel(lines[offset].Name)
	for i, other := range lines {
		if name == "" || i != offset && other.Name == lines[offset].Name {
			return strconv.Itoa(offset)
		}
	}
	return name
}

func flagTexts(l unix.GPIOV2LineInfo) []string {
	texts := []string{}
	for _, f := range []struct {
		bits uint64
		text string
	}{
		{flagActiveLow, "active-low"}, {flagPullUp, "pull-up"}, {flagPullDown, "pull-down"}, {flagNoBias, "no pull"},
		{flagOpenDrain, "open-drain"}, {flagOpenSource, "open-source"}, {flagRising, "rising edges"}, {flagFalling, "falling edges"},
	} {
		if l.Flags&f.bits != 0 {
			texts = append(texts, f.text)
		}
	}
	for _, a := range l.Attrs[:min(int(l.Num_attrs), len(l.Attrs))] {
		if a.Id == unix.GPIO_V2_LINE_ATTR_ID_DEBOUNCE {
			texts = append(texts, fmt.Sprintf("debounce %v", time.Duration(*period(&a))*time.Microsecond))
		}
	}
	return texts
}
