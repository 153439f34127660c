package scanner

import "shoed/round"

/*
Presence sensors: a switch in each box of the layout, active while a card lies on
it.

Hardware: reed, light or micro switches in the boxes P1 to B3, a wire each, in any
order; the rules want all six. Never seen by us: every capture in testdata is
synthetic. Wire records: wires.go; what counts as a change, and when a
wire is faulty: switches.go.

Example, wires P1 P2, a card is laid on P1 and bounces once:

	01 00 00 00 01 00 00 00 time 8    P1 is active
	02 00 00 00 02 00 00 00 time 8    2 ms later not
	01 00 00 00 03 00 00 00 time 8    1 ms later again
	03 00 01 00 03 00 00 00 time 8    levels after 25 ms of quiet: a card is placed on P1

Oddities:
  - A switch knows that a card lies there, not which.
  - A card that is lifted and laid down again within the steady time was not lifted.
  - A box that holds a card when the wires are first opened is told as placed.
*/

const presenceProtocol = "presence"

// boxNames are those of a layout, in the order in which cards are due.
var boxNames = []string{"P1", "P2", "P3", "B1", "B2", "B3"}

func newPresence(o Options) (Decoder, error) {
	return newSwitches(presenceProtocol, o, boxNames, func(name string) (use, bool) {
		box, err := round.ParseBox(name)
		return use{means: func(active bool) (round.Input, bool) {
			if active {
				return round.Input{Kind: round.InPlaced, Box: box}, true
			}
			return round.Input{Kind: round.InLifted, Box: box}, true
		}}, err == nil
	})
}
