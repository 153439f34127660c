package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Plug is a simulated serial line at a path of its own, a link as udev makes one:
// it can be pulled out and put back, and is found at the same path again. Any
// goroutine may use it.
type Plug struct {
	path string

	mu   sync.Mutex
	pair *Pair // nil while it is pulled out
	sent uint64
}

// OpenPlug puts a line in at path, where nothing may be.
func OpenPlug(path string) (*Plug, error) {
	p := &Plug{path: path}
	return p, p.Plug()
}

// Path is the daemon's end.
func (p *Plug) Path() string { return p.path }

// Write is what the shoe says. While the line is pulled out nobody hears it.
func (p *Plug) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pair == nil {
		return len(b), nil
	}
	n, err := p.pair.Shoe.Write(b)
	p.sent += uint64(n)
	return n, err
}

// Sent is how many bytes went over the line.
func (p *Plug) Sent() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// Plug puts the line in, if it is not.
func (p *Plug) Plug() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pair != nil {
		return nil
	}
	pair, err := OpenPair()
	if err != nil {
		return err
	}
	if err := os.Symlink(pair.Path, p.path); err != nil {
		return errors.Join(fmt.Errorf("simulated line: %w", err), pair.Close())
	}
	p.pair = pair
	return nil
}

// Unplug pulls the line out, if it is in. What was not read is lost.
func (p *Plug) Unplug() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pair == nil {
		return nil
	}
	err := os.Remove(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // its directory is gone with it
	}
	err = errors.Join(err, p.pair.Close())
	p.pair = nil
	return err
}
