package odds

import (
	"math/big"
	"testing"

	"shoed/round"
)

// FuzzOutcomes compares the package with the dumb implementation on tiny
// shoes: one byte a value's count, then the hands, a value or masked a byte.
func FuzzOutcomes(f *testing.F) {
	f.Add([]byte{3, 0, 1, 0, 0, 2, 0, 0, 1, 0, 2, 2, 1, 2, 3, 4, 5, 6})
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 2, 10, 2, 9, 0, 4, 0})
	f.Add([]byte{0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 2, 2, 10, 10, 0, 3, 4, 0})
	f.Add([]byte{6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 18 {
			return
		}
		var shoe [10]int
		n := 0
		for v := range shoe {
			shoe[v] = int(b[v] % 4)
			n += shoe[v]
		}
		if n > 12 {
			return // the dumb one would take seconds
		}
		var h Hands
		for i, hand := range []*round.Hand{&h.Player, &h.Banker} {
			hand.N = b[10+i] % 4
			for k := range hand.N {
				v := int(b[12+3*i+int(k)] % 11)
				if v == 10 {
					v = -1
				}
				hand.Cards[k] = handOf(v).Cards[0]
			}
		}
		if h.Player.N == 0 && h.Banker.N == 0 && n >= 6 {
			checkJoint(t, shoe)
		}
		o, err := h.Outcomes(values(shoe))
		want, possible := dumbOutcomes(h, shoe)
		if err != nil {
			early := h.Player.N == 3 && h.Banker.N < 2 || h.Banker.N == 3 && h.Player.N < 2
			if possible && !early && n >= dumbUnknown(h)+2 {
				t.Fatalf("%+v with %v unseen: %v, but it can be dealt", h, shoe, err)
			}
			return
		}
		for _, outcome := range []round.Outcome{round.PlayerWins, round.BankerWins, round.Tie} {
			got := new(big.Rat).SetFrac(new(big.Int).SetUint64(o.Of(outcome)), new(big.Int).SetUint64(o.Den))
			if got.Cmp(want[outcome]) != 0 {
				t.Fatalf("%+v with %v unseen, outcome %d: %v, want %v", h, shoe, outcome, got, want[outcome])
			}
		}
	})
}

// FuzzTables: what round's parsers take can be used.
func FuzzTables(f *testing.F) {
	f.Add(round.DefaultBets.CSV())
	f.Add(round.DefaultInsurance.CSV())
	c := fullShoe(f, 1)
	f.Fuzz(func(t *testing.T, text string) {
		rules := house(t)
		var err error
		if rules.Bets, err = round.ParseBets(text); err == nil {
			if prices, err := Prices(c, rules); err != nil || len(prices) == 0 {
				t.Errorf("%d prices, %v", len(prices), err)
			}
		}
		if table, err := round.ParseInsurance(text); err == nil {
			h := Hands{handOf(0, 7), handOf(-1, -1)}
			if err := FillOffers(Offers(&table, h, nil), h, c.Values(), round.TiePushes); err != nil {
				t.Error(err)
			}
		}
	})
}
