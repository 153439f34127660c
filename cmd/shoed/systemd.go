package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"shoed/mqtt"
	"shoed/round"
)

// systemd is the service manager, told how the table is over its datagram
// socket (sd_notify(3)). nil is a run without one: nothing is told.
type systemd struct {
	conn  *net.UnixConn
	feed  time.Duration // how often its watchdog wants to hear of the core; 0 never
	fed   time.Time     // the core's own
	state string        // told last
}

// notifyMost is how long a manager that does not read may hold whoever tells it
// something.
const notifyMost = 100 * time.Millisecond

// openSystemd connects to the manager that the environment names, if any.
func openSystemd(getenv func(string) string) (*systemd, error) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // a leading @ is the abstract name space here too
	if err != nil {
		return nil, fmt.Errorf("systemd cannot be told that the table serves: NOTIFY_SOCKET: %w", err)
	}
	m := &systemd{conn: conn}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m, nil // it watches another process
	}
	if limit := getenv("WATCHDOG_USEC"); limit != "" {
		usec, err := strconv.ParseInt(limit, 10, 64)
		if err != nil || usec <= 0 || usec > int64(time.Hour/time.Microsecond) {
			return nil, errors.Join(fmt.Errorf("WATCHDOG_USEC=%q: want microseconds, at most an hour", limit), conn.Close())
		}
		m.feed = time.Duration(usec) * time.Microsecond / 2
	}
	return m, nil
}

// notify sends an assignment, such as READY=1, from any goroutine. A manager that
// cannot be told sees what it waits for fail to come, and acts.
func (m *systemd) notify(assignment string) {
	if m == nil {
		return
	}
	m.conn.SetWriteDeadline(time.Now().Add(notifyMost))
	m.conn.Write([]byte(assignment))
}

// alive feeds the watchdog, when it is time. Only the core calls it: a core that
// is stuck is to be restarted.
func (m *systemd) alive() {
	if m == nil || m.feed == 0 {
		return
	}
	if now := time.Now(); now.Sub(m.fed) >= m.feed {
		m.fed = now
		m.notify("WATCHDOG=1")
	}
}

// status says in a line how the table is, when that has changed.
func (m *systemd) status(line string) {
	if m == nil || line == m.state {
		return
	}
	m.state = line
	m.notify("STATUS=" + line)
}

func (m *systemd) close() {
	if m != nil {
		m.conn.Close()
	}
}

// statusLine says what everybody may know of the table.
func statusLine(t *round.State, h *coreHealth, connected bool) string {
	alerts := 0
	for _, n := range activeAlerts(t) {
		alerts += n
	}
	line := fmt.Sprintf("shoe %d round %d %s; reader %s; broker %s; %d alerts", t.Shoe.No, t.Round.No, doing(t),
		either(t.ReaderDown, "down", "up"), either(connected, "connected", "away"), alerts)
	if h.storage != storageOK {
		line += "; holds: the journal cannot be written"
	}
	return line
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// doing is what the table does, in a word or two.
func doing(t *round.State) string {
	switch {
	case t.PausedBy != 0:
		return "paused"
	case t.Round.Open:
		return "dealing"
	case t.Shoe.Phase == round.NoShoe:
		return "without a shoe"
	case t.Shoe.Phase == round.ShoeFirst, t.Shoe.Phase == round.ShoeBurning:
		return "burning"
	case t.Shoe.Phase == round.ShoeOver:
		return "over"
	}
	return "between rounds"
}

// manageEvery is how soon systemd hears of a change, and a wanted restart comes
// when the shoe lets it.
const manageEvery = time.Second

// errRestart ends a service that is to be started anew.
var errRestart = errors.New("restart")

// manage tells systemd how the table is until ctx ends, and calls restart at
// once when that is asked for, or else when no card is in play.
func (s *service) manage(ctx context.Context, restart context.CancelCauseFunc) {
	s.systemd.notify("READY=1")
	look := time.NewTicker(manageEvery)
	defer look.Stop()
	begun := s.core.begun
	for wanted := false; ; {
		t := s.core.table.Load()
		s.systemd.status(statusLine(t, s.core.health.Load(), s.publisher.Connected()) + either(wanted, "; restarts at the change of the shoe", ""))
		if wanted && idle(t) {
			restart(errRestart)
		}
		select {
		case <-ctx.Done():
			return
		case now := <-s.restarts:
			wanted = true
			if now {
				restart(errRestart)
			}
		case <-begun:
			begun = nil
		case <-look.C:
		}
	}
}

// idle says that no card of a shoe is in play, so that a restart is not noticed.
func idle(t *round.State) bool {
	switch t.Shoe.Phase {
	case round.NoShoe, round.ShoeFirst, round.ShoeOver:
		return !t.Round.Open
	}
	return false
}

// reloading is reread, told to systemd. What then waits for the end of a round
// is no reload any more.
func (s *service) reloading() (*change, error) {
	s.systemd.notify("RELOADING=1")
	defer s.systemd.notify("READY=1")
	return s.reread()
}

// restart is what somebody at the table asks: to be started anew by systemd, now
// or at the change of the shoe. What is returned last does it, once the reply is
// out.
func (s *service) restart(body json.RawMessage, by string) (*mqtt.Reply, func(context.Context)) {
	var asked restartRequest
	if err := json.Unmarshal(body, &asked); err != nil {
		return mqtt.Refuse(mqtt.CodeBadRequest, "%v", err), nil
	}
	if s.systemd == nil {
		return mqtt.Refuse(mqtt.CodeNotApplicable, "it does not run under systemd, and nobody else would start it again: stop it and start it"), nil
	}
	s.log.Info("a restart is asked for", "code", "restart.asked", "by", by, "now", asked.Now)
	when := "it restarts at the change of the shoe"
	if asked.Now || idle(s.core.table.Load()) {
		when = "it restarts now"
	}
	return &mqtt.Reply{Status: mqtt.Accepted, Code: mqtt.CodeOK, Message: when}, func(ctx context.Context) {
		select {
		case s.restarts <- asked.Now:
		case <-ctx.Done(): // it is being stopped
		}
	}
}
