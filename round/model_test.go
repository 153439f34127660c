package round_test

// A second implementation of the game, written from the sentences of game.md
// and sharing nothing with the package but its input, event and card types:
// plain slices, strings and maps, slow and dumb. It foretells what each input
// leads to; below it a dealer plays shoes with mistakes and answers, and both
// are compared.
//
// The model leaves out, because each is proven elsewhere or is not a happening
// of the table:
//   - placement sensors (arranged, deal.wrong_box and its kin, deal.not_placed,
//     deal.self_corrected, shoe.foreign_card): transcripts;
//   - shoe.suspect_order (switched off here), the full view's own events, notes
//     of the reader, and the sentences of alerts: not public, or wording;
//   - probabilities of offers (package odds), roads, where each card of the
//     shoe is accounted for, deadlines asked for in advance;
//   - more than 16 alerts standing or 32 cards waiting: bounds, not rules;
//   - rules changed between two shoes; a table of bets or insurance of the house's own.

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoed/round"
)

// mCard is a card that left the shoe.
type mCard struct {
	face   string // as the reader knows it, "??" when it does not
	to     string // where the reader says it goes
	claim  string // the reader's own box
	shown  bool   // the table has shown its face
	turned bool   // the table turned it before the reader knew the face
	again  bool
	over   bool // the reader reports it overdrawn
	named  bool
	quick  bool
	agreed bool // its box was compared with the reader's
	doubt  bool // the reader named two faces for it
	count  bool // counted as out of the shoe
	shoe   int
}

type mOffer struct {
	row, stage int
	void       bool
	winsOn     string
}

type mRound struct {
	no                    int
	open, decided, free   bool
	order                 string // reveal_order said for it
	cards                 []*mCard
	lie                   []string // their boxes, once corrected after the outcome
	ended                 bool
	verdict               string // "" none; "player+player_pair"
	ignored               bool   // the reader's boxes and verdict prove nothing
	completeAt, actedAt   int64
	lateTold              bool
	outcome               string
	pairs                 string
	stage                 int // of the last window
	window, byPause, post bool
	closesAt              int64
	offers                []mOffer
}

type mAlert struct {
	no, round int
	code      string
	blocks    string // "", "dealing", "all"
	priority  int
	byReader  bool
	gone      bool // its condition is over
	acked     bool
	shelved   bool
	wire      string // "panel call"
	decks     int
	card      *mCard
}

// mPast is a decided round: its cards by box.
type mPast struct {
	at             map[string]string
	outcome, pairs string
	fixed          bool
	free           bool
	rev            int
	offers         []mOffer
}

type model struct {
	rule map[string]string
	now  int64 // ms
	out  []string

	shoe, decks, left int
	phase             string // "", first, burning, play, over
	first             string
	burnDue, burned   int
	known             map[string]int
	cut               bool
	lastNo, rounds    int
	drained           bool

	r       *mRound
	past    map[int]*mPast
	alerts  []*mAlert
	alertNo int

	paused     string
	pausedAt   int64
	unresolved bool

	waiting   []*mCard
	usable    int
	next      []*mCard
	nextFree  bool
	nextOrder string

	bets     string // "", open, closed
	started  bool
	cleared  bool
	boxes    map[string]bool
	manual   bool
	down     bool
	lastDraw int64

	sensorsOff bool
	shutAt     int64 // when the draw gate was last shut
	gateLocked bool
}

func newModel(rule map[string]string) *model {
	return &model{rule: rule, r: &mRound{}, cleared: true, boxes: map[string]bool{}, known: map[string]int{}, past: map[int]*mPast{}, lastDraw: -1 << 40, shutAt: -1 << 40}
}

func (m *model) say(format string, args ...any) { m.out = append(m.out, fmt.Sprintf(format, args...)) }

func (m *model) ms(name string) int64 {
	n := int64(0)
	fmt.Sscan(m.rule[name], &n)
	return n
}

// ---- section 1: play

// "Values: ace 1, 2–9 face, ten and faces 0"
var mValue = map[byte]int{'A': 1, '2': 2, '3': 3, '4': 4, '5': 5, '6': 6, '7': 7, '8': 8, '9': 9, 'T': 0, 'J': 0, 'Q': 0, 'K': 0}

// "Total = sum mod 10."
func mTotal(faces ...string) int {
	sum := 0
	for _, f := range faces {
		sum += mValue[f[0]]
	}
	return sum % 10
}

// "Banker 0–2 always draws; 3 unless v=8; 4 on 2–7; 5 on 4–7; 6 on 6–7; 7 stands."
var mBankerDraws = map[int]string{0: "0123456789", 1: "0123456789", 2: "0123456789", 3: "012345679", 4: "234567", 5: "4567", 6: "67", 7: ""}

// mThird is the box due after the first four cards: "P3", "B3", or "" when
// both hands are complete. third is Player's third card, "" when not drawn.
func mThird(p, b int, third string, bankerDrew bool) string {
	// "Natural: a two-card total of 8 or 9 on either hand ends the draw for both."
	if p >= 8 || b >= 8 {
		return ""
	}
	// "Player draws on 0–5, stands on 6–7."
	if p <= 5 && third == "" {
		return "P3"
	}
	if bankerDrew {
		return ""
	}
	// "If Player stood, Banker draws on 0–5, stands on 6–7."
	if p > 5 {
		if b <= 5 {
			return "B3"
		}
		return ""
	}
	if strings.Contains(mBankerDraws[b], fmt.Sprint(mValue[third[0]])) {
		return "B3"
	}
	return ""
}

// "deal_order=alternate (P1 B1 P2 B2) | pairs"
func mFirstFour(order string) []string {
	if order == "pairs" {
		return []string{"P1", "P2", "B1", "B2"}
	}
	return []string{"P1", "B1", "P2", "B2"}
}

// mLayout gives each card its box ("" when it cannot be told from what is
// shown, or none is due), the box due next, and whether all is there and shown.
func mLayout(order string, cards []string) (boxes []string, due string, complete bool) {
	boxes = make([]string, len(cards))
	at := map[string]string{}
	for i, box := range mFirstFour(order) {
		if i == len(cards) {
			return boxes, box, false
		}
		boxes[i], at[box] = box, cards[i]
	}
	for _, box := range []string{"P1", "P2", "B1", "B2"} {
		if at[box] == "??" {
			return boxes, "", false
		}
	}
	p, b := mTotal(at["P1"], at["P2"]), mTotal(at["B1"], at["B2"])
	third, hidden, drew := "", false, false
	for i := 4; ; i++ {
		due = mThird(p, b, third, drew)
		if due == "" || i == len(cards) {
			return boxes, due, due == "" && !hidden
		}
		boxes[i] = due
		if cards[i] == "??" {
			hidden = true
			if due == "P3" {
				return boxes, "", false
			}
		}
		if due == "P3" {
			third = cards[i]
		} else {
			drew = true
		}
	}
}

// seen is a face as the table knows it.
func (c *mCard) seen() string {
	if c.shown {
		return c.face
	}
	return "??"
}

func (m *model) layout() (boxes []string, due string, complete bool) {
	if m.r.lie != nil {
		return m.r.lie, "", true
	}
	var seen []string
	for _, c := range m.r.cards {
		seen = append(seen, c.seen())
	}
	return mLayout(m.rule["deal_order"], seen)
}

// at is what the table has shown, by box.
func (m *model) at() map[string]string {
	at := map[string]string{}
	boxes, _, _ := m.layout()
	for i, c := range m.r.cards {
		if boxes[i] != "" && c.seen() != "??" {
			at[boxes[i]] = c.face
		}
	}
	return at
}

func mHand(box string) string {
	switch {
	case box == "":
		return "unknown"
	case box[0] == 'P':
		return "player " + box[1:]
	}
	return "banker " + box[1:]
}

// ---- the step

func (m *model) step(in round.Input) []string {
	m.out, m.now = nil, in.At.Sub(start).Milliseconds()
	if m.gateShut() {
		m.shutAt = m.now
	}
	m.deadlines() // "Deadlines are judged by the `at` of each input before the input itself."
	switch in.Kind {
	case round.InShoe:
		m.shoeLoaded(int(in.Decks))
	case round.InCard:
		m.card(in)
	case round.InShow:
		m.show(in)
	case round.InUnread:
		m.unread()
	case round.InCut:
		m.cutCard()
	case round.InReader:
		switch {
		case in.Reader == round.ReaderGap:
			m.gap()
		case in.Reader == round.ReaderStandby:
		case m.r.open: // "reader started or reconnected in mid-round"
			m.gap()
		case m.cut: // "a reader's `start` after `cut` with no round open is a new shoe of `decks`"
			m.shoeLoaded(0)
		}
	case round.InPlaced:
		m.boxes[mBox(in.Box)] = true
		m.cleared = m.cleared && !m.r.open // a card that was only lifted to look at it
	case round.InLifted:
		delete(m.boxes, mBox(in.Box))
		m.cleared = m.cleared || len(m.boxes) == 0
	case round.InReveal:
		m.reveal(in)
	case round.InBets:
		m.bets = "closed"
		if in.Open {
			m.bets = "open"
			if m.rule["round_start"] == "bets" {
				m.nextStarts()
			}
		}
	case round.InInsurance:
		m.insurance(in.Insurance)
	case round.InButton:
		switch in.Button {
		case round.ButtonStart:
			m.started = true
			m.nextStarts()
		case round.ButtonEnd:
			m.r.ended = m.r.ended || m.r.open
		case round.ButtonCall:
			m.raise("dealer.call")
		case round.ButtonShoe:
			m.shoeLoaded(0)
		}
	case round.InVerdict:
		m.verdict(in.Verdict)
	case round.InFault:
		m.fault(int(in.Code), in.On)
	case round.InLock:
		m.lock(in.On)
	case round.InSetting:
		// "key, setting, lid": a changed setting says which; its mode may end.
		if in.On || in.Address != "" {
			m.raise("reader.setting")
		} else {
			m.gone("reader", m.standing("reader.setting"))
		}
	case round.InLink:
		m.link(in.Name, in.On)
	case round.InWire:
		m.wire(in.Name+" "+in.Line, in.Wire != round.WireOK)
	case round.InAnswer:
		m.answer(in.Answer)
	case round.InRestart: // "restart found an open round; takes in reader.gap and reader.lost; until the round closes the reader's positions and verdict are ignored"
		if m.r.open {
			m.r.ignored = true
			m.raise("power.mid_round")
			m.clearAll("power.mid_round", "reader.gap", "reader.lost")
		}
	}
	m.goOn()
	for m.usable > 0 && m.blocked() == "" { // "held in order"
		c := m.waiting[0]
		m.waiting, m.usable = m.waiting[1:], m.usable-1
		m.use(c)
		m.goOn()
	}
	return m.out
}

func mBox(b round.Box) string {
	return []string{"", "P1", "P2", "P3", "B1", "B2", "B3"}[b]
}

func mSide(s round.Side) string { return []string{"", "player", "banker"}[s] }

func mBoxOf(side string, pos uint8) string {
	if pos < 1 || pos > 3 {
		return ""
	}
	switch side {
	case "player":
		return fmt.Sprint("P", pos)
	case "banker":
		return fmt.Sprint("B", pos)
	}
	return ""
}

func (m *model) deadlines() {
	r := m.r
	// "A window closes at the first of: … `insurance_ms=10000` (`timer`)"
	if r.window && m.now >= r.closesAt {
		m.closeWindow("timer")
	}
	// deal.late: "a due card not drawn `draw_wait_ms` after the latest draw, reveal or window close"
	if _, due, _ := m.layout(); r.open && due != "" && !r.lateTold && !r.window && m.paused == "" && r.actedAt != 0 && m.now >= r.actedAt+m.ms("draw_wait_ms") {
		r.lateTold = true
		m.raise("deal.late")
	}
	// pause.unresolved: "a pause older than `resolve_ms`"
	if m.paused != "" && !m.unresolved && m.now >= m.pausedAt+m.ms("resolve_ms") {
		m.unresolved = true
		m.raise("pause.unresolved")
	}
	if m.gateLocked && !m.gateShut() && m.now >= m.shutAt+3000 {
		m.gateLocked = false
		m.raise("reader.locked")
	}
	// "`wait` (decide only on an agreeing verdict; warn after 5 s)", of which a pause takes none
	if m.rule["verdict"] == "wait" && r.open && r.completeAt != 0 && r.verdict == "" && !r.ignored && !m.down && m.paused == "" && m.standing("reader.no_verdict") == nil && m.now >= max(r.completeAt, r.actedAt)+5000 {
		m.raise("reader.no_verdict")
	}
}

// ---- section 5: alerts

type mRule struct {
	priority        int
	blocks, answers string
}

// The table of section 5, written again by hand.
var mRules = map[string]mRule{
	"deal.extra_card":      {2, "dealing", "hold_card"},
	"deal.early":           {2, "", "ack"},
	"deal.late":            {3, "", "ack"},
	"deal.missing_card":    {1, "all", "correct void resume"},
	"deal.double_card":     {1, "all", "confirm correct void"},
	"deal.while_paused":    {2, "dealing", "hold_card"},
	"deal.pushed_back":     {1, "all", "confirm correct void"},
	"insurance.early_deal": {4, "", ""},
	"insurance.not_posted": {4, "", ""},
	"insurance.wrong_spot": {4, "", ""},
	"insurance.wrong_rate": {4, "", ""},
	"insurance.exposed":    {3, "", "ack"},
	"reader.unread":        {1, "all", "confirm correct void"},
	"reader.gap":           {1, "all", "confirm correct void"},
	"reader.lost":          {2, "", "manual"},
	"reader.disagrees":     {1, "all", "confirm correct void"},
	"reader.quit":          {2, "", "ack"},
	"reader.out_of_game":   {4, "", "resume"},
	"reader.locked":        {3, "", "ack"},
	"reader.setting":       {2, "", "ack"},
	"reader.no_verdict":    {3, "", "ack"},
	"dealer.call":          {2, "all", "resume void"},
	"pause.unresolved":     {1, "", "void"},
	"shoe.burn":            {2, "all", "confirm new_shoe"},
	"shoe.cut_position":    {3, "", "ack"},
	"shoe.late_card":       {2, "dealing", "hold_card new_shoe"},
	"shoe.change_unproven": {2, "all", "confirm new_shoe"},
	"shoe.short":           {2, "all", "new_shoe"},
	"shoe.too_many":        {1, "all", "void new_shoe"},
	"shoe.drained":         {3, "", "ack"},
	"power.mid_round":      {1, "all", "confirm correct void"},
	"sensors.lost":         {2, "", "sensors_off"},
	"panel.lost":           {3, "", ""},
	"lamps.lost":           {3, "", ""},
	"wire.faulty":          {3, "", ""},
}

