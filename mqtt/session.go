package mqtt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"shoed/round"
)

const (
	readAhead   = 64                      // events read from the outbox at once: a few 10 KB
	outboxRetry = 5 * time.Second         // after a failure to read it: a full or failing disk does not change faster
	flushWait   = 1500 * time.Millisecond // of a stop's two seconds, for what is still in the outbox
	stoppedWait = 500 * time.Millisecond  // and for saying so
	ownRoom     = 16                      // own status messages that may wait: one comes with each connection of the table
	loopback    = "loopback"              // the command that the table gives itself for it
)

// documents are the retained ones besides status, in the order in which they
// are published (contract.md, Order 2 and 4): state last.
var documents = [...]struct {
	name  string
	build func(*Publisher, Envelope, *round.State) any
	// same reports that a state says what the one told did. It spares building
	// what seldom changes with every card; nil where that costs little.
	same func(told, now *round.State) bool
	// eachSeq: published for each new seq even if nothing else in it changed,
	// because a late board counts events from there.
	eachSeq bool
}{
	{name: "info", build: func(p *Publisher, env Envelope, s *round.State) any {
		return p.info(env, s)
	}, same: func(told, now *round.State) bool { return told.Rules == now.Rules }},
	{name: "roads", build: func(_ *Publisher, env Envelope, s *round.State) any { return RoadsOf(env, s) }, same: (*round.State).SameRoads},
	{name: "insurance", build: func(_ *Publisher, env Envelope, s *round.State) any { return InsuranceOf(env, s) }},
	{name: "alerts", build: func(p *Publisher, env Envelope, s *round.State) any { return AlertsOf(env, s, p.raised) }, same: alertsAlike},
	{name: "state", build: func(_ *Publisher, env Envelope, s *round.State) any { return StateOf(env, s) }, eachSeq: true},
}

// session is one connection to a broker. All of it is used by the goroutine of
// Run only; paho's goroutines speak to it through lost and own.
type session struct {
	p       *Publisher
	server  *url.URL
	number  uint64
	client  paho.Client
	cancel  context.CancelFunc // closes the connection without DISCONNECT
	lost    chan error
	own     chan seen
	echo    chan struct{}    // our own loopback was heard
	loop    <-chan time.Time // it is late; nil while none is awaited
	was     bool             // this process has been online on this broker before
	delayed uint64           // events up to this one are marked delayed

	batch  []Record // read from the outbox, not sent
	window []sent   // sent, not acknowledged; oldest first
	handed uint64   // last event sent
	acked  uint64   // every event up to it is acknowledged
	retry  <-chan time.Time

	audited   uint64   // the journal's number up to which audit was sent
	aside     []Record // read for audit, not sent
	replaying *Replay  // under way

	kept  [len(documents)][]byte // the last acknowledged content of each document
	told  round.State            // the state that the documents tell
	facts *Facts                 // and the facts
}

// sent is an event on its way.
type sent struct {
	seq   uint64
	token paho.Token
	at    time.Time
}

// seen is a status message of our own topic.
type seen struct {
	Status
	retained bool
}

var errDuplicate = errors.New("another process publishes this table")

