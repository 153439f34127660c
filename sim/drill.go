package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"shoed/round"
	"shoed/scanner"
)

// Desk is what a drill asks of whoever runs the table and looks at its screens.
// Its functions are called by the goroutine of Show.
type Desk struct {
	// Taken is how many bytes of the table's lines the daemon has taken in.
	Taken func() uint64
	// Table is the game as the daemon has it.
	Table func() round.State
	// Beside does what none of the drill's hardware does: InRestart, a link of the
	// machine's, rates laid out. What cannot really be done it tells the table.
	Beside func(ctx context.Context, in round.Input) error
	// Raised reports whether an alert with the code was published since Show began.
	Raised func(round.Code) bool
	// Fit fits the table out otherwise, from the next shoe on.
	Fit func(ctx context.Context, to Fitting) error
	// Answer has the replies given to the alerts that stand, and all others
	// acknowledged, and returns when none stands any more. It calls Pass to wait.
	Answer func(ctx context.Context, f *Fault, replies []Reply) error
}

// DrillOptions of a Drill.
type DrillOptions struct {
	Seed  uint64
	Speed float64                                          // of table time; 2 is twice as fast as life
	Sleep func(ctx context.Context, d time.Duration) error // nil is real time; NoSleep is none

	Shoe, Spare  *Plug
	Tags         *Plug // of the readers in the boxes
	Boxes, Panel *Chip
	Desk         Desk
}

// Drill is a table on which faults are shown: a shoe, switches in the boxes and
// the dealer's panel, worked by a dealer who plays by the rules but for the fault.
// It is dealt from one deck, so that a shoe is soon at its end.
//
// Its time stands still but in Pass, and goes on only once the daemon has taken in
// what was told: however slow a machine is, no limit of the rules passes too
// early. It belongs to one goroutine, Now apart.
type Drill struct {
	o       DrillOptions
	chance  *rand.Rand
	fitting Fitting
	table   *table
	seq     byte // of the next telegram
	begun   time.Time
	elapsed atomic.Int64  // ns of table time
	lastAt  time.Duration // when the last beat began
	lies    [7]bool       // by box: a card
}

// Fitting is how a drill's table is fitted out.
type Fitting struct {
	RFID bool // readers in the boxes instead of switches
	Wait bool // the house decides on the reader's agreeing verdict
}

// Rules of a table that is fitted out so.
func (f Fitting) Rules() round.Rules {
	r := f.setting().rules(drillDecks)
	if f.Wait {
		r.Verdict = round.VerdictWait
	}
	return r
}

func (f Fitting) setting() setting {
	s := setting{Placement: round.PlacementPresence, Reader: readerOpen, Reveal: round.RevealOnDraw, Start: round.StartBets}
	if f.RFID {
		s.Placement = round.PlacementRFID
	}
	return s
}

// DrillPanel is what the dealer's panel of a drill has.
func DrillPanel() []string { return []string{"end", "call", "insurance", "bets"} }

const (
	drillDecks  = 1
	drillBehind = 30 // cards behind the cut card, which cut_cards allows: the third round or so is the last

	limitMore = 200 * time.Millisecond // that a limit may take to pass: a switch counts when it has settled
	pressTime = 150 * time.Millisecond // of a button
	drillStep = 50 * time.Millisecond  // in real life, by which table time goes on
	takeWait  = 20 * time.Second       // in real life, for what the daemon has to do
	look      = 200 * time.Microsecond // in real life, before it is looked at again
	planTries = 100_000                // shuffles until a round has the shape that a fault asks for; one in a thousand has
)

// NewDrill is a table that has no shoe yet.
func NewDrill(o DrillOptions) *Drill {
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &Drill{o: o, begun: time.Now(), seq: '0', chance: rand.New(rand.NewPCG(o.Seed, 4)),
		table: newTable(Fitting{}.setting(), drillDecks, drillBehind, o.Seed)}
}

