package round

import "slices"

// GateShut reports whether the reader is to be locked: by rule draw_gate, with
// a shoe in play, no card due and none held, the faces shown, or before the
// signal that a round begins. It follows from what the table has shown. Where
// in doubt the gate is open: a card that cannot be read is worse than one too
// many.
func (s *State) GateShut() bool {
	switch {
	case s.Rules.DrawGate != GateOn || s.Shoe.Phase != ShoeInPlay || s.Manual || s.ReaderDown || s.TestUntil != 0:
		return false
	case s.Waiting.N > 0 || s.Next.N > 0 || s.unproven():
		return false
	case s.Round.Open:
		return s.Round.Complete
	}
	return !s.signalled()
}

// unproven reports whether a question stands about what was dealt, or about a
// card that is held, or one that the reader or only another shoe answers.
func (s *State) unproven() bool {
	for i := range s.Alerts {
		a := &s.Alerts[i]
		if a.No != 0 && (a.HasCard || a.ByReader || slices.ContainsFunc(alertRules[a.Code].answers, func(do Do) bool {
			return do == DoConfirm || do == DoCorrect || do == DoNewShoe
		})) {
			return true
		}
	}
	return false
}

// signalled reports whether a round may begin: by rule round_start its signal
// was given, none is given, or none can be heard.
func (s *State) signalled() bool {
	switch s.Rules.RoundStart {
	case StartBets:
		return s.Bets == BetsClosed
	case StartButton:
		return s.Started || s.Failing(PanelDevice)
	case StartBoxes:
		return s.Cleared || s.SensorsOff || s.Failing(BoxesDevice)
	}
	return true
}

// gateMS is how long a reader may take to obey the draw gate and to say so: an
// order and its report take well under a second on the slowest line.
const gateMS = 3000

// lock is the reader saying that it is locked, or no longer: by its key
// (reader.locked), or because our own draw gate asked for it.
func (t *step) lock(on bool) {
	age := t.now - t.GateShutAt
	switch {
	case on && t.GateShutAt != 0 && age >= 0 && age < ms(gateMS):
		t.GateLocked = true
		t.audit(Event{Kind: ReaderNoted, Note: NoteGateShut})
	case on:
		t.raise(ReaderLocked, Fact{Kind: FactDealing}, Fact{Kind: FactLocked})
	case t.GateLocked:
		t.GateLocked = false
		t.audit(Event{Kind: ReaderNoted, Note: NoteGateOpen})
	default:
		t.note(NoteReaderUnlocked)
		t.gone(byReader, ReaderLocked)
	}
}

// gateDue is when a reader that stays locked although the gate is open is to be
// told of.
func (s *State) gateDue() int64 {
	if !s.GateLocked || s.GateShut() {
		return 0
	}
	return s.GateShutAt + ms(gateMS)
}

// gateStuck: it was the gate that locked the reader, and it stays so.
func (t *step) gateStuck() {
	t.GateLocked = false
	t.raise(ReaderLocked, Fact{Kind: FactGateOpen}, Fact{Kind: FactGateStuck})
}
