package mqtt

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"shoed/round"
)

// sequence is what a client sent, a word a packet.
func sequence(t *testing.T, sent []packets.ControlPacket) []string {
	t.Helper()
	var words []string
	for _, packet := range sent {
		switch p := packet.(type) {
		case *packets.ConnectPacket:
			words = append(words, fmt.Sprintf("CONNECT keepalive=%d clean=%v will=%s qos=%d retain=%v %v",
				p.Keepalive, p.CleanSession, p.WillTopic, p.WillQos, p.WillRetain, lifeOf(t, p.WillMessage)))
		case *packets.SubscribePacket:
			slices.Sort(p.Topics) // asked for in any order
			words = append(words, fmt.Sprintf("SUBSCRIBE %v qos=%v", p.Topics, p.Qoss))
		case *packets.PublishPacket:
			word := fmt.Sprintf("%s qos=%d retain=%v", filepath.Base(p.TopicName), p.Qos, p.Retain)
			if filepath.Base(p.TopicName) == "status" {
				word += " " + lifeOf(t, p.Payload)
			}
			if filepath.Base(p.TopicName) == "event" {
				var e Envelope
				json.Unmarshal(p.Payload, &e)
				word += fmt.Sprintf(" seq=%d delayed=%v", e.Seq, e.Delayed)
			}
			words = append(words, word)
		case *packets.PubackPacket, *packets.PingreqPacket:
		default:
			words = append(words, fmt.Sprintf("%T", p))
		}
	}
	return words
}

func lifeOf(t *testing.T, payload []byte) string {
	t.Helper()
	var s Status
	if err := json.Unmarshal(payload, &s); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s session=%d", s.State, s.Session)
}

// announced are the documents of a fresh connection (contract.md, Order 2).
var announced = []string{"info", "roads", "insurance", "alerts", "state", "status"}