// allows: "An answer clears its alert"; besides, contract.md: any alert may be
// acknowledged and shelved by its name; "P1 cannot be shelved". What clears by
// itself is only acknowledged.
func (a *mAlert) allows(do string, named bool) bool {
	return slices.Contains(strings.Fields(mRules[a.code].answers), do) ||
		mRules[a.code].answers == "" && do == "ack" && !a.acked ||
		named && (do == "ack" && !a.acked || do == "shelve" && a.priority > 1 || do == "unshelve" && a.shelved)
}

// gone: "condition gone and not acked = returned" (contract.md, Alerts).
func (m *model) gone(by string, a *mAlert) {
	switch {
	case a == nil || a.gone:
	case a.acked:
		m.clear(a, by)
	default:
		a.gone = true
		m.say("alert.returned %d %s", a.no, a.code)
	}
}

func (m *model) about() int {
	if m.r.open || m.r.decided {
		return m.r.no
	}
	return 0
}

func (m *model) announce(code string, priority int) int {
	m.alertNo++
	m.say("alert.raised %d %s P%d", m.alertNo, code, priority)
	return m.alertNo
}

// remark is an alert that is only noted; tell one that the house answers at once.
func (m *model) remark(code string) { m.announce(code, mRules[code].priority) }

func (m *model) tell(code string) {
	m.remark(code)
	m.say("alert.cleared %d %s by rule", m.alertNo, code)
}

func (m *model) raise(code string) *mAlert { return m.raiseFor("", code) }

func (m *model) raiseFor(wire, code string) *mAlert {
	for _, a := range m.alerts {
		// "same dedup_key {table}:{code}:{round|device}"
		device := code == "reader.locked" || code == "reader.setting" || strings.HasSuffix(code, ".lost") || wire != ""
		if a.code == code && a.wire == wire && (a.round == m.about() || device) {
			if a.gone || a.acked {
				a.gone, a.acked = false, false
				m.say("alert.raised %d %s P%d", a.no, code, a.priority)
			}
			return a
		}
	}
	a := &mAlert{code: code, round: m.about(), blocks: mRules[code].blocks, wire: wire}
	priority := mRules[code].priority
	if code == "reader.lost" && m.r.open && !m.manual { // "link down (P1 with a round open)"
		priority, a.blocks = 1, "all"
	}
	if m.rule[code] == "pause" { // a pause stops the table: P2
		priority, a.blocks = 2, "all"
	}
	a.no, a.priority = m.announce(code, priority), priority
	m.alerts = append(m.alerts, a)
	if a.blocks != "" && m.paused == "" {
		m.closeWindow("paused")
		m.paused, m.pausedAt, m.unresolved = code, m.now, false
		m.say("table.paused %s", code)
	}
	return a
}

func (m *model) standing(code string) *mAlert {
	for _, a := range m.alerts {
		if a.code == code {
			return a
		}
	}
	return nil
}

// blocked is the strongest hold: "`pause` means no outcome is published,
// `deal.extra_card` apart, which blocks only the next round".
func (m *model) blocked() string {
	strongest := ""
	for _, a := range m.alerts {
		if a.blocks == "all" || strongest == "" {
			strongest = a.blocks
		}
		if strongest == "all" {
			break
		}
	}
	return strongest
}

func (m *model) blockedBesides(code string) bool {
	for _, a := range m.alerts {
		if a.blocks != "" && a.code != code {
			return true
		}
	}
	return false
}

// "An answer clears its alert; the table resumes when no blocking alert stands."
func (m *model) clear(a *mAlert, by string) {
	if i := slices.Index(m.alerts, a); a != nil && i >= 0 {
		m.alerts = slices.Delete(slices.Clone(m.alerts), i, i+1)
		m.say("alert.cleared %d %s by %s", a.no, a.code, by)
	}
	m.resumeIfFree()
}

func (m *model) resumeIfFree() {
	if m.paused != "" && m.blocked() == "" {
		m.say("table.resumed %s", m.paused)
		m.paused = ""
		m.r.actedAt = m.now
		m.clearAll("resume", "pause.unresolved")
	}
}

func (m *model) clearAll(by string, codes ...string) {
	for _, code := range codes {
		for m.standing(code) != nil {
			m.clear(m.standing(code), by)
		}
	}
}

// ---- cards

func mTo(to round.To) string { return []string{"", "player", "banker", "first", "burn"}[to] }

func (m *model) card(in round.Input) {
	c := &mCard{face: in.Card.String(), to: mTo(in.To), again: in.Again && in.Outside == 0}
	c.claim = mBoxOf(c.to, in.Pos)
	switch in.Outside {
	case 0:
		// "two cards within `card_gap_ms` (…; never within one read)"
		c.quick = m.now > m.lastDraw && m.now-m.lastDraw < m.ms("card_gap_ms")
		m.lastDraw = m.now
		m.arrive(c)
	case round.OutsideOverdraw:
		c.over = true
		m.count(c)
		m.extra(c)
	case round.OutsideLock:
		if m.gateLocked && m.phase == "play" { // "a card when none is due"
			m.count(c)
			m.extra(c)
			return
		}
		fallthrough
	default: // reader.out_of_game: "counted in the shoe, not in the round"
		m.count(c)
		m.say("card.dealt unknown ?? outside")
		if m.rule["reader.out_of_game"] == "pause" {
			m.raise("reader.out_of_game")
		} else {
			m.remark("reader.out_of_game")
		}
	}
}

func (m *model) arrive(c *mCard) {
	if m.manual { // "cards by hand for this round or until off"
		return
	}
	// reader.unread: "the next read is the proposed re-read"
	if a := m.standing("reader.unread"); a != nil && a.card == nil && !c.again {
		c.count, a.card = true, c
		m.countFace(c.face)
		return
	}
	if m.blocked() != "" && !m.wasMissing(c) && !m.moreBurn(c) {
		m.hold(c)
		return
	}
	m.use(c)
}

// deal.missing_card: "the due card itself clears it (it is not
// `deal.while_paused`)".
func (m *model) wasMissing(c *mCard) bool {
	a := m.standing("deal.missing_card")
	_, due, _ := m.layout()
	if a == nil || !m.r.open || due == "" || c.to == "first" || c.to == "burn" || c.again {
		return false
	}
	if c.claim != "" && c.claim != due && !m.r.ignored {
		return false
	}
	for _, o := range m.alerts {
		if o != a && o.blocks != "" {
			return false
		}
	}
	m.clear(a, "card")
	return true
}

// One more burned card is the same question as the first too many.
func (m *model) moreBurn(c *mCard) bool {
	a := m.standing("shoe.burn")
	return a != nil && a.card == nil && c.to == "burn" && m.paused == "shoe.burn"
}

// deal.while_paused: "a card while paused: held in order"
func (m *model) hold(c *mCard) {
	m.count(c)
	m.say("card.dealt unknown ?? held")
	m.aside(c)
}

func (m *model) aside(c *mCard) {
	m.waiting = append(m.waiting, c)
	m.raise("deal.while_paused")
}

// proposed takes the card that waited with its question: it was drawn first.
func (m *model) proposed(c *mCard) {
	if m.blockedBesides("deal.while_paused") {
		m.count(c)
		m.waiting = append([]*mCard{c}, m.waiting...)
		m.usable++
		return
	}
	m.use(c)
}

func (m *model) use(c *mCard) {
	if c.again {
		m.again(c)
		return
	}
	opening := c.to == "first" || c.to == "burn"
	isNew := m.phase == "" || opening && (m.phase == "over" || m.rounds > 0)
	proven := m.phase == "" && c.to == "first" || m.phase != "" && opening && m.proven()
	if isNew && !proven && m.rule["shoe.change_unproven"] != "accept" {
		// shoe.change_unproven: "a first card, burn or new shoe without a cut card before it; a card with no shoe"
		a := m.raise("shoe.change_unproven")
		if a.card != nil {
			m.hold(c)
		} else {
			a.card = c
		}
		return
	}
	if isNew {
		m.loadWith(c)
		return
	}
	if tooMany := m.count(c); tooMany && m.r.open {
		m.place(c)
		return
	}
	switch {
	case m.phase == "first" || m.phase == "burning":
		m.opening(c)
	case m.phase == "over":
		m.drain(c)
	case opening:
		m.burnWrong(c)
	default:
		m.deal(c)
	}
}

// count: "counted once". "more copies than decks, more cards than the shoe"
func (m *model) count(c *mCard) (tooMany bool) {
	if c.count || c.again { // "it is counted once"
		return false
	}
	c.count, c.shoe = true, m.shoe
	if m.standing("shoe.change_unproven") != nil {
		c.shoe++
	}
	m.left--
	if m.left < 0 {
		m.raise("shoe.too_many")
		return true
	}
	return m.countFace(c.face)
}

func (m *model) countFace(face string) (tooMany bool) {
	if face == "??" {
		return false
	}
	m.known[face]++
	if m.known[face] > m.decks {
		m.raise("shoe.too_many")
		return true
	}
	return false
}

func (m *model) deal(c *mCard) {
	r := m.r
	_, _, complete := m.layout()
	switch {
	case m.standing("shoe.too_many") != nil: // "shoe out"
		m.hold(c)
	case r.open && c.claim == "P1" && !r.ignored && len(r.cards) > 0: // "a next round's start although a card is due"
		m.missing()
		m.hold(c)
	case r.open && (len(r.cards) == 6 || complete):
		m.extra(c)
	case r.open:
		m.place(c)
	case m.mayOpen(c):
		m.open(c)
	default:
		m.extra(c)
	}
}

// "`round_start=reader` (opens on the reader's own Player 1) | `bets` (first
// card after bets were closed) | `button` (dealer's start) | `boxes` (first card
// after all boxes were empty) | `first_card`"
func (m *model) mayOpen(c *mCard) bool {
	switch m.rule["round_start"] {
	case "first_card":
		return true
	case "bets": // deal.early: "a card before bets were closed: bets are closed by it"
		return m.bets != ""
	case "button":
		return m.started
	case "boxes":
		return m.cleared || m.sensorsOff
	}
	return c.claim == "P1"
}

func (m *model) open(c *mCard) {
	// "Fewer than 6 cards left at a round's start: the round is refused."
	if m.left+len(m.next)+1 < 6 {
		m.raise("shoe.short").card = c
		return
	}
	early := m.rule["round_start"] == "bets" && m.bets == "open"
	m.begin()
	// "A held card dealt into the next round becomes its first card when the round opens; held cards queue in draw order."
	for len(m.next) > 0 && m.r.open {
		h := m.next[0]
		m.next = m.next[1:]
		m.r.ignored = m.r.ignored || !h.over
		m.place(h)
	}
	if !m.r.open {
		m.hold(c)
		return
	}
	m.place(c)
	if early {
		if m.rule["deal.early"] == "void" {
			m.tell("deal.early")
			m.void("deal.early", "rule")
			return
		}
		m.raise("deal.early")
	}
}

func (m *model) begin() {
	m.rounds++
	m.r = &mRound{no: m.rounds, open: true, free: m.nextFree, order: m.nextOrder}
	m.bets, m.started, m.cleared, m.nextFree, m.nextOrder = "", false, false, false, ""
	if m.r.free { // "A free hand is dealt without bets"
		m.say("free_hand.opened %d", m.rounds)
		return
	}
	m.say("round.opened %d %s", m.rounds, strings.Join(m.openBets(m.rounds), " "))
}

func (m *model) place(c *mCard) {
	r := m.r
	if len(r.cards) == 6 {
		m.hold(c)
		return
	}
	if r.window { // insurance.early_deal: "the next card while a window is open: window closes, round goes on"
		m.closeWindow("card")
		m.remark("insurance.early_deal")
	}
	m.clearAll("card", "deal.late")
	r.lateTold = false
	// "`reveal=on_draw` | `on_signal` (…: a card is public when a reveal input says so …)"
	c.shown = c.face != "??" && (m.rule["reveal"] == "on_draw" || c.turned || c.shown)
	r.cards = append(r.cards, c)
	r.actedAt = m.now
	boxes, _, _ := m.layout()
	m.say("card.dealt %s %s", mHand(boxes[len(boxes)-1]), c.seen())
	if c.quick {
		m.doubleCard()
	}
}

func (m *model) doubleCard() {
	if m.rule["deal.double_card"] == "void" {
		m.tell("deal.double_card")
		m.void("deal.double_card", "rule")
		return
	}
	m.raise("deal.double_card")
}

// deal.extra_card: "a card when none is due; reader: overdraw. The card is held
// unseen". "any of the three at once": next_round, burn, free_hand.
func (m *model) extra(c *mCard) {
	if c.over {
		m.say("card.dealt unknown ?? held outside")
	} else {
		m.say("card.dealt unknown ?? held")
	}
	m.tooMuch(c)
}

