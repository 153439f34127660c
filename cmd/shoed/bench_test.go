package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
	"shoed/sim"
)

// releaseBuild is the program as it is shipped.
func releaseBuild(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "shoed")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

// telegram is what the shoe writes, and how many public events it leads to.
type telegram struct {
	bytes   []byte
	events  int
	decides bool // a round
}

// telegrams of some rounds, one copy each.
func telegrams(b *testing.B, rounds int) []telegram {
	b.Helper()
	dealer, err := sim.New(sim.Options{Seed: 1, Copies: 1, Sleep: sim.NoSleep})
	if err != nil {
		b.Fatal(err)
	}
	decoder, err := scanner.New("angel", scanner.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var all []telegram
	s := round.New(round.DefaultRules())
	err = dealer.Play(context.Background(), writes(func(p []byte) {
		tg := telegram{bytes: bytes.Clone(p)}
		for _, r := range decoder.Feed(time.Now(), p, nil) {
			before := s
			s, _, _ = s.Step(r.Input, nil)
			tg.events += int(s.Seq - before.Seq)
			tg.decides = tg.decides || s.Round.Decided && !before.Round.Decided
		}
		all = append(all, tg)
	}), rounds, nil)
	if err != nil {
		b.Fatal(err)
	}
	return all
}

type writes func([]byte)

func (w writes) Write(p []byte) (int, error) { w(p); return len(p), nil }

// BenchmarkPath is the time from the last byte of a telegram on the line to
// the first message at a subscriber that comes of it, to the last event (an
// outcome with its settlements is up to six) and to the state after it: real pty,
// journal on disk, real broker. The disk's own write and sync are measured between
// the cards. Besides what is usual: with audit, with a broker that does not hold
// back small packets (Nagle's algorithm), and with a subscriber that does not
// acknowledge.
func BenchmarkPath(b *testing.B) {
	for _, c := range []struct {
		name, table, broker string
		qos                 byte
	}{
		{name: "plain", qos: 1},
		{name: "audit", table: "audit = true", qos: 1},
		{name: "nodelay", broker: "set_tcp_nodelay true", qos: 1},
		{name: "qos0"},
		{name: "qos0-nodelay", broker: "set_tcp_nodelay true"},
	} {
		b.Run(c.name, func(b *testing.B) {
			broker := startMosquitto(b)
			broker.restart(c.broker)
			tb := newTable(b, broker.url())
			tb.mqtt(c.table)
			tb.program = releaseBuild(b)
			path(b, tb, subscribe(b, broker.url(), c.qos))
		})
	}
}

// restart takes another line of configuration.
func (m *mosquitto) restart(line string) {
	m.t.Helper()
	m.kill()
	text, err := os.ReadFile(m.conf)
	if err == nil {
		err = os.WriteFile(m.conf, append(text, line+"\n"...), 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.start()
}

// mqtt adds lines to that section of the configuration.
func (tb *table) mqtt(lines string) {
	tb.t.Helper()
	text, err := os.ReadFile(tb.config)
	if err == nil {
		err = os.WriteFile(tb.config, bytes.Replace(text, []byte("[mqtt]\n"), []byte("[mqtt]\n"+lines+"\n"), 1), 0o600)
	}
	if err != nil {
		tb.t.Fatal(err)
	}
}

// told is what a subscriber notes of a message.
type told struct {
	mqtt.Envelope
	topic string
	at    time.Time
}

// subscribe hands on each message of the table's but audit, of which nothing
// is noted.
func subscribe(b *testing.B, server string, qos byte) <-chan told {
	b.Helper()
	got := make(chan told, 1<<18)
	client := paho.NewClient(paho.NewClientOptions().AddBroker(server).SetClientID("bench").SetProtocolVersion(4))
	if token := client.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		b.Fatal(token.Error())
	}
	b.Cleanup(func() { client.Disconnect(0) })
	filters := map[string]byte{}
	for _, name := range []string{"event", "state", "roads", "insurance", "alerts", "status", "audit"} {
		filters[mqtt.Topic("test", "t1", name)] = qos
	}
	token := client.SubscribeMultiple(filters, func(_ paho.Client, m paho.Message) {
		t := told{topic: m.Topic()[strings.LastIndexByte(m.Topic(), '/')+1:], at: time.Now()}
		if t.topic != "audit" && json.Unmarshal(m.Payload(), &t.Envelope) == nil {
			got <- t
		}
	})
	if !token.WaitTimeout(patience) || token.Error() != nil {
		b.Fatal(token.Error())
	}
	return got
}

func path(b *testing.B, tb *table, got <-chan told) {
	tb.plug()
	tb.running()
	eventually(b, "the port open", func() bool { return strings.Contains(tb.log.String(), "code=device.up") })
	disk, err := os.Create(filepath.Join(tb.dir, "journal", "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer disk.Close()
	var first, last, state, sync []time.Duration
	todo := telegrams(b, 400)
	seq := uint64(0)
	for b.Loop() {
		if len(todo) == 0 {
			break
		}
		tg := todo[0]
		todo = todo[1:]
		begun := time.Now()
		tb.send(tg.bytes)
		if tg.events == 0 {
			continue
		}
		seq += uint64(tg.events)
		for n, done := 0, false; n < tg.events || !done; { // as at a table, no card before the last one's messages are out
			m := <-got
			took := m.at.Sub(begun)
			switch {
			case m.topic == "event":
				if n++; n == 1 {
					first = append(first, took)
				}
				if n == tg.events {
					last = append(last, took)
				}
			case m.topic == "state" && m.Seq >= seq:
				state, done = append(state, took), true
			}
		}
		sync = append(sync, probe(b, disk))
	}
	if err := tb.stop(); err != nil {
		b.Fatal(err)
	}
	percentiles(b, "first", first)
	percentiles(b, "last", last)
	percentiles(b, "state", state)
	percentiles(b, "disk", sync)
	b.ReportMetric(0, "ns/op")
}

func percentiles(b *testing.B, name string, d []time.Duration) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, name+"-p50-ms")
	b.ReportMetric(float64(d[len(d)*99/100].Microseconds())/1000, name+"-p99-ms")
}

// BenchmarkCommand is the time from a command to its reply, both over a real
// broker, journal included. Many give them, for each may give five a second.
func BenchmarkCommand(b *testing.B) {
	for name, line := range map[string]string{"plain": "", "nodelay": "set_tcp_nodelay true"} {
		b.Run(name, func(b *testing.B) {
			broker := startMosquitto(b)
			broker.restart(line)
			commandToReply(b, broker)
		})
	}
}

func commandToReply(b *testing.B, broker *mosquitto) {
	const people = 500 // for up to 2500 commands
	tb := newTable(b, broker.url())
	var users []string
	for i := range people {
		users = append(users, fmt.Sprintf("%q", fmt.Sprintf("u%d=floor", i)))
	}
	text, err := os.ReadFile(tb.config)
	if err == nil {
		err = os.WriteFile(tb.config, fmt.Appendf(text, "[access]\nusers = [%s]\n", strings.Join(users, ", ")), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	tb.program = releaseBuild(b)
	tb.plug()
	tb.listening()
	disk, err := os.Create(filepath.Join(tb.dir, "journal", "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer disk.Close()
	replied := make(chan time.Time, 1)
	client := paho.NewClient(paho.NewClientOptions().AddBroker(broker.url()).SetClientID("bench").SetProtocolVersion(4))
	if token := client.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		b.Fatal(token.Error())
	}
	defer client.Disconnect(0)
	client.Subscribe(mqtt.Topic("test", "t1", "rsp/+/+"), 1, func(_ paho.Client, m paho.Message) {
		if !bytes.Contains(m.Payload(), []byte(`"code":"ok"`)) {
			b.Errorf("%s", m.Payload())
		}
		replied <- time.Now()
	}).Wait()
	var took, sync []time.Duration
	for n := 0; b.Loop(); n++ {
		cmd := command(b, map[string]string{"name": "Mai"})
		body, err := json.Marshal(cmd)
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		client.Publish(mqtt.Topic("test", "t1", fmt.Sprintf("cmd/u%d/dealer", n%people)), 1, false, body)
		took = append(took, (<-replied).Sub(begun))
		sync = append(sync, probe(b, disk))
	}
	percentiles(b, "reply", took)
	percentiles(b, "disk", sync)
	b.ReportMetric(0, "ns/op")
	if err := tb.stop(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCatchUp is what a table does that has dealt without a broker, once
// there is one: until its state is there, until all events are, and how many of
// them a second. 65 rounds are an hour; of 9,000 it makes over 100,000 events.
func BenchmarkCatchUp(b *testing.B) {
	for _, rounds := range []int{65, 9000} {
		kept := newTable(b, "tcp://127.0.0.1:1") // nobody there
		kept.program = releaseBuild(b)
		kept.plays(telegrams(b, rounds))
		if err := kept.stop(); err != nil {
			b.Fatal(err)
		}
		last := kept.lastSeq()
		for _, embedded := range []bool{false, true} {
			if embedded && rounds < 1000 {
				continue // it is over before anybody has connected
			}
			for _, window := range []int{1, 16} {
				name := map[bool]string{false: "mosquitto", true: "embedded"}[embedded]
				b.Run(fmt.Sprintf("events=%d/%s/window=%d", last, name, window), func(b *testing.B) {
					server, address := "", freeAddress(b)
					if !embedded {
						broker := startMosquitto(b)
						server, address = broker.url(), broker.addr()
					}
					tb := newTable(b, server)
					tb.program = kept.program
					if embedded {
						tb.mqtt("")
						text, _ := os.ReadFile(tb.config)
						os.WriteFile(tb.config, bytes.Replace(text, []byte("127.0.0.1:0"), []byte(address), 1), 0o600)
					}
					tb.mqtt(fmt.Sprintf("window = %d", window))
					if err := os.CopyFS(filepath.Join(tb.dir, "journal"), os.DirFS(filepath.Join(kept.dir, "journal"))); err != nil {
						b.Fatal(err)
					}
					tb.plug()
					var got <-chan told
					if embedded { // there is no broker before, so what was sent at first is not seen
						tb.start()
						eventually(b, "the broker", func() bool {
							c, err := net.Dial("tcp", address)
							if err == nil {
								c.Close()
							}
							return err == nil
						})
						got = subscribe(b, "tcp://"+address, 1)
					} else {
						got = subscribe(b, server, 1)
						tb.start()
					}
					caughtUp(b, got, last)
					if err := tb.stop(); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	}
}

// caughtUp reads until the last event.
func caughtUp(b *testing.B, got <-chan told, last uint64) {
	var begun, first time.Time
	from, live := uint64(0), false
	for m := range got {
		if begun.IsZero() {
			begun = m.at
		}
		switch {
		case m.topic == "state" && !live:
			live = true
			b.ReportMetric(m.at.Sub(begun).Seconds()*1000, "state-ms")
		case m.topic == "event" && from == 0:
			first, from = m.at, m.Seq
		case m.topic == "event" && m.Seq == last:
			b.ReportMetric(m.at.Sub(begun).Seconds(), "all-s")
			b.ReportMetric(float64(last-from)/m.at.Sub(first).Seconds(), "events/s")
			b.ReportMetric(float64(last-from+1)/float64(last)*100, "seen-%")
			b.ReportMetric(0, "ns/op")
			return
		}
	}
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// plays starts the table and gives it telegrams as fast as it takes them.
func (tb *table) plays(all []telegram) {
	tb.t.Helper()
	tb.plug()
	tb.running()
	var line bytes.Buffer
	events := 0
	for _, tg := range all {
		line.Write(tg.bytes)
		events += tg.events
		if line.Len() > 128<<10 { // half of what may wait
			tb.send(line.Bytes())
			tb.has(events)
			line.Reset()
		}
	}
	tb.send(line.Bytes())
	tb.has(events)
}

// has waits for that many events in the journal.
func (tb *table) has(events int) {
	tb.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for there := false; !there; <-look.C {
		r, err := journal.OpenRead(tb.file())
		if err != nil {
			tb.t.Fatal(err)
		}
		last, err := r.Events(uint64(events-1), 1)
		if there = len(last) > 0; err != nil {
			tb.t.Fatal(err)
		}
		r.Close()
	}
}

// probe is the disk's own time for a record: write and fdatasync.
func probe(b *testing.B, f *os.File) time.Duration {
	begun := time.Now()
	if _, err := f.Write(make([]byte, 600)); err != nil {
		b.Fatal(err)
	}
	if err := syscall.Fdatasync(int(f.Fd())); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}

// BenchmarkMemory is the size of the shipped program, and of its memory over
// 10,000 rounds, given as fast as they are taken, while the broker is cut off
// every 300.
func BenchmarkMemory(b *testing.B) {
	broker := startMosquitto(b)
	cutter := newProxy(b, broker.addr())
	tb := newTable(b, cutter.url())
	tb.program = releaseBuild(b)
	info, err := os.Stat(tb.program)
	if err != nil {
		b.Fatal(err)
	}
	tb.plug()
	tb.listening()
	b.ReportMetric(tb.memory("VmRSS"), "rss-start-MB")
	events, round := 0, 0
	for _, tg := range telegrams(b, 10_000) {
		tb.send(tg.bytes)
		events += tg.events
		if !tg.decides {
			continue
		}
		if round++; round%300 == 0 {
			tb.has(events) // what waits is bounded
			cutter.cut()
		}
		if round == 1000 || round == 5000 || round == 10_000 {
			tb.has(events)
			b.ReportMetric(tb.memory("VmRSS"), fmt.Sprintf("rss-%d-MB", round))
		}
	}
	b.ReportMetric(tb.memory("VmHWM"), "rss-peak-MB")
	b.ReportMetric(tb.connections(), "connections")
	b.ReportMetric(float64(info.Size())/1e6, "binary-MB")
	b.ReportMetric(0, "ns/op")
	if err := tb.stop(); err != nil {
		b.Fatal(err)
	}
}

// connections is how many the table has made to brokers, as far as the log says.
func (tb *table) connections() (last float64) {
	for _, m := range regexp.MustCompile(`session=(\d+)`).FindAllStringSubmatch(tb.log.String(), -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		last = max(last, n)
	}
	return last
}

// memory is what the kernel says of the program, in MB.
func (tb *table) memory(name string) (kb float64) {
	tb.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tb.cmd.Process.Pid))
	if err != nil {
		tb.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	fmt.Sscan(rest, &kb)
	return kb / 1024
}
