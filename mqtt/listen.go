package mqtt

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/mochi-mqtt/server/v2/listeners"
)

const (
	// How long a connection may take to say what it is.
	brokerHello = 10 * time.Second
	// How long a write to a consumer may hang, which it does once the kernel's
	// buffers, of MBs, are full. The library writes under a lock that it takes
	// for every publication too, so a board that hangs would stop the table.
	brokerWrite = time.Second
	// Connections to a listener, those included that have not said what they
	// are: the library keeps a queue of some 64 KB for each.
	brokerConns = 4 * brokerClients
	// After a failure to accept, which is for want of descriptors.
	acceptPause = 100 * time.Millisecond
)

// listen opens a listener, and on an address that others could reach only if
// everybody is asked who he is.
func listen(address string, asked bool) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: address %q: write it as 127.0.0.1:1883 or [::1]:1883: %w", address, err)
	}
	if !asked && !a.IP.IsLoopback() {
		return nil, fmt.Errorf("embedded broker: address %q is not on the loopback: for access from outside give users, or use a broker of your own", address)
	}
	network := "tcp"
	if a.IP.To4() != nil {
		network = "tcp4" // else 0.0.0.0 would be every IPv6 address too
	}
	l, err := net.ListenTCP(network, a)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return &patient{Listener: l, open: map[*impatient]bool{}}, nil
}

// patient is a listener that survives a shortage of descriptors, where the
// library would stop listening, and gives a connection a while to begin. It
// knows its connections, so that Close ends them, also those that the library
// does not know yet.
type patient struct {
	net.Listener

	mu   sync.Mutex
	open map[*impatient]bool // nil once closed
}

// Accept waits for a connection.
func (l *patient) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			time.Sleep(acceptPause)
		default:
			if c := l.admit(conn); c != nil {
				return c, c.SetDeadline(time.Now().Add(brokerHello)) // the library sets its own after CONNECT
			}
			conn.Close() // too many, or closed, which the next Accept says
		}
	}
}

func (l *patient) admit(conn net.Conn) *impatient {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil || len(l.open) >= brokerConns {
		return nil
	}
	c := &impatient{conn, l}
	l.open[c] = true
	return c
}

// Close ends the listener and all its connections.
func (l *patient) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		c.Conn.Close()
	}
	l.open = nil
	return err
}

// impatient cuts the connection when a write hangs. A deadline would not do:
// the library and WebSocket set their own.
type impatient struct {
	net.Conn
	listener *patient
}

func (c *impatient) Write(b []byte) (int, error) {
	cut := time.AfterFunc(brokerWrite, func() { c.Conn.Close() })
	defer cut.Stop()
	return c.Conn.Write(b)
}

func (c *impatient) Close() error {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	delete(c.listener.open, c)
	return c.Conn.Close()
}

// door is the library's listener on one of ours, which ends the connections
// itself. The library would look for them under a lock that it takes twice for
// reading: a client that leaves in between waits for ever, and Close with it.
type door struct{ *listeners.Net }

// Close ends the listener and its connections.
func (d door) Close(listeners.CloseFn) { d.Net.Close(func(string) {}) }

// webSocket listens for MQTT in WebSockets. The library's own listens in its
// own goroutine, where it only logs that it cannot.
type webSocket struct {
	net.Listener
	conns chan net.Conn
	ended chan struct{}
}

var upgrader = websocket.Upgrader{
	Subprotocols: []string{"mqtt"},
	CheckOrigin:  func(*http.Request) bool { return true }, // a board's page may come from anywhere
}

// newWebSocket serves HTTP on l until that is closed.
func newWebSocket(l net.Listener, log *slog.Logger) *webSocket {
	w := &webSocket{l, make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: w, ReadHeaderTimeout: brokerHello, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		server.Serve(l)
		close(w.ended)
	}()
	return w
}

// ServeHTTP makes a WebSocket of a request and hands it to Accept.
func (l *webSocket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	web, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	conn := &webConn{Conn: web.NetConn(), web: web}
	conn.SetDeadline(time.Now().Add(brokerHello))
	select {
	case l.conns <- conn:
	case <-l.ended:
		conn.Close()
	}
}

// Accept waits for a WebSocket.
func (l *webSocket) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// webConn is the stream of bytes in a WebSocket's binary messages.
type webConn struct {
	net.Conn
	web     *websocket.Conn
	message io.Reader // the rest of one; nil between them
}

func (c *webConn) Read(b []byte) (int, error) {
	for {
		if c.message == nil {
			kind, r, err := c.web.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("a WebSocket message that is not binary")
			}
			c.message = r
		}
		n, err := c.message.Read(b)
		if errors.Is(err, io.EOF) {
			c.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (c *webConn) Write(b []byte) (int, error) {
	if err := c.web.WriteMessage(websocket.BinaryMessage, b); err != nil {
		return 0, err
	}
	return len(b), nil
}
