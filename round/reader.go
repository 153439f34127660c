package round

// reader takes what the reader says of itself.
func (t *step) reader(says ReaderSays) {
	switch says {
	case ReaderStart:
		switch {
		case t.Round.Open:
			t.gap(FactReaderStarted)
		case t.Shoe.CutOut:
			t.shoeLoaded(0)
		default:
			t.note(NoteReaderStart)
		}
	case ReaderStandby:
		t.audit(Event{Kind: ReaderNoted, Note: NoteReaderStandby})
	case ReaderGap:
		t.gap(FactGap)
	}
}

// gap: telegrams may be lost, so the round is unproven until somebody who
// saw the table confirms it (reader.gap).
func (t *step) gap(seen FactKind) {
	switch {
	case t.standing(PowerMidRound) != nil:
		t.note(NoteReaderGap) // taken in by the greater question
	case t.Rules.On[ReaderGapped] == SetVoid && !t.Round.Open:
		t.note(NoteReaderGap) // nothing to void
	default:
		t.raiseOrVoid(ReaderGapped, Fact{Kind: FactContiguous}, Fact{Kind: seen})
	}
}

// unread: a card left the shoe and its face is not known. The next card that
// is read is proposed as the same one (reader.unread).
func (t *step) unread(why string) {
	if t.standing(ReaderUnread) != nil {
		t.hold(Drawn{Card: Masked, At: t.now}) // one more: it cannot be the same one
		return
	}
	t.count(&Drawn{Card: Masked})
	expected := Fact{Kind: FactReadable}
	if t.Round.Open && t.Round.Due != 0 {
		expected = Fact{Kind: FactCardDue, Box: t.Round.Due}
	}
	t.raise(ReaderUnread, expected, Fact{Kind: FactUnread, Name: why})
}

// reread keeps the proposal with the question. It is the card that was
// already counted, now with its face.
func (t *step) reread(a *Alert, d Drawn) {
	d.Counts = true
	a.HasCard, a.Card = true, d
	seen := Masked
	if t.Rules.Reveal == RevealOnDraw {
		seen = d.Card
	}
	t.emit(Event{Kind: ReaderNoted, Note: NoteReread, Card: seen})
	t.countFace(d.Card)
}

// Reader error numbers (angel.md).
const (
	faultUnread    = 1
	faultOverdraw  = 2
	faultReverse   = 4 // at the exit
	faultReverseIn = 5 // midway
	faultCode      = 6 // not a card's code
)

// fault is a reader error raised or cancelled.
func (t *step) fault(code uint8, on bool) {
	switch {
	case code == faultOverdraw && on:
		a := t.standing(DealExtraCard)
		if a == nil {
			a = t.raise(DealExtraCard, Fact{Kind: FactNoCardDue}, Fact{Kind: FactOverdraw})
		}
		a.ByReader = true
	case code == faultOverdraw:
		t.settleOverdraw()
	case on && code == faultUnread:
		t.unread("cannot read")
	case on && code == faultCode:
		t.unread("code is not a card")
	case on && (code == faultReverse || code == faultReverseIn):
		t.raise(DealPushedBack, Fact{Kind: FactDealing}, Fact{Kind: FactReverse, N: uint16(code)})
	case on:
		t.emit(Event{Kind: ReaderNoted, Note: NoteReaderFault, Fault: code})
	default:
		t.emit(Event{Kind: ReaderNoted, Note: NoteReaderFaultOver, Fault: code})
	}
}

// settleOverdraw: the error was cancelled at the reader, which is the answer
// given at the table. A card that it named was seen and is out of play; one
// that it did not name opens the next round (game.md section 5).
func (t *step) settleOverdraw() {
	a := t.standing(DealExtraCard)
	if a == nil || !a.ByReader {
		t.emit(Event{Kind: ReaderNoted, Note: NoteReaderFaultOver, Fault: faultOverdraw})
		return
	}
	d, has := a.Card, a.HasCard
	t.clear(a.No, byReader)
	switch {
	case has && d.Named:
		t.Shoe.Account.OutOfGame++
	case has:
		t.disposeOf(d, WhereNextRound)
	}
}

