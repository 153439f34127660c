package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	paho "github.com/eclipse/paho.mqtt.golang"

	"shoed/mqtt"
	"shoed/round"
)

// rewrite replaces a text in the table's configuration.
func (tb *table) rewrite(old, text string) {
	tb.t.Helper()
	was, err := os.ReadFile(tb.config)
	if err != nil {
		tb.t.Fatal(err)
	}
	if !bytes.Contains(was, []byte(old)) {
		tb.t.Fatalf("the configuration has no %q", old)
	}
	if err := os.WriteFile(tb.config, bytes.Replace(was, []byte(old), []byte(text), 1), 0o600); err != nil {
		tb.t.Fatal(err)
	}
}

// hangup sends SIGHUP and waits for what is logged of it.
func (tb *table) hangup(logged string) {
	tb.t.Helper()
	n := strings.Count(tb.log.String(), logged)
	if err := tb.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		tb.t.Fatal(err)
	}
	tb.logs(logged, n+1)
}

// logs waits until a text has been logged n times.
func (tb *table) logs(text string, n int) {
	tb.t.Helper()
	eventually(tb.t, text, func() bool { return strings.Count(tb.log.String(), text) >= n })
}

// TestReload: SIGHUP in mid-round has its effect when the round is over, for
// users at once and for rules with the next shoe; what takes a restart is named
// and stays; a kill does not undo it.
func TestReload(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "round_start=first_card", "shoe.change_unproven=accept")
	tb.staffed("dual = []")
	tb.plug()
	auditor := audit(t, broker.url())
	tb.listening()
	c := newConsole(t, broker.url())
	told := func(what string, is func(*mqtt.Info) bool) {
		t.Helper()
		eventually(t, what, auditor.see(func(a *witness) bool { return is(&a.info) }))
	}
	startShoe(t, tb)
	eventually(t, "round 1 open", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhaseDealing }))
	var first mqtt.Info
	told("info", func(i *mqtt.Info) bool { first = *i; return i.ConfigHash != "" })

	tb.rewrite(`"round_start=first_card"`, `"round_start=first_card", "decks=6"`)
	tb.rewrite(`id = "t1"`, "id = \"t1\"\nlabel = \"Bacc 7\"")
	tb.rewrite("'anna=pit', ", "'anna=tech', 'zoe=pit', ")
	tb.rewrite("[reader]", "[reader]\nbaud_rate = 9600")
	tb.rewrite("[log]", "[log]\nlevel = 'debug'")
	tb.hangup("code=config.waits")
	tb.logs(`code=config.restart keys=[reader.baud_rate]`, 1)
	if r := c.ask("zoe", "pause", nil); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("a user of a configuration not yet in force: %+v", r)
	}
	if strings.Contains(tb.log.String(), "code=config.applied") {
		t.Errorf("in force while a round is open:\n%s", tb.log)
	}
	c.ask("finn", "pause", nil)
	if r := c.ask("bela", "void", nil); r.Status != mqtt.Done {
		t.Fatalf("void: %+v", r)
	}
	tb.logs(`code=config.applied keys="[rules table.label access.users log.level]"`, 1)
	if r := c.ask("zoe", "pause", nil); r.Status != mqtt.Done {
		t.Errorf("a new user: %+v", r)
	}
	if r := c.ask("anna", "void", nil); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("a user whose role was taken: %+v", r)
	}
	told("info with the new label and hash", func(i *mqtt.Info) bool {
		return i.Names["en"] == "Bacc 7" && i.ConfigHash != first.ConfigHash && i.Game.Decks == 8
	})

	tb.kill() // the snapshot of the new rules is of mid-shoe
	tb.listening()
	if strings.Contains(tb.log.String(), "code=rules.changed") {
		t.Errorf("the rules to come were forgotten:\n%s", tb.log)
	}
	c.ask("zoe", "resume", nil)
	tb.send(card(t, '4', round.ToFirst, 0, "Ad"))
	told("six decks with the next shoe", func(i *mqtt.Info) bool { return i.Game.Decks == 6 })
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}

