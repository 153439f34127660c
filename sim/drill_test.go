package sim

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoed/device"
	"shoed/round"
	"shoed/scanner"
)

// daemon is shoed in small: lines, decoders and rules, without a journal, a broker
// or a clock of its own.
type daemon struct {
	t     *testing.T
	drill *Drill

	mu     sync.Mutex
	state  round.State
	taken  uint64
	raised []round.Code
	decode map[string]scanner.Decoder
}

func (d *daemon) step(in round.Input) error {
	in.At = d.drill.Now()
	after, events, err := d.state.Step(in, nil)
	if err != nil {
		return err
	}
	d.state = after
	for i := range events {
		if e := &events[i]; e.Kind == round.AlertRaised {
			d.raised = append(d.raised, e.Code)
		}
	}
	return nil
}

// signal takes what came over a line.
func (d *daemon) signal(s device.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var inputs []round.Input
	decoder := d.decode[s.Name]
	switch s.Kind {
	case device.Up, device.Down:
		if s.Kind == device.Up {
			decoder.Reconnect()
		}
		if s.Name != Spare && s.Name != "tags" {
			inputs = append(inputs, link(s.Name, s.Kind == device.Up))
		}
	case device.Received:
		for _, r := range decoder.Feed(d.drill.Now(), s.Bytes, nil) {
			switch {
			case r.Err != nil:
			case s.Name == Spare:
				inputs = append(inputs, round.Input{Kind: round.InInactive, Name: Spare, Spare: round.SpareCard})
			default:
				if r.Input.Kind == round.InWire {
					r.Input.Name = s.Name
				}
				inputs = append(inputs, r.Input)
			}
		}
	}
	for _, in := range inputs {
		if err := d.step(in); err != nil {
			d.t.Error(err)
		}
	}
	d.taken += uint64(len(s.Bytes))
}

func (d *daemon) desk() Desk {
	return Desk{
		Taken: func() uint64 {
			d.mu.Lock()
			defer d.mu.Unlock()
			if due := d.state.Deadline(); due != 0 && d.drill.Now().UnixNano() >= due {
				if err := d.step(round.Input{Kind: round.InTick}); err != nil {
					d.t.Error(err)
				}
			}
			return d.taken
		},
		Table: func() round.State {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.state
		},
		Beside: func(_ context.Context, in round.Input) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.step(in)
		},
		Raised: func(c round.Code) bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return slices.Contains(d.raised, c)
		},
		Fit: func(_ context.Context, to Fitting) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.state.NextRules = to.Rules()
			return nil
		},
		Answer: d.answer,
	}
}

// answer gives the replies, acknowledges what still stands, and waits until
// nothing does.
func (d *daemon) answer(ctx context.Context, f *Fault, replies []Reply) error {
	if err := d.drill.Pass(ctx, 3*time.Second); err != nil {
		return err
	}
	if err := d.replyAll(f, replies); err != nil {
		return err
	}
	stands := func() round.Code { return d.desk().Table().Alerts[0].Code }
	if !d.drill.await(ctx, func() bool { return stands() == 0 }) {
		return fmt.Errorf("%s: %s still stands", f.Name, stands())
	}
	return nil
}

func (d *daemon) replyAll(f *Fault, replies []Reply) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range replies {
		if err := d.reply(f, r); err != nil {
			return err
		}
	}
	for _, a := range d.state.Alerts {
		if a.No == 0 || a.AckedAt != 0 {
			continue
		}
		if err := d.reply(f, Reply{a.Code, []string{"ack"}}); err != nil {
			return err
		}
	}
	return nil
}

func (d *daemon) reply(f *Fault, r Reply) error {
	answer := fmt.Sprintf(`{"at":"2026-01-02T03:04:05Z","in":"answer","do":%q`, r.Words[0])
	for _, word := range r.Words[1:] {
		key, value, _ := strings.Cut(word, "=")
		if _, err := round.ParseBox(key); err == nil {
			key, value = "cards", fmt.Sprintf(`{%q:%q}`, key, value)
		} else {
			value = fmt.Sprintf("%q", value)
		}
		answer += fmt.Sprintf(",%q:%s", key, value)
	}
	for i := range d.state.Alerts {
		if a := d.state.Alerts[i]; a.Code == r.Code && a.No != 0 {
			in, err := round.ParseInput(fmt.Appendf(nil, `%s,"alert":"A%06d"}`, answer, a.No))
			if err != nil {
				return err
			}
			return d.step(in)
		}
	}
	return fmt.Errorf("%s: no %s stands to be answered by %q", f.Name, r.Code, r.Words)
}