func (m *model) tooMuch(c *mCard) {
	a := m.standing("deal.extra_card")
	if a != nil && a.card != nil {
		m.aside(c)
		return
	}
	if where := m.rule["deal.extra_card"]; where != "default" {
		if a != nil {
			m.clear(a, "rule")
		} else {
			m.tell("deal.extra_card")
		}
		m.dispose(c, where)
		return
	}
	if a == nil { // otherwise it is the card of the fault that was told
		a = m.raise("deal.extra_card")
	}
	a.card = c
}

func (m *model) dispose(c *mCard, where string) {
	if c.again { // the overdrawn card itself is held already
		return
	}
	switch where {
	case "burn":
		m.burn()
	case "free_hand":
		m.nextFree = true
		fallthrough
	case "next_round":
		m.next = append(m.next, c)
	}
}

// "A card the reader marks `again` opens a round only at Player 1 while an
// unnamed overdrawn card is held; it is counted once."
func (m *model) again(c *mCard) {
	if c.claim != "P1" || m.r.open || len(m.next) == 0 || !m.next[0].over {
		return
	}
	h := m.next[0]
	m.next = m.next[1:]
	if h.face == "??" && c.face != "??" {
		h.face = c.face
		m.countFace(c.face)
	}
	h.claim, h.to = c.claim, c.to
	m.open(h)
}

// deal.missing_card: "`end`, a verdict or a next round's start although a card is due"
func (m *model) missing() {
	m.r.ended, m.r.verdict = false, ""
	m.raise("deal.missing_card")
}

func (m *model) nextStarts() {
	if _, _, complete := m.layout(); m.r.open && !complete {
		m.missing()
	}
}

// goOn takes the round in hand as far as it goes.
func (m *model) goOn() {
	r := m.r
	if !r.open {
		return
	}
	// reader.disagrees: "the reader's next hand differs from the rules";
	// deal.double_card: "an index of one hand skipped".
	boxes, _, _ := m.layout()
	for i, c := range r.cards {
		if c.agreed || c.claim == "" || boxes[i] == "" || r.ignored {
			continue
		}
		c.agreed = true
		if c.claim == boxes[i] {
			continue
		}
		before := 0
		for _, b := range boxes[:i] {
			if b != "" && b[0] == c.claim[0] {
				before++
			}
		}
		if int(c.claim[1]-'0') > before+1 {
			m.doubleCard()
		} else {
			m.raise("reader.disagrees")
		}
		if !r.open {
			return
		}
	}
	boxes, due, complete := m.layout()
	if complete { // cards that turn out not to have been due
		n := len(r.cards)
		for n > 0 && boxes[n-1] == "" {
			n--
		}
		extra := r.cards[n:]
		r.cards = slices.Clone(r.cards[:n])
		for _, c := range extra {
			m.tooMuch(c)
		}
	}
	if m.blocked() == "all" {
		return
	}
	switch {
	case due != "" && (r.verdict != "" || r.ended):
		m.missing()
	case due != "" && m.left <= 0 && len(m.waiting) == 0: // "Shoe empty in mid-round: void, refund."
		m.void("shoe.short", "void")
		m.raise("shoe.short")
	case complete:
		m.decide()
	default:
		m.openWindow()
	}
}

// ---- showing

func (m *model) find(box string) *mCard {
	r := m.r
	if box == "" || !r.open && !r.decided {
		return nil
	}
	boxes, _, _ := m.layout()
	var claimed *mCard
	var loose []*mCard
	for i, c := range r.cards {
		switch {
		case boxes[i] == box:
			return c
		case boxes[i] == "" && c.claim == box:
			claimed = c
		case boxes[i] == "" && c.claim == "" && box[1] == '3':
			loose = append(loose, c)
		}
	}
	if claimed == nil && len(loose) == 1 {
		return loose[0]
	}
	return claimed
}

func (m *model) show(in round.Input) {
	face := in.Card.String()
	if in.Over { // "the reader names a card it had masked (`over: true` for an overdrawn card)"
		a := m.standing("deal.extra_card")
		if a != nil && a.card != nil && a.card.face == "??" {
			a.card.face, a.card.named, a.card.shown = face, true, true
			m.say("card.shown unknown %s outside", face)
			m.countFace(face)
		}
		return
	}
	if in.To == round.ToFirst {
		if m.first == "??" {
			m.countFace(face)
			m.showFirst(face)
			m.burnDone()
		}
		return
	}
	c := m.find(mBoxOf(mTo(in.To), in.Pos))
	switch {
	case c == nil:
	case c.face == "??": // "or when a masked reader names it"
		c.face = face
		m.countFace(face)
		m.turn(c)
	case c.face != face && c.shown:
		m.raise("reader.disagrees")
	case c.face != face:
		c.doubt = true
	}
}

func (m *model) turn(c *mCard) {
	if c.shown {
		return
	}
	m.closeWindow("shown") // "any further card of the round shown (`shown`)"
	c.shown = true
	m.r.actedAt = m.now
	boxes, _, _ := m.layout()
	m.say("card.shown %s %s", mHand(boxes[slices.Index(m.r.cards, c)]), c.face)
	if c.doubt {
		m.raise("reader.disagrees")
	}
}

// "`reveal` | `box` or `hand`; the table turned it"
func (m *model) reveal(in round.Input) {
	boxes := []string{mBox(in.Box)}
	if in.Hand != 0 {
		boxes = []string{mBoxOf(mSide(in.Hand), 1), mBoxOf(mSide(in.Hand), 2), mBoxOf(mSide(in.Hand), 3)}
	}
	for _, box := range boxes {
		c := m.find(box)
		switch {
		case c == nil || c.shown:
		case c.face == "??":
			c.turned = true
		default:
			m.turn(c)
		}
	}
}

// ---- the outcome

// mEnd is a complete round as the bets see it.
type mEnd struct {
	player, banker    []string
	p, b              int
	outcome, pairs    string
	natural, perfect  bool
	pNatural, bNatura bool
}

func mFinish(at map[string]string) mEnd {
	var e mEnd
	for _, pos := range []string{"1", "2", "3"} {
		if at["P"+pos] != "" {
			e.player = append(e.player, at["P"+pos])
		}
		if at["B"+pos] != "" {
			e.banker = append(e.banker, at["B"+pos])
		}
	}
	e.p, e.b = mTotal(e.player...), mTotal(e.banker...)
	e.outcome = "tie"
	if e.p > e.b {
		e.outcome = "player"
	} else if e.b > e.p {
		e.outcome = "banker"
	}
	// "`player_natural` | that hand's first two total 8 or 9"
	e.pNatural, e.bNatura = mTotal(e.player[:2]...) >= 8, mTotal(e.banker[:2]...) >= 8
	e.natural = e.pNatural || e.bNatura
	// "first two cards of equal rank (K-K, not 10-K)"; "perfect = rank and suit"
	if e.player[0][0] == e.player[1][0] {
		e.pairs += "+player_pair"
	}
	if e.banker[0][0] == e.banker[1][0] {
		e.pairs += "+banker_pair"
	}
	e.perfect = e.player[0] == e.player[1] || e.banker[0] == e.banker[1]
	return e
}

func (m *model) decide() {
	r := m.r
	if r.completeAt == 0 {
		r.completeAt = m.now
	}
	e := mFinish(m.at())
	switch {
	case r.verdict != "" && r.verdict != e.outcome+e.pairs: // "a later differing verdict pauses", "outcome withheld"
		m.raise("reader.disagrees")
		return
	case r.verdict == "" && !r.ignored && m.rule["verdict"] == "wait": // "decide only on an agreeing verdict"
		return
	}
	m.closeWindow("outcome")
	r.open, r.decided, r.outcome, r.pairs = false, true, e.outcome, e.pairs
	m.past[r.no] = &mPast{at: m.at(), outcome: e.outcome, pairs: e.pairs, free: r.free}
	m.clearAll("reader", "reader.no_verdict")
	m.clearAll("card", "deal.late")
	m.say("round.decided %s", m.decision(r.no))
	m.settle(r.no)
	m.settleInsurance(r.no, r.offers, e.outcome)
	if r.free {
		m.say("free_hand.closed %d", r.no)
	}
	m.over()
}

func (m *model) decision(no int) string {
	p := m.past[no]
	e := mFinish(p.at)
	tags := ""
	for _, tag := range []struct {
		on   bool
		name string
	}{{e.natural, " natural"}, {strings.Contains(e.pairs, "player"), " player_pair"}, {strings.Contains(e.pairs, "banker"), " banker_pair"},
		{e.perfect, " perfect_pair"}, {p.free, " free_hand"}, {p.fixed, " corrected"}} {
		if tag.on {
			tags += tag.name
		}
	}
	return fmt.Sprintf("%d rev %d %s player %s=%d banker %s=%d%s", no, p.rev, e.outcome, strings.Join(e.player, " "), e.p, strings.Join(e.banker, " "), e.b, tags)
}

// over: "the round in which it appears is the last of the shoe".
func (m *model) over() {
	if m.cut && m.rounds >= m.lastNo && m.phase == "play" {
		m.phase, m.bets, m.started = "over", "", false
		m.say("shoe.ended %d", m.decks*52-m.left)
	}
}

// "round is void and all bets are refunded"; "A void round uses up its number."
func (m *model) void(why, by string) {
	r := m.r
	delete(m.past, r.no)
	r.open, r.decided = false, false
	m.say("round.voided %d %s", r.no, why)
	if m.voidInsurance(why) { // "A void round voids every offer."
		m.settleInsurance(r.no, r.offers, "")
	}
	m.clearAll(by, "deal.missing_card", "deal.pushed_back", "deal.double_card", "deal.late", "reader.unread", "reader.gap", "reader.disagrees", "reader.no_verdict", "power.mid_round")
	m.over() // "A void last round ends the shoe all the same."
}

// "a later differing verdict pauses"; "A verdict with no open or just-decided
// round is noted."; reader.quit: "forced quit at the reader: round void, refund".
func (m *model) verdict(v round.Verdict) {
	r := m.r
	text := []string{"", "player", "banker", "tie"}[v.Outcome]
	if v.PlayerPair {
		text += "+player_pair"
	}
	if v.BankerPair {
		text += "+banker_pair"
	}
	switch {
	case v.Quit && r.open:
		m.raise("reader.quit")
		m.void("reader.quit", "reader")
	case v.Quit || !r.open && !r.decided || r.ignored || r.verdict == text:
	default:
		r.verdict = text
		if r.decided && text != r.outcome+r.pairs {
			m.raise("reader.disagrees")
		}
	}
}

// ---- section 2: bets, written again by hand: name, tier, pays, push, last round
var mBets = strings.Fields(`
player:win:1:1:tie:0 banker:win:19:20:tie:0
banker_no_commission:win:1:1:tie:0 banker_no_commission:six:1:2:tie:0
tie:win:8:1:no:0
player_pair:win:11:1:no:60 banker_pair:win:11:1:no:60
any_pair:win:5:1:no:50 perfect_pair:win:25:1:no:50
player_natural:win:7:2:no:50 banker_natural:win:7:2:no:50
player_bonus:nat:1:1:nat:40 player_bonus:4:1:1:nat:40 player_bonus:5:2:1:nat:40 player_bonus:6:4:1:nat:40 player_bonus:7:6:1:nat:40 player_bonus:8:10:1:nat:40 player_bonus:9:30:1:nat:40
banker_bonus:nat:1:1:nat:40 banker_bonus:4:1:1:nat:40 banker_bonus:5:2:1:nat:40 banker_bonus:6:4:1:nat:40 banker_bonus:7:6:1:nat:40 banker_bonus:8:10:1:nat:40 banker_bonus:9:30:1:nat:40
lucky_six:2:12:1:no:50 lucky_six:3:20:1:no:50 lucky_six_2:win:22:1:no:50 lucky_six_3:win:50:1:no:50
lucky_seven:2:6:1:no:50 lucky_seven:3:15:1:no:50 lucky_seven_2:win:15:1:no:50 lucky_seven_3:win:30:1:no:50
super_lucky_seven:4:30:1:no:50 super_lucky_seven:5:40:1:no:50 super_lucky_seven:6:100:1:no:50`)

type mBet struct {
	name, tier, pays, push string
	last                   int
}

var mBetRows = func() (rows []mBet) {
	for _, text := range mBets {
		f := strings.Split(text, ":")
		row := mBet{name: f[0], tier: f[1], pays: f[2] + ":" + f[3], push: f[4]}
		fmt.Sscan(f[5], &row.last)
		rows = append(rows, row)
	}
	return rows
}()

// "`bets_offered` lists those the table offers (all by default)"
func (m *model) offered(name string) bool {
	return m.rule["bets_offered"] == "all" || slices.Contains(strings.Split(m.rule["bets_offered"], "+"), name)
}

func (m *model) openBets(no int) (names []string) {
	for _, row := range mBetRows {
		// "After its last round number of the shoe (001) a bet is `closed`."
		if m.offered(row.name) && (row.last == 0 || no <= row.last) && !slices.Contains(names, row.name) {
			names = append(names, row.name)
		}
	}
	return names
}

func (m *model) settle(no int) {
	p := m.past[no]
	if p.free {
		return
	}
	e := mFinish(p.at)
	result := map[string]string{}
	var names []string
	for _, row := range mBetRows {
		if !m.offered(row.name) {
			continue
		}
		if result[row.name] == "" {
			names = append(names, row.name)
			result[row.name] = "lost"
		}
		main := row.name == "player" || strings.HasPrefix(row.name, "banker") && (row.name == "banker" || row.name == "banker_no_commission")
		switch {
		case row.last != 0 && no > row.last:
			result[row.name] = "closed"
		case mWins(row, e):
			result[row.name] = "won@" + m.pays(row)
		case result[row.name] != "lost":
		case row.push == "tie" && e.outcome == "tie" && !(main && m.rule["tie_main"] == "lose"), // "`tie_main=push` | `lose`"
			row.push == "nat" && e.outcome == "tie" && e.pNatural && e.bNatura: // "a tie of naturals pushes"
			result[row.name] = "push"
		}
	}
	text := ""
	for _, name := range names {
		text += " " + name + "=" + result[name]
	}
	m.say("round.settled %d rev %d%s", no, p.rev, text)
}

