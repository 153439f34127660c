package sim

import (
	"slices"
	"strings"
	"time"

	"shoed/round"
)

// Fault is something that goes wrong at a table, the alert that shows it, and what
// a supervisor does then.
type Fault struct {
	Name    string
	Happens string     // at the table
	Code    round.Code // of the alert
	Made    Making
	Does    string // what the supervisor does, for people

	with    []round.Code // that come with it and clear by themselves
	via     round.Code   // whose answer leads to the alert; 0 none
	replies []Reply      // to the alert and what comes with it, in this order; nil where nothing stands
	correct bool         // the last reply but acknowledgements names the cards

	fitting Fitting
	where   where
	at      func(*play) []int // the places in a round where it can happen
	fits    func(*play, int) bool
	stack   func(*table, int) // arranges the shoe beforehand
	make    func(*play, int)
	more    bool                    // the dealer does one more thing before anybody comes
	cure    func(*play, int) []beat // what is done at the table before it is answered
	after   func(*play, int) []beat // and afterwards
}

// Making is what a fault is made with.
type Making uint8

const (
	ByShoe    Making = iota + 1 // telegrams on the shoe's line, or its plug
	ByBoxes                     // switches of the boxes, or their plug
	ByTags                      // RFID readers in the boxes, instead of switches
	ByPanel                     // the dealer's panel, or its plug
	ByMachine                   // a part of the machine really fails
	ByTelling                   // no hardware tells it: the table is told in process
)

var makingText = [...]string{ByShoe: "shoe", ByBoxes: "boxes", ByTags: "tags", ByPanel: "panel", ByMachine: "machine", ByTelling: "told"}

// String is the making in one word.
func (m Making) String() string { return makingText[m] }

// Reply is an answer to a standing alert.
type Reply struct {
	Code  round.Code
	Words []string // as "shoed answer" takes them, without the alert
}

func reply(code round.Code, words string) Reply { return Reply{code, strings.Fields(words)} }

// Faults that can be shown, in the order of game.md section 5.
func Faults() []Fault {
	return slices.Concat(cardFaults, insuranceFaults, readerFaults, shoeFaults, wireFaults, machineFaults)
}

var cardFaults = []Fault{
	{Name: "extra-card", Happens: "a card is drawn after both hands are complete", Code: round.DealExtraCard, Made: ByShoe,
		Does: "has it burned", replies: []Reply{reply(round.DealExtraCard, "hold_card where=burn")}, at: end, make: overdrawn, more: true,
		after: errorOver(errorOverdraw)},
	{Name: "wrong-box-late", Happens: "Player's third card is laid before Banker", Code: round.DealWrongBoxLate, Made: ByBoxes,
		Does: "has the cards arranged", replies: []Reply{reply(round.DealWrongBoxLate, "arranged")}, at: when(bankerStands, fifth), make: wrongThird,
		after: putRight},
	{Name: "wrong-box", Happens: "one of the first four cards is laid into another box", Code: round.DealWrongBox, Made: ByBoxes,
		Does: "has the cards arranged", replies: []Reply{reply(round.DealWrongBox, "arranged")}, at: middle, make: wrongBox,
		after: putRight},
	{Name: "put-right", Happens: "a card is laid into a wrong box and put right at once", Code: round.DealSelfCorrected, Made: ByBoxes,
		Does: "nothing", at: firstFour, make: corrected},
	{Name: "not-placed", Happens: "a drawn card is laid into no box", Code: round.DealNotPlaced, Made: ByBoxes,
		Does: "has it placed", replies: []Reply{reply(round.DealNotPlaced, "arranged")}, at: middle, make: notPlaced},
	{Name: "early-card", Happens: "a card is drawn before bets are closed", Code: round.DealEarly, Made: ByShoe,
		Does: "looks at the bets", replies: []Reply{reply(round.DealEarly, "ack")}, at: once, make: early, more: true},
	{Name: "late-card", Happens: "the dealer waits too long with a card", Code: round.DealLate, Made: ByShoe,
		Does: "asks for the card", replies: []Reply{reply(round.DealLate, "ack")}, at: middle, make: late},
	{Name: "missing-card", Happens: "the dealer ends the round although a card is due", Code: round.DealMissingCard, Made: ByPanel,
		Does: "has the card dealt", replies: []Reply{reply(round.DealMissingCard, "resume")}, at: middle,
		make: before(round.Input{Kind: round.InButton, Button: round.ButtonEnd})},
	{Name: "two-cards", Happens: "two cards leave the shoe together", Code: round.DealDoubleCard, Made: ByShoe,
		Does: "confirms the cards", replies: []Reply{reply(round.DealDoubleCard, "confirm")}, at: middle, make: together, more: true},
	{Name: "card-while-paused", Happens: "a card is drawn although the dealer has called", Code: round.DealWhilePaused, Made: ByShoe,
		Does: "has it used, then resumes", replies: []Reply{reply(round.DealWhilePaused, "hold_card where=use"), reply(round.DealerCall, "resume")},
		at: middle, make: whilePaused},
	{Name: "pushed-back", Happens: "a card is pushed back into the shoe", Code: round.DealPushedBack, Made: ByShoe,
		Does: "confirms the cards", replies: []Reply{reply(round.DealPushedBack, "confirm")}, at: middle, make: pushedBack, more: true,
		after: errorOver(errorReverse)},
	{Name: "call", Happens: "the dealer calls", Code: round.DealerCall, Made: ByPanel,
		Does: "comes and resumes", replies: []Reply{reply(round.DealerCall, "resume")}, at: middle,
		make: before(round.Input{Kind: round.InButton, Button: round.ButtonCall})},
	{Name: "long-pause", Happens: "the dealer calls and nobody comes", Code: round.PauseUnresolved, Made: ByPanel,
		Does: "voids the round, then resumes", replies: []Reply{reply(round.PauseUnresolved, "void"), reply(round.DealerCall, "resume")},
		at: middle, make: unresolved},
}