// contract.md, topics and Order 1 to 4.
func TestConnectOrder(t *testing.T) {
	brokers(t, func(t *testing.T, addr string) {
		d := newTable(t, 1)
		d.deal(7)
		backlog := d.last()
		px := newProxy(t, addr)
		in := newInbox(t, addr)
		r := publish(t, d, px.addr, func(o *Options) { o.HealthEvery = time.Hour })
		in.hasEvent(backlog)
		d.deal(1)
		in.hasState(d.last())
		r.stop(errors.New("terminated"))
		in.has("stopped", func(m message) bool { return m.State == Stopped })
		until(t, "DISCONNECT", func() bool {
			return slices.Contains(sequence(t, px.packets()), "*packets.DisconnectPacket")
		})

		topic := "shoed/v1/house/table-1/status"
		want := []string{
			"CONNECT keepalive=20 clean=true will=" + topic + " qos=1 retain=true offline session=1",
			"SUBSCRIBE [shoed/v1/house/table-1/cmd/+/+ " + topic + "] qos=[1 1]",
			"info qos=1 retain=true",
			"roads qos=1 retain=true",
			"insurance qos=1 retain=true",
			"alerts qos=1 retain=true",
			"state qos=1 retain=true",
			"status qos=1 retain=true online session=1",
		}
		for seq := uint64(1); seq <= d.last(); seq++ {
			want = append(want, fmt.Sprintf("event qos=1 retain=false seq=%d delayed=%v", seq, seq <= backlog))
		}
		want = append(want, "state qos=1 retain=true", "status qos=1 retain=true stopped session=1", "*packets.DisconnectPacket")
		if got := sequence(t, px.packets()); !slices.Equal(got, want) {
			t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		in.check(d.last())

		late := newInbox(t, addr)
		late.has("status", func(m message) bool {
			return m.name == "status" && m.retained && m.State == Stopped && m.Reason == "terminated"
		})
		for _, name := range []string{"info", "roads", "insurance"} {
			late.has(name, func(m message) bool { return m.name == name && m.retained })
		}
		late.has("state", func(m message) bool { return m.name == "state" && m.retained && m.Seq == d.last() })
		if n := len(late.of("event")) + len(late.of("health")); n > 0 {
			t.Errorf("%d events or health messages are retained", n)
		}
	})
}

// contract.md, topics: health every 20 s ± 2 s, QoS 0, not retained.
func TestHealth(t *testing.T) {
	addr := openBroker(t).TCP
	d := newTable(t, 2)
	px := newProxy(t, addr)
	in := newInbox(t, addr)
	waits := make(chan time.Duration, 1000)
	age := int64(7)
	r := publish(t, d, px.addr, func(o *Options) {
		o.After = func(wait time.Duration) <-chan time.Time { waits <- wait; return time.After(wait / 1000) }
		o.Replies = func() map[ReplyCode]uint64 { return map[ReplyCode]uint64{CodeBusy: 7} }
		o.ReaderHealth = func() ReaderHealth {
			return ReaderHealth{Frames: 12, Refused: map[string]uint64{"checksum": 3}, LastFrameAgeMS: &age}
		}
		o.Storage = func() string { return "ok" }
		o.Machine = func() Machine {
			free, low := int64(1000), true
			return Machine{DataFreeBytes: &free, Undervoltage: &low}
		}
	})
	d.deal(5)
	in.hasEvent(d.last())
	sofar := len(in.of("health"))
	until(t, "health messages", func() bool { return len(in.of("health")) > sofar+3 })
	var h Health
	got := in.of("health")
	if err := json.Unmarshal(got[len(got)-1].body, &h); err != nil {
		t.Fatal(err)
	}
	if h.Seq != d.last() || h.RSSBytes < 1<<20 || h.Reader == nil || h.Reader.Frames != 12 || h.Reader.Refused["checksum"] != 3 ||
		*h.Reader.LastFrameAgeMS != 7 || h.Chain == nil || h.Chain.Seq != d.last() || !h.Chain.SignedBy(key.Public().(ed25519.PublicKey), &h.Envelope) || h.MQTT.Outbox != 0 || h.MQTT.OldestAgeMS != nil || h.MQTT.Reconnects != 0 || h.Storage != "ok" ||
		*h.DataFreeBytes != 1000 || !*h.Undervoltage || h.Throttled != nil || h.Commands[CodeBusy] != 7 {
		t.Errorf("health: %s", got[len(got)-1].body)
	}
	if !slices.Contains(sequence(t, px.packets()), "health qos=0 retain=false") {
		t.Error("health is not sent with QoS 0, not retained")
	}
	r.stop(nil)
	for close(waits); ; {
		w, more := <-waits
		if !more {
			break
		}
		if w != defaultLoop && (w < 18*time.Second || w > 22*time.Second) {
			t.Errorf("a health message after %v", w)
		}
	}
}

// Anybody may ask where the publisher stands, also while there is no broker.
func TestStanding(t *testing.T) {
	px := newProxy(t, openBroker(t).TCP)
	d := newTable(t, 36)
	r := publish(t, d, px.addr, func(o *Options) { o.Now = func() time.Time { return d.now().Add(time.Minute) } })
	is := func(what string, ok func(Standing) bool) {
		t.Helper()
		until(t, what, func() bool { return ok(r.Standing()) })
	}
	d.deal(3)
	is("all delivered", func(s Standing) bool {
		return s.Connected && s.Outbox == 0 && s.OldestAgeMS == nil && s.Reconnects == 0
	})
	px.shutAndCut()
	is("the loss", func(s Standing) bool { return !s.Connected })
	before := d.last()
	d.deal(1)
	first := d.now()
	d.deal(1)
	waits := d.last() - before
	is("what waits", func(s Standing) bool {
		return s.Outbox == waits && s.OldestAgeMS != nil && *s.OldestAgeMS == d.now().Add(time.Minute).Sub(first).Milliseconds()
	})
	px.open()
	is("all delivered", func(s Standing) bool { return s.Connected && s.Outbox == 0 && s.Reconnects > 0 })
	r.stop(nil)
	r.end()
	is("the end", func(s Standing) bool { return !s.Connected })
}

// While the outbox cannot be read, nothing is skipped, health says what waits,
// and all goes on when it can be.
func TestOutboxUnreadable(t *testing.T) {
	addr := openBroker(t).TCP
	d := newTable(t, 3)
	d.fail(errBroken)
	d.deal(5)
	in := newInbox(t, addr)
	r := publish(t, d, addr, func(o *Options) {
		o.After = func(wait time.Duration) <-chan time.Time { return time.After(wait / 1000) }
	})
	until(t, "several tries", func() bool { return r.log.count("code=outbox_unreadable") >= 3 })
	if r.log.count("times=3") > 0 {
		t.Error("the same failure is logged each time")
	}
	in.has("health", func(m message) bool {
		return m.name == "health" && strings.Contains(string(m.body), fmt.Sprintf(`"mqtt":{"outbox":%d`, d.last()))
	})
	if len(in.of("event")) > 0 {
		t.Error("events out of a broken outbox")
	}
	d.fail(nil)
	in.hasEvent(d.last())
	in.check(d.last())
}

// A journal that can keep neither cursor nor session number is reported once;
// what can be sent is sent, and after a reconnect sent again.
func TestJournalUnwritable(t *testing.T) {
	d := newTable(t, 23)
	d.deal(3)
	px := newProxy(t, openBroker(t).TCP)
	in := newInbox(t, px.target)
	sessions := 0 // used by Run only
	r := publish(t, d, px.addr, func(o *Options) {
		session, deliver := o.Outbox.Session, o.Outbox.Deliver
		o.Outbox.Session = func() (uint64, error) {
			if sessions++; sessions <= 3 {
				return 0, errBroken
			}
			return session()
		}
		o.Outbox.Deliver = func(seq uint64) error {
			if sessions == 4 {
				return errBroken
			}
			return deliver(seq)
		}
	})
	in.hasEvent(d.last())
	if d.cursor() != 0 || r.log.count("code=session_unsaved") != 2 || r.log.count("code=cursor_unsaved") == 0 {
		t.Errorf("cursor %d, log %s", d.cursor(), r.log)
	}
	until(t, "a cut", func() bool { return px.cut() > 0 })
	until(t, "delivery", func() bool { return d.cursor() == d.last() })
	in.has("a repeat", func(m message) bool { return m.name == "event" && m.Seq == 1 && m.Delayed })
	in.check(d.last())
}

// contract.md, Order 1: the will, when the connection is lost; and a new
// session after it.
func TestWill(t *testing.T) {
	brokers(t, func(t *testing.T, addr string) {
		d := newTable(t, 4)
		px := newProxy(t, addr)
		in := newInbox(t, addr)
		publish(t, d, px.addr, nil)
		in.has("online", func(m message) bool { return m.State == Online && m.Session == 1 })
		instance := in.of("status")[0].Instance
		px.shutAndCut()
		in.has("the will", func(m message) bool {
			return m.State == Offline && m.Session == 1 && m.Instance == instance && m.Reason == "connection lost"
		})
		d.deal(9)
		px.open()
		in.has("online", func(m message) bool { return m.State == Online && m.Session >= 2 && m.Instance == instance })
		in.hasEvent(d.last())
		for _, m := range in.of("event") {
			if !m.Delayed {
				t.Errorf("event %d happened while the broker was away and is not marked delayed", m.Seq)
			}
		}
		in.check(d.last())
	})
}

// The cursor moves over acknowledged events only, and contiguously.
func TestCursorOnlyOnAcknowledgement(t *testing.T) {
	s := script(t, 1, false)
	d := newTable(t, 5)
	d.deal(20)
	publish(t, d, s.addr, func(o *Options) { o.Window = 16; o.HealthEvery = time.Hour })
	for _, name := range announced {
		p := s.next(name)
		if d.cursor() != 0 {
			t.Fatal("the cursor moved before an event was sent")
		}
		s.acknowledge(p)
	}
	var window []*packets.PublishPacket
	for range 16 {
		window = append(window, s.next("event"))
	}
	for i := 15; i > 0; i-- { // all but the first
		s.acknowledge(window[i])
	}
	select {
	case p := <-s.got:
		t.Fatalf("more than the window in flight: %v", p)
	case <-time.After(50 * time.Millisecond): // nothing must come
	}
	if d.cursor() != 0 {
		t.Fatalf("the cursor is at %d with the first event unacknowledged", d.cursor())
	}
	s.acknowledge(window[0])
	until(t, "cursor", func() bool { return d.cursor() == 16 })
	for seq := uint64(17); seq <= d.last(); seq++ {
		p := s.next("event")
		var e Event
		if err := json.Unmarshal(p.Payload, &e); err != nil || e.Seq != seq {
			t.Fatalf("event %d, %v: want %d", e.Seq, err, seq)
		}
		s.acknowledge(p)
		until(t, "cursor", func() bool { return d.cursor() == seq })
	}
}

// An event without an acknowledgement is not "not sent": the connection is
// given up and the event sent again as a repeat.
func TestNoAcknowledgement(t *testing.T) {
	s := script(t, 1, false)
	d := newTable(t, 6)
	r := publish(t, d, s.addr, func(o *Options) { o.AckTimeout = 100 * time.Millisecond; o.HealthEvery = time.Hour })
	settle := func() {
		for _, name := range announced {
			s.acknowledge(s.next(name))
		}
	}
	settle()
	until(t, "connected", func() bool { return r.log.count("code=broker_connected") == 1 })
	d.deal(1)
	for try := range 3 {
		var e Event
		if err := json.Unmarshal(s.next("event").Payload, &e); err != nil || e.Seq != 1 || e.Delayed != (try > 0) {
			t.Fatalf("try %d: event %d, delayed %v, %v", try, e.Seq, e.Delayed, err)
		}
		settle()
	}
	if d.cursor() != 0 {
		t.Errorf("the cursor is at %d", d.cursor())
	}
	if r.log.count("code=broker_lost") == 0 || r.log.count("no acknowledgement within 100ms") == 0 {
		t.Errorf("not logged: %s", r.log)
	}
}

// A broker that is killed in mid-stream and comes back empty gets everything
// that it had not acknowledged, and all documents.
func TestBrokerKilled(t *testing.T) {
	for _, window := range []int{1, 16} {
		t.Run(fmt.Sprint("window ", window), func(t *testing.T) {
			m := startMosquitto(t)
			d := newTable(t, 7)
			px := newProxy(t, m.addr) // shut while the consumer is not there: a clean session misses what comes before
			in := &inbox{t: t}
			in.read(m.addr)
			publish(t, d, px.addr, func(o *Options) { o.Window = window })
			for kill := range 3 {
				dealt := make(chan bool)
				go func() { d.deal(300); close(dealt) }()
				in.hasEvent(d.last() + 50)
				px.refuse()
				m.kill()
				<-in.gone
				<-dealt
				m.start()
				in.read(m.addr)
				px.open()
				in.hasEvent(d.last())
				late := newInbox(t, m.addr)
				for _, name := range announced {
					late.has(name, func(m message) bool { return m.name == name && m.retained })
				}
				if t.Failed() {
					t.Fatalf("after kill %d", kill+1)
				}
			}
			in.hasState(d.last())
			in.check(d.last())
		})
	}
}

// A broker that hangs with its connections open is noticed within two
// keepalives, or by the missing acknowledgement, whichever is first.
func TestBrokerFrozen(t *testing.T) {
	for _, c := range []struct {
		name      string
		keepAlive time.Duration
		ack       time.Duration
		event     bool
		within    time.Duration
		why       string
	}{
		{"idle", time.Second, time.Minute, false, 2 * time.Second, "pingresp"},
		{"waiting for an acknowledgement", time.Minute, time.Second, true, time.Second, "no acknowledgement"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := startMosquitto(t)
			d := newTable(t, 8)
			in := newInbox(t, m.addr)
			r := publish(t, d, m.addr, func(o *Options) { o.KeepAlive, o.AckTimeout, o.HealthEvery = c.keepAlive, c.ack, time.Hour })
			d.deal(5)
			in.hasState(d.last())
			m.signal(syscall.SIGSTOP)
			frozen := time.Now()
			if c.event {
				d.deal(1)
			}
			until(t, "the loss", func() bool { return r.log.count("code=broker_lost") > 0 })
			if took := time.Since(frozen); took > c.within+time.Second { // the machine's own delays
				t.Errorf("noticed after %v, want within %v", took, c.within)
			}
			if r.log.count(c.why) == 0 {
				t.Errorf("lost for another reason: %s", r.log)
			}
			m.signal(syscall.SIGCONT)
			d.deal(5)
			in.hasEvent(d.last())
			in.has("online again", func(m message) bool { return m.State == Online && m.Session > 1 })
			until(t, "online as the last word", func() bool {
				all := in.of("status")
				return all[len(all)-1].State == Online
			})
			in.hasState(d.last())
		})
	}
}

