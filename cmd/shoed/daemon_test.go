package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/sim"
)

// asProgram makes the test binary be shoed: a test kills it as it would be
// killed at a table.
const asProgram = "SHOED_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Unsetenv(asProgram)
		hurry()
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const patience = 30 * time.Second

// eventually waits for a condition that something outside makes true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	late := time.After(patience)
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// table is a shoed process with its own directory and a shoe's line.
type table struct {
	t      testing.TB
	dir    string
	config string
	line   *sim.Pair
	server *deviceServer // instead of line, after serveLine

	program string   // "" is the test binary itself
	under   []string // what strace is to do to it; nil runs it alone
	env     []string
	cmd     *exec.Cmd
	log     *lockedBuffer
	exited  chan error
}

// newTable writes a configuration; nothing runs yet. rules are name=value.
func newTable(t testing.TB, server string, rules ...string) *table {
	dir := t.TempDir()
	tb := &table{t: t, dir: dir, config: filepath.Join(dir, "shoed.toml")}
	quoted := make([]string, len(rules))
	for i, r := range rules {
		quoted[i] = fmt.Sprintf("%q", r)
	}
	servers := ""
	if server != "" {
		servers = fmt.Sprintf("%q", server)
	}
	text := fmt.Sprintf(`rules = [%s]
[table]
site = "test"
id = "t1"
[reader]
device = %q
[journal]
dir = %q
[mqtt]
servers = [%s]
listen = "127.0.0.1:0"
listen_ws = "off"
[control]
socket = %q
[log]
format = "text"
`, strings.Join(quoted, ", "), tb.port(), filepath.Join(dir, "journal"), servers, tb.socket())
	if err := os.WriteFile(tb.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tb.kill()
		if tb.line != nil {
			tb.line.Close()
		}
	})
	return tb
}

func (tb *table) port() string   { return filepath.Join(tb.dir, "reader") }
func (tb *table) socket() string { return filepath.Join(tb.dir, "shoed.sock") }
func (tb *table) file() string   { return filepath.Join(tb.dir, "journal", journalFile) }

// plug connects a new line; unplug takes it away.
func (tb *table) plug() {
	tb.t.Helper()
	line, err := sim.OpenPair()
	if err != nil {
		tb.t.Fatal(err)
	}
	next := tb.port() + ".new"
	if err := os.Symlink(line.Path, next); err != nil {
		tb.t.Fatal(err)
	}
	if err := os.Rename(next, tb.port()); err != nil {
		tb.t.Fatal(err)
	}
	if tb.line != nil {
		tb.line.Close()
	}
	tb.line = line
}

func (tb *table) unplug() {
	os.Remove(tb.port())
	tb.line.Close()
	tb.line = nil
}

func (tb *table) send(b []byte) {
	tb.t.Helper()
	if tb.server != nil {
		tb.server.send(b)
		return
	}
	if _, err := tb.line.Shoe.Write(b); err != nil {
		tb.t.Fatal(err)
	}
}

// start runs shoed and returns at once.
func (tb *table) start() {
	tb.t.Helper()
	tb.log = &lockedBuffer{}
	words := []string{cmp.Or(tb.program, os.Args[0]), "run", "--config", tb.config}
	if tb.under != nil { // the tracer is the grandchild, so that signals reach shoed
		words = append(append([]string{"strace", "-D", "-f", "-qq", "-o", "/dev/null"}, tb.under...), words...)
	}
	tb.cmd = exec.Command(words[0], words[1:]...)
	tb.cmd.Env = append(os.Environ(), tb.env...)
	if tb.program == "" {
		tb.cmd.Env = append(tb.cmd.Env, asProgram+"=1")
	}
	tb.cmd.Stderr = tb.log
	if err := tb.cmd.Start(); err != nil {
		tb.t.Fatal(err)
	}
	tb.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan<- error) { exited <- cmd.Wait() }(tb.cmd, tb.exited)
}

