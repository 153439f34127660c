package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"shoed/scanner"
)

// scrape reads a table's metrics: the text, and the values by name with labels.
func scrape(t testing.TB, url string) (string, map[string]float64) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", r.Status, err, text)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if ok {
			name += "}"
		} else {
			name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil && name != "#" {
			values[name] = n
		}
	}
	return string(text), values
}

func (tb *table) withMetrics(listen string) {
	replaceIn(tb.t, tb.config, "[log]", fmt.Sprintf("[metrics]\nlisten = %q\n[log]", listen))
}

func (tb *table) metricsURL() string {
	tb.t.Helper()
	found := regexp.MustCompile(`code=metrics.opened url=(\S+)`).FindStringSubmatch(tb.log.String())
	if found == nil {
		tb.t.Fatalf("no address of the metrics in the log:\n%s", tb.log)
	}
	return found[1]
}

// TestMetrics: what Prometheus reads of a table that deals, loses its reader
// and its broker, and stops.
func TestMetrics(t *testing.T) {
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), strings.Split(captureRules, ",")...)
	tb.withMetrics("127.0.0.1:0")
	tb.plug()
	tb.running()
	url := tb.metricsURL()
	has := func(what string, ok func(v map[string]float64) bool) {
		t.Helper()
		eventually(t, what, func() bool { _, v := scrape(t, url); return ok(v) })
	}
	f, err := os.Open(filepath.Join(angelData, "angel_eye_capture.hex"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sent := 4
	err = scanner.ParseCapture(f, func(_ int64, _ int, b []byte) error { sent += len(b); tb.send(b); return nil })
	if err != nil {
		t.Fatal(err)
	}
	tb.send([]byte("\xff\xff\xff\xff"))
	eventually(t, "all of it in the journal", func() bool { return tb.taken() == sent })
	rounds := float64(len(capturedRounds(t)))
	has("every round and the noise, delivered", func(v map[string]float64) bool {
		return v["shoed_rounds_decided_total"] == rounds && v[`shoed_reader_refused_total{reason="garbage"}`] > 0 && v["shoed_mqtt_outbox_events"] == 0
	})

	text, v := scrape(t, url)
	for name, want := range map[string]float64{
		"shoed_events_total": float64(tb.lastSeq()), "shoed_storage_ok": 1, "shoed_mqtt_connected": 1, "shoed_mqtt_reconnects_total": 0,
		`shoed_alerts_active{priority="P1"}`: 0, `shoed_clock_state{state="unset"}`: 0,
		fmt.Sprintf(`shoed_table_info{site="test",table="t1",version=%q}`, version): 1,
	} {
		if got, ok := v[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name, least := range map[string]float64{
		"shoed_uptime_seconds": 0, "shoed_journal_free_bytes": 1, "shoed_reader_frames_total": 600, "shoed_reader_last_frame_age_seconds": 0,
		"process_resident_memory_bytes": 1 << 20,
	} {
		if got, ok := v[name]; !ok || got < least {
			t.Errorf("%s is %v, want %v or more", name, got, least)
		}
	}
	if card := regexp.MustCompile(`\b[A2-9TJQK][shdc]\b`).FindString(text); card != "" {
		t.Errorf("the card %s is told:\n%s", card, text)
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("against the conventions of Prometheus: %v, %v", problems, err)
	}

	broker.kill()
	tb.unplug()
	has("the loss of both", func(v map[string]float64) bool {
		return v["shoed_mqtt_connected"] == 0 && v["shoed_mqtt_outbox_events"] > 0 && v["shoed_mqtt_outbox_oldest_age_seconds"] > 0 &&
			v[`shoed_alerts_active{priority="P1"}`]+v[`shoed_alerts_active{priority="P2"}`] == 1
	})
	broker.start()
	has("the broker again", func(v map[string]float64) bool {
		return v["shoed_mqtt_connected"] == 1 && v["shoed_mqtt_outbox_events"] == 0 && v["shoed_mqtt_reconnects_total"] == 1
	})
	seq := v["shoed_reader_frames_total"]
	if err := tb.stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("metrics are read after the stop")
	}
	tb.running()
	if _, v := scrape(t, tb.metricsURL()); v["shoed_reader_frames_total"] < seq || v["shoed_rounds_decided_total"] != 0 {
		t.Errorf("after a restart %v frames, %v before; %v rounds", v["shoed_reader_frames_total"], seq, v["shoed_rounds_decided_total"])
	}
}

// TestMetricsAddress: none by default; one that cannot be had stops the start.
func TestMetricsAddress(t *testing.T) {
	tb := newTable(t, "")
	tb.running()
	if strings.Contains(tb.log.String(), "code=metrics") {
		t.Errorf("metrics without an address:\n%s", tb.log)
	}
	tb.kill()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tb.withMetrics(taken.Addr().String())
	tb.start()
	select {
	case err = <-tb.exited:
		tb.cmd = nil
	case <-time.After(patience):
	}
	if err == nil || !strings.Contains(tb.log.String(), "metrics.listen: listen tcp "+taken.Addr().String()) || !strings.Contains(tb.log.String(), "give an address of this machine that is free") {
		t.Errorf("with a taken address: %v\n%s", err, tb.log)
	}
}

// TestMachine reads a made-up /sys of a Raspberry Pi; no real one was tried.
func TestMachine(t *testing.T) {
	sys := t.TempDir()
	file := func(path, text string) {
		t.Helper()
		path = filepath.Join(sys, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file("class/hwmon/hwmon0/name", "cpu_thermal\n")
	file("class/hwmon/hwmon0/in0_lcrit_alarm", "1\n")
	if m := machine(sys, sys); m.DataFreeBytes == nil || *m.DataFreeBytes <= 0 || m.Throttled != nil || m.Undervoltage != nil {
		t.Errorf("no Pi: %+v", m)
	}
	if m := machine(filepath.Join(sys, "none"), sys); m.DataFreeBytes != nil {
		t.Errorf("no directory: %d bytes free", *m.DataFreeBytes)
	}
	file("class/hwmon/hwmon1/name", "rpi_volt\n")
	for _, c := range []struct {
		alarm, bits    string
		low, throttled bool
	}{
		{"0\n", "0\n", false, false},
		{"1\n", "50005\n", true, true},
		{"0\n", "f0000\n", false, false}, // has happened since the start, does not now
		{"0\n", "8\n", false, true},
	} {
		file("class/hwmon/hwmon1/in0_lcrit_alarm", c.alarm)
		file("devices/platform/soc/soc:firmware/get_throttled", c.bits)
		m := machine(sys, sys)
		if m.Undervoltage == nil || *m.Undervoltage != c.low || m.Throttled == nil || *m.Throttled != c.throttled {
			t.Errorf("%+v: %+v", c, m)
		}
	}
}
