package round

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

var (
	eventText = []string{"", "shoe.loaded", "shoe.burned", "shoe.started", "shoe.cut_card", "shoe.ended", "shoe.reconciled",
		"round.opened", "card.dealt", "card.shown", "round.decided", "round.settled", "round.corrected", "round.voided",
		"insurance.opened", "insurance.closed", "insurance.voided", "insurance.settled", "table.paused", "table.resumed",
		"alert.raised", "alert.returned", "alert.acked", "alert.cleared", "answer.accepted", "answer.refused", "reader.noted",
		"device.lost", "device.restored", "free_hand.opened", "free_hand.closed"}
	tagText  = []string{"natural", "player_pair", "banker_pair", "perfect_pair", "free_hand", "corrected"}
	noteText = [...]string{
		NoteReaderStart:         "reader started",
		NoteReaderStandby:       "reader stands by",
		NoteReaderGap:           "telegrams missing; no round rests on them, or its question is already asked",
		NoteReaderFault:         "reader fault",
		NoteReaderFaultOver:     "reader fault over",
		NoteVerdictWithoutRound: "verdict without a round",
		NoteVerdictAgain:        "verdict repeated",
		NoteVerdictIgnored:      "verdict ignored: the round was confirmed or corrected by hand",
		NoteAgainUnexpected:     "card dealt again, but none is held for it",
		NoteShowUnmatched:       "face named for a card that is not on the table",
		NoteReaderAgrees:        "verdict agrees",
		NoteReaderUnlocked:      "reader unlocked",
		NoteReread:              "re-read proposed for the unread card",
		NoteManual:              "card of the reader not dealt: cards are given by hand",
		NoteInactive:            "a reader that is not in use tells something",
		NoteGateShut:            "reader locked: the draw gate is shut",
		NoteGateOpen:            "reader unlocked: the draw gate is open",
		NoteCutAgain:            "cut card told again",
		NoteTest:                "the reader is tested: what it tells is of no shoe",
	}
	refusalText = [...]string{
		RefusedNoAlert:          "no standing alert allows this answer",
		RefusedNotForAlert:      "the alert does not allow this answer",
		RefusedBlocked:          "another alert that holds the table needs its own answer first",
		RefusedNothingToConfirm: "nothing to confirm yet: read the card again, or correct",
		RefusedCards:            "cards must be named by box with their faces",
		RefusedDraw:             "by the draw table these cards do not make this round",
		RefusedExposed:          "an exposed card cannot open the next round",
		RefusedNoCard:           "no card is held",
		RefusedNoRound:          "no such round in hand",
		RefusedRoundOpen:        "a round is open: void it first",
		RefusedWhere:            "this card cannot go there",
		RefusedOrder:            "which hand is to be turned first was not said",
		RefusedAsDealt:          "these cards change who had to draw: say as_dealt, or void",
		RefusedWindow:           "there is no such insurance",
		RefusedRoundInHand:      "a round is in hand: wait until it is over",
		RefusedReader:           "which reader was not said, or it is in use already",
		RefusedInPlay:           "a shoe is in play: its cards must count",
	}
)

func (k EventKind) String() string { return eventText[k] }

// Texts lists the tags that are set; never nil.
func (t Tags) Texts() []string {
	texts := []string{}
	for i, text := range tagText {
		if t&(1<<i) != 0 {
			texts = append(texts, text)
		}
	}
	return texts
}

// HandText is a hand in JSON: cards in box order, total null until every card
// of it is shown.
type HandText struct {
	Cards []string `json:"cards"`
	Total *int     `json:"total"`
}

// Text of the hand.
func (h Hand) Text() HandText {
	text := HandText{Cards: []string{}}
	for _, c := range h.Cards[:h.N] {
		text.Cards = append(text.Cards, c.String())
	}
	if total, known := h.Total(); known {
		text.Total = &total
	}
	return text
}

