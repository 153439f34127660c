package device

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"
)

// Pin is one wire as periph's gpio.PinIn, for periph's devices and for code that
// asks for the narrowest thing. High is active. It knows neither the time nor the
// number of an edge: a protocol needs a Line.
type Pin struct {
	options Options
	name    string
	offset  int

	mu    sync.Mutex
	line  *wireLine // nil before In and after Halt
	pull  gpio.Pull
	edges int // read, and not yet waited for
}

var _ gpio.PinIn = (*Pin)(nil)

// NewPin finds the one wire of the options. It is requested by In. The errors are
// Open's.
func NewPin(o Options) (*Pin, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	if _, ok := chipAddress(o.Address); !ok || len(o.Wires) != 1 {
		return nil, fmt.Errorf("pin %s: %q with %d wires is not gpio:CHIP with one", o.Name, o.Address, len(o.Wires))
	}
	c, err := o.chip()
	if err != nil {
		return nil, err
	}
	defer c.close()
	s := []setting{{use: o.Wires[0].Use, line: o.Wires[0].Line}}
	if err := o.find(c, s); err != nil {
		return nil, err
	}
	return &Pin{options: o, name: o.Wires[0].Line, offset: int(s[0].offset), pull: gpio.PullNoChange}, nil
}

// String is the name and, in brackets, the offset.
func (p *Pin) String() string { return fmt.Sprintf("%s(%d)", p.name, p.offset) }

// Name is the line as it was configured.
func (p *Pin) Name() string { return p.name }

// Number is the line's offset on its chip.
func (p *Pin) Number() int { return p.offset }

// Function is that of an input.
func (p *Pin) Function() string { return string(gpio.IN) }

var (
	pulls    = map[gpio.Pull]string{gpio.PullNoChange: "", gpio.Float: "none", gpio.PullUp: "up", gpio.PullDown: "down"}
	edgesFor = map[gpio.Edge]Edges{gpio.NoEdge: NoEdges, gpio.RisingEdge: ActiveEdge, gpio.FallingEdge: InactiveEdge, gpio.BothEdges: BothEdges}
)

// In requests the wire, anew if it was already: a WaitForEdge that is under way
// returns false, and edges from before are forgotten. PullNoChange is the Bias of
// the options.
func (p *Pin) In(pull gpio.Pull, edge gpio.Edge) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.options
	w := o.Wires[0]
	bias, known := pulls[pull]
	if !known {
		return fmt.Errorf("%s: pull %v is none", p, pull)
	}
	w.Bias = cmp.Or(bias, w.Bias)
	if w.Edges, known = edgesFor[edge]; !known {
		return fmt.Errorf("%s: edge %v is none", p, edge)
	}
	o.Wires = []Wire{w}
	if err := p.release(); err != nil {
		return err
	}
	line, err := openWires(o)
	if err != nil {
		return err
	}
	p.line, p.pull, p.edges = line, pull, 0
	return nil
}

// release closes what In requested.
func (p *Pin) release() error {
	line := p.line
	p.line = nil
	if line == nil {
		return nil
	}
	return line.Close()
}

// Halt gives the wire up; a WaitForEdge that is under way returns false.
func (p *Pin) Halt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.release()
}

// Read is the level now. It is Low too when it cannot be read; Level tells.
func (p *Pin) Read() gpio.Level {
	level, _ := p.Level()
	return level
}

// Level is Read with its error: ErrUnplugged, or ErrClosed before In.
func (p *Pin) Level() (gpio.Level, error) {
	line := p.opened()
	if line == nil {
		return gpio.Low, fmt.Errorf("%s: %w", p, ErrClosed)
	}
	active, err := line.active()
	return active != 0, err
}

func (p *Pin) opened() *wireLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line
}

// WaitForEdge waits for an edge that In asked for, or takes one from before. Each
// edge is given once. It returns false when the time is over, after In or Halt,
// and when the wire cannot be read. Below 0 waits for ever, 0 not at all.
func (p *Pin) WaitForEdge(timeout time.Duration) bool {
	line := p.opened()
	if line == nil {
		return false
	}
	start := line.kernel.now()
	for {
		longest := wireWait
		if timeout >= 0 {
			longest = max(0, min(wireWait, timeout-time.Duration(line.kernel.now()-start)))
		}
		if p.take(line) {
			return true
		}
		c, err := line.readOnce(longest)
		if err != nil {
			return false
		}
		if longest == 0 && len(c.Bytes) == 0 {
			return false
		}
		records, _ := ParseWireRecords(c.Bytes) // our own
		p.add(line, records)
	}
}

// add counts the edges that were read, unless In or Halt came between.
func (p *Pin) add(line *wireLine, records []WireRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		if p.line == line && (r.Kind == WireActive || r.Kind == WireInactive) {
			p.edges++
		}
	}
}

// take takes one of the edges that were read.
func (p *Pin) take(line *wireLine) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line != line || p.edges == 0 {
		return false
	}
	p.edges--
	return true
}

// Pull is what In asked for.
func (p *Pin) Pull() gpio.Pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pull
}

// Look says whether the one wire of the options is active; with a wait, once it
// has changed, or the time is over. The errors are Open's.
func Look(o Options, wait time.Duration) (active bool, err error) {
	p, err := NewPin(o)
	if err != nil {
		return false, err
	}
	edge := gpio.NoEdge
	if wait > 0 {
		edge = gpio.BothEdges
	}
	if err := p.In(gpio.PullNoChange, edge); err != nil {
		return false, err
	}
	if wait > 0 {
		p.WaitForEdge(wait) // a wire that cannot be read shows below
	}
	level, err := p.Level()
	return bool(level), errors.Join(err, p.Halt())
}

// DefaultPull is not known.
func (p *Pin) DefaultPull() gpio.Pull { return gpio.PullNoChange }
