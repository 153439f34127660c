package mqtt

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/gorilla/websocket"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func TestBrokerAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ tcp, web, why string }{
		{"0.0.0.0:0", "", "not on the loopback"},
		{":0", "", "not on the loopback"},
		{"[::]:0", "", "not on the loopback"},
		{"192.0.2.1:1883", "", "not on the loopback"},
		{"127.0.0.1:0", "0.0.0.0:0", "not on the loopback"},
		{"127.0.0.1", "", "write it as 127.0.0.1:1883"},
		{"", "", "not on the loopback"},
		{taken.Addr().String(), "", "address already in use"},
		{"127.0.0.1:0", taken.Addr().String(), "address already in use"},
	} {
		b, err := OpenBroker(BrokerOptions{TCP: c.tcp, WebSocket: c.web, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			b.Close()
			t.Errorf("%q, %q: no error", c.tcp, c.web)
		} else if !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q, %q: %v, want %q in it", c.tcp, c.web, err, c.why)
		}
	}
	for _, addr := range []string{"localhost:0", "127.0.0.1:0", freePort(t)} {
		b, err := OpenBroker(BrokerOptions{TCP: addr, WebSocket: addr[:strings.IndexByte(addr, ':')] + ":0", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		for _, real := range []string{b.TCP, b.WebSocket} {
			conn, err := net.Dial("tcp", real)
			if err != nil {
				t.Errorf("%s: %v", addr, err)
				continue
			}
			conn.Close()
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if conn, err := net.Dial("tcp", b.TCP); err == nil {
			conn.Close()
			t.Errorf("%s: still there after Close", addr)
		}
	}
}

// The library's messages are for debugging only.
func TestBrokerChatter(t *testing.T) {
	var all, info bytes.Buffer
	for level, out := range map[slog.Level]*bytes.Buffer{slog.LevelDebug: &all, slog.LevelInfo: &info} {
		locked := &lines{}
		b, err := OpenBroker(BrokerOptions{TCP: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(locked, &slog.HandlerOptions{Level: level}))})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", b.TCP)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		conn.Read(make([]byte, 1)) // until it is thrown out
		conn.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		out.WriteString(locked.String())
	}
	if info.Len() > 0 {
		t.Errorf("above debug: %s", &info)
	}
	if !strings.Contains(all.String(), "level=DEBUG") || strings.Contains(all.String(), "level=WARN") {
		t.Errorf("for debugging: %s", &all)
	}
}

// Close does not wait for those who have not said what they are.
func TestBrokerCloseEndsAll(t *testing.T) {
	b, err := OpenBroker(BrokerOptions{TCP: "127.0.0.1:0", WebSocket: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	web, _, err := websocket.DefaultDialer.Dial("ws://"+b.WebSocket, nil)
	if err != nil {
		t.Fatal(err)
	}
	conns := []net.Conn{dialMQTT(t, b.TCP, "known"), web.NetConn()}
	for _, addr := range []string{b.TCP, b.WebSocket} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	began := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > brokerClose/2 {
		t.Errorf("Close took %v", took)
	}
	for i, conn := range conns {
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d is still open", i)
		}
		conn.Close()
	}
}

// Whoever opens connections and says nothing gets a bounded number of them.
func TestBrokerConnectionsAreBounded(t *testing.T) {
	b := openBroker(t)
	conns := make([]net.Conn, brokerConns+1)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", b.TCP); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	for i, want := range map[int]error{0: os.ErrDeadlineExceeded, brokerConns - 1: os.ErrDeadlineExceeded, brokerConns: io.EOF} {
		if i == brokerConns {
			conns[i].SetDeadline(time.Now().Add(brokerHello / 2))
		} else {
			conns[i].SetDeadline(time.Now().Add(50 * time.Millisecond))
		}
		if _, err := conns[i].Read(make([]byte, 1)); !errors.Is(err, want) {
			t.Errorf("connection %d: %v, want %v", i, err, want)
		}
	}
	conns[0].Close()
	until(t, "room for another", func() bool {
		conn, err := net.Dial("tcp", b.TCP)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
		_, err = conn.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded)
	})
}

// The library's own way of closing clients was seen, about once in a thousand
// times, to wait for ever for one that left at that moment.
func TestBrokerClosesByItself(t *testing.T) {
	l, err := listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	d := door{listeners.NewNet("tcp", l)}
	d.Close(func(string) { t.Error("the library is to close the clients") })
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("not closed: %v", err)
	}
}