// setting: the reader's settings were changed, or its setting mode begins or
// ends.
func (t *step) setting(changed bool) {
	if !changed {
		t.gone(byReader, ReaderSetting)
		return
	}
	t.raise(ReaderSetting, Fact{Kind: FactSettingsKept}, Fact{Kind: FactSetting})
}

// link is the reader's line going or coming back (reader.lost). With a round
// open, coming back leaves the round to be confirmed: what was dealt in
// between was not seen.
func (t *step) link(device string, up bool) {
	if m, ok := machine[device]; ok {
		t.machineLink(device, m, up)
		if device == BoxesDevice && up {
			t.retell()
		}
		return
	}
	if up != t.ReaderDown {
		return
	}
	t.ReaderDown, t.GateLocked = !up, false
	if !up {
		t.emit(Event{Kind: DeviceLost, Device: device})
		if t.standing(PowerMidRound) == nil {
			t.raise(ReaderLost, Fact{Kind: FactLinkUp}, Fact{Kind: FactLinkDown, Name: device})
		}
		return
	}
	t.emit(Event{Kind: DeviceRestored, Device: device})
	if t.Round.Open {
		t.gap(FactReconnected)
	}
	t.clearAll(byDevice, ReaderLost)
}

// inactive is a reader that is not in use telling something: a spare, or the one
// whose shoe is being made ready. Nothing of it counts.
func (t *step) inactive(in *Input) {
	switch in.Spare {
	case SpareCard:
		t.raise(ReaderInactive, Fact{Kind: FactOneReader}, Fact{Kind: FactOtherReader, Name: in.Name})
	case SpareUp:
		t.emit(Event{Kind: DeviceRestored, Device: in.Name})
	case SpareDown:
		t.emit(Event{Kind: DeviceLost, Device: in.Name})
	default:
		t.audit(Event{Kind: ReaderNoted, Note: NoteInactive, Device: in.Name})
	}
}

// swapReader puts another reader in use: a spare that takes over the cards, or
// one with another shoe. What was dealt of an open round meanwhile was not seen.
func (t *step) swapReader(ans *Answer, a Alert) Refusal {
	switch {
	case ans.Device == "" || ans.Device == t.Active:
		return RefusedReader
	case ans.New && t.Round.Open:
		return RefusedRoundOpen
	}
	t.accept(ans, a)
	t.Active, t.ReaderDown, t.GateLocked = ans.Device, false, false
	if ans.New {
		t.load(0)
	} else if t.Round.Open {
		t.gap(FactReaderSwapped)
	}
	t.clearAll(ans.By, ReaderLost, ReaderInactive)
	return 0
}

// The machine's own parts and what is wired to it, as devices: their link is
// down while they fail. No reader may have their names.
const (
	JournalDevice     = "journal" // down: it could not be written; told once it can
	BrokerDevice      = "broker"
	ClockDevice       = "clock"       // down: not set, so times are not those of the day
	PowerDevice       = "power"       // down: the supply voltage is too low
	CertificateDevice = "certificate" // down: ends soon; said again as the end comes near
	CommandsDevice    = "commands"    // down: the broker gave a command that it had kept
	PublisherDevice   = "publisher"   // down: another process publishes this table

	BoxesDevice = "boxes" // sensors of the boxes
	PanelDevice = "panel" // the dealer's buttons, keys, lid and cut-card sensor
	LampsDevice = "lamps" // lamps and buzzer
)

type machinePart struct {
	code           Code
	expected, seen FactKind
}

var machine = map[string]machinePart{
	JournalDevice: {StorageLost, FactJournalWritten, FactJournalHeld},
	BrokerDevice:  {BrokerLost, FactDelivered, FactKeptForLater},
	ClockDevice:   {ClockUnset, FactClockSet, FactClockUnset},
	PowerDevice:   {PowerLow, FactPowerEnough, FactPowerLow},

	CertificateDevice: {CertificateExpires, FactCertificateLasts, FactCertificateEnds},
	CommandsDevice:    {CommandRetained, FactNothingKept, FactCommandKept},
	PublisherDevice:   {DuplicateTable, FactOnePublisher, FactAnotherPublisher},

	BoxesDevice: {SensorsLost, FactSensing, FactSensorsLost},
	PanelDevice: {PanelLost, FactPanelHeard, FactPanelLost},
	LampsDevice: {LampsLost, FactLampsFollow, FactLampsLost},
}