var insuranceFaults = []Fault{
	{Name: "insured-card", Happens: "the next card is drawn while insurance is open", Code: round.InsuranceEarlyDeal, Made: ByShoe,
		Does: "nothing", at: openDealings, make: dealtThrough},
	{Name: "no-rates", Happens: "the dealer lays out no insurance rates", Code: round.InsuranceNotPosted, Made: ByPanel,
		Does: "nothing", at: openWindows, make: notLaid},
	{Name: "rates-elsewhere", Happens: "the rates are laid out on the other side", Code: round.InsuranceWrongSpot, Made: ByTelling,
		Does: "nothing", at: openWindows, make: laid(laysWrongSpot)},
	{Name: "wrong-rate", Happens: "another rate is laid out than the table's", Code: round.InsuranceWrongRate, Made: ByTelling,
		Does: "nothing", at: openWindows, make: laid(laysWrongRate)},
	{Name: "wrong-offer", Happens: "insurance was offered on a card that the reader had read wrong", Code: round.InsuranceExposed, Made: ByShoe, with: []round.Code{round.ReaderLost},
		Does: "corrects the card, has the insurance returned", via: round.ReaderGapped, correct: true,
		replies: []Reply{reply(round.ReaderGapped, "correct")}, at: fourth, fits: misreads, make: misread},
}

var readerFaults = []Fault{
	{Name: "unread", Happens: "a card leaves the shoe unread", Code: round.ReaderUnread, Made: ByShoe,
		Does: "has it read again and confirms", replies: []Reply{reply(round.ReaderUnread, "confirm")}, at: middle, make: unread(errorUnread, ""),
		cure: readAgain},
	{Name: "garbled", Happens: "a card's telegrams are garbled on the line", Code: round.ReaderGapped, Made: ByShoe,
		Does: "says which card lies there", replies: []Reply{reply(round.ReaderGapped, "correct")}, correct: true, at: lastCard, make: garbled},
	{Name: "unplugged", Happens: "the shoe's cable is pulled out", Code: round.ReaderLost, Made: ByShoe,
		Does: "has it put back and confirms", replies: []Reply{reply(round.ReaderGapped, "confirm")}, at: middle,
		make: before(link("reader", false)), cure: back("reader")},
	{Name: "wrong-verdict", Happens: "the reader's outcome differs from the rules", Code: round.ReaderDisagrees, Made: ByShoe,
		Does: "confirms the round as the rules have it", replies: []Reply{reply(round.ReaderDisagrees, "confirm")}, at: end, make: differs},
	{Name: "no-verdict", Happens: "the reader's outcome does not come", Code: round.ReaderNoVerdict, Made: ByShoe,
		Does: "has the round ended at the reader", replies: []Reply{reply(round.ReaderNoVerdict, "ack")}, at: end, make: delayed, fitting: Fitting{Wait: true}},
	{Name: "forced-quit", Happens: "the round is ended by force at the reader", Code: round.ReaderQuit, Made: ByShoe,
		Does: "has the bets returned", replies: []Reply{reply(round.ReaderQuit, "ack")}, at: middle,
		make: before(round.Input{Kind: round.InVerdict, Verdict: round.Verdict{Quit: true}})},
	{Name: "locked-card", Happens: "a card is drawn while the shoe is locked", Code: round.ReaderOutOfGame, Made: ByShoe,
		Does: "nothing", at: middle, make: out},
	{Name: "locked", Happens: "the shoe is locked by its key", Code: round.ReaderLocked, Made: ByShoe,
		Does: "acknowledges", replies: []Reply{reply(round.ReaderLocked, "ack")}, at: middle,
		make:  before(round.Input{Kind: round.InLock, On: true}),
		after: then(round.Input{Kind: round.InLock})},
	{Name: "setting", Happens: "somebody changes a setting of the shoe", Code: round.ReaderSetting, Made: ByShoe,
		Does: "finds out who, and acknowledges", replies: []Reply{reply(round.ReaderSetting, "ack")}, at: once,
		make: before(round.Input{Kind: round.InSetting, On: true, Address: "01", Value: "0001"})},
	{Name: "other-shoe", Happens: "a card leaves a shoe that is not in use", Code: round.ReaderInactive, Made: ByShoe,
		Does: "looks at that shoe", replies: []Reply{reply(round.ReaderInactive, "ack")}, at: middle,
		make: before(round.Input{Kind: round.InInactive, Name: Spare, Spare: round.SpareCard})},
}

