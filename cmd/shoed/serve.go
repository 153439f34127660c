package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"shoed/config"
	"shoed/device"
	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

// service is a whole running table: the parts that run and demo both start.
type service struct {
	cfg   *config.Config // at the start; inForce has what a reload has changed
	rules round.Rules
	build build
	log   *slog.Logger
	sim   bool
	clock func(time.Time) time.Time // see core

	// The machine's own but in a demonstration of failures; see surround.
	now   func() time.Time                     // by which the broker is missed
	after func(time.Duration) <-chan time.Time // how the publisher pauses
	sysfs string                               // where the kernel tells of the supply

	decoding scanner.Options

	path    string           // of the configuration, "" for none
	hangups <-chan os.Signal // each asks to read it again; nil: it cannot be, and what follows is not used
	level   *slog.LevelVar   // of log
	inForce *config.Config   // of the core's goroutine

	core      *core
	gate      *mqtt.Gate
	rights    mqtt.GateOptions // at the start
	retained  atomic.Bool      // the broker has given a command that it had kept
	commands  chan request
	journal   *journal.Journal
	key       ed25519.PrivateKey // the table's
	broker    *mqtt.Broker       // nil with a broker elsewhere
	publisher *mqtt.Publisher
	lamps     *lamps       // nil without
	scraped   net.Listener // nil without metrics
	systemd   *systemd     // nil without it
	restarts  chan bool    // asked for; true is now
	started   time.Time
}

