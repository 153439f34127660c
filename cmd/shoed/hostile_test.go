package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/sim"
)

var (
	annasKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	evesKey  = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
)

// siege is a table that deals while somebody attacks it by commands.
type siege struct {
	*table
	server   string
	embedded bool   // the broker asks who one is
	sent     []byte // by the shoe in all
	rounds   []string
	dealt    int // of sent

	people      map[string]paho.Client
	connections int
	auditor     *witness
	mu          sync.Mutex
	replies     map[string][]mqtt.Rsp // by user/command
}

var besieged = []string{"anna=pit", "bela=pit", "finn=floor", "tess=tech", "tv=board", "cctv=surveillance"}

// besiege starts a table that knows its users.
func besiege(t *testing.T, embedded bool) *siege {
	s := &siege{embedded: embedded, auditor: &witness{}, people: map[string]paho.Client{}, replies: map[string][]mqtt.Rsp{}}
	s.sent, s.rounds = dealtBytes(t, sim.Options{Seed: 7}, 60)
	if !embedded {
		s.server = startMosquitto(t).url()
	}
	s.table = newTable(t, s.server)
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "[access]\nusers = ['%s']\nkeys = ['anna=%s']\n", strings.Join(besieged, "', '"), base64.StdEncoding.EncodeToString(annasKey.Public().(ed25519.PublicKey)))
	if embedded {
		text = fmt.Appendf(text, "password_file = '%s'\n", passwordsOf(t, s.dir))
	}
	if err := os.WriteFile(s.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.plug()
	s.listening()
	if embedded {
		s.server = "tcp://" + regexp.MustCompile(`code=broker.opened mqtt=(\S+)`).FindStringSubmatch(s.log.String())[1]
	}
	s.listens("cctv")
	return s
}

