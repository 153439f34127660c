package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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
	bytes  []byte
	events int
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
			before := s.Seq
			s, _, _ = s.Step(r.Input, nil)
			tg.events += int(s.Seq - before)
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
// the first message at a subscriber that comes of it, and to the last one (an
// outcome with its settlements is up to six): real pty, journal on disk, real broker. The
// disk's own write and sync are measured between the cards.
func BenchmarkPath(b *testing.B) {
	broker := startMosquitto(b)
	tb := newTable(b, broker.url())
	tb.program = releaseBuild(b)
	arrived, settled := make(chan uint64, 1024), make(chan uint64, 1024)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := mqtt.Subscribe(ctx, mqtt.Account{Server: broker.url()}, "test", "t1", func(topic string, _ bool, payload []byte) {
		var e mqtt.Envelope
		if json.Unmarshal(payload, &e) != nil {
			return
		}
		switch {
		case strings.HasSuffix(topic, "/event"):
			arrived <- e.Seq
		case strings.HasSuffix(topic, "/state"):
			settled <- e.Seq
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	tb.plug()
	tb.running()
	eventually(b, "the port open", func() bool { return strings.Contains(tb.log.String(), "code=reader.up") })
	disk, err := os.Create(filepath.Join(tb.dir, "journal", "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer disk.Close()
	var first, path, sync []time.Duration
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
		seq += uint64(tg.events)
		for n := 0; n < tg.events; n++ {
			<-arrived
			if n == 0 {
				first = append(first, time.Since(begun))
			}
		}
		if tg.events > 0 {
			path = append(path, time.Since(begun))
			for got := uint64(0); got < seq; got = <-settled { // as at a table, no card before the last one's messages are out
			}
			sync = append(sync, probe(b, disk))
		}
	}
	if err := tb.stop(); err != nil {
		b.Fatal(err)
	}
	report := func(name string, d []time.Duration) {
		slices.Sort(d)
		b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(d[len(d)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
	report("first", first)
	report("path", path)
	report("disk", sync)
	b.ReportMetric(0, "ns/op")
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

// BenchmarkMemory is the size of the shipped program, and of its memory after
// 1,000 rounds with the embedded broker.
func BenchmarkMemory(b *testing.B) {
	tb := newTable(b, "")
	tb.program = releaseBuild(b)
	info, err := os.Stat(tb.program)
	if err != nil {
		b.Fatal(err)
	}
	tb.plug()
	tb.running()
	sent := 0
	for _, tg := range telegrams(b, 1000) {
		tb.send(tg.bytes)
		sent += len(tg.bytes)
	}
	eventually(b, "the last byte in the journal", func() bool { return tb.taken() == sent })
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tb.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	kb := func(name string) (n float64) {
		for line := range strings.Lines(string(status)) {
			if rest, ok := strings.CutPrefix(line, name+":"); ok {
				fmt.Sscan(rest, &n)
			}
		}
		return n
	}
	b.ReportMetric(kb("VmRSS")/1024, "rss-MB")
	b.ReportMetric(kb("VmHWM")/1024, "peak-rss-MB")
	b.ReportMetric(float64(info.Size())/1e6, "binary-MB")
	b.ReportMetric(0, "ns/op")
	if err := tb.stop(); err != nil {
		b.Fatal(err)
	}
}