// "Commission 5 % = `commission_bp=500`"
func (m *model) pays(row mBet) string {
	if row.name == "banker" {
		return map[string]string{"500": "19:20", "400": "24:25", "0": "1:1"}[m.rule["commission_bp"]]
	}
	return row.pays
}

func mWins(row mBet, e mEnd) bool {
	bonus := func(side string, natural bool, margin int) bool {
		// "the hand wins with a natural (1:1 whatever the margin), or without one by 4 or more"
		if e.outcome != side {
			return false
		}
		if natural {
			return row.tier == "nat"
		}
		return margin >= 4 && row.tier == fmt.Sprint(margin)
	}
	six, seven := e.outcome == "banker" && e.b == 6, e.outcome == "player" && e.p == 7
	switch row.name {
	case "player", "banker", "tie":
		return e.outcome == row.name
	case "banker_no_commission": // "no commission pays 1:2 when Banker wins with 6"
		return e.outcome == "banker" && (row.tier == "six") == six
	case "player_pair", "banker_pair":
		return strings.Contains(e.pairs, row.name)
	case "any_pair":
		return e.pairs != ""
	case "perfect_pair":
		return e.perfect
	case "player_natural":
		return e.pNatural
	case "banker_natural":
		return e.bNatura
	case "player_bonus":
		return bonus("player", e.pNatural, e.p-e.b)
	case "banker_bonus":
		return bonus("banker", e.bNatura, e.b-e.p)
	case "lucky_six": // "Banker **wins** with 6"
		return six && row.tier == fmt.Sprint(len(e.banker))
	case "lucky_six_2":
		return six && len(e.banker) == 2
	case "lucky_six_3":
		return six && len(e.banker) == 3
	case "lucky_seven": // "Player wins with 7"
		return seven && row.tier == fmt.Sprint(len(e.player))
	case "lucky_seven_2":
		return seven && len(e.player) == 2
	case "lucky_seven_3":
		return seven && len(e.player) == 3
	case "super_lucky_seven": // "super: against Banker 6, by cards of both hands together"
		return seven && e.b == 6 && row.tier == fmt.Sprint(len(e.player)+len(e.banker))
	}
	return false
}

// ---- section 3: insurance, the table of seed 000 written again by hand:
// row, side, stage (1 one hand, 2 four cards, 3 five), totals, wins on, pays
type mRow struct {
	side           string
	stage          int
	player, banker string // the totals it is offered on; "" not shown
	winsOn, pays   string
}

var mRows = []mRow{1: {"banker", 1, "", "7", "player", "2:1"}, {"banker", 1, "", "8", "player", "7:1"}, {"banker", 1, "", "9", "tie", "8:1"},
	{"banker", 2, "0123", "4", "player", "3:2"}, {"banker", 2, "01234", "5", "player", "2:1"}, {"banker", 2, "012345", "6", "player", "3:1"}, {"banker", 2, "012345", "7", "player", "4:1"},
	{"banker", 3, "0", "123456", "tie", "8:1"}, {"banker", 3, "1", "23456", "player", "7:1"}, {"banker", 3, "2", "3456", "player", "4:1"}, {"banker", 3, "3", "4", "player", "2:1"}, {"banker", 3, "4", "5", "player", "2:1"},
	{"player", 1, "7", "", "banker", "2:1"}, {"player", 1, "8", "", "banker", "7:1"}, {"player", 1, "9", "", "tie", "10:1"},
	{"player", 2, "5", "4", "banker", "2:1"}, {"player", 2, "6", "012345", "banker", "3:1"}, {"player", 2, "7", "012345", "banker", "4:1"},
	{"player", 3, "4", "0123", "banker", "3:2"}, {"player", 3, "5", "01234", "banker", "2:1"}, {"player", 3, "6", "012345", "banker", "3:1"}, {"player", 3, "7", "0123456", "banker", "4:1"}, {"player", 3, "8", "0123456", "banker", "8:1"}, {"player", 3, "9", "0123456", "tie", "10:1"}}

var mStages = []string{"", "one_hand_shown", "four_cards", "five_cards"}

// mOffered is the stage that shown cards make, and the rows it offers: "A row of
// the last two stages matches only while a card is still due".
func mOffered(at map[string]string, n int) (stage int, rows []int) {
	p, b := "", ""
	if at["P1"] != "" && at["P2"] != "" {
		p = fmt.Sprint(mTotal(at["P1"], at["P2"]))
	}
	if at["B1"] != "" && at["B2"] != "" {
		b = fmt.Sprint(mTotal(at["B1"], at["B2"]))
	}
	switch {
	// "all four cards dealt, one hand fully shown, nothing of the other"
	case n == 4 && (p != "" && at["B1"] == "" && at["B2"] == "" || b != "" && at["P1"] == "" && at["P2"] == ""):
		stage = 1
	case p == "" || b == "":
		return 0, nil
	default:
		due := mThird(int(p[0]-'0'), int(b[0]-'0'), at["P3"], at["B3"] != "")
		switch {
		case n == 4 && due != "":
			stage = 2
		case n == 5 && due == "B3" && at["P3"] != "": // "Player's third shown"
			stage = 3
			p = fmt.Sprint(mTotal(at["P1"], at["P2"], at["P3"]))
		default:
			return 0, nil
		}
	}
	for no, row := range mRows {
		hit := func(totals, total string) bool {
			return totals == "" && total == "" || totals != "" && total != "" && strings.Contains(totals, total)
		}
		if row.stage == stage && hit(row.player, p) && hit(row.banker, b) {
			rows = append(rows, no)
		}
	}
	return stage, rows
}

func (m *model) openWindow() {
	r := m.r
	if m.rule["insurance"] != "on" || r.free || m.left <= 0 {
		return
	}
	at := m.at()
	stage, rows := mOffered(at, len(r.cards))
	if stage <= r.stage || len(rows) == 0 {
		return
	}
	r.stage, r.post = stage, false
	for _, no := range rows {
		r.offers = append(r.offers, mOffer{row: no, stage: stage, winsOn: mRows[no].winsOn})
	}
	m.sayWindow()
	// "`reveal_order`: a reveal out of order that opened an offer is `insurance.exposed`"
	order := cmp.Or(r.order, m.rule["reveal_order"]) // "settable for one round"
	if stage == 1 && (order == "player_first" && at["P1"] == "" || order == "banker_first" && at["B1"] == "") {
		m.exposed()
	}
}

func (m *model) sayWindow() {
	r := m.r
	r.window, r.byPause, r.closesAt = true, false, m.now+m.ms("insurance_ms")
	text := ""
	for _, o := range r.offers {
		if o.stage == r.stage && !o.void {
			text += fmt.Sprintf(" %d:%s:%s@%s", o.row, mRows[o.row].side, o.winsOn, mRows[o.row].pays)
		}
	}
	m.say("insurance.opened %s%s", mStages[r.stage], text)
}

func (m *model) closeWindow(why string) {
	r := m.r
	if !r.window {
		return
	}
	r.window, r.byPause, r.actedAt = false, why == "paused", m.now
	m.say("insurance.closed %s %s", mStages[r.stage], why)
	// insurance.not_posted: "a window closed without the dealer's rates"
	if m.rule["insurance_post"] == "dealer" && !r.post {
		m.remark("insurance.not_posted")
	}
}

func (m *model) insurance(in round.Insurance) {
	r := m.r
	switch {
	case in.Do == round.InsuranceClose:
		m.closeWindow("dealer")
	case in.Do == round.InsurancePost && r.window && m.rule["insurance_post"] == "dealer":
		r.post = true
		pays := in.Pays.String()
		for _, o := range r.offers {
			side := mRows[o.row].side
			winsOn := []string{"", "player", "banker", "tie"}[in.WinsOn]
			switch {
			case o.stage != r.stage, mSide(in.Side) == side && winsOn != o.winsOn:
			case mSide(in.Side) != side, in.Spot != 0 && mSide(in.Spot) != side: // "rates posted on the other side"
				m.remark("insurance.wrong_spot")
			case in.Pays.Den != 0 && pays != mRows[o.row].pays: // "posted rate differs from the table"
				m.remark("insurance.wrong_rate")
			}
		}
	}
}

// insurance.exposed: "insurance void, round goes on" | "void round"
func (m *model) exposed() {
	if m.rule["insurance.exposed"] == "void" {
		m.tell("insurance.exposed")
		m.void("insurance.exposed", "rule")
		return
	}
	m.voidInsurance("insurance.exposed")
	m.raise("insurance.exposed")
}

func (m *model) voidInsurance(why string) bool {
	any := false
	for i := range m.r.offers {
		any = any || !m.r.offers[i].void
		m.r.offers[i].void = true
	}
	if any {
		m.r.window, m.r.byPause = false, false
		m.say("insurance.voided %d %s", m.r.no, why)
	}
	return any
}

// "A tie wins the rows that win on a tie; on the others `insurance_tie=push` | `lose`."
func (m *model) settleInsurance(no int, offers []mOffer, outcome string) {
	if len(offers) == 0 {
		return
	}
	text := ""
	for _, o := range offers {
		result := "lost"
		switch {
		case o.void:
			result = "void"
		case o.winsOn == outcome:
			result = "won"
		case outcome == "tie" && m.rule["insurance_tie"] == "push":
			result = "push"
		}
		text += fmt.Sprintf(" %d=%s", o.row, result)
	}
	if p := m.past[no]; p != nil {
		p.offers = offers // and what is void of them stays void
	}
	m.say("insurance.settled %d%s", no, text)
}

// mUnfounded marks void the offers that other cards would not have made: "an
// offer made from a fact that is corrected later, such that the rows offered
// would have been others".
func mUnfounded(offers []mOffer, at map[string]string) (some bool) {
	for i := range offers {
		o := &offers[i]
		then, n := map[string]string{}, 4
		for box, face := range at {
			if box[1] != '3' || o.stage == 3 && box == "P3" {
				then[box] = face
			}
		}
		switch {
		case o.stage == 3:
			n = 5
		case o.stage == 1 && mRows[o.row].player == "":
			delete(then, "P1")
			delete(then, "P2")
		case o.stage == 1:
			delete(then, "B1")
			delete(then, "B2")
		}
		if _, rows := mOffered(then, n); !o.void && !slices.Contains(rows, o.row) {
			o.void, some = true, true
		}
	}
	return some
}

// ---- the shoe

// "The first shoe of a journal needs no cut card before it. The cut latch lives
// in the state".
func (m *model) proven() bool { return m.shoe == 0 || m.cut && !m.r.open }

func (m *model) shoeLoaded(decks int) {
	questions := false
	for _, a := range m.alerts {
		questions = questions || a.blocks != "" && a.code != "shoe.burn" && a.code != "shoe.short"
	}
	if questions || !m.proven() && m.rule["shoe.change_unproven"] != "accept" {
		m.raise("shoe.change_unproven").decks = decks
		return
	}
	m.load(decks)
}

func (m *model) load(decks int) {
	if m.r.open {
		m.void("shoe.change_unproven", "void")
	}
	if decks == 0 {
		fmt.Sscan(m.rule["decks"], &decks)
	}
	m.shoe, m.decks, m.left = m.shoe+1, decks, decks*52
	m.known, m.past, m.r = map[string]int{}, map[int]*mPast{}, &mRound{}
	m.sensorsOff = m.sensorsOff && m.lost("sensors.lost")
	m.cut, m.lastNo, m.rounds, m.drained, m.first, m.burnDue, m.burned, m.phase = false, 0, 0, false, "", 0, 0, "first"
	m.next, m.nextFree, m.nextOrder = nil, false, ""
	var kept []*mCard
	usable := 0
	for i, c := range m.waiting { // those drawn from the shoe that went away went with it
		if c.shoe == m.shoe {
			kept = append(kept, c)
			if i < m.usable {
				usable++
			}
		}
	}
	m.waiting, m.usable = kept, usable
	m.say("shoe.loaded %d", decks)
	// "`burn=first_card` (checked) | `none` | `fixed:N` | `unchecked`"
	switch burn := m.rule["burn"]; {
	case burn == "unchecked":
		m.phase = "burning"
	case burn == "none":
		m.start()
	case burn != "first_card":
		fmt.Sscanf(burn, "fixed:%d", &m.burnDue)
		m.phase = "burning"
		m.burnDone()
	}
	m.clearAll("new_shoe", "shoe.burn", "shoe.short", "shoe.drained", "shoe.late_card", "reader.unread", "deal.extra_card", "reader.out_of_game")
	if len(m.waiting) == m.usable {
		m.clearAll("new_shoe", "deal.while_paused")
	}
	for _, c := range m.waiting {
		c.count = false
		m.count(c)
	}
}

func (m *model) loadWith(c *mCard) {
	m.load(0)
	if (c.to == "player" || c.to == "banker") && m.phase != "play" {
		m.start()
	}
	m.proposed(c)
}

func (m *model) start() {
	if m.burned > 0 || m.first != "" {
		m.say("shoe.burned %d", m.burned)
	}
	m.phase = "play"
	m.say("shoe.started %d", m.decks*52-m.left)
}

