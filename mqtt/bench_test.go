package mqtt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkPublish measures a publisher with a consumer on this machine:
// latency from the event's being durable to its arrival, one event at a time,
// and the rate at which a backlog is drained.
func BenchmarkPublish(b *testing.B) {
	for _, broker := range []string{"embedded", "mosquitto"} {
		for _, window := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/window=%d", broker, window), func(b *testing.B) {
				var addr string
				if broker == "embedded" {
					addr = openBroker(b).TCP
				} else {
					addr = startMosquitto(b).addr
				}
				d := newTable(b, 1)
				arrived := make(chan uint64, 1<<16)
				gone, err := Subscribe(b.Context(), Account{Server: "mqtt://" + addr}, site, desk, func(topic string, _ bool, payload []byte) {
					if strings.HasSuffix(topic, "/event") {
						var e Envelope
						if json.Unmarshal(payload, &e) == nil {
							arrived <- e.Seq
						}
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				wait := func(seq uint64) {
					for {
						select {
						case got := <-arrived:
							if got == seq {
								return
							}
						case err := <-gone:
							b.Fatal(err)
						case <-time.After(patience):
							b.Fatalf("no event %d", seq)
						}
					}
				}
				r := publish(b, d, addr, func(o *Options) { o.Window = window })
				d.deal(10)
				wait(d.last())

				var latencies []time.Duration
				for range 1000 {
					before := time.Now()
					d.deal(1)
					wait(d.last())
					latencies = append(latencies, time.Since(before))
				}
				slices.Sort(latencies)

				r.stop(nil)
				r.end()
				first := d.last()
				d.deal(5000)
				b.ResetTimer()
				publish(b, d, addr, func(o *Options) { o.Window = window })
				wait(d.last())
				b.ReportMetric(float64(d.last()-first)/b.Elapsed().Seconds(), "events/s")
				b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds()), "p99-µs")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