// EventText is an event in JSON, as game.md section 7 lists it; a field that
// does not apply is absent. It carries neither number nor time: those belong
// to the envelope that it travels in.
type EventText struct {
	Ev    string  `json:"ev"`              // what happened
	Shoe  *uint32 `json:"shoe,omitempty"`  // number of the shoe in hand
	Round *uint16 `json:"round,omitempty"` // number of the round; absent between rounds
	Rev   *uint8  `json:"rev,omitempty"`   // how often the round was corrected

	To      string `json:"to,omitempty"`      // where the card goes, as the reader says
	Outside string `json:"outside,omitempty"` // the mode in which the reader drew a card that is not part of the game
	Hand    string `json:"hand,omitempty"`    // unknown until the box is known
	Pos     uint8  `json:"pos,omitempty"`     // 1 to 3 in the hand
	Card    string `json:"card,omitempty"`    // rank and suit; ?? until the table has shown it
	Held    bool   `json:"held,omitempty"`    // kept aside until an answer says where it goes

	Outcome string    `json:"outcome,omitempty"`
	Player  *HandText `json:"player,omitempty"`
	Banker  *HandText `json:"banker,omitempty"`
	Tags    []string  `json:"tags,omitzero"`
	Was     string    `json:"was,omitempty"`      // round.corrected: the outcome before
	AsDealt bool      `json:"as_dealt,omitempty"` // round.corrected: not by the draw table

	Bets any `json:"bets,omitzero"` // round.opened: names; round.settled: by name, result and, when won, pays

	Stage    string      `json:"stage,omitempty"`     // of the insurance window
	ClosesAt string      `json:"closes_at,omitempty"` // insurance.opened: when the window closes by itself
	Offers   []OfferText `json:"offers,omitzero"`     // those that can be bought, or what became of them

	Decks    *uint8       `json:"decks,omitempty"`     // shoe.loaded
	Cards    *uint16      `json:"cards,omitempty"`     // shoe.loaded: in the shoe; shoe.burned: burned
	CardsOut *uint16      `json:"cards_out,omitempty"` // drawn from the shoe so far
	Shown    *uint16      `json:"shown,omitempty"`     // shoe.reconciled: cards that the table has shown
	Left     *uint16      `json:"left,omitempty"`      // shoe.reconciled: still in the shoe
	Account  *AccountText `json:"account,omitempty"`
	Last     *bool        `json:"last,omitempty"` // shoe.cut_card: the round in hand or the next is the last

	Alert    string   `json:"alert,omitempty"`
	Code     string   `json:"code,omitempty"`     // of the alert, or what began the pause
	Priority string   `json:"priority,omitempty"` // P1 stop, P2 before the next round, P3 this shift, P4 noted
	Rule     string   `json:"rule,omitempty"`     // what was broken
	Expected string   `json:"expected,omitempty"`
	Seen     string   `json:"seen,omitempty"`
	Affects  string   `json:"affects,omitempty"` // the bets it touches
	Answers  []string `json:"answers,omitzero"`  // those that the alert allows

	By     string `json:"by,omitempty"`    // who answered, or what cleared
	Do     string `json:"do,omitempty"`    // the answer
	Where  string `json:"where,omitempty"` // answer.accepted: where the held card goes
	Order  string `json:"order,omitempty"` // answer.accepted: the hand to be turned first
	Why    string `json:"why,omitempty"`   // a code, or a sentence with answer.refused
	What   string `json:"what,omitempty"`  // reader.noted: a sentence
	Fault  uint8  `json:"fault,omitempty"` // reader.noted: the reader's own error number
	Device string `json:"device,omitempty"`
	Line   string `json:"line,omitempty"` // alert.raised: the wire of the device
}