var shoeFaults = []Fault{
	{Name: "burn", Happens: "one card more is burned than the first card asks for", Code: round.ShoeBurn, Made: ByShoe,
		Does: "confirms the cards burned", replies: []Reply{reply(round.ShoeBurn, "confirm")}, where: atOpening, at: once, make: saysMore},
	{Name: "arranged-shoe", Happens: "the cards of a new shoe run from king down to two", Code: round.ShoeSuspectOrder, Made: ByShoe,
		Does: "nothing: surveillance sees it", where: atOpening, at: once, stack: runningDown, make: func(p *play, _ int) { p.mark(p.find(draw, 0), 0) }},
	{Name: "early-cut", Happens: "the cut card comes out at the begin of the shoe", Code: round.ShoeCutPosition, Made: ByShoe,
		Does: "has it placed right in the next shoe", replies: []Reply{reply(round.ShoeCutPosition, "ack")}, where: atOpening, at: once,
		make: func(p *play, at int) { p.table.last = true; cutHere(p, at) }},
	{Name: "late-round", Happens: "a round is begun after the end of the shoe", Code: round.ShoeLateCard, Made: ByShoe,
		Does: "has the card burned, and the shoe changed", replies: []Reply{reply(round.ShoeLateCard, "hold_card where=burn")}, where: atEnd, at: end, make: lateCard},
	{Name: "drained", Happens: "cards are drawn after the end of the shoe", Code: round.ShoeDrained, Made: ByShoe,
		Does: "acknowledges", replies: []Reply{reply(round.ShoeDrained, "ack")}, where: atEnd, at: end, make: drained},
	{Name: "no-cut", Happens: "a new shoe is begun without a cut card", Code: round.ShoeChangeUnproven, Made: ByShoe,
		Does: "confirms the new shoe", replies: []Reply{reply(round.ShoeChangeUnproven, "confirm")}, at: end, make: unproven},
	{Name: "short-shoe", Happens: "a round is begun with fewer than six cards", Code: round.ShoeShort, Made: ByShoe,
		Does: "has a new shoe loaded", replies: []Reply{reply(round.ShoeShort, "new_shoe")}, where: runDown, at: once,
		make: func(p *play, at int) { p.table.last = true; lateCard(p, at) }},
	{Name: "twin-card", Happens: "a card comes once more than the shoe has it", Code: round.ShoeTooMany, Made: ByShoe,
		Does: "voids the round and has a new shoe loaded", replies: []Reply{reply(round.ShoeTooMany, "void"), reply(round.ShoeTooMany, "new_shoe")},
		where: smallShoe, at: second, stack: copyOut, more: true,
		make: func(p *play, at int) { p.table.last = true; copied(p, at) }},
	{Name: "foreign-card", Happens: "a card of no enrolled deck lies in a box", Code: round.ShoeForeignCard, Made: ByTags,
		Does: "voids the round and has a new shoe loaded", replies: []Reply{reply(round.ShoeForeignCard, "void"), reply(round.ShoeForeignCard, "new_shoe")},
		fitting: Fitting{RFID: true}, at: middle,
		make: func(p *play, at int) { p.table.last = true; foreignTag(p, at) }},
}