// TestRulesOfFirstShoe: a table is installed, and started, before anybody has
// configured it; the house's rules hold for how its first shoe begins.
func TestRulesOfFirstShoe(t *testing.T) {
	broker := startMosquitto(t)
	auditor := audit(t, broker.url())
	tb := newTable(t, broker.url(), "decks=8")
	tb.plug()
	tb.running()
	decks := func(n uint8) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d decks in info", n), auditor.see(func(a *witness) bool { return a.info.Game.Decks == n }))
	}
	decks(8)
	tb.rewrite(`"decks=8"`, `"decks=6"`)
	tb.hangup("code=config.applied")
	decks(6)
	if err := tb.stop(); err != nil {
		t.Fatal(err)
	}
	tb.rewrite(`"decks=6"`, `"decks=4", "burn=unchecked", "shoe.change_unproven=accept", "round_start=reader"`)
	tb.running()
	decks(4)
	tb.send(card(t, '1', round.ToPlayer, 1, "2s")) // a shoe that is already in play
	eventually(t, "round 1 open", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhaseDealing }))
	tb.kill()
	tb.running() // what the new rules made of it comes out again
	eventually(t, "round 1 back", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhasePaused }))
	if err := tb.stop(); err != nil {
		t.Fatal(err)
	}
	tb.verify()
}

// TestReloadRefused: a wrong file changes nothing, and all that is wrong in it is
// told, whether SIGHUP or a command asked.
func TestReloadRefused(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "round_start=first_card", "decks=8")
	tb.staffed("dual = []")
	tb.plug()
	tb.listening()
	c := newConsole(t, broker.url())
	for _, wrong := range []struct {
		old, text string
		problems  []string
	}{
		{"[log]", "[log]\nlevle = 'debug'\n[raeder]", []string{":16:1: log.levle: no such key; did you mean log.level?", ":17:2: raeder: no such section; did you mean reader?"}},
		{`"decks=8"`, `"decks=99", "burn=nothing"`, []string{":1:36: rules: ", ":1:48: rules: "}},
		{"'anna=pit'", "'anna=pit', 'anna=tech'", []string{"access.users[1]: \"anna\" is there twice"}},
		{"dual = []", "dual = ['avoid']", []string{"access.dual: no such command: \"avoid\""}},
	} {
		right, err := os.ReadFile(tb.config)
		if err != nil {
			t.Fatal(err)
		}
		tb.rewrite("'tess=tech'", "'tess=tech', 'zoe=pit'")
		tb.rewrite(wrong.old, wrong.text)
		tb.hangup("code=config.wrong")
		r := c.ask("tess", "config-reload", nil)
		if r.Status != mqtt.Failed || r.Code != mqtt.CodeNotApplicable {
			t.Errorf("config-reload: %+v", r)
		}
		problems, _ := r.Result.(map[string]any)["problems"].([]any)
		if len(problems) != len(wrong.problems) {
			t.Errorf("told %q, want %q", problems, wrong.problems)
		}
		for i, p := range wrong.problems {
			if i < len(problems) && !strings.Contains(problems[i].(string), p) {
				t.Errorf("told %q, want %q", problems[i], p)
			}
			tb.logs(strings.ReplaceAll(p, `"`, `\"`), 2)
		}
		if r := c.ask("zoe", "pause", nil); r.Code != mqtt.CodeNotAllowed {
			t.Errorf("a user of a wrong configuration: %+v", r)
		}
		if err := os.WriteFile(tb.config, right, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.ask("finn", "config-reload", nil); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("a floor supervisor: %+v", r)
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
}

// TestReloadCommand: in mid-round there is one reply now and one when it is in
// force.
func TestReloadCommand(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "round_start=first_card")
	tb.staffed("dual = []")
	tb.plug()
	tb.listening()
	c := newConsole(t, broker.url())
	auditor := audit(t, broker.url())
	startShoe(t, tb)
	eventually(t, "a round", auditor.see(func(a *witness) bool { return a.state.Phase == mqtt.PhaseDealing }))
	tb.rewrite("'tess=tech'", "'tess=tech', 'zoe=pit'")
	tb.rewrite("[table]", "[metrics]\nlisten = '127.0.0.1:0'\n[table]")
	reload := command(t, nil)
	c.send("tess", "config-reload", reload)
	keys := `map[applied:[access.users] restart:[metrics.listen]]`
	if r := c.replied(reload.CmdID, 1); r.Status != mqtt.Accepted || fmt.Sprint(r.Result) != keys {
		t.Errorf("config-reload: %+v", r)
	}
	if r := c.ask("zoe", "pause", nil); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("a user of a configuration not yet in force: %+v", r)
	}
	c.ask("finn", "pause", nil)
	if r := c.ask("anna", "void", nil); r.Status != mqtt.Done {
		t.Fatalf("void: %+v", r)
	}
	if r := c.replied(reload.CmdID, 2); r.Status != mqtt.Done || fmt.Sprint(r.Result) != keys {
		t.Errorf("config-reload: %+v", r)
	}
	if r := c.ask("zoe", "pause", nil); r.Status != mqtt.Done {
		t.Errorf("a new user: %+v", r)
	}
	c.send("tess", "config-reload", reload)
	if r := c.replied(reload.CmdID, 3); !r.Duplicate || r.Status != mqtt.Done {
		t.Errorf("the same again: %+v", r)
	}
	tb.rewrite("'zoe=pit'", "'zoe=board'")
	if r := c.ask("tess", "config-reload", nil); r.Status != mqtt.Done || fmt.Sprint(r.Result) != keys {
		t.Errorf("config-reload with no round open: %+v", r)
	}
	if r := c.ask("zoe", "resume", nil); r.Code != mqtt.CodeNotAllowed {
		t.Errorf("a user whose role was taken: %+v", r)
	}
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	tb.verify()
}

