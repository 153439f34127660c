//go:build vm

// Package vm tries a whole table on an emulated arm64 machine (QEMU, virt, no
// KVM needed): Debian's kernel and systemd, the built package, an FTDI adapter
// with the real capture at its other end, sensors, a button and a lamp on GPIO
// lines of gpio-sim, and a disk that loses power.
//
//	make vm-test                        # all of it
//	make vm-test VMFLAGS="-seed 7 -cuts 20"
//	make vm-test-short                  # three rounds, one unplug, one power cut
//
// It needs Debian 12, root, and what ".ci/deps vm" installs. What was downloaded
// and built stays in dist/.vm-arm64; remove that for a newer kernel.
//
// It is a test behind a build tag, and not a program, for its failures, cleanup
// and temporary files; and not a test that is skipped, which would look as if
// it had passed.
//
// Beside the daemon runs guest, which moves the wires and looks on for the host:
// the daemon is not its own stimulus, and what it says of itself is compared
// with what the host received over MQTT.
package vm

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/mqtt"
	"shoed/round"
)

var (
	seed = flag.Uint64("seed", 0, "seed of when the power goes; 0 takes one of the day")
	cuts = flag.Int("cuts", 5, "how often the power is cut; 1 with -short")
)

const (
	site    = "vm"
	tableID = "t1"

	// Under these the real capture holds its 16 rounds: it begins in mid-shoe,
	// has a shoe without a cut card, and a start in mid-round.
	captureRules = `"burn=unchecked", "reader.gap=void", "shoe.change_unproven=accept", "round_start=reader", "placement=presence"`

	// Lines of the chip, beside those of the boxes.
	call, red = "8", "9"

	config = `rules = [` + captureRules + `]
[table]
site = "` + site + `"
id = "` + tableID + `"
[reader]
device = "usb:0403:6001:SHOE01"
[boxes]
device = "gpio:boxes"
lines = ["P1=P1", "P2=P2", "P3=P3", "B1=B1", "B2=B2", "B3=B3"]
active = "high"
bias = "as-is" # another one moves the simulated line
[panel]
device = "gpio:boxes"
lines = ["call=` + call + `"]
active = "high"
bias = "as-is"
[lamps]
device = "gpio:boxes"
lines = ["red=` + red + `"]
[mqtt]
servers = ["mqtt://10.0.2.100:1883"]
listen = "off"
listen_ws = "off"
`
)

// table is the virtual table and those around it.
type table struct {
	*machine
	dir     string
	chance  *rand.Rand
	broker  mosquitto
	witness *witness
	shoe    []telegram // the capture, twice
	open    []bool
	filled  [6]bool         // boxes in which a card lies
	said    int             // telegrams of the shoe that are in the journal
	laid    int             // telegrams after which the dealer has moved the cards
	answers int             // those that were accepted
	echoes  []time.Duration // from a telegram's last byte to an event at the host
	figures []string
}

func (tb *table) figure(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	tb.t.Log(text)
	tb.figures = append(tb.figures, text)
}

func since(at time.Time) string { return fmt.Sprintf("%.1f s", time.Since(at).Seconds()) }

func TestTable(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: make vm-test VMFLAGS='-seed %d -cuts %d'", *seed, *seed, *cuts)
	tb := newTable(t)
	tb.install()
	if testing.Short() {
		*cuts = 1
	}
	tb.replug()
	tb.dealerCalls()
	tb.chipAway()
	for left := *cuts; left > 0; left-- {
		tb.powerCut(left)
	}
	if !testing.Short() {
		tb.deal(len(tb.shoe) / 2)
		tb.sixteenRounds()
		tb.stuck()
		tb.deal(tb.said + 4)
		tb.chipAway()
		tb.deal(tb.nextEnd())
		tb.replugInRound()
	}
	tb.check()
	t.Logf("figures:\n%s", strings.Join(tb.figures, "\n"))
}

// newDisk gives the machine a disk as it was built.
func newDisk(t *testing.T) {
	t.Helper()
	// A host that is busy writing the image would hold the guest up for seconds.
	for _, words := range [][]string{{"cp", "--sparse=always", filepath.Join(built, "fresh.img"), disk}, {"sync", disk}} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s: make vm-test builds it", err, out)
		}
	}
}

