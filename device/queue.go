package device

import (
	"context"
	"sync"
)

// QueueSignals is a fitting bound for the reads that wait in a Queue: at 4800
// baud, every byte read alone, more than half a minute; about 2 MB of memory.
const QueueSignals = 16384

// Queue is the bounded buffer between the goroutine that reads a line (Put) and
// the one that acts on it (Next). It delivers signals in the order of Put and
// never joins two reads into one.
//
// When it is full the newest bytes are dropped: what waits is already in the
// order in which the cards left the shoe, and a gap at its end can be named. In
// the place of each gap stands exactly one Lost signal of each device that lost
// something. Up, Down and Lost signals are never dropped and do not count against
// the bounds: Follow makes them at the pace of its retries, and two Lost of one
// device never follow each other.
type Queue struct {
	maxBytes, maxReads int
	wake               chan struct{} // holds a token while there may be something to take

	mu      sync.Mutex
	signals []Signal
	bytes   int // in the Received signals that wait
	reads   int // Received signals that wait
}

// NewQueue returns an empty queue that holds at most maxBytes bytes in at most
// maxReads reads (see QueueSignals). Bounds below 1 count as 1.
func NewQueue(maxBytes, maxReads int) *Queue {
	return &Queue{maxBytes: max(maxBytes, 1), maxReads: max(maxReads, 1), wake: make(chan struct{}, 1)}
}

// Put adds a signal and never blocks. The queue owns s.Bytes from then on.
func (q *Queue) Put(s Signal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case s.Kind != Received:
		q.signals = append(q.signals, s)
	case q.reads < q.maxReads && len(s.Bytes) <= q.maxBytes-q.bytes:
		q.signals = append(q.signals, s)
		q.bytes += len(s.Bytes)
		q.reads++
	default:
		q.lose(s)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// lose counts the bytes of a read that found no room in its device's Lost signal
// at the end of the queue, which it makes if something else has happened since.
func (q *Queue) lose(s Signal) {
	for i := len(q.signals) - 1; i >= 0 && q.signals[i].Kind == Lost; i-- {
		if q.signals[i].Name == s.Name {
			q.signals[i].LostBytes += int64(len(s.Bytes))
			return
		}
	}
	q.signals = append(q.signals, Signal{Kind: Lost, Name: s.Name, At: s.At, LostBytes: int64(len(s.Bytes))})
}

// Next takes the oldest signal, waiting for one until ctx ends. Signals that
// wait are delivered even after ctx has ended, so what was read before a stop
// can be recorded; only then comes the error of ctx. Only one goroutine may
// call Next.
func (q *Queue) Next(ctx context.Context) (Signal, error) {
	for {
		if s, ok := q.take(); ok {
			return s, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			if s, ok := q.take(); ok {
				return s, nil
			}
			return Signal{}, ctx.Err()
		}
	}
}

func (q *Queue) take() (Signal, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.signals) == 0 {
		return Signal{}, false
	}
	s := q.signals[0]
	q.signals[0] = Signal{} // let go of the bytes
	q.signals = q.signals[1:]
	if s.Kind == Received {
		q.bytes -= len(s.Bytes)
		q.reads--
	}
	return s, true
}
