package round

import "fmt"

// Code names an error rule (game.md section 5). Its text is stable.
type Code uint8

const (
	DealExtraCard Code = iota + 1
	DealWrongBoxLate
	DealWrongBox
	DealSelfCorrected
	DealNotPlaced
	DealEarly
	DealLate
	DealMissingCard
	DealDoubleCard
	DealWhilePaused
	DealPushedBack
	InsuranceEarlyDeal
	InsuranceNotPosted
	InsuranceWrongSpot
	InsuranceWrongRate
	InsuranceExposed
	ReaderUnread
	ReaderGapped
	ReaderLost
	ReaderDisagrees
	ReaderQuit
	ReaderOutOfGame
	ReaderLocked
	ReaderSetting
	ReaderNoVerdict
	DealerCall
	PauseUnresolved
	ShoeBurn
	ShoeCutPosition
	ShoeLateCard
	ShoeChangeUnproven
	ShoeShort
	ShoeTooMany
	ShoeForeignCard
	ShoeSuspectOrder
	ShoeDrained
	PowerMidRound
	StorageLost
	BrokerLost
	ClockUnset
	PowerLow
	CertificateExpires
	CommandRetained
	DuplicateTable
	ReaderInactive
	SensorsLost
	PanelLost
	LampsLost
	WireFaulty
	codes = iota + 1
)

// String is the code's name, as game.md writes it.
func (c Code) String() string {
	if int(c) < len(alertRules) {
		return alertRules[c].name
	}
	return ""
}

func codeByName(name string) (Code, bool) {
	for c, r := range alertRules {
		if r.name == name && name != "" {
			return Code(c), true
		}
	}
	return 0, false
}

// holds says what an alert keeps from going on while it stands.
type holds uint8

const (
	holdsNothing holds = iota
	holdsDealing       // cards are held; an outcome that is due is published
	holdsAll           // cards are held and no outcome is published
)

// Affects says which bets an alert touches.
type Affects uint8

const (
	AffectsNone Affects = iota
	AffectsInsurance
	AffectsAll
)

var affectsText = []string{"none", "insurance", "all"}

func (a Affects) String() string { return affectsText[a] }

// alertRule is one row of game.md section 5.
type alertRule struct {
	name     string
	priority uint8 // 1 stop, 2 before the next round, 3 this shift, 4 noted only
	holds    holds
	affects  Affects
	seed     string // the house document that asks for it; "" where only game.md does
	answers  []Do
	settings []Setting // besides the default
	private  bool      // for the full view only
	device   bool      // about a device, in whichever round: seen again it is the same alert
}