func newTable(t *testing.T) *table {
	dir := t.TempDir()
	newDisk(t)
	tb := &table{dir: dir, chance: rand.New(rand.NewPCG(*seed, 1)), broker: startMosquitto(t, dir), shoe: capture(t, 2)}
	tb.open = open(tb.shoe)
	tb.witness = watch(t, tb.broker.url())
	begun := time.Now()
	tb.machine = boot(t, dir, tb.broker.port, "")
	tb.figure("first boot: %s to the guest's first program", since(begun))
	return tb
}

// install does what a technician does: dpkg -i, the configuration, shoed restart.
func (tb *table) install() {
	tb.t.Helper()
	begun := time.Now()
	tb.must("dpkg -i /root/shoed_*.deb")
	tb.figure("dpkg -i: %s, the daemon running", since(begun))
	tb.must("[[ $(shoed version | head -1) == 'shoed 0.0.1' ]] && systemctl is-active shoed && systemctl is-enabled shoed")
	tb.put("/etc/shoed/shoed.toml", config)
	begun = time.Now()
	tb.must("shoed restart --config /etc/shoed/shoed.toml")
	tb.serves("the configured table")
	tb.figure("shoed restart: %s until it serves the host's broker", since(begun))
}

// serves waits until the host's broker has the table with its reader.
func (tb *table) serves(what string) {
	tb.t.Helper()
	tb.eventually(what+" online at the host's broker", bootPatience, tb.witness.serving)
	tb.eventually(what+" with its reader", patience, func() error { return tb.witness.reader("up") })
	// After a start the state says what the journal's end said, until the port is open.
	tb.eventually(what+" with its port open", patience, func() error {
		_, err := tb.do("ls -l /proc/$(pid)/fd | grep ttyUSB")
		return err
	})
}

// dealerCalls presses the panel's button: the table pauses, and its red lamp says
// so until somebody resumes it.
func (tb *table) dealerCalls() {
	tb.t.Helper()
	tb.lamp("0")
	tb.must("pull " + call + " up")
	begun := time.Now()
	tb.stands("dealer.call", "active")
	tb.figure("button pressed: %s until the host was told", since(begun))
	tb.must("pull " + call + " down")
	tb.lamp("1")
	tb.answer("resume")
	tb.stands("dealer.call", "")
	tb.lamp("0")
}

