//go:build vm

package vm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"shoed/round"
	"shoed/scanner"
)

const (
	stx = 0x05 // begins a telegram, and is in none

	// Copies of a telegram come 50 ms apart. Nine telegrams later the same bytes
	// mean something new, which must not be within scanner.DuplicateWindow.
	copyGap     = 50 * time.Millisecond
	telegramGap = 200 * time.Millisecond
)

// telegram is what a shoe says once, and the copies and noise after it.
type telegram struct {
	bytes []byte
	in    []round.Input // what it means
}

// capture splits the real capture, so many times over, into its telegrams.
func capture(t testing.TB, times int) []telegram {
	t.Helper()
	once, err := os.ReadFile("../../scanner/testdata/angel/angel_eye_capture.hex")
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := scanner.New("angel", scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		all []telegram
		one []byte // since the last telegram's last byte
		at  = time.Unix(0, 0)
	)
	err = scanner.ParseCapture(bytes.NewReader(bytes.Repeat(once, times)), func(_ int64, _ int, read []byte) error {
		at = at.Add(copyGap)
		for _, b := range read {
			one = append(one, b)
			var in []round.Input
			for _, r := range decoder.Feed(at, []byte{b}, nil) {
				if r.Err == nil {
					in = append(in, r.Input)
				}
			}
			if len(in) == 0 {
				continue
			}
			start := max(0, bytes.LastIndexByte(one, stx))
			if len(all) > 0 {
				last := &all[len(all)-1]
				last.bytes = append(last.bytes, one[:start]...)
			}
			all = append(all, telegram{bytes.Clone(one[start:]), in})
			one = nil
			at = at.Add(telegramGap)
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d telegrams: %v", len(all), err)
	}
	last := &all[len(all)-1]
	last.bytes = append(last.bytes, one...)
	return all
}

// send writes telegrams at a shoe's pace until ctx ends or the line breaks.
func (tb *table) send(ctx context.Context, telegrams []telegram) error {
	for _, t := range telegrams {
		before, sent := tb.witness.received(), time.Time{}
		rest := t.bytes
		for len(rest) > 0 {
			n := len(rest)
			if next := bytes.IndexByte(rest[1:], stx); next >= 0 {
				n = next + 1
			}
			tb.line.SetWriteDeadline(time.Now().Add(patience))
			if _, err := tb.line.Write(rest[:n]); err != nil {
				return fmt.Errorf("reader's line: %w", err)
			}
			if sent.IsZero() {
				sent = time.Now()
			}
			rest = rest[n:]
			if err := pause(ctx, copyGap); err != nil {
				return err
			}
		}
		if err := pause(ctx, telegramGap); err != nil {
			return err
		}
		if came := tb.witness.after(before); !came.IsZero() {
			tb.echoes = append(tb.echoes, came.Sub(sent))
		}
	}
	return nil
}

// latency sums up how long the telegrams took to the host.
func (tb *table) latency() string {
	if len(tb.echoes) == 0 {
		return "none came in time"
	}
	slices.Sort(tb.echoes)
	return fmt.Sprintf("%v at the median, %v at most, of %d", tb.echoes[len(tb.echoes)/2].Round(time.Millisecond),
		tb.echoes[len(tb.echoes)-1].Round(time.Millisecond), len(tb.echoes))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// open tells for each telegram whether a round is in hand for some telegrams
// more: from Player 1 to short of the verdict, and of the last face before it.
func open(telegrams []telegram) []bool {
	const short = 4
	is, now := make([]bool, len(telegrams)), false
	for i, t := range telegrams {
		for _, in := range t.in {
			switch {
			case in.Kind == round.InCard && in.To == round.ToPlayer && in.Pos == 1:
				now = true
			case in.Kind == round.InVerdict, in.Kind == round.InReader:
				now = false
				clear(is[max(0, i-short):i])
			}
		}
		is[i] = now
	}
	return is
}
