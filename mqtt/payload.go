package mqtt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"shoed/odds"
	"shoed/round"
)

// maxMessage bounds every message we send, in bytes (contract.md: "No message
// over 32 KB"), so that any broker and any board can take it.
const maxMessage = 32 << 10

// Contract is the version of the contract: its major number, as in the topics.
const Contract = "v1"

// Topic is the full name of one of a table's topics, such as state.
func Topic(site, table, name string) string {
	return "shoed/" + Contract + "/" + site + "/" + table + "/" + name
}

// Envelope begins every outgoing object (contract.md, Payloads).
type Envelope struct {
	Schema string `json:"schema"` // name/major.minor
	Site   string `json:"site"`
	Table  string `json:"table"`
	Epoch  string `json:"epoch"` // id of the journal
	Seq    uint64 `json:"seq"`   // of an event its own, elsewhere that of the last event it reflects
	TS     string `json:"ts"`    // RFC 3339, UTC, ms: when it happened
	Clock  string `json:"clock"` // synced, holdover or unset
	Sim    bool   `json:"sim,omitempty"`
	// Delayed: it was durable before this connection went live, so the table
	// has gone on since, and it may be a repeat.
	Delayed bool `json:"delayed,omitempty"`
}

func stamp(at time.Time) string { return at.UTC().Format(round.EventTime) }

// ShoeID is a shoe's id, unique among all tables: table-1-S000731.
func ShoeID(table string, shoe uint32) string { return fmt.Sprintf("%s-S%06d", table, shoe) }

// RoundID is a round's id, unique among all tables: table-1-S000731-R041.
func RoundID(table string, shoe uint32, no uint16) string {
	return fmt.Sprintf("%s-R%03d", ShoeID(table, shoe), no)
}

// ParseRoundID reads the id of a round of the table.
func ParseRoundID(table, id string) (shoe uint32, no uint16, err error) {
	_, err = fmt.Sscanf(id, table+"-S%d-R%d", &shoe, &no)
	if err != nil || id != RoundID(table, shoe, no) {
		return 0, 0, fmt.Errorf("%q is not a round's id like %s", id, RoundID(table, 731, 41))
	}
	return shoe, no, nil
}

// AlertID is an alert's id, unique among all tables: table-1-A000123.
func AlertID(table string, no uint32) string { return table + "-" + round.AlertText(no) }

// Life is where a table's controller stands.
type Life string

const (
	Online  Life = "online"  // the other documents are there and events come
	Stopped Life = "stopped" // ended as asked
	Offline Life = "offline" // the will: the connection was lost
)

// Status is the retained document status/1.0, and the will.
type Status struct {
	Envelope
	State    Life   `json:"state"`
	Instance string `json:"instance"` // of this process
	Session  uint64 `json:"session"`  // grows with each connection
	Reason   string `json:"reason,omitempty"`
	Version  string `json:"version"`
}

// Software is the running program.
type Software struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	SHA256  string `json:"sha256"` // of the running file
}

// Reader is the card reader as it is configured.
type Reader struct {
	Protocol string `json:"protocol"`
	Masked   *bool  `json:"masked"` // it names a card's face only later; null until it has told one
	Device   string `json:"device"`
}

// Game is what is dealt, by which rules.
type Game struct {
	Decks        uint8    `json:"decks"`
	CommissionBP uint16   `json:"commission_bp"` // of a Banker win, in hundredths of a percent
	Rules        []string `json:"rules"`         // name=value, game.md
	RulesHash    string   `json:"rules_hash"`    // SHA-256 over Rules, a line each, and both tables
	RulesRelaxed []string `json:"rules_relaxed"` // those looser than the defaults

	Bets      []Bet          `json:"bets"`              // those offered, a row for each way to win
	Insurance []Insurance    `json:"insurance"`         // empty when none is offered
	RTPMax    *odds.Fraction `json:"rtp_max,omitempty"` // of the best bet on a new shoe, per unit staked
}

// Bet is what a bet pays in one of its ways to win.
type Bet struct {
	Bet       string `json:"bet"`
	Tier      string `json:"tier"`
	Pays      string `json:"pays"`
	LastRound uint8  `json:"last_round,omitempty"` // of a shoe in which it is open
}

// Insurance is a row of the insurance table.
type Insurance struct {
	Row         uint8  `json:"row"`
	Side        string `json:"side"`
	Stage       string `json:"stage"`
	PlayerTotal string `json:"player_total"` // a total, a range, or not_shown
	BankerTotal string `json:"banker_total"`
	WinsOn      string `json:"wins_on"`
	Pays        string `json:"pays"`
}

