package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"shoed/device"
	"shoed/journal"
	"shoed/round"
	"shoed/scanner"
)

// watchdog is the limit in these tests: short, so that they are.
const watchdog = 300 * time.Millisecond

// pretended is a systemd that a test listens for.
type pretended struct {
	t    testing.TB
	conn *net.UnixConn
}

func pretendSystemd(t testing.TB, name string) *pretended {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &pretended{t, conn}
}

func (p *pretended) env() []string {
	return []string{"NOTIFY_SOCKET=" + p.conn.LocalAddr().String(), fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds())}
}

// next is what is told next; "" when nothing is within limit.
func (p *pretended) next(limit time.Duration) string {
	p.t.Helper()
	b := make([]byte, 4096)
	p.conn.SetReadDeadline(time.Now().Add(limit))
	n, err := p.conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b[:n])
}

// until reads up to something that contains want, and returns all before it.
func (p *pretended) until(want string) (before []string) {
	p.t.Helper()
	for late := time.Now().Add(patience); time.Now().Before(late); {
		got := p.next(time.Until(late))
		if strings.Contains(got, want) {
			return before
		}
		before = append(before, got)
	}
	p.t.Fatalf("not told within %v: %s; told %q", patience, want, before)
	return nil
}

// TestToldSystemd: a table serves without reader, broker and network; its state
// is a line of public facts; and it says when it reads its configuration again
// and when it stops.
func TestToldSystemd(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@shoed-test-%d", os.Getpid())} {
		systemd := pretendSystemd(t, name)
		tb := newTable(t, "mqtt://127.0.0.1:1") // nobody is there
		tb.env = systemd.env()
		tb.start()
		if before := systemd.until("READY=1"); len(before) > 1 || len(before) == 1 && before[0] != "WATCHDOG=1" {
			t.Errorf("told before READY: %q", before)
		}
		systemd.until("STATUS=shoe 0 round 0 without a shoe; reader down; broker away; ")
		tb.plug()
		systemd.until("; reader up; broker away; ")
		startShoe(t, tb)
		systemd.until("STATUS=shoe 1 round 1 dealing; reader up; broker away; ")
		for range 3 {
			systemd.until("WATCHDOG=1")
		}
		if err := tb.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		systemd.until("RELOADING=1")
		systemd.until("READY=1")
		if err := tb.stop(); err != nil {
			t.Error(err)
		}
		systemd.until("STOPPING=1")
	}
}

// TestWatchdogIsTheCores: what feeds the watchdog is the core itself. While it
// is stuck nothing else does.
func TestWatchdogIsTheCores(t *testing.T) {
	p := pretendSystemd(t, filepath.Join(t.TempDir(), "notify"))
	m, err := openSystemd(environment(p.env()))
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	j, _, err := journal.Open(filepath.Join(t.TempDir(), journalFile), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	decoder, err := scanner.New("angel", scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stuck, release := make(chan bool), make(chan bool)
	c := &core{
		journal: j, sources: []*source{{name: "reader", protocol: "angel", reads: scanner.Cards, decoder: decoder, orders: make(chan []byte)}}, state: round.New(round.DefaultRules()), log: slog.New(slog.DiscardHandler),
		adopted: func() {}, clock: func(t time.Time) time.Time { return t }, alive: m.alive, begun: make(chan struct{}),
		parts: []part{{device: round.BrokerDevice, failing: func() int {
			stuck <- true
			<-release
			return 0
		}}},
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := task(func() error { return c.run(ctx, device.NewQueue(4096, 8), nil) })
	p.until("WATCHDOG=1")
	p.until("WATCHDOG=1")
	<-stuck
	for p.next(time.Millisecond) != "" { // from before
	}
	if got := p.next(3 * watchdog); got != "" {
		t.Errorf("told by a core that is stuck: %s", got)
	}
	release <- true
	p.until("WATCHDOG=1")
	stop()
	for {
		select {
		case <-stuck:
			release <- true
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// environment is a getenv of name=value texts.
func environment(list []string) func(string) string {
	return func(name string) string {
		for _, e := range list {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// TestWatchdogOnAFullDisk: a table that holds because its disk is full is not
// restarted, for that would not make room.
func TestWatchdogOnAFullDisk(t *testing.T) {
	systemd := pretendSystemd(t, filepath.Join(t.TempDir(), "notify"))
	tb := newTable(t, "mqtt://127.0.0.1:1")
	tb.env = systemd.env()
	disk := tb.smallDisk()
	tb.plug()
	tb.running()
	startShoe(t, tb)
	systemd.until("round 1 dealing")
	fill := fillDisk(t, disk)
	tb.standbyUntilHeld('4')
	systemd.until("holds: the journal cannot be written")
	for range 5 {
		if systemd.next(2*watchdog) == "" {
			t.Fatal("the watchdog is not fed while the disk is full")
		}
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return strings.Contains(tb.log.String(), "code=storage.restored") })
}

// TestNotifyEnvironment: what systemd says wrongly is refused with its name.
func TestNotifyEnvironment(t *testing.T) {
	p := pretendSystemd(t, filepath.Join(t.TempDir(), "notify"))
	socket := "NOTIFY_SOCKET=" + p.conn.LocalAddr().String()
	for _, c := range []struct {
		env  []string
		feed time.Duration
		fail string
	}{
		{nil, 0, ""},
		{[]string{socket}, 0, ""},
		{[]string{socket, "WATCHDOG_USEC=3000000"}, 1500 * time.Millisecond, ""},
		{[]string{socket, "WATCHDOG_USEC=3000000", fmt.Sprintf("WATCHDOG_PID=%d", os.Getpid())}, 1500 * time.Millisecond, ""},
		{[]string{socket, "WATCHDOG_USEC=3000000", "WATCHDOG_PID=1"}, 0, ""},
		{[]string{socket, "WATCHDOG_USEC=soon"}, 0, "WATCHDOG_USEC"},
		{[]string{socket, "WATCHDOG_USEC=-1"}, 0, "WATCHDOG_USEC"},
		{[]string{"NOTIFY_SOCKET=/nowhere/notify"}, 0, "NOTIFY_SOCKET"},
	} {
		m, err := openSystemd(environment(c.env))
		if (c.fail == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%q: %v", c.env, err)
		}
		if m != nil && m.feed != c.feed {
			t.Errorf("%q: feeds every %v", c.env, m.feed)
		}
		if (m != nil) != (len(c.env) > 0 && c.fail == "") {
			t.Errorf("%q: %v", c.env, m)
		}
		m.close()
	}
}
