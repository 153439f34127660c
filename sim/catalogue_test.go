package sim

import (
	"slices"

	"shoed/round"
)

const (
	atTheCard  = "the card"
	anExtra    = "the card, or the reader's overdraw; where any card opens a round, 5 s after it"
	atIt       = "the report itself"
	afterLying = "1.5 s after it lies there; with a masked reader 1.5 s after the naming that says which box was due"
)

// mistakes is every kind, in the order of game.md section 5.
func mistakes() []mistake {
	return slices.Concat(cardMistakes, boxMistakes, readerMistakes, shoeMistakes, insuranceMistakes)
}

// extraSeen: a reader that keeps the rules says so; another's card is one too many
// unless it may open a round. Then it is missed in the box of that one's first.
func extraSeen(s setting) ([]round.Code, string) {
	switch {
	case s.Reader.tells() || s.Start != round.StartFirstCard:
		return []round.Code{round.DealExtraCard}, ""
	case s.watched():
		return []round.Code{round.DealNotPlaced}, ""
	}
	return nil, whyAnyCard
}

func begunSeen(s setting) ([]round.Code, string) {
	switch {
	case s.Start == round.StartBets, s.Start == round.StartButton:
		return []round.Code{round.DealMissingCard}, ""
	case s.watched():
		return []round.Code{round.DealNotPlaced, round.DealWrongBoxLate, round.DealWrongBox}, ""
	}
	return nil, whyNextDealt
}

func lostSeen(s setting) ([]round.Code, string) {
	switch {
	case s.Reader.tells() || s.Placement == round.PlacementRFID && s.Reader != readerMasked:
		return []round.Code{round.ReaderGapped}, ""
	case s.Placement == round.PlacementPresence:
		return []round.Code{round.DealWrongBox, round.DealWrongBoxLate}, ""
	}
	return nil, whyNotNumbered
}

func lostLastSeen(s setting) ([]round.Code, string) {
	if s.Reader.tells() || s.Placement == round.PlacementRFID {
		return lostSeen(s)
	}
	return []round.Code{round.DealLate}, ""
}

func swapSeen(s setting) string {
	switch {
	case !s.watched():
		return whyNoSensors
	case s.Placement == round.PlacementPresence:
		return whyPresence
	}
	return ""
}

func foreignSeen(s setting) string {
	if s.Placement != round.PlacementRFID {
		return whyNoTags
	}
	return ""
}

func onlySensors(s setting) string {
	if !s.watched() {
		return noneThere
	}
	return ""
}

func onlyTags(s setting) string {
	if s.Placement != round.PlacementRFID {
		return noTags
	}
	return ""
}

func onTopSeen(s setting) ([]round.Code, string) {
	switch s.Placement {
	case round.PlacementPresence:
		return []round.Code{round.DealNotPlaced}, ""
	case round.PlacementRFID:
		return []round.Code{round.DealWrongBox}, ""
	}
	return nil, whyNoSensors
}

func burnedMoreSeen(s setting) ([]round.Code, string) {
	switch {
	case s.Start == round.StartBets, s.Start == round.StartButton:
		return []round.Code{round.DealExtraCard}, ""
	case s.watched():
		return []round.Code{round.DealNotPlaced}, ""
	}
	return nil, whyOneOff
}

func oneOff(s setting) string {
	if !s.watched() {
		return whyOneOff
	}
	return ""
}

func correctedThird(s setting) string {
	switch {
	case !s.watched():
		return whyNoSensors
	case s.Reader == readerMasked:
		return whyMaskedRight
	}
	return ""
}

// toldApart: Player draws, and if Banker does too then another face. Two equal
// cards in each other's box are as they should be to whoever goes by faces.
func toldApart(p *play) bool {
	return playerDue(p) && (len(p.cards) < 6 || p.cards[4] != p.cards[5])
}

