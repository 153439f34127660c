package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"shoed/mqtt"
)

// With users the table itself still gets to its broker, and strangers do not.
func TestStrangersAreKeptOut(t *testing.T) {
	tb := newTable(t, "")
	passwords := filepath.Join(tb.dir, "passwd")
	if out, err := exec.Command("mosquitto_passwd", "-b", "-c", passwords, "anna", "secret").CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_passwd: %v: %s", err, out)
	}
	if err := os.Chmod(passwords, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(tb.config)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "[access]\nusers = ['anna=pit']\npassword_file = '"+passwords+"'\n"...)
	if err := os.WriteFile(tb.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	tb.running()
	eventually(t, "the publisher's connection", func() bool { return strings.Contains(tb.log.String(), "code=broker_connected") })
	at := regexp.MustCompile(`code=broker.opened mqtt=(\S+) .*users=1`).FindStringSubmatch(tb.log.String())
	if at == nil {
		t.Fatalf("the log does not say where the broker is:\n%s", tb.log)
	}
	if _, err := mqtt.Subscribe(t.Context(), mqtt.Account{Server: "mqtt://" + at[1]}, "test", "t1", nil); err == nil || !strings.Contains(err.Error(), "not Authorized") {
		t.Errorf("a stranger: %v", err)
	}
	eventually(t, "the refusal in the log", func() bool { return strings.Contains(tb.log.String(), "code=login_refused") })
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
}
