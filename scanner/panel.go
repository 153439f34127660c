package scanner

import (
	"maps"
	"slices"

	"shoed/round"
)

/*
Dealer's panel: buttons, and what else at the table has a switch.

Hardware: a wire each, in any order and not all of them need be there; active is
pressed, on or open. Never seen by us: every capture in testdata is synthetic. Wire
records: wires.go; what counts as a change, and when a wire is faulty: switches.go.

	name       active means
	start      button: the round begins
	end        button: the round is over
	call       button: the supervisor is called
	shoe       button: a new shoe was loaded
	insurance  button: the insurance window is closed
	bets       switch: bets are closed; not active, they are open
	key        switch: the reader is locked
	lid        switch: the reader's lid is open, so its settings can be changed
	cut        sensor: the cut card came out; when it leaves nothing is told

Example, wires start call, the dealer calls for 200 ms:

	01 01 00 00 01 00 00 00 time 8    call is active
	03 00 02 00 01 00 00 00 time 8    levels after 25 ms of quiet: button call
	02 01 00 00 02 00 00 00 time 8    call is not active any more
	03 00 00 00 02 00 00 00 time 8    levels: it may be pressed again

Oddities:
  - Letting a button go says nothing.
  - A button that is pressed when the wires are opened is told when it is let go and
    pressed again. Switches and the cut card's sensor are told when they are found on.
*/

const panelProtocol = "panel"

// press means in once a button is pressed.
func press(in round.Input) use {
	return use{button: true, means: func(active bool) (round.Input, bool) { return in, active }}
}

// panelUses are what the wires of a panel can be for.
var panelUses = map[string]use{
	"start":     press(round.Input{Kind: round.InButton, Button: round.ButtonStart}),
	"end":       press(round.Input{Kind: round.InButton, Button: round.ButtonEnd}),
	"call":      press(round.Input{Kind: round.InButton, Button: round.ButtonCall}),
	"shoe":      press(round.Input{Kind: round.InButton, Button: round.ButtonShoe}),
	"insurance": press(round.Input{Kind: round.InInsurance, Insurance: round.Insurance{Do: round.InsuranceClose}}),
	"bets": {means: func(active bool) (round.Input, bool) {
		return round.Input{Kind: round.InBets, Open: !active}, true
	}},
	"key": {means: func(active bool) (round.Input, bool) {
		return round.Input{Kind: round.InLock, On: active}, true
	}},
	"lid": {means: func(active bool) (round.Input, bool) {
		return round.Input{Kind: round.InSetting, On: active}, true
	}},
	"cut": {means: func(active bool) (round.Input, bool) {
		return round.Input{Kind: round.InCut}, active
	}},
}

func newPanel(o Options) (Decoder, error) {
	return newSwitches(panelProtocol, o, slices.Sorted(maps.Keys(panelUses)), func(name string) (use, bool) {
		u, known := panelUses[name]
		return u, known
	})
}
