package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"shoed/config"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
	"shoed/sim"
)

type demoOptions struct {
	rounds int
	speed  float64
	seed   uint64
	mqtt   string

	faults   string // a list
	attended bool
}

const demoLong = `Demo deals simulated rounds as the telegrams of a real shoe into one end of a
pseudo-terminal; the real program reads the other end, keeps its journal in a
temporary directory and publishes on a broker. Everything is marked sim.

With --faults things go wrong at the table, one a round, so that each alert is
seen, and what a supervisor does then:

  shoed demo --faults list
  shoed demo --faults wrong-box,reader.lost
  shoed demo --faults all --speed 100
  shoed demo --faults call --attended

The table then has switches in its boxes and a dealer's panel, and is dealt from
one deck, so that a shoe soon ends.`

func demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a whole table with a simulated shoe",
		Long:  demoLong,
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.rounds < 0:
				return usageError{fmt.Errorf("--rounds %d: want 0 (until stopped) or more", o.rounds)}
			case o.faults != "" && cmd.Flags().Changed("rounds"), o.faults == "" && o.attended:
				return usageError{errors.New("--rounds goes without --faults, --attended only with it")}
			case !(o.speed > 0 && o.speed <= maxSpeed):
				return usageError{fmt.Errorf("--speed %v: want more than 0, at most %d", o.speed, maxSpeed)}
			}
			if o.faults == "list" {
				return listFaults(cmd.OutOrStdout())
			}
			if !cmd.Flags().Changed("seed") {
				o.seed = rand.Uint64N(1 << 32)
			}
			if o.faults == "" {
				return runDemo(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			faults, err := chooseFaults(o.faults)
			if err != nil {
				return usageError{err}
			}
			return runFaults(cmd.Context(), o, faults, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&o.rounds, "rounds", 0, "stop after so many rounds; 0 goes on until stopped")
	cmd.Flags().Float64Var(&o.speed, "speed", 10, "times faster than life; all time limits with it")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "deal the same cards again; by default other ones each time")
	cmd.Flags().StringVar(&o.faults, "faults", "", "show these faults and end: names or codes of alerts, comma between; all; list prints what there is")
	cmd.Flags().BoolVar(&o.attended, "attended", false, "with --faults: whoever sits here answers the alerts")
	cmd.Flags().StringVar(&o.mqtt, "mqtt", "", "address, host:port, of the embedded broker; a broker that already runs there is used instead")
	return cmd
}

// maxSpeed keeps a telegram's copies, 50 ms apart in life, apart at all.
const maxSpeed = 1000

// settleTime is how long the last messages may take to come back.
const settleTime = 20 * time.Second

// runDemo plays until the rounds are dealt or ctx ends, and says what came of
// it.
func runDemo(ctx context.Context, o demoOptions, out, errs io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "shoed-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	line, err := sim.OpenPair()
	if err != nil {
		return err
	}
	defer line.Close()
	s, err := demoService(o, dir, line.Path, errs)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	server := demoServer(s)
	fmt.Fprintf(out, "simulated shoe, seed %d, speed %v -> %s -> shoed -> %s\n", o.seed, o.speed, line.Path, server)

	dealer, err := sim.New(sim.Options{Seed: o.seed, Speed: o.speed})
	if err != nil {
		return err
	}
	watch := newWatcher(out)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	subscribed, err := mqtt.Subscribe(watching, mqtt.Account{Server: server}, s.cfg.Table.Site, s.cfg.Table.ID, watch.message)
	if err != nil {
		return err
	}
	served := task(func() error { return s.serve(serving) })
	shoe := &countingWriter{w: line.Shoe}
	dealt := task(func() error { return dealer.Play(serving, shoe, o.rounds, nil) })

	select {
	case err = <-dealt:
		if err == nil {
			err = s.settle(serving, shoe, watch)
		}
	case err = <-subscribed:
	case err = <-served:
		return err
	}
	stop()
	err = errors.Join(notStopped(ctx, err), <-served)
	watch.wait(s.journal.LastSeq(), settleTime)
	if err == nil && ctx.Err() == nil && watch.count() != o.rounds {
		err = fmt.Errorf("of %d rounds dealt %d were decided", o.rounds, watch.count())
	}
	return errors.Join(err, watch.compare(s, out))
}

// notStopped drops the error that being stopped leads to.
func notStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func demoService(o demoOptions, dir, port string, errs io.Writer) (*service, error) {
	cfg, err := config.Load("", nil)
	if err != nil {
		return nil, err
	}
	cfg.Table.ID = "demo"
	cfg.Journal.Dir = dir
	cfg.Control.Socket = filepath.Join(dir, "shoed.sock")
	cfg.Reader.Device = port
	cfg.MQTT.ListenWS = "127.0.0.1:0"
	cfg.MQTT.Listen, cfg.MQTT.Servers = demoBroker(o.mqtt)
	begun := time.Now()
	return &service{
		cfg: cfg, rules: demoRules(o.speed), build: thisBuild(), sim: true,
		// The shoe is faster than life but this machine's delays are not, so
		// copies keep their window in wall time.
		decoding: scanner.Options{DuplicateWindow: time.Duration(float64(scanner.DuplicateWindow) * max(o.speed, 1))},
		log:      slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn})),
		clock: func(t time.Time) time.Time {
			return begun.Add(time.Duration(float64(t.Sub(begun)) * o.speed))
		},
	}, nil
}