// Text renders the event.
func (e *Event) Text() EventText {
	t := EventText{
		Ev: e.Kind.String(), To: e.To.String(), Outside: e.Outside.String(),
		By: e.By, Do: e.Do.String(), Where: e.Where.String(), Order: revealOrderText[e.Order], Held: e.Held,
		Code: e.Code.String(), Device: e.Device, Line: e.Line, Fault: e.Fault,
	}
	if e.Shoe != 0 {
		t.Shoe = &e.Shoe
	}
	if e.Round != 0 {
		t.Round = &e.Round
	}
	if e.Alert != 0 {
		t.Alert = AlertText(e.Alert)
	}
	if e.Card != 0 {
		t.Card = e.Card.String()
	}
	switch e.Kind {
	case CardDealt, CardShown:
		if t.Hand, t.Pos = e.Hand.String(), e.Pos; e.Hand == 0 && e.To == 0 {
			t.Hand = "unknown"
		}
	case RoundOpened:
		t.Bets = betNames(e.Bets)
	case RoundSettled:
		t.Rev, t.Bets = &e.Rev, settledText(e)
	case InsuranceOpened, InsuranceClosed, InsuranceVoided, InsuranceSettled:
		t.insurance(e)
	case RoundDecided, RoundCorrected:
		t.decision(e)
	case RoundVoided:
		t.Why, t.Code = t.Code, ""
	case ShoeLoaded:
		t.Decks, t.Cards = &e.Decks, &e.Cards
	case ShoeBurned:
		t.Cards = &e.Cards
	case ShoeStarted, ShoeEnded:
		t.CardsOut = &e.Cards
	case ShoeCutCard:
		t.CardsOut, t.Last = &e.Cards, &e.Last
	case ShoeReconciled:
		t.Account = e.Account.text()
		t.CardsOut, t.Shown, t.Left = &e.Cards, &e.Shown, &e.Lost
	case AlertRaised:
		t.alert(e)
	case AnswerRefused:
		t.Why = refusalText[e.Refusal]
	case ReaderNoted:
		t.What = noteText[e.Note]
	}
	return t
}

func (t *EventText) decision(e *Event) {
	p, b := e.Player.Text(), e.Banker.Text()
	t.Rev, t.Outcome, t.Player, t.Banker, t.Tags = &e.Rev, e.Outcome.String(), &p, &b, e.Tags.Texts()
	t.Was, t.AsDealt = e.Was.String(), e.AsDealt
}

// BetText is a bet's result in JSON.
type BetText struct {
	Result string `json:"result"`
	Pays   string `json:"pays,omitempty"` // when won
}

func settledText(e *Event) map[string]BetText {
	all := map[string]BetText{}
	for _, s := range e.Settled[:e.NBets] {
		text := BetText{Result: s.Result.String()}
		if s.Result == BetWon {
			text.Pays = s.Pays.String()
		}
		all[s.Bet.String()] = text
	}
	return all
}

// OfferText is an insurance offer in JSON. Probabilities are whole numbers over
// den, absent where they were not asked for; null over the window's end.
type OfferText struct {
	Row    uint8   `json:"row"`
	Side   string  `json:"side"`
	WinsOn string  `json:"wins_on"`
	Pays   string  `json:"pays"`
	Win    *uint64 `json:"win,omitempty"`
	Push   *uint64 `json:"push,omitempty"`
	Lose   *uint64 `json:"lose,omitempty"`
	Den    *uint64 `json:"den,omitempty"`
	Result string  `json:"result,omitempty"` // insurance.settled
	Posted string  `json:"posted,omitempty"` // what the dealer laid out

	Edge *EdgeText `json:"edge,omitempty"` // full view only
}

// EdgeText is what the house keeps of a unit staked; negative what it loses.
type EdgeText struct {
	Num int64  `json:"num"`
	Den uint64 `json:"den"`
}

// Text of the offer.
func (o *Offer) Text() OfferText {
	text := OfferText{Row: o.Row, Side: o.Side.String(), WinsOn: o.WinsOn.String(), Pays: o.Pays.String(), Result: o.Result.String()}
	if o.Den != 0 {
		text.Win, text.Push, text.Lose, text.Den = &o.Win, &o.Push, &o.Lose, &o.Den
	}
	if o.Posted.Den != 0 {
		text.Posted = o.Posted.String()
	}
	return text
}

func (t *EventText) insurance(e *Event) {
	t.Stage = e.Stage.String()
	switch e.Kind {
	case InsuranceClosed:
		t.Why = closeText[e.Why]
		return
	case InsuranceVoided:
		t.Why, t.Code = t.Code, ""
		if t.Why == "" {
			t.Why = "answer"
		}
		return
	case InsuranceOpened:
		t.ClosesAt = time.Unix(0, e.ClosesAt).UTC().Format(EventTime)
	}
	t.Offers = []OfferText{}
	for i := range e.Offers[:e.NOffers] {
		t.Offers = append(t.Offers, e.Offers[i].Text())
	}
}

// AccountText is an Account in JSON.
type AccountText struct {
	Rounds    uint16 `json:"rounds"`
	Void      uint16 `json:"void"`
	Burned    uint16 `json:"burned"`
	Held      uint16 `json:"held"`
	OutOfGame uint16 `json:"out_of_game"`
	Drained   uint16 `json:"drained"`
}