var alertRules = [codes]alertRule{
	DealExtraCard: {name: "deal.extra_card", priority: 2, holds: holdsDealing, seed: "001",
		answers: []Do{DoHoldCard}, settings: []Setting{SetNextRound, SetBurn, SetFreeHand}},
	DealWrongBoxLate: {name: "deal.wrong_box_late", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "000 note 6",
		answers: []Do{DoArranged, DoVoid}, settings: []Setting{SetVoid}},
	DealWrongBox: {name: "deal.wrong_box", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoArranged, DoVoid}, settings: []Setting{SetVoid}},
	DealSelfCorrected: {name: "deal.self_corrected", priority: 4},
	DealNotPlaced: {name: "deal.not_placed", priority: 2, seed: "001",
		answers: []Do{DoArranged, DoSensorsOff}},
	DealEarly: {name: "deal.early", priority: 2, seed: "001",
		answers: []Do{DoAck}, settings: []Setting{SetVoid}},
	DealLate: {name: "deal.late", priority: 3, seed: "001",
		answers: []Do{DoAck}},
	DealMissingCard: {name: "deal.missing_card", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoCorrect, DoVoid, DoResume}},
	DealDoubleCard: {name: "deal.double_card", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoConfirm, DoCorrect, DoVoid}, settings: []Setting{SetVoid}},
	DealWhilePaused: {name: "deal.while_paused", priority: 2, holds: holdsDealing, seed: "001",
		answers: []Do{DoHoldCard}},
	DealPushedBack: {name: "deal.pushed_back", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoConfirm, DoCorrect, DoVoid}},
	InsuranceEarlyDeal: {name: "insurance.early_deal", priority: 4, seed: "000 note 1"},
	InsuranceNotPosted: {name: "insurance.not_posted", priority: 4, seed: "000 note 2"},
	InsuranceWrongSpot: {name: "insurance.wrong_spot", priority: 4, seed: "000 note 3"},
	InsuranceWrongRate: {name: "insurance.wrong_rate", priority: 4, seed: "000 note 4"},
	InsuranceExposed: {name: "insurance.exposed", priority: 3, affects: AffectsInsurance, seed: "000 note 5",
		answers: []Do{DoAck}, settings: []Setting{SetVoid}},
	ReaderUnread: {name: "reader.unread", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoConfirm, DoCorrect, DoVoid}},
	ReaderGapped: {name: "reader.gap", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoConfirm, DoCorrect, DoVoid}, settings: []Setting{SetVoid}},
	ReaderLost: {name: "reader.lost", priority: 2, seed: "001", device: true,
		answers: []Do{DoManual}},
	ReaderDisagrees: {name: "reader.disagrees", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoConfirm, DoCorrect, DoVoid}},
	ReaderQuit: {name: "reader.quit", priority: 2, affects: AffectsAll, seed: "001",
		answers: []Do{DoAck}},
	ReaderOutOfGame: {name: "reader.out_of_game", priority: 4,
		answers: []Do{DoResume}, settings: []Setting{SetPause}},
	ReaderLocked: {name: "reader.locked", priority: 3, device: true,
		answers: []Do{DoAck}},
	ReaderSetting: {name: "reader.setting", priority: 2, device: true,
		answers: []Do{DoAck}},
	ReaderNoVerdict: {name: "reader.no_verdict", priority: 3,
		answers: []Do{DoAck}},
	DealerCall: {name: "dealer.call", priority: 2, holds: holdsAll, seed: "001",
		answers: []Do{DoResume, DoVoid}},
	PauseUnresolved: {name: "pause.unresolved", priority: 1, affects: AffectsAll, seed: "001",
		answers: []Do{DoVoid}},
	ShoeBurn: {name: "shoe.burn", priority: 2, holds: holdsAll, seed: "001",
		answers: []Do{DoConfirm, DoNewShoe}},
	ShoeCutPosition: {name: "shoe.cut_position", priority: 3,
		answers: []Do{DoAck}},
	ShoeLateCard: {name: "shoe.late_card", priority: 2, holds: holdsDealing,
		answers: []Do{DoHoldCard, DoNewShoe}},
	ShoeChangeUnproven: {name: "shoe.change_unproven", priority: 2, holds: holdsAll,
		answers: []Do{DoConfirm, DoNewShoe}, settings: []Setting{SetAccept}},
	ShoeShort: {name: "shoe.short", priority: 2, holds: holdsAll,
		answers: []Do{DoNewShoe}},
	ShoeTooMany: {name: "shoe.too_many", priority: 1, holds: holdsAll, affects: AffectsAll,
		answers: []Do{DoVoid, DoNewShoe}},
	ShoeForeignCard: {name: "shoe.foreign_card", priority: 1, holds: holdsAll, affects: AffectsAll,
		answers: []Do{DoVoid, DoNewShoe}},
	ShoeSuspectOrder: {name: "shoe.suspect_order", priority: 3, private: true,
		answers: []Do{DoAck, DoResume}, settings: []Setting{SetOff, SetPause}},
	ShoeDrained: {name: "shoe.drained", priority: 3, seed: "001",
		answers: []Do{DoAck}},
	PowerMidRound: {name: "power.mid_round", priority: 1, holds: holdsAll, affects: AffectsAll, seed: "001",
		answers: []Do{DoConfirm, DoCorrect, DoVoid}},
	StorageLost:        {name: "storage.lost", priority: 2, device: true},
	BrokerLost:         {name: "broker.lost", priority: 3, device: true},
	ClockUnset:         {name: "clock.unset", priority: 3, device: true},
	PowerLow:           {name: "power.low", priority: 3, device: true},
	CertificateExpires: {name: "certificate.expires", priority: 3, device: true},
	CommandRetained:    {name: "command.retained", priority: 3, device: true},
	ReaderInactive:     {name: "reader.inactive", priority: 2, device: true, answers: []Do{DoAck}},
	DuplicateTable:     {name: "duplicate_table", priority: 2, device: true},
	SensorsLost:        {name: "sensors.lost", priority: 2, device: true, answers: []Do{DoSensorsOff}},
	PanelLost:          {name: "panel.lost", priority: 3, device: true},
	LampsLost:          {name: "lamps.lost", priority: 3, device: true},
	WireFaulty:         {name: "wire.faulty", priority: 3, device: true},
}

