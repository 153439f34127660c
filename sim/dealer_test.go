package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/round"
	"shoed/scanner"
)

func deal(t *testing.T, o Options, rounds int) (telegrams []byte, dealt []Dealt) {
	t.Helper()
	if o.Sleep == nil {
		o.Sleep = NoSleep
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.Play(t.Context(), &b, rounds, func(r Dealt) { dealt = append(dealt, r) }); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), dealt
}

// seen puts together what a decoder reads, knowing nothing of the dealer.
type seen struct {
	rounds            []Dealt
	now               Dealt
	masked, shown     []string
	standbys, started int
}

func (s *seen) input(t *testing.T, in round.Input) {
	hands := [...]*round.Hand{round.ToPlayer: &s.now.Player, round.ToBanker: &s.now.Banker}
	switch in.Kind {
	case round.InReader:
		switch in.Reader {
		case round.ReaderStart:
			s.now.Shoe, s.now.Round = s.now.Shoe+1, 0
			s.started++
		case round.ReaderStandby:
			s.standbys++
		default:
			t.Fatal("a gap")
		}
	case round.InCut:
		s.now.Last = true
	case round.InShow:
		s.shown = append(s.shown, fmt.Sprint(in.To, in.Pos))
		hands[in.To].Cards[in.Pos-1] = in.Card
	case round.InCard:
		if in.To == round.ToFirst || in.To == round.ToBurn {
			s.now.Opening = append(s.now.Opening, in.Card)
			return
		}
		if in.Card == round.Masked {
			s.masked = append(s.masked, fmt.Sprint(in.To, in.Pos))
		}
		h := hands[in.To]
		if h.N++; h.N != in.Pos {
			t.Fatalf("card %d of a hand came as its %d", in.Pos, h.N)
		}
		h.Cards[h.N-1] = in.Card
	case round.InVerdict:
		s.verdict(t, in.Verdict)
	default:
		t.Fatalf("%+v", in)
	}
}

func (s *seen) verdict(t *testing.T, v round.Verdict) {
	if !slices.Equal(s.masked, s.shown) {
		t.Fatalf("masked %v, named %v", s.masked, s.shown)
	}
	r := s.now
	r.Round++
	r.PlayerTotal, r.BankerTotal, r.Outcome = sum(r.Player), sum(r.Banker), v.Outcome
	if v.PlayerPair {
		r.Tags |= round.TagPlayerPair
	}
	if v.BankerPair {
		r.Tags |= round.TagBankerPair
	}
	for _, h := range []round.Hand{r.Player, r.Banker} {
		if h.Cards[0] == h.Cards[1] {
			r.Tags |= round.TagPerfectPair
		}
		if sum(round.Hand{Cards: h.Cards, N: 2}) >= 8 {
			r.Tags |= round.TagNatural
		}
	}
	s.rounds = append(s.rounds, r)
	s.now = Dealt{Shoe: r.Shoe, Round: r.Round}
	s.masked, s.shown = nil, nil
}

func sum(h round.Hand) (total int) {
	for _, c := range h.Cards[:h.N] {
		total += c.Value()
	}
	return total % 10
}

func same(a, b Dealt) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