// Now is the time at the table.
func (d *Drill) Now() time.Time { return d.begun.Add(time.Duration(d.elapsed.Load())) }

// Pass lets table time go on.
func (d *Drill) Pass(ctx context.Context, t time.Duration) error {
	for most := max(time.Duration(float64(drillStep)*d.o.Speed), time.Millisecond); t > 0; {
		if err := d.taken(ctx); err != nil {
			return err
		}
		step := min(t, most)
		for _, c := range d.chips() {
			if silent := c.Silent(); silent > 0 {
				step = min(step, silent)
			}
		}
		if err := d.o.Sleep(ctx, time.Duration(float64(step)/d.o.Speed)); err != nil {
			return err
		}
		d.elapsed.Add(int64(step))
		for _, c := range d.chips() {
			c.Pass(step)
		}
		t -= step
	}
	return d.taken(ctx)
}

func (d *Drill) chips() [2]*Chip { return [...]*Chip{d.o.Boxes, d.o.Panel} }

// taken waits until the daemon has taken in all that was told.
func (d *Drill) taken(ctx context.Context) error {
	told := func() uint64 {
		return d.o.Shoe.Sent() + d.o.Spare.Sent() + d.o.Tags.Sent() + d.o.Boxes.Told() + d.o.Panel.Told()
	}
	if !d.await(ctx, func() bool { return d.o.Desk.Taken() >= told() }) {
		return cause(ctx, "of %d bytes that the table told only %d were taken", told(), d.o.Desk.Taken())
	}
	return nil
}

// await waits in real life, while table time stands still.
func (d *Drill) await(ctx context.Context, until func() bool) bool {
	for late := time.Now().Add(takeWait); !until(); {
		if time.Now().After(late) || sleep(ctx, look) != nil {
			return until()
		}
	}
	return true
}

// cause is why something did not come: the end of ctx, or the text.
func cause(ctx context.Context, format string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("simulated table: "+format, args...)
}

// Show deals until the fault can happen, lets it happen in a round, and goes on to
// the round's end once it is answered. began, unless nil, is called when the
// rounds before it are dealt. seen reports whether its alert was published.
func (d *Drill) Show(ctx context.Context, f *Fault, began func()) (seen bool, err error) {
	p, at, err := d.plan(ctx, f)
	if err != nil {
		return false, err
	}
	if began != nil {
		began()
	}
	f.make(p, at)
	for i := 0; i < len(p.beats); i++ {
		b, open := p.beats[i], d.o.Desk.Table().Round.Open
		if err := d.perform(ctx, b); err != nil {
			return seen, err
		}
		if !b.mark {
			continue
		}
		began := d.lastAt
		if f.more {
			i++
			if err := d.perform(ctx, p.beats[i]); err != nil {
				return false, err
			}
		}
		if seen, err = d.fault(ctx, f, p, at, b.limit); err != nil {
			return seen, err
		}
		if open && !d.o.Desk.Table().Round.Open {
			break // there is nothing more to be dealt in it
		}
		if b.limit > 0 && i+1 < len(p.beats) { // it was part of the wait
			p.beats[i+1].wait = max(p.beats[i+1].wait-(d.now()-began), time.Second)
		}
	}
	return seen, d.clear(ctx)
}

// fault waits for the alert, and has it answered.
func (d *Drill) fault(ctx context.Context, f *Fault, p *play, at int, limit time.Duration) (seen bool, err error) {
	if err := d.Pass(ctx, limit+limitMore); err != nil {
		return false, err
	}
	raised := func(code round.Code) error {
		if !d.await(ctx, func() bool { return d.o.Desk.Raised(code) }) {
			return cause(ctx, "%s: %s is not raised", f.Name, code)
		}
		return nil
	}
	if err := raised(cmp.Or(f.via, f.Code)); err != nil {
		return false, err
	}
	if f.cure != nil {
		if err := d.performAll(ctx, f.cure(p, at)); err != nil {
			return true, err
		}
	}
	for _, r := range f.replies {
		if err := raised(r.Code); err != nil {
			return false, err
		}
	}
	if len(f.replies) > 0 {
		if err := d.o.Desk.Answer(ctx, f, f.given(p, at)); err != nil {
			return d.o.Desk.Raised(f.Code), err
		}
	}
	if err := raised(f.Code); err != nil {
		return false, err
	}
	if f.after != nil {
		return true, d.performAll(ctx, f.after(p, at))
	}
	return true, nil
}