// Alert is an abnormal condition that waits for an answer. After ISA-18.2 it
// is active, acked once somebody has seen it, or returned when the condition
// is gone before anybody has; cleared, it stands no more.
type Alert struct {
	No       uint32 // 0: no alert
	Code     Code
	Priority uint8
	Holds    holds
	Round    uint16 // the round it is about; 0 none
	Seq      uint64 // number of the event that raised it; 0 when that is not public
	At       int64  // ns UTC
	LastAt   int64  // ns UTC, when it was last seen
	Count    uint16 // how often it was seen
	Gone     bool   // the condition is over
	AckedAt  int64  // ns UTC; 0 not acknowledged
	AckedBy  string
	Shelved  int64 // ns UTC, until when supervisors' screens keep it aside; 0 not
	ByReader bool  // raised by the reader's own fault, which may settle it
	Decks    uint8 // of the new shoe it is about; 0 as the rules say
	HasCard  bool
	Card     Drawn // the card it is about: an extra card, a re-read, a shoe's first
	Wire     Wire  // the wire it is about; zero for other alerts
}

// Wire is a wire of the table's own, each with an alert of its own.
type Wire struct {
	Device string // as links name it
	Line   string // as the configuration names it
}

// maxWires with an alert standing at once; more are only counted. So many are
// one cable's fault, and must leave room for other alerts.
const maxWires = 8

// MaxAlerts standing at once; more are counted. All codes that can hold the
// table fit, so none of those is ever left out for want of room.
const MaxAlerts = 24

// allows reports whether the answer may be given to the alert. An alert named
// in the answer may always be acknowledged or shelved: that decides nothing.
// One that clears by itself has no other answer.
func (a *Alert) allows(do Do, named bool) bool {
	answers := alertRules[a.Code].answers
	for _, d := range answers {
		if d == do {
			return true
		}
	}
	switch do {
	case DoAck:
		return (named || len(answers) == 0) && a.AckedAt == 0
	case DoShelve:
		return named && a.Priority > 1
	case DoUnshelve:
		return named && a.Shelved != 0
	}
	return false
}

// Latched reports whether the alert stands until somebody decides, whatever
// becomes of its condition.
func (a *Alert) Latched() bool { return a.Holds != holdsNothing && a.Code != ReaderLost }

// Blocks reports whether the alert holds the table.
func (a *Alert) Blocks() bool { return a.Holds != holdsNothing }

// AlertState is where an alert stands (contract.md, Alerts).
type AlertState uint8

const (
	AlertActive AlertState = iota + 1
	AlertIsAcked
	AlertIsReturned
)

var alertStateText = []string{"", "active", "acked", "returned"}

func (s AlertState) String() string { return alertStateText[s] }

// State of a standing alert.
func (a *Alert) State() AlertState {
	switch {
	case a.Gone:
		return AlertIsReturned
	case a.AckedAt != 0:
		return AlertIsAcked
	}
	return AlertActive
}

// MarshalText writes the code's name; nothing for no code.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (c *Code) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*c = 0
		return nil
	}
	found, ok := codeByName(string(b))
	if !ok {
		return fmt.Errorf("alert code %q is unknown", b)
	}
	*c = found
	return nil
}

// Priority of the code by its rule: 1 stop, 2 before the next round, 3 this shift,
// 4 noted only. An alert's own may be higher.
func (c Code) Priority() uint8 { return alertRules[c].priority }

// Answers that clear the code, as game.md lists them.
func (c Code) Answers() []Do { return alertRules[c].answers }

// Wheres a card may go that the code holds.
func (c Code) Wheres() []Where {
	switch c {
	case DealExtraCard:
		return []Where{WhereNextRound, WhereBurn, WhereFreeHand}
	case DealWhilePaused:
		return []Where{WhereUse, WhereBurn, WhereNextRound}
	case ShoeLateCard:
		return []Where{WhereBurn}
	}
	return nil
}

// Device reports that the code is about a device, in whichever round.
func (c Code) Device() bool { return alertRules[c].device }

// PriorityText is a priority as it is told: P1.
func PriorityText(p uint8) string { return fmt.Sprintf("P%d", p) }

// Affects says which bets the code touches.
func (c Code) Affects() Affects { return alertRules[c].affects }

// Who cleared an alert, where it was not a person.
const (
	byRule    = "rule"    // the house decided beforehand
	byCard    = "card"    // the due card came
	byReader  = "reader"  // it was settled at the reader
	byDevice  = "device"  // it came back
	byVoid    = "void"    // its round is void
	bySensors = "sensors" // they see that it is right now
	byResume  = "resume"  // the table goes on
)