// 200 rounds and more, over several shoes, decoded from the bytes alone give back
// what was dealt: open and masked, with copies and without.
func TestDecodesToWhatWasDealt(t *testing.T) {
	for _, o := range []Options{
		{Seed: 1}, {Seed: 1, Masked: true}, {Seed: 2, Decks: 6, Copies: 1}, {Seed: 3, Decks: 1, CutMin: 6, CutMax: 35, Masked: true},
		{Seed: 4, Decks: 12, Copies: 6}, {Seed: 5, Decks: 2, CutMin: 6, CutMax: 6},
	} {
		t.Run(fmt.Sprintf("seed %d, decks %d, masked %t", o.Seed, o.Decks, o.Masked), func(t *testing.T) {
			telegrams, want := deal(t, o, 200)
			d, err := scanner.New("angel", scanner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var s seen
			for _, r := range d.Feed(time.Unix(0, 0), telegrams, nil) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				s.input(t, r.Input)
			}
			if len(s.rounds) != 200 || len(want) != 200 {
				t.Fatalf("%d rounds read, %d dealt", len(s.rounds), len(want))
			}
			for i, r := range s.rounds {
				if !same(r, want[i]) {
					t.Fatalf("read %+v, dealt %+v", r, want[i])
				}
			}
			if s.standbys == 0 || s.standbys > 190 || s.started < 2 || s.started != want[199].Shoe {
				t.Errorf("%d stand-bys, %d starts", s.standbys, s.started)
			}
			copies := uint64(max(o.Copies, 1))
			if o.Copies == 0 {
				copies = 3
			}
			if st := d.Stats(); st.Duplicates != st.Frames/copies*(copies-1) || st.Gaps != 0 || st.GarbageBytes != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// bankerDraws by Banker's total and Player's third card, the last column for
// none (game.md section 1), as a second source beside round's.
var bankerDraws = [8]string{
	"ddddddddddd", "ddddddddddd", "ddddddddddd", "dddddddd-dd", "--dddddd--d", "----dddd--d", "------dd---", "-----------",
}

// Every round obeys the rules, and every shoe is whole: no face more often than
// its decks have it, the first card's burn, one last round.
func TestRules(t *testing.T) {
	_, dealt := deal(t, Options{Seed: 7, Decks: 2}, 2000)
	faces := map[round.Card]int{}
	for i, r := range dealt {
		if r.Round == 1 {
			clear(faces)
			burn := r.Opening[0].Value()
			if burn == 0 {
				burn = 10
			}
			if len(r.Opening) != 1+burn {
				t.Fatalf("opening %v", r.Opening)
			}
		}
		if first := i == 0 || dealt[i-1].Last; first != (r.Round == 1) || first != (len(r.Opening) > 0) {
			t.Fatalf("round %d of shoe %d after %+v", r.Round, r.Shoe, dealt[max(i-1, 0)])
		}
		for _, cards := range [][]round.Card{r.Opening, r.Player.Cards[:r.Player.N], r.Banker.Cards[:r.Banker.N]} {
			for _, c := range cards {
				if faces[c]++; faces[c] > 2 || !c.Known() {
					t.Fatalf("%v is there %d times", c, faces[c])
				}
			}
		}
		if p, b := draws(r); p != (r.Player.N == 3) || b != (r.Banker.N == 3) {
			t.Fatalf("%v against %v", r.Player, r.Banker)
		}
	}
}

func draws(r Dealt) (player, banker bool) {
	p, b := sum(round.Hand{Cards: r.Player.Cards, N: 2}), sum(round.Hand{Cards: r.Banker.Cards, N: 2})
	if p >= 8 || b >= 8 {
		return false, false
	}
	third := 10
	if player = p <= 5; player {
		third = r.Player.Cards[2].Value()
	}
	return player, bankerDraws[b][third] == 'd'
}

// The same options send the same bytes, in one piece or in many, at any pace;
// another seed sends others.
func TestReproducible(t *testing.T) {
	want, _ := deal(t, Options{Seed: 9, Masked: true}, 100)
	if got, _ := deal(t, Options{Seed: 9, Masked: true, Speed: 50, CardPause: Range{0, time.Second}}, 100); !bytes.Equal(got, want) {
		t.Error("the pace changes the bytes")
	}
	if got, _ := deal(t, Options{Seed: 10, Masked: true}, 100); bytes.Equal(got, want) {
		t.Error("the seed does not count")
	}
	d, err := New(Options{Seed: 9, Masked: true, Sleep: NoSleep})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for range 100 {
		if err := d.Play(t.Context(), &b, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Error("a hundred single rounds are others than a hundred at once")
	}
}

// clock counts what is slept, and notes when each write came.
type clock struct {
	now    time.Duration
	wrote  []time.Duration
	writes [][]byte
}

func (c *clock) Write(b []byte) (int, error) {
	c.wrote = append(c.wrote, c.now)
	c.writes = append(c.writes, bytes.Clone(b))
	return len(b), nil
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.now += d
	return ctx.Err()
}

// Copies come 50 ms apart, cards and rounds at a human pace, all by the speed.
func TestPace(t *testing.T) {
	for _, speed := range []float64{1, 20} {
		var c clock
		d, err := New(Options{Seed: 11, Masked: true, Speed: speed, Sleep: c.sleep})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Play(t.Context(), &c, 20, nil); err != nil {
			t.Fatal(err)
		}
		life := func(d time.Duration) time.Duration { return time.Duration(float64(d) * speed) }
		for i := 1; i < len(c.writes); i++ {
			least, most := 50*time.Millisecond, 50*time.Millisecond
			if i%3 == 0 {
				least, most = pauseBefore(c.writes[i], c.writes[i-1])
			}
			if gap := life(c.wrote[i] - c.wrote[i-1]); gap < least-time.Microsecond || gap > most+time.Microsecond {
				t.Errorf("speed %v: %v before % x", speed, gap, c.writes[i])
			}
		}
	}
}

// pauseBefore is the least and most time from the start of a telegram's last copy
// to the next telegram.
func pauseBefore(b, was []byte) (least, most time.Duration) {
	busy := time.Duration(len(was)) * 10 * time.Second / 4800
	switch {
	case b[2] == 'S':
		least, most = 20*time.Second, 30*time.Second
	case b[2] == 'D' && (was[2] == 'G' || was[2] == 'P' || was[2] == 'D' && was[3] == 0xd0):
		least, most = 8*time.Second, 12*time.Second
	case b[2] == 'D':
		least, most = 800*time.Millisecond, 1300*time.Millisecond
	case b[2] == 'P', b[2] == 'I' && was[2] != 'I':
		least, most = time.Second, 2*time.Second
	}
	return least + busy, most + busy
}

// Play ends with its context, in the pause, and goes on where it was.
func TestStopAndGoOn(t *testing.T) {
	want, _ := deal(t, Options{Seed: 12}, 3)
	ctx, stop := context.WithCancel(t.Context())
	left := 30
	o := Options{Seed: 12, Sleep: func(ctx context.Context, _ time.Duration) error {
		if left--; left == 0 {
			stop()
		}
		return ctx.Err()
	}}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	rounds := 0
	count := func(Dealt) { rounds++ }
	if err := d.Play(ctx, &b, 0, count); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended with %v", err)
	}
	stopped := b.Len()
	if err := d.Play(t.Context(), &b, 3-rounds, count); err != nil {
		t.Fatal(err)
	}
	if stopped == 0 || stopped == len(want) || rounds != 3 {
		t.Errorf("stopped after %d bytes, %d rounds", stopped, rounds)
	}
	// The copies that were still to come are lost, nothing else.
	if got := b.Bytes(); !bytes.HasPrefix(want, got[:stopped]) || !bytes.HasSuffix(want, got[stopped:]) || len(want)-len(got) > 2*12 {
		t.Errorf("%d bytes stopped, then % x", stopped, got[stopped:])
	}
}

// The real Sleep ends with its context.
func TestSleepStops(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer stop()
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Play(ctx, io.Discard, 0, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}

func TestBrokenLine(t *testing.T) {
	d, err := New(Options{Sleep: NoSleep})
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	r.CloseWithError(errors.New("unplugged"))
	if err := d.Play(t.Context(), w, 1, nil); err == nil || !strings.Contains(err.Error(), "unplugged") {
		t.Errorf("ended with %v", err)
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, o := range []Options{
		{Decks: -1}, {Decks: 13}, {CutMin: 5, CutMax: 10}, {CutMin: 10, CutMax: 9}, {Decks: 1, CutMin: 6, CutMax: 36}, {Copies: -1}, {Speed: -1},
		{CardPause: Range{2, 1}}, {RoundPause: Range{-1, 1}},
	} {
		if d, err := New(o); err == nil {
			t.Errorf("%+v gave %v", o, d)
		}
	}
}
