package device

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	realChip    = flag.String("gpio-chip", "", "label of a gpio-sim chip whose lines may be moved, with WIEGAND_D0, WIEGAND_D1 and BOX_P1 to BOX_B3 among their names")
	realWords   = flag.Int("gpio-words", 1000, "Wiegand words sent to it")
	realChanges = flag.Int("gpio-changes", 10_000, "box changes made on it")
)

var monotonic = linux{}.now

// hand moves the lines of a gpio-sim chip from outside.
type hand struct {
	t     *testing.T
	dir   string
	names map[string]int
	files map[int]*os.File
}

// handOn finds the chip of -gpio-chip. There is no such chip on most machines: it
// takes the kernel module gpio-sim, and root.
func handOn(t *testing.T) *hand {
	t.Helper()
	if *realChip == "" {
		t.Skip("no kernel with gpio-sim was named: give -gpio-chip LABEL")
	}
	h := &hand{t: t, names: map[string]int{}, files: map[int]*os.File{}}
	c, err := h.options().chip()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	lines, err := c.lines()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range lines {
		h.names[fromKernel(l.Name)] = i
	}
	found, _ := filepath.Glob("/sys/devices/platform/gpio-sim.*/" + c.name())
	if len(found) != 1 {
		t.Fatalf("%s is not one chip of gpio-sim: %v", c.name(), found)
	}
	h.dir = found[0]
	t.Cleanup(func() {
		for _, f := range h.files {
			f.Close()
		}
	})
	return h
}

func (h *hand) options(wires ...Wire) Options {
	return Options{Name: "test", Address: "gpio:" + *realChip, Wires: wires, root: "/", kernel: linux{}}
}

// pull moves a line; it says when, by the clock of edges.
func (h *hand) pull(line int, high bool) uint64 {
	f := h.files[line]
	if f == nil {
		var err error
		f, err = os.OpenFile(filepath.Join(h.dir, fmt.Sprintf("sim_gpio%d/pull", line)), os.O_WRONLY, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		h.files[line] = f
	}
	text := "pull-down"
	if high {
		text = "pull-up"
	}
	at := monotonic()
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		h.t.Fatal(err)
	}
	return at
}

// listener reads a line until it is stopped.
type listener struct {
	line    Line
	end     context.CancelFunc
	done    chan error
	records []WireRecord
	chunks  int
	took    time.Duration // of a processor
}

func (h *hand) listen(wires ...Wire) *listener {
	h.t.Helper()
	line, err := Open(wait(h.t), h.options(wires...))
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	l := &listener{line: line, end: end, done: make(chan error)}
	go func() {
		runtime.LockOSThread() // and never let go: nobody else has it then
		began := threadTime()
		for {
			c, err := line.Read(ctx)
			if err != nil {
				l.took = threadTime() - began
				l.done <- errors.Join(err, line.Close())
				return
			}
			l.chunks++
			records, err := ParseWireRecords(c.Bytes)
			if err != nil {
				l.done <- err
				return
			}
			l.records = append(l.records, records...)
		}
	}()
	return l
}

// stop ends it once silence has been told, and gives the edges in the order of
// their numbers, the numbers that are missing, and the levels at the end.
func (l *listener) stop(t *testing.T) (edges []WireRecord, lost int, levels uint16) {
	t.Helper()
	time.Sleep(2 * checkEvery) // the chip is in real time; both a silence and a check are over by then
	l.end()
	if err := <-l.done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	last := uint32(0)
	for _, r := range l.records {
		if r.Kind == WireActive || r.Kind == WireInactive {
			edges = append(edges, r)
			continue
		}
		levels, last = r.Levels, r.Seq
	}
	slices.SortFunc(edges, func(a, b WireRecord) int { return int(int32(a.Seq - b.Seq)) })
	return edges, int(last) - len(edges), levels
}

// threadTime is what the calling thread has had of a processor.
func threadTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u) // cannot fail for ourselves
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// until is the pace of a device: it waits in real time.
func until(at uint64) {
	if d := time.Duration(int64(at - monotonic())); int64(d) > 0 {
		time.Sleep(d)
	}
}