// Several addresses: any that answers is taken, at once.
func TestSeveralServers(t *testing.T) {
	a, b := startMosquitto(t), startMosquitto(t)
	dead := freePort(t)
	d := newTable(t, 9)
	inA, inB := newInbox(t, a.addr), newInbox(t, b.addr)
	on := func(in *inbox, session uint64) bool {
		return slices.ContainsFunc(in.all(), func(m message) bool { return m.State == Online && m.Session >= session })
	}
	publish(t, d, dead, func(o *Options) { o.Servers = append(o.Servers, "mqtt://"+a.addr, "tcp://"+b.addr) })
	until(t, "online", func() bool { return on(inA, 1) || on(inB, 1) })
	first, in := a, inB
	if on(inB, 1) {
		first, in = b, inA
	}
	d.deal(5)
	until(t, "delivery", func() bool { return d.cursor() == d.last() })
	delivered := d.last()
	first.kill()
	d.deal(5)
	in.hasEvent(d.last())
	if events := in.of("event"); events[0].Seq != delivered+1 {
		t.Errorf("the second broker's first event is %d, want %d", events[0].Seq, delivered+1)
	}
}

// A refusal of the credentials says so in the log, and is tried again.
func TestRefused(t *testing.T) {
	m := startMosquitto(t, "allow_anonymous false")
	d := newTable(t, 10)
	d.deal(5)
	r := publish(t, d, m.addr, func(o *Options) { o.User, o.Password = desk, "secret-word" })
	until(t, "refusals", func() bool { return r.log.count("code=broker_refused") >= 3 })
	line := r.log.String()[:strings.IndexByte(r.log.String(), '\n')]
	for _, text := range []string{"level=ERROR", "check its user, password", "user=" + desk, "broker=" + m.addr, "error=\"not Authorized\""} {
		if !strings.Contains(line, text) {
			t.Errorf("%q is not in the line %s", text, line)
		}
	}
	m.kill()
	conf := m.lines()
	conf[len(conf)-1] = "allow_anonymous true"
	m.write(conf)
	m.start()
	in := newInbox(t, m.addr)
	in.has("online", func(m message) bool { return m.State == Online })
	until(t, "delivery", func() bool { return d.cursor() == d.last() })
	if strings.Contains(r.log.String(), "secret-word") {
		t.Error("the password is in the log")
	}
}

