package device

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// firstRetry and longestRetry bound the wait before a port is tried again.
	// The wait is drawn anew each time, from nothing up to a limit that doubles
	// from the first to the longest, so that the readers of a whole room do not
	// come back in step after a power cut.
	firstRetry   = 50 * time.Millisecond
	longestRetry = 5 * time.Second
	// settled is how long a line must have been up for its next failure to count
	// as the first: a loose plug must not be retried at full speed for ever.
	settled = longestRetry
)

// Follow keeps a line open until ctx ends and puts what happens on it
// into q: Up when it is open, Received for each read, Down with the cause when it
// cannot be opened or is lost. A port that stays down is tried again for ever
// but reported once, and again only when the cause reads differently.
//
// It retries whatever the error: a port without permission may get one. Errors
// in the options show as Down too; Open tells them at once.
//
// What comes from orders is written while the line is open; while it is not,
// nobody takes it. A write that fails shows as a line that is lost.
func Follow(ctx context.Context, o Options, q *Queue, orders <-chan []byte) {
	f := follower{options: o, queue: q, orders: orders, jitter: rand.N[time.Duration], after: time.After, now: time.Now}
	f.run(ctx)
}

// follower is the state of Follow, with its clock and chance as fields.
type follower struct {
	options Options
	queue   *Queue
	orders  <-chan []byte
	jitter  func(limit time.Duration) time.Duration // uniform in [0, limit)
	after   func(time.Duration) <-chan time.Time
	now     func() time.Time

	upSince time.Time // zero while down
	cause   error     // why it is down; nil while up and before the first try
}

func (f *follower) run(ctx context.Context) {
	failures := 0
	for {
		err := f.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if !f.upSince.IsZero() && f.now().Sub(f.upSince) >= settled {
			failures = 0
		}
		f.down(err)
		select {
		case <-f.after(f.jitter(retryLimit(failures))):
			failures++
		case <-ctx.Done():
			return
		}
	}
}

// session opens the line and reads it until something goes wrong.
func (f *follower) session(ctx context.Context) error {
	line, err := Open(ctx, f.options)
	if err != nil {
		return err
	}
	f.upSince, f.cause = f.now(), nil
	f.queue.Put(Signal{Kind: Up, Name: f.options.Name, At: f.upSince})
	writing, stop := context.WithCancel(ctx)
	written := make(chan struct{})
	go func() { // ends before the session does
		defer close(written)
		f.write(writing, line)
	}()
	defer func() { stop(); <-written }()
	for {
		c, err := line.Read(ctx)
		if err != nil {
			return errors.Join(err, line.Close())
		}
		f.queue.Put(Signal{Kind: Received, Name: f.options.Name, At: c.At, Bytes: c.Bytes})
	}
}

// write passes orders on to the line until ctx ends or a write fails, which the
// reading side will see too.
func (f *follower) write(ctx context.Context, line Line) {
	for {
		select {
		case b := <-f.orders:
			if line.Write(ctx, b) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// down reports the cause unless it was reported already. That an unplugged port
// is then absent is no news, so the first absence after it is not told.
func (f *follower) down(cause error) {
	before := f.cause
	f.upSince, f.cause = time.Time{}, cause
	if before != nil {
		expected := errors.Is(before, ErrUnplugged) && errors.Is(cause, ErrAbsent)
		if expected || before.Error() == cause.Error() {
			return
		}
	}
	f.queue.Put(Signal{Kind: Down, Name: f.options.Name, At: f.now(), Cause: cause})
}

// retryLimit is the longest wait after that many failures before this one.
func retryLimit(failures int) time.Duration {
	if failures >= 7 { // 50 ms << 7 is above 5 s
		return longestRetry
	}
	return firstRetry << failures
}
