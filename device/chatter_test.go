package device

import (
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// flood is a kernel whose lines all chatter for ever, in the order of their
// offsets, an edge each pace; it keeps as many edges as it was asked to.
type flood struct {
	pace  time.Duration
	lines int
	clock uint64
	fds   int
	given uint64 // the number of the last edge that was read
}

// lineOf opens all its lines.
func (f *flood) lineOf(t testing.TB) *wireLine {
	t.Helper()
	wires := make([]Wire, f.lines)
	for i := range wires {
		wires[i] = Wire{Use: "w", Line: strconv.Itoa(i)}
	}
	l, err := openWires(Options{Name: "flood", Address: "gpio:/dev/gpiochip0", Wires: wires, root: "/", kernel: f})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (f *flood) open(string) (int, error) { f.fds++; return f.fds, nil }
func (f *flood) close(int) error          { return nil }
func (f *flood) now() uint64              { return f.clock }
func (f *flood) sleep(d time.Duration)    { f.clock += uint64(d) }

func (f *flood) ioctl(_ int, request uint, arg unsafe.Pointer) error {
	switch request {
	case unix.GPIO_GET_CHIPINFO_IOCTL:
		info := (*unix.GPIOChipInfo)(arg)
		info.Lines = uint32(f.lines)
	case unix.GPIO_V2_LINE_GET_VALUES_IOCTL:
		v := (*unix.GPIOV2LineValues)(arg)
		v.Bits = f.happened() & v.Mask
	}
	return nil
}

func (f *flood) happened() uint64 { return f.clock / uint64(f.pace) }

func (f *flood) poll(_ int, d time.Duration) (bool, error) {
	if d > 0 && f.happened() == f.given {
		f.clock += uint64(f.pace)
	}
	return f.happened() > f.given, nil
}

func (f *flood) read(_ int, events []unix.GPIOV2LineEvent) (int, error) {
	f.given = max(f.given, f.happened()-min(f.happened(), eventBuffer))
	n := 0
	for ; n < len(events) && f.given < f.happened(); n++ {
		f.given++
		events[n] = unix.GPIOV2LineEvent{Timestamp_ns: f.given * uint64(f.pace), Id: 1 + uint32(f.given/uint64(f.lines)&1),
			Offset: uint32(f.given) % uint32(f.lines), Seqno: uint32(f.given)}
	}
	return n, nil
}

// BenchmarkChatter is one second of 16 wires that all chatter: what it costs is
// the time of a processor that they take from the table.
func BenchmarkChatter(b *testing.B) {
	for name, pace := range map[string]time.Duration{"100Hz": time.Second / 1600, "1kHz": time.Second / 16_000, "10kHz": time.Second / 160_000} {
		b.Run(name, func(b *testing.B) {
			f := &flood{pace: pace, lines: maxWires}
			l := f.lineOf(b)
			reads, bytes := 0, 0
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.ResetTimer()
			for end := f.clock; b.Loop(); {
				for end += uint64(time.Second); f.clock < end; {
					c, err := l.readOnce(wireWait)
					if err != nil {
						b.Fatal(err)
					}
					if len(c.Bytes) > 0 {
						reads++
						bytes += len(c.Bytes)
					}
				}
			}
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(reads)/float64(b.N), "chunks/s")
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/s")
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/1024, "KB-kept")
		})
	}
}

// TestChatterOfAllWiresIsBounded holds the figures of BenchmarkChatter.
func TestChatterOfAllWiresIsBounded(t *testing.T) {
	f := &flood{pace: time.Second / 160_000, lines: maxWires}
	l := f.lineOf(t)
	const seconds = 10
	chunks, edges := 0, 0
	for end := f.clock + seconds*uint64(time.Second); f.clock < end; {
		c, err := l.readOnce(wireWait)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Bytes) > 0 {
			chunks++
			edges += len(c.Bytes) / wireRecordBytes
		}
	}
	if most := maxWires*(burst+1+seconds*SwitchLimit) + 2*seconds; edges > most || edges < maxWires*seconds*SwitchLimit*9/10 {
		t.Errorf("%d records told, at most %d", edges, most)
	}
	if most := (seconds + 1) * int(time.Second/breather) * 5; chunks > most {
		t.Errorf("%d chunks, at most %d", chunks, most)
	}
}
