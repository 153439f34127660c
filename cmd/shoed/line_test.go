package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

// deviceServer passes bytes to whoever is connected, as a serial device server
// in TCP server mode does.
type deviceServer struct {
	t        testing.TB
	listener net.Listener
	accepted chan net.Conn
	client   net.Conn // nil before the first send
}

// serveLine puts a device server in the place of the line.
func (tb *table) serveLine() {
	tb.t.Helper()
	tb.server = openDeviceServer(tb.t, "127.0.0.1:0")
	tb.t.Cleanup(func() { tb.server.stop() })
	text, err := os.ReadFile(tb.config)
	if err != nil {
		tb.t.Fatal(err)
	}
	address := fmt.Sprintf("device = %q", "tcp://"+tb.server.listener.Addr().String())
	changed := strings.Replace(string(text), fmt.Sprintf("device = %q", tb.port()), address, 1)
	if err := os.WriteFile(tb.config, []byte(changed), 0o600); err != nil {
		tb.t.Fatal(err)
	}
}

func openDeviceServer(t testing.TB, address string) *deviceServer {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &deviceServer{t: t, listener: l, accepted: make(chan net.Conn, 1)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted <- c
		}
	}()
	return s
}

func (s *deviceServer) send(b []byte) {
	s.t.Helper()
	if s.client == nil {
		select {
		case s.client = <-s.accepted:
		case <-time.After(patience):
			s.t.Fatalf("nobody connected to the device server within %v", patience)
		}
	}
	if _, err := s.client.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// stop ends the server as if it lost its power for a moment.
func (s *deviceServer) stop() {
	s.listener.Close()
	if s.client != nil {
		s.client.Close()
	}
}

// TestDeviceServerRestarts: a device server that goes away in the middle of a
// round and comes back; the open round waits to be confirmed, and goes on.
func TestDeviceServerRestarts(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url())
	tb.serveLine()
	tb.running()
	startShoe(t, tb)
	eventually(t, "round 1 open", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhaseDealing }))
	address := tb.server.listener.Addr().String()
	tb.server.stop()
	eventually(t, "reader.lost", auditor.see(func(a *witness) bool { return a.state.Paused != nil && a.state.Paused.Code == "reader.lost" }))
	eventually(t, "the cause in the log", func() bool { return strings.Contains(tb.log.String(), "nothing listens on that port") })
	tb.server = openDeviceServer(t, address)
	eventually(t, "the alert reader.gap", auditor.see(func(a *witness) bool {
		return a.state.Devices.Reader == "up" && a.state.Phase == mqtt.PhasePaused
	}))
	if err := tb.answer("confirm"); err != nil {
		t.Fatal(err)
	}
	tb.send(card(t, '4', round.ToBanker, 1, "7c"))
	eventually(t, "the next card", auditor.see(func(a *witness) bool {
		return a.state.Round != nil && len(a.state.Round.Banker.Cards) == 1
	}))
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
	for _, want := range []string{"code=device.down", "code=device.up", "tcp://" + address + ": connection lost: the device server closed the connection"} {
		if !strings.Contains(tb.log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, tb.log)
		}
	}
}

// TestDeviceServerRestartsBetweenRounds: it goes away and comes back after each
// of the first rounds of the real capture, and no round is lost or changed.
func TestDeviceServerRestartsBetweenRounds(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url(), strings.Split(captureRules, ",")...)
	tb.serveLine()
	tb.running()
	decoder, err := scanner.New("angel", scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	verdicts := 0
	tb.play(func(part []byte) {
		readings := decoder.Feed(time.Now(), part, nil)
		if verdicts == 5 || !slices.ContainsFunc(readings, func(r scanner.Reading) bool { return r.Input.Kind == round.InVerdict }) {
			return
		}
		verdicts++
		eventually(t, "the round", func() bool { return len(auditor.decided(t)) == verdicts })
		address := tb.server.listener.Addr().String()
		tb.server.stop()
		eventually(t, "reader down", auditor.see(func(a *witness) bool { return a.state.Devices.Reader == "down" }))
		tb.server = openDeviceServer(t, address)
		eventually(t, "reader up", auditor.see(func(a *witness) bool { return a.state.Devices.Reader == "up" }))
	})
	if verdicts != 5 {
		t.Errorf("restarted %d times", verdicts)
	}
	checkCapturedRounds(t, tb, auditor)
}