// Who draws.
func bankerDue(p *play) bool       { return len(p.cards) == 5 && p.boxes[4] == round.B3 }
func playerDue(p *play) bool       { return len(p.cards) > 4 && p.boxes[4] == round.P3 }
func bothStand(p *play) bool       { return len(p.cards) == 4 && !natural(p) }
func four(p *play) bool            { return len(p.cards) == 4 }
func six(p *play) bool             { return len(p.cards) == 6 }
func sixth(*play) []int            { return []int{5} }
func lastThird(p *play) (at []int) { return span(max(4, len(p.cards)-1), len(p.cards)) }

// thirdsHeld are the third cards that may stay unplaced: behind a masked reader's
// back only the last one is told from the next.
func thirdsHeld(p *play) []int {
	if p.Reader == readerMasked {
		return lastThird(p)
	}
	return thirds(p)
}

var cardMistakes = []mistake{
	{Name: "extra card after the round", Clause: "deal.extra_card, 001", Known: anExtra, Seen: extraSeen, at: end, inject: extraCard},
	{Name: "card drawn on a natural", Clause: "section 1, deal.extra_card", Known: anExtra, Seen: extraSeen, at: when(natural, end), inject: extraCard},
	{Name: "a third card although both stand", Clause: "section 1, deal.extra_card", Known: anExtra, Seen: extraSeen, at: when(bothStand, end), inject: extraCard},
	{Name: "Banker draws against the table", Clause: "section 1, deal.extra_card", Known: anExtra, Seen: extraSeen, at: when(bankerStands, end), inject: extraCard},
	{Name: "a fifth card before the hands are turned, not due", Clause: "section 4, deal.extra_card", Known: "the turning that shows it, or the reader's overdraw",
		Seen: always(round.DealExtraCard), at: when(four, end), inject: beforeTurned,
		Cannot: func(s setting) string {
			if s.Reveal == round.RevealOnDraw {
				return notShown
			}
			return ""
		}},
	{Name: "overdrawn card named by the reader", Clause: "deal.extra_card, overdraw", Known: "the reader's overdraw", Seen: always(round.DealExtraCard), Cannot: onlyTelling, at: end, inject: overdrawNamed},
	{Name: "round dealt without its signal", Clause: "section 1, deal.extra_card", Known: atTheCard, Seen: always(round.DealExtraCard), at: once, inject: unsignalled, Cannot: onlySignalled},
	{Name: "card before bets are closed", Clause: "deal.early, 001", Known: atTheCard, Seen: always(round.DealEarly), at: once, inject: early,
		Cannot: func(s setting) string {
			if s.Start != round.StartBets {
				return notBets
			}
			return ""
		}},
	{Name: "one of the first four not drawn in time", Clause: "deal.late, 001", Known: "30 s after the latest draw", Seen: always(round.DealLate), at: secondOn, inject: late},
	{Name: "third card not drawn in time", Clause: "deal.late, 001", Known: "30 s after the latest draw, reveal or window close", Seen: unless(round.DealLate, blind), at: thirds, inject: late},
	{Name: "verdict although a card is due", Clause: "deal.missing_card, 001", Known: "the verdict", Seen: always(round.DealMissingCard), Cannot: onlyTelling, at: afterOne, inject: ruled},
	{Name: "end although one of the first four is due", Clause: "deal.missing_card, 001", Known: "the button", Seen: always(round.DealMissingCard), at: secondOn, inject: ended},
	{Name: "end although a third card is due", Clause: "deal.missing_card, 001", Known: "the button", Seen: unless(round.DealMissingCard, blind), at: thirds, inject: ended},
	{Name: "next round begun although a third card is due", Clause: "deal.missing_card, 001",
		Known: "the signal of the next round; without one, 5 s after the table is cleared or 1.5 s after the card lies in P1", Seen: begunSeen, at: thirds, inject: begun},
	{Name: "Banker does not draw and the next round begins", Clause: "section 1, deal.missing_card", Known: "as the row above", Seen: begunSeen, at: when(six, sixth), inject: begun},
	{Name: "reader deals its next hand although a card is due", Clause: "deal.missing_card, 001", Known: atTheCard, Seen: always(round.DealMissingCard), Cannot: onlyTelling, at: afterOne, inject: nextHand},
	{Name: "two cards together", Clause: "deal.double_card, 001", Known: "the second card", Seen: always(round.DealDoubleCard), at: afterOne, inject: together},
	{Name: "reader skips an index of a hand", Clause: "deal.double_card, 001", Known: atTheCard, Seen: always(round.DealDoubleCard), at: secondOn, inject: skipped,
		Cannot: onlyTelling},
	{Name: "card while paused", Clause: "deal.while_paused, 001", Known: atTheCard, Seen: always(round.DealWhilePaused), Before: []round.Code{round.DealerCall}, at: every, inject: whilePaused},
	{Name: "pause left unanswered", Clause: "pause.unresolved, 001", Known: "180 s after the pause", Seen: always(round.PauseUnresolved), Before: []round.Code{round.DealerCall}, at: every, inject: unresolved},
	{Name: "card pushed back", Clause: "deal.pushed_back, 001", Known: atIt, Seen: unless(round.DealPushedBack, silent), at: every, inject: pushedBack},
}

