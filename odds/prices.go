package odds

import (
	"errors"
	"math/big"
	"slices"

	"shoed/round"
)

// edge is what the house keeps of one unit staked: (lose − Σ num·pays)/den,
// exact and in lowest terms; negative when the bettor gains. It needs more
// than 64 bits, so it is not for the hot path.
func edge(lose, den uint64, tiers ...TierPrice) *big.Rat {
	kept := new(big.Rat).SetInt(new(big.Int).SetUint64(lose))
	for _, t := range tiers {
		paid := big.NewRat(int64(t.Pays.Num), int64(t.Pays.Den))
		kept.Sub(kept, paid.Mul(paid, new(big.Rat).SetInt(new(big.Int).SetUint64(t.Num))))
	}
	return kept.Quo(kept, new(big.Rat).SetInt(new(big.Int).SetUint64(den)))
}

// Price is a bet's exact odds. Den, the tiers' Num and Push are not reduced;
// what is left of Den loses.
type Price struct {
	Bet   round.Bet
	Den   uint64
	Tiers []TierPrice // in the table's order
	Push  uint64
	Edge  *big.Rat // what the house keeps of a unit staked; lowest terms
}

// TierPrice is one way to win: in Num of the Price's Den.
type TierPrice struct {
	Tier round.Tier
	Pays round.Ratio
	Num  uint64
}

// Prices are the odds before a round of the bets that the house offers, in its
// table's order. Bets on ranks and suits are left out when the composition is
// known by value only.
func Prices(c Composition, rules *round.Rules) ([]Price, error) {
	var j Joint
	if err := j.Count(c.values); err != nil {
		return nil, err
	}
	var prices []Price
	for _, row := range rules.Bets.Rows[:rules.Bets.N] {
		pair := pairBets[row.Bet]
		if !rules.Offered(row.Bet) || pair != nil && !c.faced {
			continue
		}
		if n := len(prices); n == 0 || prices[n-1].Bet != row.Bet {
			push := rules.Push(row)
			prices = append(prices, Price{Bet: row.Bet, Den: j.Den, Push: j.sum(func(r round.Result) bool { return r.Pushes(push) })})
		}
		p := &prices[len(prices)-1]
		tier := TierPrice{Tier: row.Tier, Pays: rules.Pays(row)}
		if pair != nil {
			tier.Num, p.Den = pair(&c)
		} else {
			tier.Num = j.sum(func(r round.Result) bool { return r.Won(row.Bet, row.Tier) })
		}
		p.Tiers = append(p.Tiers, tier)
	}
	for i := range prices {
		p := &prices[i]
		lose := p.Den - p.Push
		for _, t := range p.Tiers {
			lose -= t.Num
		}
		p.Edge = edge(lose, p.Den, p.Tiers...)
	}
	return prices, nil
}

// RTPMax is the highest return to the bettor, per unit staked, among the bets
// that the house offers on a new shoe.
func RTPMax(rules *round.Rules) (*big.Rat, error) {
	c, err := FullShoe(int(rules.Decks))
	if err != nil {
		return nil, err
	}
	prices, err := Prices(c, rules)
	if err != nil {
		return nil, err
	}
	if len(prices) == 0 {
		return nil, errors.New("the house offers no bet of its table")
	}
	best := slices.MinFunc(prices, func(a, b Price) int { return a.Edge.Cmp(b.Edge) })
	return new(big.Rat).Sub(big.NewRat(1, 1), best.Edge), nil
}
