package main

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
)

// A part that fails is told once, told again as it grows worse, and when it
// works again; after a restart not once more.
func TestWatch(t *testing.T) {
	j, _, err := journal.Open(filepath.Join(t.TempDir(), journalFile), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	failing := 0
	c := &core{journal: j, state: round.New(round.DefaultRules()), log: slog.New(slog.DiscardHandler), adopted: func() {},
		clock: func(t time.Time) time.Time { return t },
		parts: []part{{device: round.CertificateDevice, failing: func() int { return failing }}}}
	look := func() string {
		t.Helper()
		c.events = nil
		if err := c.watch(context.Background()); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for i := range c.events {
			kinds = append(kinds, c.events[i].Kind.String())
		}
		return strings.Join(kinds, " ")
	}
	for _, step := range []struct {
		failing int
		acked   bool // somebody acknowledges before
		again   bool // the process was started again
		want    string
	}{
		{0, false, false, ""},
		{1, false, false, "device.lost alert.raised"},
		{1, false, false, ""},
		{1, false, true, ""},
		{2, true, false, "alert.raised"}, // seen, and now it is nearer
		{2, false, false, ""},
		{3, false, false, ""}, // not seen yet: it is told already
		{0, false, false, "device.restored alert.returned"},
		{0, false, false, ""},
		{1, false, false, "device.lost alert.raised"},
	} {
		if step.acked {
			in := round.Input{At: time.Now().UTC(), Kind: round.InAnswer, Answer: round.Answer{Do: round.DoAck, By: "anna"}}
			if err := c.take(context.Background(), in); err != nil {
				t.Fatal(err)
			}
		}
		if step.again {
			c.parts[0].told = 0
		}
		failing = step.failing
		if got := look(); got != step.want {
			t.Errorf("%+v: %q", step, got)
		}
	}
}

func TestNearing(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for days, want := range map[float64]int{31: 0, 29.9: 1, 8: 1, 6.9: 2, 1.1: 2, 0.9: 3, -5: 3} {
		if got := nearing(now.Add(time.Duration(days*24*float64(time.Hour))), now); got != want {
			t.Errorf("%v days to go: %d, want %d", days, got, want)
		}
	}
	if nearing(time.Time{}, now) != 0 {
		t.Error("without a certificate one ends")
	}
}

// TestCommandRetained: a command that the broker keeps is refused at every
// connection, and somebody is told.
func TestCommandRetained(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none")
	tb.staffed("")
	tb.plug()
	c := newConsole(t, broker.url())
	kept := command(t, nil)
	body := new(bytes.Buffer)
	body.WriteString(`{"schema":"cmd/1.0","cmd_id":"` + kept.CmdID + `","issued_at":"` + kept.IssuedAt + `","ttl_ms":30000}`)
	if token := c.client.Publish(mqtt.Topic("test", "t1", "cmd/finn/pause"), 1, true, body.Bytes()); !token.WaitTimeout(patience) {
		t.Fatal("not kept")
	}
	auditor := audit(t, broker.url())
	tb.listening()
	stands := func(state string) func() bool {
		return auditor.see(func(a *witness) bool {
			return slices.ContainsFunc(a.alerts.Items, func(i mqtt.AlertItem) bool { return i.Code == "command.retained" && i.State == state })
		})
	}
	eventually(t, "the alert, returned as it is refused", stands("returned"))
	eventually(t, "the refusal", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.replies, func(r mqtt.Rsp) bool { return r.Code == mqtt.CodeRetained })
	})
	if n := tb.exportedWith(`"do":"pause"`); n != 0 {
		t.Error("it had an effect")
	}
	if r := c.ask("finn", "ack", nil); r.Status != mqtt.Done {
		t.Errorf("ack: %+v", r)
	}
	eventually(t, "the alert is gone", auditor.see(func(a *witness) bool { return len(a.alerts.Items) == 0 }))
}
