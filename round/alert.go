package round

import "fmt"

// Code names an error rule (game.md section 5). Its text is stable.
type Code uint8

const (
	DealExtraCard Code = iota + 1
	DealEarly
	DealMissingCard
	DealWhilePaused
	DealPushedBack
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
	ShoeBurn
	ShoeChangeUnproven
	ShoeShort
	ShoeTooMany
	ShoeDrained
	PowerMidRound
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

// alertRule is one row of game.md section 5.
type alertRule struct {
	name     string
	priority uint8 // 1 stop, 2 before the next round, 3 this shift, 4 noted only
	holds    holds
	affects  Affects
	seed     string // the house document that asks for it; "" where only game.md does
	answers  []Do
	settings []Setting // besides the default
}

var alertRules = [codes]alertRule{
	DealExtraCard: {"deal.extra_card", 2, holdsDealing, AffectsNone, "001",
		[]Do{DoHoldCard}, []Setting{SetNextRound, SetBurn, SetFreeHand}},
	DealEarly: {"deal.early", 2, holdsNothing, AffectsNone, "001",
		[]Do{DoAck}, []Setting{SetVoid}},
	DealMissingCard: {"deal.missing_card", 1, holdsAll, AffectsAll, "001",
		[]Do{DoCorrect, DoVoid, DoResume}, nil},
	DealWhilePaused: {"deal.while_paused", 2, holdsDealing, AffectsNone, "001",
		[]Do{DoHoldCard}, nil},
	DealPushedBack: {"deal.pushed_back", 1, holdsAll, AffectsAll, "001",
		[]Do{DoConfirm, DoCorrect, DoVoid}, nil},
	ReaderUnread: {"reader.unread", 1, holdsAll, AffectsAll, "001",
		[]Do{DoConfirm, DoCorrect, DoVoid}, nil},
	ReaderGapped: {"reader.gap", 1, holdsAll, AffectsAll, "001",
		[]Do{DoConfirm, DoCorrect, DoVoid}, []Setting{SetVoid}},
	ReaderLost: {"reader.lost", 2, holdsNothing, AffectsNone, "001",
		nil, nil},
	ReaderDisagrees: {"reader.disagrees", 1, holdsAll, AffectsAll, "001",
		[]Do{DoConfirm, DoCorrect, DoVoid}, nil},
	ReaderQuit: {"reader.quit", 2, holdsNothing, AffectsAll, "001",
		[]Do{DoAck}, nil},
	ReaderOutOfGame: {"reader.out_of_game", 4, holdsNothing, AffectsNone, "",
		nil, []Setting{SetPause}},
	ReaderLocked: {"reader.locked", 3, holdsNothing, AffectsNone, "",
		[]Do{DoAck}, nil},
	ReaderSetting: {"reader.setting", 2, holdsNothing, AffectsNone, "",
		[]Do{DoAck}, nil},
	ReaderNoVerdict: {"reader.no_verdict", 3, holdsNothing, AffectsNone, "",
		[]Do{DoAck}, nil},
	DealerCall: {"dealer.call", 2, holdsAll, AffectsNone, "001",
		[]Do{DoResume, DoVoid}, nil},
	ShoeBurn: {"shoe.burn", 2, holdsAll, AffectsNone, "001",
		[]Do{DoConfirm, DoNewShoe}, nil},
	ShoeChangeUnproven: {"shoe.change_unproven", 2, holdsAll, AffectsNone, "",
		[]Do{DoConfirm, DoNewShoe}, []Setting{SetAccept}},
	ShoeShort: {"shoe.short", 2, holdsAll, AffectsNone, "",
		[]Do{DoNewShoe}, nil},
	ShoeTooMany: {"shoe.too_many", 1, holdsAll, AffectsAll, "",
		[]Do{DoVoid, DoNewShoe}, nil},
	ShoeDrained: {"shoe.drained", 3, holdsNothing, AffectsNone, "001",
		[]Do{DoAck}, nil},
	PowerMidRound: {"power.mid_round", 1, holdsAll, AffectsAll, "001",
		[]Do{DoConfirm, DoCorrect, DoVoid}, nil},
}

// Alert is an abnormal condition that waits for an answer.
type Alert struct {
	No       uint32 // 0: no alert
	Code     Code
	Priority uint8
	Holds    holds
	Round    uint16 // the round it is about; 0 none
	At       int64  // ns UTC
	Count    uint16 // how often it was seen
	ByReader bool   // raised by the reader's own fault, which may settle it
	Decks    uint8  // of the new shoe it is about; 0 as the rules say
	HasCard  bool
	Card     Drawn // the card it is about: an extra card, a re-read, a shoe's first
}

// MaxAlerts standing at once; more are counted (contract.md). Alerts that
// hold the table are far fewer than this, so none of those is ever left out.
const MaxAlerts = 16

func (a *Alert) allows(do Do) bool {
	for _, d := range alertRules[a.Code].answers {
		if d == do {
			return true
		}
	}
	return false
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

// Answers that clear the code, as game.md lists them.
func (c Code) Answers() []Do { return alertRules[c].answers }

// Affects says which bets the code touches.
func (c Code) Affects() Affects { return alertRules[c].affects }

// Who cleared an alert, where it was not a person.
const (
	byRule   = "rule"   // the house decided beforehand
	byCard   = "card"   // the due card came
	byReader = "reader" // it was settled at the reader
	byDevice = "device" // it came back
	byVoid   = "void"   // its round is void
)

// tell reports an alert that the house's rules answer at once: it never
// stands and nothing waits for it.
func (t *step) tell(code Code, expected, seen Fact) {
	t.AlertNo++
	t.emit(Event{Kind: AlertRaised, Alert: t.AlertNo, Code: code, Priority: alertRules[code].priority, Expected: expected, Seen: seen})
	t.emit(Event{Kind: AlertCleared, Alert: t.AlertNo, Code: code, By: byRule})
}

// raise makes an alert stand, pausing the table when its rule says so. The
// same code about the same round is one alert seen again.
func (t *step) raise(code Code, expected, seen Fact) *Alert {
	rule := &alertRules[code]
	about := uint16(0)
	if t.Round.Open || t.Round.Decided {
		about = t.Round.No
	}
	for i := range t.Alerts {
		if a := &t.Alerts[i]; a.No != 0 && a.Code == code && a.Round == about {
			a.Count++
			return a
		}
	}
	a := Alert{Code: code, Priority: rule.priority, Holds: rule.holds, Round: about, At: t.at.UnixNano(), Count: 1}
	if code == ReaderLost && t.Round.Open {
		a.Priority, a.Holds = 1, holdsAll
	}
	if code == ReaderOutOfGame && t.Rules.On[code] == SetPause {
		a.Priority, a.Holds = 2, holdsAll
	}
	t.AlertNo++
	a.No = t.AlertNo
	t.emit(Event{Kind: AlertRaised, Round: about, Alert: a.No, Code: code, Priority: a.Priority, Expected: expected, Seen: seen})
	kept := &a
	if a.Priority < 4 {
		kept = t.keep(a)
	}
	if a.Holds != holdsNothing && t.PausedBy == 0 {
		t.PausedBy = code
		t.emit(Event{Kind: TablePaused, Code: code})
	}
	return kept
}

// keep stores a standing alert in the order raised; when there is no room the
// newest that holds nothing gives way and is counted.
func (t *step) keep(a Alert) *Alert {
	for i := range t.Alerts {
		if t.Alerts[i].No == 0 {
			t.Alerts[i] = a
			return &t.Alerts[i]
		}
	}
	t.AlertsLost++
	if a.Holds == holdsNothing {
		return &a
	}
	for i := len(t.Alerts) - 1; ; i-- {
		if t.Alerts[i].Holds == holdsNothing || i == 0 {
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

// clear ends an alert and resumes the table when nothing holds it any more.
func (t *step) clear(no uint32, by string) {
	for i := range t.Alerts {
		if a := t.Alerts[i]; a.No == no && no != 0 {
			t.drop(i)
			t.emit(Event{Kind: AlertCleared, Round: a.Round, Alert: a.No, Code: a.Code, By: by})
			break
		}
	}
	if t.PausedBy != 0 && t.held() == holdsNothing {
		code := t.PausedBy
		t.PausedBy = 0
		t.emit(Event{Kind: TableResumed, Code: code})
	}
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