// remark tells what is noted only (P4): it never stands.
func (t *step) remark(code Code, expected, seen Fact) {
	t.announce(&Alert{Code: code, Priority: alertRules[code].priority, Round: t.about()}, expected, seen)
}

// tell reports an alert that the house's rules answer at once: it never
// stands and nothing waits for it.
func (t *step) tell(code Code, expected, seen Fact) {
	t.remark(code, expected, seen)
	t.emit(Event{Kind: AlertCleared, Round: t.about(), Alert: t.AlertNo, Code: code, By: byRule})
}

// about is the round that an alert raised now is about.
func (t *step) about() uint16 {
	if t.Round.Open || t.Round.Decided {
		return t.Round.No
	}
	return 0
}

// raise makes an alert stand, pausing the table when its rule says so. The
// same code about the same round is one alert seen again.
func (t *step) raise(code Code, expected, seen Fact) *Alert {
	return t.raiseFor(Wire{}, code, expected, seen)
}

// raiseFor is raise for one of the alerts that a code has of each wire.
func (t *step) raiseFor(w Wire, code Code, expected, seen Fact) *Alert {
	rule := &alertRules[code]
	about := t.about()
	for i := range t.Alerts {
		if a := &t.Alerts[i]; a.No != 0 && a.Code == code && a.Wire == w && (a.Round == about || rule.device) {
			t.seenAgain(a, expected, seen)
			return a
		}
	}
	a := Alert{Code: code, Priority: rule.priority, Holds: rule.holds, Round: about, At: t.now, LastAt: t.now, Count: 1, Wire: w}
	switch {
	case code == ReaderLost && t.Round.Open && !t.Manual:
		a.Priority, a.Holds = 1, holdsAll
	case t.Rules.On[code] == SetPause:
		a.Priority, a.Holds = min(a.Priority, 2), holdsAll
	}
	t.announce(&a, expected, seen)
	kept := &a
	if a.Public() || t.Alerts[len(t.Alerts)-1].No == 0 {
		kept = t.keep(a)
	}
	if a.Holds != holdsNothing && t.PausedBy == 0 {
		t.closeWindow(ClosePaused)
		t.PausedBy, t.PausedAt, t.UnresolvedTold = code, t.now, false
		t.emit(Event{Kind: TablePaused, Code: code})
	}
	return kept
}

// seenAgain counts a standing alert once more. One that somebody had acknowledged,
// or that had returned, is active anew, and told under its own number.
func (t *step) seenAgain(a *Alert, expected, seen Fact) {
	a.Count++
	a.LastAt = t.now
	if !a.Gone && a.AckedAt == 0 {
		return
	}
	a.Gone, a.AckedAt, a.AckedBy = false, 0, ""
	t.tellRaised(a, expected, seen)
}

// gone ends an alert whose condition is over, but leaves it for somebody to
// see if nobody has (contract.md, Alerts: returned).
func (t *step) gone(by string, code Code) { t.over(by, t.standing(code)) }

// over is gone for one alert, or none.
func (t *step) over(by string, a *Alert) {
	switch {
	case a == nil || a.Gone:
	case a.AckedAt != 0:
		t.clear(a.No, by)
	default:
		a.Gone = true
		t.say(Event{Kind: AlertReturned, Round: a.Round, Alert: a.No, Code: a.Code, By: by})
	}
}

// announce numbers an alert and tells it. One for the full view only has a
// number of its own kind, so that the public ones show no gap.
func (t *step) announce(a *Alert, expected, seen Fact) {
	if alertRules[a.Code].private && a.Holds == holdsNothing {
		t.PrivateNo++
		a.No = t.PrivateNo | privateAlert
	} else {
		t.AlertNo++
		a.No = t.AlertNo
	}
	t.tellRaised(a, expected, seen)
}

func (t *step) tellRaised(a *Alert, expected, seen Fact) {
	t.say(Event{Kind: AlertRaised, Round: a.Round, Code: a.Code, Priority: a.Priority, Alert: a.No, Expected: expected, Seen: seen, Device: a.Wire.Device, Line: a.Wire.Line})
	if a.Public() {
		a.Seq = t.Seq
	}
}

// privateAlert marks the numbers of alerts that are not public.
const privateAlert = 1 << 31

// Public reports whether the alert may be told to everybody.
func (a *Alert) Public() bool { return a.No&privateAlert == 0 }

