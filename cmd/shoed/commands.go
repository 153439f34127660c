package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

const (
	// commandsWaiting may queue for the core while it holds; one more is refused
	// as busy.
	commandsWaiting = 32
	// secondsWanted may wait for a second person, of one user: more is a mistake.
	secondsWanted = 4
)

// request is a command on its way to the core.
type request struct {
	mqtt.Request
	by   string                              // who is answerable for it, as events and journal name him
	told func(seq uint64, reply *mqtt.Reply) // is given the reply and the last event that it reflects; never blocks
}

// desk is what the game does not know of: what people have said of the table,
// and which kind of reader it has. It is kept with the snapshots.
type desk struct {
	Dealer string       `json:"dealer,omitempty"`
	Limits *mqtt.Limits `json:"limits,omitempty"`
	Masked *bool        `json:"masked,omitempty"` // the reader masks faces; nil until it has told a card
}

// command takes what a recorded command said of the table.
func (d *desk) command(rec journal.Record) error {
	var g mqtt.Given
	if err := json.Unmarshal(rec.Body, &g); err != nil {
		return fmt.Errorf("journal record %d: %w", rec.No, err)
	}
	if g.Reply.Status == mqtt.Done {
		return d.set(g.Command, g.Body.Args)
	}
	return nil
}

// set does what a command says of the table. It refuses bad arguments.
func (d *desk) set(command string, args []byte) error {
	switch command {
	case "dealer":
		var a struct{ Name string }
		if err := json.Unmarshal(args, &a); err != nil || a.Name == "" || len(a.Name) > 64 {
			return errors.New("want name, of at most 64 bytes")
		}
		d.Dealer = a.Name
	case "limits":
		l, err := mqtt.ParseLimits(args)
		if err != nil {
			return err
		}
		d.Limits = l
	}
	return nil
}

// waiting is a command that waits for a second person.
type waiting struct {
	request
	until time.Time // wall time
}