// passwordsOf gives each user his own name as password.
func passwordsOf(t *testing.T, dir string) string {
	path := filepath.Join(dir, "passwd")
	for i, user := range besieged {
		name, _, _ := strings.Cut(user, "=")
		args := []string{"-b", "-c", path, name, name}
		if i > 0 {
			args = slices.Delete(args, 1, 2)
		}
		if out, err := exec.Command("mosquitto_passwd", args...).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// deal lets the shoe send some bytes more, or all that are left.
func (s *siege) deal(n int) {
	s.t.Helper()
	to := min(s.dealt+n, len(s.sent))
	s.send(s.sent[s.dealt:to])
	s.dealt = to
}

// as is a user's connection, always the same one.
func (s *siege) as(user string) paho.Client {
	s.t.Helper()
	if s.people[user] == nil {
		s.people[user] = s.connect(user)
	}
	return s.people[user]
}

func (s *siege) connect(user string) paho.Client {
	s.t.Helper()
	s.connections++
	o := paho.NewClientOptions().AddBroker(s.server).SetClientID(fmt.Sprintf("%s-%d", user, s.connections)).SetProtocolVersion(4)
	o.SetMaxReconnectInterval(50 * time.Millisecond).SetUsername(user).SetPassword(user)
	client := paho.NewClient(o)
	if token := client.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		s.t.Fatal(user, token.Error())
	}
	s.t.Cleanup(func() { client.Disconnect(0) })
	return client
}

// listens lets somebody who may follow the table, and hear all its replies.
func (s *siege) listens(user string) {
	s.t.Helper()
	for _, name := range []string{"event", "state", "health", "status", "info", "alerts", "rsp/+/+"} {
		token := s.as(user).Subscribe(mqtt.Topic("test", "t1", name), 1, func(_ paho.Client, m paho.Message) {
			topic, reply := strings.CutPrefix(m.Topic(), mqtt.Topic("test", "t1", "rsp/"))
			if !reply {
				s.auditor.message(m.Topic(), m.Retained(), m.Payload())
				return
			}
			var r mqtt.Rsp
			if err := json.Unmarshal(m.Payload(), &r); err != nil || len(m.Payload()) > 6<<10 {
				s.t.Errorf("%s: a reply of %d bytes: %v", topic, len(m.Payload()), err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.replies[topic] = append(s.replies[topic], r)
		})
		if !token.WaitTimeout(patience) || token.Error() != nil {
			s.t.Fatal(name, token.Error())
		}
	}
}

// to are the replies to a user's command so far.
func (s *siege) to(topic string) []mqtt.Rsp {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.replies[topic])
}

// says sends a command, again while the table is too busy to look at it, until
// there is a reply. The topic begins with who says it.
func (s *siege) says(topic string, body []byte) (reply mqtt.Rsp) {
	s.t.Helper()
	user, _, _ := strings.Cut(topic, "/")
	before, next := len(s.to(topic)), time.Now()
	eventually(s.t, "a reply to "+topic, func() bool {
		if !time.Now().Before(next) {
			s.as(user).Publish(mqtt.Topic("test", "t1", "cmd/"+topic), 0, false, body)
			next = time.Now().Add(300 * time.Millisecond)
		}
		for _, reply = range s.to(topic)[before:] {
			if reply.Code != mqtt.CodeBusy {
				return true
			}
		}
		return false
	})
	if reply.CmdID == "" && reply.Code != mqtt.CodeBadRequest {
		s.t.Errorf("%s: to which command? %+v", topic, reply)
	}
	return reply
}

func bodyOf(t testing.TB, c mqtt.Command) []byte {
	t.Helper()
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func changed(t testing.TB, args any, change func(*mqtt.Command)) []byte {
	t.Helper()
	c := command(t, args)
	change(&c)
	return bodyOf(t, c)
}

// TestHostile: whatever comes as a command is refused with its own code, counted
// and leaves no trace; the rounds dealt meanwhile are those of an undisturbed
// table.
func TestHostile(t *testing.T) {
	t.Run("mosquitto", func(t *testing.T) { hostile(t, besiege(t, false)) })
	t.Run("embedded", func(t *testing.T) { hostile(t, besiege(t, true)) })
}

func hostile(t *testing.T, s *siege) {
	s.refusals()
	s.unheard()
	recorded := s.commandRecords("")
	files, size := s.files(), s.memory("VmRSS")
	s.flood()
	s.deal(len(s.sent))
	eventually(t, "the shoe's last byte in the journal", func() bool { return s.taken() == len(s.sent) })
	said := s.says("tess/diag", bodyOf(t, command(t, nil)))
	counts := said.Result.(map[string]any)["replies"].(map[string]any)
	if counts["busy"].(float64) < 2000 || counts["bad_request"].(float64) < 10 || counts["conflict"] == nil || counts["expired"] == nil || counts["duplicate"] == nil {
		t.Errorf("counted %v", counts)
	}
	t.Logf("counted %v; memory %.0f -> %.0f MB; %d files, %d before", counts, size, s.memory("VmRSS"), s.files(), files)
	if after := s.commandRecords(""); after > recorded+60 { // of the honest one, and 5 a second of the one who floods but may command
		t.Errorf("the flood left %d records", after-recorded)
	}
	if n := s.commandRecords(`"user":"tv"`) + s.commandRecords(`"user":"eve`); n > 0 {
		t.Errorf("%d records of who may only read, or of nobody", n)
	}
	if grown := s.memory("VmRSS") - size; grown > 64 {
		t.Errorf("%.0f MB more memory", grown)
	}
	eventually(t, "as many connections and files as before", func() bool { return s.files() <= files+2 })
	if log := s.log.String(); strings.Count(log, "code=broker_connected") != 1 || len(log) > 16<<10 {
		t.Errorf("the log:\n%.16000s", log)
	}
	last := s.lastSeq()
	eventually(t, "all events", func() bool { return s.auditor.last() == last })
	checkStream(t, s.auditor, last)
	if got := s.auditor.decided(t); !slices.Equal(got, s.rounds) {
		t.Errorf("decided\n%s\nundisturbed\n%s", strings.Join(got, "\n"), strings.Join(s.rounds, "\n"))
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	s.verify()
}

// refusals sends what the table is to refuse, each with its code.
func (s *siege) refusals() {
	t := s.t
	good := func() []byte { return bodyOf(t, command(t, map[string]string{"name": "Mai"})) }
	put := func(old, new string) []byte { return bytes.Replace(good(), []byte(old), []byte(new), 1) }
	signed := func(key ed25519.PrivateKey) []byte {
		body, err := command(t, map[string]string{"name": "Mai"}).Sign(key, mqtt.Topic("test", "t1", "cmd/anna/dealer"))
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	again := good()
	cases := []struct {
		what, topic string
		body        []byte
		want        mqtt.ReplyCode
	}{
		{"right", "finn/dealer", again, mqtt.CodeOK},
		{"rightly signed", "anna/dealer", signed(annasKey), mqtt.CodeOK},
		{"wrongly signed", "anna/dealer", signed(evesKey), mqtt.CodeNotAllowed},
		{"signed for another", "bela/dealer", signed(annasKey), mqtt.CodeNotAllowed},
		{"late", "finn/dealer", changed(t, nil, func(c *mqtt.Command) { c.IssuedAt = "2026-01-01T00:00:00Z" }), mqtt.CodeExpired},
		{"another epoch", "finn/dealer", changed(t, nil, func(c *mqtt.Command) { c.Expect = &mqtt.Expect{Epoch: "x"} }), mqtt.CodeConflict},
		{"another round", "finn/dealer", changed(t, nil, func(c *mqtt.Command) { c.Expect = &mqtt.Expect{RoundID: "t1-S000009-R001"} }), mqtt.CodeConflict},
		{"a board's void", "tv/void", bodyOf(t, command(t, nil)), mqtt.CodeNotAllowed},
		{"8 KB and a byte", "anna/dealer", bytes.Repeat([]byte(" "), 8<<10+1), mqtt.CodeBadRequest},
		{"10,000 levels", "anna/dealer", []byte(strings.Repeat("[", 10_000)), mqtt.CodeBadRequest},
		{"8,000 levels", "bela/dealer", []byte(strings.Repeat(`{"a":`, 1500)), mqtt.CodeBadRequest},
		{"an unknown field", "tess/diag", put(`{`, `{"x":1,`), mqtt.CodeBadRequest},
		{"a field twice", "tess/diag", put(`{`, `{"ttl_ms":1,`), mqtt.CodeBadRequest},
		{"a field in other case", "tess/diag", put(`"ttl_ms"`, `"TTL_ms"`), mqtt.CodeBadRequest},
		{"no UTF-8", "finn/dealer", put("Mai", "\xff\xfe"), mqtt.CodeBadRequest},
		{"a huge number", "tess/diag", put(`30000`, `1e99999`), mqtt.CodeBadRequest},
		{"sync from a huge number", "tv/sync", changed(t, map[string]any{"from_seq": json.RawMessage("1e300")}, func(*mqtt.Command) {}), mqtt.CodeBadRequest},
		{"sync of events to come", "tv/sync", changed(t, map[string]any{"from_seq": uint64(1<<64 - 1)}, func(*mqtt.Command) {}), mqtt.CodeNotApplicable},
		{"bytes", "cctv/sync", []byte("\x00\x01\x02\xff\x00"), mqtt.CodeBadRequest},
		{"nothing", "cctv/sync", nil, mqtt.CodeBadRequest},
		{"much that is escaped", "tv/sync", changed(t, map[string]string{"round_id": strings.Repeat("<", 1400)}, func(*mqtt.Command) {}), mqtt.CodeBadRequest},
		{"no such command", "tess/fly", good(), mqtt.CodeBadRequest},
	}
	for _, c := range cases {
		if s.embedded && c.topic == "tv/void" {
			continue // the broker does not let it through
		}
		s.deal(100)
		if r := s.says(c.topic, c.body); r.Code != c.want {
			t.Errorf("%s: %+v, want %s", c.what, r, c.want)
		}
	}
	if r := s.says("finn/dealer", again); !r.Duplicate || r.Code != mqtt.CodeOK {
		t.Errorf("the same again: %+v", r)
	}
	if !s.embedded { // where nobody is asked
		if r := s.says("eve/dealer", good()); r.Code != mqtt.CodeNotAllowed {
			t.Errorf("nobody's: %+v", r)
		}
		for _, size := range []int{200_000, 3_000_000} {
			if r := s.says("anna/dealer", bytes.Repeat([]byte("x"), size)); r.Code != mqtt.CodeBadRequest {
				t.Errorf("%d bytes: %+v", size, r)
			}
		}
	}
}

// unheard sends what the table is not to answer, or the broker not to let
// through.
func (s *siege) unheard() {
	t := s.t
	body := bodyOf(t, command(t, map[string]string{"name": "Mallory"}))
	long := strings.Repeat("x", 65_000)
	topics := []string{"cmd//dealer", "cmd/anna/", "cmd/a/b/c", "cmd/anna", "cmd/$/dealer", "cmd/Anna/dealer", "cmd/anna/" + long, "cmd/" + long + "/dealer", "cmd/+/dealer", "cmd/anna/#", "cmd/anna/\x00"}
	if s.embedded {
		topics = append(topics, "cmd/bela/dealer") // another's
		for _, size := range []int{200_000, 3_000_000} {
			s.connect("anna").Publish(mqtt.Topic("test", "t1", "cmd/anna/dealer"), 0, false, bytes.Repeat([]byte("x"), size))
		}
	}
	before := len(s.heard())
	for _, topic := range topics {
		s.deal(100)
		for _, where := range []string{mqtt.Topic("test", "t1", topic), mqtt.Topic("test", "t2", topic)} {
			client := s.connect("anna")
			client.Publish(where, 0, false, body)
			client.Subscribe("mark", 0, nil).WaitTimeout(time.Second) // dealt with, unless the broker has ended it
			client.Disconnect(0)
		}
	}
	if r := s.says("finn/dealer", bodyOf(t, command(t, map[string]string{"name": "Mai"}))); r.Code != mqtt.CodeOK {
		t.Errorf("after all this: %+v", r)
	}
	if heard := s.heard(); len(heard) != before {
		t.Errorf("answered: %.1000q", heard)
	}
	if s.commandRecords("Mallory") > 0 || s.commandRecords("Mai") == 0 {
		t.Error("one of these was taken, or nothing is")
	}
}

// heard are the topics on which there was a reply.
func (s *siege) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.replies))
}

// flood sends a thousand commands a second from one user, and a thousand from
// many whom nobody knows, or where the broker lets none such in from a board,
// while the shoe goes on and somebody honest is heard.
func (s *siege) flood() {
	t := s.t
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	var floods sync.WaitGroup
	thousands := func(client paho.Client, each func(i int) (topic string, body []byte)) {
		floods.Go(func() {
			every := time.NewTicker(10 * time.Millisecond)
			defer every.Stop()
			for i := 0; ctx.Err() == nil; <-every.C {
				for range 10 {
					topic, body := each(i)
					client.Publish(mqtt.Topic("test", "t1", "cmd/"+topic), 0, false, body)
					i++
				}
			}
		})
	}
	thousands(s.as("anna"), func(int) (string, []byte) {
		return "anna/dealer", bodyOf(t, command(t, map[string]string{"name": "Mai"}))
	})
	heavy := []byte("{" + strings.Repeat(`"<\u0001":[{}],`, 500))
	thousands(s.as("tv"), func(i int) (string, []byte) {
		switch {
		case i%2 == 0:
			return "tv/sync", bodyOf(t, command(t, map[string]int{"from_seq": 1}))
		case s.embedded:
			return "tv/sync", heavy
		}
		return fmt.Sprintf("eve-%d/dealer", i), heavy
	})
	for ctx.Err() == nil {
		s.deal(len(s.sent) / 40)
		if r := s.says("finn/dealer", bodyOf(t, command(t, map[string]string{"name": "Mai"}))); r.Code != mqtt.CodeOK {
			t.Errorf("meanwhile: %+v", r)
		}
	}
	floods.Wait()
}

// commandRecords counts the commands in the journal with a text.
func (s *siege) commandRecords(text string) (n int) {
	s.t.Helper()
	r, err := journal.OpenRead(s.file())
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	err = r.Read(1, func(rec journal.Record) error {
		if rec.Kind == journal.Command && bytes.Contains(rec.Body, []byte(text)) {
			n++
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// files counts what the daemon has open.
func (s *siege) files() int {
	s.t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(open)
}

// TestSecondPersonsCommand: who approves names a command by its id, so another
// of the same id cannot take its place; and nobody lets many wait.
func TestSecondPersonsCommand(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "burn=none")
	tb.staffed("")
	tb.plug()
	tb.listening()
	c := newConsole(t, broker.url())
	void := command(t, nil)
	c.send("anna", "void", void)
	if r := c.replied(void.CmdID, 1); r.Code != mqtt.CodeNeedsSecond {
		t.Fatalf("%+v", r)
	}
	manual := command(t, map[string]any{"cards": map[string]string{"P1": "8s"}})
	manual.CmdID = void.CmdID
	c.send("bela", "manual", manual)
	if r := c.replied(void.CmdID, 2); r.Code != mqtt.CodeBadRequest {
		t.Errorf("another with its id: %+v", r)
	}
	unhurried := func(name string, args any) (r mqtt.Rsp) {
		eventually(t, "a reply but too many a second", func() bool {
			r = c.ask("bela", name, args)
			return !strings.Contains(r.Message, "a second")
		})
		return r
	}
	for n := range secondsWanted {
		if r := unhurried("void", nil); r.Code != mqtt.CodeNeedsSecond {
			t.Errorf("%d: %+v", n, r)
		}
	}
	if r := unhurried("void", nil); r.Code != mqtt.CodeBusy {
		t.Errorf("one more: %+v", r)
	}
	unhurried("approve", map[string]string{"cmd_id": void.CmdID})
	if r := c.replied(void.CmdID, 3); r.Code == mqtt.CodeNeedsSecond {
		t.Errorf("approved: %+v", r)
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
}