// TestRealWiegandWords sends words of 26 bits at 1.5 ms a bit: each bit must
// arrive as it was sent, or the numbers of the edges show that it was lost. A
// sender that is not let run is late; a word that this tears is counted apart.
func TestRealWiegandWords(t *testing.T) {
	const bits = 26
	h := handOn(t)
	data := []int{h.names["WIEGAND_D0"], h.names["WIEGAND_D1"]}
	for _, d := range data {
		h.pull(d, true)
	}
	w := Wire{Edges: ActiveEdge, ActiveLow: true, Limit: PulseLimit}
	d0, d1 := w, w
	d0.Use, d0.Line, d1.Use, d1.Line = "d0", "WIEGAND_D0", "d1", "WIEGAND_D1"
	l := h.listen(d0, d1)
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 0))
	sent, start := make([]uint32, *realWords), monotonic()
	next := start + uint64(50*time.Millisecond)
	for i := range sent {
		sent[i] = r.Uint32() >> (32 - bits)
		for bit := bits - 1; bit >= 0; bit-- {
			until(next)
			line := data[sent[i]>>bit&1]
			h.pull(line, false)
			h.pull(line, true)
			next = max(next, monotonic()) + uint64(1500*time.Microsecond)
		}
		next += uint64(40 * time.Millisecond)
	}
	took := time.Duration(monotonic() - start)
	edges, lost, _ := l.stop(t)
	wrong, whole, torn := 0, 0, 0
	for i, e := range edges {
		sentBit := int(e.Seq) - 1
		if word := sentBit / bits; word >= len(sent) || uint32(e.Wire) != sent[word]>>(bits-1-sentBit%bits)&1 {
			wrong++
		}
		if first := i - bits + 1; sentBit%bits == bits-1 && first >= 0 && edges[first].Seq == e.Seq-bits+1 {
			if whole++; longestPause(edges[first:i+1]) > 20*time.Millisecond {
				torn++
			}
		}
	}
	t.Logf("seed %d: %d words in %v came in %d chunks: %d whole, of which the sender tore %d; %d edges counted as lost; %v of a processor",
		seed, len(sent), took.Round(time.Millisecond), l.chunks, whole, torn, lost, l.took)
	if wrong > 0 || len(edges)+lost != bits*len(sent) {
		t.Errorf("%d edges of %d came, %d counted as lost, %d not as sent", len(edges), bits*len(sent), lost, wrong)
	}
}

func longestPause(edges []WireRecord) (longest time.Duration) {
	for i := range edges[1:] {
		longest = max(longest, edges[i+1].Time-edges[i].Time)
	}
	return longest
}

// TestRealBoxChanges moves six box switches: each change is told or counted as
// lost, and the levels are true in the end.
func TestRealBoxChanges(t *testing.T) {
	h := handOn(t)
	var wires []Wire
	var lines []int
	for _, name := range []string{"BOX_P1", "BOX_P2", "BOX_P3", "BOX_B1", "BOX_B2", "BOX_B3"} {
		wires = append(wires, Wire{Use: name, Line: name, Limit: PulseLimit})
		lines = append(lines, h.names[name])
		h.pull(h.names[name], false)
	}
	l := h.listen(wires...)
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 1))
	levels, moved := uint16(0), make([]uint64, *realChanges)
	next := monotonic() + uint64(50*time.Millisecond)
	for i := range moved {
		until(next)
		box := r.IntN(len(lines))
		levels ^= 1 << box
		moved[i] = h.pull(lines[box], levels>>box&1 != 0)
		next = max(next, monotonic()) + uint64(time.Millisecond)
	}
	edges, lost, told := l.stop(t)
	var late []time.Duration
	for _, e := range edges {
		if i := int(e.Seq) - 1; i < len(moved) {
			late = append(late, e.Time-time.Duration(moved[i]))
		}
	}
	slices.Sort(late)
	t.Logf("seed %d: %d changes, %d told in %d chunks, %d counted as lost; from the move to the stamp p50 %v, p99 %v; %v of a processor",
		seed, len(moved), len(edges), l.chunks, lost, late[len(late)/2], late[len(late)*99/100], l.took)
	if len(edges)+lost != len(moved) {
		t.Errorf("%d changes, but %d told and %d counted as lost", len(moved), len(edges), lost)
	}
	if told != levels {
		t.Errorf("levels at the end %06b, told %06b", levels, told)
	}
}

