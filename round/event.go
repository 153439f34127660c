package round

import "time"

// EventKind is what followed from an Input.
type EventKind uint8

const (
	ShoeLoaded EventKind = iota + 1
	ShoeBurned
	ShoeStarted
	ShoeCutCard
	ShoeEnded
	ShoeReconciled
	RoundOpened
	CardDealt
	CardShown
	RoundDecided
	RoundSettled
	RoundCorrected
	RoundVoided
	InsuranceOpened
	InsuranceClosed
	InsuranceVoided
	InsuranceSettled
	TablePaused
	TableResumed
	AlertRaised
	AlertReturned
	AlertAcked
	AlertCleared
	AnswerAccepted
	AnswerRefused
	ReaderNoted
	DeviceLost
	DeviceRestored
	FreeHandOpened
	FreeHandClosed
)

// Event is one consequence of an Input. A face is in it only when the table
// has shown it. Which fields count depends on Kind; the text form, text.go,
// says which.
type Event struct {
	Seq  uint64 // number among the public events, from 1; 0 for the full view only
	At   time.Time
	Kind EventKind

	Shoe  uint32 // the shoe in hand
	Round uint16 // the round in hand; 0 between rounds
	Rev   uint8

	To      To
	Outside Outside
	Hand    Side // card.dealt, card.shown: 0 when the box is not known yet
	Pos     uint8
	Card    Card
	Held    bool // card.dealt: kept aside until an answer says where it goes

	Outcome        Outcome
	Player, Banker Hand
	Tags           Tags
	Was            Outcome // round.corrected
	AsDealt        bool    // round.corrected: not by the draw table

	Decks       uint8  // shoe.loaded
	Cards       uint16 // shoe.*: cards in the shoe, burned, or out of it, as the kind says
	Shown, Lost uint16 // shoe.reconciled
	Account     Account
	Last        bool // shoe.cut_card: the round in hand or the next is the last

	Alert          uint32
	Code           Code
	Priority       uint8
	Expected, Seen Fact

	Bets    uint32 // round.opened: those open, a bit each
	Settled [bets]Settled
	NBets   uint8

	Stage    Stage
	Why      WindowClose
	ClosesAt int64 // ns UTC
	Offers   [maxOffers]Offer
	NOffers  uint8
	TieLoses bool       // insurance.opened: a tie loses on offers that do not win on it
	Unseen   [10]uint16 // insurance.opened: by value, the cards that the table has not shown

	By      string // who answered, or what cleared
	Do      Do
	Refusal Refusal
	Note    Note
	Fault   uint8       // reader.noted: the reader's own error number
	Where   Where       // answer.accepted
	Order   RevealOrder // answer.accepted
	Device  string
	Line    string // alert.raised: the wire of the device
}

// Hand is a side's cards as the table has shown them.
type Hand struct {
	Cards [3]Card
	N     uint8
}

// Total of the hand and whether every card of it is shown.
func (h Hand) Total() (total int, known bool) {
	known = h.N > 0
	for _, c := range h.Cards[:h.N] {
		known = known && c.Known()
	}
	return Total(h.Cards[:h.N]...), known
}

// Tags of a round.
type Tags uint8

const (
	TagNatural Tags = 1 << iota
	TagPlayerPair
	TagBankerPair
	TagPerfectPair
	TagFreeHand
	TagCorrected
)

// Note says why a reader.noted was made.
type Note uint8

const (
	NoteReaderStart Note = iota + 1
	NoteReaderStandby
	NoteReaderGap
	NoteReaderFault
	NoteReaderFaultOver
	NoteVerdictWithoutRound
	NoteVerdictAgain
	NoteVerdictIgnored
	NoteAgainUnexpected
	NoteShowUnmatched
	NoteReaderAgrees
	NoteReaderUnlocked
	NoteReread
	NoteManual
	NoteTest
	NoteInactive
	NoteGateShut
	NoteGateOpen
	NoteCutAgain
)

// Refusal says why an answer had no effect.
type Refusal uint8

const (
	RefusedNoAlert Refusal = iota + 1
	RefusedNotForAlert
	RefusedBlocked
	RefusedNothingToConfirm
	RefusedCards
	RefusedDraw
	RefusedExposed
	RefusedNoCard
	RefusedNoRound
	RefusedRoundOpen
	RefusedWhere
	RefusedOrder
	RefusedAsDealt
	RefusedWindow
	RefusedRoundInHand
	RefusedInPlay
	RefusedReader
)

// Fact is what an alert expected or saw, as a code with its numbers; text.go
// makes the sentence. A card in it has been shown.
type Fact struct {
	Kind FactKind
	Box  Box
	Card Card
	Was  Card
	N, M uint16
	Name string
}

// FactKind says which sentence a Fact is.
type FactKind uint8

const (
	FactNothing FactKind = iota
	FactNoCardDue
	FactCardDue
	FactCard
	FactCardAt
	FactOverdraw
	FactEnd
	FactVerdict
	FactNextRound
	FactTablePaused
	FactReadable
	FactUnread
	FactContiguous
	FactGap
	FactReaderStarted
	FactReconnected
	FactHeldOverflow
	FactOutcome
	FactFace
	FactNoSuchCard
	FactRoundEnd
	FactQuit
	FactShoeHolds
	FactCardsInShoe
	FactCutCardFirst
	FactNewShoe
	FactFirstCard
	FactBurnCard
	FactNoShoe
	FactBurn
	FactContinuous
	FactRestart
	FactLinkUp
	FactLinkDown
	FactDealing
	FactCall
	FactPauseAsked
	FactDrain
	FactReverse
	FactAgreeing
	FactNoVerdict
	FactOneMore
	FactBetsClosed
	FactSettingsKept
	FactJournalWritten
	FactJournalHeld
	FactDelivered
	FactKeptForLater
	FactClockSet
	FactClockUnset
	FactPowerEnough
	FactPowerLow
	FactGameCards
	FactRoundsCards
	FactForeign
	FactPutRight
	FactUntold
	FactNoBox
	FactCardIn
	FactNotDrawn
	FactAnswer
	FactStillPaused
	FactShuffled
	FactOrder
	FactRevealOrder
	FactOtherHandFirst
	FactSpot
	FactPays
	FactRatesLaidOut
	FactNoRates
	FactWindowOpen
	FactCutRange
	FactGapAfter
	FactCorrected
	FactOffers
	FactLocked
	FactSetting
	FactSixCards
	FactCertificateLasts
	FactCertificateEnds
	FactNothingKept
	FactCommandKept
	FactOnePublisher
	FactAnotherPublisher
	FactOneReader
	FactOtherReader
	FactReaderSwapped
	FactEnrolled
	FactForeignTag
	FactSensing
	FactSensorsLost
	FactPanelHeard
	FactPanelLost
	FactLampsFollow
	FactLampsLost
	FactWireWell
	FactWireFault
	FactGateOpen
	FactGateStuck
)
