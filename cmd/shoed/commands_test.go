package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"shoed/journal"
	"shoed/mqtt"
)

// staffed names a table's users. A broker of a test asks nobody who he is.
func (tb *table) staffed(more string) {
	tb.t.Helper()
	text, err := os.ReadFile(tb.config)
	if err != nil {
		tb.t.Fatal(err)
	}
	text = append(text, "[access]\nusers = ['anna=pit', 'bela=pit', 'finn=floor', 'tess=tech', 'tv=board']\n"+more+"\n"...)
	if err := os.WriteFile(tb.config, text, 0o600); err != nil {
		tb.t.Fatal(err)
	}
}

// listening starts shoed and waits until it hears commands.
func (tb *table) listening() {
	tb.t.Helper()
	tb.running()
	eventually(tb.t, "the table is connected", func() bool { return strings.Contains(tb.log.String(), "code=broker_connected") })
}

// console is a program that commands a table over a broker and keeps all that
// it is told.
type console struct {
	t      testing.TB
	client paho.Client

	mu      sync.Mutex
	replies []mqtt.Rsp
	batches []mqtt.ReplayBatch
}

func newConsole(t testing.TB, server string) *console {
	t.Helper()
	c := &console{t: t}
	o := paho.NewClientOptions().AddBroker(server).SetClientID(fmt.Sprintf("console-%p", c)).SetProtocolVersion(4)
	o.SetAutoReconnect(true).SetConnectRetry(true).SetMaxReconnectInterval(50 * time.Millisecond).SetConnectRetryInterval(50 * time.Millisecond).SetCleanSession(false)
	c.client = paho.NewClient(o)
	if token := c.client.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatal(token.Error())
	}
	t.Cleanup(func() { c.client.Disconnect(0) })
	filters := map[string]byte{mqtt.Topic("test", "t1", "rsp/+/+"): 1, mqtt.Topic("test", "t1", "replay/+"): 1}
	if token := c.client.SubscribeMultiple(filters, c.take); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatal(token.Error())
	}
	return c
}

func (c *console) take(_ paho.Client, m paho.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if strings.Contains(m.Topic(), "/rsp/") {
		var r mqtt.Rsp
		err = json.Unmarshal(m.Payload(), &r)
		c.replies = append(c.replies, r)
	} else {
		var b mqtt.ReplayBatch
		err = json.Unmarshal(m.Payload(), &b)
		c.batches = append(c.batches, b)
	}
	if err != nil {
		c.t.Errorf("%s: %v", m.Topic(), err)
	}
}

func command(t testing.TB, args any) mqtt.Command {
	t.Helper()
	c, err := mqtt.NewCommand(time.Now(), args)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *console) send(user, name string, cmd mqtt.Command) {
	c.t.Helper()
	body, err := json.Marshal(cmd)
	if err != nil {
		c.t.Fatal(err)
	}
	c.client.Publish(mqtt.Topic("test", "t1", "cmd/"+user+"/"+name), 1, false, body)
}

// all are the replies to a command so far.
func (c *console) all(id string) []mqtt.Rsp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.replies), func(r mqtt.Rsp) bool { return r.CmdID != id })
}

// replied waits for the nth reply to a command.
func (c *console) replied(id string, n int) mqtt.Rsp {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("reply %d to %s", n, id), func() bool { return len(c.all(id)) >= n })
	return c.all(id)[n-1]
}

// ask sends a command and gives its first reply.
func (c *console) ask(user, name string, args any) mqtt.Rsp {
	c.t.Helper()
	cmd := command(c.t, args)
	c.send(user, name, cmd)
	return c.replied(cmd.CmdID, 1)
}