// Limits of the bets in whole units of a currency, as a supervisor has set them.
type Limits struct {
	Currency     string              `json:"currency"`               // ISO 4217
	Min          int64               `json:"min"`                    // of a bet
	Max          int64               `json:"max"`                    // of a bet
	Differential int64               `json:"differential,omitempty"` // largest allowed difference between Player and Banker totals (seed 001)
	Bets         map[string]BetLimit `json:"bets,omitempty"`         // those that differ
}

// BetLimit is the least and the most of one bet.
type BetLimit struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

var currency = regexp.MustCompile(`^[A-Z]{3}$`)

// ParseLimits reads the arguments of the command limits.
func ParseLimits(args []byte) (*Limits, error) {
	var l Limits
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("want currency, min, max, differential, bets: %w", err)
	}
	if !currency.MatchString(l.Currency) || l.Min < 0 || l.Max < l.Min || l.Differential < 0 {
		return nil, errors.New("want a currency such as THB, 0 ≤ min ≤ max, and differential not below 0")
	}
	for name, b := range l.Bets {
		if _, err := round.ParseBet(name); err != nil {
			return nil, err
		}
		if b.Min < 0 || b.Max < b.Min {
			return nil, fmt.Errorf("bet %s: want 0 ≤ min ≤ max", name)
		}
	}
	return &l, nil
}

// Info is the retained document info/1.0.
type Info struct {
	Envelope
	Names      map[string]string `json:"names,omitempty"` // what people call the table, per language
	Game       Game              `json:"game"`
	Limits     *Limits           `json:"limits,omitempty"` // absent until somebody has set them
	Reader     Reader            `json:"reader"`
	Placement  string            `json:"placement"` // which sensors see the boxes: none, presence, rfid
	Software   Software          `json:"software"`
	Contract   string            `json:"contract"`
	Locales    []string          `json:"locales"`             // languages that texts come in
	ConfigHash string            `json:"config_hash"`         // SHA-256 over the effective configuration, without secrets
	TimeZone   string            `json:"time_zone,omitempty"` // IANA name

	PublicKey []byte `json:"public_key"` // Ed25519, base64: what the table signs with; a new one was made when it changes
}

// Facts are what info tells besides the rules.
type Facts struct {
	Limits *Limits
	Masked *bool // the reader masks faces; nil until it has told a card
	Setup
}

// Setup is what info tells of the configuration in force.
type Setup struct {
	Names      map[string]string // of the table, per language
	Relaxed    []string          // besides the rules, what is looser than usual
	ConfigHash string            // of all of it, without secrets
}

var noFacts Facts

func (p *Publisher) info(env Envelope, s *round.State) Info {
	facts := p.facts()
	reader := p.o.Reader
	reader.Masked = facts.Masked
	game := gameOf(s.Rules)
	game.RulesRelaxed = append(game.RulesRelaxed, facts.Relaxed...)
	return Info{
		Envelope: env, Names: facts.Names, Game: game, Limits: facts.Limits, Reader: reader, Placement: s.Rules.Placement.String(),
		Software: p.o.Software, Contract: Contract, Locales: []string{"en"}, ConfigHash: facts.ConfigHash, TimeZone: p.o.TimeZone,
		PublicKey: p.o.Key.Public().(ed25519.PublicKey),
	}
}

func gameOf(rules round.Rules) Game {
	texts := rules.Texts()
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n") + "\n" + rules.Bets.CSV() + rules.InsuranceTable.CSV()))
	relaxed := rules.Relaxed()
	if relaxed == nil {
		relaxed = []string{}
	}
	game := Game{Decks: rules.Decks, CommissionBP: rules.CommissionBP, Rules: texts, RulesHash: hex.EncodeToString(sum[:]), RulesRelaxed: relaxed, Bets: []Bet{}, Insurance: []Insurance{}}
	for _, row := range rules.Bets.Rows[:rules.Bets.N] {
		if rules.Offered(row.Bet) {
			game.Bets = append(game.Bets, Bet{row.Bet.String(), row.Tier.String(), rules.Pays(row).String(), row.Last})
		}
	}
	if rules.Insurance == round.InsuranceOn {
		for _, r := range rules.InsuranceTable.Rows[:rules.InsuranceTable.N] {
			game.Insurance = append(game.Insurance, Insurance{r.No, r.Side.String(), r.Stage.String(),
				r.PlayerTotal.String(), r.BankerTotal.String(), r.WinsOn.String(), r.Pays.String()})
		}
	}
	if best, err := odds.RTPMax(&rules); err == nil { // without a bet there is none
		game.RTPMax = &odds.Fraction{Rat: best}
	}
	return game
}

