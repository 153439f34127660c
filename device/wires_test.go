package device

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var wiresSeed = flag.Uint64("wires-seed", 0, "seed of the tests with wires; 0 takes one of the moment")

// seedOf is the seed of a test, which is printed when the test fails.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := cmp.Or(*wiresSeed, uint64(time.Now().UnixNano()))
	t.Logf("-wires-seed %d", seed)
	return seed
}

// wired are options for wires of the fake kernel.
func (k *fakeKernel) wired(address string, wires ...Wire) Options {
	return Options{Name: "reader", Address: address, Wires: wires, root: k.root, kernel: k}
}

// wiegand is a chip with two data lines and what opens them.
func wiegand(t *testing.T) (*fakeKernel, *fakeChip, Options) {
	t.Helper()
	k := fake(t)
	c := k.chip("gpiochip0", "shoe", "WIEGAND_D0", "WIEGAND_D1", "BOX_P1")
	c.lines[0].high, c.lines[1].high = true, true
	d := Wire{Edges: ActiveEdge, ActiveLow: true, Bias: "up", Limit: PulseLimit}
	d0, d1 := d, d
	d0.Use, d0.Line = "d0", "WIEGAND_D0"
	d1.Use, d1.Line = "d1", "WIEGAND_D1"
	return k, c, k.wired("gpio:shoe", d0, d1)
}

func openWired(t *testing.T, o Options) *wireLine {
	t.Helper()
	l, err := Open(wait(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*wireLine)
}

// next is what the next read tells, as text: kind wire levels seq.
func next(t *testing.T, l Line) string {
	t.Helper()
	c, err := l.Read(wait(t))
	if err != nil {
		t.Fatal(err)
	}
	records, err := ParseWireRecords(c.Bytes)
	if err != nil || c.At.IsZero() {
		t.Fatal(c.At, err)
	}
	texts := make([]string, len(records))
	for i, r := range records {
		texts[i] = fmt.Sprintf("%d %d %b #%d", r.Kind, r.Wire, r.Levels, r.Seq)
	}
	return strings.Join(texts, ", ")
}

func expectRecords(t *testing.T, l Line, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := next(t, l); got != w {
			t.Fatalf("got %q, want %q", got, w)
		}
	}
}

