package mqtt

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"shoed/round"
)

const (
	// maxItems stand in the document at once (contract.md, Alerts); of more a
	// supervisor could not take care either.
	maxItems = 16
	// itemsRoom is what they may take together, so that the document stays
	// under maxMessage with its envelope.
	itemsRoom = maxMessage - 1<<10
)

// Alerts is the retained document alerts/1.0: what stands and waits for
// somebody, the most urgent first, of equals the oldest.
type Alerts struct {
	Envelope
	Items []AlertItem `json:"items"`
	More  int         `json:"more"` // stand besides or were not kept for want of room
}

// AlertItem is a standing alert with all that a supervisor's page needs.
type AlertItem struct {
	Alert        string  `json:"alert"`
	Code         string  `json:"code"`
	DedupKey     string  `json:"dedup_key"` // seen again under the same key, count goes up
	Priority     string  `json:"priority"`  // P1 stop, P2 before the next round, P3 this shift
	State        string  `json:"state"`     // active, acked, returned
	Latched      bool    `json:"latched"`   // stands until it is decided
	Blocking     bool    `json:"blocking"`  // holds the table
	RaisedAt     string  `json:"raised_at"`
	LastAt       string  `json:"last_at"`
	Count        uint16  `json:"count"`
	Acked        *Acked  `json:"acked"`
	Cleared      *string `json:"cleared"`                 // null: what is cleared stands no more
	ShelvedUntil *string `json:"shelved_until,omitempty"` // kept aside until then

	Refs        Refs              `json:"refs"`
	Title       string            `json:"title"`
	Key         string            `json:"key"`  // of the texts, for translation
	Args        map[string]string `json:"args"` // what they speak of
	Cause       string            `json:"cause"`
	Consequence string            `json:"consequence"`
	Response    string            `json:"response"`
	Evidence    *Evidence         `json:"evidence"` // null when the journal has dropped it
	Affects     string            `json:"affects"`  // all, insurance, none
	Proposal    *string           `json:"proposal"` // what confirming would accept
	Options     []Option          `json:"options"`
}

// Acked says who has seen an alert.
type Acked struct {
	By string `json:"by"`
	At string `json:"at"`
}

// Refs say what an alert is about.
type Refs struct {
	ShoeID  *string `json:"shoe_id"`
	RoundID *string `json:"round_id"`
	Seq     uint64  `json:"seq"` // of the event that raised it
}

// Evidence is why an alert was raised.
type Evidence struct {
	Expected string   `json:"expected"`
	Seen     []string `json:"seen"`
	Rule     string   `json:"rule"`
}

// Option is a ready-made command: a page adds cmd_id, issued_at, ttl_ms and reason.
type Option struct {
	Command string            `json:"command"`
	Label   string            `json:"label"`
	Role    string            `json:"role"` // who may give it
	Expect  Expect            `json:"expect"`
	Args    map[string]string `json:"args"`
}

// AlertsOf is the document of s. raised gives the public event with a number,
// nil when it is gone: what was expected and seen is kept there only.
func AlertsOf(env Envelope, s *round.State, raised func(seq uint64) *round.EventText) Alerts {
	doc := Alerts{Envelope: env, Items: []AlertItem{}, More: int(s.AlertsLost)}
	standing := make([]*round.Alert, 0, len(s.Alerts))
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No != 0 && a.Public() {
			standing = append(standing, a)
		}
	}
	slices.SortStableFunc(standing, func(a, b *round.Alert) int { return cmp.Compare(a.Priority, b.Priority) })
	room := itemsRoom
	for i, a := range standing {
		item := itemOf(env, s, a, raised(a.Seq))
		body, err := json.Marshal(item)
		room -= len(body) + 1
		if err != nil || i == maxItems || room < 0 {
			doc.More += len(standing) - i
			break
		}
		doc.Items = append(doc.Items, item)
	}
	return doc
}

