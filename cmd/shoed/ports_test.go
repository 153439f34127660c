package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/device"
)

func TestPorts(t *testing.T) {
	root := t.TempDir()
	if out, _, err := shoedCommand("ports", "--root", root); err != nil || !strings.Contains(out, `device = "tcp://host:port"`) {
		t.Errorf("without any: %q, %v", out, err)
	}
	usb := filepath.Join(root, "sys/devices/usb1/1-1")
	tty := filepath.Join(usb, "1-1:1.0/ttyUSB0/tty/ttyUSB0")
	files := map[string]string{
		usb + "/idVendor": "0403", usb + "/idProduct": "6001", usb + "/serial": "A50285BI", usb + "/manufacturer": "FTDI", usb + "/product": "FT232R\x1b[2J",
		root + "/dev/ttyUSB0": "",
	}
	for _, dir := range []string{tty, root + "/sys/class/tty", root + "/dev"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		tty + "/device":                 "../../../ttyUSB0",
		root + "/sys/class/tty/ttyUSB0": tty,
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := shoedCommand("ports", "--root", root)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"/dev/ttyUSB0\n  FTDI FT232R?[2J, usb 0403:6001, serial number \"A50285BI\", driver none\n",
		" may open it (", " 0600)\n", "in use", "\n  device = \"usb:0403:6001:A50285BI\"\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	out, _, err = shoedCommand("ports", "--root", root, "--json")
	var ports []device.Port
	if err := json.Unmarshal([]byte(out), &ports); err != nil {
		t.Fatal(err)
	}
	if err != nil || len(ports) != 1 || ports[0].Address != "usb:0403:6001:A50285BI" || ports[0].USB == nil || ports[0].Denied != "" {
		t.Errorf("%s\n%v", out, err)
	}
}