// TestReloadUsers: at the embedded broker a new user gets in, and one whose
// password is another or who is gone is put out. Users where nobody was asked
// before take a restart.
func TestReloadUsers(t *testing.T) {
	tb := newTable(t, "")
	passwords := filepath.Join(tb.dir, "passwords")
	set := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("mosquitto_passwd", args...).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	set("-c", "-b", passwords, "tv", "one")
	set("-b", passwords, "anna", "one")
	if err := os.Chmod(passwords, 0o600); err != nil {
		t.Fatal(err)
	}
	tb.running()
	tb.rewrite("[log]", "[access]\nusers = ['tv=board', 'anna=pit']\npassword_file = '"+passwords+"'\n[log]")
	tb.hangup(`code=config.applied keys=[]`)
	tb.logs(`code=config.restart keys="[access.users access.password_file]"`, 1)
	if err := tb.stop(); err != nil {
		t.Fatal(err)
	}
	tb.running()
	at := regexp.MustCompile(`mqtt=(127[0-9.:]+)`).FindStringSubmatch(tb.log.String())[1]
	enter := func(user, password string) (paho.Client, error) {
		c := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + at).SetClientID("c-" + user).SetUsername(user).SetPassword(password).SetAutoReconnect(false))
		token := c.Connect()
		token.WaitTimeout(patience)
		t.Cleanup(func() { c.Disconnect(0) })
		return c, token.Error()
	}
	tv, err := enter("tv", "one")
	if err != nil {
		t.Fatal(err)
	}
	anna, err := enter("anna", "one")
	if err != nil {
		t.Fatal(err)
	}
	tb.rewrite("'anna=pit'", "'anna=pit', 'zoe=tech'")
	tb.hangup("code=config.wrong")
	tb.logs(`user \"zoe\" has no password`, 1)
	set("-b", passwords, "zoe", "two")
	set("-b", passwords, "anna", "two")
	tb.hangup("code=config.applied")
	eventually(t, "who has another password is put out", func() bool { return !anna.IsConnectionOpen() })
	if _, err := enter("anna", "one"); err == nil {
		t.Error("let in with the old password")
	}
	for _, user := range []string{"anna", "zoe"} {
		if _, err := enter(user, "two"); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
	if !tv.IsConnectionOpen() {
		t.Error("whom nothing changed for was put out")
	}
	tb.rewrite("'tv=board', ", "")
	tb.hangup("code=config.applied keys=[access.users]")
	eventually(t, "who is no user any more is put out", func() bool { return !tv.IsConnectionOpen() })
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
}