// machineLink is a part of the machine failing or working again. Play goes on:
// none of them takes a card from the table.
func (t *step) machineLink(device string, part machinePart, up bool) {
	lost := t.standing(part.code)
	failed := lost != nil && !lost.Gone
	switch {
	case !up:
		if !failed {
			t.emit(Event{Kind: DeviceLost, Device: device})
		}
		t.raise(part.code, Fact{Kind: part.expected}, Fact{Kind: part.seen})
	case failed:
		t.emit(Event{Kind: DeviceRestored, Device: device})
		t.gone(byDevice, part.code)
	}
}

// Failing reports whether a part of the machine is on record as failing.
func (s *State) Failing(device string) bool {
	a := s.standing(machine[device].code)
	return a != nil && !a.Gone
}

// wire is one of the table's own wires going wrong, or well again (wire.faulty).
func (t *step) wire(w Wire, says WireSays) {
	a, n := t.faulty(w)
	switch {
	case says == WireOK:
		t.over(byDevice, a)
		return
	case a == nil && n == maxWires:
		t.AlertsLost++
		return
	}
	t.raiseFor(w, WireFaulty, Fact{Kind: FactWireWell, Name: w.Device}, Fact{Kind: FactWireFault, Name: w.Line, N: uint16(says)})
}

// faulty is the standing alert about a wire, nil when there is none, and how
// many stand about wires.
func (t *step) faulty(w Wire) (about *Alert, n int) {
	for i := range t.Alerts {
		if a := &t.Alerts[i]; a.Code == WireFaulty {
			if n++; a.Wire == w {
				about = a
			}
		}
	}
	return about, n
}

// restart is this process starting again. A round that was open is unproven,
// whatever the cause; the one question takes in a gap and a lost reader.
func (t *step) restart() {
	if !t.Round.Open {
		return
	}
	t.Round.ReaderIgnored = true
	t.retell()
	t.raise(PowerMidRound, Fact{Kind: FactContinuous}, Fact{Kind: FactRestart})
	t.clearAll(PowerMidRound.String(), ReaderGapped, ReaderLost)
}

// verdict is the outcome as the reader sees it. It decides nothing: it is
// compared with the rules' own (reader.disagrees), or says too early that the
// round is over (deal.missing_card). A forced quit is never an outcome.
func (t *step) verdict(v Verdict) {
	r := &t.Round
	switch {
	case v.Quit && r.Open:
		t.raise(ReaderQuit, Fact{Kind: FactRoundEnd}, Fact{Kind: FactQuit})
		t.voidRound(ReaderQuit, byReader)
	case v.Quit || !r.Open && !r.Decided:
		t.note(NoteVerdictWithoutRound)
	case r.ReaderIgnored:
		t.note(NoteVerdictIgnored)
	case r.HasVerdict && r.Verdict == v:
		t.note(NoteVerdictAgain)
	default:
		r.Verdict, r.HasVerdict = v, true
		if !r.Decided {
			return // advance compares it, once the faces are shown
		}
		if agrees(v, r.Outcome, r.Tags) {
			t.audit(Event{Kind: ReaderNoted, Note: NoteReaderAgrees})
			return
		}
		t.disagrees(r.Outcome, r.Tags)
	}
}

func agrees(v Verdict, o Outcome, tags Tags) bool {
	return v.Outcome == o && v.PlayerPair == (tags&TagPlayerPair != 0) && v.BankerPair == (tags&TagBankerPair != 0)
}

func (t *step) disagrees(o Outcome, tags Tags) {
	v := t.Round.Verdict
	theirs := Tags(0)
	if v.PlayerPair {
		theirs |= TagPlayerPair
	}
	if v.BankerPair {
		theirs |= TagBankerPair
	}
	t.raise(ReaderDisagrees,
		Fact{Kind: FactOutcome, N: uint16(o), M: uint16(tags & (TagPlayerPair | TagBankerPair))},
		Fact{Kind: FactVerdict, N: uint16(v.Outcome), M: uint16(theirs)})
}