// exported is what the journal tells, a line each.
func (tb *table) exported() []string {
	tb.t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), []string{"journal", "export", tb.file()}, nil, &out, io.Discard); err != nil {
		tb.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func (tb *table) exportedWith(text string) (n int) {
	for _, line := range tb.exported() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// given is the newest record of a command.
func (tb *table) given(user, id string) (g mqtt.Given) {
	tb.t.Helper()
	r, err := journal.OpenRead(tb.file())
	if err != nil {
		tb.t.Fatal(err)
	}
	defer r.Close()
	rec, found, err := r.Command(user + "/" + id)
	if err != nil || !found {
		tb.t.Fatalf("command %s of %s: found %v, %v", id, user, found, err)
	}
	if err := json.Unmarshal(rec.Body, &g); err != nil {
		tb.t.Fatal(err)
	}
	return g
}

// TestCommands: over a real broker, a command has one effect and the same reply
// however often it comes, after a kill too; two people void a round; each event
// names its cause; what is repeated on request is what was sent.
func TestCommands(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "round_start=first_card", "shoe.change_unproven=accept")
	tb.staffed("")
	tb.plug()
	tb.listening()
	auditor := audit(t, broker.url())
	c := newConsole(t, broker.url())

	pause := command(t, nil)
	c.send("finn", "pause", pause)
	first := c.replied(pause.CmdID, 1)
	if first.Status != mqtt.Done || first.Code != mqtt.CodeOK || !strings.Contains(first.Message, "table.paused") {
		t.Fatalf("pause: %+v", first)
	}
	for n := range 2 {
		c.send("finn", "pause", pause)
		again := c.replied(pause.CmdID, n+2)
		if !again.Duplicate || again.Status != first.Status || again.Message != first.Message || again.Seq != first.Seq {
			t.Errorf("the same again: %+v, want %+v", again, first)
		}
		tb.kill()
		tb.listening()
	}
	if n := tb.exportedWith(`"do":"pause","by":"finn"`); n != 1 {
		t.Errorf("the pause is on record %d times", n)
	}
	eventually(t, "the event with its cause", auditor.see(func(a *witness) bool {
		return slices.ContainsFunc(a.lines, func(line []byte) bool {
			return bytes.Contains(line, []byte(`"ev":"table.paused"`)) && bytes.Contains(line, []byte(`"cause":{"cmd_id":"`+pause.CmdID+`","user":"finn"}`))
		})
	}))

	if r := c.ask("finn", "void", nil); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("a floor supervisor voids: %+v", r)
	}
	void := command(t, nil)
	c.send("anna", "void", void)
	if r := c.replied(void.CmdID, 1); r.Status != mqtt.Accepted || r.Code != mqtt.CodeNeedsSecond {
		t.Fatalf("void: %+v", r)
	}
	if r := c.ask("anna", "approve", map[string]string{"cmd_id": void.CmdID}); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("one person alone: %+v", r)
	}
	if r := c.ask("bela", "approve", map[string]string{"cmd_id": pause.CmdID}); r.Code != mqtt.CodeNotApplicable {
		t.Errorf("nothing to approve: %+v", r)
	}
	if r := c.ask("bela", "approve", map[string]string{"cmd_id": void.CmdID}); r.Status != mqtt.Done {
		t.Errorf("approve: %+v", r)
	}
	if r := c.replied(void.CmdID, 2); r.Status != mqtt.Done || !strings.Contains(r.Message, "alert.cleared") {
		t.Errorf("void, approved: %+v", r)
	}
	if n := tb.exportedWith(`"do":"void","by":"anna+bela"`); n != 1 {
		t.Errorf("the void is on record %d times", n)
	}
	if g := tb.given("anna", void.CmdID); g.By != "anna+bela" || g.Reply.Status != mqtt.Done {
		t.Errorf("the command void is on record as %+v, want both to be answerable", g)
	}
	if r := c.ask("bela", "approve", map[string]string{"cmd_id": void.CmdID}); r.Code != mqtt.CodeNotApplicable {
		t.Errorf("approved twice: %+v", r)
	}

	if r := c.ask("anna", "limits", map[string]any{"currency": "THB", "min": 100, "max": 5000}); r.Status != mqtt.Done {
		t.Errorf("limits: %+v", r)
	}
	if r := c.ask("anna", "limits", map[string]any{"currency": "baht"}); r.Code != mqtt.CodeBadRequest {
		t.Errorf("wrong limits: %+v", r)
	}
	limits := func() bool {
		return auditor.see(func(a *witness) bool { return a.info.Limits != nil && a.info.Limits.Max == 5000 })()
	}
	eventually(t, "info with limits", limits)
	tb.kill()
	tb.listening()
	if r := c.ask("tess", "diag", nil); r.Status != mqtt.Done || r.Result.(map[string]any)["clock"] == nil {
		t.Errorf("diag: %+v", r)
	}
	if !limits() {
		t.Error("the limits are gone after a kill")
	}

	sync := command(t, map[string]int{"from_seq": 1})
	c.send("tv", "sync", sync)
	if r := c.replied(sync.CmdID, 1); r.Status != mqtt.Accepted {
		t.Fatalf("sync: %+v", r)
	}
	last := c.replied(sync.CmdID, 2)
	if last.Status != mqtt.Done {
		t.Fatalf("sync: %+v", last)
	}
	c.sameAs(auditor, sync.CmdID)
	if r := c.ask("tv", "sync", map[string]int{"from_seq": 99999}); r.Code != mqtt.CodeNotApplicable {
		t.Errorf("events to come: %+v", r)
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
}