// demoRules give the simulated dealer as long for a card as this machine may
// stall, however fast the shoe is.
func demoRules(speed float64) round.Rules {
	rules := round.DefaultRules()
	rules.DrawWaitMS = max(rules.DrawWaitMS, uint32(stallMS*speed))
	return rules
}

// stallMS is how long a busy machine may leave the simulation standing.
const stallMS = 3000

// demoBroker chooses where the embedded broker listens, or the broker that is
// there already. Without an address: the usual port, or any if that is taken.
func demoBroker(addr string) (listen string, servers []string) {
	usual := addr == ""
	if usual {
		addr = "127.0.0.1:1883"
	}
	addr = strings.TrimPrefix(strings.TrimPrefix(addr, "tcp://"), "mqtt://")
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		l.Close()
		return addr, nil
	case usual:
		return "127.0.0.1:0", nil
	}
	return config.Off, []string{"mqtt://" + addr}
}

func demoServer(s *service) string {
	if s.broker != nil {
		return "mqtt://" + s.broker.TCP
	}
	return s.cfg.MQTT.Servers[0]
}

// settle waits until all that the shoe wrote was read and came back.
func (s *service) settle(ctx context.Context, shoe *countingWriter, watch *watcher) error {
	deadline := time.Now().Add(settleTime)
	for s.core.health.Load().bytes < shoe.n.Load() {
		if time.Now().After(deadline) {
			return fmt.Errorf("of %d bytes that the shoe wrote only %d were read", shoe.n.Load(), s.core.health.Load().bytes)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

type countingWriter struct {
	w io.Writer
	n atomic.Uint64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n.Add(uint64(n))
	return n, err
}

// watcher is a board: it knows only what the broker sends.
type watcher struct {
	out io.Writer

	mu     sync.Mutex
	events map[uint64]mqtt.Event
	last   uint64 // all events up to this one were received
	rounds int
	more   chan struct{}
	err    error
}

func newWatcher(out io.Writer) *watcher {
	return &watcher{out: out, events: map[uint64]mqtt.Event{}, more: make(chan struct{}, 1)}
}

// message takes what the broker sends. A repeat is known by its seq.
func (w *watcher) message(topic string, _ bool, payload []byte) {
	if !strings.HasSuffix(topic, "/event") {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var e mqtt.Event
	if err := json.Unmarshal(payload, &e); err != nil {
		w.err = fmt.Errorf("%s: %w", topic, err)
		return
	}
	if _, known := w.events[e.Seq]; known {
		return
	}
	w.events[e.Seq] = e
	for next := true; next; {
		if _, next = w.events[w.last+1]; next {
			w.last++
		}
	}
	if e.Ev == round.RoundDecided.String() {
		w.rounds++
		fmt.Fprintln(w.out, roundLine(&e))
	} else if e.Ev == round.AlertRaised.String() && e.Priority != "P4" {
		fmt.Fprintf(w.out, "%s  %s %s: %s, expected %s\n", e.RoundID, e.Priority, e.Code, e.Seen, e.Expected)
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func roundLine(e *mqtt.Event) string {
	hand := func(h *round.HandText) string {
		return fmt.Sprintf("%-8s = %d", strings.Join(h.Cards, " "), *h.Total)
	}
	line := fmt.Sprintf("%s  Player %s   Banker %s   %s", e.RoundID, hand(e.Player), hand(e.Banker), e.Outcome)
	return strings.TrimSpace(line + "  " + strings.Join(e.Tags, " "))
}

func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rounds
}

// wait returns when all events up to seq were received, or after most.
func (w *watcher) wait(seq uint64, most time.Duration) {
	late := time.After(most)
	for {
		w.mu.Lock()
		last := w.last
		w.mu.Unlock()
		if last >= seq {
			return
		}
		select {
		case <-w.more:
		case <-late:
			return
		}
	}
}

// compare counts the events of the journal that did not arrive as they are.
func (w *watcher) compare(s *service, out io.Writer) error {
	kept, err := s.journal.Events(0, int(s.journal.LastSeq()))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := 0
	for _, r := range kept {
		got := w.events[r.Seq]
		want, err := mqtt.EventOf(got.Envelope, mqtt.Record{Seq: r.Seq, At: r.At, Body: r.Body, Head: r.Head}, s.key)
		if err != nil {
			return err
		}
		if got.Seq != r.Seq || !got.Sim || !reflect.DeepEqual(got, want) {
			lost++
		}
	}
	_, err = fmt.Fprintf(out, "%d rounds, %d events, %d lost\n", w.rounds, len(kept), lost)
	if lost > 0 || w.err != nil {
		return errors.Join(err, w.err, fmt.Errorf("%d of %d events did not arrive as the journal has them", lost, len(kept)))
	}
	return err
}