// open brings the journal to its end and connects the parts; nothing runs yet.
func (s *service) open() error {
	s.started = time.Now()
	s.surround()
	if err := os.MkdirAll(s.cfg.Journal.Dir, 0o750); err != nil {
		return fmt.Errorf("journal directory: %w", err)
	}
	path := filepath.Join(s.cfg.Journal.Dir, journalFile)
	maxAge, maxBytes := journalBounds(s.cfg)
	j, opening, err := journal.Open(path, journal.Options{MaxAge: maxAge, MaxBytes: maxBytes})
	if err != nil {
		return err
	}
	s.journal = j
	s.log.Info("journal opened", "code", "journal.opened", "path", path, "created", opening.Created, "clean", opening.Clean,
		"records", opening.Records, "pruned", opening.Pruned, "torn_bytes", opening.TornBytes)
	if s.key, err = openTableKey(s.cfg.Journal.Dir, s.log); err != nil {
		return errors.Join(err, s.close())
	}
	s.lamps = newLamps(&s.cfg.Lamps, func() (*round.State, string) { return s.core.table.Load(), s.core.health.Load().storage }, s.log)
	if err := errors.Join(s.openCore(), s.openMQTT(), s.openMetrics()); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

// surround takes the machine for what a demonstration does not give.
func (s *service) surround() {
	if s.now == nil {
		s.now = time.Now
	}
	if s.after == nil {
		s.after = after
	}
	s.sysfs = cmp.Or(s.sysfs, sysfs)
}

func (s *service) openCore() error {
	sources, err := openSources(s.cfg, s.decoding)
	if err != nil {
		return err
	}
	if s.rights, err = accessRights(s.cfg); err != nil {
		return err
	}
	s.rights.Epoch = s.journal.Epoch()
	s.gate = mqtt.NewGate(s.rights)
	s.commands, s.restarts = make(chan request, commandsWaiting), make(chan bool)
	s.core = &core{
		tableID: s.cfg.Table.ID, gate: s.gate, waiting: map[string]waiting{}, begun: make(chan struct{}), replay: func(mqtt.Replay) bool { return false },
		journal: s.journal, sources: sources,
		program: s.build.sha256, log: s.log, clock: s.clock, adopted: func() {}, alive: s.systemd.alive, setup: setupOf(s.cfg, &s.rights),
	}
	if s.hangups != nil {
		s.inForce = s.cfg
		s.core.hangups, s.core.reread = s.hangups, s.reloading
	}
	if err := s.core.restore(s.rules); err != nil {
		return err
	}
	s.core.report(func(h *coreHealth) { h.readers = s.core.stats() })
	s.core.adopt()
	return nil
}

// accessRights says who may command what.
func accessRights(cfg *config.Config) (mqtt.GateOptions, error) {
	a := &cfg.Access
	o := mqtt.GateOptions{
		Site: cfg.Table.Site, Table: cfg.Table.ID,
		Keys: map[string]ed25519.PublicKey{}, RequireSignature: a.RequireSignature,
	}
	for i, text := range a.Users {
		u, err := mqtt.ParseUser(text)
		if err != nil {
			return o, fmt.Errorf("%v: access.users: %w", cfg.Where(fmt.Sprintf("access.users[%d]", i)), err)
		}
		o.Users = append(o.Users, u)
	}
	for i, text := range a.Keys {
		name, key, _ := strings.Cut(text, "=")
		b, err := base64.StdEncoding.DecodeString(key)
		if err != nil || len(b) != ed25519.PublicKeySize {
			return o, fmt.Errorf("%v: access.keys: the key of %s is not 32 bytes in base64", cfg.Where(fmt.Sprintf("access.keys[%d]", i)), name)
		}
		o.Keys[name] = b
	}
	for i, name := range a.Dual {
		if !slices.Contains(mqtt.CommandNames(), name) {
			return o, fmt.Errorf("%v: access.dual: no such command: %q; there are %s", cfg.Where(fmt.Sprintf("access.dual[%d]", i)), name, strings.Join(mqtt.CommandNames(), ", "))
		}
	}
	if len(a.Users) > 0 { // nobody else could be the second person
		o.Dual = a.Dual
	}
	return o, nil
}

// setupOf is what info tells of a configuration.
func setupOf(cfg *config.Config, rights *mqtt.GateOptions) mqtt.Setup {
	return mqtt.Setup{Names: tableNames(cfg), Relaxed: relaxed(rights.Dual), ConfigHash: cfg.Hash()}
}

// relaxed names what is looser here than the usual dual control.
func relaxed(dual []string) []string {
	for _, name := range []string{"void", "manual", "correct"} {
		if !slices.Contains(dual, name) {
			return []string{"dual=" + cmp.Or(strings.Join(dual, "+"), "none")}
		}
	}
	return nil
}

// openMQTT opens the embedded broker, unless another is named, and makes the
// publisher.
func (s *service) openMQTT() error {
	if s.core == nil {
		return nil // its error is already there
	}
	m := &s.cfg.MQTT
	servers, user, password := m.Servers, m.User, m.Password.Reveal()
	if len(servers) == 0 {
		if err := s.openBroker(); err != nil {
			return err
		}
		servers, user, password = []string{s.broker.Server}, s.broker.User, s.broker.Password
	}
	p, err := mqtt.New(mqtt.Options{
		Servers: servers, User: user, Password: password,
		TLS:      brokerTLS(m),
		ClientID: cmp.Or(m.ClientID, "shoed-"+s.cfg.Table.Site+"-"+s.cfg.Table.ID),
		Site:     s.cfg.Table.Site, Table: s.cfg.Table.ID, Epoch: s.journal.Epoch(),
		Software: mqtt.Software{Version: s.build.version, Commit: s.build.commit, SHA256: s.build.sha256},
		Reader:   mqtt.Reader{Protocol: s.cfg.Reader.Protocol, Device: s.cfg.Reader.Device},
		TimeZone: timeZone(), Sim: s.sim, Key: s.key,
		Window:       m.Window,
		KeepAlive:    time.Duration(m.KeepAliveS) * time.Second,
		WriteTimeout: time.Duration(m.WriteTimeoutMS) * time.Millisecond,
		Outbox:       s.outbox(),
		Command:      s.hear,
		Clock:        clockState, ReaderHealth: s.readerHealth, Readers: s.sourcesHealth, Storage: func() string { return s.core.health.Load().storage }, Machine: s.machine,
		Replies: s.gate.Counts,
		Now:     func() time.Time { return s.clock(time.Now()) }, After: s.after,
		Log: s.log,
	})
	if err != nil {
		return err
	}
	s.publisher = p
	s.core.adopted, s.core.replay = func() { p.Wake(); s.lamps.wake() }, p.Replay
	s.core.parts = s.parts()
	return nil
}

func brokerTLS(m *config.MQTT) mqtt.TLS {
	return mqtt.TLS{CAFile: m.CAFile, CertFile: m.CertFile, KeyFile: m.KeyFile, ServerName: m.ServerName}
}

func (s *service) openBroker() error {
	m := &s.cfg.MQTT
	b, err := mqtt.OpenBroker(mqtt.BrokerOptions{
		TCP: m.Listen, WebSocket: listenAt(m.ListenWS), CertFile: m.ListenCertFile, KeyFile: m.ListenKeyFile,
		Users: s.rights.Users, PasswordFile: s.cfg.Access.PasswordFile, Site: s.cfg.Table.Site, Table: s.cfg.Table.ID, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.broker = b
	s.log.Info("embedded broker", "code", "broker.opened", "mqtt", b.TCP, "websocket", b.WebSocket, "users", len(s.rights.Users))
	return nil
}

func listenAt(addr string) string {
	if addr == config.Off {
		return ""
	}
	return addr
}

func tableNames(c *config.Config) map[string]string {
	if c.Table.Label == "" {
		return nil
	}
	return map[string]string{"en": c.Table.Label}
}

// timeZone is the IANA name of the machine's zone; "" when it has none.
func timeZone() string {
	if name := time.Local.String(); name != "Local" {
		return name
	}
	target, err := os.Readlink("/etc/localtime")
	if err != nil {
		return ""
	}
	_, name, _ := strings.Cut(target, "zoneinfo/")
	return name
}

// outbox is the journal as the publisher sees it.
func (s *service) outbox() mqtt.Outbox {
	return mqtt.Outbox{
		Events: func(after uint64, max int) ([]mqtt.Record, error) {
			if records, ok := s.core.recent.after(after, max); ok {
				return records, nil
			}
			return outboxRecords(s.journal.Events(after, max))
		},
		Audit:     s.audit(),
		Deliver:   s.journal.Deliver,
		Delivered: s.journal.Delivered,
		Session:   func() (uint64, error) { return s.journal.Count("session") },
		Table:     func() round.State { return *s.core.table.Load() },
		Facts:     s.core.facts.Load,
	}
}

// audit reads the full view, if it is to be published.
func (s *service) audit() func(after, through uint64, max int) ([]mqtt.Record, error) {
	if !s.cfg.MQTT.Audit {
		return nil
	}
	return func(after, through uint64, max int) ([]mqtt.Record, error) {
		return outboxRecords(s.journal.Told(after, through, max))
	}
}

// hear takes a command from the broker. It runs in the connection's goroutine.
func (s *service) hear(user, name string, retained bool, body []byte) {
	if retained {
		s.retained.Store(true)
	}
	if !s.gate.Hears(user, name, time.Now()) {
		return
	}
	r, refused := s.gate.Arrive(user, name, retained, body, time.Now())
	tell := func(seq uint64, r *mqtt.Reply) { s.publisher.Reply(user, name, seq, *r) }
	seq := s.core.table.Load().Seq
	if refused != nil {
		tell(seq, refused)
		return
	}
	select {
	case s.commands <- request{r, user, tell}:
	default:
		s.gate.Count(mqtt.CodeBusy)
		busy := mqtt.Refuse(mqtt.CodeBusy, "the table is behind with its commands: send it again")
		busy.CmdID = r.Command.CmdID
		tell(seq, busy)
	}
}

// counted is what each source's decoder has.
func (s *service) counted() map[string]mqtt.ReaderHealth {
	h := s.core.health.Load()
	all := map[string]mqtt.ReaderHealth{}
	for name, counted := range h.readers {
		health := mqtt.ReaderHealth{Frames: counted.Frames, Refused: map[string]uint64{}, LostEdges: counted.LostEdges, Bounces: counted.Bounces}
		for reason, n := range counted.Refused.ByReason() {
			health.Refused[reason.String()] = n
		}
		if at, read := h.lastRead[name]; read {
			age := time.Since(at).Milliseconds()
			health.LastFrameAgeMS = &age
		}
		all[name] = health
	}
	return all
}

// readerHealth is that of the reader in use.
func (s *service) readerHealth() mqtt.ReaderHealth {
	return s.counted()[cmp.Or(s.core.table.Load().Active, s.cfg.Reader.Name)]
}

// sourcesHealth is that of each, where there are several.
func (s *service) sourcesHealth() map[string]mqtt.ReaderHealth {
	if len(s.core.sources) == 1 {
		return nil
	}
	return s.counted()
}

func (s *service) machine() mqtt.Machine { return machine(s.cfg.Journal.Dir, s.sysfs) }

// wall is the time on the machine's clock, and after is how long pauses last:
// the only two that a test changes, to step the one and to shorten the other.
var (
	wall  = func(t time.Time) time.Time { return t }
	after = time.After
)

// clockState says how far the wall clock can be trusted, as the kernel has it.
func clockState() string {
	const unsync = 0x40 // STA_UNSYNC, adjtimex(2)
	var t syscall.Timex
	_, err := syscall.Adjtimex(&t)
	switch {
	case wall(time.Now()).Year() < 2025: // a board without a battery starts in 1970
		return "unset"
	case err == nil && t.Status&unsync == 0:
		return "synced"
	}
	return "holdover"
}

// serve runs the table until ctx ends, then stops its parts in the order in
// which data flows, so that what was read is journaled and what was journaled
// is sent.
func (s *service) serve(ctx context.Context) error {
	queue := device.NewQueue(s.cfg.Reader.BufferBytes, device.QueueSignals)
	listener, err := openControl(s.cfg.Control.Socket)
	if err != nil {
		return err
	}
	ctx, restart := context.WithCancelCause(ctx)
	defer restart(nil)
	reading, stopReading := context.WithCancel(ctx)
	following := s.followSources(reading, queue)
	deciding, stopDeciding := context.WithCancel(context.WithoutCancel(ctx))
	core := task(func() error { return s.core.run(deciding, queue, s.commands) })
	publishing, stopPublishing := context.WithCancelCause(context.WithoutCancel(ctx))
	publisher := task(func() error {
		select {
		case <-s.core.begun:
			return s.publisher.Run(publishing)
		case <-publishing.Done():
			return nil
		}
	})
	controlling := task(func() error { s.serveControl(deciding, listener); return nil })
	measuring := task(func() error { s.serveMetrics(deciding); return nil })
	managing := task(func() error { s.manage(deciding, restart); return nil })
	shining := task(func() error { s.lamps.run(deciding); return nil })

	reason, failed := errors.New("stopped"), false
	select {
	case <-ctx.Done():
		s.log.Info("stopping", "code", "stopping", "cause", context.Cause(ctx))
	case err = <-core:
		failed = true
		reason = errors.New("the table's controller failed")
	}
	s.systemd.notify("STOPPING=1")
	stopReading()
	following.Wait()
	listener.Close()
	stopDeciding()
	if !failed {
		err = <-core
	}
	<-controlling
	<-measuring
	<-managing
	<-shining
	stopPublishing(reason)
	if stopped := <-publisher; stopped != nil {
		s.log.Warn("the broker could not be told of the stop: boards see the table as offline", "code", "stop.untold", "cause", stopped)
	}
	return err
}

// task runs f in a goroutine and gives its result once.
func task(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// followSources reads every source's line until ctx ends.
func (s *service) followSources(ctx context.Context, queue *device.Queue) *sync.WaitGroup {
	var following sync.WaitGroup
	for _, from := range s.core.sources {
		following.Go(func() { device.Follow(ctx, from.line, queue, from.orders) })
	}
	return &following
}

func (s *service) close() error {
	if s.broker != nil {
		s.broker.Close()
	}
	if s.scraped != nil {
		s.scraped.Close() // it may be closed already
	}
	if s.journal != nil {
		return s.journal.Close()
	}
	return nil
}
