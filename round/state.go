package round

// State is everything the table's controller knows, as one comparable value:
// copy it to keep it, compare with ==. Only Step makes a new one.
type State struct {
	Rules     Rules  // of the shoe in hand
	NextRules Rules  // of the shoes to come
	Seq       uint64 // number of the last public event

	Shoe  Shoe
	Round Round // in hand, or the last one until the next opens

	Alerts     [MaxAlerts]Alert // standing, oldest first
	AlertNo    uint32           // number of the last alert raised
	AlertsLost uint32           // did not fit among the standing ones
	PausedBy   Code             // first code that paused the table; 0 when it is not paused

	Waiting Queue // drawn while paused, in draw order
	Usable  uint8 // of those, how many may be dealt when the table resumes
	Next    Queue // to be dealt first when the next round opens

	Past [maxRounds]Past // this shoe's rounds, by number

	SensorsOff     bool // until the next shoe, or one after they are back: somebody said they see wrong
	Manual         bool // cards are given by hand until said otherwise
	PausedAt       int64
	UnresolvedTold bool
	LastDrawAt     int64  // ns UTC, of the last card fresh from the shoe
	PrivateNo      uint32 // number of the last alert that is not public

	NextFree   bool        // the next round is a free hand
	NextOrder  RevealOrder // of the next round, where somebody said one
	ReaderDown bool        // the link of the reader in use is down
	Active     string      // name of the reader in use; "" the first
	TestUntil  int64       // ns UTC; until then the reader is tested, and nothing that it tells counts
	GateShutAt int64       // ns UTC, when the draw gate was last seen shut; 0 never
	GateLocked bool        // the reader said that it is locked, by the draw gate
	Closed     bool        // the table is closed until somebody or a round opens it

	Bets        BetsState
	BetsCloseAt int64    // ns UTC, as announced; 0 when nobody said
	Started     bool     // the start button was pressed since the last round
	Placed      uint8    // boxes with a card in them, a bit each
	Early       [7]Early // cards that lie in a box and are not of the round yet, by Box
	Cleared     bool     // all boxes were empty since the last round
	Tally       Tally    // of this shoe
	Last        Summary  // the last decided round
}

// New is a table that has never seen a shoe.
func New(rules Rules) State { return State{Rules: rules, NextRules: rules, Cleared: true} }

// Adopt makes rules hold from the next shoe on, or from now on where no shoe was
// ever seen: there is none to finish under the old ones, and how the first one
// begins is for the new ones to say.
func (s *State) Adopt(rules Rules) {
	s.NextRules = rules
	if s.Shoe.Phase == NoShoe {
		s.Rules = rules
	}
}

// BetsState is where the bets of the next or present round stand.
type BetsState uint8

const (
	BetsUnknown BetsState = iota
	BetsOpen
	BetsClosed
)

// Phase of a shoe.
type Phase uint8

const (
	NoShoe      Phase = iota
	ShoeFirst         // its first card is awaited
	ShoeBurning       // cards are being burned
	ShoeInPlay
	ShoeOver // its last round is over: what still comes is drained
)

// maxBurn bounds the cards burned from one shoe: the largest first card's
// value with the first card itself, and room for a house's own number.
const maxBurn = 20

// Shoe is the shoe in hand and where each of its cards went.
type Shoe struct {
	No       uint32 // counted from 1, never reset
	Phase    Phase
	Decks    uint8
	Out      uint16       // cards that left the shoe
	Known    [Faces]uint8 // of those, faces that the reader knows
	Shown    [Faces]uint8 // of those, faces that the table has shown
	First    Card         // the first card, when there was one
	BurnDue  uint8        // cards to burn; meaningless while unchecked
	Burned   [maxBurn]Card
	NBurned  uint8
	Rounds   uint16 // numbers used
	CutOut   bool   // the cut card has come out
	LastNo   uint16 // number of the last round, once the cut card is out
	OverTold bool   // the drained cards were reported
	Order    order
	Account  Account
}

// Account says where the cards that left a shoe went. Every card is in one
// place.
type Account struct {
	Rounds, Burned, Held, OutOfGame, Void, Drained uint16
}

// Cards in the whole shoe.
func (s *Shoe) Cards() int { return int(s.Decks) * Faces }

// Left is how many cards are still in the shoe.
func (s *Shoe) Left() int { return s.Cards() - int(s.Out) }

// Drawn is a card that left the shoe during play.
type Drawn struct {
	Card   Card   // face as the reader knows it, or Masked
	To     To     // where the reader says it goes
	Claim  Box    // the reader's own box, when it says one
	Box    Box    // by the rules; 0 until known
	Quick  bool   // drawn within card_gap_ms of the card before
	Again  bool   // dealt again by the reader after an overdraw
	Over   bool   // drawn over at the reader
	Named  bool   // over: the reader named it, so it was seen
	Shown  bool   // the table has shown the face
	Turned bool   // the table turned it before its face was known
	Doubt  bool   // the reader named two faces for it
	Agreed bool   // the reader's box was compared with the rules
	Counts bool   // it is counted among the cards out of the shoe
	Shoe   uint32 // number of the shoe that it is taken to be from
	At     int64  // ns UTC, when it was told; 0 when it was said by hand
}

