package mqtt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"shoed/round"
)

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	staff  = []User{{"anna", Pit}, {"bela", Pit}, {"finn", Floor}, {"tess", Tech}, {"tv", Board}, {"cctv", Surveillance}}
	annas  = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	nobody = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
)

func gate(change func(*GateOptions)) *Gate {
	o := GateOptions{Site: site, Table: desk, Epoch: "e1", Users: staff,
		Keys: map[string]ed25519.PublicKey{"anna": annas.Public().(ed25519.PublicKey)}, Dual: []string{"void", "manual", "correct"}}
	if change != nil {
		change(&o)
	}
	return NewGate(o)
}

// body is a good command's, with what is to be otherwise put in.
func body(t testing.TB, change func(*Command), args any) []byte {
	t.Helper()
	c, err := NewCommand(noon, args)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func manyFields(n int) map[string]int {
	m := map[string]int{}
	for i := range n {
		m[fmt.Sprint("f", i)] = i
	}
	return m
}

// paused is a table with a round in hand and an alert that holds it.
func paused(t *testing.T) round.State {
	return play(t, plain, shoe, `{"in":"card","card":"4s","to":"player","pos":1}`, `{"in":"unread","why":"torn"}`)
}

// through is what becomes of a command at a gate: the code of the first check
// that it fails, "" when it passes.
func through(g *Gate, user, name string, b []byte, s *round.State, now time.Time, clock string) (ReplyCode, *Reply) {
	r, reply := g.Arrive(user, name, false, b, now)
	if reply == nil {
		reply = g.Judge(&r, s, now, clock)
	}
	if reply == nil {
		return "", nil
	}
	return reply.Code, reply
}

// TestGate: each check of the contract refuses with its own code.
func TestGate(t *testing.T) {
	s := paused(t)
	alert := AlertID(desk, s.Alerts[0].No)
	rev := uint8(9)
	expect := func(e Expect) func(*Command) { return func(c *Command) { c.Expect = &e } }
	ago := func(d time.Duration) func(*Command) { return func(c *Command) { c.IssuedAt = stamp(noon.Add(-d)) } }
	for _, c := range []struct {
		what, user, name string
		body             []byte
		clock            string
		want             ReplyCode
	}{
		{"a floor supervisor confirms", "finn", "confirm", body(t, nil, nil), "", ""},
		{"a board asks for the state", "tv", "sync", body(t, nil, nil), "", ""},
		{"surveillance asks for events", "cctv", "sync", body(t, nil, map[string]int{"from_seq": 1}), "", ""},
		{"a technician identifies", "tess", "identify", body(t, nil, nil), "", ""},
		{"no JSON", "anna", "void", []byte("{"), "", CodeBadRequest},
		{"nothing", "anna", "void", nil, "", CodeBadRequest},
		{"two values", "anna", "void", append(body(t, nil, nil), "{}"...), "", CodeBadRequest},
		{"too large", "anna", "void", body(t, func(c *Command) { c.Reason = strings.Repeat("x", maxCommand) }, nil), "", CodeBadRequest},
		{"too deep", "anna", "correct", body(t, nil, map[string]any{"cards": map[string]any{"P1": []any{[]any{}}}}), "", CodeBadRequest},
		{"many fields", "anna", "void", []byte("{" + strings.Repeat(`"":0,`, 1000) + `"x":0}`), "", CodeBadRequest},
		{"a hundred fields", "anna", "correct", body(t, nil, manyFields(100)), "", CodeBadRequest},
		{"no UTF-8", "tv", "sync", bytes.Replace(body(t, nil, map[string]string{"round_id": "X"}), []byte("X"), []byte("\xff"), 1), "", CodeBadRequest},
		{"too large when escaped", "tv", "sync", bytes.Replace(body(t, nil, map[string]string{"round_id": "X"}), []byte("X"), bytes.Repeat([]byte("<"), 7000), 1), "", CodeBadRequest},
		{"huge numbers", "tess", "identify", bytes.Replace(body(t, nil, nil), []byte(`"ttl_ms":30000`), []byte(`"ttl_ms":1e999999999`), 1), "", CodeBadRequest},
		{"a very deep one", "anna", "void", []byte(strings.Repeat("[", 8000)), "", CodeBadRequest},
		{"an unknown field", "anna", "void", bytes.Replace(body(t, nil, nil), []byte(`{`), []byte(`{"x":1,`), 1), "", CodeBadRequest},
		{"a field in other case", "anna", "void", bytes.Replace(body(t, nil, nil), []byte(`"ttl_ms"`), []byte(`"TTL_MS"`), 1), "", CodeBadRequest},
		{"a field twice", "anna", "void", bytes.Replace(body(t, nil, nil), []byte(`{`), []byte(`{"ttl_ms":1,`), 1), "", CodeBadRequest},
		{"an unknown expectation", "anna", "void", bytes.Replace(body(t, nil, nil), []byte(`{`), []byte(`{"expect":{"x":1},`), 1), "", CodeBadRequest},
		{"an unknown argument", "finn", "confirm", body(t, nil, map[string]int{"x": 1}), "", CodeBadRequest},
		{"an argument that is not its own", "finn", "dealer", body(t, nil, map[string]string{"alert": "A000001"}), "", CodeBadRequest},
		{"by another name", "finn", "confirm", body(t, nil, map[string]string{"by": "anna"}), "", CodeBadRequest},
		{"another table's alert", "finn", "confirm", body(t, nil, map[string]string{"alert": "table-9-A000001"}), "", CodeBadRequest},
		{"no such command", "anna", "fly", body(t, nil, nil), "", CodeBadRequest},
		{"another schema", "anna", "void", body(t, func(c *Command) { c.Schema = "cmd/2.0" }, nil), "", CodeBadRequest},
		{"no ULID", "anna", "void", body(t, func(c *Command) { c.CmdID = "1" }, nil), "", CodeBadRequest},
		{"a ULID in lower case", "anna", "void", body(t, func(c *Command) { c.CmdID = strings.ToLower(c.CmdID) }, nil), "", CodeBadRequest},
		{"no time", "anna", "void", body(t, func(c *Command) { c.IssuedAt = "now" }, nil), "", CodeBadRequest},
		{"too long a life", "anna", "void", body(t, func(c *Command) { c.TTLMS = 30001 }, nil), "", CodeBadRequest},
		{"nobody's", "eve", "confirm", body(t, nil, nil), "", CodeNotAllowed},
		{"the table's own name", desk, "confirm", body(t, nil, nil), "", CodeNotAllowed},
		{"a board confirms", "tv", "confirm", body(t, nil, nil), "", CodeNotAllowed},
		{"surveillance confirms", "cctv", "confirm", body(t, nil, nil), "", CodeNotAllowed},
		{"a floor supervisor voids", "finn", "void", body(t, nil, nil), "", CodeNotAllowed},
		{"a technician confirms", "tess", "confirm", body(t, nil, nil), "", CodeNotAllowed},
		{"a pit supervisor identifies", "anna", "identify", body(t, nil, nil), "", CodeNotAllowed},
		{"all as expected", "finn", "confirm", body(t, expect(Expect{Epoch: "e1", ShoeID: ShoeID(desk, 1), RoundID: RoundID(desk, 1, 1), Rev: new(uint8), Alert: alert, Phase: PhasePaused}), nil), "", ""},
		{"another epoch", "finn", "confirm", body(t, expect(Expect{Epoch: "e0"}), nil), "", CodeConflict},
		{"another shoe", "finn", "confirm", body(t, expect(Expect{ShoeID: ShoeID(desk, 2)}), nil), "", CodeConflict},
		{"another round", "finn", "confirm", body(t, expect(Expect{RoundID: RoundID(desk, 1, 2)}), nil), "", CodeConflict},
		{"another revision", "finn", "confirm", body(t, expect(Expect{Rev: &rev}), nil), "", CodeConflict},
		{"an alert that is over", "finn", "confirm", body(t, expect(Expect{Alert: AlertID(desk, 77)}), nil), "", CodeConflict},
		{"another phase", "finn", "confirm", body(t, expect(Expect{Phase: PhaseReady}), nil), "", CodeConflict},
		{"late", "finn", "confirm", body(t, ago(31*time.Second), nil), "", CodeExpired},
		{"late by its own word", "finn", "confirm", body(t, func(c *Command) { c.TTLMS = 500; c.IssuedAt = stamp(noon.Add(-time.Second)) }, nil), "", CodeExpired},
		{"from the future", "finn", "confirm", body(t, ago(-31*time.Second), nil), "", CodeExpired},
		{"by a clock a little ahead", "finn", "confirm", body(t, ago(-20*time.Second), nil), "", ""},
		{"our clock is not set, nothing expected", "finn", "confirm", body(t, ago(-500000*time.Hour), nil), "unset", CodeExpired},
		{"our clock is not set, what is expected holds", "finn", "confirm", body(t, expect(Expect{Alert: alert}), nil), "unset", ""},
		{"our clock is not set, a board asks", "tv", "sync", body(t, ago(500000*time.Hour), nil), "unset", ""},
		{"void", "anna", "void", body(t, nil, nil), "", CodeNeedsSecond},
		{"manual", "anna", "manual", body(t, nil, nil), "", CodeNeedsSecond},
		{"a correction before the outcome", "anna", "correct", body(t, nil, map[string]any{"cards": map[string]string{"P1": "8s"}}), "", ""},
		{"a correction of another round", "anna", "correct", body(t, nil, map[string]any{"round": 7, "cards": map[string]string{"P1": "8s"}}), "", CodeNeedsSecond},
		{"expect is checked before ttl", "finn", "confirm", body(t, func(c *Command) { ago(time.Hour)(c); c.Expect = &Expect{Epoch: "e0"} }, nil), "", CodeConflict},
		{"role is checked before expect", "tv", "confirm", body(t, func(c *Command) { c.Expect = &Expect{Epoch: "e0"} }, nil), "", CodeNotAllowed},
		{"ttl is checked before dual control", "anna", "void", body(t, ago(time.Hour), nil), "", CodeExpired},
	} {
		if c.clock == "" {
			c.clock = "synced"
		}
		code, reply := through(gate(nil), c.user, c.name, c.body, &s, noon, c.clock)
		if code != c.want {
			t.Errorf("%s: %q, want %q (%+v)", c.what, code, c.want, reply)
		}
		if reply != nil && reply.Message == "" {
			t.Errorf("%s: no message", c.what)
		}
		if code == CodeConflict {
			current, ok := reply.Result.(Current)
			if !ok || current.Epoch != "e1" || current.Phase != PhasePaused || current.Alerts[0] != alert {
				t.Errorf("%s: the table is said to be %+v", c.what, reply.Result)
			}
		}
	}
	decided := play(t, plain, shoe, `{"in":"card","card":"9s"}`, `{"in":"card","card":"2h"}`, `{"in":"card","card":"Td"}`, `{"in":"card","card":"3c"}`)
	if code, _ := through(gate(nil), "anna", "correct", body(t, nil, nil), &decided, noon, "synced"); code != CodeNeedsSecond {
		t.Errorf("a correction after the outcome: %q", code)
	}
}

// A command that the broker has kept is refused before anything else is looked
// at.
func TestGateRetained(t *testing.T) {
	if _, reply := gate(nil).Arrive("eve", "fly", true, []byte("{"), noon); reply == nil || reply.Code != CodeRetained {
		t.Errorf("%+v", reply)
	}
}

// TestGateRate: five a second of one user, and what is too much is counted. One
// user's flood is no other's; nobody's names share one measure.
func TestGateRate(t *testing.T) {
	g := gate(nil)
	count := func(user string, n int, at time.Time) (passed int) {
		for range n {
			if _, reply := g.Arrive(user, "sync", false, body(t, nil, nil), at); reply == nil || reply.Code == CodeNotAllowed {
				passed++
			} else if reply.Code != CodeBusy || reply.CmdID == "" {
				t.Errorf("%+v", reply)
			}
		}
		return passed
	}
	if n := count("tv", 1000, noon); n != 5 {
		t.Errorf("of 1000 at once %d passed", n)
	}
	if n := count("anna", 5, noon); n != 5 {
		t.Errorf("of another's 5 %d passed", n)
	}
	if n := count("tv", 100, noon.Add(time.Second)); n != 5 {
		t.Errorf("a second later %d passed", n)
	}
	if n := count("tv", 100, noon.Add(-time.Hour)); n != 0 {
		t.Errorf("after the clock was put back %d passed", n)
	}
	passed := 0
	for i := range 100 {
		passed += count(fmt.Sprint("eve-", i), 1, noon)
	}
	if passed != 5 || len(g.buckets) != 3 {
		t.Errorf("of a hundred nobodies %d passed, %d measures", passed, len(g.buckets))
	}
	if n := g.Counts()[CodeBusy]; n != 995+95+100+95 {
		t.Errorf("%d counted as busy", n)
	}
}

// TestGateHears: what comes faster than twenty a second is not looked at, nor is
// what could make a reply's topic that ends a connection.
func TestGateHears(t *testing.T) {
	g := gate(nil)
	heard := 0
	for i := range 1000 {
		for _, user := range []string{"tv", fmt.Sprint("eve-", i)} {
			if g.Hears(user, "sync", noon) {
				heard++
			}
		}
	}
	if heard != 2*heardPerSecond || len(g.buckets) != 2 || g.Counts()[CodeBusy] != 2000-2*heardPerSecond {
		t.Errorf("of 2000 at once %d are heard, %d measures, %v", heard, len(g.buckets), g.Counts())
	}
	for _, c := range []struct {
		user, name string
		want       bool
	}{
		{"anna", "sync", true}, {"eve", "no-such_command", true}, {"", "sync", false}, {"anna", "", false}, {"+", "sync", false}, {"anna", "#", false},
		{"anna", "a/b", false}, {"$SYS", "x", false}, {"Anna", "sync", false}, {"anna", strings.Repeat("x", 33), false}, {strings.Repeat("x", 60000), "sync", false},
		{"anna", "x\x00", false}, {"anna", "\xff", false}, {"anna", "ünsinn", false},
	} {
		if got := g.Hears(c.user, c.name, noon.Add(time.Hour)); got != c.want {
			t.Errorf("%.40q %.40q: heard %v", c.user, c.name, got)
		}
	}
}

// TestGateRecords: nobody fills the journal. One who may only read leaves
// nothing in it, and the others 600 commands an hour.
func TestGateRecords(t *testing.T) {
	g := gate(nil)
	passed := map[ReplyCode]int{}
	for i := range 3600 {
		_, reply := g.Arrive("finn", "ack", false, body(t, nil, nil), noon.Add(time.Duration(i)*time.Second))
		code := ReplyCode("")
		if reply != nil {
			code = reply.Code
		}
		passed[code]++
	}
	if n := passed[""]; n < 1190 || n > 1200 || passed[""]+passed[CodeBusy] != 3600 { // those at once, and an hour's
		t.Errorf("%v", passed)
	}
	for _, c := range []struct {
		user, name string
		want       bool
	}{{"tv", "sync", false}, {"tv", "void", false}, {"cctv", "ack", false}, {"anna", "sync", false}, {"anna", "void", true}, {"finn", "void", true}, {"eve", "void", false}} {
		if got := g.Records(&Request{User: c.user, Name: c.name}); got != c.want {
			t.Errorf("%s of %s: recorded %v", c.name, c.user, got)
		}
	}
}

// TestRefusalIsShort: whatever a command holds, what is said of it is short, and
// what is kept of it fits a message of audit.
func TestRefusalIsShort(t *testing.T) {
	for _, text := range []string{strings.Repeat("<", 7000), strings.Repeat("\\u0000", 1100), strings.Repeat("\u2028", 2300), strings.Repeat("ü", 3500), strings.Repeat("\xff", 3500)} {
		good := body(t, nil, map[string]string{"round_id": "X"})
		for _, b := range [][]byte{
			bytes.Replace(good, []byte(`"X"`), []byte(`"`+text+`"`), 1),
			bytes.Replace(good, []byte(`"round_id"`), []byte(`"`+text+`"`), 1),
			bytes.Replace(good, []byte(`"cmd/1.0"`), []byte(`"`+text+`"`), 1),
			bytes.Replace(good, []byte(`{`), []byte(`{"`+text+`":1,`), 1),
			bytes.Replace(good, []byte(`{`), []byte(`{"expect":{"phase":"`+text+`"},`), 1),
		} {
			r, reply := gate(nil).Arrive("tv", "sync", false, b, noon)
			if reply == nil {
				kept, err := json.Marshal(Given{Body: r.Command})
				if err != nil || len(kept) > maxCommand+1<<10 || !utf8.Valid(kept) {
					t.Errorf("%.300s: %d bytes are kept: %v", b, len(kept), err)
				}
				continue
			}
			if out, err := json.Marshal(reply); err != nil || len(out) > 6*maxText+200 || !utf8.Valid(out) { // < is six bytes
				t.Errorf("%.300s: a reply of %d bytes: %v", b, len(out), err)
			}
		}
	}
}

// TestGateSignature: one that is given must be right for this very command of
// this sender at this table; where it is required, none passes without.
func TestGateSignature(t *testing.T) {
	s := paused(t)
	topic := Topic(site, desk, "cmd/anna/ack")
	signed := func(key ed25519.PrivateKey, topic string) []byte {
		c, err := NewCommand(noon, map[string]string{"alert": "A000001"})
		if err != nil {
			t.Fatal(err)
		}
		c.Reason = `he said "sig":"" and "SIGNATURE"`
		b, err := c.Sign(key, topic)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := signed(annas, topic)
	for _, c := range []struct {
		what, user, name string
		body             []byte
		required         bool
		want             ReplyCode
	}{
		{"right", "anna", "ack", good, true, ""},
		{"right, not required", "anna", "ack", good, false, ""},
		{"none", "anna", "ack", body(t, nil, nil), true, CodeNotAllowed},
		{"none, not required", "anna", "ack", body(t, nil, nil), false, ""},
		{"another's key", "anna", "ack", signed(nobody, topic), false, CodeNotAllowed},
		{"for another command", "anna", "resume", good, true, CodeNotAllowed},
		{"another user's", "bela", "ack", good, true, CodeNotAllowed},
		{"for another table", "anna", "ack", signed(annas, Topic(site, "table-2", "cmd/anna/ack")), true, CodeNotAllowed},
		{"another body", "anna", "ack", bytes.Replace(good, []byte("A000001"), []byte("A000002"), 1), true, CodeNotAllowed},
		{"another reason", "anna", "ack", bytes.Replace(good, []byte("he said"), []byte("we said"), 1), true, CodeNotAllowed},
		{"no base64", "anna", "ack", body(t, func(c *Command) { c.Sig = "?" }, nil), false, CodeNotAllowed},
		{"too short", "anna", "ack", body(t, func(c *Command) { c.Sig = "AAAA" }, nil), false, CodeNotAllowed},
	} {
		g := gate(func(o *GateOptions) { o.RequireSignature = c.required })
		if code, reply := through(g, c.user, c.name, c.body, &s, noon, "synced"); code != c.want {
			t.Errorf("%s: %q, want %q (%+v)", c.what, code, c.want, reply)
		}
	}
}

// TestGateLocal: on the table itself its owner may do everything, and names
// others only if they are known. No signature, no age is asked for.
func TestGateLocal(t *testing.T) {
	s := paused(t)
	g := gate(func(o *GateOptions) { o.RequireSignature = true })
	for _, c := range []struct {
		user, name string
		want       ReplyCode
	}{
		{"", "confirm", ""}, {"", "identify", ""}, {"", "shelve", ""}, {"", "void", CodeNeedsSecond},
		{"finn", "confirm", ""}, {"finn", "shelve", CodeNotAllowed}, {"eve", "confirm", CodeNotAllowed},
	} {
		old := body(t, func(c *Command) { c.IssuedAt = "1970-01-01T00:00:00Z" }, nil)
		r, reply := g.ArriveLocal(c.user, c.name, old, noon)
		if reply == nil {
			reply = g.Judge(&r, &s, noon, "synced")
		}
		if reply == nil && c.want != "" || reply != nil && reply.Code != c.want {
			t.Errorf("%q %s: %+v, want %q", c.user, c.name, reply, c.want)
		}
	}
}

// TestAlertOptions: every option of every alert passes the gate as it is, for
// the role that it names.
func TestAlertOptions(t *testing.T) {
	s := paused(t)
	users := map[string]string{"floor": "finn", "pit": "anna"}
	tried := 0
	for _, code := range round.Codes() {
		s.Alerts[0].Code, s.Alerts[0].Priority = code, uint8(1+tried%3)
		doc := AlertsOf(Envelope{Table: desk, Epoch: "e1"}, &s, func(uint64) *round.EventText { return nil })
		for _, o := range doc.Items[0].Options {
			tried++
			if o.Label == "" {
				t.Errorf("%s of %v has no label", o.Command, code)
			}
			b := body(t, func(c *Command) { c.Expect = &o.Expect }, o.Args)
			if got, reply := through(gate(nil), users[o.Role], o.Command, b, &s, noon, "synced"); got != "" && got != CodeNeedsSecond {
				t.Errorf("%s of %v: %+v", o.Command, code, reply)
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d options only", tried)
	}
}

func FuzzCommand(f *testing.F) {
	f.Add([]byte(`{"schema":"cmd/1.0","cmd_id":"01JNP5Z7Q8N4W3X2Y1V0T9S8R7","issued_at":"2026-03-01T20:00:00Z","ttl_ms":1,"expect":{"rev":1},"args":{"alert":"A000001"},"reason":"x"}`))
	f.Add([]byte(`{"schema":"cmd/1.0","cmd_id":"01JNP5Z7Q8N4W3X2Y1V0T9S8R7","issued_at":"2026-03-01T20:00:00Z","ttl_ms":1,"args":{"cards":{"P1":"8s"},"round":3}}`))
	f.Add([]byte(`[[[[[[`))
	f.Add([]byte(`{"a":1,"a":2}`))
	g := gate(nil)
	s := round.New(round.DefaultRules())
	f.Fuzz(func(t *testing.T, b []byte) {
		for name := range commands {
			r, reply := g.ArriveLocal("anna", name, b, noon)
			if reply != nil {
				if reply.Status != Rejected || reply.Message == "" {
					t.Fatalf("%+v", reply)
				}
				continue
			}
			again, err := json.Marshal(r.Command)
			if err != nil {
				t.Fatal(err)
			}
			if _, reply := g.ArriveLocal("anna", name, again, noon); reply != nil {
				t.Fatalf("%s passed, but written again it does not: %+v", b, reply)
			}
			g.Judge(&r, &s, noon, "synced")
		}
	})
}

// TestPermit: when who may command is changed, a flood is still one and what was
// counted stays.
func TestPermit(t *testing.T) {
	s := paused(t)
	g := gate(nil)
	for range commandsPerSecond {
		through(g, "tess", "identify", body(t, nil, nil), &s, noon, "synced")
	}
	through(g, "tess", "identify", body(t, nil, nil), &s, noon, "synced")
	o := GateOptions{Site: site, Table: desk, Epoch: "e1", Users: []User{{"tess", Tech}, {"zoe", Pit}}}
	g.Permit(o)
	if code, _ := through(g, "tess", "identify", body(t, nil, nil), &s, noon, "synced"); code != CodeBusy || g.Counts()[CodeBusy] != 2 {
		t.Errorf("a new bucket: %q, %v", code, g.Counts())
	}
	for user, want := range map[string]ReplyCode{"zoe": "", "anna": CodeNotAllowed} {
		if code, _ := through(g, user, "void", body(t, nil, nil), &s, noon, "synced"); code != want {
			t.Errorf("%s voids: %q, want %q", user, code, want)
		}
	}
}