// given are the replies, with the card that only the round knows.
func (f *Fault) given(p *play, at int) []Reply {
	if !f.correct {
		return f.replies
	}
	replies := slices.Clone(f.replies)
	first := &replies[0]
	first.Words = append(slices.Clone(first.Words), fmt.Sprintf("%s=%s", p.boxes[at], p.cards[at]))
	return replies
}

// Codes are those of the alerts that the fault may raise: its own and what comes
// with it.
func (f *Fault) Codes() []round.Code {
	codes := append([]round.Code{f.Code}, f.with...)
	for _, r := range f.replies {
		codes = append(codes, r.Code)
	}
	return codes
}

// plan deals clean rounds until the fault can happen in the next one, and arranges
// that one.
func (d *Drill) plan(ctx context.Context, f *Fault) (*play, int, error) {
	if f.fitting != d.fitting {
		if err := d.fit(ctx, f.fitting); err != nil {
			return nil, 0, err
		}
	}
	t := d.table
	opened := t.shoe != nil && !t.last
	var err error
	switch {
	case f.where == atOpening, f.where == runDown:
		err = d.endShoe(ctx)
	case f.where == atEnd:
		err = d.nearEnd(ctx)
	case opened && t.shoe.Left()-maxRound < t.shoe.behind, // the cut card might not come any more
		!opened && f.where == smallShoe: // the shoe's first card is to come again
		err = d.deal(ctx)
	}
	if err != nil {
		return nil, 0, err
	}
	if f.where == runDown {
		return d.runDown(ctx)
	}
	return d.arrange(f)
}

// fit has the table fitted out otherwise, once a new shoe is next.
func (d *Drill) fit(ctx context.Context, to Fitting) error {
	if err := d.endShoe(ctx); err != nil {
		return err
	}
	if err := d.o.Desk.Fit(ctx, to); err != nil {
		return err
	}
	d.fitting, d.table.setting = to, to.setting()
	return nil
}

// endShoe deals until a new shoe is next.
func (d *Drill) endShoe(ctx context.Context) error {
	if d.table.shoe == nil || d.table.last {
		return nil
	}
	if err := d.nearEnd(ctx); err != nil {
		return err
	}
	t := d.table
	t.shoe.behind = t.shoe.Left() // the cut card comes before the next round
	return d.deal(ctx)
}

// nearEnd deals until the cut card may come.
func (d *Drill) nearEnd(ctx context.Context) error {
	for t := d.table; t.shoe == nil || t.last || t.shoe.Left() > cutMost; t = d.table {
		if err := d.deal(ctx); err != nil {
			return err
		}
	}
	return nil
}

const cutMost = 40 // cards behind the cut card (game.md section 5, cut_cards)