// A refused subscription is no error to paho (notes: only the code is stored).
func TestSubscriptionRefused(t *testing.T) {
	s := script(t, 0x80, true)
	d := newTable(t, 11)
	d.deal(3)
	r := publish(t, d, s.addr, func(o *Options) { o.User = desk })
	until(t, "tries", func() bool { return r.log.count("code=broker_lost") >= 2 })
	if r.log.count(`the broker refuses it (code 0x80): give user \"table-1\" the right to read it`) == 0 {
		t.Errorf("not said: %s", r.log)
	}
	for len(s.got) > 0 {
		if p, ok := (<-s.got).(*packets.PublishPacket); ok {
			t.Fatalf("published all the same: %v", p)
		}
	}
	if _, err := Subscribe(t.Context(), Account{Server: "mqtt://" + s.addr}, site, desk, nil); err == nil || !strings.Contains(err.Error(), "refused (code 0x80)") {
		t.Errorf("Subscribe: %v", err)
	}
}

// contract.md, Order 6: random(0, min(60 s, 1 s · 2^n)), no limit; a number
// that was never on the wire is used again; repeated failures collapse.
func TestReconnectPauses(t *testing.T) {
	d := newTable(t, 12)
	pauses := make(chan time.Duration)
	r := publish(t, d, freePort(t), func(o *Options) {
		o.After = func(wait time.Duration) <-chan time.Time {
			now := make(chan time.Time, 1)
			select {
			case pauses <- wait:
				now <- time.Time{}
			case <-time.After(patience):
			}
			return now
		}
		o.Rand = func(n int64) int64 { return n - 1 } // the longest of the allowed
	})
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 60}
	for i, w := range want {
		if got := <-pauses; got != w*time.Second {
			t.Errorf("pause %d is %v, want %v", i, got, w*time.Second)
		}
	}
	for range 100 {
		<-pauses
	}
	r.stop(nil)
	go func() {
		for range pauses { // it may be at one just now
		}
	}()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	close(pauses)
	if d.sessions != 1 {
		t.Errorf("%d session numbers were used without a connection", d.sessions)
	}
	if n := r.log.count("code=broker_unreachable"); n != 7 { // 1, 2, 4, … 64
		t.Errorf("%d lines for the same failure: %s", n, r.log)
	}
}