func (a Account) text() *AccountText {
	return &AccountText{a.Rounds, a.Void, a.Burned, a.Held, a.OutOfGame, a.Drained}
}

func (t *EventText) alert(e *Event) {
	rule := &alertRules[e.Code]
	t.Priority = PriorityText(e.Priority)
	t.Rule = "game.md 5"
	if rule.seed != "" {
		t.Rule += ", seed " + rule.seed
	}
	t.Expected, t.Seen = e.Expected.String(), e.Seen.String()
	t.Affects = rule.affects.String()
	t.Answers = []string{}
	for _, do := range rule.answers {
		t.Answers = append(t.Answers, do.String())
	}
}

// EventTime is how an event's time is written: UTC, milliseconds.
const EventTime = "2006-01-02T15:04:05.000Z"

// AppendText appends the event as one line of game.md section 7, without the
// line's end. An event of the full view only has no seq.
func (e *Event) AppendText(b []byte) ([]byte, error) { return e.appendLine(b, e.Text()) }

// AppendFullText is AppendText for the full view, which has the edges of the
// offers too; they are given in the order of the offers, nil where unknown.
func (e *Event) AppendFullText(b []byte, edges []*EdgeText) ([]byte, error) {
	text := e.Text()
	for i, edge := range edges {
		text.Offers[i].Edge = edge
	}
	return e.appendLine(b, text)
}

func (e *Event) appendLine(b []byte, text EventText) ([]byte, error) {
	line, err := json.Marshal(struct {
		Seq uint64 `json:"seq,omitempty"`
		At  string `json:"at"`
		EventText
	}{e.Seq, e.At.UTC().Format(EventTime), text})
	return append(b, line...), err
}

// factText is the facts that need no numbers, as sentences.
var factText = [...]string{
	FactNoCardDue:      "no card due",
	FactCard:           "a card",
	FactOverdraw:       "the reader reports a card drawn over",
	FactEnd:            "the dealer ended the round",
	FactNextRound:      "the next round begins",
	FactTablePaused:    "no card while the table is paused",
	FactReadable:       "every card read",
	FactContiguous:     "every telegram of the reader",
	FactGap:            "telegrams missing",
	FactReaderStarted:  "the reader started in mid-round",
	FactReconnected:    "the reader came back in mid-round",
	FactRoundEnd:       "the round dealt to its end",
	FactQuit:           "the round was ended by force at the reader",
	FactOneMore:        "one more",
	FactCutCardFirst:   "the cut card before a new shoe",
	FactNewShoe:        "a new shoe",
	FactFirstCard:      "a shoe's first card",
	FactBurnCard:       "a burned card",
	FactNoShoe:         "a card, but no shoe",
	FactContinuous:     "the round watched without a break",
	FactRestart:        "the controller restarted in mid-round",
	FactLinkUp:         "the reader connected",
	FactDealing:        "the round going on",
	FactCall:           "the dealer calls",
	FactPauseAsked:     "a supervisor asks for a pause",
	FactDrain:          "cards after the end of the shoe",
	FactReverse:        "a card pushed back into the shoe",
	FactAgreeing:       "the reader's verdict",
	FactNoVerdict:      "none yet",
	FactLocked:         "the reader is locked",
	FactSetting:        "the reader's settings were changed",
	FactSixCards:       "at least 6 cards for a round",
	FactShoeHolds:      "no more cards than the shoe holds, nor of any one",
	FactRoundsCards:    "a card of this round",
	FactPutRight:       "put right by the dealer",
	FactUntold:         "a card lies there that the reader did not tell of",
	FactNoBox:          "it lies in no box",
	FactNotDrawn:       "not drawn yet",
	FactAnswer:         "an answer",
	FactShuffled:       "an order as a shuffle makes it",
	FactOtherHandFirst: "the other hand first",
	FactRatesLaidOut:   "the dealer's rates",
	FactNoRates:        "none laid out",
	FactWindowOpen:     "no card while insurance is open",
	FactCorrected:      "what they rested on was corrected",
	FactOffers:         "offers made on what the cards are",
	FactSettingsKept:   "settings left as they are",
	FactGameCards:      "cards drawn in the game only",
	FactBetsClosed:     "bets closed before the first card",
	FactJournalWritten: "everything kept before it is told",
	FactJournalHeld:    "the journal could not be written: the table held, nothing was told",
	FactDelivered:      "messages reach the broker",
	FactKeptForLater:   "the broker is away: all is kept and sent, marked, later",
	FactClockSet:       "the clock is set",
	FactClockUnset:     "the clock is not set: times are not those of the day",
	FactPowerEnough:    "supply voltage as the machine needs it",
	FactPowerLow:       "the supply voltage is too low",

	FactCertificateLasts: "a certificate that lasts",
	FactCertificateEnds:  "the certificate for the broker ends soon",
	FactNothingKept:      "commands that are sent when they are given",
	FactCommandKept:      "the broker keeps a command (retained): it is refused",
	FactOnePublisher:     "one process that publishes this table",
	FactAnotherPublisher: "another process publishes it too",
	FactOneReader:        "cards from the reader in use",
	FactReaderSwapped:    "the reader was changed in mid-round",

	FactEnrolled:    "a card of the decks enrolled",
	FactSensing:     "the sensors of the boxes connected",
	FactSensorsLost: "no connection to them",
	FactPanelHeard:  "the dealer's panel connected",
	FactPanelLost:   "no connection to it",
	FactLampsFollow: "lamps that follow the table",
	FactLampsLost:   "they cannot be switched",
	FactGateOpen:    "the reader unlocked: the draw gate is open",
	FactGateStuck:   "it stays locked",
}