// Phase is what the table is doing, in one word.
type Phase string

const (
	PhaseClosed        Phase = "closed" // no shoe, or closed by a supervisor
	PhaseBurning       Phase = "burning"
	PhaseReady         Phase = "ready" // a round may begin
	PhaseBetting       Phase = "betting"
	PhaseNoMoreBets    Phase = "no_more_bets"
	PhaseDealing       Phase = "dealing"
	PhaseInsurance     Phase = "insurance" // dealing, with an insurance window open
	PhaseDecided       Phase = "decided"
	PhasePaused        Phase = "paused"
	PhaseVoid          Phase = "void"
	PhaseLastRoundOver Phase = "last_round_over"
)

// phaseOf puts a pause before all else, because it is what a person must act
// on, and bets before the round that is over, because they are for the next.
func phaseOf(s *round.State) Phase {
	switch {
	case s.PausedBy != 0:
		return PhasePaused
	case s.Shoe.Phase == round.NoShoe, s.Closed:
		return PhaseClosed
	case s.Shoe.Phase == round.ShoeFirst, s.Shoe.Phase == round.ShoeBurning:
		return PhaseBurning
	case s.Shoe.Phase == round.ShoeOver:
		return PhaseLastRoundOver
	case s.Round.Open && s.Round.Insured.Open:
		return PhaseInsurance
	case s.Round.Open:
		return PhaseDealing
	case s.Bets == round.BetsOpen:
		return PhaseBetting
	case s.Bets == round.BetsClosed:
		return PhaseNoMoreBets
	case s.Round.Decided:
		return PhaseDecided
	case s.Round.Void:
		return PhaseVoid
	}
	return PhaseReady
}

// Paused says why the table is paused.
type Paused struct {
	Alert string `json:"alert,omitempty"` // the one that holds it
	Code  string `json:"code"`            // what began the pause
	Since string `json:"since"`
}

// Shoe is the shoe in hand.
type Shoe struct {
	ID         string  `json:"id"`
	No         uint32  `json:"no"`
	Decks      uint8   `json:"decks"`
	CardsOut   uint16  `json:"cards_out"`
	CutCardOut bool    `json:"cut_card_out"`
	LastRound  *uint16 `json:"last_round"` // its number, once the cut card is out
}

// Decided is a round's number and result as the table has shown them.
type Decided struct {
	ID      string         `json:"id"`
	No      uint16         `json:"no"`
	Rev     uint8          `json:"rev"`
	Player  round.HandText `json:"player"`
	Banker  round.HandText `json:"banker"`
	Outcome *string        `json:"outcome"` // null until decided, and when void
	Tags    []string       `json:"tags"`
}

// Round is the round in hand, or the last one until the next opens.
type Round struct {
	Decided
	Due  *string `json:"due"` // the box that the next card goes to, as far as shown faces tell
	Void bool    `json:"void,omitempty"`
}

// Counts are the decided rounds of the shoe in hand.
type Counts struct {
	Player     uint16 `json:"player"`
	Banker     uint16 `json:"banker"`
	Tie        uint16 `json:"tie"`
	PlayerPair uint16 `json:"player_pair"`
	BankerPair uint16 `json:"banker_pair"`
	Natural    uint16 `json:"natural"`
	Rounds     uint16 `json:"rounds"`
	Void       uint16 `json:"void"`
}

// Devices are the table's devices: up or down, or away.
type Devices struct {
	Reader string `json:"reader"`           // the one in use
	Active string `json:"active,omitempty"` // its name, once another than the first was put in use

	Lost []string `json:"lost,omitempty"` // which of boxes, panel and lamps are away
}

// State is the retained document state/1.0: the table as it has shown itself.
type State struct {
	Envelope
	Phase        Phase    `json:"phase"`
	Paused       *Paused  `json:"paused"`
	Shoe         *Shoe    `json:"shoe"`
	Round        *Round   `json:"round"`
	Last         *Decided `json:"last"`                     // the last decided round of this shoe
	Bets         string   `json:"bets,omitempty"`           // open or closed; absent when nobody tells
	BetsClosesAt string   `json:"bets_closes_at,omitempty"` // as announced while they are open
	Counts       Counts   `json:"counts"`
	Devices      Devices  `json:"devices"`
	AlertsActive int      `json:"alerts_active"`
}

