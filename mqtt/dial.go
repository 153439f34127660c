package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// connectTimeout bounds the TCP connection and the MQTT handshake together. A
// broker that cannot do both in this time will not keep up with a table either.
const connectTimeout = 10 * time.Second

// tcpUserTimeout is Linux's TCP_USER_TIMEOUT, which package syscall does not
// name: how long sent bytes may stay unacknowledged, in ms.
const tcpUserTimeout = 0x12

// schemes of a broker's address: what it is called here, and its usual port.
var schemes = map[string]struct{ scheme, port string }{
	"mqtt": {"tcp", "1883"}, "tcp": {"tcp", "1883"},
	"mqtts": {"ssl", "8883"}, "ssl": {"ssl", "8883"},
	"ws": {"ws", "80"}, "wss": {"wss", "443"},
}

// parseServer reads a broker's address: mqtt://host[:port] or tcp://, mqtts://
// or ssl:// with TLS, ws:// or wss:// for WebSocket, which may have a path.
func parseServer(server string) (*url.URL, error) {
	u, err := url.Parse(server)
	var bad *url.Error
	if errors.As(err, &bad) { // whole, it would show a password
		return nil, fmt.Errorf("broker address: write it as mqtt://host:1883: %w", bad.Err)
	}
	s, known := schemes[u.Scheme]
	if !known || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && s.scheme[0] != 'w' {
		return nil, fmt.Errorf("broker address %q: write it as mqtt://host:1883, mqtts://host:8883, ws://host:9001/path or wss://host/path, without user and password", u.Redacted())
	}
	u.Scheme = s.scheme
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), s.port)
	}
	return u, nil
}

// clientOptions are those of every connection we make. paho's own reconnecting
// and its stores stay off: a token that it completes after it has reconnected
// proves nothing, and the journal is the store. When ctx ends the connection
// is closed without DISCONNECT, so the broker publishes the will.
func clientOptions(ctx context.Context, server *url.URL, security *tls.Config, clientID string, keepAlive, writeTimeout time.Duration) *paho.ClientOptions {
	o := paho.NewClientOptions()
	o.Servers = []*url.URL{server}
	o.SetClientID(clientID).SetCleanSession(true)
	o.SetProtocolVersion(4) // 3.1.1; unset, paho would try 3.1 as well and report that one's refusal
	o.SetAutoReconnect(false).SetConnectRetry(false)
	o.SetConnectTimeout(connectTimeout).SetWriteTimeout(writeTimeout)
	// The ping goes out at most a quarter late and its answer is missed at
	// most a quarter late, so a silent broker shows within two of keepAlive.
	o.SetKeepAlive(keepAlive).SetPingTimeout(keepAlive / 2)
	o.SetCustomOpenConnectionFn(func(u *url.URL, _ paho.ClientOptions) (net.Conn, error) {
		conn, err := dial(ctx, u, security, keepAlive)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		return newClip(fragile{conn}), nil
	})
	return o
}

// fragile is a connection that a failed write ends. paho goes on with the next
// message before it has closed the connection; that one would come without the
// one before it, or inside it when half of it was written.
type fragile struct{ net.Conn }

func (f fragile) Write(b []byte) (int, error) {
	n, err := f.Conn.Write(b)
	if err != nil {
		f.Close()
	}
	return n, err
}

func dial(ctx context.Context, server *url.URL, security *tls.Config, silence time.Duration) (net.Conn, error) {
	switch server.Scheme {
	case "ws", "wss":
		return paho.NewWebsocket(server.String(), security, connectTimeout, nil, nil)
	case "ssl":
		conn, err := dialTCP(ctx, server.Host, silence)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, security)
		bounded, done := context.WithTimeout(ctx, connectTimeout)
		defer done()
		if err := secure.HandshakeContext(bounded); err != nil {
			conn.Close()
			return nil, err
		}
		return secure, nil
	}
	return dialTCP(ctx, server.Host, silence)
}

// dialTCP connects so that the kernel notices a peer that has vanished, even
// while a full send buffer keeps paho's own ping from being written.
func dialTCP(ctx context.Context, address string, silence time.Duration) (net.Conn, error) {
	d := net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: max(silence/4, time.Second), Count: 4},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			if failed := c.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(silence.Milliseconds()))
			}); failed != nil {
				return failed
			}
			return err
		},
	}
	return d.DialContext(ctx, "tcp", address)
}
