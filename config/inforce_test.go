package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	path := file(t, "rules = ['decks=6']\n[mqtt]\nuser = 'u'\npassword = 'hunter2'\n")
	c, err := Load(path, []string{"SHOED_READER_BAUD_RATE=9600"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"rules":            `rules = ["decks=6"] ` + path + ":1:9 reload, next shoe",
		"mqtt.password":    `mqtt.password = "[secret]" ` + path + ":4:12 restart",
		"reader.baud_rate": "reader.baud_rate = 9600 SHOED_READER_BAUD_RATE restart",
		"mqtt.audit":       "mqtt.audit = false default restart",
		"access.users":     "access.users = [] default reload",
	}
	n := 0
	all := c.Settings()
	for k := range keys() {
		if n >= len(all) || all[n].Key != k.path {
			t.Fatalf("setting %d is not %s", n, k.path)
		}
		got := fmt.Sprintf("%v %v %v", all[n], all[n].Where, all[n].Takes)
		if w, ok := want[k.path]; ok && got != w {
			t.Errorf("got  %s\nwant %s", got, w)
		}
		if strings.Contains(fmt.Sprintf("%+v %#v", all[n], all[n]), "hunter2") {
			t.Errorf("%s shows the password", k.path)
		}
		n++
	}
	if n != len(all) {
		t.Errorf("%d settings for %d keys", len(all), n)
	}
	if c := load(t, ""); !slices.ContainsFunc(c.Settings(), func(s Setting) bool { return s.String() == `mqtt.password = ""` }) {
		t.Error("a password that nobody gave is shown as a secret")
	}
}

// Of each key alone: what takes no restart comes into force, and the rest stays
// and is named.
func TestReload(t *testing.T) {
	const before = "[access]\nusers = ['a=pit']\n[mqtt]\nservers = ['tcp://a:1883']\n"
	now := load(t, before)
	for _, c := range []struct {
		env      string
		reloaded bool
	}{
		{"SHOED_RULES=decks=6", true}, {"SHOED_BETS_FILE=/x", true}, {"SHOED_TABLE_LABEL=x", true}, {"SHOED_JOURNAL_MAX_AGE_DAYS=31", true},
		{"SHOED_JOURNAL_MAX_BYTES=60000000", true}, {"SHOED_ACCESS_USERS=b=pit", true}, {"SHOED_ACCESS_DUAL=void", true}, {"SHOED_LOG_LEVEL=warn", true},
		{"SHOED_TABLE_ID=x", false}, {"SHOED_READER_BAUD_RATE=9600", false}, {"SHOED_JOURNAL_DIR=/x", false}, {"SHOED_MQTT_SERVERS=tcp://b:1883", false},
		{"SHOED_MQTT_AUDIT=true", false}, {"SHOED_CONTROL_SOCKET=/x", false}, {"SHOED_METRICS_LISTEN=127.0.0.1:1", false}, {"SHOED_LOG_FORMAT=json", false},
	} {
		next := load(t, before, c.env)
		inForce, applied, restart := now.Reload(next)
		key := ""
		for _, s := range next.Settings() {
			if s.Where.Variable != "" {
				key = s.Key
			}
		}
		want := now.Hash()
		if c.reloaded {
			want, applied, restart = next.Hash(), restart, applied // so that restart must be the key
		}
		if !slices.Equal(restart, []string{key}) || len(applied) != 0 {
			t.Errorf("%s: %v and %v", c.env, applied, restart)
		}
		if inForce.Hash() != want {
			t.Errorf("%s: wrongly in force", c.env)
		}
		if again, applied, _ := inForce.Reload(next); len(applied) != 0 || again.Hash() != want {
			t.Errorf("%s: the same again changes %v", c.env, applied)
		}
	}
	if now.Hash() != load(t, before).Hash() {
		t.Error("the configuration before was changed")
	}
}

// What was only checked together changes together.
func TestReloadTied(t *testing.T) {
	own := file(t, "")
	const elsewhere, open = "mqtt.servers = ['tcp://a:1883']\n", "log.level = 'warn'\n"
	inside := "access.users = ['a=pit']\naccess.password_file = '" + own + "'\n"
	for _, c := range []struct{ from, to, applied, restart string }{
		{"", inside + open, "log.level", "access.users access.password_file"},
		{inside, open, "log.level", "access.users access.password_file"},
		{inside, elsewhere + "access.users = ['b=pit']", "", "mqtt.servers access.users access.password_file"},
		{elsewhere, elsewhere + "access.users = ['b=pit']", "access.users", ""},
		{"", "rules = ['round_start=bets']\nreader.protocol = 'barcode'", "", "rules reader.protocol"},
	} {
		_, applied, restart := load(t, c.from).Reload(load(t, c.to))
		if strings.Join(applied, " ") != c.applied || strings.Join(restart, " ") != c.restart {
			t.Errorf("%q to %q: %v and %v", c.from, c.to, applied, restart)
		}
	}
}

func TestPasswordTakesRestart(t *testing.T) {
	const text = "[mqtt]\nuser = 'u'\npassword = "
	_, applied, restart := load(t, text+"'one'").Reload(load(t, text+"'two'"))
	if len(applied) != 0 || !slices.Equal(restart, []string{"mqtt.password"}) {
		t.Errorf("%v and %v", applied, restart)
	}
}
