package device

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Port is a serial port of this machine.
type Port struct {
	Device string `json:"device"` // such as /dev/ttyUSB0; the number may change
	// Address stays with this port as well as can be: what to configure.
	Address string   `json:"address"`
	Links   []string `json:"links"`         // of udev: /dev/serial/by-id/..., by-path/..., /dev/serial0
	USB     *USB     `json:"usb,omitempty"` // nil when it is no USB adapter
	Driver  string   `json:"driver,omitempty"`

	Access
	HeldBy []string `json:"held_by"` // programs that have it open
	// Unseen: HeldBy lacks the programs of other users, unless they lock the port.
	Unseen bool `json:"unseen"`
}

// Access says who may open a device.
type Access struct {
	Owner  string `json:"owner,omitempty"`
	Group  string `json:"group,omitempty"`
	Mode   string `json:"mode,omitempty"` // octal
	User   string `json:"user"`           // who asks
	Denied string `json:"denied"`         // why User may not open it, and what to do; "" if he may
}

// USB is what an adapter says of itself.
type USB struct {
	VID          string `json:"vid"` // four hex digits, lower case
	PID          string `json:"pid"`
	Serial       string `json:"serial,omitempty"` // many cheap adapters have none
	Manufacturer string `json:"manufacturer,omitempty"`
	Product      string `json:"product,omitempty"`

	unit string // which port of the adapter: its interface's and port's number
}

// Ports lists the serial ports below root ("/" but in tests), adapters first.
// Nothing is opened: the port library's own listing opens and resets even ports
// that are in use.
func Ports(root string) []Port {
	found := scan(root)
	for i := range found {
		found[i].examine(root, filepath.Join(root, found[i].Device))
	}
	return found
}

// Find is the port that Open would open, examined as by Ports below root: nothing
// is opened. A device server is none. Its error is that of Open.
func Find(root string, o Options) (Port, error) {
	o.root = root
	o, err := o.checked()
	if err != nil {
		return Port{}, err
	}
	path := filepath.Join(root, o.Address)
	if wanted, ok := usbAddress(o.Address); ok {
		if path, err = o.findUSB(wanted); err != nil {
			return Port{}, err
		}
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return Port{}, refuse(o, claimed{}, err)
	}
	p := Port{Device: path, Address: o.Address, Links: []string{}} // a pseudo-terminal, or in a container without sysfs
	if under, err := filepath.EvalSymlinks(root); err == nil {
		if name, err := filepath.Rel(under, path); err == nil && filepath.IsLocal(name) {
			p.Device = "/" + name
		}
	}
	for _, known := range scan(root) {
		if known.Device == p.Device {
			p = known
		}
	}
	p.examine(root, path)
	return p, nil
}

// access looks at the device at path, without opening it.
func access(device, path string) (a Access, st unix.Stat_t) {
	a.User = userName(uint32(os.Geteuid()))
	if err := unix.Stat(path, &st); err != nil {
		a.Denied = fmt.Sprintf("%s: %v; udev has not made it, or this is a container that was not given it", device, err)
		return a, st
	}
	a.Owner, a.Group, a.Mode = userName(st.Uid), groupName(st.Gid), fmt.Sprintf("%04o", st.Mode&0o7777)
	if unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS) != nil {
		a.Denied = forbidden(st)
	}
	return a, st
}

// examine says who may open the port at path, and who has.
func (p *Port) examine(root, path string) {
	var st unix.Stat_t
	p.HeldBy = []string{}
	if p.Access, st = access(p.Device, path); p.Mode == "" { // it is not there
		return
	}
	p.HeldBy = append(p.HeldBy, holders(path)...)
	if who := lockHolder(st); who != "" && !slices.Contains(p.HeldBy, who) {
		p.HeldBy = append(p.HeldBy, who)
	}
	console := strings.Fields(attribute(filepath.Join(root, "sys/class/tty/console"), "active"))
	if slices.Contains(console, filepath.Base(p.Device)) {
		p.HeldBy = append(p.HeldBy, "the kernel's console (see console= in /proc/cmdline)")
	}
	_, err := os.ReadDir("/proc/1/fd") // another user's, unless we see all
	p.Unseen = err != nil
}

// scan reads from sysfs which ports there are, and their links.
func scan(root string) []Port {
	class := filepath.Join(root, "sys/class/tty")
	entries, _ := os.ReadDir(class) // without sysfs there is nothing to say
	links := deviceLinks(root)
	found := []Port{}
	for _, e := range entries {
		dir := filepath.Join(class, e.Name())
		hardware, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
		if err != nil || attribute(dir, "type") == "0" { // a console or pseudo-terminal; a UART that the kernel did not find
			continue
		}
		found = append(found, Port{Device: "/dev/" + e.Name(), Links: append([]string{}, links[e.Name()]...), USB: usbAbove(hardware), Driver: driverAbove(hardware)})
	}
	for i := range found {
		found[i].Address = found[i].bestAddress(found)
	}
	slices.SortStableFunc(found, func(a, b Port) int { return cmp.Compare(rank(a), rank(b)) })
	return found
}

