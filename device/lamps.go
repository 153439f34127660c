package device

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/physic"
)

// Lamp is a GPIO line that drives something: a lamp, a buzzer.
type Lamp struct {
	Use       string // what it is, for error texts: "green"
	Line      string // as that of a Wire
	ActiveLow bool   // on is the low level
}

// LampOptions say which lines of which chip are lamps.
type LampOptions struct {
	Name    string // logical name for error texts: "lamps"
	Address string // gpio:CHIP, as that of Options
	Lamps   []Lamp // 1 to 16

	root   string // as of Options
	kernel kernel
}

// Lamps are outputs that are off until Set says otherwise. Its methods may be
// called from any goroutine.
//
// The kernel does not keep a lamp as it is once nobody has its line, least of all
// when this process is killed: what must be off, or on, when nobody is there needs
// a resistor or a relay that makes it so.
type Lamps struct {
	pins []gpio.PinOut
	done func() error // gives the lines up

	mu     sync.Mutex
	closed bool
}

// OpenLamps requests the lines as outputs that are off from the first moment. Its
// errors are those of Open for wires.
func OpenLamps(o LampOptions) (*Lamps, error) {
	lines, settings, err := o.checked()
	if err != nil {
		return nil, err
	}
	c, err := lines.chip()
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := lines.find(c, settings); err != nil {
		return nil, err
	}
	fd, err := lines.request(c, settings)
	if err != nil {
		return nil, err
	}
	out := &outputs{name: o.Name + ": " + o.Address, kernel: lines.kernel, fd: fd}
	pins := make([]gpio.PinOut, len(settings))
	for i, s := range settings {
		pins[i] = &lampPin{outputs: out, index: i, use: s.use, offset: int(s.offset)}
	}
	l := NewLamps(pins...)
	l.done = out.close
	return l, nil
}

// checked gives the options as those of lines, or an error that names every value
// that cannot be used.
func (o LampOptions) checked() (Options, []setting, error) {
	wires := make([]Wire, len(o.Lamps)) // as lines they must be right too
	settings := make([]setting, len(o.Lamps))
	for i, lamp := range o.Lamps {
		wires[i] = Wire{Use: lamp.Use, Line: lamp.Line}
		settings[i] = setting{use: lamp.Use, line: lamp.Line, flags: flagOutput}
		if lamp.ActiveLow {
			settings[i].flags |= flagActiveLow
		}
	}
	lines, err := Options{Name: o.Name, Address: o.Address, Wires: wires, root: o.root, kernel: o.kernel}.checked()
	if err == nil && !strings.HasPrefix(o.Address, "gpio:") {
		err = fmt.Errorf("line %s: address %q is no gpio:CHIP", o.Name, o.Address)
	}
	return lines, settings, err
}

// NewLamps are the lamps on these pins, in their order; at most 16. They are off
// once Set has been called.
func NewLamps(pins ...gpio.PinOut) *Lamps {
	return &Lamps{pins: pins, done: func() error { return nil }}
}

// Pins are the lamps for code that is written for periph.
func (l *Lamps) Pins() []gpio.PinOut { return l.pins }

// Set turns on the lamps whose bit is 1 and the others off. One that fails does
// not keep the others from it; the error names each.
func (l *Lamps) Set(on uint16) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("lamps: %w", ErrClosed)
	}
	return l.set(on)
}

func (l *Lamps) set(on uint16) error {
	var failed []error
	for i, p := range l.pins {
		if err := p.Out(on>>i&1 != 0); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Close turns all lamps off and gives their lines up. Further calls do nothing.
func (l *Lamps) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(l.set(0), l.done())
}

// outputs is a request of lines that are driven.
type outputs struct {
	name   string // for error texts: logical name and address
	kernel kernel

	use sync.Mutex // held during every call on fd, so that none comes after its close
	fd  int        // -1 after close
}

// set drives one line of the request.
func (o *outputs) set(index int, active bool) error {
	o.use.Lock()
	defer o.use.Unlock()
	if o.fd < 0 {
		return ErrClosed
	}
	values := unix.GPIOV2LineValues{Mask: 1 << index}
	if active {
		values.Bits = values.Mask
	}
	return ofChip(o.kernel.ioctl(o.fd, unix.GPIO_V2_LINE_SET_VALUES_IOCTL, unsafe.Pointer(&values)))
}

func (o *outputs) close() error {
	o.use.Lock()
	defer o.use.Unlock()
	fd := o.fd
	o.fd = -1
	return o.kernel.close(fd)
}

// lampPin is one lamp of a request.
type lampPin struct {
	*outputs
	index  int // in the request
	use    string
	offset int
}

var _ gpio.PinOut = (*lampPin)(nil)

func (p *lampPin) String() string   { return fmt.Sprintf("%s(%d)", p.use, p.offset) }
func (p *lampPin) Name() string     { return p.use }
func (p *lampPin) Number() int      { return p.offset }
func (p *lampPin) Function() string { return string(gpio.OUT) }

// Halt turns the lamp off.
func (p *lampPin) Halt() error { return p.Out(gpio.Low) }

// Out turns the lamp on or off; High is on.
func (p *lampPin) Out(l gpio.Level) error {
	if err := p.set(p.index, bool(l)); err != nil {
		return fmt.Errorf("%s: %s: %w", p.name, p, err)
	}
	return nil
}

// PWM is not there: a lamp is on or off.
func (p *lampPin) PWM(gpio.Duty, physic.Frequency) error {
	return fmt.Errorf("%s: %s: a lamp is on or off, not dimmed", p.name, p)
}
