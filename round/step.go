package round

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// step is one call of Step: the state being made, and its events.
//
// It points at Step's own copies: the compiler keeps them on the stack only as
// long as no method lets a pointer to the state get away.
type step struct {
	*State
	now int64 // ns UTC, of the input
	out *[]Event

	joined uint8 // cards that this step put into the round in hand, its last ones
}

// Step takes one input and returns the state after it, with its events
// appended to out. An error means that the input is malformed: nothing is
// changed then. What is merely unexpected at the table gives events.
func (s State) Step(in Input, out []Event) (State, []Event, error) {
	if err := in.check(); err != nil {
		return s, out, err
	}
	t := step{State: &s, now: in.At.UnixNano(), out: &out}
	t.take(&in)
	return s, out, nil
}

func (t *step) take(in *Input) {
	if t.GateShut() {
		t.GateShutAt = t.now
	}
	t.deadlines()
	if t.tested(in) {
		return
	}
	switch in.Kind {
	case InShoe:
		t.shoeLoaded(in.Decks)
	case InCard:
		t.card(in)
	case InShow:
		t.show(in)
	case InUnread:
		t.unread(in.Name)
	case InCut:
		t.cutCard()
	case InReader:
		t.reader(in.Reader)
	case InPlaced:
		t.placed(in.Box, in.Card, in.Foreign)
	case InLifted:
		t.lifted(in.Box)
	case InReveal:
		t.reveal(in.Box, in.Hand)
	case InBets:
		t.bets(in.Open, in.ClosesAt)
	case InInsurance:
		t.insurance(&in.Insurance)
	case InButton:
		t.button(in.Button)
	case InVerdict:
		t.verdict(in.Verdict)
	case InFault:
		t.fault(in.Code, in.On)
	case InLock:
		t.lock(in.On)
	case InSetting:
		t.setting(in.On || in.Address != "")
	case InLink:
		t.link(in.Name, in.On)
	case InAnswer:
		t.answer(&in.Answer)
	case InRestart:
		t.restart()
	case InInactive:
		t.inactive(in)
	case InWire:
		t.wire(Wire{in.Name, in.Line}, in.Wire)
	}
	t.advance()
	t.useWaiting()
	t.strayEarly()
	t.checkPlacement()
}

// tested notes what the reader tells of cards while it is tested (contract.md,
// Commands): everybody learns that it tells something, only the full view what.
// Whatever says that play begins ends the test.
func (t *step) tested(in *Input) bool {
	if t.now >= t.TestUntil {
		t.TestUntil = 0
		return false
	}
	switch in.Kind {
	case InCard, InShow, InUnread, InCut, InVerdict, InFault:
		t.note(NoteTest)
		if in.Card.Known() {
			t.audit(Event{Kind: ReaderNoted, Note: NoteTest, Card: in.Card})
		}
		return true
	case InShoe, InBets, InButton, InReader:
		t.TestUntil = 0
	}
	return false
}

// check refuses an input that no device and no person can give.
func (in *Input) check() error {
	if in.Kind < InShoe || in.Kind > InWire {
		return fmt.Errorf("input kind %d is unknown", in.Kind)
	}
	if in.At.IsZero() {
		return errors.New("input without a time")
	}
	switch in.Kind {
	case InShoe:
		if in.Decks > MaxDecks {
			return fmt.Errorf("a shoe of %d decks: want 1 to %d", in.Decks, MaxDecks)
		}
	case InCard:
		if in.Card == 0 {
			return errors.New("card without a card")
		}
		return in.checkPlace()
	case InShow:
		if !in.Card.Known() {
			return errors.New("show without a face")
		}
		return in.checkPlace()
	case InPlaced:
		if in.Foreign && in.Card != 0 {
			return errors.New("placed: a foreign tag is of no card")
		}
	case InWire:
		return in.checkWire()
	case InAnswer:
		if in.Answer.Do == 0 {
			return errors.New("answer without what to do")
		}
	}
	return nil
}

func (in *Input) checkPlace() error {
	if in.To.Side() != 0 && (in.Pos < 1 || in.Pos > 3) && in.Pos != 0 {
		return fmt.Errorf("position %d in a hand: want 1 to 3", in.Pos)
	}
	return nil
}

// longestName of a device or a line, in characters: it stands in a sentence on
// the supervisor's screen.
const longestName = 32

func (in *Input) checkWire() error {
	for _, name := range [...]string{in.Name, in.Line} {
		if n := utf8.RuneCountInString(name); n < 1 || n > longestName {
			return fmt.Errorf("wire: a name of %d characters: want 1 to %d", n, longestName)
		}
	}
	if in.Wire == 0 {
		return errors.New("wire without what is wrong with it")
	}
	return nil
}

// emit appends a public event and numbers it.
func (t *step) emit(e Event) {
	t.Seq++
	e.Seq = t.Seq
	t.audit(e)
}

// audit appends an event that only the full view has.
func (t *step) audit(e Event) {
	e.At = time.Unix(0, t.now).UTC()
	e.Shoe = t.Shoe.No
	if e.Round == 0 && (t.Round.Open || e.Kind == RoundVoided) {
		e.Round = t.Round.No
	}
	*t.out = append(*t.out, e)
}

func (t *step) note(n Note) { t.emit(Event{Kind: ReaderNoted, Note: n}) }

// boxes keeps which boxes have a card in them: round_start=boxes asks whether
// the layout was empty since the last round.
func (t *step) boxes(placed bool, b Box) {
	bit := uint8(1) << b
	if placed {
		t.Placed |= bit
		t.Cleared = t.Cleared && !t.Round.Open // it was only looked at
		return
	}
	t.Placed &^= bit
	if t.Placed == 0 {
		t.Cleared = true
	}
}

// bets were opened or closed. Opening them says that the next round begins.
func (t *step) bets(open bool, closesAt time.Time) {
	if t.BetsCloseAt = 0; !open {
		t.Bets = BetsClosed
		return
	}
	t.Bets = BetsOpen
	if !closesAt.IsZero() {
		t.BetsCloseAt = closesAt.UnixNano()
	}
	if t.Rules.RoundStart == StartBets {
		t.nextRoundStarts()
	}
}

func (t *step) button(b Button) {
	switch b {
	case ButtonStart:
		t.Started = true
		t.nextRoundStarts()
	case ButtonEnd:
		if t.Round.Open {
			t.Round.Ended = true
		}
	case ButtonCall:
		t.raise(DealerCall, Fact{Kind: FactDealing}, Fact{Kind: FactCall})
	case ButtonShoe:
		t.shoeLoaded(0)
	}
}

// nextRoundStarts is told by a signal other than a card: the round in hand
// must have had all its cards.
func (t *step) nextRoundStarts() {
	if t.Round.Open && !t.Round.Complete {
		t.missing(Fact{Kind: FactNextRound})
	}
}