// A client that comes back at once, or beside its old connection, hears what it
// subscribes.
func TestBrokerClientReturns(t *testing.T) {
	b := openBroker(t)
	other := connectAs(t, b.TCP, "", "", func(c *packets.ConnectPacket) { c.ClientIdentifier = "other" })
	for n := range 2000 {
		w := connectAs(t, b.TCP, "", "", func(c *packets.ConnectPacket) { c.ClientIdentifier = "one" })
		w.subscribe("x")
		other.publish("x", strconv.Itoa(n), 0, false)
		w.upTo(strconv.Itoa(n))
		if n%2 == 0 {
			w.conn.Close()
		}
	}
}

// dialMQTT connects without a client library.
func dialMQTT(t *testing.T, addr, id string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion, connect.CleanSession, connect.ClientIdentifier = "MQTT", 4, true, id
	if err := connect.Write(conn); err != nil {
		t.Fatal(err)
	}
	if packet, err := packets.ReadPacket(conn); err != nil || packet.(*packets.ConnackPacket).ReturnCode != 0 {
		t.Fatalf("%v, %v", packet, err)
	}
	return conn
}

func connectTo(t *testing.T, server, id string) paho.Client {
	t.Helper()
	o := paho.NewClientOptions().AddBroker(server).SetClientID(id).SetAutoReconnect(false).SetWriteTimeout(patience)
	c := paho.NewClient(o)
	if token := c.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatal(token.Error())
	}
	t.Cleanup(func() { c.Disconnect(0) })
	return c
}

// A board that hangs, on whichever listener, is cut before it holds up the
// table. The library by itself waits for one and a half of its keepalives.
func TestBrokerHangingConsumer(t *testing.T) {
	b := openBroker(t)
	for _, server := range []string{"tcp://" + b.TCP, "ws://" + b.WebSocket} {
		t.Run(server, func(t *testing.T) {
			block := make(chan bool)
			defer close(block)
			hanging := connectTo(t, server, "hanging")
			token := hanging.Subscribe("big", 1, func(paho.Client, paho.Message) { <-block })
			if !token.WaitTimeout(patience) || token.Error() != nil {
				t.Fatal(token.Error())
			}
			p := connectTo(t, "tcp://"+b.TCP, "publisher")
			payload := make([]byte, 30<<10)
			var longest time.Duration
			for range 600 { // 18 MB: more than the kernel buffers
				began := time.Now()
				if token := p.Publish("big", 1, false, payload); !token.WaitTimeout(patience) || token.Error() != nil {
					t.Fatal(token.Error())
				}
				longest = max(longest, time.Since(began))
			}
			if longest > brokerWrite+time.Second {
				t.Errorf("the publisher was held up for %v", longest)
			}
			t.Logf("longest wait of the publisher: %v", longest)
		})
	}
}

func TestBrokerLimits(t *testing.T) {
	b := openBroker(t)
	c := connectTo(t, "tcp://"+b.TCP, "big")
	if token := c.Publish("x", 1, false, make([]byte, maxMessage)); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Errorf("the largest message: %v", token.Error())
	}
	if token := c.Publish("x", 1, false, make([]byte, brokerPacket)); !token.WaitTimeout(patience) || token.Error() == nil {
		t.Error("a message beyond the limit was taken")
	}
	for n := 0; ; n++ {
		conn, err := net.Dial("tcp", b.TCP)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
		connect.ProtocolName, connect.ProtocolVersion, connect.CleanSession = "MQTT", 4, true
		connect.ClientIdentifier = strings.Repeat("x", n+1)
		connect.Write(conn)
		packet, err := packets.ReadPacket(conn)
		if err != nil {
			t.Fatal(err)
		}
		if code := packet.(*packets.ConnackPacket).ReturnCode; code != 0 {
			if n != brokerClients || code != packets.ErrRefusedServerUnavailable {
				t.Errorf("client %d is refused with %d", n, code)
			}
			return
		}
		if n > brokerClients {
			t.Fatalf("%d clients", n)
		}
	}
}

// Retained documents outlive the library's day: nothing expires.
func TestBrokerKeepsDocuments(t *testing.T) {
	if c := capabilities(); c.MaximumMessageExpiryInterval != 0 {
		t.Errorf("messages expire after %d s", c.MaximumMessageExpiryInterval)
	}
	b := openBroker(t)
	c := connectTo(t, "tcp://"+b.TCP, "p")
	if token := c.Publish("x", 1, true, "document"); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatal(token.Error())
	}
	got := make(chan string, 1)
	connectTo(t, "ws://"+b.WebSocket, "s").Subscribe("x", 1, func(_ paho.Client, m paho.Message) { got <- string(m.Payload()) })
	select {
	case body := <-got:
		if body != "document" {
			t.Errorf("got %q", body)
		}
	case <-time.After(patience):
		t.Error("no document")
	}
}