// "the first card is shown; its value says how many are burned (ace 1 … 9; ten
// and faces 10). Burned cards are not shown."
func (m *model) opening(c *mCard) {
	unchecked := m.rule["burn"] == "unchecked"
	switch {
	case m.phase == "first" && (c.to == "first" || c.to == ""), unchecked && c.to == "first" && m.first == "":
		m.phase = "burning"
		m.showFirst(c.face)
	case m.phase == "burning" && (c.to == "burn" || c.to == "" && !unchecked):
		m.burn()
		m.say("card.dealt burn ??")
		m.burnDone()
	case unchecked && c.to != "first":
		m.start()
		m.deal(c)
	default:
		m.burnWrong(c)
	}
}

func (m *model) showFirst(face string) {
	m.first = face
	m.say("card.shown first %s", face)
	if face != "??" && m.rule["burn"] == "first_card" {
		if m.burnDue = mValue[face[0]]; m.burnDue == 0 {
			m.burnDue = 10
		}
	}
}

// burn counts a burned card; the package's own bound is 20.
func (m *model) burn() { m.burned = min(m.burned+1, 20) }

func (m *model) burnDone() {
	checked := strings.HasPrefix(m.rule["burn"], "fixed") || m.first != "" && m.first != "??"
	if m.phase == "burning" && m.rule["burn"] != "unchecked" && checked && m.burned == m.burnDue {
		m.start()
	}
}

// shoe.burn: "cards burned differ from the first card's value: pause before round 1"
func (m *model) burnWrong(c *mCard) {
	if c.to == "burn" {
		m.burn()
		m.say("card.dealt burn ??")
		m.raise("shoe.burn")
		return
	}
	a := m.raise("shoe.burn")
	if a.card != nil {
		m.hold(c)
		return
	}
	a.card = c
}

// "the round in which it appears is the last of the shoe: `rounds_after_cut=0` |
// `1`. Instead of the first card of a round: that round is the last."
func (m *model) cutCard() {
	if m.cut { // told by two
		return
	}
	if m.phase == "" {
		m.say("shoe.cut_card false")
		return
	}
	m.cut = true
	m.lastNo = m.rounds
	if !m.r.open {
		m.lastNo++
	}
	if m.rule["rounds_after_cut"] == "1" {
		m.lastNo++
	}
	low, high := 0, 0
	fmt.Sscanf(m.rule["cut_cards"], "%d..%d", &low, &high)
	if m.left < low || m.left > high {
		m.raise("shoe.cut_position")
	}
	m.say("shoe.cut_card %v", m.rule["rounds_after_cut"] == "0")
}

// "After the shoe has ended, cards are drained: counted, one P3 alert in all."
// shoe.late_card: "a card after the end of the shoe once bets or start said a
// round begins: held".
func (m *model) drain(c *mCard) {
	m.say("card.dealt unknown ?? held")
	if m.bets != "" || m.started {
		a := m.raise("shoe.late_card")
		if a.card != nil {
			m.aside(c)
			return
		}
		a.card = c
		return
	}
	if !m.drained {
		m.drained = true
		m.raise("shoe.drained")
	}
}

// ---- the reader

// reader.unread: "a card left unread; code not a card: pause"
func (m *model) unread() {
	if m.standing("reader.unread") != nil {
		m.hold(&mCard{face: "??"})
		return
	}
	m.count(&mCard{face: "??"})
	m.raise("reader.unread")
}

// reader.gap: "sequence gap; reader started or reconnected in mid-round"
func (m *model) gap() {
	switch {
	case m.standing("power.mid_round") != nil:
	case m.rule["reader.gap"] != "void":
		m.raise("reader.gap")
	case m.r.open:
		m.tell("reader.gap")
		m.void("reader.gap", "rule")
	}
}

// Reader error numbers of angel.md: 1 unread, 2 overdraw, 4 and 5 reverse run,
// 6 code not a card.
func (m *model) fault(code int, on bool) {
	switch {
	case code == 2 && on:
		a := m.standing("deal.extra_card")
		if a == nil {
			a = m.raise("deal.extra_card")
		}
		a.byReader = true
	case code == 2:
		// "Where the reader settles an overdraw itself (error cancelled at the reader: card named = out of play; not named = it opens the next round)"
		if a := m.standing("deal.extra_card"); a != nil && a.byReader {
			m.clear(a, "reader")
			if a.card != nil && !a.card.named {
				m.next = append(m.next, a.card)
			}
		}
	case on && (code == 1 || code == 6):
		m.unread()
	case on && (code == 4 || code == 5):
		m.raise("deal.pushed_back")
	}
}

// reader.lost: "link down (P1 with a round open): pause if a round is open;
// clears on return, then `confirm` if a round was open"
func (m *model) link(device string, up bool) {
	if code, ok := mDevices[device]; ok {
		m.device(device, code, up)
		return
	}
	if up != m.down {
		return
	}
	m.down, m.gateLocked = !up, false
	if !up {
		m.say("device.lost reader")
		if m.standing("power.mid_round") == nil {
			m.raise("reader.lost")
		}
		return
	}
	m.say("device.restored reader")
	if m.r.open {
		m.gap()
	}
	if a := m.standing("reader.lost"); a != nil {
		m.clear(a, "device")
	}
}

// Devices besides the reader: play goes on without them.
var mDevices = map[string]string{"boxes": "sensors.lost", "panel": "panel.lost", "lamps": "lamps.lost"}

func (m *model) lost(code string) bool {
	a := m.standing(code)
	return a != nil && !a.gone
}

func (m *model) device(device, code string, up bool) {
	switch lost := m.lost(code); {
	case !up:
		if !lost {
			m.say("device.lost %s", device)
		}
		m.raise(code)
	case lost:
		m.say("device.restored %s", device)
		m.gone("device", m.standing(code))
	}
}

// wire.faulty: one alert for each wire.
func (m *model) wire(wire string, faulty bool) {
	if faulty {
		m.raiseFor(wire, "wire.faulty")
		return
	}
	for _, a := range m.alerts {
		if a.wire == wire {
			m.gone("device", a)
		}
	}
}

// The reader locked by its key is told of; by the draw gate only when it stays
// so for 3 s after the gate was opened.
func (m *model) lock(on bool) {
	since := m.now - m.shutAt
	switch {
	case on && since >= 0 && since < 3000:
		m.gateLocked = true
	case on:
		m.raise("reader.locked")
	case m.gateLocked:
		m.gateLocked = false
	default:
		m.gone("reader", m.standing("reader.locked"))
	}
}

// "Draw gate (opt-in, off): on a reader that can lock, lock when nothing is due
// and the faces are shown": in a round that has all its cards, or until the
// next one is announced; never with a card in hand or a question about one.
func (m *model) gateShut() bool {
	if m.rule["draw_gate"] != "on" || m.phase != "play" || m.manual || m.down || len(m.waiting)+len(m.next) > 0 {
		return false
	}
	for _, a := range m.alerts {
		for _, answer := range []string{"confirm", "correct", "new_shoe"} {
			if a.card != nil || a.byReader || strings.Contains(mRules[a.code].answers, answer) {
				return false
			}
		}
	}
	if m.r.open {
		_, due, complete := m.layout()
		return due == "" && complete
	}
	switch m.rule["round_start"] {
	case "bets":
		return m.bets != "closed"
	case "button":
		return !m.started && !m.lost("panel.lost")
	case "boxes":
		return !m.cleared && !m.sensorsOff && !m.lost("sensors.lost")
	}
	return false
}

// ---- answers

func mDo(do round.Do) string {
	return []string{"", "resume", "ack", "confirm", "correct", "void", "arranged", "hold_card", "void_insurance", "reopen", "new_shoe", "manual", "sensors_off", "reveal_order", "pause", "shelve", "unshelve", "open_table", "close_table", "test", "swap_reader"}[do]
}

func (m *model) accept(ans round.Answer, a *mAlert) {
	if a == nil {
		m.say("answer.accepted %s", mDo(ans.Do))
		return
	}
	m.say("answer.accepted %s %d %s", mDo(ans.Do), a.no, a.code)
}

func (m *model) answer(ans round.Answer) {
	if a, found := m.asked(ans); !found || !m.apply(ans, a) {
		m.say("answer.refused %s", mDo(ans.Do))
	}
}

// "An answer without `alert` goes to the oldest alert that allows it; if there
// is none it is refused."
func (m *model) asked(ans round.Answer) (*mAlert, bool) {
	for _, a := range m.alerts {
		if ans.Alert != 0 {
			if a.no == int(ans.Alert) {
				return a, a.allows(mDo(ans.Do), true)
			}
			continue
		}
		if ans.Do == round.DoCorrect && ans.Round != 0 && int(ans.Round) != a.round {
			continue
		}
		if a.allows(mDo(ans.Do), false) {
			return a, true
		}
	}
	// "argument `round` reaches any round of this shoe"; "only a supervisor's
	// `reopen` opens it again"; "cards by hand for this round or until off"
	free := ans.Do >= round.DoPause && ans.Do != round.DoShelve && ans.Do != round.DoUnshelve ||
		ans.Do == round.DoCorrect && ans.Round != 0 || ans.Do == round.DoVoidInsurance || ans.Do == round.DoReopen || ans.Do == round.DoRevealOrder || ans.Do == round.DoManual && m.manual
	return nil, ans.Alert == 0 && free
}

// apply reports whether the answer was accepted.
func (m *model) apply(ans round.Answer, a *mAlert) bool {
	switch ans.Do {
	case round.DoResume: // "`resume` is refused while a blocking alert lacks its own answer"
		for _, o := range m.alerts {
			if o.code != a.code && o.blocks != "" && !o.allows("resume", false) {
				return false
			}
		}
		m.accept(ans, a)
		m.clear(a, ans.By)
	case round.DoAck:
		m.accept(ans, a)
		m.say("alert.acked %d %s", a.no, a.code)
		if a.acked = true; a.gone || a.allows("ack", false) {
			m.clear(a, ans.By)
		}
	case round.DoSensorsOff:
		m.accept(ans, a)
		m.sensorsOff = true
		if a = m.standing("sensors.lost"); !a.acked {
			m.say("alert.acked %d %s", a.no, a.code)
			if a.acked = true; a.gone {
				m.clear(a, ans.By)
			}
		}
	case round.DoShelve, round.DoUnshelve:
		m.accept(ans, a)
		a.shelved = ans.Do == round.DoShelve
	case round.DoPause: // "call button, `pause` command"
		m.accept(ans, a)
		m.raise("dealer.call")
	case round.DoOpenTable, round.DoCloseTable:
		if ans.Do == round.DoCloseTable && m.r.open {
			return false
		}
		m.accept(ans, a)
	case round.DoConfirm:
		return m.confirm(ans, a)
	case round.DoCorrect:
		return m.correct(ans, a)
	case round.DoVoid:
		return m.answerVoid(ans, a)
	case round.DoHoldCard:
		return m.holdCard(ans, a)
	case round.DoNewShoe:
		return m.newShoe(ans, a)
	case round.DoManual:
		return m.byHand(ans, a)
	case round.DoVoidInsurance:
		if !slices.ContainsFunc(m.r.offers, func(o mOffer) bool { return !o.void }) {
			return false
		}
		m.accept(ans, a)
		m.voidInsurance("answer")
	case round.DoRevealOrder:
		if ans.Order == 0 {
			return false
		}
		m.accept(ans, a)
		name := []string{"", "any", "player_first", "banker_first"}[ans.Order]
		if m.r.open {
			m.r.order = name
		} else {
			m.nextOrder = name
		}
	case round.DoReopen:
		stage, _ := mOffered(m.at(), len(m.r.cards))
		if !m.r.open || !m.r.byPause || m.blocked() != "" || stage != m.r.stage {
			return false
		}
		m.accept(ans, a)
		m.sayWindow()
	default:
		return false
	}
	return true
}

// "`confirm` (accept the proposal shown)"
func (m *model) confirm(ans round.Answer, a *mAlert) bool {
	if a.code == "reader.unread" && a.card == nil {
		return false
	}
	if a.code == "shoe.change_unproven" { // questions about the old shoe come first
		for _, o := range m.alerts {
			if o.no < a.no && o.blocks != "" && o.code != "shoe.burn" && o.code != "shoe.short" {
				return false
			}
		}
	}
	m.accept(ans, a)
	if a.code == "reader.disagrees" {
		m.r.ignored, m.r.verdict = true, ""
	}
	if a.code == "shoe.burn" && m.phase != "play" {
		m.start()
	}
	m.clear(a, ans.By)
	switch {
	case a.code == "shoe.change_unproven" && a.card != nil:
		m.loadWith(a.card)
	case a.code == "shoe.change_unproven":
		m.load(a.decks)
	case (a.code == "reader.unread" || a.code == "shoe.burn") && a.card != nil:
		m.proposed(a.card)
	}
	return true
}

// "`void`, then `new_shoe` (pit)": a shoe that is out still needs its new_shoe.
func (m *model) answerVoid(ans round.Answer, a *mAlert) bool {
	about := m.r.open || m.r.decided && a.round == m.r.no
	if a.code == "shoe.too_many" && !about {
		return false
	}
	m.accept(ans, a)
	if about {
		m.void(a.code, ans.By)
	}
	if a.code != "shoe.too_many" {
		m.clear(a, ans.By)
	}
	return true
}

func (m *model) newShoe(ans round.Answer, a *mAlert) bool {
	if m.r.open || m.standing("reader.disagrees") != nil {
		return false
	}
	m.accept(ans, a)
	m.load(a.decks)
	m.clearAll(ans.By, "shoe.change_unproven", "shoe.too_many", "shoe.late_card")
	if a.code == "shoe.change_unproven" && a.card != nil {
		m.proposed(a.card)
	}
	return true
}

