package device

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// machine builds the machine of testdata/ports.txt, whose head says how to read
// it, without the lines that contain one of the texts in without.
func machine(t *testing.T, without ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/ports.txt")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "machine") // t.TempDir is closed to other users
	if err == nil {
		err = os.Chmod(root, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	in := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if dir, ok := strings.CutPrefix(line, "in "); ok {
			in = dir
			continue
		}
		unwanted := line == "" || line[0] == '#'
		for _, w := range without {
			unwanted = unwanted || strings.Contains(in+line, w)
		}
		if !unwanted {
			build(t, root, in, line)
		}
	}
	return root
}

func build(t *testing.T, root, in, line string) {
	t.Helper()
	name, target, isLink := strings.Cut(line, " -> ")
	text := ""
	if !isLink {
		name, text, _ = strings.Cut(line, " =")
		text = strings.TrimSpace(text) + "\n"
	}
	if rest, ok := strings.CutPrefix(name, "./"); ok {
		name = filepath.Join(in, rest)
	}
	name = filepath.Join(root, name)
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil && isLink {
		err = os.Symlink(target, name)
	} else if err == nil {
		err = os.WriteFile(name, []byte(text), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPortsSaysWhatEachIsAndWhatToConfigure(t *testing.T) {
	ports := Ports(machine(t))
	var got []string
	for _, p := range ports {
		line := p.Device + " | " + p.Driver + " | "
		if u := p.USB; u != nil {
			line += strings.Join([]string{u.VID, u.PID, u.Serial, u.Manufacturer, u.Product}, ",")
		}
		got = append(got, line+" | "+p.Address)
	}
	want := []string{
		"/dev/ttyACM0 | cdc_acm | 2341,0043,7563,Arduino (www.arduino.cc), | usb:2341:0043:7563",
		"/dev/ttyUSB0 | ftdi_sio | 0403,6001,A50285BI,FTDI,FT232R USB UART | /dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0",
		"/dev/ttyUSB1 | cp210x | 10c4,ea60,0001,Silicon Labs,CP2102 USB to UART Bridge Controller | /dev/serial/by-id/usb-Silicon_Labs_CP2102_USB_to_UART_Bridge_Controller_0001-if00-port0",
		"/dev/ttyUSB2 | pl2303 | 067b,2303,,Prolific Technology Inc.,USB-Serial Controller | usb:067b:2303",
		"/dev/ttyUSB3 | ch341-uart | 1a86,7523,,,USB Serial | /dev/serial/by-path/platform-3f980000.usb-usb-0:1.4.1:1.0-port0",
		"/dev/ttyUSB4 | ch341-uart | 1a86,7523,,,USB Serial | /dev/serial/by-path/platform-3f980000.usb-usb-0:1.4.2:1.0-port0",
		"/dev/ttyUSB5 | ftdi_sio | 0403,6010,FT5X2Y,FTDI,Dual RS232 | /dev/serial/by-id/usb-FTDI_Dual_RS232_FT5X2Y-if00-port0",
		"/dev/ttyUSB6 | ftdi_sio | 0403,6010,FT5X2Y,FTDI,Dual RS232 | /dev/serial/by-id/usb-FTDI_Dual_RS232_FT5X2Y-if01-port0",
		"/dev/ttyUSB7 | cp210x | 10c4,ea61,0001,Silicon Labs,CP2102 | /dev/serial/by-path/platform-3f980000.usb-usb-0:1.6.1:1.0-port0",
		"/dev/ttyUSB8 | cp210x | 10c4,ea61,0001,Silicon Labs,CP2102 | /dev/serial/by-path/platform-3f980000.usb-usb-0:1.6.2:1.0-port0",
		"/dev/ttyAMA0 | uart-pl011 |  | /dev/serial0",
		"/dev/ttyS0 | serial |  | /dev/ttyS0",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	for _, p := range ports {
		console := len(p.HeldBy) == 1 && strings.HasPrefix(p.HeldBy[0], "the kernel's console")
		if console != (p.Device == "/dev/ttyAMA0") || !console && len(p.HeldBy) > 0 {
			t.Errorf("%s is held by %q", p.Device, p.HeldBy)
		}
	}
	if ports := Ports(t.TempDir()); len(ports) != 0 {
		t.Errorf("on a machine with none: %v", ports)
	}
}

// Every address that Ports gives opens the port it was given for, and no other.
func TestAddressesLeadBackToTheirPorts(t *testing.T) {
	for _, udev := range []bool{true, false} {
		var without []string
		if !udev {
			without = []string{"dev/serial"}
		}
		root := machine(t, without...)
		for _, p := range Ports(root) {
			path, err := (Options{Name: "reader", Address: p.Address, root: root}).path()
			if err != nil {
				t.Error(err)
				continue
			}
			if path == p.Address { // a link, absolute on the machine
				path = filepath.Join(root, path)
			}
			device, err := filepath.EvalSymlinks(path)
			if err != nil || device != filepath.Join(root, p.Device) {
				t.Errorf("udev %v: %s of %s leads to %s, %v", udev, p.Address, p.Device, device, err)
			}
		}
	}
}

func TestUSBAddresses(t *testing.T) {
	far, near := terminal(t)
	root := machine(t, "dev/ttyUSB1 =", "dev/ttyUSB2 =", "1-1.7")
	link(t, near, filepath.Join(root, "dev/ttyUSB2"))
	for address, want := range map[string]struct {
		kind error
		text string
	}{
		"usb:067B:2303":     {nil, ""},
		"usb:067b:2303:":    {nil, "is no absolute path"},
		"usb:1a86:7523":     {ErrAmbiguous, "2 ports have it; configure one of them: /dev/serial/by-path/platform-3f980000.usb-usb-0:1.4.1:1.0-port0 (/dev/ttyUSB3), /dev/serial/by-path/platform-3f980000.usb-usb-0:1.4.2:1.0-port0 (/dev/ttyUSB4)"},
		"usb:10C4:EA61":     {ErrAmbiguous, "(/dev/ttyUSB7), "},
		"usb:0403:6010":     {ErrAmbiguous, "-if00-port0 (/dev/ttyUSB5), /dev/serial/by-id/usb-FTDI_Dual_RS232_FT5X2Y-if01-port0 (/dev/ttyUSB6)"},
		"usb:0403:6001:X":   {ErrAbsent, "plug it in, or configure one that is there: /dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0 (/dev/ttyUSB0), "},
		"usb:2341:0043":     {ErrAbsent, "usb:067b:2303 (/dev/ttyUSB2), "},
		"usb:10c4:ea60":     {ErrAbsent, "plug it in"}, // udev has not made it yet
		"usb:0403:6001":     {ErrNotSerial, "(" + root + "/dev/ttyUSB0)"},
		"usb:403:6001":      {nil, "is no absolute path"},
		"usb:0403:6001:A:B": {ErrAbsent, "reader: usb:0403:6001:A:B: "},
	} {
		l, err := Open(wait(t), Options{Name: "reader", Address: address, root: root})
		if want.text == "" {
			if err != nil {
				t.Error(err)
				continue
			}
			write(t, far, "Ah")
			if c, err := l.Read(wait(t)); err != nil || string(c.Bytes) != "Ah" {
				t.Errorf("%s: read %q, %v", address, c.Bytes, err)
			}
			l.Close()
			continue
		}
		if err == nil {
			t.Errorf("%s was opened", address)
			l.Close()
		} else if want.kind != nil && !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v\nwant %v: %s", address, err, want.kind, want.text)
		}
	}
}

// The address is looked for anew at each opening: an adapter that comes back
// under another number, after another has taken its own, is found.
func TestUSBReplugUnderAnotherNumber(t *testing.T) {
	root := machine(t, "ttyUSB", "ttyACM")
	place := func(number, serial, near string) (remove func()) {
		dir := "sys/devices/platform/usb1/1-" + number + "/"
		tty := "ttyUSB" + number
		for _, line := range []string{
			dir + "idVendor = 0403", dir + "idProduct = 6001", dir + "serial = " + serial,
			dir + "1-" + number + ":1.0/" + tty + "/tty/" + tty + "/device -> ../../../" + tty,
			"sys/class/tty/" + tty + " -> ../../devices/platform/usb1/1-" + number + "/1-" + number + ":1.0/" + tty + "/tty/" + tty,
			"dev/" + tty + " -> " + near,
		} {
			build(t, root, "", line)
		}
		return func() {
			os.Remove(filepath.Join(root, "sys/class/tty", tty))
			os.Remove(filepath.Join(root, "dev", tty))
			os.RemoveAll(filepath.Join(root, dir))
		}
	}
	far, near := terminal(t)
	remove := place("0", "A1", near)
	q := followOptions(t, Options{Name: "reader", Address: "usb:0403:6001:A1", root: root}, nil)
	expect(t, q, Up)
	remove()
	far.Close()
	expect(t, q, Down)
	_, other := terminal(t)
	place("0", "B2", other)
	far, near = terminal(t)
	place("1", "A1", near)
	for up := false; !up; { // absent may be told again, with what else is there by then
		s, err := q.Next(wait(t))
		if err != nil || s.Kind != Up && !errors.Is(s.Cause, ErrAbsent) {
			t.Fatalf("got %v (%v), %v", s.Kind, s.Cause, err)
		}
		up = s.Kind == Up
	}
	write(t, far, "8s")
	if s := expect(t, q, Received); string(s.Bytes) != "8s" {
		t.Errorf("read %q", s.Bytes)
	}
}

func TestPortsSaysWhoMayAndWhoHas(t *testing.T) {
	root := machine(t, "dev/ttyUSB1 =")
	usb0 := filepath.Join(root, "dev/ttyUSB0")
	if err := os.Chmod(usb0, 0o600); err != nil {
		t.Fatal(err)
	}
	_, cmd, _ := other(t, "hold", usb0, nil)
	byName := func(ports []Port, name string) Port {
		for _, p := range ports {
			if p.Device == name {
				return p
			}
		}
		t.Fatalf("no %s", name)
		return Port{}
	}
	ports := Ports(root)
	p := byName(ports, "/dev/ttyUSB0")
	if len(p.HeldBy) != 1 || !strings.HasSuffix(p.HeldBy[0], "(process "+strconv.Itoa(cmd.Process.Pid)+")") {
		t.Errorf("held by %q, want process %d", p.HeldBy, cmd.Process.Pid)
	}
	if p.Denied != "" || p.Mode != "0600" || p.Owner != p.User || p.Unseen != (os.Geteuid() != 0) {
		t.Errorf("%+v", p)
	}
	if p := byName(ports, "/dev/ttyUSB1"); !strings.Contains(p.Denied, "/dev/ttyUSB1: no such file") {
		t.Errorf("without its device: %q", p.Denied)
	}
	if os.Geteuid() != 0 {
		return
	}
	line, _, _ := other(t, "ports", root, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	})
	ports = nil
	if err := json.Unmarshal([]byte(line), &ports); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	p = byName(ports, "/dev/ttyUSB0")
	if len(p.HeldBy) != 0 || !p.Unseen || p.User != userName(65534) || !strings.Contains(p.Denied, "belongs to root:root with mode 0600") {
		t.Errorf("as nobody: %+v", p)
	}
}

// What is configured is found again, through links, by number, by its adapter.
func TestFindExaminesTheConfiguredPort(t *testing.T) {
	root := machine(t, "dev/ttyUSB1 =")
	for address, want := range map[string]string{
		"/dev/ttyUSB0": "/dev/ttyUSB0",
		"/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0": "/dev/ttyUSB0",
		"usb:2341:0043": "/dev/ttyACM0",
		"/dev/serial0":  "/dev/ttyAMA0",
	} {
		p, err := Find(root, Options{Name: "reader", Address: address})
		if err != nil || p.Device != want || p.Mode == "" || p.Driver == "" {
			t.Errorf("%s: %+v, %v", address, p, err)
		}
		if console := len(p.HeldBy) == 1; console != (want == "/dev/ttyAMA0") {
			t.Errorf("%s is held by %q", address, p.HeldBy)
		}
	}
	for address, want := range map[string]error{"usb:1a86:7523": ErrAmbiguous, "usb:ffff:0000": ErrAbsent, "/dev/ttyUSB1": ErrAbsent, "/dev/none": ErrAbsent} {
		if p, err := Find(root, Options{Name: "reader", Address: address}); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v, want %v", address, p, err, want)
		}
	}
	_, near := terminal(t)
	if p, err := Find("/", Options{Name: "reader", Address: near}); err != nil || p.Device != near || p.Address != near {
		t.Errorf("a pseudo-terminal: %+v, %v", p, err)
	}
}
