package mqtt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// How long Close waits for the consumers' goroutines.
	brokerClose = 5 * time.Second
	// $SYS topics, of which each update stops the whole program for a moment.
	brokerSysSeconds = 24 * 60 * 60
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
	if err := b.open(o); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Broker) open(o BrokerOptions) error {
	tcp, err := listen(o.TCP)
	if err != nil {
		return err
	}
	b.TCP = tcp.Addr().String()
	if err := b.server.AddListener(door{listeners.NewNet("tcp", tcp)}); err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	if o.WebSocket != "" {
		web, err := listen(o.WebSocket)
		if err != nil {
			return err
		}
		b.WebSocket = web.Addr().String()
		if err := b.server.AddListener(door{listeners.NewNet("websocket", newWebSocket(web, b.server.Log))}); err != nil {
			return fmt.Errorf("embedded broker: %w", err)
		}
	}
	if err := b.server.Serve(); err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	return nil
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

// admission is the library's hook for who may connect and do what: on the
// loopback everybody everything.
type admission struct{ mochi.HookBase }

// ID names the hook.
func (*admission) ID() string { return "admission" }

// Provides lists the methods that are to be called.
func (*admission) Provides(what byte) bool {
	return what == mochi.OnConnectAuthenticate || what == mochi.OnACLCheck
}

// OnConnectAuthenticate lets everybody in.
func (*admission) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }

// OnACLCheck allows every topic.
func (*admission) OnACLCheck(*mochi.Client, string, bool) bool { return true }

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