// command lets a command have its effect: what it leads to, itself and its reply
// become durable together, and only then is anybody told. One that was there
// before has no second effect, and gets the reply that it got.
func (c *core) command(ctx context.Context, r request) error {
	rec, seen, err := c.journal.Command(commandSource(&r.Request))
	if err != nil {
		c.tell(slog.LevelError, "command.unread", "a command is refused: the journal cannot be read", "cause", err)
		r.told(c.state.Seq, &mqtt.Reply{CmdID: r.Command.CmdID, Status: mqtt.Failed, Code: mqtt.CodeInternal, Message: "the journal cannot be read"})
		return nil
	}
	if seen {
		var g mqtt.Given
		if err := json.Unmarshal(rec.Body, &g); err != nil {
			return fmt.Errorf("journal record %d: %w", rec.No, err)
		}
		g.Reply.Duplicate = true
		c.gate.Count(mqtt.CodeDuplicate)
		r.told(g.Seq, &g.Reply)
		return nil
	}
	next, d, before := c.state, c.desk, c.inUse()
	c.begin()
	answers := c.decide(&next, &d, &r)
	if c.gate.Records(&r.Request) && answers[0].reply.Code != mqtt.CodeBusy { // who is told busy sends the same again, and may find room
		for i := range answers {
			if err := answers[i].record(c, next.Seq); err != nil {
				return err
			}
		}
		if err := c.commit(ctx, next); err != nil {
			return err
		}
	}
	if now := c.inUse(); now != before && !now.up { // put in use without a line
		if err := c.take(ctx, c.link(now, c.now(), false)); err != nil {
			return err
		}
	}
	if c.desk != d {
		c.desk = d
		c.tellFacts()
		c.adopted()
	}
	if err := c.reconfigure(ctx); err != nil { // before anybody is told that it is in force
		return err
	}
	for i := range answers {
		c.gate.Count(answers[i].reply.Code)
		answers[i].told(next.Seq, &answers[i].reply)
		if err := c.follow(ctx, &answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// answered is a command with its reply.
type answered struct {
	request
	reply mqtt.Reply
}

func (r *request) with(reply mqtt.Reply) answered {
	reply.CmdID = r.Command.CmdID
	return answered{*r, reply}
}

// commandSource names a command in the journal: its own record, and the events
// that it led to.
func commandSource(r *mqtt.Request) string { return r.User + "/" + r.Command.CmdID }

// record adds the command with its reply to those to be made durable.
func (a *answered) record(c *core, seq uint64) error {
	body, err := json.Marshal(mqtt.Given{User: a.User, Command: a.Name, By: a.by, Local: a.Local, Body: a.Command, Seq: seq, Reply: a.reply})
	if err != nil {
		return err
	}
	c.records = append(c.records, journal.Record{At: c.now(), Kind: journal.Command, Source: commandSource(&a.Request), Body: body})
	return nil
}

// decide gives the reply, or the two when the command approves another one.
func (c *core) decide(next *round.State, d *desk, r *request) []answered {
	refused := c.gate.Judge(&r.Request, &c.state, wall(time.Now()), clockState())
	switch {
	case refused != nil && refused.Code == mqtt.CodeNeedsSecond:
		if full := c.await(r); full != nil {
			refused = full
		}
		return []answered{r.with(*refused)}
	case refused != nil:
		return []answered{r.with(*refused)}
	case r.Name == "approve":
		return c.approve(next, d, r)
	}
	return []answered{r.with(*c.perform(next, d, r))}
}

// await lets a command wait for a second person, who names it by its id alone:
// another one with that id must not take its place.
func (c *core) await(r *request) *mqtt.Reply {
	if _, taken := c.waiting[r.Command.CmdID]; taken {
		return mqtt.Refuse(mqtt.CodeBadRequest, "cmd_id: another command with it waits for a second person")
	}
	own := 0
	for _, w := range c.waiting {
		if w.User == r.User {
			own++
		}
	}
	if own == secondsWanted {
		return mqtt.Refuse(mqtt.CodeBusy, "%d commands of %s wait for another person", own, r.User)
	}
	c.waiting[r.Command.CmdID] = waiting{*r, time.Now().Add(mqtt.SecondWithin)}
	return nil
}

// approve lets a command that waits have its effect, if another person says so
// and the table is still where its sender thought.
func (c *core) approve(next *round.State, d *desk, second *request) []answered {
	var args struct {
		CmdID string `json:"cmd_id"`
	}
	_ = json.Unmarshal(second.Command.Args, &args) // an absent id is unknown
	first, known := c.waiting[args.CmdID]
	answer := func(r *mqtt.Reply) []answered { return []answered{second.with(*r)} }
	switch {
	case !known:
		return answer(mqtt.Refuse(mqtt.CodeNotApplicable, "no command %q waits for a second person", args.CmdID))
	case first.by == second.by:
		return answer(mqtt.Refuse(mqtt.CodeNotAllowed, "the second person must be another one than %s", first.by))
	}
	delete(c.waiting, args.CmdID)
	both := first.request
	both.by += "+" + second.by
	outcome := c.gate.Stands(&both.Request, &c.state)
	if outcome == nil {
		outcome = c.perform(next, d, &both)
	}
	own := *outcome
	own.Result = nil
	return append(answer(&own), both.with(*outcome))
}

// expire ends what has waited too long for a second person.
func (c *core) expire(ctx context.Context) error {
	for id, w := range c.waiting {
		if time.Now().Before(w.until) {
			continue
		}
		delete(c.waiting, id)
		a := w.with(*mqtt.Refuse(mqtt.CodeExpired, "no second person approved it within a minute"))
		if err := c.conclude(ctx, &a); err != nil {
			return err
		}
	}
	return nil
}

// perform makes the effect of a command that may have it.
func (c *core) perform(next *round.State, d *desk, r *request) *mqtt.Reply {
	if in, ok := r.Answer(c.now(), r.by); ok {
		if in.Answer.Do == round.DoSwapReader && !slices.Contains(c.spares(), in.Answer.Device) {
			return mqtt.Refuse(mqtt.CodeNotApplicable, "no such reader that is not in use: %q; there are %q", in.Answer.Device, c.spares())
		}
		c.cause = commandSource(&r.Request)
		return c.answer(next, in)
	}
	done := &mqtt.Reply{Status: mqtt.Done, Code: mqtt.CodeOK, Message: "noted"}
	switch r.Name {
	case "dealer", "limits":
		if err := d.set(r.Name, r.Command.Args); err != nil {
			return mqtt.Refuse(mqtt.CodeBadRequest, "args: %v", err)
		}
	case "identify", "diag":
		done.Message, done.Result = "here", c.describe()
	case "sync":
		wanted, refused := c.wanted(r)
		if refused != nil {
			return refused
		}
		return &mqtt.Reply{Status: mqtt.Accepted, Code: mqtt.CodeOK, Message: "it follows", Result: wanted}
	case "reader-lock", "reader-cancel-error":
		if _, err := c.order(&r.Request); err != nil {
			return mqtt.Refuse(mqtt.CodeNotApplicable, "%v", err)
		}
		return &mqtt.Reply{Status: mqtt.Accepted, Code: mqtt.CodeOK, Message: "it goes to the reader"}
	case "config-reload":
		return c.reloadFor(r)
	default:
		return mqtt.Refuse(mqtt.CodeNotApplicable, "this table cannot do %s", r.Name)
	}
	return done
}

// answer steps with an answer and says what came of it.
func (c *core) answer(next *round.State, in round.Input) *mqtt.Reply {
	made := len(c.events)
	if err := c.step(next, in, ""); err != nil {
		return mqtt.Refuse(mqtt.CodeBadRequest, "%v", err)
	}
	var kinds []string
	for i := range c.events[made:] {
		e := &c.events[made+i]
		if e.Kind == round.AnswerRefused {
			return mqtt.Refuse(mqtt.CodeNotApplicable, "%s", e.Text().Why)
		}
		if e.Seq != 0 {
			kinds = append(kinds, e.Kind.String())
		}
	}
	return &mqtt.Reply{Status: mqtt.Done, Code: mqtt.CodeOK, Message: strings.Join(kinds, " ")}
}

// wanted reads which events a sync asks for: from one on, those of a round, or
// none but the documents.
func (c *core) wanted(r *request) (mqtt.Replay, *mqtt.Reply) {
	var args struct {
		FromSeq uint64 `json:"from_seq"`
		RoundID string `json:"round_id"`
	}
	if len(r.Command.Args) > 0 {
		if err := json.Unmarshal(r.Command.Args, &args); err != nil {
			return mqtt.Replay{}, mqtt.Refuse(mqtt.CodeBadRequest, "args: want from_seq, a number, or round_id")
		}
	}
	last := c.state.Seq
	switch {
	case r.Local:
		return mqtt.Replay{}, mqtt.Refuse(mqtt.CodeNotApplicable, "events are sent over the broker: shoed journal export reads them here")
	case args.RoundID != "":
		shoe, no, err := mqtt.ParseRoundID(c.tableID, args.RoundID)
		if err != nil {
			return mqtt.Replay{}, mqtt.Refuse(mqtt.CodeBadRequest, "args: %v", err)
		}
		return mqtt.Replay{User: r.User, CmdID: r.Command.CmdID, Shoe: shoe, Round: no, Through: last}, nil
	case args.FromSeq > last:
		return mqtt.Replay{}, mqtt.Refuse(mqtt.CodeNotApplicable, "event %d has not happened; the last one is %d", args.FromSeq, last)
	case args.FromSeq == 0:
		return mqtt.Replay{User: r.User, CmdID: r.Command.CmdID}, nil
	}
	if _, err := c.journal.Events(args.FromSeq-1, 1); err != nil {
		why := "the journal cannot be read"
		if errors.Is(err, journal.ErrPruned) {
			why = fmt.Sprintf("event %d is kept no more", args.FromSeq)
		}
		return mqtt.Replay{}, mqtt.Refuse(mqtt.CodeNotApplicable, "%s", why)
	}
	return mqtt.Replay{User: r.User, CmdID: r.Command.CmdID, FromSeq: args.FromSeq, Through: min(last, args.FromSeq+mqtt.MaxReplay-1)}, nil
}

// follow starts what a reply has promised.
func (c *core) follow(ctx context.Context, a *answered) error {
	if a.reply.Status != mqtt.Accepted {
		return nil
	}
	switch wanted, isReplay := a.reply.Result.(mqtt.Replay); {
	case isReplay && !c.replay(wanted):
		*a = a.with(mqtt.Reply{Status: mqtt.Failed, Code: mqtt.CodeBusy, Message: "too many ask at once: ask again"})
		return c.conclude(ctx, a)
	case a.Name == "reader-lock", a.Name == "reader-cancel-error":
		return c.send(ctx, a)
	}
	return nil
}

// order is what a command has the reader told.
func (c *core) order(r *mqtt.Request) ([]byte, error) {
	var args struct {
		Off   bool  `json:"off"`
		Error uint8 `json:"error"`
	}
	if len(r.Command.Args) > 0 {
		if err := json.Unmarshal(r.Command.Args, &args); err != nil {
			return nil, errors.New("args: want off, true or false, or error, its number")
		}
	}
	switch {
	case r.Name == "reader-cancel-error":
		return scanner.Order(c.inUse().protocol, scanner.CancelError, args.Error)
	case args.Off:
		return scanner.Order(c.inUse().protocol, scanner.Unlock, 0)
	}
	return scanner.Order(c.inUse().protocol, scanner.Lock, 0)
}

// send gives the reader an order that is on record, and says what came of it.
// Whether the reader obeys shows in what it reports.
func (c *core) send(ctx context.Context, a *answered) error {
	order, err := c.order(&a.Request)
	if err != nil {
		return err // it was read before
	}
	*a = a.with(mqtt.Reply{Status: mqtt.Done, Code: mqtt.CodeOK, Message: "sent"})
	select {
	case c.inUse().orders <- order:
	default:
		*a = a.with(mqtt.Reply{Status: mqtt.Failed, Code: mqtt.CodeNotApplicable, Message: "the reader is not connected, or has not taken the last order yet"})
	}
	return c.conclude(ctx, a)
}

// conclude puts a command's last reply on record, if it is recorded, and gives it.
func (c *core) conclude(ctx context.Context, a *answered) error {
	if c.gate.Records(&a.Request) {
		c.begin()
		if err := a.record(c, c.state.Seq); err != nil {
			return err
		}
		if err := c.commit(ctx, c.state); err != nil {
			return err
		}
	}
	c.gate.Count(a.reply.Code)
	a.told(c.state.Seq, &a.reply)
	return nil
}

// describe is what identify and diag tell.
func (c *core) describe() map[string]any {
	h := c.health.Load()
	return map[string]any{
		"masked": c.desk.Masked, "readers": c.lines(),
		"version": version, "program_sha256": c.program, "reader": c.inUse().name, "reader_down": c.state.ReaderDown, "frames": h.readers[c.inUse().name].Frames,
		"storage": h.storage, "clock": clockState(), "seq": c.state.Seq, "replies": c.gate.Counts(),
	}
}

// lines is what diag tells of each reader.
func (c *core) lines() []lineDiagnosis {
	h := c.health.Load()
	var all []lineDiagnosis
	for _, r := range c.sources {
		d := lineDiagnosis{Name: r.name, Up: r.up, Frames: h.readers[r.name].Frames}
		if at, read := h.lastRead[r.name]; read {
			ms := time.Since(at).Milliseconds()
			d.LastFrameAgeMS = &ms
		}
		all = append(all, d)
	}
	return all
}