// contract.md, Order 5: own status seen offline, of an older session.
func TestOldWill(t *testing.T) {
	brokers(t, func(t *testing.T, addr string) {
		d := newTable(t, 13)
		d.sessions = 5
		in := newInbox(t, addr)
		r := publish(t, d, addr, nil)
		in.has("online", func(m message) bool { return m.State == Online })
		until(t, "connected", func() bool { return r.log.count("code=broker_connected") > 0 })
		for i, status := range []Status{
			{Envelope: Envelope{Epoch: "e1", Schema: "status/1.0"}, State: Offline, Instance: in.of("status")[0].Instance, Session: 5},
			{Envelope: Envelope{Epoch: "e1", Schema: "status/1.0"}, State: Offline, Instance: "a-dead-predecessor", Session: 4},
		} {
			say(t, addr, status)
			until(t, "online again", func() bool {
				all := in.of("status")
				return len(all) == 3+2*i && all[len(all)-1].State == Online && all[len(all)-1].Session == 6
			})
		}
	})
}

// say publishes a status that is not the publisher's.
func say(t *testing.T, addr string, status Status) {
	t.Helper()
	c := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + addr).SetClientID("another"))
	if token := c.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatal(token.Error())
	}
	defer c.Disconnect(100)
	epoch := status.Epoch
	status.Envelope = envelope("status", status.Seq)
	status.Epoch = epoch
	body, err := encode(status)
	if err != nil {
		t.Fatal(err)
	}
	if token := c.Publish(Topic(site, desk, "status"), 1, true, body); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatal(token.Error())
	}
}

