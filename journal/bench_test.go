package journal

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// benchDir is where the disk to measure is.
func benchDir(b *testing.B) string {
	base := os.Getenv("SHOED_BENCH_DIR")
	if base == "" {
		return b.TempDir()
	}
	dir, err := os.MkdirTemp(base, "journal")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkAppend times the append that a card causes, a chunk, an input and a public event, and beside each the write
// and fdatasync of as many bytes to a plain file: the disk's own time.
func BenchmarkAppend(b *testing.B) {
	dir := benchDir(b)
	j, _, err := Open(filepath.Join(dir, "journal.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	plain, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	at := time.Date(2026, 11, 1, 20, 0, 0, 0, time.UTC)
	records := []Record{
		{At: at, Kind: Chunk, Source: "reader", Body: make([]byte, 60)},
		{At: at, Kind: Input, Body: make([]byte, 150)},
		{At: at, Kind: Event, Body: make([]byte, 300)},
	}
	bytes := make([]byte, 60+150+300+3*80)
	var ours, disk []time.Duration
	for b.Loop() {
		begin := time.Now()
		records[2].Seq = j.LastSeq() + 1
		if err := j.Append(records); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(begin))
		begin = time.Now()
		if _, err := plain.Write(bytes); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(plain.Fd())); err != nil {
			b.Fatal(err)
		}
		disk = append(disk, time.Since(begin))
		// What the core does between cards.
		if err := j.Deliver(records[2].Seq); err != nil {
			b.Fatal(err)
		}
		if len(ours)%64 == 0 {
			if err := j.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	slices.Sort(ours)
	slices.Sort(disk)
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	at99 := len(ours) * 99 / 100
	b.ReportMetric(ms(ours[len(ours)/2]), "p50-ms")
	b.ReportMetric(ms(ours[at99]), "p99-ms")
	b.ReportMetric(ms(disk[len(disk)/2]), "disk-p50-ms")
	b.ReportMetric(ms(disk[at99]), "disk-p99-ms")
	b.ReportMetric(float64(ours[len(ours)/2])/float64(disk[len(disk)/2]), "p50-ratio")
}
