package round

// Advice is what a standing alert means to the people at the table, one
// sentence each; English is the master of every translation.
type Advice struct {
	Title       string
	Cause       string // what has happened
	Consequence string // what holds until it is answered
	Response    string // what to do now
}

// Advice about the code.
func (c Code) Advice() Advice { return advice[c] }

var advice = [codes]Advice{
	DealExtraCard: {"Extra card", "A card was drawn when none was due.",
		"The finished round stands, the card is held unseen and the next round waits.",
		"Say where the card goes; one whose face was seen cannot open the next round."},
	DealWrongBoxLate: {"Third card in the wrong box", "The 5th or 6th card lies in another box than the draw table asks for.",
		"The table is paused and no outcome is given.", "Have the cards arranged as the draw table asks; the round then goes on."},
	DealWrongBox: {"Card in the wrong box", "One of the first four cards lies in another box than it was dealt to.",
		"The table is paused and no outcome is given.", "Have the cards arranged in the order of dealing; the round then goes on."},
	DealSelfCorrected: {"Wrong box put right", "The dealer put a card right by himself in time.", "Nothing is held.", "Nothing is to be done."},
	DealNotPlaced: {"Card not placed", "A card was drawn but lies in no box.",
		"The outcome waits for it.", "Have the card placed; if it lies right and the sensor is wrong, switch the sensors off."},
	DealEarly: {"Card before bets were closed", "The first card was drawn while bets were open.",
		"The card closed the bets and the round is dealt.", "Look at the bets laid after that time and acknowledge."},
	DealLate: {"Card due", "The card that is due has not been drawn for a long time.",
		"The round waits; no timer ever completes it.", "Ask the dealer for the card."},
	DealMissingCard: {"Card missing", "The round was ended although a card is due.",
		"The table is paused and no outcome is given.", "Have the due card dealt, or say which cards lie there, or void the round."},
	DealDoubleCard: {"Two cards at once", "Two cards came together, or the reader skipped a card of a hand.",
		"The table is paused and no outcome is given.", "Look at the cards: confirm them, correct them, or void the round."},
	DealWhilePaused: {"Card while paused", "A card was drawn while the table is paused.",
		"It is held in order.", "Say whether it is used when the table goes on, or burned."},
	DealPushedBack: {"Card pushed back", "A card was pushed back into the shoe.",
		"The table is paused and no outcome is given.", "Look at the cards: confirm them, correct them, or void the round."},
	InsuranceEarlyDeal: {"Card while insurance was open", "The next card was drawn before insurance was closed.", "The card closed it and the round goes on.", "Nothing is to be done."},
	InsuranceNotPosted: {"Insurance rates not laid out", "A window closed without the dealer's rates.", "Bets stand.", "Nothing is to be done."},
	InsuranceWrongSpot: {"Insurance rates on the wrong side", "Rates were laid out for the other side.", "Bets stand at the table's rates.", "Nothing is to be done."},
	InsuranceWrongRate: {"Insurance rate differs", "The rate laid out is not the table's.", "Bets stand at the table's rate.", "Nothing is to be done."},
	InsuranceExposed: {"Insurance void", "Insurance was offered on what should not have been seen, or was not so.",
		"All insurance of the round is void, the round goes on.", "Have the insurance bets returned and acknowledge."},
	ReaderUnread: {"Card not read", "A card left the shoe and its face could not be read.",
		"The table is paused and no outcome is given.", "Have the card read again and confirm it, or say which cards lie there, or void the round."},
	ReaderGapped: {"Reader's reports incomplete", "Reports of the reader are missing, or it started or came back in mid-round.",
		"The table is paused: cards may have been dealt unseen.", "Compare the layout with the screen: confirm it, correct it, or void the round."},
	ReaderLost: {"Reader not connected", "There is no connection to the card reader.",
		"Cards cannot be seen; an open round is paused.", "Look at its cable and power, or give the cards by hand."},
	ReaderDisagrees: {"Reader disagrees", "The reader's next hand or its outcome differs from the rules.",
		"The table is paused and the outcome withheld or disputed.", "Compare the layout with the screen: confirm it, correct it, or void the round."},
	ReaderQuit: {"Round ended at the reader", "The round was ended by force at the reader.",
		"The round is void and its number used.", "Have all bets of the round returned and acknowledge."},
	ReaderOutOfGame: {"Card outside the game", "A card was drawn while the reader was locked, in error or in its settings.",
		"It is counted in the shoe, not in the round.", "Resume when the cards are in order."},
	ReaderLocked: {"Reader locked", "The reader is locked by its key.", "No card can be drawn while it is.", "Unlock it, or acknowledge if that is meant."},
	ReaderSetting: {"Reader's settings changed", "Somebody changed the reader's settings or entered its setting mode.",
		"What it reports may differ from before.", "Find out who did it and why, and acknowledge."},
	ReaderNoVerdict: {"No verdict of the reader", "The house decides on the reader's agreeing verdict, and none has come.",
		"The outcome waits.", "Ask the dealer to end the round at the reader."},
	DealerCall: {"Call", "The dealer calls, or a supervisor asked for a pause.",
		"The table is paused.", "Go to the table; resume when it is settled, or void the round."},
	PauseUnresolved: {"Pause lasts too long", "The table has been paused for longer than the house allows.",
		"Play does not go on and nothing is done by itself.", "Void the round, unless it can be settled now."},
	ShoeBurn: {"Burned cards differ", "Another number of cards was burned than the first card asks for.",
		"The first round waits.", "Confirm the cards burned, or load a new shoe."},
	ShoeCutPosition: {"Cut card misplaced", "The cut card came out too early or too late.", "Play goes on.", "Have the cut card placed right in the next shoe and acknowledge."},
	ShoeLateCard: {"Card after the shoe's end", "A card was drawn for a round after the shoe has ended.",
		"It is held; no round begins from this shoe.", "Burn the card, or load a new shoe."},
	ShoeChangeUnproven: {"Shoe changed without a cut card", "A new shoe began without the cut card of the last one, or a card came without a shoe.",
		"The table is paused.", "Confirm the new shoe if it was loaded under supervision, or load another."},
	ShoeShort: {"Too few cards", "Fewer than six cards are left for a round.", "No round begins.", "Load a new shoe."},
	ShoeTooMany: {"More cards than the shoe holds", "A card came more often than the decks have it, or more cards than were loaded.",
		"The table is paused and the shoe is out.", "Void the round, keep the shoe for the investigation and load a new one."},
	ShoeForeignCard: {"Foreign card", "A card of another set was seen.",
		"The table is paused and the shoe is out.", "Void the round, keep the shoe for the investigation and load a new one."},
	ShoeSuspectOrder: {"Suspicious order", "The cards came in an order that a shuffle hardly makes.", "Play goes on.", "Watch the table and the shuffle."},
	ShoeDrained:      {"Cards drained", "Cards were drawn after the end of the shoe.", "They are counted and belong to no round.", "Acknowledge."},
	PowerMidRound: {"Restarted in mid-round", "The controller was restarted with a round open.",
		"The table is paused: cards may have been dealt unseen.", "Compare the layout with the screen: confirm it, correct it, or void the round."},
	StorageLost: {"Journal could not be written", "The disk was full or failing.",
		"The table held and nothing was published meanwhile; nothing is lost.", "Have room made on the disk, or the disk replaced."},
	BrokerLost: {"Broker away", "The message broker cannot be reached.",
		"Boards may stand still; all is kept and sent, marked, later.", "Look at the network and the broker; the table goes on."},
	ClockUnset: {"Clock not set", "The controller's clock is not set.", "Times are not those of the day; order and numbers are right.", "Look at the time service and the network."},
	PowerLow:   {"Low voltage", "The controller's supply voltage is too low.", "It may stop or be slow.", "Replace the power supply or its cable."},
	CertificateExpires: {"Certificate ends soon", "The certificate for the connection to the broker ends soon.",
		"After its end nothing can be published.", "Renew it; it is read anew at the next connection."},
	CommandRetained: {"Command kept by the broker", "The broker gave a command that it had kept, as if it were given now.",
		"It was refused and had no effect.", "Find out who sent it so, and delete it at the broker."},
	ReaderInactive: {"Card from another reader", "A card left the shoe of a reader that is not in use.",
		"It counts for nothing.", "Look at that shoe; if it is to be used, have the readers swapped, and acknowledge."},
	DuplicateTable: {"Table published twice", "Another process publishes under this table's name.",
		"This one is silent for a minute at a time, so that boards are not confused.", "Find the other process and stop it."},
	SensorsLost: {"Box sensors not connected", "There is no connection to the sensors of the boxes.",
		"Where cards lie is not seen; where the house rules ask for it the outcome waits.", "Look at their cable and power, or switch the sensors off to go on without them."},
	PanelLost: {"Dealer's panel not connected", "There is no connection to the dealer's buttons, keys and cut-card sensor.",
		"What they say is not heard; play goes on.", "Look at its cable and power."},
	LampsLost: {"Lamps not connected", "The lamps and the buzzer cannot be switched.",
		"They do not show what the table is doing; play goes on.", "Look at their cable and power; tell the dealer to go by the screen."},
	WireFaulty: {"Wire faulty", "A wire is stuck, or changes more often than anybody can work it.",
		"What it says cannot be relied on; play goes on.", "Have its switch, contacts and cable looked at."},
}

// Proposal is what confirming the alert would accept, or the answer that is
// proposed; "" when nothing is. It tells no face that the table has not shown.
func (s *State) Proposal(a *Alert) string {
	switch {
	case a.Code == PauseUnresolved:
		return "void the round"
	case a.Code == ReaderUnread && a.HasCard && s.Rules.Reveal == RevealOnDraw:
		return "the card read again: " + a.Card.Card.String()
	case a.Code == ReaderUnread && a.HasCard:
		return "the card read again"
	case a.Code == ReaderUnread:
		return ""
	case a.Code == ShoeChangeUnproven:
		return "a new shoe"
	case a.Code == ShoeBurn:
		return "the cards burned as they were counted"
	case a.Code == ReaderDisagrees:
		return "the round as the rules have it"
	case a.allows(DoConfirm, false):
		return "the round as it was tracked"
	}
	return ""
}
