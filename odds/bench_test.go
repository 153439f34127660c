package odds

import (
	"testing"
	"time"

	"shoed/round"
)

// directJoint is the plain enumeration that other engines use: six nested
// loops over values, the ways multiplied on the way down.
func directJoint(v *Values, j *Joint) {
	*j = Joint{}
	cards := uint64(v.Cards())
	left := *v
	take := func(value int, ways uint64) (uint64, bool) {
		ways *= uint64(left[value])
		left[value]--
		if ways == 0 {
			left[value]++
		}
		return ways, ways != 0
	}
	for p1 := range 10 {
		w1, ok := take(p1, 1)
		if !ok {
			continue
		}
		for b1 := range 10 {
			w2, ok := take(b1, w1)
			if !ok {
				continue
			}
			for p2 := range 10 {
				w3, ok := take(p2, w2)
				if !ok {
					continue
				}
				for b2 := range 10 {
					if w4, ok := take(b2, w3); ok {
						directThirds(&left, j, (p1+p2)%10, (b1+b2)%10, w4, cards)
						left[b2]++
					}
				}
				left[p2]++
			}
			left[b1]++
		}
		left[p1]++
	}
	j.Den = falling(cards, 6)
}

func directThirds(left *Values, j *Joint, p, b int, ways, cards uint64) {
	switch {
	case p >= 8 || b >= 8 || p >= 6 && b >= 6:
		j.Ways[0][0][p][b] += ways * (cards - 4) * (cards - 5)
	case p >= 6:
		for third := range 10 {
			j.Ways[0][1][p][(b+third)%10] += ways * uint64(left[third]) * (cards - 5)
		}
	default:
		for third := range 10 {
			w := ways * uint64(left[third])
			if w == 0 {
				continue
			}
			final := (p + third) % 10
			if b > drawsUpTo[third] {
				j.Ways[1][0][final][b] += w * (cards - 5)
				continue
			}
			left[third]--
			for last := range 10 {
				j.Ways[1][1][final][(b+last)%10] += w * uint64(left[last])
			}
			left[third]++
		}
	}
}

// The baseline counts the same.
func TestDirect(t *testing.T) {
	r := seeded(t)
	for range 20 {
		v := values(randomShoe(r, 6+r.IntN(600)))
		var j Joint
		if directJoint(&v, &j); j != *joint(t, v) {
			t.Fatalf("%v: the direct enumeration differs", v)
		}
	}
}

// leastRatio is how many times faster than direct enumeration the joint count
// has to be on any machine.
const leastRatio = 50

func BenchmarkJoint(b *testing.B) {
	v := fullShoe(b, 8).Values()
	var j Joint
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Count(v); err != nil {
			b.Fatal(err)
		}
	}
	direct, ratio := directRatio(v)
	b.ReportMetric(float64(direct.Nanoseconds()), "direct-ns")
	b.ReportMetric(ratio, "times-faster")
	if ratio < leastRatio {
		b.Errorf("only %.0f times as fast as direct enumeration, want %d", ratio, leastRatio)
	}
}

// directRatio measures both ways in turn and compares the best of each, so
// that a busy machine slows neither alone.
func directRatio(v Values) (direct time.Duration, ratio float64) {
	const turns, batch = 50, 100
	var j Joint
	direct, ours := time.Hour, time.Hour
	for range turns {
		start := time.Now()
		directJoint(&v, &j)
		direct = min(direct, time.Since(start))
		start = time.Now()
		for range batch {
			_ = j.Count(v) // a full shoe does not fail
		}
		ours = min(ours, time.Since(start))
	}
	return direct, batch * float64(direct) / float64(ours)
}

func BenchmarkOutcomes(b *testing.B) {
	v := fullShoe(b, 8).Values()
	for _, c := range []struct {
		name string
		h    Hands
	}{
		{"after four, both may draw", Hands{handOf(0, 1), handOf(0, 6)}},
		{"after four, Banker draws always", Hands{handOf(0, 1), handOf(0, 0)}},
		{"after four, Player stands", Hands{handOf(0, 6), handOf(0, 0)}},
		{"after five", Hands{handOf(0, 1, 4), handOf(0, 4)}},
		{"Player hidden", Hands{handOf(-1, -1), handOf(0, 2)}},
		{"Banker hidden", Hands{handOf(0, 2), handOf(-1, -1)}},
		{"one card masked", Hands{handOf(0, 2), handOf(-1, 3)}},
		{"one of each hand masked", Hands{handOf(-1, 2), handOf(-1, 3)}},
		{"one card known", Hands{Player: handOf(2)}},
		{"six cards, all masked", Hands{handOf(-1, -1, -1), handOf(-1, -1, -1)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.h.Outcomes(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A whole window: which rows are offered, and their counts.
func BenchmarkInsuranceWindow(b *testing.B) {
	v := fullShoe(b, 8).Values()
	table := &round.DefaultInsurance
	offers := make([]round.Offer, 0, len(table.Rows))
	for _, c := range []struct {
		name string
		h    Hands
	}{
		{"one hand shown", Hands{handOf(-1, -1), handOf(0, 7)}},
		{"four cards", Hands{handOf(0, 1), handOf(0, 6)}},
		{"five cards", Hands{handOf(0, 1, 4), handOf(0, 4)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				offers = Offers(table, c.h, offers[:0])
				if err := FillOffers(offers, c.h, v, round.TiePushes); err != nil || len(offers) == 0 {
					b.Fatal(err, offers)
				}
			}
		})
	}
}

func BenchmarkPrices(b *testing.B) {
	c := fullShoe(b, 8)
	rules := house(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Prices(c, rules); err != nil {
			b.Fatal(err)
		}
	}
}
