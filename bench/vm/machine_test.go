//go:build vm

package vm

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	built = "../../dist/.vm-arm64" // by build
	disk  = built + "/disk.img"    // the table's, kept until the next run

	bootPatience = 4 * time.Minute // 14 s on an idle machine with two cores
	patience     = 2 * time.Minute // what takes a second at a table takes ten here
)

// machine is a running QEMU with the table in it. Each boot is a new one.
type machine struct {
	t       testing.TB
	dir     string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when QEMU is gone
	console *console
	qmp     *qmp
	mover   net.Conn
	said    *bufio.Reader // the mover's answers
	line    net.Conn      // the other end of the reader's cable
	conns   []net.Conn    // all that were dialled
}

// boot starts the machine and waits for its mover. In the boxes with these numbers
// lies a card.
func boot(t testing.TB, dir, brokerPort, filled string) *machine {
	t.Helper()
	m := start(t, dir, brokerPort, filled)
	m.said = bufio.NewReader(m.mover)
	m.mover.SetReadDeadline(time.Now().Add(bootPatience))
	if s, err := m.said.ReadString('\n'); s != "ready\n" {
		m.fatalf("the mover in the guest, within %v: %q, %v", bootPatience, s, err)
	}
	return m
}

// start is boot without waiting for anything in the guest.
func start(t testing.TB, dir, brokerPort, filled string) *machine {
	t.Helper()
	m := &machine{t: t, dir: dir, console: newConsole(t), exited: make(chan struct{})}
	for _, id := range []string{"line", "mover", "qmp"} {
		os.Remove(m.path(id))
	}
	m.cmd = exec.Command("qemu-system-aarch64", m.parts(brokerPort, filled)...)
	m.cmd.Stdout, m.cmd.Stderr = m.console, m.console
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that is killed leaves nothing behind
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		m.cmd.Wait()
		close(m.exited)
	}()
	t.Cleanup(m.cut)
	m.line, m.mover = m.dial("line"), m.dial("mover")
	m.qmp = newQMP(m)
	return m
}

// parts are what the machine is made of. It reaches nothing but the broker at
// the port, as 10.0.2.100:1883.
func (m *machine) parts(brokerPort, filled string) []string {
	socket := func(id string) string {
		return fmt.Sprintf("socket,id=%s,path=%s,server=on,wait=off", id, m.path(id))
	}
	return []string{"-accel", "tcg", "-machine", "virt", "-cpu", "cortex-a72", "-m", "512", "-smp", "2",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(built, "vmlinuz"), "-initrd", filepath.Join(built, "initrd.gz"),
		"-append", "console=ttyAMA0 quiet panic=-1 net.ifnames=0 systemd.show_status=0 systemd.journald.forward_to_console=1 filled=" + filled,
		"-serial", "stdio",
		"-device", "qemu-xhci,id=xhci", "-chardev", socket("line"), "-device", adapter,
		"-device", "virtio-serial-pci", "-chardev", socket("mover"), "-device", "virtserialport,chardev=mover,name=mover",
		"-netdev", "user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:1883-cmd:busybox nc 127.0.0.1 " + brokerPort,
		"-device", "virtio-net-pci,netdev=net,romfile=",
		"-drive", "file=" + disk + ",if=none,id=disk,format=raw,cache=writeback", "-device", "virtio-blk-pci,drive=disk",
		"-qmp", "unix:" + m.path("qmp") + ",server=on,wait=off"}
}

func (m *machine) path(id string) string { return filepath.Join(m.dir, id+".sock") }

// dial connects to one of QEMU's sockets, which are there soon after its start.
func (m *machine) dial(id string) net.Conn {
	m.t.Helper()
	var c net.Conn
	m.eventually("QEMU's socket "+id, patience, func() (err error) {
		c, err = net.Dial("unix", m.path(id))
		return err
	})
	m.conns = append(m.conns, c)
	return c
}

// cut is a power cut: what the guest had not synced is gone.
func (m *machine) cut() {
	m.cmd.Process.Kill()
	<-m.exited
	for _, c := range m.conns {
		c.Close()
	}
}