var boxMistakes = []mistake{
	{Name: "one of the first four in a wrong box", Clause: "deal.wrong_box, 001", Known: "1.5 s after it lies there", Seen: unless(round.DealWrongBox, noSensors), at: firstFour, inject: wrongBox},
	{Name: "Player draws on 6 or 7, Banker's card is due", Clause: "section 1, deal.wrong_box_late, 000 note 6", Known: afterLying,
		Seen: unless(round.DealWrongBoxLate, noSensors), at: when(bankerDue, fifth), inject: wrongThird},
	{Name: "Player's third card in Banker's box", Clause: "deal.wrong_box_late, 000 note 6", Known: afterLying,
		Seen: unless(round.DealWrongBoxLate, noSensors), at: when(toldApart, fifth), inject: wrongThird},
	{Name: "Banker's third card in Player's box, Player has drawn", Clause: "deal.wrong_box_late, 000 note 6", Known: afterLying,
		Seen: unless(round.DealWrongBoxLate, noSensors), at: when(six, sixth), inject: wrongThird},
	{Name: "one of the first four put right in time", Clause: "deal.self_corrected", Known: "the right box", Seen: unless(round.DealSelfCorrected, noSensors), at: firstFour, inject: corrected},
	{Name: "third card put right in time", Clause: "deal.self_corrected", Known: "the right box", Seen: unless(round.DealSelfCorrected, correctedThird), at: thirds, inject: corrected},
	{Name: "one of the first four not placed", Clause: "deal.not_placed, 001", Known: "5 s after the draw", Seen: unless(round.DealNotPlaced, noSensors), at: firstFour, inject: notPlaced},
	{Name: "third card not placed", Clause: "deal.not_placed, 001", Known: "5 s after the draw, or the naming that says which box was due", Seen: unless(round.DealNotPlaced, noSensors), at: thirdsHeld, inject: thirdNotPlaced},
	{Name: "card put on the one before", Clause: "deal.not_placed, deal.wrong_box", Known: "presence: 5 s after the draw; RFID: 1.5 s after it lies there", Seen: onTopSeen, at: secondOn, inject: onTop},
	{Name: "two cards change places", Clause: "deal.wrong_box", Known: "1.5 s after the first lies there; with a masked reader 1.5 s after its naming", Seen: unless(round.DealWrongBox, swapSeen), at: swaps, inject: swapped},
	{Name: "card of another set in a box", Clause: "shoe.foreign_card", Known: "0.5 s after it lies there; with a masked reader the last naming", Seen: unless(round.ShoeForeignCard, foreignSeen), at: every, inject: foreign},
	{Name: "tag of no enrolled card in a box", Clause: "shoe.foreign_card", Known: atIt, Seen: always(round.ShoeForeignCard), Cannot: onlyTags, at: every, inject: foreignTag},
	{Name: "sensors unplugged", Clause: "sensors.lost", Known: "the link", Seen: always(round.SensorsLost), Cannot: onlySensors, at: every, inject: before(round.Input{Kind: round.InLink, Name: round.BoxesDevice})},
}