// TestRealChatter lets a switch chatter as fast as the kernel can for a second.
func TestRealChatter(t *testing.T) {
	h := handOn(t)
	line := h.names["BOX_P1"]
	h.pull(line, false)
	h.pull(h.names["BOX_P2"], false)
	l := h.listen(Wire{Use: "p1", Line: "BOX_P1"}, Wire{Use: "p2", Line: "BOX_P2"}) // of one alone the kernel counts no losses
	moves := 0
	for end := monotonic() + uint64(time.Second); monotonic() < end; moves++ {
		h.pull(line, moves%2 == 0)
	}
	h.pull(line, true)
	edges, lost, levels := l.stop(t)
	t.Logf("%d moves in a second: %d told in %d chunks, %d not told; %v of a processor", moves, len(edges), l.chunks, lost, l.took)
	if most := burst + 2*SwitchLimit; len(edges) > most || levels != 1 {
		t.Errorf("%d edges told, at most %d; levels %b", len(edges), most, levels)
	}
}

// TestRealDebounce lets a switch bounce for 3 ms: with a debounce of 10 ms it has
// become active once.
func TestRealDebounce(t *testing.T) {
	h := handOn(t)
	line := h.names["BOX_P1"]
	h.pull(line, false)
	l := h.listen(Wire{Use: "p1", Line: "BOX_P1", Debounce: 10 * time.Millisecond})
	until(monotonic() + uint64(100*time.Millisecond))
	for i := range 21 {
		h.pull(line, i%2 == 0)
		until(monotonic() + uint64(150*time.Microsecond))
	}
	edges, lost, levels := l.stop(t)
	if len(edges) != 1 || edges[0].Kind != WireActive || lost != 0 || levels != 1 {
		t.Errorf("%+v, %d lost, levels %b", edges, lost, levels)
	}
}

// TestRealLamps drives two lines and looks at them from outside.
func TestRealLamps(t *testing.T) {
	h := handOn(t)
	first, second := h.names["BOX_P1"], h.names["BOX_P2"]
	value := func(line int) string { return attribute(h.dir, fmt.Sprintf("sim_gpio%d/value", line)) }
	l, err := OpenLamps(LampOptions{Name: "lamps", Address: "gpio:" + *realChip, Lamps: []Lamp{
		{Use: "green", Line: "BOX_P1"}, {Use: "buzzer", Line: fmt.Sprint(second), ActiveLow: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := value(first) + value(second); got != "01" {
		t.Errorf("at first %s", got)
	}
	for on, want := range map[uint16]string{0: "01", 1: "11", 2: "00", 3: "10"} {
		if err := l.Set(on); err != nil || value(first)+value(second) != want {
			t.Errorf("%02b: %s, %v; want %s", on, value(first)+value(second), err, want)
		}
	}
	_, err = Open(wait(t), h.options(Wire{Use: "p1", Line: "BOX_P1"}))
	if !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestRealLook reads one wire through Pin.
func TestRealLook(t *testing.T) {
	h := handOn(t)
	line := h.names["BOX_P1"]
	h.pull(line, true)
	o := h.options(Wire{Use: "p1", Line: "BOX_P1"})
	if active, err := Look(o, 0); err != nil || !active {
		t.Error(active, err)
	}
	time.AfterFunc(200*time.Millisecond, func() { h.pull(line, false) })
	if active, err := Look(o, patience); err != nil || active {
		t.Error(active, err)
	}
}