// seen is the face if the table has shown it, else Masked.
func (d *Drawn) seen() Card {
	if d.Shown && d.Card.Known() {
		return d.Card
	}
	return Masked
}

// Round is one deal from its first card to its outcome.
type Round struct {
	No       uint16
	Rev      uint8
	Open     bool
	Decided  bool
	Void     bool
	Free     bool        // a free hand: dealt without bets
	Order    RevealOrder // of this round, where somebody said one; else the rules'
	N        uint8       // cards drawn
	Cards    [6]Drawn    // in draw order
	Due      Box         // the box due next; 0 when none is or it is not known yet
	Complete bool        // all cards that the rules ask for are there and shown
	Ended    bool        // the dealer pressed end
	Outcome  Outcome
	Tags     Tags

	Verdict       Verdict // the reader's own, once given
	HasVerdict    bool
	ReaderIgnored bool  // the reader's boxes and verdict prove nothing in this round
	CompleteAt    int64 // ns UTC, when the last due card was shown

	Lies       [6]Box   // where each drawn card lies, as sensors see it; 0 nowhere
	Sensed     [7]Card  // by Box: the face that an RFID sensor sees there
	DrawnAt    [6]int64 // ns UTC
	WrongSince [6]int64 // ns UTC, since when a card lies in a wrong box; 0 not
	Retold     uint8    // boxes with a card that sensors, back again, are to tell once more, a bit each
	ActedAt    int64    // ns UTC, of the last draw, reveal, window's close or end of a pause
	LateTold   bool

	Insured insured
}

// maxRounds of a shoe: the largest one has room for 624/4.
const maxRounds = MaxDecks * Faces / 4

// Past is a closed round, kept so that a correction can reach it.
type Past struct {
	Boxes   [6]Card // by box; zero where none
	Outcome Outcome // 0 when void
	Tags    Tags
	Rev     uint8
	Made    [maxOffers]uint8 // offers that were made: row's index plus one, and pastVoid
}

const pastVoid = 0x80

// Results are the rounds of this shoe that are on the roads, oldest first:
// decided ones, free hands only where the house puts them there.
func (s *State) Results() []RoadResult {
	var all []RoadResult
	for i := range s.Past[:s.Shoe.Rounds] {
		p := &s.Past[i]
		if p.Outcome != 0 && (p.Tags&TagFreeHand == 0 || s.Rules.FreeHandOnRoads) {
			all = append(all, RoadResult{Outcome: p.Outcome, Tags: p.Tags})
		}
	}
	return all
}

func (p *Past) keepOffers(w *insured) {
	for i, m := range w.Made[:w.N] {
		if p.Made[i] = m.Row; m.Void {
			p.Made[i] |= pastVoid
		}
	}
}

// Tally counts the shoe's decided rounds.
type Tally struct {
	Player, Banker, Tie    uint16
	PlayerPair, BankerPair uint16
	Natural                uint16
	Rounds, Void           uint16
}

// Summary is a decided round as the table has shown it.
type Summary struct {
	No             uint16
	Rev            uint8
	Outcome        Outcome
	Player, Banker Hand
	Tags           Tags
}

// queueRoom bounds the cards held aside. A whole round is six cards and a
// dealer who has not seen the red lamp for five rounds will be stopped by hand.
const queueRoom = 32

// Queue of held cards in draw order.
type Queue struct {
	N     uint8
	Cards [queueRoom]Drawn
}

func (q *Queue) push(d Drawn) bool {
	if int(q.N) == len(q.Cards) {
		return false
	}
	q.Cards[q.N] = d
	q.N++
	return true
}

// pushFront puts in a card drawn before all others. When there is no room it
// returns the newest, which gave way.
func (q *Queue) pushFront(d Drawn) (out Drawn) {
	out = q.Cards[queueRoom-1]
	copy(q.Cards[1:], q.Cards[:])
	q.Cards[0] = d
	q.N = min(q.N+1, queueRoom)
	return out
}

// keep drops the cards that are not of a shoe and returns how many of the first
// n are left.
func (q *Queue) keep(shoe uint32, n uint8) uint8 {
	var kept Queue
	left := uint8(0)
	for i, d := range q.Cards[:q.N] {
		if d.Shoe == shoe {
			kept.push(d)
			if i < int(n) {
				left++
			}
		}
	}
	*q = kept
	return left
}

func (q *Queue) pop() Drawn { return q.take(0) }

// take removes the card at i.
func (q *Queue) take(i uint8) Drawn {
	d := q.Cards[i]
	copy(q.Cards[i:], q.Cards[i+1:q.N])
	q.N--
	q.Cards[q.N] = Drawn{}
	return d
}

// Shown is a side's cards as the table has shown them, in their boxes' order.
func (r *Round) Shown(side Side) Hand {
	var h Hand
	for i := range r.Cards[:r.N] {
		if d := &r.Cards[i]; d.Box.Side() == side {
			h.Cards[h.N] = d.seen()
			h.N++
		}
	}
	return h
}