func itemOf(env Envelope, s *round.State, a *round.Alert, raised *round.EventText) AlertItem {
	told := a.Code.Advice()
	item := AlertItem{
		Alert: AlertID(env.Table, a.No), Code: a.Code.String(), DedupKey: dedupKey(env.Table, s, a),
		Priority: round.PriorityText(a.Priority), State: a.State().String(), Latched: a.Latched(), Blocking: a.Blocks(),
		RaisedAt: stamp(time.Unix(0, a.At)), LastAt: stamp(time.Unix(0, a.LastAt)), Count: a.Count,
		Refs: Refs{Seq: a.Seq}, Title: told.Title, Key: "alert." + a.Code.String(), Args: map[string]string{},
		Cause: told.Cause, Consequence: told.Consequence, Response: told.Response,
		Affects: a.Code.Affects().String(), Options: optionsOf(env, s, a),
	}
	if a.AckedAt != 0 {
		item.Acked = &Acked{By: a.AckedBy, At: stamp(time.Unix(0, a.AckedAt))}
	}
	if a.Shelved != 0 {
		until := stamp(time.Unix(0, a.Shelved))
		item.ShelvedUntil = &until
	}
	if proposal := s.Proposal(a); proposal != "" {
		item.Proposal = &proposal
	}
	if raised == nil {
		return item
	}
	item.Evidence = &Evidence{Expected: raised.Expected, Seen: []string{raised.Seen}, Rule: raised.Rule}
	item.Args["expected"], item.Args["seen"] = raised.Expected, raised.Seen
	if raised.Line != "" {
		item.Args["device"], item.Args["line"] = raised.Device, raised.Line
	}
	if raised.Shoe != nil {
		id := ShoeID(env.Table, *raised.Shoe)
		item.Refs.ShoeID = &id
		if raised.Round != nil {
			id := RoundID(env.Table, *raised.Shoe, *raised.Round)
			item.Refs.RoundID = &id
		}
	}
	return item
}

// dedupKey is {table}:{code}:{round|device}, with its line for a wire.
func dedupKey(table string, s *round.State, a *round.Alert) string {
	about := "table"
	switch {
	case a.Wire != (round.Wire{}):
		about = a.Wire.Device + "/" + a.Wire.Line
	case a.Code.Device():
		about, _, _ = strings.Cut(a.Code.String(), ".")
	case a.Round != 0:
		about = RoundID(table, s.Shoe.No, a.Round)
	}
	return table + ":" + a.Code.String() + ":" + about
}

// optionsOf are the answers to an alert, as commands that can be sent as they
// are, and what can be done with any alert.
func optionsOf(env Envelope, s *round.State, a *round.Alert) []Option {
	id := AlertID(env.Table, a.No)
	expect := Expect{Epoch: env.Epoch, Alert: id}
	if a.Round != 0 && a.Round == s.Round.No {
		expect.RoundID, expect.Rev = RoundID(env.Table, s.Shoe.No, a.Round), &s.Round.Rev
	}
	options := []Option{}
	add := func(do round.Do, label, where string) {
		args := map[string]string{"alert": id}
		if where != "" {
			args["where"] = where
		}
		options = append(options, Option{Command: do.String(), Label: label, Role: commands[do.String()].needs.String(), Expect: expect, Args: args})
	}
	for _, do := range a.Code.Answers() {
		if do != round.DoHoldCard {
			add(do, doLabels[do], "")
			continue
		}
		for _, where := range a.Code.Wheres() {
			add(do, whereLabels[where], where.String())
		}
	}
	if a.AckedAt == 0 && !slices.Contains(a.Code.Answers(), round.DoAck) {
		add(round.DoAck, doLabels[round.DoAck], "")
	}
	switch {
	case a.Priority == 1:
	case a.Shelved == 0:
		add(round.DoShelve, doLabels[round.DoShelve], "")
	default:
		add(round.DoUnshelve, doLabels[round.DoUnshelve], "")
	}
	return options
}

// Labels of the options. A correction needs the cards besides.
var (
	doLabels = map[round.Do]string{
		round.DoResume: "Go on", round.DoAck: "Acknowledge", round.DoConfirm: "Confirm", round.DoCorrect: "Correct the cards",
		round.DoVoid: "Void the round", round.DoArranged: "Cards are arranged", round.DoNewShoe: "Load a new shoe",
		round.DoManual: "Give the cards by hand", round.DoSensorsOff: "Switch the sensors off", round.DoShelve: "Keep aside for an hour",
		round.DoUnshelve: "Keep aside no longer",
	}
	whereLabels = map[round.Where]string{
		round.WhereNextRound: "Deal it into the next round", round.WhereBurn: "Burn the card",
		round.WhereFreeHand: "Deal a free hand with it", round.WhereUse: "Use it when the table goes on",
	}
)

// alertsAlike reports that the document of both states is the same.
func alertsAlike(a, b *round.State) bool {
	return a.Alerts == b.Alerts && a.AlertsLost == b.AlertsLost && a.Shoe.No == b.Shoe.No && a.Round.No == b.Round.No && a.Round.Rev == b.Round.Rev
}
