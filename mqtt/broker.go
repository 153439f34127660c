package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
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

// BrokerOptions say where the embedded broker listens and whom it knows.
type BrokerOptions struct {
	TCP       string // address:port, port 0 for a free one; with users it need not be on the loopback
	WebSocket string // the same; empty for none
	CertFile  string // of a TLS certificate for both, with KeyFile; optional
	KeyFile   string

	Users        []User // optional: nobody is asked, and everybody may do everything
	PasswordFile string // of the users, written by mosquitto_passwd
	Site, Table  string // contract.md: what the users' rights are about; only with users

	Log *slog.Logger
}

// Broker is an MQTT broker in this process, for a table that has none besides
// it. Without users it asks nobody who he is, and is reachable from this machine
// only. Everything in it is lost with the process; a Publisher puts all
// documents back when it connects.
type Broker struct {
	TCP       string // the real addresses
	WebSocket string

	// For the table's own Publisher: where no certificate is in its way and no
	// other host can be.
	Server, User, Password string

	server    *mochi.Server
	admission *admission
	site      string // with users
	own       login  // with users, the table's
}

// OpenBroker starts a broker. The error names the address, user or file and
// what is wrong with it.
func OpenBroker(o BrokerOptions) (*Broker, error) {
	b := &Broker{server: mochi.New(&mochi.Options{
		Capabilities:           capabilities(),
		Logger:                 slog.New(chatter{o.Log.Handler()}),
		SysTopicResendInterval: brokerSysSeconds,
	})}
	if err := b.open(o); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Broker) open(o BrokerOptions) error {
	var err error
	if b.admission, err = b.hook(o); err != nil {
		return err
	}
	if err := b.server.AddHook(b.admission, nil); err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	security, err := o.security()
	if err != nil {
		return err
	}
	if b.TCP, err = b.listen(o, "tcp", o.TCP, security); err != nil {
		return err
	}
	b.Server = "mqtt://" + b.TCP
	if len(o.Users) > 0 || security != nil {
		own, err := b.listen(o, "own", "127.0.0.1:0", nil)
		if err != nil {
			return err
		}
		b.Server = "mqtt://" + own
	}
	if o.WebSocket != "" {
		if b.WebSocket, err = b.listen(o, "websocket", o.WebSocket, security); err != nil {
			return err
		}
	}
	if err := b.server.Serve(); err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	return nil
}

// security is the TLS of the listeners; nil for none.
func (o *BrokerOptions) security() (*tls.Config, error) {
	if o.CertFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: certificate %s, key %s: %w", o.CertFile, o.KeyFile, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}

// listen adds a listener and returns its real address.
func (b *Broker) listen(o BrokerOptions, id, address string, security *tls.Config) (string, error) {
	l, err := listen(address, len(o.Users) > 0)
	if err != nil {
		return "", err
	}
	at := l.Addr().(*net.TCPAddr)
	switch {
	case security != nil:
		l = tls.NewListener(l, security)
	case !at.IP.IsLoopback():
		o.Log.Warn("whoever can listen in on the network can read the passwords: give the broker a certificate", "code", "broker_plain", "address", at.String())
	}
	if id == "websocket" {
		l = newWebSocket(l, b.server.Log)
	}
	if err := b.server.AddListener(door{listeners.NewNet(id, l)}); err != nil {
		return "", errors.Join(fmt.Errorf("embedded broker: %w", err), l.Close())
	}
	return at.String(), nil
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

// chatter logs what the library says as debugging: it warns of everyday things
// such as a board that was switched off. Whole packets are left out, for they
// hold passwords.
type chatter struct{ slog.Handler }

func (h chatter) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h chatter) Handle(ctx context.Context, r slog.Record) error {
	said := slog.NewRecord(r.Time, slog.LevelDebug, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "pk" && a.Key != "packet" {
			said.AddAttrs(a)
		}
		return true
	})
	return h.Handler.Handle(ctx, said)
}

func (h chatter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return chatter{h.Handler.WithAttrs(attrs)}
}

func (h chatter) WithGroup(name string) slog.Handler { return chatter{h.Handler.WithGroup(name)} }