// say makes an event about an alert, for those who know of the alert.
func (t *step) say(e Event) {
	if e.Alert&privateAlert != 0 {
		t.audit(e)
		return
	}
	t.emit(e)
}

// keep stores a standing alert in the order raised. When there is no room one
// that is not public gives way, then the newest that holds nothing, counted.
func (t *step) keep(a Alert) *Alert {
	for i := range t.Alerts {
		if t.Alerts[i].No == 0 {
			t.Alerts[i] = a
			return &t.Alerts[i]
		}
	}
	for i := range t.Alerts {
		if !t.Alerts[i].Public() {
			t.drop(i)
			t.Alerts[len(t.Alerts)-1] = a
			return &t.Alerts[len(t.Alerts)-1]
		}
	}
	t.AlertsLost++
	if a.Holds == holdsNothing {
		return &a
	}
	for i := len(t.Alerts) - 1; ; i-- {
		if t.Alerts[i].Holds == holdsNothing || i == 0 {
			if t.Alerts[i].HasCard && t.Alerts[i].Card.Counts {
				t.Shoe.Account.OutOfGame++ // nobody is asked about it any more
			}
			t.drop(i)
			t.Alerts[len(t.Alerts)-1] = a
			return &t.Alerts[len(t.Alerts)-1]
		}
	}
}

// drop takes an alert out of the list, closing the gap so that the order in
// which they were raised stays.
func (t *step) drop(i int) {
	copy(t.Alerts[i:], t.Alerts[i+1:])
	t.Alerts[len(t.Alerts)-1] = Alert{}
	if t.Alerts[0].No == 0 {
		t.AlertsLost = 0 // the flood is over
	}
}

// standing finds the oldest alert with a code.
func (s *State) standing(code Code) *Alert {
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No != 0 && a.Code == code {
			return a
		}
	}
	return nil
}

// numbered finds a standing alert by its number.
func (s *State) numbered(no uint32) *Alert {
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No == no && no != 0 {
			return a
		}
	}
	return nil
}

// clear ends an alert and resumes the table when nothing holds it any more.
func (t *step) clear(no uint32, by string) {
	for i := range t.Alerts {
		if a := t.Alerts[i]; a.No == no && no != 0 {
			t.drop(i)
			t.say(Event{Kind: AlertCleared, Round: a.Round, Alert: a.No, Code: a.Code, By: by})
			break
		}
	}
	t.resumeIfFree()
}

// resumeIfFree ends the pause once nothing holds the table any more.
func (t *step) resumeIfFree() {
	if t.PausedBy != 0 && t.held() == holdsNothing {
		code := t.PausedBy
		t.PausedBy, t.PausedAt = 0, 0
		t.Round.ActedAt = t.now
		t.emit(Event{Kind: TableResumed, Code: code})
		t.clearAll(byResume, PauseUnresolved)
	}
}

// raiseOrVoid asks what to do, or voids the round at once where the house says
// so.
func (t *step) raiseOrVoid(code Code, expected, seen Fact) {
	if t.Rules.On[code] == SetVoid {
		t.tell(code, expected, seen)
		t.voidRound(code, byRule)
		return
	}
	t.raise(code, expected, seen)
}

// clearAll ends the standing alerts with the given codes.
func (t *step) clearAll(by string, which ...Code) {
	for _, code := range which {
		for a := t.standing(code); a != nil; a = t.standing(code) {
			t.clear(a.No, by)
		}
	}
}

// held is the strongest hold of the standing alerts.
func (t *step) held() holds {
	strongest := holdsNothing
	for i := range t.Alerts {
		if a := &t.Alerts[i]; a.No != 0 && a.Holds > strongest {
			strongest = a.Holds
		}
	}
	return strongest
}

// heldBesides reports whether an alert with another code holds the table.
func (t *step) heldBesides(code Code) bool {
	for i := range t.Alerts {
		if a := &t.Alerts[i]; a.No != 0 && a.Code != code && a.Holds != holdsNothing {
			return true
		}
	}
	return false
}

// Paused reports the code that paused the table; 0 when it is not paused.
func (s *State) Paused() Code { return s.PausedBy }

// Codes lists every error rule.
func Codes() []Code {
	var all []Code
	for c := Code(1); c < codes; c++ {
		all = append(all, c)
	}
	return all
}

// Settings of the code besides its default, as Rules.Set takes them.
func (c Code) Settings() []string {
	var texts []string
	for _, s := range alertRules[c].settings {
		texts = append(texts, c.String()+"="+settingText[s])
	}
	return texts
}
