package mqtt

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"shoed/round"
)

const (
	maxWindow        = 16               // contract.md, Order 3: more is never needed and reorders more on failover
	firstPause       = time.Second      // contract.md, Order 6: random(0, min(60 s, 1 s · 2^n))
	longestPause     = time.Minute      // so that a broker that is back is found within a minute
	duplicatePause   = time.Minute      // contract.md, Order 5
	defaultKeepAlive = 20 * time.Second // contract.md, Order 1
	defaultWrite     = 3 * time.Second  // a healthy broker takes a message at once; more only delays noticing a stuck one
	defaultAck       = 10 * time.Second // a cluster that loses a node has been seen to stall for 6 s
	replyRoom        = 64               // replies that may wait: one is lost rather than the table held up
	replayRoom       = 4                // replays that may wait
	defaultLoop      = 5 * time.Minute  // a table that nobody can command is found before the next shoe
	defaultHealth    = 20 * time.Second // contract.md: ± a tenth
)

// Outbox is what a Publisher needs of the rest of the program. It is a struct
// of functions and not an interface, because no one thing offers all of it:
// events, cursor and counter are the journal's, the state is the core's.
// Table, Delivered and Events may be called from any goroutine, for Standing;
// the others from that of Run only.
type Outbox struct {
	// Events gives up to max public events that follow the one numbered
	// after, in order, all of them durable.
	Events func(after uint64, max int) ([]Record, error)
	// Audit gives events and commands, public or not, by the journal's own
	// numbers: those after one, up to another, at most max, in order. Optional:
	// nil publishes no audit.
	Audit func(after, through uint64, max int) ([]Record, error)
	// Deliver notes that a broker has acknowledged every event up to seq. It
	// need not be durable at once: what is lost of it is sent again.
	Deliver func(seq uint64) error
	// Delivered is the seq last noted.
	Delivered func() uint64
	// Session counts up and gives a number that no earlier call gave.
	Session func() (uint64, error)
	// Table is the latest adopted state; events up to its Seq are durable.
	Table func() round.State
	// Facts are what info tells besides the rules, at another address when they
	// change; optional.
	Facts func() *Facts
}

// event is the one public event of a number; false when it is none, was dropped
// or cannot be read, which shows where events are sent.
func (o *Outbox) event(seq uint64) (Record, bool) {
	if seq == 0 {
		return Record{}, false
	}
	records, err := o.Events(seq-1, 1)
	if err != nil || len(records) == 0 || records[0].Seq != seq {
		return Record{}, false
	}
	return records[0], true
}

// Options of a Publisher. Those said to be optional may be zero.
type Options struct {
	Servers  []string // mqtt://host:port; tried in random order
	User     string   // optional
	Password string   // optional
	TLS      TLS      // optional
	ClientID string   // the same at every start, so that a broker drops the connection of a dead predecessor

	Site, Table string // contract.md: [a-z0-9][a-z0-9-]{0,31}
	Epoch       string // id of the journal
	Instance    string // of this process; optional: random
	Software    Software
	Reader      Reader
	TimeZone    string
	Key         ed25519.PrivateKey // the table's, which signs the chain's heads
	Sim         bool               // everything comes from a simulated shoe

	Window       int           // events in flight, 1 to 16; optional: 1, which keeps their order in every case
	KeepAlive    time.Duration // optional: 20 s; whole seconds
	WriteTimeout time.Duration // optional: 3 s
	AckTimeout   time.Duration // how long an acknowledgement may take; optional: 10 s
	HealthEvery  time.Duration // optional: 20 s, ± a tenth
	LoopEvery    time.Duration // between proofs that commands still arrive; optional: 5 min

	// Command is given what comes on cmd/{user}/{command}, in a goroutine of the
	// connection that it must not hold up; optional.
	Command func(user, name string, retained bool, body []byte)

	Outbox       Outbox
	Clock        func() string                  // synced, holdover or unset
	ReaderHealth func() ReaderHealth            // optional
	Readers      func() map[string]ReaderHealth // of each source, nil for a table with one; optional
	Storage      func() string                  // ok or full; optional
	Machine      func() Machine                 // optional
	Replies      func() map[ReplyCode]uint64    // to commands, counted; optional
	Log          *slog.Logger

	Now   func() time.Time                     // optional: time.Now
	After func(time.Duration) <-chan time.Time // the pauses between tries and between health messages; optional: time.After
	Rand  func(n int64) int64                  // [0, n); optional: math/rand/v2
}

// Publisher keeps one table's topics up to date on a broker.
type Publisher struct {
	o       Options
	servers []*url.URL
	wake    chan struct{}
	replies chan outgoing
	replays chan Replay
	started time.Time
	expiry  atomic.Pointer[expiry] // of the last TLS handshake
	up      atomic.Bool            // a connection is live
	rival   atomic.Bool            // another process was seen that publishes this table
	live    atomic.Uint64          // connections that went live

	// Of the goroutine of Run:
	number  uint64          // of the session
	fresh   bool            // number has not been on the wire
	first   uint64          // the first session of this process
	handed  uint64          // last event handed to any connection so far
	online  map[string]bool // brokers on which this process has been online
	echoed  map[string]bool // brokers that gave the table's own loopback back
	repeats map[string]int  // how often the same has been reported
	good    *tls.Config     // of the TLS files as they last were right
	warned  warned

	evidence map[uint64]*round.EventText // alerts that stand, by the event that raised them
}

