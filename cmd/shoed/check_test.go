package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/mqtt"
)

// checked runs shoed check and gives what it finds but of this machine and its
// reader. Each line is a finding, and any failure is an error.
func checked(t testing.TB, tb *table, more ...string) (found []mqtt.Finding, text string, err error) {
	t.Helper()
	words := append([]string{"check", "--config", tb.config, "--listen", "0"}, more...)
	all, _, failure := shoed(t, "", words...)
	lines, _, _ := shoed(t, "", append(words, "--json")...)
	if strings.Count(all, "\n") != strings.Count(lines, "\n") || (failure != nil) != strings.Contains(all, "fail  ") {
		t.Errorf("%v\n%s%s", failure, all, lines)
	}
	for line := range strings.Lines(lines) {
		var f mqtt.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if name, _, _ := strings.Cut(f.Check, " "); name != "configuration" && name != "user" && name != "broker" && name != "mqtt.listen" {
			continue
		}
		printed := fmt.Sprintf("%s  %s: %s\n", f.Result, f.Check, f.Text)
		if !strings.Contains(all, printed) {
			t.Errorf("in JSON, but not printed: %s", printed)
		}
		if found, text = append(found, f), text+printed; f.Result == mqtt.Fail {
			err = failure
		}
	}
	return found, text, err
}

// TestCheck: with the shipped rights a table passes, stopped and at work, and
// without one of them the check fails and names it.
func TestCheck(t *testing.T) {
	broker := startMosquitto(t)
	broker.guard(aclFor(t))
	tb := newTable(t, broker.url())
	guarded(t, tb, "")
	as := []string{"--as", "cctv", "--password-file", secretFile(t, "cctvcctv")}
	if _, text, err := checked(t, tb, as...); err != nil || !strings.Contains(text, "pass  broker "+broker.addr()+", status: the table is online") {
		t.Errorf("at work: %v\n%s", err, text)
	}
	if err := tb.stop(); err != nil {
		t.Fatal(err)
	}
	found, text, err := checked(t, tb, as...)
	if err != nil || strings.Count(text, "pass  ") != len(found) || !strings.Contains(text, "event health alerts rsp/+/+ replay/+: cctv has seen it") {
		t.Errorf("stopped: %v\n%s", err, text)
	}
	broker.guard(aclFor(t, "pattern write shoed/v1/test/%u/cmd/%u/loopback", "pattern write shoed/v1/test/%u/roads"))
	_, text, err = checked(t, tb, as...)
	for _, name := range []string{"cmd/t1/loopback", "roads"} {
		if want := "user t1 may not write shoed/v1/test/t1/" + name + ": add to its rights at the broker: topic write shoed/v1/test/t1/" + name + "\n"; !strings.Contains(text, want) {
			t.Errorf("not said: %s", want)
		}
	}
	if err == nil || strings.Count(text, "fail  ") != 2 {
		t.Errorf("without two rights: %v\n%s", err, text)
	}
	replaceIn(t, tb.config, "user = 't1'", "user = 'cctv'")
	if _, text, err := checked(t, tb); err == nil || !strings.Contains(text, "warn  user: mqtt.user is \"cctv\" and table.id \"t1\"") || !strings.Contains(text, `refuses user "cctv"`) {
		t.Errorf("another user, a wrong password: %v\n%s", err, text)
	}
	broker.kill()
	if _, text, err := checked(t, tb); err == nil || !strings.Contains(text, "connection refused") {
		t.Errorf("no broker: %v\n%s", err, text)
	}
}

// TestCheckEmbedded: what the broker inside shoed needs, before and while it runs.
func TestCheckEmbedded(t *testing.T) {
	tb := newTable(t, "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	replaceIn(t, tb.config, `listen = "127.0.0.1:0"`, `listen = "`+taken.Addr().String()+`"`)
	if _, text, err := checked(t, tb); err == nil || !strings.Contains(text, "fail  mqtt.listen: listen tcp "+taken.Addr().String()) {
		t.Errorf("a taken address: %v\n%s", err, text)
	}
	taken.Close()
	if _, text, err := checked(t, tb); err != nil || !strings.Contains(text, "pass  mqtt.listen: "+taken.Addr().String()+" is free") {
		t.Errorf("a free address: %v\n%s", err, text)
	}
	guarded(t, tb, "")
	if _, text, err := checked(t, tb); err != nil || !strings.Contains(text, "it starts, with 4 users") || !strings.Contains(text, "pass  mqtt.listen: "+taken.Addr().String()+" answers") {
		t.Errorf("at work: %v\n%s", err, text)
	}
	replaceIn(t, tb.config, "users = ['anna=pit'", "users = ['zoe=pit', 'anna=pit'")
	if _, text, err := checked(t, tb); err == nil || !strings.Contains(text, `fail  broker inside shoed: embedded broker: user "zoe" has no password; give one: mosquitto_passwd`) {
		t.Errorf("no password: %v\n%s", err, text)
	}
}

// TestCheckConfiguration: all that is wrong with it, a line each.
func TestCheckConfiguration(t *testing.T) {
	for want, text := range map[string]string{
		"fail  configuration: FILE:2:1: reader.baud":    "[reader]\nbaud = 1\nparity = 'x'\n",
		"fail  configuration: FILE:3:10: reader.parity": "[reader]\nbaud = 1\nparity = 'x'\n",
		"fail  configuration: FILE:1:10: rules: ":       "rules = ['decks=99']\n",
		"protocol":                                        "[reader]\nprotocol = 'none'\n",
		"access.dual: no such command: \"fly\"":           "[access]\ndual = ['fly']\n",
		"fail  configuration: configuration: open /none:": "",
	} {
		path := filepath.Join(t.TempDir(), "c.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			path = "/none"
		}
		out, _, err := shoed(t, "", "check", "--config", path)
		if err == nil || !strings.Contains(strings.ReplaceAll(out, path, "FILE"), strings.ReplaceAll(want, "/none", "FILE")) {
			t.Errorf("%q: %v\n%s\nwant %s", text, err, out, want)
		}
	}
}