// "`hold_card` `next_round` `burn` `free_hand` (floor); `exposed: true` refuses
// `next_round`"; deal.while_paused: "`hold_card` `use` `burn`"; shoe.late_card:
// "`hold_card` `burn`"
func (m *model) holdCard(ans round.Answer, a *mAlert) bool {
	where := []string{"", "next_round", "burn", "free_hand", "use"}[ans.Where]
	allowed := map[string]string{"deal.extra_card": "next_round burn free_hand", "deal.while_paused": "use burn next_round", "shoe.late_card": "burn"}[a.code]
	if where == "" || !slices.Contains(strings.Fields(allowed), where) || where == "next_round" && ans.Exposed {
		return false
	}
	if a.code != "deal.while_paused" && a.card == nil {
		return false
	}
	m.accept(ans, a)
	m.clear(a, ans.By)
	switch {
	case a.code != "deal.while_paused":
		m.dispose(a.card, where)
	case where == "use":
		m.usable = len(m.waiting)
	default:
		for _, c := range m.waiting[m.usable:] {
			m.dispose(c, where)
		}
		m.waiting = m.waiting[:m.usable]
	}
	return true
}

// mNamed are the cards that an answer names, by box.
func mNamed(ans round.Answer) (named map[string]string, ok bool) {
	named = map[string]string{}
	for i, box := range []string{"", "P1", "P2", "P3", "B1", "B2", "B3"} {
		if ans.Cards[i] == round.Masked {
			return nil, false
		}
		if ans.Cards[i] != 0 {
			named[box] = ans.Cards[i].String()
		}
	}
	return named, true
}

// "`correct` (cards by box; argument `round` reaches any round of this shoe)"
func (m *model) correct(ans round.Answer, a *mAlert) bool {
	no := int(ans.Round)
	if no == 0 {
		no = m.r.no
	}
	named, ok := mNamed(ans)
	switch {
	case !ok:
		return false
	case no != 0 && no == m.r.no && m.r.open:
		return m.correctOpen(ans, a, named)
	case m.past[no] == nil:
		return false
	}
	return m.correctPast(ans, a, named, no)
}

// rearranged is the round in hand with the named cards in their boxes, "evaluated
// again in draw order"; ok is false when the rules do not deal these cards.
func (m *model) rearranged(cards []*mCard, named map[string]string) (now []*mCard, ok bool) {
	r := m.r
	m.r = &mRound{cards: cards}
	boxes, _, _ := m.layout()
	at := map[string]*mCard{}
	var loose []*mCard
	for i, c := range cards {
		if boxes[i] == "" {
			loose = append(loose, c)
		} else {
			at[boxes[i]] = c
		}
	}
	for box, face := range named {
		at[box] = &mCard{face: face, shown: true, count: true}
	}
	m.r.cards = nil
	for {
		_, due, _ := m.layout()
		if due == "" || at[due] == nil {
			break
		}
		m.r.cards = append(m.r.cards, at[due])
		delete(at, due)
	}
	for len(loose) > 0 && len(m.r.cards) >= 4 && len(m.r.cards) < 6 {
		m.r.cards = append(m.r.cards, loose[0])
		loose = loose[1:]
	}
	now, m.r = m.r.cards, r
	return now, len(at) == 0 && len(loose) == 0
}

func (m *model) correctOpen(ans round.Answer, a *mAlert, named map[string]string) bool {
	now, ok := m.rearranged(m.r.cards, named)
	if !ok {
		return false
	}
	m.accept(ans, a)
	unread := a != nil && a.code == "reader.unread"
	if unread && a.card != nil && a.card.face != "??" {
		m.known[a.card.face]--
	}
	m.lay(ans, now, unread)
	m.clear(a, ans.By)
	m.nothingWaits(ans.By)
	return true
}

// lay puts the corrected cards on the table, counts those that nobody counted,
// and shows those that the answer named.
func (m *model) lay(ans round.Answer, now []*mCard, unread bool) {
	m.closeWindow("shown") // "any further card of the round shown (`shown`)"
	was := map[string]*mCard{}
	boxes, _, _ := m.layout()
	for i, c := range m.r.cards {
		was[boxes[i]] = c
	}
	before := m.r.cards
	m.r.cards = now
	boxes, _, _ = m.layout()
	m.r.cards = before
	for i, c := range now {
		old := was[boxes[i]]
		switch {
		case boxes[i] == "" || old != nil && old.face == c.face:
			continue
		case old != nil && old.face != "??":
			m.known[old.face]--
		case old != nil:
		case unread:
			unread = false
		case m.tookWaiting(c.face):
			continue
		}
		m.countFace(c.face)
	}
	m.r.cards = now
	m.r.actedAt = m.now
	m.r.ignored, m.r.verdict = true, ""
	m.sayNamed(ans)
	// "is void, and so is all insurance of that round when this happened before the 4th or 5th card"
	if offers := slices.Clone(m.r.offers); mUnfounded(offers, m.at()) {
		m.exposed()
	}
}

func (m *model) sayNamed(ans round.Answer) {
	for i, box := range []string{"", "P1", "P2", "P3", "B1", "B2", "B3"} {
		if ans.Cards[i] != 0 {
			m.say("card.shown %s %s", mHand(box), ans.Cards[i])
		}
	}
}

// tookWaiting: a card that a correction adds is the oldest one held, when that
// has its face or none; else it left the shoe unseen.
func (m *model) tookWaiting(face string) (counted bool) {
	if len(m.waiting) == 0 || m.waiting[0].again || m.waiting[0].face != face && m.waiting[0].face != "??" {
		m.left--
		return false
	}
	counted = m.waiting[0].face == face
	m.waiting = m.waiting[1:]
	m.usable = max(m.usable-1, 0)
	return counted
}

func (m *model) nothingWaits(by string) {
	if len(m.waiting) == m.usable {
		m.clearAll(by, "deal.while_paused")
	}
}

// mLegal reports whether the draw table deals just these boxes.
func mLegal(at map[string]string) bool {
	cards := []string{at["P1"], at["B1"], at["P2"], at["B2"]}
	for {
		_, due, _ := mLayout("alternate", cards)
		if due == "" {
			return len(cards) == len(at)
		}
		if at[due] == "" {
			return false
		}
		cards = append(cards, at[due])
	}
}

// "If a correction of a decided round would change who had to draw, it takes
// `as_dealt` or `void`; the decision is published as `round.corrected` with
// `rev`, and its settlement again with the changed bets."
func (m *model) correctPast(ans round.Answer, a *mAlert, named map[string]string, no int) bool {
	p := m.past[no]
	at := map[string]string{}
	changed := false
	for box, face := range p.at {
		at[box] = face
	}
	for box, face := range named {
		changed = changed || at[box] != face
		at[box] = face
	}
	legal := mLegal(at)
	if !legal && !ans.AsDealt {
		return false
	}
	m.accept(ans, a)
	if changed {
		for _, box := range []string{"P1", "P2", "P3", "B1", "B2", "B3"} {
			switch old := p.at[box]; {
			case old == at[box]:
			case old != "":
				m.known[old]--
				m.countFace(at[box])
			case !m.tookWaiting(at[box]):
				m.countFace(at[box])
			}
		}
		m.sayNamed(ans)
		was := p.outcome
		e := mFinish(at)
		p.at, p.outcome, p.pairs, p.fixed, p.rev = at, e.outcome, e.pairs, true, p.rev+1
		if no == m.r.no {
			m.r.outcome, m.r.pairs = e.outcome, e.pairs
			m.r.cards, m.r.lie = nil, nil
			for box, face := range at {
				m.r.cards, m.r.lie = append(m.r.cards, &mCard{face: face, shown: true}), append(m.r.lie, box)
			}
		}
		text := fmt.Sprintf("round.corrected %s was %s", m.decision(no), was)
		if !legal {
			text += " as_dealt"
		}
		m.out = append(m.out, text)
		m.settle(no)
		// "After the outcome: re-settle, and void only offers that should not have existed."
		mUnfounded(p.offers, at)
		m.settleInsurance(no, p.offers, e.outcome)
	}
	if no == m.r.no {
		m.r.ignored, m.r.verdict = true, ""
	}
	if a != nil {
		m.clear(a, ans.By)
	} else {
		m.resumeIfFree()
	}
	m.nothingWaits(ans.By)
	return true
}

// `manual`: "cards by hand for this round or until off"
func (m *model) byHand(ans round.Answer, a *mAlert) bool {
	named, _ := mNamed(ans)
	if len(named) == 0 {
		m.accept(ans, a)
		m.manual = !m.manual
	} else {
		if !m.r.open && (m.phase != "play" || m.left < 6) {
			return false
		}
		var cards []*mCard
		if m.r.open {
			cards = m.r.cards
		}
		now, ok := m.rearranged(cards, named)
		if !ok {
			return false
		}
		m.accept(ans, a)
		if !m.r.open {
			m.begin()
		}
		m.lay(ans, now, false)
	}
	if lost := m.standing("reader.lost"); lost != nil { // it stands, and holds nothing
		lost.blocks = ""
	}
	m.resumeIfFree()
	return true
}

// ---- what package round says, in the model's words

var mKinds = map[round.EventKind]string{round.ShoeLoaded: "shoe.loaded", round.ShoeBurned: "shoe.burned", round.ShoeStarted: "shoe.started",
	round.ShoeCutCard: "shoe.cut_card", round.ShoeEnded: "shoe.ended", round.RoundOpened: "round.opened", round.CardDealt: "card.dealt",
	round.CardShown: "card.shown", round.RoundDecided: "round.decided", round.RoundSettled: "round.settled", round.RoundCorrected: "round.corrected",
	round.RoundVoided: "round.voided", round.InsuranceOpened: "insurance.opened", round.InsuranceClosed: "insurance.closed",
	round.InsuranceVoided: "insurance.voided", round.InsuranceSettled: "insurance.settled", round.TablePaused: "table.paused",
	round.TableResumed: "table.resumed", round.AlertRaised: "alert.raised", round.AlertReturned: "alert.returned", round.AlertAcked: "alert.acked", round.AlertCleared: "alert.cleared",
	round.AnswerAccepted: "answer.accepted", round.AnswerRefused: "answer.refused", round.DeviceLost: "device.lost", round.DeviceRestored: "device.restored",
	round.FreeHandOpened: "free_hand.opened", round.FreeHandClosed: "free_hand.closed"}

// reduced is an event in the model's words; "" for one that it leaves out.
func reduced(e *round.Event) string {
	kind := mKinds[e.Kind]
	if kind == "" || e.Seq == 0 {
		return ""
	}
	say := func(format string, args ...any) string { return kind + " " + fmt.Sprintf(format, args...) }
	switch e.Kind {
	case round.ShoeLoaded:
		return say("%d", e.Decks)
	case round.ShoeBurned, round.ShoeStarted, round.ShoeEnded:
		return say("%d", e.Cards)
	case round.ShoeCutCard:
		return say("%v", e.Last)
	case round.RoundOpened:
		return say("%d %s", e.Round, strings.Join(e.Text().Bets.([]string), " "))
	case round.CardDealt, round.CardShown:
		place := "unknown"
		switch {
		case e.To == round.ToFirst || e.To == round.ToBurn:
			place = mTo(e.To)
		case e.Hand != 0:
			place = fmt.Sprint(mSide(e.Hand), " ", e.Pos)
		}
		text := say("%s %s", place, e.Card)
		if e.Held {
			text += " held"
		}
		if e.Outside != 0 {
			text += " outside"
		}
		return text
	case round.RoundDecided, round.RoundCorrected:
		text := e.Text()
		line := say("%d rev %d %s player %s=%d banker %s=%d", e.Round, e.Rev, text.Outcome, strings.Join(text.Player.Cards, " "), *text.Player.Total, strings.Join(text.Banker.Cards, " "), *text.Banker.Total)
		for _, tag := range text.Tags {
			line += " " + tag
		}
		if e.Kind == round.RoundCorrected {
			line += " was " + text.Was
		}
		if e.AsDealt {
			line += " as_dealt"
		}
		return line
	case round.RoundSettled:
		line := say("%d rev %d", e.Round, e.Rev)
		for _, s := range e.Settled[:e.NBets] {
			line += " " + s.Bet.String() + "=" + s.Result.String()
			if s.Result == round.BetWon {
				line += "@" + s.Pays.String()
			}
		}
		return line
	case round.RoundVoided:
		return say("%d %s", e.Round, e.Code)
	case round.InsuranceOpened:
		line := say("%s", e.Stage)
		for _, o := range e.Offers[:e.NOffers] {
			line += fmt.Sprintf(" %d:%s:%s@%s", o.Row, o.Side, o.WinsOn, o.Pays)
		}
		return line
	case round.InsuranceClosed:
		return say("%s %s", e.Stage, e.Text().Why)
	case round.InsuranceVoided:
		return say("%d %s", e.Round, e.Text().Why)
	case round.InsuranceSettled:
		line := say("%d", e.Round)
		for _, o := range e.Offers[:e.NOffers] {
			line += fmt.Sprintf(" %d=%s", o.Row, o.Result)
		}
		return line
	case round.TablePaused, round.TableResumed:
		return say("%s", e.Code)
	case round.AlertRaised:
		return say("%d %s P%d", e.Alert, e.Code, e.Priority)
	case round.AlertAcked, round.AlertReturned:
		return say("%d %s", e.Alert, e.Code)
	case round.AlertCleared:
		return say("%d %s by %s", e.Alert, e.Code, e.By)
	case round.AnswerAccepted:
		if e.Alert == 0 {
			return say("%s", e.Do)
		}
		return say("%s %d %s", e.Do, e.Alert, e.Code)
	case round.AnswerRefused:
		return say("%s", e.Do)
	case round.DeviceLost, round.DeviceRestored:
		return say("%s", e.Device)
	}
	return say("%d", e.Round) // free_hand.opened, free_hand.closed
}

