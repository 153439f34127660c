package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"shoed/device"
	"shoed/scanner"
)

// Player is a line that gives the reads of a capture, one after the other and at
// once, at the times that the capture has for them. After the last it is
// unplugged (device.ErrUnplugged), and takes no orders. Close fails if not all
// was read: what was recorded and is not asked for is a mistake too.
type Player struct {
	mu     sync.Mutex
	chunks []device.Chunk
	next   int
	closed bool
}

var _ device.Line = (*Player)(nil)

// NewPlayer reads a capture (see scanner.ParseCapture), which was at start.
// A read without a time is at that of the one before.
func NewPlayer(capture io.Reader, start time.Time) (*Player, error) {
	p := &Player{}
	at := start
	err := scanner.ParseCapture(capture, func(ms int64, _ int, b []byte) error {
		if ms >= 0 {
			at = start.Add(time.Duration(ms) * time.Millisecond)
		}
		p.chunks = append(p.chunks, device.Chunk{At: at, Bytes: b})
		return nil
	})
	if err == nil && len(p.chunks) == 0 {
		err = errors.New("capture: no read is in it")
	}
	return p, err
}

// Read is that of device.Line.
func (p *Player) Read(ctx context.Context) (device.Chunk, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return device.Chunk{}, device.ErrClosed
	case ctx.Err() != nil:
		return device.Chunk{}, ctx.Err()
	case p.next == len(p.chunks):
		return device.Chunk{}, fmt.Errorf("capture: %w: all %d reads of it were given", device.ErrUnplugged, p.next)
	}
	p.next++
	return p.chunks[p.next-1], nil
}

// Write is that of device.Line.
func (p *Player) Write(context.Context, []byte) error {
	return errors.New("capture: it takes no orders")
}

// Close is that of device.Line.
func (p *Player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if left := len(p.chunks) - p.next; left > 0 {
		return fmt.Errorf("capture: %d of its %d reads were not asked for", left, len(p.chunks))
	}
	return nil
}