// runDown deals a shoe without a cut card until too few cards are left.
func (d *Drill) runDown(ctx context.Context) (*play, int, error) {
	d.table.Behind = 0
	defer func() { d.table.Behind = drillBehind }()
	// From six cards a round may leave none, and then no card could be drawn.
	enough := Fault{Name: "short shoe", at: once, fits: func(p *play, _ int) bool { return p.table.shoe.Left()%maxRound != 0 }}
	for d.table.shoe == nil || d.table.last || d.table.shoe.Left() >= maxRound {
		p, _, err := d.arrange(&enough)
		if err == nil {
			err = d.playOut(ctx, p)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return &play{setting: d.table.setting, table: d.table}, 0, nil
}

// deal deals a round without a mistake.
func (d *Drill) deal(ctx context.Context) error { return d.playOut(ctx, d.table.next()) }

func (d *Drill) playOut(ctx context.Context, p *play) error {
	if err := d.performAll(ctx, p.beats); err != nil {
		return err
	}
	return d.clear(ctx)
}

// arrange shuffles what is in the shoe until the next round is one in which the
// fault can happen.
func (d *Drill) arrange(f *Fault) (*play, int, error) {
	for range planTries {
		t := d.table.clone(d.chance.Uint64())
		fresh := t.shoe == nil || t.last
		if fresh {
			t.shoe = NewShoe(t.cards, int(t.Decks), t.Behind)
		} else {
			cards := t.shoe.cards
			t.cards.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		}
		if f.stack != nil {
			f.stack(t, f.at(nil)[0])
		}
		p := &play{setting: t.setting, table: t}
		switch {
		case f.where == atEnd:
			t.shoe.behind = t.shoe.Left()
		case fresh:
			p.open(t.shoe)
		}
		p.deal()
		p.round()
		places := f.at(p)
		if len(places) == 0 {
			continue
		}
		at := places[d.chance.IntN(len(places))]
		if f.fits == nil || f.fits(p, at) {
			d.table = t
			return p, at, nil
		}
	}
	return nil, 0, fmt.Errorf("simulated table: %s: no round for it in %d shuffles", f.Name, planTries)
}

func (d *Drill) now() time.Duration { return time.Duration(d.elapsed.Load()) }

func (d *Drill) performAll(ctx context.Context, beats []beat) error {
	for _, b := range beats {
		if err := d.perform(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// clear takes off the table what still lies there.
func (d *Drill) clear(ctx context.Context) error {
	for box, lies := range d.lies {
		if !lies {
			continue
		}
		if err := d.perform(ctx, oops(clearPace, round.Input{Kind: round.InLifted, Box: round.Box(box)})); err != nil {
			return err
		}
	}
	return d.Pass(ctx, time.Second)
}

// perform waits for a beat's time and does it.
func (d *Drill) perform(ctx context.Context, b beat) error {
	table := d.o.Desk.Table()
	_, offers := table.Window()
	if (b.of == rates || b.of == closing) && len(offers) == 0 {
		return nil
	}
	if err := d.Pass(ctx, b.wait-(d.now()-d.lastAt)); err != nil {
		return err
	}
	d.lastAt = d.now()
	if b.of == rates {
		b.in.Insurance = layOut(offers[0], b.lays)
	}
	b.in.At = d.Now()
	if err := d.do(ctx, &b); err != nil {
		return err
	}
	return d.taken(ctx)
}

// do is the beat on the table's equipment.
func (d *Drill) do(ctx context.Context, b *beat) error {
	in := &b.in
	switch in.Kind {
	case round.InTick:
		return nil
	case round.InPlaced, round.InLifted:
		return d.lay(in)
	case round.InBets:
		bounce(d.o.Panel, "bets", !in.Open)
		return nil
	case round.InWire:
		d.wire(in)
		return nil
	case round.InButton:
		return d.press(ctx, in.Button.String())
	case round.InInsurance:
		if in.Insurance.Do == round.InsuranceClose {
			return d.press(ctx, "insurance")
		}
	case round.InLink:
		if done, err := d.link(ctx, in); done {
			return err
		}
	case round.InInactive:
		telegram, err := scanner.AngelTelegram('1', round.Input{Kind: round.InCard, To: round.ToPlayer, Pos: 1, Card: round.CardAt(0)})
		if err == nil {
			_, err = d.o.Spare.Write(telegram)
		}
		return err
	case round.InRestart:
	default:
		return d.say(ctx, b)
	}
	return d.o.Desk.Beside(ctx, *in)
}

// bounce moves a wire as a contact does: it is there, off, and there again.
func bounce(c *Chip, use string, active bool) {
	c.Set(use, active)
	c.Chatter(use, 1, time.Millisecond)
}

func (d *Drill) press(ctx context.Context, button string) error {
	bounce(d.o.Panel, button, true)
	if err := d.Pass(ctx, pressTime); err != nil {
		return err
	}
	bounce(d.o.Panel, button, false)
	return nil
}

// lay puts a card into a box, or takes it out.
func (d *Drill) lay(in *round.Input) error {
	d.lies[in.Box] = in.Kind == round.InPlaced
	if !d.fitting.RFID {
		bounce(d.o.Boxes, in.Box.String(), d.lies[in.Box])
		return nil
	}
	tag := "-"
	switch {
	case in.Foreign:
		tag = foreignUID
	case in.Kind == round.InPlaced:
		tag = tagOf(in.Card)
	}
	_, err := fmt.Fprintf(d.o.Tags, "%s %s\r\n", in.Box, tag)
	return err
}

// tagOf is the UID of the card's tag.
func tagOf(c round.Card) string { return fmt.Sprintf("04A2B3C4D5E6%02X", c.Index()) }

const foreignUID = "04FFFFFFFFFFFF"

// DrillTags are the tags of a drill's deck, enrolled as code=card.
func DrillTags() (all []string) {
	for i := range round.Faces {
		c := round.CardAt(i)
		all = append(all, tagOf(c)+"="+c.String())
	}
	return all
}

// wire is a bad contact: one that chatters, or that sticks until it is well.
func (d *Drill) wire(in *round.Input) {
	c := d.chip(in.Name)
	if in.Wire == round.WireBouncing {
		c.Chatter(in.Line, chatters, chatterEvery)
		return
	}
	c.Set(in.Line, in.Wire == round.WireStuck)
}

// A hum of the mains, more than a hand can do.
const (
	chatters     = 50
	chatterEvery = 5 * time.Millisecond
)

// chip is the one behind a device; nil for others.
func (d *Drill) chip(device string) *Chip {
	return map[string]*Chip{round.BoxesDevice: d.o.Boxes, round.PanelDevice: d.o.Panel}[device]
}

// link pulls out or puts back a device that has a plug.
func (d *Drill) link(ctx context.Context, in *round.Input) (done bool, err error) {
	chip := d.chip(in.Name)
	if chip == nil && in.Name != "reader" {
		return false, nil
	}
	if err := d.taken(ctx); err != nil { // what was told is not to be lost with it
		return true, err
	}
	switch {
	case chip != nil && in.On:
		chip.Plug()
	case chip != nil:
		chip.Unplug()
	case in.On:
		return true, d.o.Shoe.Plug()
	default:
		return true, d.o.Shoe.Unplug()
	}
	return true, nil
}

// say is the shoe's telegram and its copies.
func (d *Drill) say(ctx context.Context, b *beat) error {
	if b.in.Reader == round.ReaderStart {
		d.seq = '0'
	}
	in := b.in
	in.At = time.Time{}
	telegram, err := scanner.AngelTelegram(d.seq, in)
	if err != nil {
		return fmt.Errorf("simulated shoe: %w", err)
	}
	d.seq = scanner.AngelNext(d.seq)
	if b.garbled {
		telegram[3] ^= 0x21 // the checksum does not fit any more
	}
	for copies := drillCopies; ; copies-- {
		if _, err := d.o.Shoe.Write(telegram); err != nil {
			return fmt.Errorf("simulated shoe: %w", err)
		}
		if copies == 1 {
			return d.Pass(ctx, time.Duration(len(telegram))*byteTime)
		}
		if err := d.Pass(ctx, copyEvery); err != nil {
			return err
		}
	}
}

const drillCopies = 3 // of each telegram, as captured