// lamp waits for the level of the line that the red lamp hangs on.
func (tb *table) lamp(level string) {
	tb.t.Helper()
	tb.eventually("the red lamp's level "+level, patience, func() error {
		if now := tb.must("level " + red); now != level {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
}

// chipAway takes the GPIO chip away and brings it back, with the cards still in
// the boxes.
func (tb *table) chipAway() {
	tb.t.Helper()
	tb.must("unplug_chip")
	begun := time.Now()
	for _, code := range []string{"sensors.lost", "panel.lost", "lamps.lost"} {
		tb.stands(code, "active")
	}
	gone := since(begun)
	tb.must("plug_chip " + tb.inBoxes())
	begun = time.Now()
	for _, code := range []string{"sensors.lost", "panel.lost", "lamps.lost"} {
		tb.stands(code, "returned", "")
	}
	back := since(begun)
	tb.answer("ack alert=" + tb.witness.number("sensors.lost"))
	tb.stands("sensors.lost", "")
	tb.figure("GPIO chip removed with cards in boxes %q: the host is told after %s, of its return after %s", tb.inBoxes(), gone, back)
}

// deal sends the shoe's telegrams up to one, not included, and waits until they
// are in the journal.
func (tb *table) deal(to int) {
	tb.t.Helper()
	if err := tb.send(to); err != nil {
		tb.fatalf("%v", err)
	}
	tb.eventually("the shoe's telegrams and the boxes in the journal", patience, func() error {
		x := tb.read()
		if tb.said != to || x.filled != tb.filled {
			return fmt.Errorf("%d of %d are there, cards in boxes %v of %v", tb.said, to, x.filled, tb.filled)
		}
		return nil
	})
}

// read takes the guest's journal, checks it against what the host knows, and
// notes how much of the shoe is in it.
func (tb *table) read() *exported {
	tb.t.Helper()
	x, err := parseExport(tb.must("shoed journal export --config /etc/shoed/shoed.toml"))
	if err == nil {
		err = tb.witness.holds(x)
	}
	if err == nil && x.answers < tb.answers {
		err = fmt.Errorf("%d answers were accepted, %d are in the journal", tb.answers, x.answers)
	}
	if err == nil {
		err = tb.follows(x.inputs)
	}
	if err != nil {
		tb.fatalf("the journal: %v", err)
	}
	return x
}

// follows: what the shoe said is in the journal in its order, nothing left out
// and nothing twice.
func (tb *table) follows(got []round.Input) error {
	tb.said = 0
	for tb.said < len(tb.shoe) && len(got) > 0 {
		want := tb.shoe[tb.said].in
		if len(got) < len(want) {
			return fmt.Errorf("telegram %d is there in part", tb.said)
		}
		for i, in := range want {
			if g := got[i]; g.Kind != in.Kind || g.To != in.To || g.Pos != in.Pos || g.Reader != in.Reader || g.Verdict != in.Verdict ||
				g.Card != in.Card && g.Card != round.Masked {
				return fmt.Errorf("telegram %d says %s, and the journal has %s", tb.said, in.AppendText(nil), g.AppendText(nil))
			}
		}
		got = got[len(want):]
		tb.said++
	}
	if len(got) > 0 {
		return fmt.Errorf("%d more than the shoe ever said", len(got))
	}
	return nil
}

// nextEnd is where the round in hand has its verdict.
func (tb *table) nextEnd() int {
	for i := tb.said; i < len(tb.shoe); i++ {
		for _, in := range tb.shoe[i].in {
			if in.Kind == round.InVerdict {
				return i + 1
			}
		}
	}
	return len(tb.shoe)
}

// replug pulls the adapter between two rounds and puts it back.
func (tb *table) replug() {
	tb.t.Helper()
	tb.deal(tb.nextEnd())
	tb.unplug()
	begun := time.Now()
	tb.eventually("reader down", patience, func() error { return tb.witness.reader("down") })
	tb.figure("unplugged: %s until the host was told", since(begun))
	tb.plug()
	begun = time.Now()
	tb.eventually("reader up", patience, func() error { return tb.witness.reader("up") })
	tb.figure("plugged in: %s until the host was told", since(begun))
	tb.deal(tb.nextEnd())
}

// powerCut lets the power go while a round is dealt, boots again, and checks
// that nothing which anybody was told is lost and the round is there.
func (tb *table) powerCut(left int) {
	tb.t.Helper()
	at := tb.someOpen(left)
	if at > tb.said {
		tb.deal(at)
	}
	end := time.AfterFunc(time.Duration(tb.chance.Int64N(int64(time.Second))), func() { tb.cmd.Process.Kill() })
	tb.send(min(at+3, len(tb.shoe))) // what fails is asked of the journal
	end.Stop()
	tb.cut()
	tb.waitFor("the broker to miss the table", tb.witness.away)
	received := tb.witness.forget()

	if !testing.Short() && tb.chance.IntN(3) == 0 {
		tb.cutWhileBooting()
	}
	begun := time.Now()
	tb.machine = boot(tb.t, tb.dir, tb.broker.port, tb.inBoxes())
	tb.serves("the table after the power cut")
	served := since(begun)
	x := tb.read()
	if err := tb.lay(tb.said); err != nil { // what the dealer still held in his hand
		tb.fatalf("%v", err)
	}
	restored := "; no round was open"
	if x.open {
		restored = "; its round is back after " + tb.resume(begun)
	} else {
		tb.stands("power.mid_round", "")
	}
	tb.must("shoed journal verify --config /etc/shoed/shoed.toml")
	tb.figure("power cut after telegram %d, %d events received: all in the journal's %d; serves after %s%s",
		tb.said, received, len(x.events), served, restored)
}

// cutWhileBooting lets the power come back for a moment only.
func (tb *table) cutWhileBooting() {
	tb.t.Helper()
	m := start(tb.t, tb.dir, tb.broker.port, tb.inBoxes())
	<-time.After(time.Duration(tb.chance.Int64N(int64(20 * time.Second))))
	m.cut()
	tb.waitFor("the broker to miss the table", tb.witness.away)
	tb.witness.forget()
	tb.figure("power cut while it booted")
}

// resume waits for the round that was in hand, which is paused, and confirms it;
// it returns how long it took to be back.
func (tb *table) resume(begun time.Time) string {
	tb.t.Helper()
	tb.stands("power.mid_round", "active")
	tb.eventually("the table paused", patience, func() error { return tb.witness.phase(mqtt.PhasePaused) })
	back := since(begun)
	tb.lamp("1")
	tb.answer("confirm alert=" + tb.witness.number("power.mid_round"))
	tb.stands("power.mid_round", "")
	return back
}

// someOpen picks one of the telegrams to come within a round, so that as many
// cuts as are left find their place before the shoe's end.
func (tb *table) someOpen(left int) int {
	shoe := len(tb.shoe) / 2
	end := min(shoe, tb.said+2*(shoe-tb.said)/(left+1)+1)
	if testing.Short() {
		end = tb.nextEnd()
	}
	var in []int
	for i := tb.said; i < end; i++ {
		if tb.open[i] {
			in = append(in, i)
		}
	}
	if len(in) == 0 {
		return tb.said
	}
	return in[tb.chance.IntN(len(in))]
}

// stands waits for an alert to be in one of the states.
func (tb *table) stands(code string, states ...string) {
	tb.t.Helper()
	tb.eventually(fmt.Sprintf("the alert %s in state %q", code, states), patience, func() error { return tb.witness.alert(code, states...) })
}

func (tb *table) answer(words string) {
	tb.t.Helper()
	tb.must("shoed answer " + words)
	tb.answers++
}

// sixteenRounds: after all that, the capture's rounds are what its shoe itself
// reported.
func (tb *table) sixteenRounds() {
	tb.t.Helper()
	got, want := tb.read().decided, capturedRounds(tb.t)
	if !slices.Equal(got, want) {
		tb.fatalf("rounds decided:\n%s\nthe shoe reported:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	tb.figure("the capture's %d rounds are decided as its shoe reported", len(got))
}

// stuck stops the daemon's process for good, in mid-round: systemd puts another
// in its place.
func (tb *table) stuck() {
	tb.t.Helper()
	tb.deal(tb.said + 4)
	tb.witness.forget()
	begun := time.Now()
	tb.must("kill -STOP $(pid)")
	tb.serves("the table after the watchdog")
	tb.figure("stopped process: serves again after %s (WatchdogSec=20)", since(begun))
	tb.resume(begun)
	tb.deal(tb.nextEnd())
}

// replugInRound pulls the adapter while a round is dealt: the house's rule for
// reader.gap makes it void.
func (tb *table) replugInRound() {
	tb.t.Helper()
	tb.deal(tb.said + 4)
	before := tb.read()
	if !before.open {
		tb.fatalf("no round is open %d telegrams into the capture", tb.said)
	}
	tb.unplug()
	tb.stands("reader.lost", "active")
	tb.plug()
	tb.eventually("reader up", patience, func() error { return tb.witness.reader("up") })
	tb.eventually("the round void", patience, func() error { return tb.witness.phase(mqtt.PhaseVoid) })
	if x := tb.read(); x.open || x.voided != before.voided+1 {
		tb.fatalf("a round whose reader was away: open %v, %d void after %d", x.open, x.voided, before.voided)
	}
	tb.figure("unplugged in mid-round: reader.lost, and void once it was back")
}

// check ends: the host has every event, and the journal holds together.
func (tb *table) check() {
	tb.t.Helper()
	x := tb.read()
	tb.waitFor("the last event at the host", func() error {
		if last := tb.witness.received(); last < len(x.events) {
			return fmt.Errorf("%d of %d came", last, len(x.events))
		}
		return nil
	})
	tb.read()
	tb.must("shoed journal verify --config /etc/shoed/shoed.toml")
	if failed := tb.must("systemctl --failed --no-legend"); failed != "" {
		tb.t.Errorf("failed in the guest:\n%s", failed)
	}
	tb.figure("last byte of a telegram to its first event at the host: %s", tb.latency())
	tb.figure("in the end: %d events, all received; %d answers; %d cards told in boxes", len(x.events), x.answers, x.placed)
}