var readerMistakes = []mistake{
	{Name: "card unread", Clause: "reader.unread, 001", Known: atIt, Seen: always(round.ReaderUnread), at: every, inject: unread(errorUnread, "cannot read")},
	{Name: "code is not a card", Clause: "reader.unread, 001", Known: atIt, Seen: always(round.ReaderUnread), at: every, inject: unread(errorCode, "code is not a card")},
	{Name: "telegram of a card lost, not the last", Clause: "reader.gap, 001",
		Known: "the next telegram; RFID with faces: 0.5 s after the card lies in its box; presence without numbers: 1.5 s after the next card lies in its own box", Seen: lostSeen, at: loses, inject: lost},
	{Name: "telegram of the last card lost", Clause: "reader.gap, 001, deal.late",
		Known: "the next telegram; RFID with faces: 0.5 s after the card lies in its box; else 30 s", Seen: lostLastSeen, at: last, inject: lostLast},
	{Name: "reader starts in mid-round", Clause: "reader.gap, 001", Known: atIt, Seen: unless(round.ReaderGapped, silent), at: afterOne,
		inject: started},
	{Name: "reader unplugged", Clause: "reader.lost, 001", Known: "the link", Seen: always(round.ReaderLost), at: every, inject: before(round.Input{Kind: round.InLink, Name: "reader"})},
	{Name: "reader back in mid-round", Clause: "reader.gap, 001", Known: "the link", Seen: always(round.ReaderGapped), Before: []round.Code{round.ReaderLost}, at: afterOne, inject: reconnected},
	{Name: "reader deals a card to the other hand", Clause: "reader.disagrees, 001", Known: "the card; a third card of a masked reader at the naming that says which box was due",
		Seen: always(round.ReaderDisagrees), Cannot: onlyTelling, at: afterOne, inject: otherHand},
	{Name: "verdict differs", Clause: "reader.disagrees, 001", Known: "the verdict", Seen: always(round.ReaderDisagrees), Cannot: onlyTelling, at: end, inject: differs},
	{Name: "pair in the verdict differs", Clause: "reader.disagrees, 001", Known: "the verdict", Seen: always(round.ReaderDisagrees), Cannot: onlyTelling, at: end, inject: pairDiffers},
	{Name: "reader names a card with two faces", Clause: "reader.disagrees, 001", Known: "the second naming", Seen: always(round.ReaderDisagrees), at: every, inject: faceDiffers,
		Cannot: func(s setting) string {
			if s.Reader != readerMasked {
				return "the reader does not name cards afterwards"
			}
			return ""
		}},
	{Name: "forced quit", Clause: "reader.quit, 001", Known: atIt, Seen: always(round.ReaderQuit), Cannot: onlyTelling, at: afterOne,
		inject: before(round.Input{Kind: round.InVerdict, Verdict: round.Verdict{Quit: true}})},
	{Name: "card drawn while locked", Clause: "reader.out_of_game", Known: atTheCard, Seen: always(round.ReaderOutOfGame), Cannot: onlyTelling, at: every, inject: out},
	{Name: "reader locked", Clause: "reader.locked", Known: atIt, Seen: always(round.ReaderLocked), Cannot: onlyTelling, at: every, inject: before(round.Input{Kind: round.InLock, On: true})},
	{Name: "reader set otherwise", Clause: "reader.setting", Known: atIt, Seen: always(round.ReaderSetting), Cannot: onlyTelling, at: every,
		inject: before(round.Input{Kind: round.InSetting, On: true, Address: "01", Value: "0001"})},
	{Name: "this program starts again in mid-round", Clause: "power.mid_round, 001", Known: "its start", Seen: always(round.PowerMidRound), at: afterOne, inject: before(round.Input{Kind: round.InRestart})},
}