func TestWiresTellLevelsEdgesAndSilence(t *testing.T) {
	k, c, o := wiegand(t)
	l := openWired(t, o)
	expectRecords(t, l, "3 0 0 #0")
	start := k.clock
	k.after(time.Millisecond, func() { c.pulse(0) })
	k.after(3*time.Millisecond, func() { c.pulse(1) })
	k.after(5*time.Millisecond, func() { c.set(0, false) })
	expectRecords(t, l, "1 0 0 #1", "1 1 0 #2, 1 0 0 #3")
	chunk, err := l.Read(wait(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseWireRecords(chunk.Bytes)
	want := WireRecord{Kind: WireLevels, Levels: 1, Seq: 3, Time: time.Duration(start) + 30*time.Millisecond}
	if err != nil || len(r) != 1 || r[0] != want {
		t.Errorf("silence: %+v, %v; want %+v", r, err, want)
	}
}

func TestEdgesAreSortedWithinARead(t *testing.T) {
	k, c, o := wiegand(t)
	l := openWired(t, o)
	expectRecords(t, l, "3 0 0 #0")
	k.after(time.Millisecond, func() {
		r := c.lines[0].request
		for _, seq := range []uint32{2, 1, 5, 5, 4} { // 3 is lost, 5 is doubled
			r.push(unix.GPIOV2LineEvent{Timestamp_ns: k.clock, Id: 1, Offset: seq % 2, Seqno: seq})
		}
	})
	expectRecords(t, l, "1 1 0 #1, 1 0 0 #2, 1 0 0 #4, 1 1 0 #5, 1 1 0 #5", "3 0 0 #5")
}

func TestSequenceNumbersWrap(t *testing.T) {
	k, c, o := wiegand(t)
	l := openWired(t, o)
	expectRecords(t, l, "3 0 0 #0")
	l.seq = 1<<32 - 2
	k.after(time.Millisecond, func() {
		for _, seq := range []uint32{0, 1<<32 - 1} {
			c.lines[0].request.push(unix.GPIOV2LineEvent{Timestamp_ns: k.clock, Id: 1, Seqno: seq})
		}
	})
	expectRecords(t, l, "1 0 0 #4294967295, 1 0 0 #0", "3 0 0 #0")
}

func TestOverflowIsAGap(t *testing.T) {
	k, c, o := wiegand(t)
	l := openWired(t, o)
	expectRecords(t, l, "3 0 0 #0")
	const pulses = eventBuffer + 100
	k.happen(func() {
		for range pulses {
			k.clock += uint64(time.Millisecond)
			c.pulse(0)
		}
	})
	seqs := map[uint32]bool{}
	for {
		chunk, err := l.Read(wait(t))
		if err != nil {
			t.Fatal(err)
		}
		records, _ := ParseWireRecords(chunk.Bytes)
		last := records[len(records)-1]
		if last.Kind == WireLevels {
			if last.Seq != pulses || len(seqs) != eventBuffer || seqs[100] || !seqs[101] || c.lines[0].request.lost != 100 {
				t.Errorf("told %d edges of %d, up to %d; %d were lost", len(seqs), pulses, last.Seq, c.lines[0].request.lost)
			}
			return
		}
		for _, r := range records {
			seqs[r.Seq] = true
		}
	}
}

// box is a chip with one switch that is told both ways.
func box(t *testing.T) (*fakeKernel, *fakeChip, *wireLine) {
	t.Helper()
	k := fake(t)
	c := k.chip("gpiochip0", "shoe", "BOX_P1", "BOX_B1")
	l := openWired(t, k.wired("gpio:gpiochip0", Wire{Use: "p1", Line: "BOX_P1"}, Wire{Use: "b1", Line: "1", Edges: NoEdges}))
	expectRecords(t, l, "3 0 0 #0")
	return k, c, l
}

func TestALevelThatDiffersIsToldWithinASecond(t *testing.T) {
	k, c, l := box(t)
	start := k.clock
	k.after(100*time.Millisecond, func() { c.lines[0].high = true }) // and no edge
	k.after(1500*time.Millisecond, func() { c.set(1, true) })        // a wire without edges
	expectRecords(t, l, "3 0 1 #0", "3 0 11 #0")
	if passed := time.Duration(k.clock - start); passed != 2*checkEvery {
		t.Errorf("told after %v", passed)
	}
}

func TestAnEdgeThatWaitsIsNoDifference(t *testing.T) {
	k, c, l := box(t)
	l.quietDue, l.checkDue = 0, k.clock+uint64(checkEvery)
	k.after(checkEvery, func() { c.set(0, true) })
	expectRecords(t, l, "1 0 0 #1", "3 0 1 #1")
}

func TestSilenceThatEndsInTheLastMomentIsNone(t *testing.T) {
	k, c, l := box(t)
	k.after(time.Millisecond, func() { c.set(0, true) })
	expectRecords(t, l, "1 0 0 #1")
	k.looking = func() { // between the levels and the look at what waits
		k.looking = nil
		c.set(0, false)
	}
	expectRecords(t, l, "2 0 0 #2", "3 0 0 #2")
}

func TestChatterIsBoundedAndHeals(t *testing.T) {
	k, c, l := box(t)
	const edges = 100_000
	for i := range edges { // 10 s at 10 kHz, ending active
		k.after(time.Duration(i)*100*time.Microsecond, func() { c.set(0, i%2 == 1) })
	}
	k.calls = 0
	told, levelsTold, last, end := 0, 0, WireRecord{}, k.clock+uint64(11*time.Second)
	for k.clock < end {
		chunk, err := l.readOnce(wireWait)
		if err != nil {
			t.Fatal(err)
		}
		records, _ := ParseWireRecords(chunk.Bytes)
		for _, last = range records {
			if last.Kind == WireLevels {
				levelsTold++
			} else {
				told++
			}
		}
	}
	if most := burst + 11*SwitchLimit; told > most || told < 10*SwitchLimit {
		t.Errorf("%d edges told, not %d to %d", told, 10*SwitchLimit, most)
	}
	if levelsTold < 2 || levelsTold > 12 {
		t.Errorf("levels told %d times", levelsTold)
	}
	if last.Kind != WireLevels || last.Levels != 1 || last.Seq < edges-1 {
		t.Errorf("at the end %+v", last)
	}
	if k.calls > 3*11*int(time.Second/breather) {
		t.Errorf("%d calls of the kernel in 11 s", k.calls)
	}
}

func TestAWiegandBurstIsWithinItsLimit(t *testing.T) {
	var l limiter
	l.interval = uint64(time.Second) / PulseLimit
	at := uint64(5e9)
	for word := range 100 {
		for range 34 {
			if !l.admit(at) {
				t.Fatalf("word %d lost a bit", word)
			}
			at += uint64(200 * time.Microsecond)
		}
		at += uint64(50 * time.Millisecond)
	}
	for i := range 200 { // at once
		if got := l.admit(at); got != (i < burst) {
			t.Fatalf("edge %d at once: %v", i, got)
		}
	}
}

// parallel is a chip with two data lines and a strobe.
func parallel(t *testing.T) (*fakeKernel, *fakeChip, *wireLine) {
	t.Helper()
	k := fake(t)
	c := k.chip("gpiochip0", "shoe", "D0", "D1", "STROBE")
	o := k.wired("gpio:shoe", Wire{Use: "d0", Line: "D0", Edges: NoEdges}, Wire{Use: "d1", Line: "D1", Edges: NoEdges},
		Wire{Use: "strobe", Line: "STROBE", Edges: ActiveEdge, Strobe: true})
	o.Settle = 5 * time.Millisecond
	l := openWired(t, o)
	expectRecords(t, l, "3 0 0 #0")
	return k, c, l
}

func TestTheStrobeSamplesSettledLevels(t *testing.T) {
	k, c, l := parallel(t)
	k.after(10*time.Millisecond, func() { c.set(2, true) })
	k.after(14*time.Millisecond, func() { c.set(1, true) })
	expectRecords(t, l, "1 2 0 #1, 3 0 110 #1")
	start := k.clock
	k.after(time.Millisecond, func() { c.set(2, false); c.set(1, false) })
	expectRecords(t, l, "3 0 0 #1")
	if after := time.Duration(k.clock - start); after != quiet-5*time.Millisecond {
		t.Errorf("silence told %v after the sample", after)
	}
}

func TestUnsteadyLevelsAreTold(t *testing.T) {
	k, c, l := parallel(t)
	k.after(time.Millisecond, func() {
		c.set(2, true)
		k.looking = func() { c.set(0, !c.lines[0].high) } // before each reading
	})
	expectRecords(t, l, "1 2 0 #1, 4 0 100 #1")
	k.looking = nil
	expectRecords(t, l, "3 0 100 #1")
}

func TestTheRequestAsksForWhatIsWanted(t *testing.T) {
	k := fake(t)
	c := k.chip("gpiochip3", "shoe", "A", "B", "C", "D")
	o := k.wired("gpio:/dev/gpiochip3",
		Wire{Use: "a", Line: "D", ActiveLow: true, Bias: "up", Debounce: 5 * time.Millisecond},
		Wire{Use: "b", Line: "C", Edges: InactiveEdge, Bias: "down"},
		Wire{Use: "c", Line: "0", Edges: NoEdges, Bias: "none", Debounce: 5 * time.Millisecond},
		Wire{Use: "d", Line: "B", Debounce: 70 * time.Millisecond})
	o.Name = "a name that is longer than the kernel keeps"
	l := openWired(t, o)
	if len(c.lines[0].consumer) != 31 || c.lines[0].request.size != eventBuffer {
		t.Errorf("consumer %q, buffer %d", c.lines[0].consumer, c.lines[0].request.size)
	}
	for i, want := range map[int]fakeLine{
		3: {flags: flagUsed | flagInput | flagRising | flagFalling | flagActiveLow | flagPullUp, debounce: 5000, index: 0},
		2: {flags: flagUsed | flagInput | flagFalling | flagPullDown, index: 1},
		0: {flags: flagUsed | flagInput | flagNoBias, debounce: 5000, index: 2},
		1: {flags: flagUsed | flagInput | flagRising | flagFalling, debounce: 70000, index: 3},
	} {
		if got := c.lines[i]; got.flags != want.flags || got.debounce != want.debounce || got.index != want.index {
			t.Errorf("line %d: %+v, want %+v", i, got, want)
		}
	}
	expectRecords(t, l, "3 0 0 #0")
}

func TestTooManySettingsAreRefused(t *testing.T) {
	k := fake(t)
	k.chip("gpiochip0", "shoe", make([]string, 16)...)
	var wires []Wire
	for i := range 12 {
		wires = append(wires, Wire{Use: fmt.Sprint(i), Line: fmt.Sprint(i), Debounce: time.Duration(i) * time.Millisecond})
	}
	if _, err := Open(wait(t), k.wired("gpio:shoe", wires...)); !errors.Is(err, ErrNotWire) || !strings.Contains(err.Error(), "too many different settings") {
		t.Error(err)
	}
	openWired(t, k.wired("gpio:shoe", wires[:11]...)) // ten debounces
}

func TestOpeningWiresSaysWhatIsWrong(t *testing.T) {
	k := fake(t)
	pi := k.chip("gpiochip0", "pinctrl-bcm2711", "SDA1", "GPIO17", "GPIO17", "")
	k.chip("gpiochip1", "expander", "A")
	k.chip("gpiochip2", "expander", "A")
	pi.lines[3].flags, pi.lines[3].consumer = flagUsed, "spi0 CS0"
	w := func(line string) []Wire { return []Wire{{Use: "d0", Line: line}} }
	for _, c := range []struct {
		address string
		wires   []Wire
		kind    error
		texts   []string
	}{
		{"gpio:shoe", w("A"), ErrAbsent, []string{"reader: gpio:shoe: no such device: plug it in, or configure one that is there: gpio:pinctrl-bcm2711 (", "gpio:gpiochip1 ("}},
		{"gpio:/dev/gpiochip9", w("A"), ErrAbsent, []string{"gpio:gpiochip2 ("}},
		{"gpio:expander", w("A"), ErrAmbiguous, []string{"2 chips have it", "/dev/gpiochip1", "/dev/gpiochip2", "change at each boot"}},
		{"gpio:gpiochip0", w("GPIO18"), ErrAbsent, []string{"d0 (line GPIO18): no such device: gpiochip0 has SDA1, GPIO17, and the offsets 0 to 3"}},
		{"gpio:gpiochip0", w("4"), ErrAbsent, []string{"d0 (line 4)"}},
		{"gpio:gpiochip0", w("GPIO17"), ErrAmbiguous, []string{"lines [1 2] of gpiochip0"}},
		{"gpio:gpiochip0", w("P1_1"), ErrAbsent, []string{"d0 (line P1_1)"}},
		{"gpio:gpiochip0", w("3"), ErrTaken, []string{"d0 (line 3): in use: spi0 CS0 has it"}},
		{"gpio:gpiochip1", append(w("A"), Wire{Use: "d1", Line: "0"}), ErrTaken, []string{"d1 (line 0): in use: it is the line of d0 too"}},
	} {
		_, err := Open(wait(t), k.wired(c.address, c.wires...))
		if !errors.Is(err, c.kind) {
			t.Errorf("%s %v: %v, not %v", c.address, c.wires, err, c.kind)
			continue
		}
		for _, text := range c.texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v: lacks %q", err, text)
			}
		}
	}
	none := fake(t)
	if _, err := Open(wait(t), none.wired("gpio:shoe", w("A")...)); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "no GPIO chip is there") {
		t.Error(err)
	}
}