// contract.md, Order 5: another process on the same table.
func TestDuplicate(t *testing.T) {
	for _, same := range []bool{false, true} {
		t.Run(fmt.Sprint("same client id ", same), func(t *testing.T) {
			brokers(t, func(t *testing.T, addr string) {
				pauses := make(chan time.Duration, 1000)
				start := func(seed uint64, client string) (*table, *running) {
					d := newTable(t, seed)
					d.sessions = 100 * seed
					return d, publish(t, d, addr, func(o *Options) {
						o.Epoch = "e" + strconv.FormatUint(seed, 10)
						o.ClientID = client
						o.After = func(wait time.Duration) <-chan time.Time {
							pauses <- wait
							return time.After(wait / 1000)
						}
					})
				}
				_, a := start(1, "a")
				until(t, "connected", func() bool { return a.log.count("code=broker_connected") > 0 })
				client := "b"
				if same {
					client = "a"
				}
				_, b := start(2, client)
				until(t, "the alarm", func() bool { return a.log.count("code=duplicate_table")+b.log.count("code=duplicate_table") > 0 })
				until(t, "the pause", func() bool { return <-pauses == time.Minute })
				b.stop(nil)
				if err := b.end(); err != nil {
					t.Log(err) // it may have been thrown out just then
				}
				in := newInbox(t, addr)
				in.has("the first as the only one", func(m message) bool { return m.Epoch == "e1" && m.State == Online })
			})
		})
	}
}

// A predecessor's retained status, or an old one of our own, is no duplicate.
func TestNoDuplicate(t *testing.T) {
	m := startMosquitto(t)
	say(t, m.addr, Status{Envelope: Envelope{Epoch: "e1", Schema: "status/1.0"}, State: Online, Instance: "before", Session: 3})
	d := newTable(t, 14)
	d.sessions = 7
	px := newProxy(t, m.addr)
	r := publish(t, d, px.addr, nil)
	for n := 1; n <= 3; n++ {
		until(t, "connected", func() bool { return r.log.count("code=broker_connected") >= min(n, 2) })
		d.deal(3)
		until(t, "delivery", func() bool { return d.cursor() == d.last() })
		px.shutAndCut()
		until(t, "loss", func() bool { return r.log.count("code=broker_lost") >= min(n, 2) })
		m.kill()
		m.start() // empty; then as from an old store:
		say(t, m.addr, Status{Envelope: Envelope{Epoch: "e1", Schema: "status/1.0"}, State: Online, Instance: "before", Session: uint64(n)})
		px.open()
	}
	d.deal(3)
	until(t, "delivery", func() bool { return d.cursor() == d.last() })
	if r.log.count("code=duplicate_table") > 0 {
		t.Errorf("a duplicate is seen where there is none: %s", r.log)
	}
}