// connect makes a connection and reports when it cannot.
func (p *Publisher) connect(ctx context.Context, server *url.URL) (*session, error) {
	number, err := p.session()
	if err != nil {
		p.report(slog.LevelError, "session_unsaved", nil, "cannot connect to a broker: look at the journal's disk", "error", err)
		return nil, err
	}
	will, err := p.status(Offline, number, p.o.Outbox.Table().Seq, "connection lost")
	if err != nil {
		return nil, err
	}
	// The connection outlives ctx by the time that a stop takes.
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{
		p: p, server: server, number: number, was: p.online[server.Host],
		cancel: cancel, lost: make(chan error, 1), own: make(chan seen, ownRoom), echo: make(chan struct{}, 1),
	}
	o := clientOptions(alive, server, p.security(server), p.o.ClientID, p.o.KeepAlive, p.o.WriteTimeout)
	o.SetUsername(p.o.User).SetPassword(p.o.Password)
	o.SetBinaryWill(p.topic("status"), will, 1, true)
	o.SetConnectionLostHandler(func(_ paho.Client, err error) { s.lost <- err }) // once a client
	s.client = paho.NewClient(o)
	token := s.client.Connect().(*paho.ConnectToken)
	select {
	case <-token.Done():
	case <-ctx.Done():
		cancel()
		<-token.Done()
	}
	err = token.Error()
	p.warnOfExpiry()
	var op *net.OpError
	p.fresh = errors.As(err, &op) && op.Op == "dial"
	if err == nil {
		return s, nil
	}
	s.drop()
	if ctx.Err() == nil {
		p.refused(server, token.ReturnCode(), err)
	}
	return nil, err
}

// refused reports why no connection came about.
func (p *Publisher) refused(server *url.URL, code byte, err error) {
	switch code {
	case packets.ErrRefusedBadUsernameOrPassword, packets.ErrRefusedNotAuthorised, packets.ErrRefusedIDRejected:
		p.report(slog.LevelError, "broker_refused", server, "the broker refuses this table: check its user, password and client id there and here",
			"user", p.o.User, "client", p.o.ClientID, "error", err)
	default:
		p.report(slog.LevelWarn, "broker_unreachable", server, "no connection to the broker", "error", err)
	}
}

// drop ends the connection at once. The broker publishes the will, unless stop
// has disconnected before.
func (s *session) drop() {
	s.p.up.Store(false)
	s.cancel()
	s.client.Disconnect(0) // after the connection is closed: only ends paho's goroutines
}

// run keeps the topics up to date until the connection or ctx ends; of the
// latter it tells the broker.
func (s *session) run(ctx context.Context) error {
	err := s.announce(ctx)
	if err == nil {
		err = s.follow(ctx)
	}
	switch {
	case ctx.Err() == nil || errors.Is(err, errDuplicate):
		return err
	case !s.client.IsConnectionOpen():
		return fmt.Errorf("stop: not told to the broker: the connection was lost: %w", err)
	}
	return s.stop(ctx)
}

// announce takes a fresh connection to where events may follow (contract.md,
// Order 1 and 2).
func (s *session) announce(ctx context.Context) error {
	p := s.p
	if err := s.subscribe(ctx); err != nil {
		return err
	}
	s.acked = p.o.Outbox.Delivered()
	s.handed = s.acked
	s.audited = s.auditFrom()
	// The state may be ahead of the events here, and only here: a board shows
	// it at once and knows what then comes delayed as past.
	table := p.o.Outbox.Table()
	if err := s.publishDocuments(ctx, &table, true); err != nil {
		return err
	}
	if err := s.publishStatus(ctx, Online, ""); err != nil {
		return err
	}
	// What is durable by now, or was given to an earlier connection, was not
	// sent when it happened.
	s.delayed = max(p.o.Outbox.Table().Seq, p.handed)
	p.live.Add(1)
	p.up.Store(true)
	p.rival.Store(false)
	p.online[s.server.Host] = true
	p.report(slog.LevelInfo, "broker_connected", s.server, "connected to the broker", "session", s.number, "outbox", p.Standing().Outbox)
	return nil
}