var wireFaults = []Fault{
	{Name: "boxes-unplugged", Happens: "the cable of the boxes' switches is pulled out", Code: round.SensorsLost, Made: ByBoxes,
		Does: "has it put back", replies: []Reply{reply(round.SensorsLost, "ack")}, at: middle,
		make: before(link(round.BoxesDevice, false)), cure: back(round.BoxesDevice)},
	{Name: "panel-unplugged", Happens: "the cable of the dealer's panel is pulled out", Code: round.PanelLost, Made: ByPanel,
		Does: "has it put back", replies: []Reply{reply(round.PanelLost, "ack")}, at: middle,
		make: before(link(round.PanelDevice, false)), cure: back(round.PanelDevice)},
	{Name: "stuck-button", Happens: "a button of the panel sticks", Code: round.WireFaulty, Made: ByPanel,
		Does: "has it freed", replies: []Reply{reply(round.WireFaulty, "ack")}, at: once, make: stuck,
		cure: then(round.Input{Kind: round.InWire, Name: round.PanelDevice, Line: "insurance", Wire: round.WireOK})},
	{Name: "bad-contact", Happens: "a wire of the panel chatters", Code: round.WireFaulty, Made: ByPanel,
		Does: "has it mended", replies: []Reply{reply(round.WireFaulty, "ack")}, at: middle,
		make: before(round.Input{Kind: round.InWire, Name: round.PanelDevice, Line: "call", Wire: round.WireBouncing}),
		cure: then(round.Input{Kind: round.InInsurance, Insurance: round.Insurance{Do: round.InsuranceClose}})}, // shows that it is quiet
	machineFault("no-lamps", "the lamps cannot be switched", round.LampsLost, ByTelling, round.LampsDevice),
}

// A machine's part is at fault while its link is down.
var machineFaults = []Fault{
	{Name: "power-cut", Happens: "the controller starts again in mid-round", Code: round.PowerMidRound, Made: ByMachine,
		Does: "confirms the cards", replies: []Reply{reply(round.PowerMidRound, "confirm")}, at: middle, make: before(round.Input{Kind: round.InRestart})},
	machineFault("full-disk", "the journal could not be written for a while", round.StorageLost, ByTelling, round.JournalDevice),
	{Name: "no-broker", Happens: "the message broker is away", Code: round.BrokerLost, Made: ByMachine,
		Does: "acknowledges", replies: []Reply{reply(round.BrokerLost, "ack")}, at: once, make: noBroker, cure: back(round.BrokerDevice)},
	machineFault("no-clock", "the controller's clock is not set", round.ClockUnset, ByTelling, round.ClockDevice),
	machineFault("low-voltage", "the controller's supply voltage is low", round.PowerLow, ByMachine, round.PowerDevice),
	machineFault("certificate", "the certificate for the broker ends soon", round.CertificateExpires, ByTelling, round.CertificateDevice),
	machineFault("kept-command", "the broker gives a command that it had kept", round.CommandRetained, ByMachine, round.CommandsDevice),
	{Name: "second-table", Happens: "another process publishes under this table's name", Code: round.DuplicateTable, Made: ByMachine,
		Does: "finds the other", with: []round.Code{round.BrokerLost}, // this one is silent for a while
		replies: []Reply{reply(round.DuplicateTable, "ack")}, at: once, make: before(link(round.PublisherDevice, false)), cure: back(round.PublisherDevice)},
}

// noBroker: it is missed only after a while.
func noBroker(p *play, at int) {
	before(link(round.BrokerDevice, false))(p, at)
	p.mark(p.find(draw, at)-1, 12*time.Second)
}

func machineFault(name, happens string, code round.Code, made Making, device string) Fault {
	return Fault{Name: name, Happens: happens, Code: code, Made: made, Does: "acknowledges", replies: []Reply{reply(code, "ack")},
		at: once, make: before(link(device, false)), cure: back(device)}
}

// Spare is the name of a reader that is not in use.
const Spare = "spare"

func link(device string, up bool) round.Input {
	return round.Input{Kind: round.InLink, Name: device, On: up}
}

func back(device string) func(*play, int) []beat { return then(link(device, true)) }

// then is something that is done a moment later.
func then(in round.Input) func(*play, int) []beat {
	return func(*play, int) []beat { return []beat{oops(2*time.Second, in)} }
}

