package round

import (
	"cmp"
	"slices"
	"time"
)

// answer applies what a person decided about an alert. Originals are never
// overwritten: a correction is a new fact beside them.
func (t *step) answer(ans *Answer) {
	a, refusal := t.asked(ans)
	if refusal == 0 {
		refusal = t.apply(ans, a)
	}
	if refusal != 0 {
		t.emit(Event{Kind: AnswerRefused, Do: ans.Do, By: ans.By, Refusal: refusal})
	}
}

// asked finds the alert that is answered: the one named, or the oldest public
// one that allows the answer; none where the answer needs none.
func (t *step) asked(ans *Answer) (Alert, Refusal) {
	for i := range t.Alerts {
		a := &t.Alerts[i]
		switch {
		case a.No == 0 || ans.Alert != 0 && a.No != ans.Alert || ans.Alert == 0 && !a.Public():
		case ans.Do == DoCorrect && ans.Alert == 0 && ans.Round != 0 && ans.Round != a.Round: // about another round
		case a.allows(ans.Do, ans.Alert != 0):
			return *a, 0
		case ans.Alert != 0:
			return Alert{}, RefusedNotForAlert
		}
	}
	if ans.Alert == 0 && t.unasked(ans) {
		return Alert{}, 0
	}
	return Alert{}, RefusedNoAlert
}

// unasked reports whether an answer may come without an alert: a correction of
// a named round, what is done about insurance, the order of one round's reveal,
// a pause, the table's opening and closing, a test, another reader, cards by hand
// in manual mode.
func (t *step) unasked(ans *Answer) bool {
	switch ans.Do {
	case DoCorrect:
		return ans.Round != 0
	case DoVoidInsurance, DoReopen, DoRevealOrder, DoPause, DoOpenTable, DoCloseTable, DoTest, DoSwapReader:
		return true
	case DoManual:
		return t.Manual
	}
	return false
}

func (t *step) apply(ans *Answer, a Alert) Refusal {
	switch ans.Do {
	case DoResume:
		return t.resume(ans, a)
	case DoAck:
		t.ack(ans, a)
	case DoShelve, DoUnshelve:
		t.shelve(ans, a)
	case DoPause:
		t.accept(ans, a)
		t.raise(DealerCall, Fact{Kind: FactDealing}, Fact{Kind: FactPauseAsked})
	case DoOpenTable, DoCloseTable:
		if ans.Do == DoCloseTable && t.Round.Open {
			return RefusedRoundInHand
		}
		t.accept(ans, a)
		t.Closed = ans.Do == DoCloseTable
	case DoTest:
		if t.Shoe.Phase != NoShoe && t.Shoe.Phase != ShoeOver {
			return RefusedInPlay
		}
		t.accept(ans, a)
		if t.TestUntil = t.now + testMS*int64(time.Millisecond); ans.Off {
			t.TestUntil = 0
		}
	case DoConfirm:
		return t.confirm(ans, a)
	case DoCorrect:
		return t.correct(ans, a)
	case DoVoid:
		return t.void(ans, a)
	case DoHoldCard:
		return t.holdCard(ans, a)
	case DoNewShoe:
		return t.newShoe(ans, a)
	case DoArranged:
		t.accept(ans, a)
		t.arranged()
		t.clearAll(ans.By, DealWrongBox, DealWrongBoxLate, DealNotPlaced)
	case DoSensorsOff:
		t.sensorsOff(ans, a)
	case DoManual:
		return t.manual(ans, a)
	case DoVoidInsurance:
		if !t.hasInsurance() {
			return RefusedWindow
		}
		t.accept(ans, a)
		t.voidInsurance(0)
		if t.Round.Decided {
			t.Past[t.Round.No-1].keepOffers(&t.Round.Insured)
		}
	case DoSwapReader:
		return t.swapReader(ans, a)
	case DoReopen:
		return t.reopen(ans, a)
	case DoRevealOrder:
		return t.revealOrder(ans, a)
	}
	return 0
}

func (t *step) accept(ans *Answer, a Alert) {
	t.say(Event{Kind: AnswerAccepted, Do: ans.Do, By: ans.By, Alert: a.No, Code: a.Code, Where: ans.Where, Order: ans.Order, Device: ans.Device})
}

// ack notes that somebody has seen the alert. It is the answer to one that asks
// for no other, or whose condition is gone.
func (t *step) ack(ans *Answer, a Alert) {
	t.accept(ans, a)
	t.acked(t.numbered(a.No), ans.By)
}

func (t *step) acked(a *Alert, by string) {
	t.say(Event{Kind: AlertAcked, Round: a.Round, Alert: a.No, Code: a.Code, By: by})
	if a.Gone || slices.Contains(alertRules[a.Code].answers, DoAck) {
		t.clear(a.No, by)
		return
	}
	a.AckedAt, a.AckedBy = t.now, by
}

// sensorsOff: play goes on without them until the next shoe. Lost sensors stay
// on the screens, seen, until they are back.
func (t *step) sensorsOff(ans *Answer, a Alert) {
	t.accept(ans, a)
	t.SensorsOff, t.Early = true, [7]Early{}
	if lost := t.standing(SensorsLost); lost != nil && lost.AckedAt == 0 {
		t.acked(lost, ans.By)
	}
	t.clearAll(ans.By, DealNotPlaced)
}

// How long an alert may be shelved: a supervisor's shift, and unless said
// otherwise a while that nobody forgets.
const (
	maxShelvedMS   = 8 * 60 * 60 * 1000
	usualShelvedMS = 60 * 60 * 1000
)

// testMS is how long a test of the reader lasts at most: forgotten, it would keep
// the next shoe from being seen.
const testMS = 10 * 60 * 1000