// follow sends what the outbox has and the state after it, for as long as the
// connection lasts.
func (s *session) follow(ctx context.Context) error {
	health := s.nextHealth()
	again := s.p.o.After(s.p.o.LoopEvery)
	for {
		err := s.send()
		if err == nil {
			err = s.settle(ctx)
		}
		if err == nil {
			err = s.replay(ctx)
		}
		if err != nil {
			return err
		}
		head, late := s.oldest()
		select {
		case <-head:
			err = s.acknowledge()
		case <-late:
			err = fmt.Errorf("event %d: no acknowledgement within %v", s.window[0].seq, s.p.o.AckTimeout)
		case err = <-s.lost:
		case status := <-s.own:
			err = s.meet(ctx, status)
		case <-health:
			health = s.nextHealth()
			err = s.publishHealth()
		case <-again:
			again = s.p.o.After(s.p.o.LoopEvery)
			s.callSelf()
		case <-s.echo:
			s.loop, s.p.echoed[s.server.Host] = nil, true
		case <-s.loop:
			err = s.deaf()
		case m := <-s.p.replies:
			s.client.Publish(m.topic, 1, false, m.body) // unanswered, its sender asks again
		case <-s.retry:
			s.retry = nil
		case <-s.p.wake:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// send fills the window. The error is the connection's.
func (s *session) send() error {
	for len(s.window) < s.p.o.Window && s.retry == nil {
		next, err := s.next()
		if err != nil {
			// Nothing is skipped: whatever is wrong must be put right.
			s.p.report(slog.LevelError, "outbox_unreadable", nil, "events are not published: look at the journal", "after", s.handed, "error", err)
			s.batch, s.retry = nil, s.p.o.After(outboxRetry)
			return nil
		}
		if next.body == nil {
			return nil
		}
		token := s.client.Publish(s.p.topic(next.topic), 1, false, next.body)
		s.window = append(s.window, sent{next.seq, token, time.Now()})
		s.handed = next.seq
		s.p.handed = max(s.p.handed, next.seq)
		if done(token) && token.Error() != nil {
			return fmt.Errorf("%s %d: %w", next.topic, next.seq, token.Error())
		}
	}
	return nil
}

// item is a message that is due.
type item struct {
	topic string
	seq   uint64 // of the last event with it and those before it
	body  []byte // nil: none is due
}

// next takes the next message: an event, or what audit has to tell before it.
func (s *session) next() (item, error) {
	if len(s.batch) == 0 {
		if s.p.o.Outbox.Table().Seq <= s.handed {
			return item{}, nil
		}
		var err error
		if s.batch, err = s.p.o.Outbox.Events(s.handed, readAhead); err != nil || len(s.batch) == 0 {
			return item{}, err
		}
	}
	r := s.batch[0]
	if r.Seq <= s.handed {
		return item{}, fmt.Errorf("event %d comes after event %d", r.Seq, s.handed)
	}
	if body, err := s.nextAudit(&r); err != nil || body != nil {
		return item{"audit", s.handed, body}, err
	}
	if r.Seq != s.handed+1 {
		s.p.report(slog.LevelError, "outbox_gap", nil, "events are gone from the journal and cannot be sent", "after", s.handed, "next", r.Seq)
	}
	event, err := s.p.event(r, r.Seq <= s.delayed)
	if err != nil {
		return item{}, err
	}
	body, err := encode(event)
	if err != nil {
		return item{}, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	s.p.resolved("outbox_unreadable")
	s.batch = s.batch[1:]
	return item{"event", r.Seq, body}, nil
}

// oldest gives the channels that tell that the oldest event in flight has been
// answered, or should have been.
func (s *session) oldest() (answered <-chan struct{}, late <-chan time.Time) {
	if len(s.window) == 0 {
		return nil, nil
	}
	first := &s.window[0]
	return first.token.Done(), time.After(time.Until(first.at.Add(s.p.o.AckTimeout)))
}

// acknowledge moves the cursor over the oldest event in flight and those after
// it that are acknowledged already. A token with an error proves nothing, not
// even that the event was not sent.
func (s *session) acknowledge() error {
	before := s.acked
	var err error
	for len(s.window) > 0 && done(s.window[0].token) {
		first := s.window[0]
		if err = first.token.Error(); err != nil {
			err = fmt.Errorf("event %d: %w", first.seq, err)
			break
		}
		s.window, s.acked = s.window[1:], first.seq
	}
	if s.acked != before {
		s.deliver()
	}
	return err
}

func (s *session) deliver() {
	if err := s.p.o.Outbox.Deliver(s.acked); err != nil {
		s.p.report(slog.LevelError, "cursor_unsaved", nil, "acknowledged events will be sent again: look at the journal's disk", "seq", s.acked, "error", err)
		return
	}
	s.p.resolved("cursor_unsaved")
}

func done(token paho.Token) bool {
	select {
	case <-token.Done():
		return true
	default:
		return false
	}
}

// settle publishes the documents that have changed, once every event that they
// reflect is acknowledged.
func (s *session) settle(ctx context.Context) error {
	if len(s.window) > 0 || len(s.batch) > 0 {
		return nil
	}
	table := s.p.o.Outbox.Table()
	if table.Seq != s.acked {
		return nil
	}
	return s.publishDocuments(ctx, &table, false)
}

// publishDocuments publishes the documents in their order, all of them or those
// that differ, in more than seq, time and clock, from what this connection has had
// acknowledged.
func (s *session) publishDocuments(ctx context.Context, table *round.State, all bool) error {
	facts := s.p.facts()
	for i, d := range documents {
		if !all && d.same != nil && d.same(&s.told, table) && !(d.name == "info" && s.facts != facts) {
			continue
		}
		env := s.p.envelope(d.name, table.Seq, s.p.o.Now())
		body, err := encode(d.build(s.p, env, table))
		if err != nil {
			return err
		}
		head, err := json.Marshal(env)
		if err != nil {
			return err
		}
		content := body[len(head)-1:] // after the envelope, with which every document begins
		if !all && bytes.Equal(content, s.kept[i]) && !(d.eachSeq && s.told.Seq != table.Seq) {
			continue
		}
		if err := s.retain(ctx, d.name, body); err != nil {
			return err
		}
		s.kept[i] = content
	}
	s.told, s.facts = *table, facts
	return nil
}

func (s *session) publishStatus(ctx context.Context, state Life, reason string) error {
	body, err := s.p.status(state, s.number, s.p.o.Outbox.Table().Seq, reason)
	if err != nil {
		return err
	}
	return s.retain(ctx, "status", body)
}

// retain publishes a document and waits for its acknowledgement.
func (s *session) retain(ctx context.Context, name string, body []byte) error {
	if err := s.await(ctx, s.client.Publish(s.p.topic(name), 1, true, body)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// await waits until the broker has answered.
func (s *session) await(ctx context.Context, token paho.Token) error {
	select {
	case <-token.Done():
		return token.Error()
	case <-time.After(s.p.o.AckTimeout):
		return fmt.Errorf("no acknowledgement within %v", s.p.o.AckTimeout)
	case err := <-s.lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop sends what is left, as far as that goes quickly, and takes leave.
func (s *session) stop(ctx context.Context) error {
	reason := "stopped"
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		reason = cause.Error()
	}
	ctx = context.WithoutCancel(ctx)
	flush, done := context.WithTimeout(ctx, flushWait)
	defer done()
	if err := s.flush(flush); err != nil && flush.Err() == nil {
		return fmt.Errorf("stop: not told to the broker: %w", err)
	}
	leave, done := context.WithTimeout(ctx, stoppedWait)
	defer done()
	if err := s.publishStatus(leave, Stopped, reason); err != nil {
		return fmt.Errorf("stop: not told to the broker: %w", err)
	}
	s.client.Disconnect(uint(stoppedWait.Milliseconds()))
	return nil
}

// flush sends the outbox and the documents until nothing is left.
func (s *session) flush(ctx context.Context) error {
	for {
		if err := s.send(); err != nil {
			return err
		}
		if len(s.window) == 0 {
			return s.settle(ctx)
		}
		if err := s.await(ctx, s.window[0].token); err != nil {
			return err
		}
		if err := s.acknowledge(); err != nil {
			return err
		}
	}
}