// newDrill is a drill at full speed and the daemon that watches its table.
func newDrill(t *testing.T, seed uint64) (*Drill, *daemon) {
	o := DrillOptions{Seed: seed, Speed: 1, Sleep: NoSleep, Boxes: NewChip(), Panel: NewChip()}
	for _, line := range []struct {
		name string
		plug **Plug
	}{{"reader", &o.Shoe}, {Spare, &o.Spare}, {"tags", &o.Tags}} {
		p, err := OpenPlug(filepath.Join(t.TempDir(), line.name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Unplug() })
		*line.plug = p
	}
	d := &daemon{t: t, state: round.New(Fitting{}.Rules()), decode: map[string]scanner.Decoder{}}
	o.Desk = d.desk()
	d.drill = NewDrill(o)
	queue := device.NewQueue(1<<20, device.QueueSignals)
	codes, err := scanner.ParseCodes(DrillTags())
	if err != nil {
		t.Fatal(err)
	}
	boxes := []string{"P1", "P2", "P3", "B1", "B2", "B3"}
	for _, source := range []struct {
		protocol string
		uses     []string
		line     device.Options
	}{
		{"angel", nil, device.Options{Name: "reader", Address: o.Shoe.Path()}},
		{"angel", nil, device.Options{Name: Spare, Address: o.Spare.Path()}},
		{"rfid", nil, device.Options{Name: "tags", Address: o.Tags.Path()}},
		{"presence", boxes, device.Options{Name: round.BoxesDevice, Opener: o.Boxes.Open}},
		{"panel", DrillPanel(), device.Options{Name: round.PanelDevice, Opener: o.Panel.Open}},
	} {
		decoder, err := scanner.New(source.protocol, scanner.Options{Uses: source.uses, Codes: codes})
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range source.uses {
			source.line.Wires = append(source.line.Wires, device.Wire{Use: use})
		}
		d.decode[source.line.Name] = decoder
		go device.Follow(t.Context(), source.line, queue, nil)
	}
	go func() {
		for s, err := queue.Next(t.Context()); err == nil; s, err = queue.Next(t.Context()) {
			d.signal(s)
		}
	}()
	return d.drill, d
}

// Every fault shows its alert and no other, is answered, and the table goes on.
func TestFaults(t *testing.T) {
	seed := seedOf(t)
	drill, d := newDrill(t, seed)
	for _, f := range Faults() {
		d.mu.Lock()
		d.raised = nil
		d.mu.Unlock()
		seen, err := drill.Show(t.Context(), &f, nil)
		if err != nil || !seen {
			t.Fatalf("%s: %t, %v", f.Name, seen, err)
		}
		d.mu.Lock()
		raised := slices.Clone(d.raised)
		d.mu.Unlock()
		for _, c := range raised {
			if !slices.Contains(f.Codes(), c) {
				t.Errorf("%s: %s was raised too", f.Name, c)
			}
		}
		if state := d.desk().Table(); state.Round.Open || state.PausedBy != 0 {
			t.Fatalf("%s: the table does not go on: round open %t, paused by %s, raised %v", f.Name, state.Round.Open, state.PausedBy, raised)
		}
	}
}

// A new code needs a fault that shows it.
func TestEveryCodeHasAFault(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Faults() {
		if names[f.Name] || f.Made == 0 || f.Happens == "" || f.Does == "" {
			t.Errorf("fault %+v", f)
		}
		names[f.Name] = true
	}
	for _, code := range round.Codes() {
		shown := slices.ContainsFunc(Faults(), func(f Fault) bool { return f.Code == code })
		if !shown {
			t.Errorf("no fault shows %s", code)
		}
	}
}
