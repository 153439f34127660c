package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"shoed/round"
	"shoed/scanner"
)

// Options of a Dealer; zero fields are the defaults.
type Options struct {
	Seed   uint64  // of the cards and of the pauses
	Decks  int     // 1 to 12; 8
	Masked bool    // the reader names the faces only before its verdict
	Copies int     // of each telegram; 3
	Speed  float64 // 2 is twice as fast as life; 1

	// The cut card lies in front of CutMin to CutMax cards; 12 and 30. Fewer
	// than 6 may not be enough for the last round.
	CutMin, CutMax int

	// Pauses in real life, divided by Speed.
	CardPause  Range // before each card; 0.8 to 1.3 s
	OfferPause Range // before a third card while insurance is offered on what lies open; 10.5 to 12 s, longer than an offer stands
	ShowPause  Range // before the faces are named, and before the verdict; 1 to 2 s
	RoundPause Range // before a round; 8 to 12 s
	ShoePause  Range // before a new shoe; 20 to 30 s

	// Sleep waits, or returns early with an error, which ends Play. nil is real
	// time; NoSleep is none.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Range is a length of time between two.
type Range struct{ Min, Max time.Duration }

const (
	copyEvery   = 50 * time.Millisecond   // from one copy's start to the next one's, as captured
	byteTime    = 10 * time.Second / 4800 // 8N1 at 4800 baud
	maxRound    = 6                       // cards
	maxOpening  = 1 + 10                  // first card, a ten, and the burn
	standbyOf10 = 7                       // P comes before 7 rounds in 10: most, as captured
)

func (o *Options) defaults() {
	set(&o.Decks, 8)
	set(&o.Copies, 3)
	set(&o.Speed, 1)
	if o.CutMin == 0 && o.CutMax == 0 {
		o.CutMin, o.CutMax = 12, 30
	}
	set(&o.CardPause, Range{800 * time.Millisecond, 1300 * time.Millisecond})
	set(&o.OfferPause, Range{10500 * time.Millisecond, 12 * time.Second})
	set(&o.ShowPause, Range{time.Second, 2 * time.Second})
	set(&o.RoundPause, Range{8 * time.Second, 12 * time.Second})
	set(&o.ShoePause, Range{20 * time.Second, 30 * time.Second})
	if o.Sleep == nil {
		o.Sleep = sleep
	}
}

func set[T comparable](field *T, to T) {
	var zero T
	if *field == zero {
		*field = to
	}
}

func (o *Options) check() error {
	cards := o.Decks * round.Faces
	switch {
	case o.Decks < 1 || o.Decks > 12:
		return fmt.Errorf("simulated shoe: %d decks: use 1 to 12", o.Decks)
	case o.CutMin < maxRound || o.CutMax < o.CutMin || o.CutMax > cards-maxOpening-maxRound:
		return fmt.Errorf("simulated shoe: cut card %d to %d from the end: use %d to %d", o.CutMin, o.CutMax, maxRound, cards-maxOpening-maxRound)
	case o.Copies < 1:
		return fmt.Errorf("simulated shoe: %d copies: use 1 or more", o.Copies)
	case !(o.Speed > 0):
		return fmt.Errorf("simulated shoe: speed %v: use more than 0", o.Speed)
	}
	for _, r := range []Range{o.CardPause, o.OfferPause, o.ShowPause, o.RoundPause, o.ShoePause} {
		if r.Min < 0 || r.Max < r.Min {
			return fmt.Errorf("simulated shoe: pause of %v to %v: use a shorter and a longer time", r.Min, r.Max)
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// NoSleep is a Sleep that does not wait: bytes at once, for tests.
func NoSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// Dealt is what truly happened in a round, to compare with what was made of it.
type Dealt struct {
	Shoe, Round              int          // from 1, Round anew in each shoe
	Opening                  []round.Card // before the first round of a shoe: its first card and the burn
	Player, Banker           round.Hand
	PlayerTotal, BankerTotal int
	Outcome                  round.Outcome
	Tags                     round.Tags
	Last                     bool // the cut card came, so the next round has a new shoe
}

// Dealer deals rounds from a simulated shoe. It belongs to one goroutine.
type Dealer struct {
	o      Options
	cards  *rand.Rand
	pauses *rand.Rand // apart, so that the pace changes no card
	shoe   *Shoe
	seq    byte
	dealt  Dealt  // the round in hand, or the one before
	todo   []step // of it
}

// step is a telegram that is still to come, and the pause before it.
type step struct {
	says  round.Input
	pause Range
}

// New is a dealer with a new shoe to come. An error names the option that makes
// no sense.
func New(o Options) (*Dealer, error) {
	o.defaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Dealer{
		o:      o,
		cards:  rand.New(rand.NewPCG(o.Seed, 1)),
		pauses: rand.New(rand.NewPCG(o.Seed, 2)),
	}, nil
}

// Play writes the telegrams of the next rounds to w and calls dealt, unless nil,
// after each verdict; rounds 0 plays until ctx is done, which is its error. A
// later Play goes on where this one ended. A telegram whose write failed is
// lost, as on a real line. A write that blocks ends only when w is closed.
func (d *Dealer) Play(ctx context.Context, w io.Writer, rounds int, dealt func(Dealt)) error {
	for played := 0; rounds == 0 || played < rounds; played++ {
		if len(d.todo) == 0 {
			d.deal()
		}
		for len(d.todo) > 0 {
			if err := d.send(ctx, w); err != nil {
				return err
			}
		}
		if dealt != nil {
			dealt(d.dealt)
		}
	}
	return nil
}

// send pauses, then writes the next telegram and its copies.
func (d *Dealer) send(ctx context.Context, w io.Writer) error {
	next := d.todo[0]
	if err := d.wait(ctx, d.between(next.pause)); err != nil {
		return err
	}
	d.todo = d.todo[1:]
	if next.says.Reader == round.ReaderStart {
		d.seq = '0'
	}
	telegram, err := scanner.AngelTelegram(d.seq, next.says)
	if err != nil {
		return fmt.Errorf("simulated shoe: %w", err)
	}
	d.seq = scanner.AngelNext(d.seq)
	busy := time.Duration(len(telegram)) * byteTime
	for i := range d.o.Copies {
		if _, err := w.Write(telegram); err != nil {
			return fmt.Errorf("simulated shoe: %w", err)
		}
		if err := d.wait(ctx, busy); err != nil {
			return err
		}
		if i == d.o.Copies-1 {
			break
		}
		if err := d.wait(ctx, copyEvery-busy); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dealer) wait(ctx context.Context, t time.Duration) error {
	return d.o.Sleep(ctx, time.Duration(float64(t)/d.o.Speed))
}

func (d *Dealer) between(r Range) time.Duration {
	return r.Min + time.Duration(d.pauses.Int64N(int64(r.Max-r.Min)+1))
}

// deal plans the next round, with a new shoe before it when one is due.
func (d *Dealer) deal() {
	was := d.dealt
	d.dealt = Dealt{Shoe: was.Shoe, Round: was.Round + 1}
	if d.shoe == nil || was.Last {
		d.dealt.Shoe, d.dealt.Round = was.Shoe+1, 1
		d.open()
	} else if d.cards.IntN(10) < standbyOf10 {
		d.say(round.Input{Kind: round.InReader, Reader: round.ReaderStandby}, d.o.ShowPause)
	}
	d.hands()
	d.verdict()
}

func (d *Dealer) say(in round.Input, pause Range) {
	d.todo = append(d.todo, step{in, pause})
}

// open loads a shoe: its first card says how many are burned (game.md section 1).
// The capture has their faces in masked mode too.
func (d *Dealer) open() {
	d.shoe = NewShoe(d.cards, d.o.Decks, d.o.CutMin+d.cards.IntN(d.o.CutMax-d.o.CutMin+1))
	d.say(round.Input{Kind: round.InReader, Reader: round.ReaderStart}, d.o.ShoePause)
	first, _ := d.shoe.Draw()
	d.dealt.Opening = append(d.dealt.Opening, first)
	d.say(round.Input{Kind: round.InCard, To: round.ToFirst, Card: first}, d.o.CardPause)
	burn := first.Value()
	if burn == 0 {
		burn = 10
	}
	for left := burn - 1; left >= 0; left-- {
		card, _ := d.shoe.Draw()
		d.dealt.Opening = append(d.dealt.Opening, card)
		d.say(round.Input{Kind: round.InCard, To: round.ToBurn, Pos: uint8(left), Card: card}, d.o.CardPause)
	}
}

// hands deals a round by the draw table (game.md section 1; seed 001).
func (d *Dealer) hands() {
	p, b := &d.dealt.Player, &d.dealt.Banker
	d.card(round.ToPlayer, p, d.o.RoundPause)
	d.card(round.ToBanker, b, d.o.CardPause)
	d.card(round.ToPlayer, p, d.o.CardPause)
	d.card(round.ToBanker, b, d.o.CardPause)
	player, _ := p.Total()
	banker, _ := b.Total()
	switch {
	case round.Natural(player), round.Natural(banker):
	case round.PlayerDraws(player):
		third := d.card(round.ToPlayer, p, d.beforeThird())
		if round.BankerDraws(banker, third.Value()) {
			d.card(round.ToBanker, b, d.beforeThird())
		}
	case round.BankerDrawsAlone(banker):
		d.card(round.ToBanker, b, d.beforeThird())
	}
}

// beforeThird is how long the dealer waits before a third card: until nobody
// can insure any more. Behind a masked reader nobody can yet.
func (d *Dealer) beforeThird() Range {
	if !d.o.Masked && round.DefaultInsurance.Match(d.dealt.Player, d.dealt.Banker) != 0 {
		return d.o.OfferPause
	}
	return d.o.CardPause
}

// card deals one card to a hand. The cut card in front of it makes this round the
// last one (game.md section 1, rounds_after_cut=0).
func (d *Dealer) card(to round.To, h *round.Hand, pause Range) round.Card {
	card, cut := d.shoe.Draw()
	if cut {
		d.say(round.Input{Kind: round.InCut}, pause)
		d.dealt.Last, pause = true, d.o.CardPause
	}
	h.Cards[h.N] = card
	h.N++
	in := round.Input{Kind: round.InCard, To: to, Pos: h.N, Card: card}
	if d.o.Masked {
		in.Card = round.Masked
	}
	d.say(in, pause)
	return card
}

// verdict ends the round; a masked reader names the cards before, in deal order.
func (d *Dealer) verdict() {
	r := &d.dealt
	pause := d.o.ShowPause
	if d.o.Masked {
		for pos := range uint8(3) {
			for _, side := range []struct {
				to   round.To
				hand round.Hand
			}{{round.ToPlayer, r.Player}, {round.ToBanker, r.Banker}} {
				if pos < side.hand.N {
					d.say(round.Input{Kind: round.InShow, To: side.to, Pos: pos + 1, Card: side.hand.Cards[pos]}, pause)
					pause = Range{}
				}
			}
		}
	}
	r.PlayerTotal, _ = r.Player.Total()
	r.BankerTotal, _ = r.Banker.Total()
	r.Outcome = round.OutcomeOf(r.PlayerTotal, r.BankerTotal)
	r.Tags = tags(r.Player, r.Banker)
	d.say(round.Input{Kind: round.InVerdict, Verdict: round.Verdict{
		Outcome:    r.Outcome,
		PlayerPair: r.Tags&round.TagPlayerPair != 0,
		BankerPair: r.Tags&round.TagBankerPair != 0,
	}}, pause)
}

func tags(player, banker round.Hand) round.Tags {
	return handTags(player, round.TagPlayerPair) | handTags(banker, round.TagBankerPair)
}

func handTags(h round.Hand, pair round.Tags) (t round.Tags) {
	first, second := h.Cards[0], h.Cards[1]
	if first.Rank() == second.Rank() {
		t |= pair
	}
	if first == second {
		t |= round.TagPerfectPair
	}
	if round.Natural(round.Total(first, second)) {
		t |= round.TagNatural
	}
	return t
}
