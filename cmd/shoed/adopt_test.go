package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/config"
	"shoed/mqtt"
	"shoed/round"
)

// replaced is a table that has played, raised an alert and died; witness has
// seen it.
func replaced(t *testing.T, broker *mosquitto) (*table, mqtt.Status) {
	t.Helper()
	seen := audit(t, broker.url())
	old := newTable(t, broker.url(), "shoe.change_unproven=accept")
	old.plug()
	old.listening()
	startShoe(t, old)
	old.send(card(t, '4', round.ToFirst, 0, "Ad"))
	eventually(t, "the second shoe", seen.see(func(w *witness) bool { return w.state.Shoe != nil && w.state.Shoe.No == 2 }))
	old.unplug()
	eventually(t, "an alert", seen.see(func(w *witness) bool { return len(w.alerts.Items) > 0 }))
	old.kill()
	eventually(t, "the will", seen.see(func(w *witness) bool { return w.status.State == mqtt.Offline }))
	seen.mu.Lock()
	defer seen.mu.Unlock()
	return old, seen.status
}

// TestAdopt: on a replacement shoes, alerts and sessions go on from the old
// table's, under a new epoch, and the first shoe needs no cut card before it.
func TestAdopt(t *testing.T) {
	const skipped = 1000 // of alerts, where those that were cleared are not known
	for name, more := range map[string]uint32{"backup": 0, "broker": skipped, "both": skipped} {
		t.Run(name, func(t *testing.T) {
			broker := startMosquitto(t)
			old, will := replaced(t, broker)
			n, err := numbersIn(old.file(), mustLoad(t, old.config))
			if err != nil || n.Shoe != 2 || n.Alert == 0 || n.Session != will.Session {
				t.Fatalf("the old journal has %+v, %v; the will session %d", n, err, will.Session)
			}
			from := map[string][]string{"backup": {"--backup", old.file()}, "broker": {"--from-broker"}, "both": {"--from-broker", "--backup", old.file()}}[name]
			replace(t, broker, will, n.Alert+more+1, from...)
		})
	}
}

// replace lets a new table adopt the old one's numbers, and play.
func replace(t *testing.T, broker *mosquitto, will mqtt.Status, alert uint32, from ...string) {
	tb := newTable(t, broker.url())
	out, _, err := shoedCommand(append([]string{"adopt", "--config", tb.config}, from...)...)
	if err != nil || !strings.HasPrefix(out, "the next shoe is t1-S000003, the next alert "+mqtt.AlertID("t1", alert)+", the next session ") {
		t.Fatalf("%s %v", out, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(tb.file()), "*")); len(left) != 1 {
		t.Errorf("it left %v", left)
	}
	if _, _, err := shoedCommand(append([]string{"adopt", "--config", tb.config}, from...)...); err == nil || !strings.Contains(err.Error(), "is there: this table has its own numbers") {
		t.Errorf("a second time: %v", err)
	}
	seen := audit(t, broker.url())
	tb.plug()
	tb.listening()
	startShoe(t, tb)
	eventually(t, "the first shoe", seen.see(func(w *witness) bool {
		return w.state.Epoch != will.Epoch && w.state.Shoe != nil && w.state.Shoe.ID == "t1-S000003" && w.state.AlertsActive == 0
	}))
	eventually(t, "a later session", seen.see(func(w *witness) bool { return w.status.State == mqtt.Online && w.status.Session > will.Session }))
	tb.unplug()
	eventually(t, "the next alert", seen.see(func(w *witness) bool {
		return len(w.alerts.Items) == 1 && w.alerts.Items[0].Alert == mqtt.AlertID("t1", alert)
	}))
	tb.kill()
	tb.verify()
	seen.mu.Lock()
	for i := range seen.events {
		if e := &seen.events[i]; e.Epoch != will.Epoch && e.Seq == 1 {
			defer seen.mu.Unlock()
			return
		}
	}
	t.Error("the new epoch does not begin at 1")
	seen.mu.Unlock()
}

// TestAdoptRefuses: what cannot be adopted is said, and no journal made.
func TestAdoptRefuses(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url())
	refused := func(want string, from ...string) {
		t.Helper()
		_, _, err := shoedCommand(append([]string{"adopt", "--config", tb.config}, from...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", from, err, want)
		}
		if _, err := os.Stat(tb.file()); err == nil {
			t.Errorf("%q made a journal", from)
		}
	}
	refused("give --from-broker, --backup FILE or both")
	refused("no such file", "--backup", "/none")
	refused("journal "+tb.config, "--backup", tb.config)
	refused("the broker keeps 0 of the 3 documents of table t1 of test", "--from-broker")
	other := newTable(t, broker.url())
	other.plug()
	other.listening()
	seen := audit(t, broker.url())
	eventually(t, "the other to be online", seen.see(func(w *witness) bool { return w.status.State == mqtt.Online }))
	refused("table t1 is online at the broker: stop the other one first", "--from-broker")
	if err := other.stop(); err != nil {
		t.Fatal(err)
	}
	refused("table t1 had no shoe", "--from-broker")
	broker.kill()
	refused("connection refused", "--from-broker")
	tb = newTable(t, "")
	refused("mqtt.servers names no broker", "--from-broker")
}

func mustLoad(t testing.TB, path string) *config.Config {
	t.Helper()
	cfg, err := loadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
