package round

import "time"

// Kind of an Input: what was observed.
type Kind uint8

const (
	InShoe      Kind = iota + 1 // a new shoe was loaded
	InCard                      // a card left the shoe
	InShow                      // the reader names a card it had masked
	InUnread                    // a card left the shoe unread
	InCut                       // the cut card came out
	InReader                    // the reader started, stands by, or lost telegrams
	InPlaced                    // a card lies in a box
	InLifted                    // a card left a box
	InReveal                    // the table turned a box or a hand
	InBets                      // bets were opened or closed
	InInsurance                 // the dealer opened, closed or posted insurance
	InButton                    // a dealer's button
	InVerdict                   // the reader's own outcome
	InFault                     // a reader error was raised or cancelled
	InLock                      // the reader's lock
	InSetting                   // a reader setting changed, or its setting mode
	InLink                      // a device went or came back
	InAnswer                    // an answer to an alert, roles already checked
	InTick                      // time passed
	InRestart                   // this process started again
	InInactive                  // a reader that is not in use tells something
	InWire                      // a wire of the table's own is stuck, bounces, or is well again
)

// Input is one fact that was observed, at the time it was. Which fields count
// depends on Kind; the others are zero. The text form is in text.go.
type Input struct {
	At   time.Time
	Kind Kind

	Card    Card    // card, show, placed, lifted
	To      To      // card, show: where the reader says it goes
	Pos     uint8   // card, show: 1–3 in a hand; for burn, how many are still to come
	Again   bool    // card: the reader deals a card again that it had overdrawn
	Over    bool    // show: the named card is the overdrawn one
	Outside Outside // card: drawn outside the game

	Box     Box  // placed, lifted, reveal
	Foreign bool // placed: the card's tag is of no enrolled deck
	Hand    Side // reveal

	Open     bool      // bets
	ClosesAt time.Time // bets, when announced

	Reader  ReaderSays // reader
	Button  Button     // button
	Decks   uint8      // shoe
	Code    uint8      // fault: the reader's own error number
	On      bool       // fault, lock, setting; up for link
	Name    string     // link, inactive, wire: the device; unread: why
	Spare   SpareSays  // inactive
	Line    string     // wire: its name in the configuration
	Wire    WireSays   // wire
	Address string     // setting
	Value   string     // setting

	Verdict   Verdict   // verdict
	Insurance Insurance // insurance
	Answer    Answer    // answer
}

// To is where the reader says that a card goes.
type To uint8

const (
	ToPlayer To = iota + 1
	ToBanker
	ToFirst
	ToBurn
)

// Side of a card that goes to a hand; 0 for the others.
func (t To) Side() Side {
	if t == ToPlayer || t == ToBanker {
		return Side(t)
	}
	return 0
}

// Outside says in which of its modes the reader drew a card that is not part
// of the game.
type Outside uint8

const (
	OutsideLock Outside = iota + 1
	OutsideError
	OutsideSetting
	OutsideOverdraw
)

// ReaderSays is what a reader reports of itself.
type ReaderSays uint8

const (
	ReaderStart ReaderSays = iota + 1
	ReaderStandby
	ReaderGap
)

// SpareSays is what a reader that is not in use tells.
type SpareSays uint8

const (
	SpareCard  SpareSays = iota + 1 // a card left its shoe
	SpareOther                      // anything else
	SpareUp                         // its line
	SpareDown
)

// WireSays is what is wrong with a wire, or that nothing is any more.
type WireSays uint8

const (
	WireStuck    WireSays = iota + 1 // it does not change as it must
	WireBouncing                     // it changes more often than anybody can work it
	WireOK
)

// Button of the dealer.
type Button uint8

const (
	ButtonStart Button = iota + 1
	ButtonEnd
	ButtonCall
	ButtonShoe
)

// Verdict is the outcome as the reader sees it. The zero Verdict is none.
type Verdict struct {
	Outcome    Outcome
	PlayerPair bool
	BankerPair bool
	Quit       bool // the round was ended by force at the reader: never an outcome
}

// InsuranceDo is what the dealer did with insurance.
type InsuranceDo uint8

const (
	InsuranceOpen InsuranceDo = iota + 1
	InsuranceClose
	InsurancePost
)

// Insurance is the dealer's part in an insurance window: opened, closed, or
// rates laid out (seed 000, notes 2–4).
type Insurance struct {
	Do     InsuranceDo
	Side   Side
	WinsOn Outcome
	Pays   Ratio
	Spot   Side
}

// Ratio is what a bet pays for a stake, as printed: 11:1.
type Ratio struct{ Num, Den uint16 }

// Do is an answer to an alert.
type Do uint8

const (
	DoResume Do = iota + 1
	DoAck
	DoConfirm
	DoCorrect
	DoVoid
	DoArranged
	DoHoldCard
	DoVoidInsurance
	DoReopen
	DoNewShoe
	DoManual
	DoSensorsOff
	DoRevealOrder
	DoPause
	DoShelve
	DoUnshelve
	DoOpenTable
	DoCloseTable
	DoTest
	DoSwapReader
)

// Where a held card goes.
type Where uint8

const (
	WhereNextRound Where = iota + 1
	WhereBurn
	WhereFreeHand
	WhereUse
)

// Answer to an alert, given by somebody whose right to give it was checked
// where the command came in.
type Answer struct {
	Do      Do
	By      string
	Alert   uint32      // 0: the oldest that allows it
	Cards   [7]Card     // correct, by Box; zero where nothing is said
	Where   Where       // hold_card
	Exposed bool        // hold_card: somebody saw the card's face
	Round   uint16      // correct: the round's number; 0 for the one in hand
	AsDealt bool        // correct: the cards lie so, although the draw table says otherwise
	Order   RevealOrder // reveal_order: of the round in hand, or else of the next
	ForMS   uint32      // shelve: for how long; 0 an hour
	Off     bool        // test: it ends
	Device  string      // swap_reader: the reader to use from now on
	New     bool        // swap_reader: it holds another shoe
}
