package main

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"shoed/config"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

// openMetrics takes the address at which metrics are to be read, if any.
func (s *service) openMetrics() error {
	if s.cfg.Metrics.Listen == config.Off {
		return nil
	}
	l, err := net.Listen("tcp", s.cfg.Metrics.Listen)
	if err != nil {
		return fmt.Errorf("%v: metrics.listen: %w; give an address of this machine that is free", s.cfg.Where("metrics.listen"), err)
	}
	s.scraped = l
	s.log.Info("metrics", "code", "metrics.opened", "url", "http://"+l.Addr().String()+"/metrics")
	return nil
}

const (
	scrapeTimeout = 5 * time.Second // what is read fits into a few packets
	scrapesMost   = 4               // at once: Prometheus, a second one, and somebody who looks
)

// serveMetrics answers until ctx ends.
func (s *service) serveMetrics(ctx context.Context) {
	if s.scraped == nil {
		return
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{s}, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMost}))
	server := &http.Server{Handler: mux, ReadTimeout: scrapeTimeout, WriteTimeout: scrapeTimeout, IdleTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(s.scraped); ctx.Err() == nil {
		s.log.Error("metrics can no longer be read: restart shoed", "code", "metrics.lost", "error", err)
	}
}

// metrics is a collector that looks at the running table when it is asked. What
// it tells of the game is what everybody may know.
type metrics struct{ *service }

// look is what one scrape sees.
type look struct {
	table   *round.State
	core    *coreHealth
	reader  mqtt.ReaderHealth // of core, with its age
	out     mqtt.Standing
	expiry  time.Time
	machine mqtt.Machine
	uptime  time.Duration
}

// measures without labels. A value of NaN is not known and left out.
var measures = []struct {
	name, help string
	kind       prometheus.ValueType
	value      func(*look) float64
}{
	{"events_total", "Public events since the journal began: the last seq.", prometheus.CounterValue, func(l *look) float64 { return float64(l.table.Seq) }},
	{"rounds_decided_total", "Rounds decided since the start.", prometheus.CounterValue, func(l *look) float64 { return float64(l.core.decided) }},
	{"uptime_seconds", "Time since the start.", prometheus.GaugeValue, func(l *look) float64 { return l.uptime.Seconds() }},
	{"journal_free_bytes", "Free on the journal's file system.", prometheus.GaugeValue, func(l *look) float64 { return orNaN(l.machine.DataFreeBytes) }},
	{"storage_ok", "1 while the journal can be written.", prometheus.GaugeValue, func(l *look) float64 { return oneIf(l.core.storage == storageOK) }},
	{"reader_frames_total", "Frames of the reader with a good checksum since the journal began.", prometheus.CounterValue, func(l *look) float64 { return float64(l.reader.Frames) }},
	{"reader_last_frame_age_seconds", "Time since the reader was last heard.", prometheus.GaugeValue, func(l *look) float64 { return orNaN(l.reader.LastFrameAgeMS) / 1000 }},
	{"mqtt_connected", "1 while the table is online at a broker.", prometheus.GaugeValue, func(l *look) float64 { return oneIf(l.out.Connected) }},
	{"mqtt_reconnects_total", "Connections to a broker after the first.", prometheus.CounterValue, func(l *look) float64 { return float64(l.out.Reconnects) }},
	{"mqtt_outbox_events", "Events that no broker has acknowledged yet.", prometheus.GaugeValue, func(l *look) float64 { return float64(l.out.Outbox) }},
	{"mqtt_outbox_oldest_age_seconds", "Age of the oldest of them.", prometheus.GaugeValue, func(l *look) float64 { return orNaN(l.out.OldestAgeMS) / 1000 }},
	{"mqtt_certificate_expiry_timestamp_seconds", "When the first certificate of the last TLS handshake ends.", prometheus.GaugeValue, func(l *look) float64 {
		if l.expiry.IsZero() {
			return math.NaN()
		}
		return float64(l.expiry.Unix())
	}},
	{"supply_undervoltage", "1 while a Raspberry Pi's supply is too low.", prometheus.GaugeValue, func(l *look) float64 { return flagOrNaN(l.machine.Undervoltage) }},
	{"cpu_throttled", "1 while a Raspberry Pi is slowed down.", prometheus.GaugeValue, func(l *look) float64 { return flagOrNaN(l.machine.Throttled) }},
}

// Describe says nothing: what is not known is left out.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect looks once.
func (m metrics) Collect(out chan<- prometheus.Metric) {
	l := look{
		table: m.core.table.Load(), core: m.core.health.Load(), reader: m.readerHealth(), out: m.publisher.Standing(),
		machine: m.machine(), uptime: time.Since(m.started),
	}
	_, l.expiry = m.publisher.Expiry()
	say := func(name, help string, kind prometheus.ValueType, value float64, labels ...string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("shoed_"+name, help, names, nil), kind, value, values...)
	}
	for _, measure := range measures {
		if v := measure.value(&l); !math.IsNaN(v) {
			say(measure.name, measure.help, measure.kind, v)
		}
	}
	say("table_info", "Which table this is.", prometheus.GaugeValue, 1, "site", m.cfg.Table.Site, "table", m.cfg.Table.ID, "version", m.build.version)
	for _, reason := range scanner.Reasons() {
		say("reader_refused_total", "Frames of the reader refused since the journal began.", prometheus.CounterValue, float64(l.reader.Refused[reason.String()]), "reason", reason.String())
	}
	for _, from := range m.core.sources {
		if counted := l.core.readers[from.name]; scanner.Wired(from.protocol) {
			say("edges_lost_total", "Edges of wires that were lost since the journal began.", prometheus.CounterValue, float64(counted.LostEdges), "device", from.name)
			say("bounces_total", "Changes of switches that did not last, since the journal began.", prometheus.CounterValue, float64(counted.Bounces), "device", from.name)
		}
	}
	for priority, n := range activeAlerts(l.table) {
		say("alerts_active", "Standing alerts.", prometheus.GaugeValue, float64(n), "priority", fmt.Sprintf("P%d", priority))
	}
	now := clockState()
	for _, state := range []string{"synced", "holdover", "unset"} {
		say("clock_state", "1 for how far the clock can be trusted.", prometheus.GaugeValue, oneIf(state == now), "state", state)
	}
}

// activeAlerts counts those that everybody may know, by priority.
func activeAlerts(s *round.State) map[uint8]int {
	n := map[uint8]int{1: 0, 2: 0, 3: 0, 4: 0}
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No != 0 && a.Public() {
			n[a.Priority]++
		}
	}
	return n
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func flagOrNaN(yes *bool) float64 {
	if yes == nil {
		return math.NaN()
	}
	return oneIf(*yes)
}

func orNaN(n *int64) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}
