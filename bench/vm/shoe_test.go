//go:build vm

package vm

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/round"
	"shoed/scanner"
)

const (
	enq = 0x05 // begins a telegram, and is in none

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
		all split
		at  = time.Unix(0, 0)
	)
	err = scanner.ParseCapture(bytes.NewReader(bytes.Repeat(once, times)), func(_ int64, _ int, read []byte) error {
		at = at.Add(copyGap)
		for _, b := range read {
			if all.push(b, decoder.Feed(at, []byte{b}, nil)) {
				at = at.Add(telegramGap)
			}
		}
		return nil
	})
	if err != nil || len(all.telegrams) == 0 {
		t.Fatalf("%d telegrams: %v", len(all.telegrams), err)
	}
	all.leave(all.rest)
	return all.telegrams
}

// split is a line's bytes as telegrams.
type split struct {
	telegrams []telegram
	rest      []byte // since the last byte of the last one
}

// push takes a byte and what it completes, and tells whether that is a telegram.
func (s *split) push(b byte, readings []scanner.Reading) bool {
	s.rest = append(s.rest, b)
	var in []round.Input
	for _, r := range readings {
		if r.Err == nil {
			in = append(in, r.Input)
		}
	}
	if len(in) == 0 {
		return false
	}
	begins := max(0, bytes.LastIndexByte(s.rest, enq))
	s.leave(s.rest[:begins])
	s.telegrams = append(s.telegrams, telegram{bytes.Clone(s.rest[begins:]), in})
	s.rest = nil
	return true
}

// leave has copies and noise follow the last telegram.
func (s *split) leave(b []byte) {
	if n := len(s.telegrams); n > 0 {
		s.telegrams[n-1].bytes = append(s.telegrams[n-1].bytes, b...)
	}
}

// send writes telegrams at a shoe's pace, and lays each card into its box once
// the host has heard of it, up to one, not included, or until the power goes.
func (tb *table) send(to int) error {
	for i := tb.said; i < to; i++ {
		before := tb.witness.received()
		sent, err := tb.write(tb.shoe[i].bytes)
		if err != nil {
			return err
		}
		if tb.shoe[i].in[0].Kind == round.InCard {
			came, err := tb.witness.heard(before, tb.exited)
			if err != nil {
				return err
			}
			tb.echoes = append(tb.echoes, came.Sub(sent))
		}
		if err := tb.lay(i + 1); err != nil {
			return err
		}
		<-time.After(telegramGap)
	}
	return nil
}

// write sends a telegram's bytes, its copies at their distance, and returns when
// the first one was written.
func (tb *table) write(rest []byte) (sent time.Time, err error) {
	for len(rest) > 0 {
		n := len(rest)
		if next := bytes.IndexByte(rest[1:], enq); next >= 0 {
			n = next + 1
		}
		tb.line.SetWriteDeadline(time.Now().Add(patience))
		if _, err := tb.line.Write(rest[:n]); err != nil {
			return sent, fmt.Errorf("reader's line: %w", err)
		}
		if sent.IsZero() {
			sent = time.Now()
		}
		rest = rest[n:]
		<-time.After(copyGap)
	}
	return sent, nil
}

// lay moves the cards in the boxes as a dealer does who has seen the telegrams up
// to one, not included.
func (tb *table) lay(to int) error {
	for ; tb.laid < to; tb.laid++ {
		for _, in := range tb.shoe[tb.laid].in {
			if err := tb.move(in); err != nil {
				return err
			}
		}
	}
	return nil
}

func (tb *table) move(in round.Input) error {
	switch {
	case in.Kind == round.InCard && in.To.Side() != 0 && in.Outside == 0:
		box := int(in.To-round.ToPlayer)*3 + int(in.Pos) - 1
		tb.filled[box] = true
		_, err := tb.do(fmt.Sprintf("pull %d up", box))
		return err
	case in.Kind == round.InVerdict, in.Kind == round.InReader:
		all := tb.inBoxes()
		tb.filled = [6]bool{}
		_, err := tb.do("for i in " + strings.ReplaceAll(all, ",", " ") + "; do pull $i down; done")
		return err
	}
	return nil
}

// inBoxes are the numbers of the boxes in which a card lies, P1 P2 P3 B1 B2 B3.
func (tb *table) inBoxes() string {
	var all []string
	for i, is := range tb.filled {
		if is {
			all = append(all, fmt.Sprint(i))
		}
	}
	return strings.Join(all, ",")
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