// StateOf is what may be said of s: of the cards only those that the table has
// shown (game.md section 4).
func StateOf(env Envelope, s *round.State) State {
	doc := State{
		Envelope: env, Phase: phaseOf(s), Paused: pausedOf(env.Table, s),
		Counts: Counts{
			Player: s.Tally.Player, Banker: s.Tally.Banker, Tie: s.Tally.Tie,
			PlayerPair: s.Tally.PlayerPair, BankerPair: s.Tally.BankerPair, Natural: s.Tally.Natural,
			Rounds: s.Tally.Rounds, Void: s.Tally.Void,
		},
		Devices: Devices{Reader: "up", Active: s.Active},
		Bets:    map[round.BetsState]string{round.BetsOpen: "open", round.BetsClosed: "closed"}[s.Bets],
	}
	if s.ReaderDown {
		doc.Devices.Reader = "down"
	}
	for _, device := range []string{round.BoxesDevice, round.PanelDevice, round.LampsDevice} {
		if s.Failing(device) {
			doc.Devices.Lost = append(doc.Devices.Lost, device)
		}
	}
	if s.BetsCloseAt != 0 {
		doc.BetsClosesAt = stamp(time.Unix(0, s.BetsCloseAt))
	}
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No != 0 && a.Public() {
			doc.AlertsActive++
		}
	}
	if s.Shoe.Phase == round.NoShoe {
		return doc
	}
	doc.Shoe = &Shoe{ID: ShoeID(env.Table, s.Shoe.No), No: s.Shoe.No, Decks: s.Shoe.Decks, CardsOut: s.Shoe.Out, CutCardOut: s.Shoe.CutOut}
	if no := s.Shoe.LastNo; no != 0 {
		doc.Shoe.LastRound = &no
	}
	if s.Round.No != 0 {
		doc.Round = roundOf(env.Table, s)
	}
	if l := &s.Last; l.No != 0 {
		d := decided(env.Table, s, l.No, l.Rev, l.Player, l.Banker, l.Tags)
		d.Outcome = text(l.Outcome)
		doc.Last = &d
	}
	return doc
}

func roundOf(table string, s *round.State) *Round {
	r := &s.Round
	var tags round.Tags // judged tags stay in a round that was made void later
	switch {
	case r.Decided:
		tags = r.Tags
	case r.Free:
		tags = round.TagFreeHand
	}
	doc := &Round{Decided: decided(table, s, r.No, r.Rev, r.Shown(round.Player), r.Shown(round.Banker), tags), Void: r.Void}
	if r.Decided {
		doc.Outcome = text(r.Outcome)
	}
	if r.Open && r.Due != 0 {
		doc.Due = text(r.Due)
	}
	return doc
}

func decided(table string, s *round.State, no uint16, rev uint8, player, banker round.Hand, tags round.Tags) Decided {
	return Decided{
		ID: RoundID(table, s.Shoe.No, no), No: no, Rev: rev,
		Player: player.Text(), Banker: banker.Text(), Tags: tags.Texts(),
	}
}

func text(v fmt.Stringer) *string {
	s := v.String()
	return &s
}

// pausedOf names the alert behind a pause: the oldest with its code or, when
// that one is answered and another holds the table on, the oldest that does.
func pausedOf(table string, s *round.State) *Paused {
	if s.PausedBy == 0 {
		return nil
	}
	doc := &Paused{Code: s.PausedBy.String(), Since: stamp(time.Unix(0, s.PausedAt))}
	for i := range s.Alerts {
		a := &s.Alerts[i]
		if a.No == 0 || a.Holds == 0 || !a.Public() {
			continue
		}
		if a.Code == s.PausedBy {
			doc.Alert = AlertID(table, a.No)
			break
		}
		if doc.Alert == "" {
			doc.Alert = AlertID(table, a.No)
		}
	}
	return doc
}

// Record is one event as the journal keeps it, or a command.
type Record struct {
	No      uint64 // the journal's own number
	Seq     uint64 // 0 for what is not public
	At      time.Time
	Command bool     // Body is a Given
	Cause   string   // user/cmd_id of the command that led to the event; "" without one
	Body    []byte   // of an event one JSON line: seq, at, then the fields of round.EventText
	Head    [32]byte // of the journal's chain at it, fit to be published
}