var shoeMistakes = []mistake{
	{Name: "dealer burns one too many", Clause: "shoe.burn, section 1", Known: "the card; without a signal that opens a round, 5 s after it", Seen: burnedMoreSeen, where: atOpening, at: once, inject: burnedMore},
	{Name: "dealer burns one too few", Clause: "shoe.burn, section 1", Known: "1.5 s after the second card lies in its box, which is taken for the first", Seen: unless(round.DealWrongBox, oneOff), where: atOpening, at: once, inject: burnedLess},
	{Name: "reader reports one burned too many", Clause: "shoe.burn, 001", Known: atTheCard, Seen: always(round.ShoeBurn), Cannot: saysPlace, where: atOpening, at: once, inject: saysMore},
	{Name: "reader reports one burned too few", Clause: "shoe.burn, 001", Known: "the round's first card", Seen: always(round.ShoeBurn), Cannot: saysPlace, where: atOpening, at: once, inject: saysLess},
	{Name: "arranged shoe: nine equal ranks running", Clause: "shoe.suspect_order", Known: "the ninth face (audit view)", Seen: always(round.ShoeSuspectOrder), where: atOpening, stack: arrange, at: once, inject: arranged},
	{Name: "new shoe without a cut card", Clause: "shoe.change_unproven", Known: "its first card, or the button", Seen: always(round.ShoeChangeUnproven), at: end, inject: unproven},
	{Name: "cut card too early", Clause: "shoe.cut_position", Known: "the cut card", Seen: always(round.ShoeCutPosition), at: every, inject: cutHere},
	{Name: "cut card too late", Clause: "shoe.cut_position", Known: "the cut card", Seen: always(round.ShoeCutPosition), where: lateCut, at: end, inject: cutLate},
	{Name: "no cut card: the shoe runs out", Clause: "shoe.short", Known: "a round's first card of the last five", Seen: always(round.ShoeShort), where: runDown, at: once, inject: lateCard},
	{Name: "card after the end of the shoe", Clause: "section 1 (drained, P3)", Known: atTheCard, Seen: always(round.ShoeDrained), where: atEnd, at: end, inject: drained},
	{Name: "round begun after the end of the shoe", Clause: "shoe.late_card", Known: atTheCard, Seen: always(round.ShoeLateCard), where: atEnd, at: end, inject: lateCard,
		Cannot: onlySignalled},
	{Name: "one copy of a card too many", Clause: "shoe.too_many", Known: "the card, or its naming", Seen: always(round.ShoeTooMany), where: smallShoe, stack: copyOut, at: every, inject: copied},
	{Name: "one card more than the shoe holds", Clause: "shoe.too_many", Known: atTheCard, Seen: always(round.ShoeTooMany), Before: []round.Code{round.ShoeDrained}, where: atEnd, at: end, inject: tooMany},
}

var insuranceMistakes = []mistake{
	{Name: "card dealt while a window is open", Clause: "insurance.early_deal, 000 note 1", Known: atTheCard, Seen: always(round.InsuranceEarlyDeal), Cannot: onlyWindows, at: dealings, inject: dealtThrough},
	{Name: "rates not laid out", Clause: "insurance.not_posted, 000 note 2", Known: "the window's close", Seen: always(round.InsuranceNotPosted), Cannot: onlyWindows, at: windows, inject: notLaid},
	{Name: "rates on the wrong spot", Clause: "insurance.wrong_spot, 000 note 3", Known: "the rates", Seen: always(round.InsuranceWrongSpot), Cannot: onlyWindows, at: windows, inject: laid(laysWrongSpot)},
	{Name: "wrong rates", Clause: "insurance.wrong_rate, 000 note 4", Known: "the rates", Seen: always(round.InsuranceWrongRate), Cannot: onlyWindows, at: windows, inject: laid(laysWrongRate)},
	{Name: "hands turned out of order", Clause: "insurance.exposed, 000 note 5", Known: "the hand, where it opens an offer", Seen: always(round.InsuranceExposed), at: when(oneHand, end), inject: turnedFirst,
		Cannot: func(s setting) string {
			if s.Reveal == round.RevealOnDraw {
				return notShown
			}
			return onlyWindows(s)
		}},
}

func onlySignalled(s setting) string {
	if s.Start != round.StartBets && s.Start != round.StartButton {
		return noStart
	}
	return ""
}

func saysPlace(s setting) string {
	if !s.Reader.tells() {
		return notIdentity
	}
	return ""
}
