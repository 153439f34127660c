package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/config"
)

func TestConfigCommand(t *testing.T) {
	if out, _, err := shoedCommand("config", "example"); err != nil || out != config.Example() {
		t.Errorf("config example: %v\n%s", err, out)
	}
	path := filepath.Join(t.TempDir(), "shoed.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SHOED_TABLE_LABEL", "Bacc 7")
	write("[reader]\nbaud_rate = 9600\n[mqtt]\nuser = 'u'\npassword = 'hunter2'\n")
	out, _, err := shoedCommand("config", "show", "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(out) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, want := range []string{
		"reader.baud_rate = 9600 # " + path + ":2:13 restart", `table.label = "Bacc 7" # SHOED_TABLE_LABEL reload`,
		`rules = [] # default reload, next shoe`, `mqtt.password = "[secret]" # ` + path + ":5:12 restart",
	} {
		if !lines[want] {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	asJSON, _, err := shoedCommand("config", "show", "--json", "--config", path)
	var settings []struct {
		Key, From, Takes string
		Value            any
	}
	if err != nil || json.Unmarshal([]byte(asJSON), &settings) != nil || len(settings) != len(lines) {
		t.Fatalf("%v: %s", err, asJSON)
	}
	if strings.Contains(out+asJSON, "hunter2") {
		t.Error("the password is shown")
	}
	if s := settings[1]; s.Key != "bets_file" || s.Value != "" || s.From != "default" || s.Takes != "reload, next shoe" {
		t.Errorf("%+v", s)
	}
	write("[reader]\nbaudrate = 9600\n")
	if out, _, err := shoedCommand("config", "show", "--config", path); out != "" || err == nil || err.Error() != path+":2:1: reader.baudrate: no such key; did you mean reader.baud_rate?" {
		t.Errorf("%v: %s", err, out)
	}
	write("rules = ['decks=99', 'burn=x']\naccess.dual = ['avoid']\n")
	if _, _, err := shoedCommand("config", "show", "--config", path); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all that is wrong: %v", err)
	}
}