// shelve keeps an alert aside on the screens for a while, or no longer.
func (t *step) shelve(ans *Answer, a Alert) {
	t.accept(ans, a)
	kept := t.numbered(a.No)
	if kept.Shelved = 0; ans.Do == DoShelve {
		kept.Shelved = t.now + ms(cmp.Or(ans.ForMS, usualShelvedMS))
	}
}

// revealOrder says for one round which hand is to be turned first: the biggest
// bettor's, in some houses.
func (t *step) revealOrder(ans *Answer, a Alert) Refusal {
	if ans.Order == 0 {
		return RefusedOrder
	}
	t.accept(ans, a)
	if t.Round.Open {
		t.Round.Order = ans.Order
	} else {
		t.NextOrder = ans.Order
	}
	return 0
}

// resume goes on as things are. Refused while an alert that holds the table
// lacks its own answer; one whose own answer is resume too waits for its turn.
func (t *step) resume(ans *Answer, a Alert) Refusal {
	for i := range t.Alerts {
		if o := &t.Alerts[i]; o.Holds != holdsNothing && o.Code != a.Code && !o.allows(DoResume, false) {
			return RefusedBlocked
		}
	}
	t.accept(ans, a)
	t.clear(a.No, ans.By)
	return 0
}

// confirm accepts what the alert proposes: the round as it was tracked, the
// re-read card, the shoe as it is.
func (t *step) confirm(ans *Answer, a Alert) Refusal {
	switch {
	case a.Code == ReaderUnread && !a.HasCard:
		return RefusedNothingToConfirm
	case a.Code == ShoeChangeUnproven && t.heldSince(a.No):
		return RefusedBlocked
	}
	t.accept(ans, a)
	switch a.Code {
	case ReaderUnread:
		t.clear(a.No, ans.By)
		t.proposed(a.Card)
	case ReaderDisagrees:
		t.Round.ReaderIgnored, t.Round.HasVerdict = true, false
		t.clear(a.No, ans.By)
	case ShoeBurn:
		if t.Shoe.Phase != ShoeInPlay {
			t.start()
		}
		t.clear(a.No, ans.By)
		if a.HasCard {
			t.proposed(a.Card)
		}
	case ShoeChangeUnproven:
		t.clear(a.No, ans.By)
		if a.HasCard {
			t.loadWith(a.Card)
		} else {
			t.load(a.Decks)
		}
	default:
		t.clear(a.No, ans.By)
	}
	return 0
}

// heldSince reports whether a question older than alert no holds the table.
func (t *step) heldSince(no uint32) bool {
	for i := range t.Alerts {
		if o := &t.Alerts[i]; o.No != 0 && o.No < no && o.Holds != holdsNothing && o.Code != ShoeBurn && o.Code != ShoeShort {
			return true
		}
	}
	return false
}

// void cancels the round. A shoe that is out (shoe.too_many,
// shoe.foreign_card) still needs its new_shoe afterwards.
func (t *step) void(ans *Answer, a Alert) Refusal {
	r := &t.Round
	shoeOut := a.Code == ShoeTooMany || a.Code == ShoeForeignCard
	if !r.Open && !(r.Decided && a.Round == r.No) && shoeOut {
		return RefusedNoRound
	}
	t.accept(ans, a)
	switch {
	case r.Open || r.Decided && a.Round == r.No:
		t.voidRound(a.Code, ans.By)
	case a.Code == ReaderUnread:
		t.Shoe.Account.Void++ // no round was open: its card is all there is
	}
	if !shoeOut {
		t.clear(a.No, ans.By)
	}
	return 0
}

// newShoe takes the shoe out. Cards that waited in it go with it.
func (t *step) newShoe(ans *Answer, a Alert) Refusal {
	switch {
	case t.Round.Open:
		return RefusedRoundOpen
	case t.standing(ReaderDisagrees) != nil:
		return RefusedBlocked // it is about a round of the shoe in hand
	}
	t.accept(ans, a)
	t.load(a.Decks)
	t.clearAll(ans.By, ShoeChangeUnproven, ShoeTooMany, ShoeForeignCard, ShoeLateCard)
	if a.Code == ShoeChangeUnproven && a.HasCard {
		t.proposed(a.Card)
	}
	return 0
}

// holdCard says where a held card goes. A card whose face somebody saw cannot
// open the next round.
func (t *step) holdCard(ans *Answer, a Alert) Refusal {
	where := ans.Where
	switch {
	case where == WhereNextRound && ans.Exposed:
		return RefusedExposed
	case a.Code != DealWhilePaused && !a.HasCard:
		return RefusedNoCard
	case !slices.Contains(a.Code.Wheres(), where):
		return RefusedWhere
	}
	t.accept(ans, a)
	t.clear(a.No, ans.By)
	switch {
	case a.Code != DealWhilePaused:
		t.disposeOf(a.Card, where)
	case where == WhereUse:
		t.Usable = t.Waiting.N // dealt when nothing holds the table any more
	default:
		for t.Waiting.N > t.Usable {
			t.disposeOf(t.Waiting.take(t.Usable), where)
		}
	}
	return 0
}

// disposeOf puts a held card where it was decided to go. It is counted already.
func (t *step) disposeOf(d Drawn, where Where) {
	if d.Again {
		return // no card of its own: the one drawn over is held already
	}
	switch where {
	case WhereBurn:
		t.keepBurned(d.Card)
	case WhereNextRound, WhereFreeHand:
		if !t.Next.push(d) {
			t.Shoe.Account.OutOfGame++
		}
		t.NextFree = t.NextFree || where == WhereFreeHand
	}
}