func TestAChipThatMayNotBeOpenedIsNamed(t *testing.T) {
	k, c, o := wiegand(t)
	c.denied = true
	for _, address := range []string{"gpio:shoe", "gpio:/dev/gpiochip0"} {
		o.Address = address
		_, err := Open(wait(t), o)
		path := filepath.Join(k.root, "dev/gpiochip0")
		if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), path+": it belongs to ") || !strings.Contains(err.Error(), "mode 0600") {
			t.Error(err)
		}
	}
}

func TestWhatTheKernelRefusesIsToldAsItIs(t *testing.T) {
	k, _, o := wiegand(t)
	for errno, kind := range map[unix.Errno]error{unix.EBUSY: ErrTaken, unix.ENODEV: ErrAbsent, unix.ENXIO: ErrNotWire, unix.EINVAL: ErrNotWire} {
		k.refuse = map[uint]error{unix.GPIO_V2_GET_LINE_IOCTL: errno}
		if _, err := Open(wait(t), o); !errors.Is(err, kind) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	o.Address = "gpio:/dev/gpiochip0"
	k.refuse = map[uint]error{unix.GPIO_GET_CHIPINFO_IOCTL: unix.ENOTTY}
	if _, err := Open(wait(t), o); !errors.Is(err, ErrNotWire) || !strings.Contains(err.Error(), "no GPIO chip, or the kernel is older") {
		t.Error(err)
	}
}

func TestASecondNameOfAChipIsTheSameChip(t *testing.T) {
	k, _, o := wiegand(t)
	if err := os.Symlink("gpiochip0", filepath.Join(k.root, "dev/gpiochip4")); err != nil { // as on a Raspberry Pi 5
		t.Fatal(err)
	}
	openWired(t, o)
}

func TestHeaderPositions(t *testing.T) {
	k := fake(t)
	old := k.chip("gpiochip0", "pinctrl-bcm2835", make([]string, 54)...) // whose lines have other names
	named := k.chip("gpiochip1", "shoe", "X", "GPIO17")
	openWired(t, k.wired("gpio:pinctrl-bcm2835", Wire{Use: "a", Line: "P1_11"}))
	openWired(t, k.wired("gpio:shoe", Wire{Use: "a", Line: "P1_11"}))
	if old.lines[17].request == nil || named.lines[1].request == nil {
		t.Error("P1_11 is not GPIO17")
	}
	if _, err := Open(wait(t), k.wired("gpio:shoe", Wire{Use: "a", Line: "P1_12"})); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
}

func TestAChipThatIsGoneIsFoundWithinASecond(t *testing.T) {
	k, c, l := box(t)
	start := k.clock
	k.after(10*time.Millisecond, func() { c.gone = true }) // and nobody is woken
	_, err := l.Read(wait(t))
	if !errors.Is(err, ErrUnplugged) || !strings.Contains(err.Error(), "gpio:gpiochip0") {
		t.Error(err)
	}
	if passed := time.Duration(k.clock - start); passed > checkEvery {
		t.Errorf("found after %v", passed)
	}
}

func TestFollowComesBackToAChip(t *testing.T) {
	k, c, o := wiegand(t)
	k.live = true
	q := followOptions(t, o, &follower{after: time.After, now: time.Now, jitter: func(time.Duration) time.Duration { return time.Millisecond }})
	expect(t, q, Up)
	expect(t, q, Received)
	k.happen(func() { c.gone = true; c.lines[0].request.push(unix.GPIOV2LineEvent{}) }) // wakes, as since Linux 6.5
	if s := expect(t, q, Down); !errors.Is(s.Cause, ErrUnplugged) {
		t.Error(s.Cause)
	}
	k.happen(func() { c.gone = false })
	expect(t, q, Up)
	if s := expect(t, q, Received); len(s.Bytes) != wireRecordBytes {
		t.Errorf("% x", s.Bytes)
	}
}

func TestReadingWiresEndsWithItsContextAndWithClose(t *testing.T) {
	k, _, o := wiegand(t)
	k.live = true
	l := openWired(t, o)
	if got := next(t, l); got != "3 0 0 #0" {
		t.Fatal(got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	read := make(chan error)
	go func() {
		_, err := l.Read(wait(t))
		read <- err
	}()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-read; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := l.Write(wait(t), []byte("x")); err == nil || !strings.Contains(err.Error(), "wires take no orders") {
		t.Error(err)
	}
}

func TestAnOpenerOpensWhatIsNotThere(t *testing.T) {
	k, _, o := wiegand(t)
	real := openWired(t, o)
	got, err := Open(wait(t), Options{Name: "demo", Opener: func(_ context.Context, o Options) (Line, error) {
		if o.Name != "demo" || o.BaudRate != 0 {
			t.Errorf("given %+v", o)
		}
		return real, nil
	}})
	if err != nil || got != Line(real) {
		t.Error(got, err)
	}
	_ = k
}

// TestToldLevelsAreTrueInTheEnd loses, doubles and reorders edges at random: once
// it is quiet, what was told is what is.
func TestToldLevelsAreTrueInTheEnd(t *testing.T) {
	seed := seedOf(t)
	for trial := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, trial))
		k := fake(t)
		c := k.chip("gpiochip0", "shoe", make([]string, 16)...)
		var wires []Wire
		for i := range 1 + r.IntN(maxWires) {
			wires = append(wires, Wire{Use: "w", Line: fmt.Sprint(i), Edges: Edges(r.IntN(4)), ActiveLow: r.IntN(2) == 0})
		}
		l := openWired(t, k.wired("gpio:shoe", wires...))
		at := time.Duration(0)
		for range r.IntN(200) {
			at += time.Duration(r.Int64N(int64(50 * time.Millisecond >> r.IntN(12))))
			line, high := r.IntN(len(wires)), r.IntN(2) == 0
			damage := r.IntN(4)
			k.after(at, func() {
				c.set(line, high)
				req := c.lines[0].request
				n := len(req.fifo)
				switch {
				case damage == 0 && n > 0:
					req.fifo = req.fifo[:n-1]
				case damage == 1 && n > 0:
					req.push(req.fifo[n-1])
				case damage == 2 && n > 1:
					req.fifo[n-1], req.fifo[n-2] = req.fifo[n-2], req.fifo[n-1]
				}
			})
		}
		told, end := uint16(0), k.clock+uint64(at+2*checkEvery)
		for k.clock < end {
			chunk, err := l.readOnce(wireWait)
			if err != nil {
				t.Fatal(err)
			}
			told = apply(told, chunk.Bytes)
		}
		is, err := levels(k, l.fd, len(wires))
		if err != nil || told != is {
			t.Fatalf("seed %d, trial %d: told %b, is %b, %v", seed, trial, told, is, err)
		}
	}
}

