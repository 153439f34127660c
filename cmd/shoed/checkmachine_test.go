package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pi builds the machine of testdata/machine.txt, with more files like those
// there; "-NAME" leaves out what begins with it.
func pi(t testing.TB, more ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/machine.txt")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{} // by name, with the line's " = " or " -> "
	for line := range strings.SplitSeq(strings.ReplaceAll(string(text)+strings.Join(more, "\n"), "\n\t", "\v"), "\n") {
		if gone, ok := strings.CutPrefix(line, "-"); ok {
			for name := range files {
				if strings.HasPrefix(name, gone) {
					delete(files, name)
				}
			}
		} else if at := strings.IndexAny(line, "=>"); at > 0 && line[0] != '#' {
			name, _, _ := strings.Cut(line, " ")
			files[name] = line
		}
	}
	root := t.TempDir()
	for name, line := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if _, target, isLink := strings.Cut(line, " -> "); err == nil && isLink {
			err = os.Symlink(target, path)
		} else if err == nil {
			_, text, _ := strings.Cut(line, " =")
			err = os.WriteFile(path, []byte(strings.NewReplacer(`\0`, "\x00", "\v", "\n").Replace(strings.TrimSpace(text))), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// piConfig writes a configuration of that machine.
func piConfig(t testing.TB, more string) string {
	t.Helper()
	text := `rules = ["insurance=off"]
` + more + `
[control]
socket = "` + filepath.Join(t.TempDir(), "none.sock") + `"
`
	if !strings.Contains(more, "[reader]") && !strings.Contains(more, "[[reader]]") {
		text += `[reader]
device = "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0"
`
	}
	return secretFile(t, text)
}

// examined is what check prints of such a machine, with the clock as this one has it.
func examined(t testing.TB, root, conf string) string {
	t.Helper()
	out, _, _ := shoedCommand("check", "--config", conf, "--root", root, "--listen", "0")
	return out
}

// TestCheckMachine: a good machine passes, and each thing that is wrong with one
// is told, with what to do.
func TestCheckMachine(t *testing.T) {
	out := examined(t, pi(t), piConfig(t, ""))
	for _, want := range []string{
		"pass  reader port: /dev/ttyUSB0 belongs to ",
		"pass  reader login: nobody waits for a login on ttyUSB0",
		"pass  reader modem: no ModemManager runs here",
		"warn  boxes: no sensor watches them (placement=none)",
		"pass  disk: /var/lib/shoed is on /dev/sda1 (ext4), flash or SSD",
		"MB are free in /var/lib/shoed, the journal may take 953 MB more",
		"pass  supply: the voltage is right",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "fail  ") && !strings.Contains(out, "fail  clock") {
		t.Errorf("a good machine:\n%s", out)
	}
	const mounts = "proc/self/mountinfo = 24 1 179:2 / / rw - ext4 /dev/root rw\n\t"
	for want, change := range map[string]string{
		"fail  reader port: reader: /dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0: no such device":                                 "-dev/serial",
		"fail  reader login: agetty (process 77) waits for a login on ttyUSB0; turn it off: sudo systemctl mask --now serial-getty@ttyUSB0.service": `proc/77/cmdline = /sbin/agetty\0-o\0-p -- \\u\0--keep-baud\0115200,57600\0ttyUSB0\0vt220\0`,
		"fail  reader login: a login on ttyUSB0 starts with the machine; ":                                                                          "etc/systemd/system/getty.target.wants/serial-getty@ttyUSB0.service -> /lib/systemd/system/serial-getty@.service",
		"fail  reader login: a login on ttyUSB0 starts with the machine;":                                                                           "run/systemd/generator/getty.target.wants/serial-getty@ttyUSB0.service -> /lib/systemd/system/serial-getty@.service",
		"pass  reader login: nobody": "run/systemd/generator/getty.target.wants/serial-getty@ttyUSB0.service -> /x\netc/systemd/system/serial-getty@ttyUSB0.service -> /dev/null",
		"fail  reader login: the kernel writes its messages there; remove console=ttyUSB0,115200 ":                              "proc/cmdline = console=ttyUSB0,115200 console=tty1 quiet",
		"fail  reader port: in use by the kernel's console":                                                                     "sys/class/tty/console/active = tty0 ttyUSB0",
		"warn  reader modem: ModemManager may write to the reader; turn it off: sudo systemctl mask --now ModemManager.service": `proc/88/cmdline = /usr/sbin/ModemManager\0`,
		"warn  reader modem: ModemManager may":                                                                                  "etc/systemd/system/multi-user.target.wants/ModemManager.service -> /x\nusr/lib/udev/rules.d/77-mm-other.rules = ATTRS{idVendor}==\"1234\", ENV{ID_MM_DEVICE_IGNORE}=\"1\"",
		"pass  reader modem: ModemManager leaves the port alone":                                                                "proc/88/cmdline = /usr/sbin/ModemManager\\0\nrun/udev/data/c188:0 = E:ID_MM_DEVICE_IGNORE=1",
		"pass  reader modem: ModemManager leaves the port":                                                                      "proc/88/cmdline = /usr/sbin/ModemManager\\0\nusr/lib/udev/rules.d/70-shoed.rules = ATTRS{idVendor}==\"0403\", ENV{ID_MM_DEVICE_IGNORE}=\"1\"",
		"fail  disk: /var/lib/shoed is on tmpfs (tmpfs), in memory":                                                             mounts + "40 24 0:9 / /var/lib rw - tmpfs tmpfs rw",
		"fail  disk: /var/lib/shoed is on nas:/v (nfs4), over a network":                                                        mounts + "40 24 0:9 / /var/lib/shoed rw - nfs4 nas:/v rw",
		"fail  disk: /var/lib/shoed is on /dev/sda1 (ext4), mounted read-only":                                                  mounts + "40 24 8:1 / /var/lib rw - ext4 /dev/sda1 ro,errors=remount-ro",
		"warn  disk: /var/lib/shoed is on overlay (overlay)":                                                                    mounts + "40 24 0:9 / /var rw - overlay overlay rw",
		"warn  disk: /var/lib/shoed is on /dev/root (ext4), an SD card":                                                         mounts + "40 24 8:1 / /var/libx rw - ext4 /dev/sda1 rw",
		"pass  disk: /var/lib/shoed is on /dev/sda1 (ext4), a turning disk":                                                     "sys/devices/usb2/block/sda/queue/rotational = 1",
		"pass  disk: /var/lib/shoed is on /dev/sda1 (ext4), flash":                                                              "proc/self/mountinfo = 40 24 8:1 / /var/lib rw - ext4 /dev/sda1 rw\n\t24 1 179:2 / / rw - ext4 /dev/root rw",
		"warn  disk: what /var/lib/shoed is on cannot be seen":                                                                  "-proc/self",
		"pass  disk: /var/lib is on /dev/sda1 (ext4)":                                                                           "-var/lib/shoed\nvar/lib/other = x",
		"fail  supply: the voltage is too low":                                                                                  "sys/class/hwmon/hwmon0/in0_lcrit_alarm = 1",
		"warn  supply: the voltage was too low since the machine started":                                                       "sys/devices/platform/soc/soc:firmware/get_throttled = 50000",
		"warn  supply: the processor is slowed down":                                                                            "sys/devices/platform/soc/soc:firmware/get_throttled = 4",
		"warn  supply: this kernel does not tell":                                                                               "-sys/class/hwmon\n-sys/devices/platform",
		"pass  supply: this machine does not tell its voltage":                                                                  "-sys/class/hwmon\n-sys/devices/platform\n-proc/device-tree",
		"warn  faces: whether the reader masks them shows with its first card":                                                  "-var/lib/shoed/x",
		"warn  faces: whether the reader masks them is not known: ":                                                             "var/lib/shoed/journal.db = no journal",
	} {
		if out := examined(t, pi(t, change), piConfig(t, "")); !strings.Contains(out, want) {
			t.Errorf("%s\nlacks %q:\n%s", change, want, out)
		}
	}
	for want, more := range map[string]string{
		`warn  reader port: the number of /dev/ttyUSB0 may change: give device = "/dev/serial/by-id/usb-FTDI`: "[reader]\ndevice = '/dev/ttyUSB0'",
		"pass  reader port: tcp://moxa:4001 is a device server":                                               "[reader]\ndevice = 'tcp://moxa:4001'",
		"fail  spare port: spare: /dev/ttyUSB7: no such device: plug it in, or configure one that is there: ": "[[reader]]\nname = 'main'\ndevice = 'usb:0403:6001'\n[[reader]]\nname = 'spare'\ndevice = '/dev/ttyUSB7'",
		"but the journal may take 953674 MB more: make room, or lower journal.max_bytes":                      "[journal]\nmax_bytes = 1000000000000",
	} {
		if out := examined(t, pi(t), piConfig(t, more)); !strings.Contains(out, want) {
			t.Errorf("%s\nlacks %q:\n%s", more, want, out)
		}
	}
}

// TestCheckClock: how far the clock is to be trusted, and what sets it.
func TestCheckClock(t *testing.T) {
	for _, c := range []struct{ state, change, want string }{
		{"synced", "", "pass  clock: synced, set by systemd-timesyncd (process 310), and a battery clock is there\n"},
		{"synced", "-proc/310\n-sys/class/rtc", "pass  clock: synced, by what cannot be seen here, and without a battery clock"},
		{"holdover", "", "warn  clock: not known to be right; systemd-timesyncd (process 310) is to set it, and has not"},
		{"holdover", "-proc/310", "warn  clock: not known to be right; nothing seen here sets it: sudo timedatectl set-ntp true"},
		{"holdover", "-proc/310\nproc/9/cmdline = /usr/sbin/chronyd\\0-F\\01\\0", "chronyd (process 9) is to set it"},
		{"unset", "-proc/310", "fail  clock: it stands in the past"},
	} {
		p := inspected{root: pi(t, c.change)}
		var out strings.Builder
		showFindings(p.clock(c.state), false, &out)
		if !strings.HasPrefix(out.String(), c.want) && !strings.Contains(out.String(), c.want) {
			t.Errorf("%s %s: %s\nwant %s", c.state, c.change, &out, c.want)
		}
	}
}

// issue writes NAME.pem and NAME.key into dir, signed by parent or by itself.
func issue(t testing.TB, dir, name string, days int, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-1000 * time.Hour),
		NotAfter: time.Now().Add(time.Duration(days)*24*time.Hour + time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}

// TestCheckCertificates: files that are missing, of two pieces, out of order or
// at their end.
func TestCheckCertificates(t *testing.T) {
	dir := t.TempDir()
	root, rootKey := issue(t, dir, "root", 400, nil, nil)
	issue(t, dir, "other", 300, nil, nil)
	issue(t, dir, "table", 90, root, rootKey)
	issue(t, dir, "soon", 12, root, rootKey)
	issue(t, dir, "over", -2, root, rootKey)
	join := func(name string, files ...string) {
		var all []byte
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(dir, f))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(filepath.Join(dir, name), all, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	join("chain.pem", "table.pem", "root.pem")
	join("mixed.pem", "table.pem", "other.pem")
	for want, files := range map[string][2]string{ // trusted, and shown with the key of its first word
		"pass  mqtt.cert_file: CN=table holds for 90 days":                               {"root.pem", "table.pem"},
		"pass  mqtt.cert_file: CN=root holds for 400 days":                               {"root.pem", "chain.pem"},
		"fail  mqtt.cert_file: " + dir + "/mixed.pem: each certificate must be followed": {"root.pem", "mixed.pem"},
		"warn  mqtt.cert_file: CN=soon ends in 12 days: renew it":                        {"root.pem", "soon.pem"},
		"fail  mqtt.cert_file: CN=over has ended at":                                     {"root.pem", "over.pem"},
		"fail  mqtt.cert_file: certificate " + dir + "/root.pem with key":                {"root.pem", "root.pem"},
		"fail  mqtt.ca_file: " + dir + "/table.key: it holds no certificate in PEM":      {"table.key", "table.pem"},
		"fail  mqtt.ca_file: open " + dir + "/none.pem: no such file":                    {"none.pem", "table.pem"},
		"pass  mqtt.ca_file: CN=other holds for 300 days":                                {"other.pem", "table.pem"},
	} {
		key := "table.key"
		if name := strings.TrimSuffix(files[1], ".pem"); name == "soon" || name == "over" {
			key = name + ".key"
		}
		more := fmt.Sprintf("[mqtt]\nservers = ['mqtts://127.0.0.1:1']\nca_file = '%s/%s'\ncert_file = '%s/%s'\nkey_file = '%s/%s'", dir, files[0], dir, files[1], dir, key)
		if out, _, _ := shoedCommand("check", "--config", piConfig(t, more), "--listen", "0"); !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

// TestCheckReader: the line is listened to while shoed does not run; while it
// does, the line is left alone and shoed asked.
func TestCheckReader(t *testing.T) {
	tb := newTable(t, "", "round_start=first_card")
	tb.plug()
	look := func(listen string) string {
		out, _, _ := shoedCommand("check", "--config", tb.config, "--listen", listen)
		return out
	}
	has := func(out, want string) {
		t.Helper()
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	out := look("50ms")
	has(out, "warn  reader frames: the line opens, at 4800 baud, 8 data bits, parity none, 1 stop bits, but is silent for 50ms")
	has(out, "warn  round start: round_start=first_card: an extra card passes")
	has(out, "warn  boxes: no sensor watches them (placement=none)")

	stop, sending := make(chan struct{}), make(chan struct{})
	send := func(b func(seq byte) byte) {
		stop, sending = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(sending)
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			for seq := byte('1'); ; seq = b(seq) {
				select {
				case <-again.C:
				case <-stop:
					return
				}
			}
		}()
	}
	send(tb.standby)
	has(look("30s"), "pass  reader frames: reader speaks angel, at 4800 baud")
	close(stop)
	<-sending
	tb.plug() // what was not read is gone
	send(func(seq byte) byte { tb.send([]byte("noise")); return seq })
	has(look("300ms"), "but no frame of angel: wrong protocol")
	close(stop)
	<-sending

	tb.plug()
	tb.running()
	eventually(t, "the table to have its reader", func() bool {
		return strings.Contains(look("30s"), "warn  reader frames: shoed is connected, but nothing came since it started")
	})
	startShoe(t, tb)
	eventually(t, "the table to have heard", func() bool {
		return strings.Contains(look("30s"), "pass  reader frames: 3 until now, the line was last heard ")
	})
	if out := look("30s"); strings.Contains(out, "fail  reader") {
		t.Errorf("a table at work:\n%s", out)
	}
	has(look("30s"), "pass  faces: the reader tells each card's as it is drawn")
	tb.unplug()
	eventually(t, "the table to have lost its reader", func() bool {
		return strings.Contains(look("30s"), "fail  reader frames: shoed runs here and has no connection to it")
	})
}