// ---- the shoes dealt

var modelSeed = flag.Uint64("model-seed", 0, "deal only the model check's shoe with this seed, as a disagreement printed it")

// modelRules are the settings that the model covers; the first is as likely as
// all others together.
var modelRules = [][]string{
	{"decks", "8", "6", "1"}, {"burn", "first_card", "none", "fixed:3", "unchecked"}, {"deal_order", "alternate", "pairs"},
	{"rounds_after_cut", "0", "1"}, {"round_start", "reader", "bets", "button", "boxes", "first_card"}, {"reveal", "on_draw", "on_signal"},
	{"verdict", "compare", "wait"}, {"tie_main", "push", "lose"}, {"commission_bp", "500", "400", "0"},
	{"bets_offered", "all", "player+banker+tie", "lucky_six+player_bonus+any_pair+banker_no_commission"},
	{"insurance", "on", "off"}, {"insurance_tie", "push", "lose"}, {"insurance_ms", "10000", "1500"}, {"insurance_post", "none", "dealer"},
	{"reveal_order", "any", "player_first", "banker_first"}, {"draw_wait_ms", "30000", "9000"}, {"card_gap_ms", "0", "150"},
	{"resolve_ms", "180000", "20000"}, {"cut_cards", "8..40", "0..255"}, {"deal.extra_card", "default", "next_round", "burn", "free_hand"},
	{"deal.early", "default", "void"}, {"deal.double_card", "default", "void"}, {"insurance.exposed", "default", "void"},
	{"reader.gap", "default", "void"}, {"reader.out_of_game", "default", "pause"}, {"shoe.change_unproven", "default", "accept"},
	{"shoe.suspect_order", "off"}, {"draw_gate", "off", "on"},
}

// dealer is a table: a shoe, hands that make mistakes, and a reader that tells.
type dealer struct {
	*rand.Rand
	m        *model
	rule     map[string]string
	at       time.Time
	deck     []string
	hand     []string // faces dealt in the round, in draw order
	toBurn   int      // cards still to burn; -1 before the first card
	pos      bool     // the reader says boxes
	masked   bool     // the reader names faces at the end
	overdraw int      // 1: the reader has one to settle; 2: it deals that card again
	finished bool     // the verdict was given
	rounds   int      // dealt in all
	careless int      // mistakes in a hundred inputs
	locked   bool     // the reader, by the draw gate
	long     bool     // a whole shoe, to where bets close
	mistakes map[string]int
}

func (d *dealer) chance(percent int) bool { return d.IntN(100) < percent }

func (d *dealer) pick(texts ...string) string { return texts[d.IntN(len(texts))] }

func (d *dealer) draw() string {
	if len(d.deck) == 0 {
		return "Ks" // one more than the shoe has
	}
	face := d.deck[0]
	d.deck = d.deck[1:]
	return face
}

func (d *dealer) shuffle() {
	decks := 0
	fmt.Sscan(d.rule["decks"], &decks)
	d.deck = nil
	for _, i := range d.Perm(decks * 52) {
		d.deck = append(d.deck, round.CardAt(i%52).String())
	}
	d.hand, d.toBurn, d.finished, d.overdraw = nil, -1, false, 0
}

func mCardOf(face string) round.Card {
	c, err := round.ParseCard(face)
	if err != nil {
		panic(err)
	}
	return c
}

// told is a card as the reader reports it for a box.
func (d *dealer) told(face, box string) round.Input {
	in := round.Input{Kind: round.InCard, Card: mCardOf(face)}
	if d.masked {
		in.Card = round.Masked
	}
	if d.pos && box != "" {
		in.To, in.Pos = round.ToPlayer, box[1]-'0'
		if box[0] == 'B' {
			in.To = round.ToBanker
		}
	}
	return in
}

// next is the table's next input.
func (d *dealer) next() round.Input {
	d.at = d.at.Add(time.Duration(200+d.IntN(2500)) * time.Millisecond)
	if d.chance(2) {
		d.at = d.at.Add(time.Duration(d.IntN(45)) * time.Second)
	}
	standing := len(d.m.alerts)
	switch {
	case standing > 9, standing > 0 && d.m.paused != "" && d.chance(45), standing > 0 && d.chance(12), d.m.manual && d.chance(20), d.chance(1):
		return d.answer()
	case d.m.down && d.chance(15):
		return round.Input{Kind: round.InLink, Name: "reader", On: true}
	case d.m.r.byPause && d.m.paused == "" && d.m.r.open && d.chance(40):
		return d.answered(round.Answer{Do: round.DoReopen}, nil)
	case d.chance(1):
		return d.answered(round.Answer{Do: round.DoRevealOrder, Order: round.RevealOrder(d.IntN(4))}, nil)
	case d.chance(d.careless):
		return d.mistake()
	case d.rule["draw_gate"] == "on" && d.locked != d.m.gateShut() && d.chance(50):
		d.locked = !d.locked
		return round.Input{Kind: round.InLock, On: d.locked}
	}
	return d.play()
}

// play is what a dealer does who makes no mistake.
func (d *dealer) play() round.Input {
	switch {
	case d.m.phase == "" || d.m.phase == "over" && d.chance(60):
		d.shuffle()
		if d.rule["burn"] != "first_card" || d.chance(70) {
			d.toBurn = map[string]int{"none": 0, "fixed:3": 3, "unchecked": d.IntN(3)}[d.rule["burn"]]
			if d.rule["burn"] == "first_card" {
				d.toBurn = -1
			}
			if d.m.phase == "over" && d.chance(30) {
				return round.Input{Kind: round.InReader, Reader: round.ReaderStart}
			}
			return round.Input{Kind: round.InShoe}
		}
		return d.burnCard()
	case d.m.phase == "first" || d.m.phase == "burning" && d.toBurn > 0:
		return d.burnCard()
	}
	_, due, complete := mLayout(d.rule["deal_order"], d.hand)
	if !d.m.r.open && !complete && d.chance(30) { // no round is open: they are taken from the table
		d.hand, d.finished = nil, false
	}
	switch {
	case d.m.phase == "play" && !d.m.cut && (!d.long || d.m.rounds > 60) && d.chance(1):
		return round.Input{Kind: round.InCut}
	case len(d.hand) == 0:
		return d.begin()
	case d.rule["reveal"] == "on_signal" && d.covered(false) >= 0 && d.chance(95) && (complete || len(d.hand) >= 4 && d.chance(60)):
		boxes, _, _ := d.m.layout()
		box := boxes[d.covered(false)]
		if box == "" || d.chance(20) {
			return round.Input{Kind: round.InReveal, Hand: round.Side(1 + d.IntN(2))}
		}
		return round.Input{Kind: round.InReveal, Box: mBoxNo(box)}
	case d.m.r.window && d.chance(40):
		return d.insure()
	case !complete && d.chance(96):
		face := d.draw()
		d.hand = append(d.hand, face)
		return d.told(face, due)
	case d.covered(true) >= 0 && d.chance(95):
		i := d.covered(true)
		boxes, _, _ := mLayout(d.rule["deal_order"], d.hand)
		in := round.Input{Kind: round.InShow, Card: mCardOf(d.hand[i]), To: round.ToPlayer, Pos: uint8(1 + d.IntN(3))}
		if box := boxes[i]; box != "" {
			if in.Pos = box[1] - '0'; box[0] == 'B' {
				in.To = round.ToBanker
			}
		}
		return in
	case !complete:
		return round.Input{Kind: round.InTick}
	case d.overdraw == 1:
		d.overdraw = 2
		return round.Input{Kind: round.InFault, Code: 2}
	case !d.finished && (d.pos || d.rule["verdict"] == "wait" || d.chance(30)):
		d.finished = true
		return d.verdict()
	}
	d.hand, d.finished = nil, false
	d.rounds++
	if d.chance(15) {
		return round.Input{Kind: round.InButton, Button: round.ButtonEnd}
	}
	return d.begin()
}

// covered is the first card of the table's round that nobody has seen: one that
// the reader masked, or one that it knows. -1 when there is none.
func (d *dealer) covered(masked bool) int {
	for i, c := range d.m.r.cards {
		if d.m.r.open && i < len(d.hand) && !c.shown && (c.face == "??") == masked {
			return i
		}
	}
	return -1
}

func mBoxNo(box string) round.Box {
	return round.Box(slices.Index([]string{"", "P1", "P2", "P3", "B1", "B2", "B3"}, box))
}

func (d *dealer) burnCard() round.Input {
	in := round.Input{Kind: round.InCard}
	face := d.draw()
	if d.toBurn < 0 {
		in.To = round.ToFirst
		if d.toBurn = mValue[face[0]]; d.toBurn == 0 {
			d.toBurn = 10
		}
	} else {
		in.To = round.ToBurn
		d.toBurn--
	}
	in.Card = mCardOf(face)
	if in.To == round.ToFirst && d.masked && d.chance(30) {
		in.Card = round.Masked // perhaps a later show names it
	}
	return in
}

// begin says what this table says before a round, or deals its first card.
func (d *dealer) begin() round.Input {
	switch d.rule["round_start"] {
	case "bets":
		if d.m.bets == "" {
			return round.Input{Kind: round.InBets, Open: true}
		}
		if d.m.bets == "open" && d.chance(90) {
			return round.Input{Kind: round.InBets}
		}
	case "button":
		if !d.m.started && d.chance(95) {
			return round.Input{Kind: round.InButton, Button: round.ButtonStart}
		}
	case "boxes":
		if !d.m.cleared && len(d.m.boxes) == 0 {
			return round.Input{Kind: round.InPlaced, Box: round.P1}
		}
		if !d.m.cleared && d.chance(95) {
			return round.Input{Kind: round.InLifted, Box: mBoxNo(slices.Sorted(maps.Keys(d.m.boxes))[0])}
		}
	}
	again := d.overdraw == 2 && d.pos
	if d.overdraw = 0; again {
		face := d.draw()
		d.hand = []string{face}
		in := d.told(face, "P1")
		in.Again = true
		return in
	}
	d.hand = []string{d.draw()}
	return d.told(d.hand[0], "P1")
}

func (d *dealer) insure() round.Input {
	in := round.Input{Kind: round.InInsurance, Insurance: round.Insurance{Do: round.InsuranceClose}}
	if d.chance(60) {
		in.Insurance = round.Insurance{Do: round.InsurancePost, Side: round.Side(1 + d.IntN(2)), WinsOn: round.Outcome(1 + d.IntN(3)), Pays: round.Ratio{Num: uint16(1 + d.IntN(4)), Den: 1}}
		if len(d.m.r.offers) > 0 && d.chance(70) {
			row := mRows[d.m.r.offers[len(d.m.r.offers)-1].row]
			in.Insurance.Side = round.Side(slices.Index([]string{"", "player", "banker"}, row.side))
			in.Insurance.WinsOn = round.Outcome(slices.Index([]string{"", "player", "banker", "tie"}, row.winsOn))
			fmt.Sscanf(row.pays, "%d:%d", &in.Insurance.Pays.Num, &in.Insurance.Pays.Den)
			in.Insurance.Spot = round.Side(max(0, d.IntN(6)-3))
		}
	}
	return in
}

func (d *dealer) verdict() round.Input {
	boxes, _, complete := mLayout(d.rule["deal_order"], d.hand)
	v := round.Verdict{Outcome: round.Outcome(1 + d.IntN(3))}
	if complete {
		at := map[string]string{}
		for i, box := range boxes {
			if box != "" {
				at[box] = d.hand[i]
			}
		}
		e := mFinish(at)
		v = round.Verdict{Outcome: round.Outcome(slices.Index([]string{"", "player", "banker", "tie"}, e.outcome)),
			PlayerPair: strings.Contains(e.pairs, "player"), BankerPair: strings.Contains(e.pairs, "banker")}
	}
	return round.Input{Kind: round.InVerdict, Verdict: v}
}

// mistakes of people and of readers. One that cannot be made now is a card too
// many or a tick.
var mistakes = []string{"extra card", "missing: end", "missing: verdict", "missing: next P1", "skipped index", "wrong hand", "unread", "gap", "reader start",
	"restart", "link", "verdict differs", "forced quit", "overdraw", "overdraw named", "burn too many", "burn too few", "shoe change", "cut card",
	"call", "quick card", "out of game", "reverse", "bets early", "end of deck", "copies", "face named twice", "start", "reveal", "insurance", "lock", "setting", "tick", "again", "manual", "shoe button", "masked card", "no position", "box", "wire", "device"}

