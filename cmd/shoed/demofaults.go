package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"shoed/config"
	"shoed/mqtt"
	"shoed/round"
	"shoed/sim"
)

// listFaults prints what demo --faults can show.
func listFaults(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tAT THE TABLE\tMADE BY\tALERT\t\tTHE SUPERVISOR")
	for _, f := range sim.Faults() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Happens, f.Made, f.Code, round.PriorityText(f.Code.Priority()), f.Does)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, `
Made by shoe, boxes (switches), tags (RFID in the boxes) and panel: what comes over
their lines, or the line itself. Made by machine: that part really fails. Told:
nothing tells of it here, so the table is told within the program.
`)
	return err
}

// chooseFaults reads a list of faults: names, codes of alerts, or all.
func chooseFaults(list string) (chosen []sim.Fault, err error) {
	all := sim.Faults()
	var names []string
	for _, f := range all {
		names = append(names, f.Name, f.Code.String())
	}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		found := len(chosen)
		for _, f := range all {
			if name == f.Name || name == f.Code.String() || name == "all" {
				chosen = append(chosen, f)
			}
		}
		if len(chosen) > found {
			continue
		}
		hint := `"shoed demo --faults list" has them all`
		if n := config.Nearest(name, names); n != "" {
			hint = "did you mean " + n + "?"
		}
		return nil, fmt.Errorf("--faults: there is no %q; %s", name, hint)
	}
	return chosen, nil
}

// floor is the simulated table and the daemon that watches it.
type floor struct {
	o      demoOptions
	dir    string
	out    io.Writer
	errs   io.Writer
	drill  *sim.Drill
	line   sim.DrillOptions
	screen *supervisor

	fitting  sim.Fitting
	cfg      *config.Config // of the table as it is fitted out
	service  *service
	own      bool         // the broker is
	taken    uint64       // bytes, by services that are no more
	stop     func() error // the daemon; nil while there is none
	watching context.CancelFunc
}

// runFaults shows the faults, one after the other, and says of each whether its
// alert was seen.
func runFaults(ctx context.Context, o demoOptions, faults []sim.Fault, out, errs io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "shoed-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out = &inTurn{w: out}
	f := &floor{o: o, dir: dir, out: out, errs: errs, screen: newSupervisor(out)}
	if err := f.plugIn(); err != nil {
		return err
	}
	defer f.pullOut()
	defer func() { err = errors.Join(err, f.end()) }()
	if err := f.start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "simulated table, seed %d, speed %v -> shoed -> %s, answers to %s\n", o.seed, o.speed, demoServer(f.service), f.cfg.Control.Socket)
	return notStopped(ctx, f.showAll(ctx, faults))
}

// showAll stops at the first fault that goes wrong: the table may not go on.
func (f *floor) showAll(ctx context.Context, faults []sim.Fault) (err error) {
	seen := 0
	for ; err == nil && seen < len(faults); seen++ {
		if err = f.show(ctx, &faults[seen]); err != nil {
			break
		}
	}
	fmt.Fprintln(f.out)
	for i, fault := range faults {
		result := "seen"
		switch {
		case i > seen || i == seen && ctx.Err() != nil:
			result = "not played"
		case i == seen:
			result = "FAILED"
		}
		fmt.Fprintf(f.out, "%-18s %-24s %s\n", fault.Name, fault.Code, result)
	}
	fmt.Fprintf(f.out, "%d faults, %d seen\n", len(faults), seen)
	return err
}

// show shows one. Its error says that its alert was not seen, or another one was.
func (f *floor) show(ctx context.Context, fault *sim.Fault) error {
	f.screen.forget()
	seen, err := f.drill.Show(ctx, fault, func() { fmt.Fprintf(f.out, "\n%s: %s\n", fault.Name, fault.Happens) })
	others := f.screen.others(fault.Codes())
	switch {
	case err != nil:
		return err
	case !seen:
		return fmt.Errorf("%s: %s was not seen", fault.Name, fault.Code)
	case len(others) > 0:
		return fmt.Errorf("%s: %s came too", fault.Name, strings.Join(others, ", "))
	case !f.screen.raised(fault.Code):
		fmt.Fprintf(f.out, "  in the audit view: %s %s: %s\n", round.PriorityText(fault.Code.Priority()), fault.Code, fault.Code.Advice().Cause)
	}
	return nil
}

