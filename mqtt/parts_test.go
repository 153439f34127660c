package mqtt

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	site = "house"
	desk = "table-1"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mqtt")
	if err != nil {
		panic(err)
	}
	if err := makeCertificate(dir); err != nil {
		panic(err)
	}
	// Read once by crypto/x509, so it must be there before any test connects.
	os.Setenv("SSL_CERT_FILE", filepath.Join(dir, "cert.pem"))
	certificates = dir
	invalid := checkMessages()
	code := m.Run()
	os.RemoveAll(dir)
	if wrong := invalid(); len(wrong) > 0 {
		fmt.Fprintln(os.Stderr, "FAIL: messages that do not follow their schemas:")
		fmt.Fprintln(os.Stderr, strings.Join(wrong[:min(len(wrong), 10)], "\n"))
		code = max(code, 1)
	}
	os.Exit(code)
}

var certificates string // directory of cert.pem and key.pem for 127.0.0.1

func makeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o644)
}

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited %v in vain for: %s", patience, what)
		}
	}
}

// freePort finds a port that nobody listens on. It is below those that the
// kernel gives to whoever asks for any, so that it stays free until it is used.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+mathrand.IntN(22_000)))
		if err == nil {
			l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// mosquitto is a real broker in a process of its own.
type mosquitto struct {
	t      testing.TB
	addr   string
	config string
	cmd    *exec.Cmd
	log    *lines
}

// startMosquitto starts one on a free port. Its limits are off, so that what a
// slow test machine lets pile up is not thrown away.
func startMosquitto(t testing.TB, more ...string) *mosquitto {
	t.Helper()
	m := &mosquitto{t: t, addr: freePort(t)}
	_, port, _ := net.SplitHostPort(m.addr)
	m.write(append([]string{"user root", "listener " + port + " 127.0.0.1", "persistence false", "max_queued_messages 0",
		"max_inflight_messages 0", "log_type all", "connection_messages true"}, more...))
	if !slices.Contains(more, "allow_anonymous false") {
		m.write(append(m.lines(), "allow_anonymous true"))
	}
	m.start()
	t.Cleanup(m.kill)
	return m
}

func (m *mosquitto) write(conf []string) {
	if m.config == "" {
		m.config = filepath.Join(m.t.TempDir(), "mosquitto.conf")
	}
	if err := os.WriteFile(m.config, []byte(strings.Join(conf, "\n")+"\n"), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mosquitto) lines() []string {
	b, err := os.ReadFile(m.config)
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func (m *mosquitto) start() {
	m.t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
	}
	m.log = &lines{}
	m.cmd = exec.Command(path, "-c", m.config)
	m.cmd.Stderr, m.cmd.Stdout = m.log, m.log
	if err := m.cmd.Start(); err != nil {
		m.t.Fatalf("the broker mosquitto is needed for this test: apt-get install mosquitto (%v)", err)
	}
	until(m.t, "mosquitto on "+m.addr, func() bool {
		conn, err := net.Dial("tcp", m.addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// kill is SIGKILL: nothing is said, nothing is saved.
func (m *mosquitto) kill() {
	if m.cmd.ProcessState == nil {
		m.cmd.Process.Kill()
		m.cmd.Wait()
	}
}

func (m *mosquitto) signal(s syscall.Signal) {
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// brokers runs a test against each kind of broker.
func brokers(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("mosquitto", func(t *testing.T) { test(t, startMosquitto(t).addr) })
	t.Run("embedded", func(t *testing.T) { test(t, openBroker(t).TCP) })
}

func openBroker(t testing.TB) *Broker {
	t.Helper()
	b, err := OpenBroker(BrokerOptions{TCP: "127.0.0.1:0", WebSocket: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// lines collects output.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// count is how many lines hold text.
func (l *lines) count(text string) int {
	n := 0
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// running is a publisher at work.
type running struct {
	*Publisher
	t     testing.TB
	log   *lines
	stop  context.CancelCauseFunc
	ended chan error
}

// end waits for the end of Run and gives its error.
func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err
		return err
	case <-time.After(patience):
		r.t.Fatal("Run does not end")
		return nil
	}
}

// publish runs a publisher for the table. Its pauses are a hundredth of what
// they are in life.
func publish(t testing.TB, d *table, server string, change func(*Options)) *running {
	t.Helper()
	r := &running{t: t, log: &lines{}, ended: make(chan error, 1)}
	o := Options{
		Servers: []string{"mqtt://" + server}, ClientID: "shoed-" + desk, Site: site, Table: desk, Epoch: "e1",
		Software: Software{Version: "1.2.3", Commit: "abc", SHA256: "00"}, Reader: Reader{Protocol: "angel", Device: "/dev/shoe"},
		Outbox: d.outbox(), Clock: func() string { return "synced" }, Key: key, Log: slog.New(slog.NewTextHandler(r.log, nil)),
		After: func(wait time.Duration) <-chan time.Time { return time.After(wait / 100) },
	}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Publisher = p
	d.mu.Lock()
	d.wake = p.Wake
	d.mu.Unlock()
	ctx, stop := context.WithCancelCause(context.Background())
	r.stop = stop
	go func() { r.ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop(nil)
		r.end()
		if t.Failed() {
			t.Logf("log of the publisher:\n%s", r.log)
		}
	})
	return r
}

// message is one that arrived.
type message struct {
	Envelope
	name     string // last part of the topic
	retained bool
	body     []byte
	Ev       string
	State    Life
	Instance string
	Session  uint64
	Reason   string
}

// inbox is a consumer.
type inbox struct {
	t    testing.TB
	mu   sync.Mutex
	got  []message
	gone <-chan error
}

// consume subscribes; messages of further subscriptions come to the same inbox.
func (in *inbox) consume(server string) {
	in.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	gone, err := Subscribe(ctx, Account{Server: "mqtt://" + server}, site, desk, in.take)
	if err != nil {
		cancel()
		in.t.Fatal(err)
	}
	in.gone = gone
	in.t.Cleanup(cancel)
}

// listen subscribes to more of the table's topics, over a connection of its own.
func (in *inbox) listen(server string, names ...string) paho.Client {
	in.t.Helper()
	u, err := parseServer("mqtt://" + server)
	if err != nil {
		in.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in.t.Cleanup(cancel)
	client := paho.NewClient(clientOptions(ctx, u, nil, rand.Text()[:16], defaultKeepAlive, defaultWrite))
	filters := map[string]byte{}
	for _, name := range names {
		filters[Topic(site, desk, name)] = 1
	}
	for _, token := range []func() paho.Token{client.Connect, func() paho.Token {
		return client.SubscribeMultiple(filters, func(_ paho.Client, m paho.Message) { in.take(m.Topic(), m.Retained(), m.Payload()) })
	}} {
		if got := token(); !got.WaitTimeout(patience) || got.Error() != nil {
			in.t.Fatalf("%s: %v", server, got.Error())
		}
	}
	return client
}

// read subscribes with QoS 0 and never writes again. Such a consumer gets all
// that a killed broker has still written to it; one that acknowledges runs into
// the broken connection and throws away what it has not read.
func (in *inbox) read(server string) {
	in.t.Helper()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() { conn.Close() })
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion, connect.CleanSession, connect.ClientIdentifier = "MQTT", 4, true, "reader"
	subscribe := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	subscribe.MessageID = 1
	for _, c := range channels {
		if c.told() {
			subscribe.Topics, subscribe.Qoss = append(subscribe.Topics, Topic(site, desk, c.name)), append(subscribe.Qoss, 0)
		}
	}
	if err := errors.Join(connect.Write(conn), subscribe.Write(conn)); err != nil {
		in.t.Fatal(err)
	}
	granted, gone := make(chan bool), make(chan error, 1)
	go func() { // ends with the connection
		for {
			packet, err := packets.ReadPacket(conn)
			if err != nil {
				gone <- err
				return
			}
			switch p := packet.(type) {
			case *packets.SubackPacket:
				close(granted)
			case *packets.PublishPacket:
				in.take(p.TopicName, p.Retain, p.Payload)
			}
		}
	}()
	select {
	case <-granted:
	case err := <-gone:
		in.t.Fatal(err)
	}
	in.gone = gone
}

func newInbox(t testing.TB, server string) *inbox {
	t.Helper()
	in := &inbox{t: t}
	in.consume(server)
	return in
}

func (in *inbox) take(topic string, retained bool, payload []byte) {
	m := message{name: topic[strings.LastIndexByte(topic, '/')+1:], retained: retained, body: payload}
	var status Status
	var event Event
	var err error
	switch m.name {
	case "status":
		err = json.Unmarshal(payload, &status)
		m.Envelope, m.State, m.Instance, m.Session, m.Reason = status.Envelope, status.State, status.Instance, status.Session, status.Reason
	case "event":
		err = json.Unmarshal(payload, &event)
		m.Envelope, m.Ev = event.Envelope, event.Ev
	default:
		err = json.Unmarshal(payload, &m.Envelope)
	}
	if err != nil || !strings.HasPrefix(topic, "shoed/v1/house/table-1/") || m.Schema != m.name+"/1.0" || len(payload) > maxMessage {
		in.t.Errorf("message on %s: %v: %s", topic, err, payload)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, m)
}

func (in *inbox) all() []message {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.got)
}

func (in *inbox) of(name string) []message {
	return slices.DeleteFunc(in.all(), func(m message) bool { return m.name != name })
}

// has waits for a message.
func (in *inbox) has(what string, which func(m message) bool) {
	in.t.Helper()
	until(in.t, what, func() bool { return slices.ContainsFunc(in.all(), which) })
}

func (in *inbox) hasEvent(seq uint64) {
	in.t.Helper()
	in.has(fmt.Sprintf("event %d", seq), func(m message) bool { return m.name == "event" && m.Seq == seq })
}

func (in *inbox) hasState(seq uint64) {
	in.t.Helper()
	in.has(fmt.Sprintf("state %d", seq), func(m message) bool { return m.name == "state" && m.Seq == seq })
}

// check holds the contract against all that arrived: every event from 1 to
// last at least once and first in order, every repeat marked, and documents only
// after the events that they reflect, the state last, apart from those of each
// connect.
func (in *inbox) check(last uint64) {
	in.t.Helper()
	var seen, latest uint64
	online := false
	before := "" // the document that the state must follow
	for i, m := range in.all() {
		if m.retained { // of whatever was there before
			continue
		}
		switch m.name {
		case "status":
			online = m.State == Online
		case "info":
			online, before = false, ""
		case "roads", "insurance":
			if online && m.Seq != latest || before == "insurance" || before == m.name {
				in.t.Fatalf("message %d: %s of event %d after event %d and %q", i, m.name, m.Seq, latest, before)
			}
			before = m.name
		case "event":
			if before != "" {
				in.t.Fatalf("message %d: event %d after %s without a state", i, m.Seq, before)
			}
			switch {
			case m.Seq == seen+1:
				seen++
			case m.Seq > seen:
				in.t.Fatalf("message %d: event %d after event %d", i, m.Seq, seen)
			case !m.Delayed:
				in.t.Fatalf("message %d: event %d is repeated unmarked", i, m.Seq)
			}
			latest = m.Seq
		case "state":
			before = ""
			if online && m.Seq != latest {
				in.t.Fatalf("message %d: state of event %d after event %d", i, m.Seq, latest)
			}
		}
	}
	if seen != last {
		in.t.Fatalf("received up to event %d of %d", seen, last)
	}
}

// proxy stands between a client and a broker: it can cut, refuse and look.
type proxy struct {
	t      testing.TB
	addr   string
	target string
	budget func() int64 // bytes, both ways together, after which a connection is cut; nil for never

	mu      sync.Mutex
	shut    bool
	deaf    chan struct{} // not nil: takes every byte, passes none on and ends nothing, until closed
	conns   map[net.Conn]bool
	sent    []packets.ControlPacket // by the clients
	accepts int
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, addr: l.Addr().String(), target: target, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		l.Close()
		p.open()
		p.shutAndCut()
	})
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepts++
	if p.shut {
		c.Close()
		return
	}
	b, err := net.Dial("tcp", p.target)
	if err != nil {
		c.Close()
		return
	}
	p.conns[c], p.conns[b] = true, true
	left := newLeft(-1)
	if p.budget != nil {
		left = newLeft(p.budget())
	}
	r, w := io.Pipe()
	go p.look(r)
	go p.pump(b, io.TeeReader(c, w), c, left, w)
	go p.pump(c, b, b, left, nil)
}

// left counts down to a cut.
type left struct {
	mu sync.Mutex
	n  int64
}

func newLeft(n int64) *left { return &left{n: n} }

// take gives how many of n bytes may still pass.
func (l *left) take(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n < 0 {
		return n
	}
	pass := min(int64(n), l.n)
	l.n -= pass
	return int(pass)
}

// pump copies one way until an end or the cut, then closes both sides.
func (p *proxy) pump(to net.Conn, from io.Reader, source net.Conn, left *left, look *io.PipeWriter) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		pass := left.take(n)
		if p.swallows() != nil {
			n, pass = 0, 0
		}
		if _, werr := to.Write(buf[:pass]); err != nil || werr != nil || pass < n {
			break
		}
	}
	if deaf := p.swallows(); deaf != nil {
		<-deaf
	}
	to.Close()
	source.Close()
	if look != nil {
		look.Close()
	}
	p.mu.Lock()
	delete(p.conns, to)
	delete(p.conns, source)
	p.mu.Unlock()
}

// look notes the packets that a client sends.
func (p *proxy) look(r io.Reader) {
	buffered := bufio.NewReader(r)
	for {
		packet, err := packets.ReadPacket(buffered)
		if err != nil {
			io.Copy(io.Discard, buffered)
			return
		}
		p.mu.Lock()
		p.sent = append(p.sent, packet)
		p.mu.Unlock()
	}
}

func (p *proxy) packets() []packets.ControlPacket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// cut ends all connections and says how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	return len(p.conns)
}

// refuse takes no more connections, until open.
func (p *proxy) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
}

// shutAndCut ends all connections and takes none.
func (p *proxy) shutAndCut() {
	p.refuse()
	p.cut()
}

// limit gives the bytes after which each connection from now on is cut.
func (p *proxy) limit(budget func() int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = budget
}

func (p *proxy) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = false
	if p.deaf != nil {
		close(p.deaf)
		p.deaf = nil
	}
}