// sameAs compares the events of a replay with those that came live.
func (c *console) sameAs(a *witness, id string) {
	c.t.Helper()
	var events []map[string]any
	c.mu.Lock()
	for _, b := range c.batches {
		for _, raw := range b.Events {
			if b.CmdID == id {
				events = append(events, plain(c.t, raw))
			}
		}
	}
	c.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(events) == 0 {
		c.t.Error("nothing was sent again")
	}
	for i, e := range events {
		if e["seq"] != float64(i+1) {
			c.t.Fatalf("event %v of the replay is number %d", e["seq"], i+1)
		}
		same := slices.ContainsFunc(a.lines, func(line []byte) bool {
			return fmt.Sprint(plain(c.t, line)) == fmt.Sprint(e)
		})
		if !same {
			c.t.Errorf("event %d differs from the one sent: %v", i+1, e)
		}
	}
}

// plain is a message without what differs in a repeat.
func plain(t testing.TB, line []byte) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "delayed")
	delete(m, "clock")
	return m
}

// TestAlertsSurvive: what stands, who has seen it and how long it is kept aside
// outlive a power cycle, with the evidence.
func TestAlertsSurvive(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none", "round_start=first_card")
	tb.staffed("")
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	c := newConsole(t, broker.url())
	c.ask("finn", "pause", nil)
	alert := map[string]string{"alert": mqtt.AlertID("t1", 1)}
	for user, name := range map[string]string{"finn": "ack", "anna": "shelve"} {
		if r := c.ask(user, name, alert); r.Status != mqtt.Done {
			t.Fatalf("%s: %+v", name, r)
		}
	}
	items := func() string {
		auditor.mu.Lock()
		defer auditor.mu.Unlock()
		text, err := json.Marshal(auditor.alerts.Items)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, want := range []string{`"state":"acked"`, `"by":"finn"`, `"shelved_until":"`, `"seen":["a supervisor asks for a pause"]`} {
		eventually(t, want, func() bool { return strings.Contains(items(), want) })
	}
	before := items()
	tb.kill()
	auditor.mu.Lock()
	auditor.alerts = mqtt.Alerts{}
	auditor.mu.Unlock()
	tb.listening()
	eventually(t, "the same alerts", func() bool { return items() == before })
}

// TestReaderOrders: what a technician orders goes over the line once it is on
// record, and not at all while there is no line.
func TestReaderOrders(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none")
	tb.staffed("")
	tb.plug()
	tb.listening()
	c := newConsole(t, broker.url())
	lock := command(t, nil)
	c.send("tess", "reader-lock", lock)
	if r := c.replied(lock.CmdID, 1); r.Status != mqtt.Accepted {
		t.Fatalf("lock: %+v", r)
	}
	if r := c.replied(lock.CmdID, 2); r.Status != mqtt.Done {
		t.Fatalf("lock: %+v", r)
	}
	got := make([]byte, 10)
	if _, err := io.ReadFull(tb.line.Shoe, got); err != nil || string(got) != "\x02OPLK02\x031B" { // angel.md, lock command
		t.Errorf("the reader got %q, %v", got, err)
	}
	if r := c.ask("tess", "reader-cancel-error", map[string]int{"error": 200}); r.Code != mqtt.CodeNotApplicable {
		t.Errorf("no such error: %+v", r)
	}
	if r := c.ask("anna", "reader-lock", nil); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("a pit supervisor locks: %+v", r)
	}
	tb.unplug()
	eventually(t, "the line is gone", func() bool { return strings.Contains(tb.log.String(), "code=device.down") })
	unlock := command(t, map[string]bool{"off": true})
	c.send("tess", "reader-lock", unlock)
	if r := c.replied(unlock.CmdID, 2); r.Status != mqtt.Failed {
		t.Errorf("without a line: %+v", r)
	}
}
