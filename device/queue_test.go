package device

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// naive is the queue written down as its description: it remembers every put
// and works out what waits by going through all of them again.
type naive struct {
	maxBytes, maxReads int
	waiting            []string
	sizes              []int // of what waits; -1 for what is not a read
}

func (n *naive) put(s Signal) {
	bytes, reads := 0, 0
	for _, size := range n.sizes {
		if size >= 0 {
			bytes += size
			reads++
		}
	}
	switch {
	case s.Kind != Received:
		n.waiting, n.sizes = append(n.waiting, text(s)), append(n.sizes, -1)
		return
	case bytes+len(s.Bytes) <= n.maxBytes && reads+1 <= n.maxReads:
		n.waiting, n.sizes = append(n.waiting, text(s)), append(n.sizes, len(s.Bytes))
		return
	}
	mine := len(n.waiting)
	for i := mine - 1; i >= 0 && n.waiting[i][1] == '-'; i-- { // one Lost of each device at the end
		if n.waiting[i][0] == s.Name[0] {
			mine = i
		}
	}
	if mine == len(n.waiting) {
		n.waiting, n.sizes = append(n.waiting, s.Name+"-0"), append(n.sizes, -1)
	}
	var lost int
	fmt.Sscanf(n.waiting[mine][2:], "%d", &lost)
	n.waiting[mine] = fmt.Sprintf("%s-%d", s.Name, lost+len(s.Bytes))
}

func (n *naive) next() string {
	s := n.waiting[0]
	n.waiting, n.sizes = n.waiting[1:], n.sizes[1:]
	return s
}

func text(s Signal) string {
	switch s.Kind {
	case Received:
		return s.Name + string(s.Bytes)
	case Lost:
		return fmt.Sprintf("%s-%d", s.Name, s.LostBytes)
	}
	return s.Name + s.Kind.String()
}

func TestQueueAgainstNaiveModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for run := range 300 {
		maxBytes, maxReads := 1+r.IntN(60), 1+r.IntN(8)
		q, model := NewQueue(maxBytes, maxReads), &naive{maxBytes: maxBytes, maxReads: maxReads}
		put, delivered, lost := 0, 0, 0
		for step := 0; step < 400 || len(model.waiting) > 0; step++ {
			if step < 400 && r.IntN(9) < 5 {
				s := Signal{Kind: Kind(1 + r.IntN(3)), Name: string(rune('a' + r.IntN(3)))}
				if r.IntN(4) > 0 {
					s.Kind = Received
				}
				if s.Kind == Received {
					s.Bytes = []byte(fmt.Sprintf("%0*d", 1+r.IntN(maxBytes+maxBytes/4), step))
					put += len(s.Bytes)
				}
				q.Put(s)
				model.put(s)
				continue
			}
			if len(model.waiting) == 0 {
				continue
			}
			got, err := q.Next(context.Background())
			if want := model.next(); err != nil || text(got) != want {
				t.Fatalf("run %d step %d: %q, %v; want %q", run, step, text(got), err, want)
			}
			delivered += len(got.Bytes)
			lost += int(got.LostBytes)
		}
		if put != delivered+lost || q.bytes != 0 || q.reads != 0 {
			t.Fatalf("run %d: put %d, delivered %d, lost %d; %d bytes in %d reads left", run, put, delivered, lost, q.bytes, q.reads)
		}
	}
}

func TestQueueOverflowIsToldOnceInItsPlace(t *testing.T) {
	q := NewQueue(10, 3)
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for i, bytes := range []string{"12345", "12345", "lost", "also"} {
		q.Put(Signal{Kind: Received, At: at(i), Bytes: []byte(bytes)})
	}
	q.Put(Signal{Kind: Down, At: at(4), Cause: ErrUnplugged})
	q.Put(Signal{Kind: Received, At: at(5), Bytes: []byte("gone")})
	if s, _ := q.Next(context.Background()); string(s.Bytes) != "12345" {
		t.Fatal(text(s))
	}
	q.Put(Signal{Kind: Received, At: at(6), Bytes: []byte("67")})
	var got string
	for range 5 {
		s, _ := q.Next(context.Background())
		got += fmt.Sprintf("%d:%s ", s.At.Unix(), text(s))
	}
	if want := "1:12345 2:-8 4:down 5:-4 6:67 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestQueueNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(100, 100)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got := make(chan Signal)
		go func() {
			s, _ := q.Next(ctx)
			got <- s
		}()
		synctest.Wait() // Next waits
		q.Put(Signal{Kind: Up})
		if s := <-got; s.Kind != Up {
			t.Error(s)
		}
		if _, err := q.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		// What was put is delivered after the end of the context, then its error.
		q.Put(Signal{Kind: Received, Bytes: []byte("x")})
		if s, err := q.Next(ctx); err != nil || string(s.Bytes) != "x" {
			t.Error(s, err)
		}
		if _, err := q.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// One puts, one takes, at full speed: what is missing has been told.
func TestQueueConcurrently(t *testing.T) {
	const puts = 50000
	q := NewQueue(64, 16)
	go func() {
		for i := range puts {
			q.Put(Signal{Kind: Received, Bytes: []byte{byte(i), byte(i >> 8)}})
		}
		q.Put(Signal{Kind: Down})
	}()
	next := 0
	for {
		s, err := q.Next(wait(t))
		if err != nil {
			t.Fatal(err)
		}
		switch s.Kind {
		case Received:
			if s.Bytes[0] != byte(next) || s.Bytes[1] != byte(next>>8) {
				t.Fatalf("got %v at %d", s.Bytes, next)
			}
			next++
		case Lost:
			next += int(s.LostBytes) / 2
		case Down:
			if next != puts {
				t.Errorf("%d of %d accounted for", next, puts)
			}
			return
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[Kind]string{0: "invalid", Received: "received", Up: "up", Down: "down", Lost: "lost", 9: "invalid"} {
		if k.String() != want {
			t.Errorf("%d is %s, want %s", k, k, want)
		}
	}
}