// Cause is the command that led to an event.
type Cause struct {
	CmdID string `json:"cmd_id"`
	User  string `json:"user"`
}

// Event is the message event/1.0: an event as game.md section 7 writes it,
// without at, which is the envelope's ts, and with its ids.
type Event struct {
	Envelope
	round.EventText
	ShoeID  string `json:"shoe_id,omitempty"`
	RoundID string `json:"round_id,omitempty"`
	Cause   *Cause `json:"cause,omitempty"` // the command that led to it
	Chain   *Chain `json:"chain,omitempty"` // with what a round came to
}

// EventOf is the message that r is sent as by the table with that key. It fails
// on a body that is not an event's or has another number than r: the journal
// holds none such.
func EventOf(env Envelope, r Record, key ed25519.PrivateKey) (Event, error) {
	line := struct {
		Seq uint64 `json:"seq"`
		round.EventText
	}{}
	if err := json.Unmarshal(r.Body, &line); err != nil {
		return Event{}, fmt.Errorf("event %d: its record is not an event's JSON: %w", r.Seq, err)
	}
	if line.Seq != r.Seq || line.Ev == "" {
		return Event{}, fmt.Errorf("event %d: its record holds seq %d, ev %q", r.Seq, line.Seq, line.Ev)
	}
	doc := Event{Envelope: env, EventText: line.EventText}
	if doc.Alert != "" {
		doc.Alert = env.Table + "-" + doc.Alert
	}
	if doc.Shoe != nil {
		doc.ShoeID = ShoeID(env.Table, *doc.Shoe)
		if doc.Round != nil {
			doc.RoundID = RoundID(env.Table, *doc.Shoe, *doc.Round)
		}
	}
	if user, id, found := strings.Cut(r.Cause, "/"); found {
		doc.Cause = &Cause{CmdID: id, User: user}
	}
	if isResult(doc.Ev) {
		doc.Chain = chainOf(&env, &r, key)
	}
	return doc, nil
}

// ReaderHealth is what the reader's decoder has counted since the start.
type ReaderHealth struct {
	Frames         uint64            `json:"frames"`
	Refused        map[string]uint64 `json:"refused"`           // by reason
	LastFrameAgeMS *int64            `json:"last_frame_age_ms"` // null before the first
	LostEdges      uint64            `json:"lost_edges,omitempty"`
	Bounces        uint64            `json:"bounces,omitempty"` // changes of a switch that did not last
}

// Backlog is where the publisher stands.
type Backlog struct {
	Outbox      uint64 `json:"outbox"`        // events durable but not acknowledged
	OldestAgeMS *int64 `json:"oldest_age_ms"` // of the first of them; null when there is none
	Reconnects  uint64 `json:"reconnects"`    // since the start
}

// Machine is what the computer says of itself. What it does not know is
// absent: only a Raspberry Pi watches its supply.
type Machine struct {
	DataFreeBytes *int64 `json:"data_free_bytes,omitempty"` // of the journal's file system
	Throttled     *bool  `json:"throttled,omitempty"`       // slowed down by heat or a weak supply, now
	Undervoltage  *bool  `json:"undervoltage,omitempty"`    // the supply is too low, now
}

// Health is the message health/1.0. Its seq is that of the last event that a
// broker acknowledged: what a consumer should have.
type Health struct {
	Envelope
	UptimeS  int64 `json:"uptime_s"`
	RSSBytes int64 `json:"rss_bytes"`
	Machine
	Reader  *ReaderHealth           `json:"reader,omitempty"`  // the one in use
	Readers map[string]ReaderHealth `json:"readers,omitempty"` // each, and what sees the boxes and the panel, where there are several
	MQTT    Backlog                 `json:"mqtt"`
	Storage string                  `json:"storage,omitempty"` // ok, full
	// Commands counts since the start what came as a command, by the code of its
	// reply; of a flood most got none.
	Commands map[ReplyCode]uint64 `json:"commands,omitempty"`
	Chain    *Chain               `json:"chain,omitempty"` // at the last event, sent or not; absent before the first
}

// checkMessage sees every message; the tests hold it against its schema.
var checkMessage = func(body []byte) {}

// encode is the bytes of a message.
func encode(message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if len(body) > maxMessage {
		return nil, fmt.Errorf("a %T of %d bytes: at most %d are allowed", message, len(body), maxMessage)
	}
	checkMessage(body)
	return body, nil
}