func rank(p Port) int {
	if p.USB != nil {
		return 0
	}
	return 1
}

// deviceLinks lists the links to each device, in the order of preference.
func deviceLinks(root string) map[string][]string {
	links := map[string][]string{}
	for _, dir := range []string{"/dev/serial/by-id", "/dev/serial/by-path", "/dev"} {
		entries, _ := os.ReadDir(filepath.Join(root, dir)) // absent without udev, or without adapters
		for _, e := range entries {
			if dir == "/dev" && !strings.HasPrefix(e.Name(), "serial") { // serial0 of a Raspberry Pi
				continue
			}
			if target, err := os.Readlink(filepath.Join(root, dir, e.Name())); err == nil {
				device := filepath.Base(target)
				links[device] = append(links[device], filepath.Join(dir, e.Name()))
			}
		}
	}
	return links
}

// usbAbove reads the USB device to which the hardware at that place in sysfs
// belongs; nil if there is none.
func usbAbove(hardware string) *USB {
	unit := ""
	for dir := hardware; len(dir) > 1; dir = filepath.Dir(dir) {
		if number := attribute(dir, "port_number") + attribute(dir, "bInterfaceNumber"); number != "" {
			unit += "/" + number
		}
		if vid := attribute(dir, "idVendor"); vid != "" {
			return &USB{VID: vid, PID: attribute(dir, "idProduct"), Serial: attribute(dir, "serial"),
				Manufacturer: attribute(dir, "manufacturer"), Product: attribute(dir, "product"), unit: unit}
		}
	}
	return nil
}

// driverAbove is the driver of the hardware. Since Linux 6.5 there are two
// inner devices between a UART and its tty, with drivers of no meaning here.
func driverAbove(hardware string) string {
	for dir := hardware; len(dir) > 1; dir = filepath.Dir(dir) {
		target, err := os.Readlink(filepath.Join(dir, "driver"))
		if name := filepath.Base(target); err == nil && name != "port" && name != "ctrl" {
			return name
		}
	}
	return ""
}

// attribute reads one of sysfs; "" when it is not there.
func attribute(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(text))
}

// bestAddress is the one that is least likely to mean another port tomorrow: the
// adapter itself, and where equal adapters cannot be told apart, the socket.
//
// A by-id link needs a serial number: without one, or with the same one twice, it
// leads to whichever adapter was found last. usb: is then refused instead.
func (p *Port) bestAddress(all []Port) string {
	link := func(dir string) string {
		for _, l := range p.Links {
			if filepath.Dir(l) == dir {
				return l
			}
		}
		return ""
	}
	alone := func(wanted USB) bool { return len(matching(all, wanted)) == 1 }
	byPort := cmp.Or(link("/dev/serial/by-path"), link("/dev"), p.Device)
	if p.USB == nil {
		return byPort
	}
	model := USB{VID: p.USB.VID, PID: p.USB.PID}
	one := USB{VID: p.USB.VID, PID: p.USB.PID, Serial: p.USB.Serial}
	unit := one
	unit.unit = p.USB.unit
	byID := link("/dev/serial/by-id")
	switch {
	case one.Serial != "" && byID != "" && alone(unit):
		return byID
	case one.Serial != "" && one.isPlain() && alone(one):
		return one.address()
	case alone(model):
		return model.address()
	}
	return byPort
}

// matching lists the ports of which all that wanted says is true.
func matching(ports []Port, wanted USB) []Port {
	var found []Port
	for _, p := range ports {
		if u := p.USB; u != nil && u.VID == wanted.VID && u.PID == wanted.PID &&
			(wanted.Serial == "" || u.Serial == wanted.Serial) && (wanted.unit == "" || u.unit == wanted.unit) {
			found = append(found, p)
		}
	}
	return found
}

func (u USB) address() string {
	if u.Serial == "" {
		return "usb:" + u.VID + ":" + u.PID
	}
	return "usb:" + u.VID + ":" + u.PID + ":" + u.Serial
}

// isPlain tells whether the serial number can be written into a configuration.
func (u USB) isPlain() bool {
	return !strings.ContainsFunc(u.Serial, func(r rune) bool { return r < ' ' || r > '~' })
}

// addresses lists ports as an error shows them.
func addresses(ports []Port) string {
	texts := make([]string, len(ports))
	for i, p := range ports {
		if texts[i] = p.Address; p.Address != p.Device {
			texts[i] += " (" + p.Device + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// findUSB is the path of the one port that is wanted.
func (o Options) findUSB(wanted USB) (string, error) {
	found := matching(scan(o.root), wanted)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s: %s: %w: %s", o.Name, o.Address, ErrAbsent, absentHint(o.root))
	case 1:
		return filepath.Join(o.root, found[0].Device), nil
	}
	return "", fmt.Errorf("%s: %s: %w: %d ports have it; configure one of them: %s", o.Name, o.Address, ErrAmbiguous, len(found), addresses(found))
}