func apply(told uint16, b []byte) uint16 {
	records, _ := ParseWireRecords(b)
	for _, r := range records {
		switch r.Kind {
		case WireActive:
			told |= 1 << r.Wire
		case WireInactive:
			told &^= 1 << r.Wire
		default:
			told = r.Levels
		}
	}
	return told
}

func TestParseWireRecords(t *testing.T) {
	want := []WireRecord{{Kind: WireActive, Wire: 15, Seq: 1<<32 - 1, Time: 1<<62 + 1}, {Kind: WireUnsteady, Levels: 0x8001, Seq: 7, Time: 9}}
	var b []byte
	for _, r := range want {
		b = r.Append(b)
	}
	if got := fmt.Sprintf("% x", b[:16]); got != "01 0f 00 00 ff ff ff ff 01 00 00 00 00 00 00 40" {
		t.Error(got)
	}
	got, err := ParseWireRecords(b)
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range [][]byte{b[:31], append([]byte{5}, b[1:]...), append([]byte{0}, b[1:]...)} {
		if _, err := ParseWireRecords(wrong); err == nil {
			t.Errorf("% x accepted", wrong)
		}
	}
}

func FuzzParseWireRecords(f *testing.F) {
	f.Add(WireRecord{Kind: WireActive, Wire: 1, Seq: 1, Time: 1}.Append(nil))
	f.Add(WireRecord{Kind: WireUnsteady, Levels: 0xffff, Seq: 1 << 31, Time: -1}.Append([]byte{3, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := ParseWireRecords(b)
		var again []byte
		for _, r := range records {
			again = r.Append(again)
		}
		if string(again) != string(b[:len(again)]) || (err == nil) != (len(again) == len(b)) {
			t.Errorf("% x: %+v, %v", b, records, err)
		}
	})
}