// A stop sends what is left, says stopped, and leaves no will; without a
// broker it is quick.
func TestStop(t *testing.T) {
	addr := startMosquitto(t).addr
	d := newTable(t, 15)
	in := newInbox(t, addr)
	r := publish(t, d, addr, nil)
	d.deal(500)
	until(t, "connected", func() bool { return r.log.count("code=broker_connected") > 0 })
	r.stop(nil)
	if err := r.end(); err != nil {
		t.Error(err)
	}
	in.has("stopped", func(m message) bool { return m.State == Stopped })
	all := in.of("status")
	if last := all[len(all)-1]; last.State != Stopped || last.Seq != d.last() || last.Reason != "stopped" {
		t.Errorf("last status: %s", last.body)
	}
	in.check(d.last())

	silent := script(t, 1, true)
	silent.ack = false
	r = publish(t, d, silent.addr, nil)
	silent.next("info") // never acknowledged
	began := time.Now()
	r.stop(nil)
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "not told to the broker") {
		t.Errorf("stop with a silent broker: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// With a window of 16 the order holds as long as the connection does.
func TestWindowOrder(t *testing.T) {
	brokers(t, func(t *testing.T, addr string) {
		d := newTable(t, 16)
		in := newInbox(t, addr)
		r := publish(t, d, addr, func(o *Options) { o.Window = 16 })
		until(t, "connected", func() bool { return r.log.count("code=broker_connected") > 0 })
		d.deal(1500)
		in.hasState(d.last())
		if events := in.of("event"); len(events) != int(d.last()) {
			t.Errorf("%d messages for %d events", len(events), d.last())
		}
		in.check(d.last())
	})
}

// Whatever is cut at whatever byte, every event arrives, in order, repeats
// are marked, and no state is ahead of its events.
func TestRandomCuts(t *testing.T) {
	for _, window := range []int{1, 5, 16} {
		t.Run(fmt.Sprint("window ", window), func(t *testing.T) {
			brokers(t, func(t *testing.T, addr string) {
				seed := uint64(time.Now().UnixNano())
				if s := os.Getenv("SEED"); s != "" {
					seed, _ = strconv.ParseUint(s, 10, 64)
				}
				t.Logf("SEED=%d", seed)
				rng := rand.New(rand.NewPCG(seed, 1)) // used under the proxy's lock
				d := newTable(t, seed)
				px := newProxy(t, addr)
				px.limit(func() int64 { return rng.Int64N(16_000) })
				in := newInbox(t, addr)
				r := publish(t, d, px.addr, func(o *Options) {
					o.Window = window
					o.WriteTimeout = 100 * time.Millisecond // paho waits that long if the cut comes just as it takes a message
					o.After = func(wait time.Duration) <-chan time.Time { return time.After(wait / 10_000) }
				})
				until(t, "many cuts", func() bool {
					d.deal(1)
					px.mu.Lock()
					defer px.mu.Unlock()
					return px.accepts > 100
				})
				d.deal(20)
				px.limit(nil)
				px.cut()
				in.hasEvent(d.last())
				until(t, "delivery", func() bool { return d.cursor() == d.last() })
				d.deal(10)
				in.hasEvent(d.last()) // a connection that is lost late begins with the state
				in.hasState(d.last())
				in.check(d.last())
				t.Logf("%d events, %d event messages, %d connections, %d lost in the log", d.last(), len(in.of("event")), px.accepts, r.log.count("code=broker_lost"))
			})
		})
	}
}

// Nothing follows a message that was not written, or half.
func TestFailedWriteIsTheLast(t *testing.T) {
	server, err := parseServer("mqtt://" + openBroker(t).TCP)
	if err != nil {
		t.Fatal(err)
	}
	o := clientOptions(t.Context(), server, nil, "c", time.Second, time.Second)
	conn, err := o.CustomOpenConnectionFn(server, *o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(-time.Second))
	if _, err := conn.Write([]byte{1}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	conn.SetWriteDeadline(time.Time{})
	if _, err := conn.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("written after a failed write: %v", err)
	}
}

// A connection leaves nothing behind, whether the broker or the publisher
// gives it up.
func TestNothingLeftRunning(t *testing.T) {
	client := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "created by github.com/eclipse/paho")
	}
	until(t, "the end of other tests", func() bool { return client() == 0 })
	often := func(o *Options) {
		o.WriteTimeout, o.AckTimeout = 100*time.Millisecond, 5*time.Millisecond
		o.After = func(wait time.Duration) <-chan time.Time { return time.After(wait / 10_000) }
	}
	d := newTable(t, 17)
	px := newProxy(t, openBroker(t).TCP)
	r := publish(t, d, px.addr, often)
	for range 30 {
		d.deal(1)
		until(t, "delivery", func() bool { return d.cursor() == d.last() })
		until(t, "a cut", func() bool { return px.cut() > 0 })
	}
	px.shutAndCut()
	r.stop(nil)
	r.end() // of whatever the last cut left
	until(t, "the end of the client's goroutines", func() bool { return client() == 0 })

	s := script(t, 1, false)
	r = publish(t, d, s.addr, often)
	for range 10 {
		s.next("info") // and no answer
	}
	s.mu.Lock() // leave the connections open on this side
	defer s.mu.Unlock()
	r.stop(nil)
	r.end()
	until(t, "the end of the client's goroutines", func() bool { return client() == 0 })
}