// errorOver cancels the reader's error.
func errorOver(code uint8) func(*play, int) []beat { return then(readerError(code, false)) }

// readAgain passes the unread card over the sensor once more.
func readAgain(p *play, at int) []beat {
	return append(errorOver(errorUnread)(p, at), oops(drawPace, p.drawn(p.cards[at], p.boxes[at])))
}

// putRight moves a card from the box where it lies to its own.
func putRight(p *play, at int) []beat {
	wrong := p.beats[p.find(place, at)].in.Box
	return []beat{oops(time.Second, round.Input{Kind: round.InLifted, Box: wrong}), oops(500*time.Millisecond, p.placed(p.cards[at], p.boxes[at]))}
}

// middle is the second and the third card: before the fourth no insurance is
// offered, so that nothing but the fault is to be seen.
func middle(*play) []int { return span(1, 3) }

// runningDown arranges a shoe: a king asks for ten cards to be burned, so that the
// two is the first of the round.
func runningDown(t *table, _ int) {
	cards := t.shoe.cards
	for rank := 13; rank >= 2; rank-- {
		next := len(cards) - 1 - (13 - rank)
		i := slices.IndexFunc(cards[:next+1], func(c round.Card) bool { return c.Rank() == rank })
		cards[i], cards[next] = cards[next], cards[i]
	}
}

func second(*play) []int     { return span(1, 2) }
func fourth(*play) []int     { return span(3, 4) }
func lastCard(p *play) []int { return span(len(p.cards)-1, len(p.cards)) }

// overdrawn: a card is drawn after the verdict.
func overdrawn(p *play, _ int) { p.insert(p.find(ruling, len(p.cards))+1, p.over()...) }

// garbled: what says the last card is no telegram any more, which the next one's
// number shows.
func garbled(p *play, at int) {
	p.beats[p.find(draw, at)].garbled = true
	p.mark(p.find(ruling, len(p.cards)), 0)
}

// stuck: a button is pressed before the round, and stays so.
func stuck(p *play, _ int) {
	quietly := p.find(quiet, -1)
	p.beats[quietly].wait += buttonHeld - betsPace
	p.insert(quietly, oops(0, round.Input{Kind: round.InWire, Name: round.PanelDevice, Line: "insurance", Wire: round.WireStuck}))
	p.mark(p.find(draw, 0)-1, 0)
}

// buttonHeld is longer than anybody holds a button (package scanner).
const buttonHeld = 30 * time.Second

// delayed: the verdict comes too late.
func delayed(p *play, _ int) {
	i := p.find(ruling, len(p.cards))
	p.beats[i].wait += verdictWait + 2*time.Second
	p.mark(i-1, verdictWait)
}

// verdictWait is how long a verdict may stay out (game.md section 5).
const verdictWait = 5 * time.Second

// offered is the rows of insurance after a card that is not the last.
func (p *play) offered(after int) uint32 {
	if after+1 >= len(p.cards) {
		return 0
	}
	var player, banker round.Hand
	for i, card := range p.cards[:after+1] {
		h := &player
		if p.boxes[i].Side() == round.Banker {
			h = &banker
		}
		h.Cards[h.N] = card
		h.N++
	}
	return round.DefaultInsurance.Match(player, banker)
}

// openWindows are the windows in which something is offered, by number.
func openWindows(p *play) []int { return slices.DeleteFunc(windows(p), p.shut) }

// openDealings are those of them after which a card is drawn.
func openDealings(p *play) []int { return slices.DeleteFunc(dealings(p), p.shut) }

func (p *play) shut(window int) bool { return p.offered(p.beats[p.all(rates)[window]].card) == 0 }

// misreads: insurance is offered on the fourth card as it is read, and is not so
// on the card that lies there.
func misreads(p *play, at int) bool {
	if len(p.cards) == 4 {
		return false
	}
	as := *p
	as.cards = slices.Clone(p.cards)
	as.cards[at] = p.readAs()
	wrongly := as.offered(at)
	return wrongly != 0 && wrongly&p.offered(at) == 0
}

// readAs is the face that is read in a misread one's place: of a card that is
// still in the shoe.
func (p *play) readAs() round.Card { return p.table.shoe.cards[0] }

// misread: a card is read as another. That shows when somebody looks: here,
// because the shoe's cable was out.
func misread(p *play, at int) {
	p.beats[p.find(draw, at)].in.Card = p.readAs()
	p.insert(p.find(draw, at+1), oops(time.Second, link("reader", false)), shows(2*time.Second, link("reader", true)))
}