// do runs a command in the guest and returns what it printed.
func (m *machine) do(command string) (string, error) {
	m.mover.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintln(m.mover, command); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	var code, n int
	if _, err := fmt.Fscanf(m.said, "%d %d\n", &code, &n); err != nil {
		return "", fmt.Errorf("%s: no answer within %v: %w", command, patience, err)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(m.said, text); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	if code != 0 {
		return string(text), fmt.Errorf("%s: exit code %d: %s", command, code, tail(string(text), 20))
	}
	return string(text), nil
}

// must is do of what has to succeed.
func (m *machine) must(command string) string {
	m.t.Helper()
	out, err := m.do(command)
	if err != nil {
		m.fatalf("in the guest: %v", err)
	}
	return out
}

// put writes a text into a file of the guest, and on its disk.
func (m *machine) put(path, text string) {
	m.t.Helper()
	m.must(fmt.Sprintf("base64 -d <<<%s >%s && sync %s", base64.StdEncoding.EncodeToString([]byte(text)), path, path))
}

// eventually waits until f gives no error, while QEMU runs.
func (m *machine) eventually(what string, within time.Duration, f func() error) {
	m.t.Helper()
	if err := wait(m.exited, within, f); err != nil {
		m.fatalf("waited for %s: %v", what, err)
	}
}

// waitFor is the same for what happens on the host.
func (m *machine) waitFor(what string, f func() error) {
	m.t.Helper()
	if err := wait(nil, patience, f); err != nil {
		m.fatalf("waited for %s: %v", what, err)
	}
}

func wait(exited <-chan struct{}, within time.Duration, f func() error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(within)
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-exited:
			return fmt.Errorf("QEMU ended: %w", err)
		case <-late:
			return fmt.Errorf("not within %v: %w", within, err)
		}
	}
}

// fatalf ends the test with the guest's last words.
func (m *machine) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nthe guest's console, all of it in dist/.vm-arm64/console, ends:\n%s", fmt.Sprintf(format, args...), m.console)
}

// adapter is the reader's USB cable, ftdi_sio to the guest.
const adapter = "usb-serial,chardev=line,id=adapter,bus=xhci.0,serial=SHOE01,always-plugged=on"

// unplug pulls the adapter; what was on its way is lost with the cable.
func (m *machine) unplug() {
	m.t.Helper()
	m.qmp.do("device_del", object{"id": "adapter"})
	m.qmp.event("DEVICE_DELETED")
	m.qmp.do("chardev-remove", object{"id": "line"})
	m.line.Close()
	os.Remove(m.path("line"))
}

func (m *machine) plug() {
	m.t.Helper()
	m.qmp.do("chardev-add", object{"id": "line", "backend": object{"type": "socket", "data": object{
		"addr": object{"type": "unix", "data": object{"path": m.path("line")}}, "server": true, "wait": false}}})
	m.qmp.do("device_add", object{"driver": "usb-serial", "chardev": "line", "id": "adapter", "bus": "xhci.0", "serial": "SHOE01", "always-plugged": true})
	m.line = m.dial("line")
}

// qmp is QEMU's control connection.
type qmp struct {
	m    *machine
	conn net.Conn
	in   *json.Decoder
	seen map[string]bool // events not asked for yet
}

type qmpMessage struct {
	Return json.RawMessage
	Error  *struct{ Desc string }
	Event  string
}

func newQMP(m *machine) *qmp {
	c := m.dial("qmp")
	q := &qmp{m: m, conn: c, in: json.NewDecoder(c), seen: map[string]bool{}}
	q.read() // the greeting
	q.do("qmp_capabilities", object{})
	return q
}

func (q *qmp) read() qmpMessage {
	q.m.t.Helper()
	q.conn.SetReadDeadline(time.Now().Add(patience))
	var msg qmpMessage
	if err := q.in.Decode(&msg); err != nil {
		q.m.fatalf("QMP: %v", err)
	}
	if msg.Event != "" {
		q.seen[msg.Event] = true
	}
	return msg
}

type object = map[string]any

func (q *qmp) do(command string, args object) {
	q.m.t.Helper()
	if err := json.NewEncoder(q.conn).Encode(object{"execute": command, "arguments": args}); err != nil {
		q.m.fatalf("QMP %s: %v", command, err)
	}
	for {
		switch msg := q.read(); {
		case msg.Error != nil:
			q.m.fatalf("QMP %s: %s", command, msg.Error.Desc)
		case msg.Return != nil:
			return
		}
	}
}

func (q *qmp) event(name string) {
	for !q.seen[name] {
		q.read()
	}
	delete(q.seen, name)
}

// console keeps what the guest says; its last lines are shown when it fails, and
// all of it stays in a file.
type console struct {
	mu   sync.Mutex
	b    bytes.Buffer
	file *os.File
}

func newConsole(t testing.TB) *console {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(built, "console"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &console{file: f}
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.b.Write(p)
	return c.file.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tail(c.b.String(), 60)
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// mosquitto is the site's broker, on the host.
type mosquitto struct{ port string }

func startMosquitto(t testing.TB, dir string) mosquitto {
	t.Helper()
	port := freePort(t)
	conf := filepath.Join(dir, "mosquitto.conf")
	text := fmt.Sprintf("listener %s 127.0.0.1\nallow_anonymous true\npersistence false\nlog_dest none\n", port)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
	}
	cmd := exec.Command(path, "-c", conf)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return mosquitto{port}
}

func (b mosquitto) url() string { return "mqtt://127.0.0.1:" + b.port }

// freePort is one that nobody listens on, and that the kernel gives to nobody
// who asks for any.
func freePort(t testing.TB) string {
	t.Helper()
	for port := 20_000; port < 30_000; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return fmt.Sprint(port)
		}
	}
	t.Fatal(errors.New("no port is free"))
	return ""
}