// outgoing is a message on its way to the goroutine of Run.
type outgoing struct {
	topic string
	body  []byte
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// New checks the options. The error says which one is wrong.
func New(o Options) (*Publisher, error) {
	p := &Publisher{o: o, wake: make(chan struct{}, 1), replies: make(chan outgoing, replyRoom), replays: make(chan Replay, replayRoom), started: time.Now(), online: map[string]bool{}, echoed: map[string]bool{}, repeats: map[string]int{}, evidence: map[uint64]*round.EventText{}}
	for _, server := range o.Servers {
		u, err := parseServer(server)
		if err != nil {
			return nil, err
		}
		p.servers = append(p.servers, u)
	}
	var err error
	if p.good, err = o.TLS.load(); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	p.o.Window = cmp.Or(o.Window, 1)
	p.o.KeepAlive = cmp.Or(o.KeepAlive, defaultKeepAlive)
	switch {
	case len(p.servers) == 0:
		return nil, errors.New("publisher: no broker address")
	case o.ClientID == "" || o.Epoch == "":
		return nil, errors.New("publisher: client id or epoch is missing")
	case len(o.Key) != ed25519.PrivateKeySize:
		return nil, fmt.Errorf("publisher: a key of %d bytes: want an Ed25519 key of %d", len(o.Key), ed25519.PrivateKeySize)
	case !validName.MatchString(o.Site), !validName.MatchString(o.Table):
		return nil, fmt.Errorf("publisher: site %q, table %q: want a-z, 0-9 and -, at most 32, the first no -", o.Site, o.Table)
	case p.o.Window < 1 || p.o.Window > maxWindow:
		return nil, fmt.Errorf("publisher: a window of %d: want 1 to %d", o.Window, maxWindow)
	case p.o.KeepAlive < time.Second || p.o.KeepAlive%time.Second != 0:
		return nil, fmt.Errorf("publisher: keepalive %v: want whole seconds", o.KeepAlive)
	case o.Log == nil, o.Clock == nil, o.Outbox.Events == nil, o.Outbox.Deliver == nil,
		o.Outbox.Delivered == nil, o.Outbox.Session == nil, o.Outbox.Table == nil:
		return nil, errors.New("publisher: log, clock or a function of the outbox is missing")
	}
	p.defaults()
	return p, nil
}

func (p *Publisher) defaults() {
	o := &p.o
	o.Instance = cmp.Or(o.Instance, rand.Text())
	o.WriteTimeout = cmp.Or(o.WriteTimeout, defaultWrite)
	o.AckTimeout = cmp.Or(o.AckTimeout, defaultAck)
	o.HealthEvery = cmp.Or(o.HealthEvery, defaultHealth)
	o.LoopEvery = cmp.Or(o.LoopEvery, defaultLoop)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Rand == nil {
		o.Rand = mathrand.Int64N
	}
}

// Wake says that an event has become durable or that the state has changed. It
// never blocks and may be called from any goroutine.
func (p *Publisher) Wake() {
	select {
	case p.wake <- struct{}{}:
	default: // it has not looked since the last one
	}
}

// Reply tells a command's sender what has become of it. It never blocks and may
// be called from any goroutine. A reply that finds no connection, or no room, is
// dropped: who misses it sends the same command again.
func (p *Publisher) Reply(user, name string, seq uint64, r Reply) {
	body, err := encode(Rsp{Envelope: p.envelope("rsp", seq, p.o.Now()), Reply: r})
	if err != nil {
		p.o.Log.Error("a reply cannot be sent", "code", "reply_unsent", "command", name, "error", err)
		return
	}
	select {
	case p.replies <- outgoing{p.topic("rsp/" + user + "/" + name), body}:
	default:
	}
}

func (p *Publisher) facts() *Facts {
	if p.o.Outbox.Facts == nil {
		return &noFacts
	}
	return p.o.Outbox.Facts()
}

// raised is the event that raised an alert; nil when the journal has dropped it
// or cannot be read.
func (p *Publisher) raised(seq uint64) *round.EventText {
	if text, known := p.evidence[seq]; known {
		return text
	}
	record, kept := p.o.Outbox.event(seq)
	if !kept {
		return nil
	}
	event, err := EventOf(Envelope{}, record, p.o.Key)
	if err != nil {
		return nil
	}
	if len(p.evidence) >= 2*round.MaxAlerts { // of those that stand no more
		clear(p.evidence)
	}
	p.evidence[seq] = &event.EventText
	return p.evidence[seq]
}

// Run publishes until ctx ends, then says that the table has stopped, with
// ctx's cause as the reason, and disconnects, in about two seconds at most. A
// broker that is away is tried for ever. The error says that the stop could
// not be told: consumers see the table as offline instead.
func (p *Publisher) Run(ctx context.Context) error {
	for n := 0; ; n++ {
		lived, err := p.pass(ctx)
		if ctx.Err() != nil {
			return err
		}
		if lived >= p.o.KeepAlive { // before that it may be one of a row: a broker that throws us out each time
			n = 0
			clear(p.repeats)
		}
		pause := p.random(min(longestPause, firstPause<<min(n, 16)))
		if errors.Is(err, errDuplicate) {
			pause = duplicatePause
		}
		select {
		case <-p.o.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// pass tries the brokers one after the other until one takes us, and stays
// with that one until the connection ends. It returns how long that was, and
// why it ended.
func (p *Publisher) pass(ctx context.Context) (lived time.Duration, err error) {
	rest := slices.Clone(p.servers)
	for len(rest) > 0 && ctx.Err() == nil {
		i := int(p.o.Rand(int64(len(rest))))
		s, err := p.connect(ctx, rest[i])
		rest = slices.Delete(rest, i, i+1)
		if err != nil {
			continue // reported there
		}
		began := time.Now()
		err = s.run(ctx)
		s.drop()
		lived := time.Since(began)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errDuplicate):
			p.rival.Store(true)
			p.report(slog.LevelError, "duplicate_table", s.server, "another process publishes this table: find and stop it; this one is silent for a minute", "error", err)
		default:
			p.report(slog.LevelWarn, "broker_lost", s.server, "connection to the broker lost", "session", s.number, "lived", lived, "delivered", s.acked, "error", err)
		}
		return lived, err
	}
	return 0, nil
}

func (p *Publisher) random(most time.Duration) time.Duration {
	return time.Duration(p.o.Rand(int64(most) + 1))
}

// Standing is where a Publisher stands.
type Standing struct {
	Connected bool // with a broker that has been told online
	Backlog
}

// Connected tells whether a broker has been told that the table is online, from
// any goroutine.
func (p *Publisher) Connected() bool { return p.up.Load() }

// Duplicated tells whether another process was seen that publishes this table,
// and this one has not been online since; from any goroutine.
func (p *Publisher) Duplicated() bool { return p.rival.Load() }

// Standing may be called from any goroutine.
func (p *Publisher) Standing() Standing {
	now := Standing{Connected: p.Connected(), Backlog: Backlog{Reconnects: max(p.live.Load(), 1) - 1}}
	delivered := p.o.Outbox.Delivered()
	if last := p.o.Outbox.Table().Seq; last > delivered {
		now.Outbox = last - delivered
		if oldest, err := p.o.Outbox.Events(delivered, 1); err == nil && len(oldest) > 0 { // an error shows where they are sent
			age := max(p.o.Now().Sub(oldest[0].At).Milliseconds(), 0)
			now.OldestAgeMS = &age
		}
	}
	return now
}

// session gives the number for the next connection. One that was never on the
// wire is used again: a broker that is away for days must not cost a write to
// the journal with every try.
func (p *Publisher) session() (uint64, error) {
	if p.fresh {
		return p.number, nil
	}
	n, err := p.o.Outbox.Session()
	if err != nil {
		return 0, fmt.Errorf("the number for a connection cannot be kept: %w", err)
	}
	p.resolved("session_unsaved")
	p.number, p.fresh = n, true
	p.first = cmp.Or(p.first, n)
	return n, nil
}

// envelope begins a message of the kind.
func (p *Publisher) envelope(kind string, seq uint64, at time.Time) Envelope {
	return Envelope{
		Schema: kind + "/1.0", Site: p.o.Site, Table: p.o.Table, Epoch: p.o.Epoch,
		Seq: seq, TS: stamp(at), Clock: p.o.Clock(), Sim: p.o.Sim,
	}
}

func (p *Publisher) status(state Life, session, seq uint64, reason string) ([]byte, error) {
	return encode(Status{
		Envelope: p.envelope("status", seq, p.o.Now()), State: state,
		Instance: p.o.Instance, Session: session, Reason: reason, Version: p.o.Software.Version,
	})
}

func (p *Publisher) topic(name string) string { return Topic(p.o.Site, p.o.Table, name) }

// report logs one fact under its stable code. The same again is logged at the
// 2nd, 4th, 8th time and so on, until a connection has lasted.
func (p *Publisher) report(level slog.Level, code string, server *url.URL, what string, attrs ...any) {
	key, attrs := code, append([]any{"code", code}, attrs...)
	if server != nil {
		key += server.Host
		attrs = append(attrs, "broker", server.Host)
	}
	p.repeats[key]++
	times := p.repeats[key]
	if times&(times-1) != 0 {
		return
	}
	p.o.Log.Log(context.Background(), level, what, append(attrs, "times", times)...)
}

// resolved makes report begin anew with what no longer happens.
func (p *Publisher) resolved(code string) { delete(p.repeats, code) }
