package mqtt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// The table's own boards, a supervisor's page, the publisher and some
	// tools: more at once is a mistake, and each may hold a queue.
	brokerClients = 32
	// Messages that a slow consumer may leave unacknowledged or unread before
	// it loses some: a whole shoe and its documents several times over, some
	// MB at most. It sees the gap by seq.
	brokerQueue = 8192
	// The largest message with its topic, and room for a command's body.
	brokerPacket = maxMessage + 4<<10
	// How long a write to a consumer may hang, which it does once the kernel's
	// buffers, of MBs, are full. The library writes under a lock that it takes
	// for every publication too, so a board that hangs would stop the table.
	brokerWrite = time.Second
	// How long a connection may take to say what it is.
	brokerHello = 10 * time.Second
	// How long Close waits for the consumers' goroutines.
	brokerClose = 5 * time.Second
	// $SYS topics, of which each update stops the whole program for a moment.
	brokerSysSeconds = 24 * 60 * 60
	// After a failure to accept, which is for want of descriptors.
	acceptPause = 100 * time.Millisecond
	// How often a free port is sought for WebSocket before giving up.
	portTries = 5
)

// BrokerOptions say where the embedded broker listens.
type BrokerOptions struct {
	TCP       string // address:port on the loopback, port 0 for a free one
	WebSocket string // the same; empty for none
	Log       *slog.Logger
}

// Broker is an MQTT broker in this process, for a table that has none besides
// it. It is reachable from this machine only and therefore asks nobody who he
// is. Everything in it is lost with the process; a Publisher puts all documents
// back when it connects.
type Broker struct {
	TCP       string // the real addresses
	WebSocket string

	server *mochi.Server
}

// OpenBroker starts a broker. The error names the address and what is wrong
// with it.
func OpenBroker(o BrokerOptions) (*Broker, error) {
	b := &Broker{server: mochi.New(&mochi.Options{
		Capabilities:           capabilities(),
		Logger:                 slog.New(chatter{o.Log.Handler()}),
		SysTopicResendInterval: brokerSysSeconds,
	})}
	if err := b.server.AddHook(new(admission), nil); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	tcp, err := listen(o.TCP)
	if err != nil {
		return nil, err
	}
	b.TCP = tcp.Addr().String()
	if err := b.server.AddListener(listeners.NewNet("tcp", patient{tcp})); err != nil {
		tcp.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := b.server.Serve(); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded broker: %w", err), b.Close())
	}
	if o.WebSocket == "" {
		return b, nil
	}
	if b.WebSocket, err = b.serveWebSocket(o.WebSocket); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close ends all connections and waits for them, up to a few seconds.
func (b *Broker) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- b.server.Close() }() // ends with the last connection, at the latest with the process
	select {
	case err := <-closed:
		return err
	case <-time.After(brokerClose):
		return fmt.Errorf("embedded broker %s: a connection does not end", b.TCP)
	}
}

func capabilities() *mochi.Capabilities {
	c := mochi.NewDefaultServerCapabilities()
	c.MaximumClients = brokerClients
	c.MaximumClientWritesPending = brokerQueue
	c.MaximumInflight = brokerQueue
	c.MaximumPacketSize = brokerPacket
	c.MaximumQos = 1                     // contract.md: no QoS 2
	c.MaximumMessageExpiryInterval = 0   // never: by default a retained document is gone after a day
	c.MaximumSessionExpiryInterval = 120 // seconds: a board that is away longer starts from the documents
	return c
}

// listen opens a listener, but on no address that others could reach: nobody
// is asked for a password here.
func listen(address string) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: address %q: write it as 127.0.0.1:1883 or [::1]:1883: %w", address, err)
	}
	if !a.IP.IsLoopback() {
		return nil, fmt.Errorf("embedded broker: address %q is not on the loopback: for access from outside use a broker of your own", address)
	}
	l, err := net.ListenTCP("tcp", a)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return l, nil
}

// serveWebSocket adds the WebSocket listener. The library's binds in its own
// goroutine and only logs a failure, so the port is tried and, if the system is
// to choose it, chosen before, and its return is what tells of a failure.
func (b *Broker) serveWebSocket(address string) (string, error) {
	free := strings.HasSuffix(address, ":0")
	for try := 1; ; try++ {
		probe, err := listen(address)
		if err != nil {
			return "", err
		}
		real := probe.Addr().String()
		probe.Close()
		id := fmt.Sprintf("websocket-%d", try)
		l := &webSocket{listeners.NewWebsocket(listeners.Config{ID: id, Address: real}), make(chan struct{})}
		if err := b.server.AddListener(l); err != nil {
			return "", fmt.Errorf("embedded broker: %w", err)
		}
		b.server.Listeners.Serve(id, b.server.EstablishConnection)
		if l.serves(real) {
			return real, nil
		}
		b.server.Listeners.Delete(id)
		if !free || try == portTries {
			return "", fmt.Errorf("embedded broker: WebSocket address %s was taken by another program", real)
		}
	}
}

// webSocket is the library's listener with a sign of its end.
type webSocket struct {
	*listeners.Websocket
	ended chan struct{}
}

// Serve returns when the listener is closed, or could not be opened.
func (l *webSocket) Serve(establish listeners.EstablishFn) {
	l.Websocket.Serve(establish)
	close(l.ended)
}

// serves waits until the address answers; false when it was not to be had.
func (l *webSocket) serves(address string) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
		}
		select {
		case <-l.ended:
			return false
		case <-tick.C:
			if err == nil {
				return true
			}
		}
	}
}

// patient is a listener that survives a shortage of descriptors, where the
// library would stop listening, and gives a connection a while to begin.
type patient struct{ net.Listener }

func (l patient) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			return conn, conn.SetDeadline(time.Now().Add(brokerHello)) // the library sets its own after CONNECT
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		time.Sleep(acceptPause)
	}
}

// admission is the library's hook for who may connect and do what: on the
// loopback everybody everything. It gives every connection a writer that does
// not wait for ever.
type admission struct{ mochi.HookBase }

// ID names the hook.
func (*admission) ID() string { return "admission" }

// Provides lists the methods that are to be called.
func (*admission) Provides(what byte) bool {
	return what == mochi.OnConnect || what == mochi.OnConnectAuthenticate || what == mochi.OnACLCheck
}

// OnConnect is called before the first write.
func (*admission) OnConnect(cl *mochi.Client, _ packets.Packet) error {
	cl.Net.Conn = impatient{cl.Net.Conn}
	return nil
}

// OnConnectAuthenticate lets everybody in.
func (*admission) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }

// OnACLCheck allows every topic.
func (*admission) OnACLCheck(*mochi.Client, string, bool) bool { return true }

// impatient cuts the connection when a write hangs. A deadline would not do:
// the library's WebSocket takes it back before each write.
type impatient struct{ net.Conn }

func (c impatient) Write(b []byte) (int, error) {
	cut := time.AfterFunc(brokerWrite, func() { c.Conn.Close() })
	defer cut.Stop()
	return c.Conn.Write(b)
}

// chatter logs what the library says as debugging: it warns of everyday things
// such as a board that was switched off.
type chatter struct{ slog.Handler }

func (h chatter) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h chatter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

func (h chatter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return chatter{h.Handler.WithAttrs(attrs)}
}

func (h chatter) WithGroup(name string) slog.Handler { return chatter{h.Handler.WithGroup(name)} }