// String is the fact as a sentence; "" for none.
func (f Fact) String() string {
	switch f.Kind {
	case FactCardDue:
		return "a card due in " + f.Box.String()
	case FactCardAt:
		return "the reader deals it to " + f.Box.String()
	case FactVerdict:
		return "the reader's verdict " + outcomeText[f.N] + pairsText(f.M)
	case FactUnread:
		return strings.TrimSuffix("a card left the shoe unread: "+f.Name, ": ")
	case FactHeldOverflow:
		return fmt.Sprintf("more than %d cards while paused", f.N)
	case FactOutcome:
		return outcomeText[f.N] + pairsText(f.M)
	case FactFace:
		return fmt.Sprintf("%v in %v", f.Card, f.Box)
	case FactNoSuchCard:
		return "the reader named another face for " + f.Box.String()
	case FactCardsInShoe:
		return fmt.Sprintf("%d cards in the shoe", f.N)
	case FactBurn:
		return fmt.Sprintf("%d cards burned", f.N)
	case FactOtherReader:
		return "a card from " + f.Name
	case FactLinkDown:
		return "no connection to " + f.Name
	case FactForeign:
		return "another card in " + f.Box.String()
	case FactForeignTag:
		return "a tag of no enrolled card in " + f.Box.String()
	case FactWireWell:
		return "every wire of " + f.Name + " well"
	case FactWireFault:
		return "line " + f.Name + map[WireSays]string{WireStuck: " is stuck", WireBouncing: " is bouncing"}[WireSays(f.N)]
	case FactCardIn:
		return "it lies in " + f.Box.String()
	case FactStillPaused:
		return "still paused by " + f.Name
	case FactOrder:
		return map[uint16]string{suspectedRanks: "a long run of one rank", suspectedSuits: "a long run of one suit",
			suspectedSteps: "a long run of ranks in sequence", suspectedBlock: "cards in an order that came before"}[f.N]
	case FactRevealOrder:
		return map[RevealOrder]string{RevealPlayerFirst: "Player's hand first", RevealBankerFirst: "Banker's hand first"}[RevealOrder(f.N)]
	case FactSpot:
		return "rates laid out for " + sideText[f.N]
	case FactPays:
		return fmt.Sprintf("%d:%d", f.N, f.M)
	case FactCutRange:
		return fmt.Sprintf("%d to %d cards behind the cut card", f.N, f.M)
	case FactGapAfter:
		return fmt.Sprintf("%d ms between cards", f.N)
	}
	if int(f.Kind) < len(factText) {
		return factText[f.Kind]
	}
	return ""
}

func pairsText(m uint16) string {
	text := ""
	if Tags(m)&TagPlayerPair != 0 {
		text += " with Player pair"
	}
	if Tags(m)&TagBankerPair != 0 {
		text += " with Banker pair"
	}
	return text
}