// plugIn makes the table's equipment.
func (f *floor) plugIn() error {
	f.line = sim.DrillOptions{Seed: f.o.seed, Speed: f.o.speed, Boxes: sim.NewChip(), Panel: sim.NewChip()}
	for name, plug := range map[string]**sim.Plug{"shoe": &f.line.Shoe, sim.Spare: &f.line.Spare, "tags": &f.line.Tags} {
		p, err := sim.OpenPlug(filepath.Join(f.dir, name))
		if err != nil {
			f.pullOut()
			return err
		}
		*plug = p
	}
	f.line.Desk = f.desk()
	f.drill = sim.NewDrill(f.line)
	return nil
}

func (f *floor) pullOut() {
	for _, plug := range []*sim.Plug{f.line.Shoe, f.line.Spare, f.line.Tags} {
		if plug != nil {
			plug.Unplug() // it goes with its directory
		}
	}
}

// configure is the table's configuration as it is fitted out.
func (f *floor) configure() error {
	cfg, err := config.Load("", nil)
	if err != nil {
		return err
	}
	cfg.Table.ID = "demo"
	cfg.Journal.Dir = f.dir
	cfg.Control.Socket = filepath.Join(f.dir, "shoed.sock")
	cfg.Reader.Device = f.line.Shoe.Path()
	spare := cfg.Reader
	spare.Name, spare.Device = sim.Spare, f.line.Spare.Path()
	cfg.Spares = []config.Reader{spare}
	cfg.Panel.Device, cfg.Panel.Lines = "gpio:panel", alike(sim.DrillPanel())
	if cfg.Boxes.Device, cfg.Boxes.Lines = "gpio:boxes", alike([]string{"P1", "P2", "P3", "B1", "B2", "B3"}); f.fitting.RFID {
		cfg.Boxes = config.Boxes{Protocol: "rfid", Device: f.line.Tags.Path(), Codes: sim.DrillTags()}
	}
	cfg.MQTT.ListenWS = "127.0.0.1:0"
	if f.cfg == nil {
		cfg.MQTT.Listen, cfg.MQTT.Servers = demoBroker(f.o.mqtt)
	} else {
		cfg.MQTT = f.cfg.MQTT
	}
	f.cfg = cfg
	return nil
}

// alike gives each use a wire of its name.
func alike(uses []string) (lines []string) {
	for _, use := range uses {
		lines = append(lines, use+"="+use)
	}
	return lines
}

// start starts the daemon; first is done before it publishes anything.
func (f *floor) start(ctx context.Context, first ...func() error) error {
	if err := f.configure(); err != nil {
		return err
	}
	s := f.daemon()
	if err := s.open(); err != nil {
		return err
	}
	f.service = s
	f.connect()
	if f.own = s.broker != nil; f.own { // where it comes back
		f.cfg.MQTT.Listen, f.cfg.MQTT.ListenWS = s.broker.TCP, s.broker.WebSocket
	}
	err := f.watch(ctx)
	for _, do := range first {
		err = errors.Join(err, do())
	}
	if err != nil {
		return errors.Join(err, s.close())
	}
	serving, stop := context.WithCancel(ctx)
	served := task(func() error { return s.serve(serving) })
	f.stop = func() error {
		f.stop = nil
		stop()
		err := <-served
		f.taken += s.core.health.Load().bytes
		return errors.Join(err, s.close())
	}
	return nil
}

// daemon is the whole program, with the table's time.
func (f *floor) daemon() *service {
	return &service{
		cfg: f.cfg, rules: f.fitting.Rules(), build: thisBuild(), sim: true,
		log:   slog.New(slog.NewTextHandler(f.errs, &slog.HandlerOptions{Level: slog.LevelError})),
		clock: func(time.Time) time.Time { return f.drill.Now() },
		now:   f.drill.Now,
		after: func(d time.Duration) <-chan time.Time { return time.After(f.pause(d)) },
		sysfs: filepath.Join(f.dir, "sys"),
	}
}

// connect puts the simulated chips in the place of the kernel's.
func (f *floor) connect() {
	f.service.core.beside = make(chan round.Input)
	for _, from := range f.service.core.sources {
		switch {
		case from.name == round.PanelDevice:
			from.line.Opener = f.line.Panel.Open
		case from.name == round.BoxesDevice && !f.fitting.RFID:
			from.line.Opener = f.line.Boxes.Open
		}
	}
}

