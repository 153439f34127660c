package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"shoed/config"
	"shoed/mqtt"
)

// passwords makes a file by mosquitto_passwd, in which everybody's is his name
// twice.
func passwords(t testing.TB, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if out, err := exec.Command("mosquitto_passwd", "-b", path, name, name+name).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	return path
}

// secretFile holds a password.
func secretFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// aclFor is the shipped file for the site of the tests, with the examples' own
// users, without the lines that hold one of those texts.
func aclFor(t testing.TB, without ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "mqtt", "mosquitto.acl"))
	if err != nil {
		t.Fatal(err)
	}
	acl := regexp.MustCompile(`(?m)^#(user|topic) `).ReplaceAllString(strings.ReplaceAll(string(text), "/house/", "/test/"), "$1 ")
	for _, line := range without {
		if !strings.Contains(acl, line+"\n") {
			t.Fatalf("no line %q in the shipped file", line)
		}
		acl = strings.Replace(acl, line+"\n", "", 1)
	}
	return acl
}

// guard makes the broker ask everybody who he is.
func (m *mosquitto) guard(acl string) {
	m.t.Helper()
	path := filepath.Join(m.t.TempDir(), "acl")
	conf := "user root\nlistener " + m.port + " 127.0.0.1\nallow_anonymous false\npersistence false\nlog_dest none\nacl_file " + path +
		"\npassword_file " + passwords(m.t, "t1", "anna", "bela", "cctv", "board-1") + "\n"
	for name, text := range map[string]string{path: acl, m.conf: conf} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	m.kill()
	m.start()
}