// The state never runs ahead of the events, nor after the next one, however
// journal, state and publisher run against each other.
func TestStateAfterItsEvents(t *testing.T) {
	for name, change := range map[string]func(*table, *Outbox){
		"an event just after the look": func(d *table, o *Outbox) {
			left, look := 300, o.Table
			o.Table = func() round.State {
				s := look()
				if left > 0 {
					left--
					d.deal(1)
				}
				return s
			}
		},
		"a state behind its events": func(d *table, _ *Outbox) {
			d.behind = 4
			d.deal(5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr := openBroker(t).TCP
			d := newTable(t, 22)
			in := newInbox(t, addr)
			r := publish(t, d, addr, func(o *Options) {
				o.Window = 8
				change(d, &o.Outbox)
			})
			for range 50 {
				d.deal(20)
				until(t, "delivery", func() bool { r.Wake(); return d.cursor()+20 > d.last() })
			}
			d.mu.Lock()
			d.behind = 0
			d.mu.Unlock()
			until(t, "the last event", func() bool {
				r.Wake()
				return slices.ContainsFunc(in.of("event"), func(m message) bool { return m.Seq == d.last() })
			})
			until(t, "the last state", func() bool {
				r.Wake()
				states := in.of("state")
				return len(states) > 0 && states[len(states)-1].Seq == d.last()
			})
			in.check(d.last())
			r.stop(nil)
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TLS and WebSocket, as configuration offers them.
func TestSchemes(t *testing.T) {
	m := startMosquitto(t)
	_, plain, _ := net.SplitHostPort(m.addr)
	secure, web := freePort(t), freePort(t)
	_, securePort, _ := net.SplitHostPort(secure)
	_, webPort, _ := net.SplitHostPort(web)
	m.kill()
	m.write(append(m.lines(), "listener "+securePort+" 127.0.0.1",
		"certfile "+filepath.Join(certificates, "cert.pem"), "keyfile "+filepath.Join(certificates, "key.pem"),
		"listener "+webPort+" 127.0.0.1", "protocol websockets"))
	m.start()
	embedded := openBroker(t)
	for server, consumer := range map[string]string{
		"mqtt://127.0.0.1:" + plain: m.addr, "mqtts://" + secure: m.addr, "ssl://" + secure: m.addr, "ws://" + web + "/mqtt": m.addr,
		"ws://" + embedded.WebSocket: embedded.TCP,
	} {
		t.Run(server, func(t *testing.T) {
			d := newTable(t, 18)
			in := newInbox(t, consumer)
			r := publish(t, d, plain, func(o *Options) { o.Servers = []string{server} })
			d.deal(10)
			in.hasEvent(d.last())
			in.check(d.last())
			r.stop(nil)
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("wrong name in the certificate", func(t *testing.T) {
		r := publish(t, newTable(t, 19), plain, func(o *Options) { o.Servers = []string{"mqtts://localhost:" + securePort} })
		until(t, "the refusal", func() bool { return r.log.count("code=broker_unreachable") > 0 && r.log.count("x509") > 0 })
	})
}

func TestNew(t *testing.T) {
	good := func() Options {
		return Options{
			Servers: []string{"mqtt://127.0.0.1"}, ClientID: "c", Site: site, Table: desk, Epoch: "e",
			Outbox: newTable(t, 1).outbox(), Clock: func() string { return "synced" }, Key: key, Log: slog.New(slog.DiscardHandler),
		}
	}
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no server":       func(o *Options) { o.Servers = nil },
		"no scheme":       func(o *Options) { o.Servers = []string{"127.0.0.1:1883"} },
		"http":            func(o *Options) { o.Servers = []string{"http://a:1"} },
		"path":            func(o *Options) { o.Servers = []string{"mqtt://a/b"} },
		"password":        func(o *Options) { o.Servers = []string{"mqtt://u:secret@a"} },
		"bad url":         func(o *Options) { o.Servers = []string{"mqtt://u:secret@a:b:c"} },
		"site":            func(o *Options) { o.Site = "Casino" },
		"table":           func(o *Options) { o.Table = strings.Repeat("a", 33) },
		"wildcard":        func(o *Options) { o.Table = "+" },
		"client id":       func(o *Options) { o.ClientID = "" },
		"epoch":           func(o *Options) { o.Epoch = "" },
		"window":          func(o *Options) { o.Window = 17 },
		"negative window": func(o *Options) { o.Window = -1 },
		"keepalive":       func(o *Options) { o.KeepAlive = 1500 * time.Millisecond },
		"outbox":          func(o *Options) { o.Outbox.Deliver = nil },
		"clock":           func(o *Options) { o.Clock = nil },
		"log":             func(o *Options) { o.Log = nil },
		"key":             func(o *Options) { o.Key = nil },
	} {
		o := good()
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password is in the error: %v", name, err)
		}
	}
}

// A changed state without an event, such as bets opened, is told too.
func TestStateWithoutEvent(t *testing.T) {
	addr := openBroker(t).TCP
	d := newTable(t, 20)
	in := newInbox(t, addr)
	publish(t, d, addr, nil)
	d.deal(1)
	in.hasState(d.last())
	d.deal(5)
	in.hasState(d.last())
	d.do(round.Input{Kind: round.InBets, Open: true})
	in.has("the bets", func(m message) bool { return m.name == "state" && strings.Contains(string(m.body), `"bets":"open"`) })
	in.check(d.last())
}

// Subscribe tells of the loss, and ends with its context.
func TestSubscribeEnds(t *testing.T) {
	m := startMosquitto(t)
	in := newInbox(t, m.addr)
	m.kill()
	if err := <-in.gone; err == nil {
		t.Error("no error for a lost connection")
	}
	if _, err := Subscribe(t.Context(), Account{Server: "mqtt://" + m.addr}, site, desk, nil); err == nil {
		t.Error("no error without a broker")
	}
	m.start()
	ctx, cancel := context.WithCancel(context.Background())
	gone, err := Subscribe(ctx, Account{Server: "mqtt://" + m.addr}, site, desk, func(string, bool, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; err != nil {
		t.Error(err)
	}
}