// pause is how long the publisher pauses: as long as it takes at the table, but
// not so short that nobody could look meanwhile.
func (f *floor) pause(d time.Duration) time.Duration {
	const looked = 2 * time.Second // the daemon looks at its parts each second
	return max(time.Duration(float64(d)/f.o.speed), min(d, looked))
}

// watch puts the screen to the table's broker, for as long as the broker is there.
func (f *floor) watch(ctx context.Context) error {
	if f.watching != nil {
		f.watching()
	}
	var watching context.Context
	watching, f.watching = context.WithCancel(ctx)
	_, err := mqtt.Subscribe(watching, mqtt.Account{Server: demoServer(f.service)}, f.cfg.Table.Site, f.cfg.Table.ID, f.screen.message)
	return err
}

// end stops the daemon.
func (f *floor) end() error {
	if f.watching != nil {
		f.watching()
	}
	if f.stop == nil {
		return nil
	}
	return f.stop()
}

// restart stops the daemon and starts it again on the same journal.
func (f *floor) restart(ctx context.Context, first ...func() error) error {
	if err := f.stop(); err != nil {
		return err
	}
	return f.start(ctx, first...)
}

// beside does what no hardware of the table's does.
func (f *floor) beside(ctx context.Context, in round.Input) error {
	failing := in.Kind == round.InLink && !in.On
	switch {
	case in.Kind == round.InRestart:
		return f.restart(ctx)
	case in.Name == round.BrokerDevice && f.own && failing:
		f.service.broker.Close()
		f.service.broker = nil
		return nil
	case in.Name == round.BrokerDevice && f.own:
		return errors.Join(f.service.openBroker(), f.watch(ctx))
	case in.Name == round.PowerDevice:
		return f.power(failing)
	case in.Name == round.CommandsDevice && failing:
		return f.restart(ctx, func() error { return f.keepCommand(ctx, `{"schema":"cmd/1.0"}`) })
	case in.Name == round.CommandsDevice:
		return f.keepCommand(ctx, "")
	case in.Name == round.PublisherDevice && failing:
		return f.put(ctx, "status", false, `{"schema":"status/1.0","state":"online","instance":"another","session":1}`)
	case in.Name == round.PublisherDevice:
		return nil // the other one has gone by itself
	}
	select {
	case f.service.core.beside <- in:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// power is the supply of a Raspberry Pi, as its kernel tells of it.
func (f *floor) power(low bool) error {
	dir := filepath.Join(f.service.sysfs, "class", "hwmon", "hwmon0")
	alarm := "0\n"
	if low {
		alarm = "1\n"
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "name"), []byte("rpi_volt\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "in0_lcrit_alarm"), []byte(alarm), 0o600))
}

// keepCommand leaves a command with the broker; an empty one deletes it.
func (f *floor) keepCommand(ctx context.Context, body string) error {
	return f.put(ctx, "cmd/guest/ack", true, body)
}

func (f *floor) put(ctx context.Context, name string, retained bool, body string) error {
	return mqtt.Put(ctx, mqtt.Account{Server: demoServer(f.service)}, mqtt.Topic(f.cfg.Table.Site, f.cfg.Table.ID, name), retained, []byte(body))
}

func (f *floor) desk() sim.Desk {
	return sim.Desk{
		Taken:  func() uint64 { return f.taken + f.service.core.health.Load().bytes },
		Table:  func() round.State { return *f.service.core.table.Load() },
		Beside: f.beside,
		Raised: f.raised,
		Fit: func(ctx context.Context, to sim.Fitting) error {
			f.fitting = to
			return f.restart(ctx)
		},
		Answer: func(ctx context.Context, fault *sim.Fault, replies []sim.Reply) error {
			if f.o.attended {
				return f.attend(ctx, replies)
			}
			return f.answer(ctx, fault, replies)
		},
	}
}

// raised reports whether the alert was on the screen, or stands where no screen
// shows it: while the broker is away, and in the audit view.
func (f *floor) raised(c round.Code) bool {
	unseen := c == round.BrokerLost || c == round.ShoeSuspectOrder
	return f.screen.raised(c) || unseen && slices.ContainsFunc(f.service.core.table.Load().Alerts[:], func(a round.Alert) bool { return a.No != 0 && a.Code == c })
}

// moment is how long the simulated supervisor takes to answer, at the table.
const moment = 3 * time.Second

// answer gives the replies as "shoed answer" does, and acknowledges whatever else
// stands, until nothing does.
func (f *floor) answer(ctx context.Context, fault *sim.Fault, replies []sim.Reply) error {
	if err := f.drill.Pass(ctx, moment); err != nil {
		return err
	}
	for _, r := range replies {
		item, err := f.screen.standing(ctx, r.Code.String())
		if err != nil {
			return fmt.Errorf("%s: %w", fault.Name, err)
		}
		if err := f.reply(item, r.Words); err != nil {
			return fmt.Errorf("%s: %w", fault.Name, err)
		}
	}
	for late := time.Now().Add(settleTime); ; {
		items, stand := f.screen.items(), f.standing()
		if len(items) == 0 && len(stand) == 0 {
			return nil
		}
		for _, item := range items {
			if acked, stands := stand[item.Alert]; !stands || acked {
				continue
			}
			if err := f.reply(item, []string{"ack"}); err != nil {
				return fmt.Errorf("%s: %w", fault.Name, err)
			}
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s: alerts still stand: %v", fault.Name, slices.Sorted(maps.Keys(stand)))
		}
		if err := f.screen.wait(ctx); err != nil {
			return err
		}
	}
}

// standing are the alerts that stand now, and whether they are acknowledged. The
// screen may be a moment behind.
func (f *floor) standing() map[string]bool {
	all := map[string]bool{}
	for _, a := range f.service.core.table.Load().Alerts {
		if a.No != 0 && a.Public() {
			all[mqtt.AlertID(f.cfg.Table.ID, a.No)] = a.AckedAt != 0
		}
	}
	return all
}

func (f *floor) reply(item mqtt.AlertItem, words []string) error {
	given, err := commandOf(append(slices.Clone(words[1:]), "alert="+item.Alert))
	if err != nil {
		return err
	}
	fmt.Fprintf(f.out, "  supervisor: %s alert=%s  ", strings.Join(words, " "), item.Alert)
	return sendAnswer(f.cfg.Control.Socket, "", words[0], given, f.out)
}

// attend tells the person at the keyboard what stands and how to answer it, until
// nothing does. Time at the table goes on as in life.
func (f *floor) attend(ctx context.Context, replies []sim.Reply) error {
	told := map[string]bool{}
	for {
		items := f.screen.items()
		if len(items) == 0 && len(f.standing()) == 0 {
			return nil
		}
		for _, item := range inOrder(items, replies) {
			if !told[item.Alert] {
				told[item.Alert] = true
				f.present(item, replies)
			}
		}
		const step = 100 * time.Millisecond
		if err := errors.Join(f.screen.wait(ctx), f.drill.Pass(ctx, step)); err != nil {
			return err
		}
	}
}

// inOrder puts the alerts in the order in which they can be answered.
func inOrder(items []mqtt.AlertItem, replies []sim.Reply) []mqtt.AlertItem {
	place := func(item mqtt.AlertItem) int {
		if i := slices.IndexFunc(replies, func(r sim.Reply) bool { return r.Code.String() == item.Code }); i >= 0 {
			return i
		}
		return len(replies)
	}
	return slices.SortedStableFunc(slices.Values(items), func(a, b mqtt.AlertItem) int { return cmp.Compare(place(a), place(b)) })
}

// present prints an alert as a supervisor's page has it, and the commands that
// answer it: the fitting one first.
func (f *floor) present(item mqtt.AlertItem, replies []sim.Reply) {
	fmt.Fprintf(f.out, "  %s %s: %s\n    %s\n    %s\n    %s\n", item.Priority, item.Code, item.Title, item.Cause, item.Consequence, item.Response)
	var lines []string
	for _, r := range replies {
		if r.Code.String() == item.Code {
			lines = append(lines, strings.Join(r.Words, " ")+" alert="+item.Alert)
		}
	}
	for _, o := range item.Options {
		words := []string{o.Command}
		if where := o.Args["where"]; where != "" {
			words = append(words, "where="+where)
		}
		if o.Command == "correct" {
			words = append(words, "P1=8s") // and whatever lies there
		}
		if line := strings.Join(append(words, "alert="+item.Alert), " "); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		fmt.Fprintf(f.out, "    %s shoed answer --socket %s %s\n", [...]string{"->", "or"}[min(i, 1)], f.cfg.Control.Socket, line)
	}
}