// running starts shoed and waits until it takes answers.
func (tb *table) running() {
	tb.t.Helper()
	tb.start()
	eventually(tb.t, "shoed answers on its socket", func() bool {
		select {
		case err := <-tb.exited:
			tb.exited <- err
			tb.t.Fatalf("shoed ended: %v\n%s", err, tb.log)
		default:
		}
		c, err := net.Dial("unix", tb.socket())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// kill ends shoed with SIGKILL.
func (tb *table) kill() {
	if tb.cmd != nil {
		tb.cmd.Process.Kill()
		<-tb.exited
		tb.cmd = nil
	}
}

// stop ends shoed as a service manager does.
func (tb *table) stop() error {
	tb.t.Helper()
	tb.cmd.Process.Signal(os.Interrupt)
	defer func() { tb.cmd = nil }()
	select {
	case err := <-tb.exited:
		return err
	case <-time.After(patience):
		tb.cmd.Process.Kill()
		<-tb.exited
		return fmt.Errorf("still running %v after SIGINT\n%s", patience, tb.log)
	}
}

// answer is shoed answer.
func (tb *table) answer(words ...string) error {
	var out, errs bytes.Buffer
	return run(context.Background(), append([]string{"answer", "--socket", tb.socket()}, words...), nil, &out, &errs)
}

// taken is how many bytes of the line are in the journal.
func (tb *table) taken() int {
	tb.t.Helper()
	r, err := journal.OpenRead(tb.file())
	if err != nil {
		return 0 // killed before there was one
	}
	defer r.Close()
	n := 0
	err = r.Read(1, func(rec journal.Record) error {
		if rec.Kind == journal.Chunk {
			n += len(rec.Body)
		}
		return nil
	})
	if err != nil {
		tb.t.Fatal(err)
	}
	return n
}

// verify is shoed journal verify.
func (tb *table) verify() {
	tb.t.Helper()
	if out, _, err := shoedCommand("journal", "verify", tb.file()); err != nil {
		tb.t.Errorf("journal verify: %v\n%s", err, out)
	}
}

func shoedCommand(args ...string) (string, string, error) {
	var out, errs bytes.Buffer
	err := run(context.Background(), args, nil, &out, &errs)
	return out.String(), errs.String(), err
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// witness keeps every event that a broker sends.
type witness struct {
	mu     sync.Mutex
	events []mqtt.Event
	lines  [][]byte
	state  mqtt.State
	health mqtt.Health
	status mqtt.Status
	info   mqtt.Info
	alerts mqtt.Alerts
	wrong  []error // messages that do not follow their schemas
}

func audit(t testing.TB, server string) *witness { return auditTable(t, server, "test", "t1") }

func auditTable(t testing.TB, server, site, table string) *witness {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := &witness{}
	ended, err := mqtt.Subscribe(ctx, mqtt.Account{Server: server}, site, table, a.message)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-ended
		a.mu.Lock()
		defer a.mu.Unlock()
		if err := errors.Join(a.wrong...); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *witness) message(topic string, _ bool, payload []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := follows(topic, payload); err != nil {
		a.wrong = append(a.wrong, err)
	}
	switch topic[strings.LastIndexByte(topic, '/')+1:] {
	case "event":
		var e mqtt.Event
		if err := json.Unmarshal(payload, &e); err == nil {
			a.events, a.lines = append(a.events, e), append(a.lines, bytes.Clone(payload))
		}
	case "state":
		json.Unmarshal(payload, &a.state)
	case "health":
		json.Unmarshal(payload, &a.health)
	case "status":
		json.Unmarshal(payload, &a.status)
	case "info":
		json.Unmarshal(payload, &a.info)
	case "alerts":
		json.Unmarshal(payload, &a.alerts)
	}
}

// last is the highest seq received.
func (a *witness) last() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := uint64(0)
	for i := range a.events {
		last = max(last, a.events[i].Seq)
	}
	return last
}

func (a *witness) see(f func(*witness) bool) func() bool {
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return f(a)
	}
}

// decided lists the decided rounds received, repeats left out.
func (a *witness) decided(t testing.TB) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := map[uint64]bool{}
	var rounds []string
	for i, e := range a.events {
		if r := decidedRound(t, a.lines[i]); r != "" && !seen[e.Seq] {
			rounds = append(rounds, r)
		}
		seen[e.Seq] = true
	}
	return rounds
}

// freePort finds a port that nobody listens on. It is below those that the
// kernel gives to whoever asks for any, so that it stays free until it is used.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := fmt.Sprint(10_000 + rand.IntN(22_000))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// mosquitto is a real broker process on a free port.
type mosquitto struct {
	t    testing.TB
	port string
	conf string
	cmd  *exec.Cmd
}

func startMosquitto(t testing.TB) *mosquitto {
	t.Helper()
	port := freePort(t)
	conf := filepath.Join(t.TempDir(), "mosquitto.conf")
	text := fmt.Sprintf("listener %s 127.0.0.1\nallow_anonymous true\npersistence false\nlog_dest none\n", port)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m := &mosquitto{t: t, port: port, conf: conf}
	m.start()
	t.Cleanup(m.kill)
	return m
}

func (m *mosquitto) start() {
	m.t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
	}
	m.cmd = exec.Command(path, "-c", m.conf)
	if err := m.cmd.Start(); err != nil {
		m.t.Fatalf("%v: apt-get install mosquitto", err)
	}
	eventually(m.t, "mosquitto listens", func() bool {
		c, err := net.Dial("tcp", m.addr())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (m *mosquitto) kill() {
	if m.cmd != nil {
		m.cmd.Process.Kill()
		m.cmd.Wait()
		m.cmd = nil
	}
}

func (m *mosquitto) addr() string { return "127.0.0.1:" + m.port }
func (m *mosquitto) url() string  { return "tcp://" + m.addr() }

// proxy stands between shoed and its broker and can cut every connection.
type proxy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    map[net.Conn]bool
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, conns: map[net.Conn]bool{}}
	go p.serve()
	t.Cleanup(func() { l.Close(); p.cut() })
	return p
}

func (p *proxy) url() string { return "tcp://" + p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		p.mu.Unlock()
		go pipe(in, out)
		go pipe(out, in)
	}
}

func pipe(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}