// swallow makes all connections half-open, until open.
func (p *proxy) swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = make(chan struct{})
}

func (p *proxy) swallows() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaf
}

// scripted is a broker that does what a test says.
type scripted struct {
	t    testing.TB
	addr string
	got  chan packets.ControlPacket // what clients send, in order
	mu   sync.Mutex
	conn net.Conn // the latest
	ack  bool     // acknowledge publications at once
}

// script starts one. It accepts every connection and subscription; granted is
// the answer to the latter.
func script(t testing.TB, granted byte, ack bool) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &scripted{t: t, addr: l.Addr().String(), got: make(chan packets.ControlPacket, 1000), ack: ack}
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conn = c
			s.mu.Unlock()
			go s.serve(c, granted)
		}
	}()
	return s
}

func (s *scripted) serve(c net.Conn, granted byte) {
	defer c.Close()
	for {
		packet, err := packets.ReadPacket(c)
		if err != nil {
			return
		}
		s.got <- packet
		switch p := packet.(type) {
		case *packets.ConnectPacket:
			packets.NewControlPacket(packets.Connack).Write(c)
		case *packets.SubscribePacket:
			a := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
			a.MessageID, a.ReturnCodes = p.MessageID, []byte{granted}
			a.Write(c)
		case *packets.PublishPacket:
			if s.ack && p.Qos > 0 {
				puback(c, p.MessageID)
			}
		case *packets.PingreqPacket:
			packets.NewControlPacket(packets.Pingresp).Write(c)
		}
	}
}

// acknowledge answers a publication on the latest connection.
func (s *scripted) acknowledge(p *packets.PublishPacket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	puback(s.conn, p.MessageID)
}

func puback(c net.Conn, id uint16) {
	a := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
	a.MessageID = id
	a.Write(c) // the client may have gone
}

// next is the next publication, of the topic's last part.
func (s *scripted) next(name string) *packets.PublishPacket {
	s.t.Helper()
	late := time.After(patience)
	for {
		select {
		case packet := <-s.got:
			p, ok := packet.(*packets.PublishPacket)
			if !ok {
				continue
			}
			if !strings.HasSuffix(p.TopicName, "/"+name) {
				s.t.Fatalf("publication on %s, want %s", p.TopicName, name)
			}
			return p
		case <-late:
			s.t.Fatalf("no publication on %s", name)
		}
	}
}
