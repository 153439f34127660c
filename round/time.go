package round

// Deadlines are judged by the time of each input before the input itself, so
// that the same inputs always pass them at the same place. None of them opens,
// completes or cancels a round.

// deadlines raises and closes what the time of this input is too late for.
func (t *step) deadlines() {
	now := t.now
	r := &t.Round
	if r.Insured.Open && now >= r.Insured.ClosesAt {
		t.closeWindow(CloseTimer)
	}
	t.misplaced()
	t.tellStrangers()
	if due := t.drawDue(); due != 0 && now >= due {
		r.LateTold = true
		t.raise(DealLate, Fact{Kind: FactCardDue, Box: r.Due}, Fact{Kind: FactNotDrawn})
	}
	if due := t.resolveDue(); due != 0 && now >= due {
		t.UnresolvedTold = true
		t.raise(PauseUnresolved, Fact{Kind: FactAnswer}, Fact{Kind: FactStillPaused, Name: t.PausedBy.String()})
	}
	if due := t.gateDue(); due != 0 && now >= due {
		t.gateStuck()
	}
	if due := t.verdictDue(); due != 0 && now >= due {
		t.raise(ReaderNoVerdict, Fact{Kind: FactAgreeing}, Fact{Kind: FactNoVerdict})
	}
}

// Deadline is when a Tick will next matter, in ns UTC; 0 while none does.
func (s *State) Deadline() int64 {
	first := int64(0)
	sooner := func(due int64) {
		if due != 0 && (first == 0 || due < first) {
			first = due
		}
	}
	r := &s.Round
	if r.Insured.Open {
		sooner(r.Insured.ClosesAt)
	}
	if s.watched() && r.Open {
		for i := range r.Cards[:r.N] {
			switch {
			case r.Lies[i] == 0 && r.Cards[i].Box != 0 && s.PausedBy == 0 && !s.unseen():
				sooner(r.DrawnAt[i] + ms(s.Rules.PlaceWaitMS))
			case r.WrongSince[i] != 0 && r.Lies[i] != r.Cards[i].Box && s.standing(DealWrongBox) == nil && s.standing(DealWrongBoxLate) == nil:
				sooner(r.WrongSince[i] + ms(s.Rules.PlacementSettleMS))
			}
		}
	}
	sooner(s.strangerDue())
	sooner(s.drawDue())
	sooner(s.resolveDue())
	sooner(s.verdictDue())
	sooner(s.gateDue())
	return first
}

// drawDue is when a due card is late (deal.late): counted from the latest
// draw, reveal, window's close, or the end of a pause.
func (s *State) drawDue() int64 {
	r := &s.Round
	if !r.Open || r.Due == 0 || r.LateTold || r.Insured.Open || s.PausedBy != 0 || r.ActedAt == 0 {
		return 0
	}
	return r.ActedAt + ms(s.Rules.DrawWaitMS)
}

// resolveDue is when a pause has lasted too long (pause.unresolved).
func (s *State) resolveDue() int64 {
	if s.PausedBy == 0 || s.UnresolvedTold {
		return 0
	}
	return s.PausedAt + ms(s.Rules.ResolveMS)
}

// verdictWait is how long the reader's verdict may stay out before
// verdict=wait warns (game.md section 5).
const verdictWaitMS = 5000

// verdictDue is when a verdict is missed: counted from the last card, or the end
// of a pause since, in which the reader may have had an error to settle first. A
// reader that is lost gives none, which is told already (contract.md, Alerts).
func (s *State) verdictDue() int64 {
	r := &s.Round
	if s.Rules.Verdict != VerdictWait || !r.Open || r.CompleteAt == 0 || r.HasVerdict || r.ReaderIgnored || s.ReaderDown || s.PausedBy != 0 || s.standing(ReaderNoVerdict) != nil {
		return 0
	}
	return max(r.CompleteAt, r.ActedAt) + ms(verdictWaitMS)
}