func (d *dealer) mistake() round.Input {
	kind := d.pick(mistakes...)
	d.mistakes[kind]++
	_, due, _ := mLayout(d.rule["deal_order"], d.hand)
	card := func(box string) round.Input {
		face := d.draw()
		if len(d.hand) > 0 && len(d.hand) < 6 && d.chance(50) {
			d.hand = append(d.hand, face) // the dealer lays it with the others
		}
		return d.told(face, box)
	}
	switch kind {
	case "missing: end":
		return round.Input{Kind: round.InButton, Button: round.ButtonEnd}
	case "missing: verdict", "verdict differs":
		return round.Input{Kind: round.InVerdict, Verdict: round.Verdict{Outcome: round.Outcome(1 + d.IntN(3)), PlayerPair: d.chance(10)}}
	case "missing: next P1":
		d.hand, d.finished = []string{d.draw()}, false
		return d.told(d.hand[0], "P1")
	case "skipped index":
		if due != "" && due[1] < '3' {
			return card(due[:1] + string(due[1]+1))
		}
	case "wrong hand":
		if due != "" {
			return card(map[byte]string{'P': "B", 'B': "P"}[due[0]] + due[1:])
		}
	case "unread":
		d.hand = append(d.hand, d.draw()) // it lies on the table, and comes again below
		if len(d.hand) > 6 {
			d.hand = d.hand[:6]
		}
		return []round.Input{{Kind: round.InUnread, Name: "torn"}, {Kind: round.InFault, Code: 1, On: true}, {Kind: round.InFault, Code: 6, On: true}}[d.IntN(3)]
	case "gap":
		return round.Input{Kind: round.InReader, Reader: round.ReaderGap}
	case "reader start":
		return round.Input{Kind: round.InReader, Reader: round.ReaderSays(1 + d.IntN(2))}
	case "restart":
		return round.Input{Kind: round.InRestart}
	case "link":
		return round.Input{Kind: round.InLink, Name: "reader", On: d.m.down}
	case "forced quit":
		return round.Input{Kind: round.InVerdict, Verdict: round.Verdict{Quit: true}}
	case "overdraw":
		if d.overdraw == 0 {
			d.overdraw = 1
			return round.Input{Kind: round.InFault, Code: 2, On: true}
		}
		return round.Input{Kind: round.InCard, Card: round.Masked, Outside: round.OutsideOverdraw}
	case "overdraw named":
		return round.Input{Kind: round.InShow, Card: mCardOf(d.draw()), Over: true}
	case "burn too many":
		return round.Input{Kind: round.InCard, Card: mCardOf(d.draw()), To: round.ToBurn}
	case "burn too few":
		d.toBurn = 0
		return round.Input{Kind: round.InTick}
	case "shoe change":
		if d.chance(50) {
			return round.Input{Kind: round.InShoe, Decks: uint8(d.IntN(2) * 8)}
		}
		return round.Input{Kind: round.InCard, Card: mCardOf(d.draw()), To: round.ToFirst}
	case "cut card":
		return round.Input{Kind: round.InCut}
	case "call":
		return round.Input{Kind: round.InButton, Button: round.ButtonCall}
	case "quick card":
		d.at = d.at.Add(-150 * time.Millisecond)
		return card(due)
	case "out of game":
		if d.m.gateLocked {
			return round.Input{Kind: round.InCard, Card: mCardOf(d.draw()), Outside: round.OutsideLock}
		}
		return round.Input{Kind: round.InCard, Card: mCardOf(d.draw()), Outside: round.Outside(1 + d.IntN(3))}
	case "reverse":
		return round.Input{Kind: round.InFault, Code: uint8(3 + d.IntN(4)), On: d.chance(80)}
	case "bets early":
		return round.Input{Kind: round.InBets, Open: d.chance(80)}
	case "end of deck":
		if len(d.deck) > 8 && d.rule["decks"] == "1" {
			d.deck = d.deck[:8]
		}
	case "copies":
		if len(d.deck) > 3 {
			d.deck[0], d.deck[1] = d.deck[2], d.deck[2]
		}
	case "face named twice":
		return round.Input{Kind: round.InShow, Card: mCardOf(d.draw()), To: round.To(1 + d.IntN(3)), Pos: uint8(1 + d.IntN(3))}
	case "start":
		return round.Input{Kind: round.InButton, Button: round.ButtonStart}
	case "reveal":
		if d.chance(50) {
			return round.Input{Kind: round.InReveal, Box: round.Box(1 + d.IntN(6))}
		}
		return round.Input{Kind: round.InReveal, Hand: round.Side(1 + d.IntN(2))}
	case "insurance":
		return d.insure()
	case "box":
		return round.Input{Kind: []round.Kind{round.InPlaced, round.InLifted}[d.IntN(2)], Box: round.Box(1 + d.IntN(2)), Foreign: d.chance(20)}
	case "wire":
		return round.Input{Kind: round.InWire, Name: d.pick("panel", "boxes"), Line: d.pick("call", "P1"), Wire: round.WireSays(1 + d.IntN(3))}
	case "device":
		return round.Input{Kind: round.InLink, Name: d.pick("boxes", "panel", "lamps"), On: d.chance(50)}
	case "lock":
		return round.Input{Kind: round.InLock, On: d.chance(60)}
	case "setting":
		return round.Input{Kind: round.InSetting, On: d.chance(60), Address: []string{"", "12"}[d.IntN(2)]}
	case "tick":
		d.at = d.at.Add(time.Duration(d.IntN(200)) * time.Second)
		return round.Input{Kind: round.InTick}
	case "again":
		in := card("P1")
		in.Again = true
		return in
	case "manual":
		return d.answered(round.Answer{Do: round.DoManual}, nil)
	case "shoe button":
		return round.Input{Kind: round.InButton, Button: round.ButtonShoe}
	case "masked card":
		in := card(due)
		in.Card = round.Masked
		return in
	case "no position":
		in := card(due)
		in.To, in.Pos = 0, 0
		return in
	}
	return card(d.pick("P3", "B3", due))
}

// answer is what a supervisor does: mostly right, sometimes not.
func (d *dealer) answer() round.Input {
	alerts := d.m.alerts
	if len(alerts) == 0 || d.chance(12) {
		ans := round.Answer{Do: round.Do(1 + d.IntN(18)), Where: round.Where(d.IntN(5)), Exposed: d.chance(20)}
		if ans.Do == round.DoArranged {
			ans.Do = round.DoCorrect
		}
		return d.answered(ans, nil)
	}
	a := alerts[d.IntN(len(alerts))]
	if d.chance(5) { // seen, or kept aside, but not decided
		return d.answered(round.Answer{Do: []round.Do{round.DoAck, round.DoShelve, round.DoUnshelve}[d.IntN(3)], ForMS: uint32(d.IntN(2) * 60000), Alert: uint32(a.no)}, a)
	}
	do := strings.Fields(mRules[a.code].answers)
	if len(do) == 0 {
		return round.Input{Kind: round.InTick}
	}
	name := do[d.IntN(len(do))]
	for no := range 13 {
		if mDo(round.Do(no)) == name {
			where := []round.Where{round.WhereNextRound, round.WhereBurn, round.WhereFreeHand}[d.IntN(3)]
			if a.code == "deal.while_paused" {
				where = round.WhereUse
			}
			if a.code == "shoe.late_card" || d.chance(20) {
				where = round.Where(1 + d.IntN(4))
			}
			return d.answered(round.Answer{Do: round.Do(no), Where: where, Exposed: d.chance(20)}, a)
		}
	}
	panic(name)
}

func (d *dealer) answered(ans round.Answer, a *mAlert) round.Input {
	ans.By = d.pick("anna", "bela")
	if a != nil && d.chance(50) {
		ans.Alert = uint32(a.no)
	}
	if ans.Alert == 0 && d.chance(5) {
		ans.Alert = uint32(1 + d.IntN(d.m.alertNo+1))
	}
	switch ans.Do {
	case round.DoCorrect:
		boxes, _, _ := mLayout(d.rule["deal_order"], d.hand)
		if d.m.r.open && d.chance(75) { // as they lie on the table
			for i, box := range boxes {
				if box != "" && d.chance(80) {
					ans.Cards[mBoxNo(box)] = mCardOf(d.hand[i])
				}
			}
		} else {
			ans.Cards[1+d.IntN(6)] = round.CardAt(d.IntN(52))
			ans.AsDealt = d.chance(40)
			if d.m.rounds > 0 && d.chance(60) {
				ans.Round = uint16(1 + d.IntN(d.m.rounds))
			}
		}
		if d.chance(3) {
			ans.Cards[1] = round.Masked
		}
	case round.DoManual:
		if d.chance(40) {
			for i, face := range d.hand {
				if boxes, _, _ := mLayout(d.rule["deal_order"], d.hand); boxes[i] != "" {
					ans.Cards[mBoxNo(boxes[i])] = mCardOf(face)
				}
			}
		}
	}
	return round.Input{Kind: round.InAnswer, Answer: ans}
}

// ---- the comparison

// modelCheck deals one shoe to both and reports whether they agreed.
func modelCheck(t *testing.T, seed uint64, count *modelCount) bool {
	d := &dealer{Rand: rand.New(rand.NewPCG(seed, 6)), rule: map[string]string{}, at: start, mistakes: count.mistakes}
	rules := round.DefaultRules()
	for _, r := range modelRules {
		value := r[1]
		if len(r) > 2 && d.chance(50) {
			value = r[2+d.IntN(len(r)-2)]
		}
		d.rule[r[0]] = value
		set(t, &rules, r[0]+"="+value)
	}
	d.m, d.pos, d.masked = newModel(d.rule), d.chance(70) || d.rule["round_start"] == "reader", d.chance(20)
	d.careless = []int{1, 3, 5, 10}[d.IntN(4)]
	inputs, most := 130, 15
	if d.long = seed%50 == 0; d.long {
		d.careless, inputs, most = 1, 800, 100
	}
	s := round.New(rules)
	var fed []string // as a transcript is written
	var events []round.Event
	var err error
	for range inputs {
		if len(d.m.waiting)+len(d.m.next) > 26 || len(d.m.alerts) > 14 || d.rounds > most {
			break
		}
		in := d.next()
		in.At = d.at
		fed = append(fed, string(in.AppendText(nil)))
		count.inputs++
		want := d.m.step(in)
		if s, events, err = s.Step(in, events[:0]); err != nil {
			t.Errorf("seed %d: Step refuses %s: %v", seed, in.AppendText(nil), err)
			return false
		}
		var got []string
		for i := range events {
			if text := reduced(&events[i]); text != "" {
				got = append(got, text)
			}
			if events[i].Kind == round.RoundVoided { // the dealer clears the table
				d.hand, d.finished = nil, false
			}
		}
		count.note(got)
		if !slices.Equal(want, got) {
			t.Error(disagreement(seed, d.rule, fed, want, got))
			return false
		}
		if shut := s.GateShut(); shut != d.m.gateShut() {
			t.Error(disagreement(seed, d.rule, fed, []string{fmt.Sprint("gate shut: ", !shut)}, []string{fmt.Sprint("gate shut: ", shut)}))
			return false
		} else if shut {
			count.kinds["gate shut"]++
		}
		for _, text := range got {
			fed = append(fed, "  "+text)
		}
	}
	if *modelSeed != 0 {
		t.Log(strings.Join(fed, "\n"))
	}
	count.shoes++
	return true
}

func disagreement(seed uint64, rule map[string]string, fed []string, want, got []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d (repeat with -run TestModel -model-seed %d): package and model disagree\nrules", seed, seed)
	for _, r := range modelRules {
		fmt.Fprintf(&b, " %s=%s", r[0], rule[r[0]])
	}
	fmt.Fprintf(&b, "\n%s\nmodel:\n  %s\nround:\n  %s", strings.Join(fed, "\n"), strings.Join(want, "\n  "), strings.Join(got, "\n  "))
	return b.String()
}

// TestModelAnswers: the package allows the answers that section 5 lists.
func TestModelAnswers(t *testing.T) {
	for _, code := range round.Codes() {
		want, ok := mRules[code.String()]
		if !ok {
			continue // one of those that the model leaves out
		}
		var got []string
		for _, do := range code.Answers() {
			got = append(got, do.String())
		}
		slices.Sort(got)
		if allowed := strings.Fields(want.answers); !slices.Equal(got, slices.Sorted(slices.Values(allowed))) {
			t.Errorf("%s: answers %v, want %v", code, got, allowed)
		}
	}
}

// modelCount is what was dealt, to see that it was worth it.
type modelCount struct {
	shoes, inputs         int
	mistakes, kinds, code map[string]int
}

func (c *modelCount) note(texts []string) {
	for _, text := range texts {
		kind, rest, _ := strings.Cut(text, " ")
		c.kinds[kind]++
		if kind == "alert.raised" {
			c.code[strings.Fields(rest)[1]]++
		}
		if kind == "round.settled" && strings.Contains(rest, "=closed") {
			c.code["bets closed"]++
		}
		if kind == "answer.accepted" || kind == "answer.refused" {
			c.code[kind+" "+strings.Fields(rest)[0]]++
		}
	}
}

// TestModel deals random shoes to the package and to the model: half of them
// always the same, half of the day.
func TestModel(t *testing.T) {
	shoes := 10_000
	if testing.Short() {
		shoes = 500
	}
	day := uint64(time.Now().UnixNano())
	if *modelSeed != 0 {
		shoes = 1
	}
	t.Logf("%d shoes: half with seeds from 1, half with seeds from %d", shoes, day)
	const workers = 2
	counts := make([]*modelCount, workers)
	var wait sync.WaitGroup
	for w := range workers {
		counts[w] = &modelCount{mistakes: map[string]int{}, kinds: map[string]int{}, code: map[string]int{}}
		wait.Go(func() {
			for i := w; i < shoes; i += workers {
				seed := uint64(i/2 + 1)
				if i%2 == 1 {
					seed += day
				}
				if *modelSeed != 0 {
					seed = *modelSeed
				}
				if !modelCheck(t, seed, counts[w]) {
					return
				}
			}
		})
	}
	wait.Wait()
	all := counts[0]
	for _, c := range counts[1:] {
		all.shoes += c.shoes
		all.inputs += c.inputs
		for i, m := range []map[string]int{c.mistakes, c.kinds, c.code} {
			for k, n := range m {
				[]map[string]int{all.mistakes, all.kinds, all.code}[i][k] += n
			}
		}
	}
	t.Logf("%d shoes, %d inputs\nmistakes %v\nevents %v\nalerts and answers %v", all.shoes, all.inputs, all.mistakes, all.kinds, all.code)
	if *modelSeed != 0 || testing.Short() || t.Failed() {
		return
	}
	// A check that never meets a rule proves nothing of it.
	met := append(slices.Sorted(maps.Keys(mRules)), "bets closed", "answer.accepted reopen", "answer.accepted manual", "answer.accepted void_insurance")
	for _, name := range met {
		if all.code[name] == 0 {
			t.Errorf("%s happened in no shoe", name)
		}
	}
}