// guarded starts a table on a broker with users, and gives the broker's address.
func guarded(t *testing.T, tb *table, access string) string {
	t.Helper()
	text, err := os.ReadFile(tb.config)
	if err != nil {
		t.Fatal(err)
	}
	embedded := strings.Contains(string(text), "servers = []")
	access = "[access]\nusers = ['anna=pit', 'bela=pit', 'cctv=surveillance', 'board-1=board']\n" + access
	if embedded {
		access += "\npassword_file = '" + passwords(t, "anna", "bela", "cctv", "board-1") + "'\n"
	}
	conf := strings.Replace(string(text), "[mqtt]\n", "[mqtt]\nuser = 't1'\npassword_file = '"+secretFile(t, "t1t1")+"'\n", 1) + access
	if embedded {
		conf = string(text) + access
	}
	if err := os.WriteFile(tb.config, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	tb.listening()
	if at := regexp.MustCompile(`code=broker.opened mqtt=(\S+)`).FindStringSubmatch(tb.log.String()); at != nil {
		return "mqtt://" + at[1]
	}
	return ""
}

// TestCmd: over brokers with users, people command a table by hand and by
// script, signed; what fails says so, in words and by the exit code.
func TestCmd(t *testing.T) {
	key := filepath.Join(t.TempDir(), "anna.key")
	public, _, err := shoed(t, "", "key", "new", key)
	if err != nil {
		t.Fatal(err)
	}
	access := "keys = ['anna=" + strings.TrimSpace(public) + "', 'bela=" + strings.TrimSpace(public) + "']\nrequire_signature = true"
	t.Run("mosquitto", func(t *testing.T) {
		broker := startMosquitto(t)
		broker.guard(aclFor(t) + blockFor(t, "anna", "bela"))
		tb := newTable(t, broker.url())
		guarded(t, tb, access)
		testCmd(t, tb, broker.url(), key)
	})
	t.Run("embedded", func(t *testing.T) {
		tb := newTable(t, "")
		testCmd(t, tb, guarded(t, tb, access), key)
	})
}

// blockFor is the shipped file's block of one user for another.
func blockFor(t testing.TB, example, user string) string {
	t.Helper()
	_, block, found := strings.Cut(aclFor(t), "user "+example+"\n")
	if !found {
		t.Fatal("no block of " + example)
	}
	block, _, _ = strings.Cut(block, "\n#\n")
	return "user " + user + "\n" + strings.ReplaceAll(block, "/"+example+"/", "/"+user+"/") + "\n"
}

// patient runs a command line until the table finds that it was asked slowly
// enough. Asked much faster it would not answer at all.
func patient(t testing.TB, words ...string) (stdout, stderr string, err error) {
	t.Helper()
	for again := time.NewTicker(time.Second / 4); ; <-again.C {
		if stdout, stderr, err = shoed(t, "", words...); err == nil || !strings.Contains(err.Error(), "more than 5 commands a second") {
			return stdout, stderr, err
		}
	}
}

func testCmd(t *testing.T, tb *table, server, key string) {
	ask := func(user string, words ...string) (out, errs string, err error) {
		return patient(t, append([]string{"cmd", "--server", server, "--site", "test", "--table", "t1", "--user", user,
			"--password-file", secretFile(t, user+user), "--key", key, "--wait", "30s"}, words...)...)
	}
	if out, _, err := ask("anna", "--reason", "a fly", "pause"); err != nil || !strings.HasPrefix(out, "done: ") || !strings.Contains(out, "table.paused") {
		t.Fatalf("pause: %q, %v", out, err)
	}
	if tb.exportedWith(`"do":"pause","by":"anna"`) != 1 {
		t.Error("the pause is not on record")
	}
	for range 2 {
		out, _, err := ask("anna", "--json", "--id", "01JD0000000000000000000001", "dealer", "name=Ida")
		var r mqtt.Rsp
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.Schema != "rsp/1.0" || r.Status != mqtt.Done || r.CmdID != "01JD0000000000000000000001" {
			t.Errorf("dealer: %q, %v", out, err)
		}
		if err != nil {
			t.Error(err)
		}
	}
	out, _, err := ask("anna", "void")
	id := regexp.MustCompile(`(?m)^accepted: another person .*\napprove (cmd_id=\S+)$`).FindStringSubmatch(out)
	if err != nil || id == nil {
		t.Fatalf("void: %q, %v", out, err)
	}
	if _, _, err := ask("anna", "approve", id[1]); err == nil || !strings.Contains(err.Error(), "not_allowed") {
		t.Errorf("one person alone: %v", err)
	}
	if out, _, err := ask("bela", "approve", id[1]); err != nil || !strings.HasPrefix(out, "done: ") {
		t.Errorf("approve: %q, %v", out, err)
	}
	testSecond(t, tb, ask)
	if _, _, err := ask("anna", "--expect", "shoe_id=t1-S000099", "--expect", "rev=0", "resume"); err == nil || !strings.Contains(err.Error(), "resume rejected: conflict") {
		t.Errorf("an expectation that does not hold: %v", err)
	}
	if out, _, err := ask("anna", "--json", "fly"); err == nil || !strings.Contains(out, `"code":"bad_request"`) {
		t.Errorf("no such command: %q, %v", out, err)
	}
	events, said, err := ask("bela", "sync", "from_seq=1")
	if err != nil || !strings.Contains(said, "done: all were sent") || !strings.HasPrefix(events, `{"schema":"event/1.0"`) {
		t.Errorf("sync: %q, %q, %v", events, said, err)
	}
	for i, line := range strings.Split(strings.TrimSpace(events), "\n") {
		var e mqtt.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq != uint64(i+1) {
			t.Errorf("event %d of the sync: %s, %v", i+1, line, err)
		}
	}
	t.Setenv(passwordVariable, "annaanna")
	plain := []string{"cmd", "--server", server, "--config", tb.config, "--user", "anna", "--wait", "30s"}
	if _, _, err := patient(t, append(plain, "resume")...); err == nil || !strings.Contains(err.Error(), "a signature is required") {
		t.Errorf("not signed: %v", err)
	}
	if _, _, err := patient(t, append(plain, "--key", key, "pause")...); err != nil {
		t.Errorf("with the configuration and the password in a variable: %v", err)
	}
	tb.kill()
	_, _, err = patient(t, append(plain, "--key", key, "--wait", "500ms", "--id", "01JD0000000000000000000002", "resume")...)
	if err == nil || !strings.Contains(err.Error(), "--id 01JD0000000000000000000002") {
		t.Errorf("a table that is not there: %v", err)
	}
}

// testSecond: who waits for the second person is told what came of it.
func testSecond(t *testing.T, tb *table, ask func(string, ...string) (string, string, error)) {
	t.Helper()
	const id = "01JD0000000000000000000003"
	type said struct {
		out string
		err error
	}
	commands := func() int {
		shown, _, err := shoed(t, "", "journal", "show", tb.file())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(shown, "  command ")
	}
	before := commands()
	heard := make(chan said, 1)
	go func() {
		out, _, err := ask("anna", "--wait-second", "--id", id, "manual", "B1=3h")
		heard <- said{out, err}
	}()
	eventually(t, "the command on record", func() bool { return commands() > before })
	_, _, err := ask("bela", "approve", "cmd_id="+id)
	first := <-heard
	if !strings.HasPrefix(first.out, "accepted: ") || fmt.Sprint(err) != strings.Replace(fmt.Sprint(first.err), "manual", "approve", 1) {
		t.Errorf("manual: %q, %v; its approve: %v", first.out, first.err, err)
	}
	if tb.exportedWith(`"by":"anna+bela"`) == 0 {
		t.Error("the two are not on record")
	}
}

// What cannot be understood is said before anything is sent.
func TestCmdWords(t *testing.T) {
	good := []string{"cmd", "--server", "mqtt://127.0.0.1:1", "--site", "s", "--table", "t1", "--user", "anna"}
	for want, args := range map[string][]string{
		"at least 1 arg":              {"cmd"},
		"needed are --user":           {"cmd", "--server", "mqtt://127.0.0.1:1", "pause"},
		"write it as key=value":       append(good, "pause", "x"),
		`--expect "x": write it as`:   append(good, "pause", "--expect", "x"),
		"there are epoch, shoe_id":    append(good, "pause", "--expect", "x=1"),
		"rev is a number":             append(good, "pause", "--expect", "rev=x"),
		"want a ULID":                 append(good, "pause", "--id", "x"),
		"ttl_ms 60000":                append(good, "pause", "--ttl", "1m"),
		"no such file":                append(good, "pause", "--key", "/none"),
		"--password-file: stat /none": append(good, "pause", "--password-file", "/none"),
		"connection refused":          append(good, "pause"),
	} {
		if out, _, err := shoed(t, "", args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %q, %v; want %s", args, out, err, want)
		}
	}
	for want, got := range map[string]struct{ listen, cert string }{
		"mqtt://127.0.0.1:1883": {"127.0.0.1:1883", ""}, "mqtts://localhost:8883": {"0.0.0.0:8883", "/cert"}, "mqtt://localhost:1": {"[::]:1", ""},
	} {
		if server, err := embeddedServer(&config.MQTT{Listen: got.listen, ListenCertFile: got.cert}); server != want || err != nil {
			t.Errorf("%+v: %s, %v; want %s", got, server, err, want)
		}
	}
	for _, listen := range []string{"off", "127.0.0.1:0"} {
		if server, err := embeddedServer(&config.MQTT{Listen: listen}); err == nil || !strings.Contains(err.Error(), "give --server") {
			t.Errorf("%s: %s, %v", listen, server, err)
		}
	}
}
