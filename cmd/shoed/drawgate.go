package main

import (
	"log/slog"

	"shoed/round"
	"shoed/scanner"
)

// drawGate is what a reader was last told by rule draw_gate.
type drawGate struct {
	device string // that reader; "" when none was told since its line was opened
	shut   bool
}

// moveGate tells the reader to lock or to unlock when the rules want it otherwise
// than it was told. An order that the line does not take now is given again with
// the next limit. What shuts the gate follows from what the table has shown.
func (c *core) moveGate() {
	shut, told := c.state.GateShut(), c.draw.device == c.inUse().name
	if told && c.draw.shut == shut || !told && c.state.Rules.DrawGate != round.GateOn {
		return
	}
	do := scanner.Unlock
	if shut {
		do = scanner.Lock
	}
	order, err := scanner.Order(c.inUse().protocol, do, 0)
	if err != nil { // a spare of another protocol was put in use
		c.tell(slog.LevelWarn, "draw_gate.unable", "the reader in use cannot be locked: draw_gate has no effect", "device", c.inUse().name, "cause", err)
		return
	}
	select {
	case c.inUse().orders <- order:
		c.draw = drawGate{c.inUse().name, shut}
		c.log.Debug("the draw gate has moved", "code", "draw_gate.moved", "shut", shut)
	default:
	}
}
