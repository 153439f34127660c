package odds

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shoed/round"
)

// house has the default rules with some set otherwise.
func house(t testing.TB, rules ...string) *round.Rules {
	t.Helper()
	r := round.DefaultRules()
	for _, rule := range rules {
		if err := r.Set(rule); err != nil {
			t.Fatal(err)
		}
	}
	return &r
}

// pricesOf are the prices of the default house.
func pricesOf(t testing.TB, c Composition) []Price {
	t.Helper()
	prices, err := Prices(c, house(t))
	if err != nil {
		t.Fatal(err)
	}
	return prices
}

func priceOf(t testing.TB, prices []Price, name string) Price {
	t.Helper()
	i := slices.IndexFunc(prices, func(p Price) bool { return p.Bet.String() == name })
	if i < 0 {
		t.Fatalf("no price of %s", name)
	}
	return prices[i]
}

// condition on a round's result.
type condition = func(round.Result) bool

// sideBet is a bet of the reference tables: one of ours, or a variant given by
// its events, which are then counted on the joint count directly.
type sideBet struct {
	ours     string
	variants map[string]condition
}

func banker6(r round.Result) bool { return r.BankerTotal == 6 }

// sevenOverSix is Player 7 against Banker 6 in as many cards of both.
func sevenOverSix(cards int) condition {
	return func(r round.Result) bool {
		return r.PlayerTotal == 7 && r.BankerTotal == 6 && r.PlayerCards+r.BankerCards == cards
	}
}

// sideBets of side_bets_computed.csv. The variants are other houses' or
// readings of the seeds that were not built.
var sideBets = map[string]sideBet{
	"player 1:1":                                        {ours: "player"},
	"banker 0.95:1":                                     {ours: "banker"},
	"banker no-commission (6 pays 0.5)":                 {ours: "banker_no_commission"},
	"tie 8:1":                                           {ours: "tie"},
	"player pair 11:1":                                  {ours: "player_pair"},
	"banker pair 11:1":                                  {ours: "banker_pair"},
	"any pair 5:1 (paid once)":                          {ours: "any_pair"},
	"perfect pair 25:1 (paid once)":                     {ours: "perfect_pair"},
	"player bonus (dragon bonus)":                       {ours: "player_bonus"},
	"banker bonus (dragon bonus)":                       {ours: "banker_bonus"},
	"lucky six 12/20 (banker wins with 6)":              {ours: "lucky_six"},
	"2-card lucky six 22:1 (small tiger)":               {ours: "lucky_six_2"},
	"3-card lucky six 50:1 (big tiger)":                 {ours: "lucky_six_3"},
	"lucky seven 6/15":                                  {ours: "lucky_seven"},
	"2-card lucky seven 15:1 (as seed 001 prints)":      {ours: "lucky_seven_2"},
	"3-card lucky seven 30:1":                           {ours: "lucky_seven_3"},
	"super lucky seven 30/40/100 by total cards":        {ours: "super_lucky_seven"},
	"player natural 7:2 (first two 8 or 9, win or not)": {ours: "player_natural"},
	"banker natural 7:2 (first two 8 or 9, win or not)": {ours: "banker_natural"},

	"lucky six 12/23 (WoO liberal)": {variants: map[string]condition{
		"2-card": func(r round.Result) bool { return r.Outcome == round.BankerWins && banker6(r) && r.BankerCards == 2 },
		"3-card": func(r round.Result) bool { return r.Outcome == round.BankerWins && banker6(r) && r.BankerCards == 3 },
	}},
	"lucky six 12/20 LITERAL (banker total 6, result ignored)": {variants: map[string]condition{
		"2-card": func(r round.Result) bool { return banker6(r) && r.BankerCards == 2 },
		"3-card": func(r round.Result) bool { return banker6(r) && r.BankerCards == 3 },
	}},
	"2-card lucky six 22:1 LITERAL": {variants: map[string]condition{
		"6": func(r round.Result) bool { return banker6(r) && r.BankerCards == 2 },
	}},
	"3-card lucky six 50:1 LITERAL": {variants: map[string]condition{
		"6": func(r round.Result) bool { return banker6(r) && r.BankerCards == 3 },
	}},
	"lucky six 12/20 if a 6-6 tie also paid": {variants: map[string]condition{
		"2-card": func(r round.Result) bool { return r.Outcome != round.PlayerWins && banker6(r) && r.BankerCards == 2 },
		"3-card": func(r round.Result) bool { return r.Outcome != round.PlayerWins && banker6(r) && r.BankerCards == 3 },
	}},
	"super lucky seven if 5-card only Player3/Banker2 (GGRAsia wording)": {variants: map[string]condition{
		"4 cards":      sevenOverSix(4),
		"5 cards P3B2": func(r round.Result) bool { return sevenOverSix(5)(r) && r.PlayerCards == 3 },
		"6 cards":      sevenOverSix(6),
	}},
	"tiger tie 45:1 (6-6)": {variants: map[string]condition{
		"6-6": func(r round.Result) bool { return r.PlayerTotal == 6 && r.BankerTotal == 6 },
	}},
	"dragon 7 40:1": {variants: map[string]condition{
		"banker wins 3-card 7": func(r round.Result) bool {
			return r.Outcome == round.BankerWins && r.BankerTotal == 7 && r.BankerCards == 3
		},
	}},
	"panda 8 25:1": {variants: map[string]condition{
		"player wins 3-card 8": func(r round.Result) bool {
			return r.Outcome == round.PlayerWins && r.PlayerTotal == 8 && r.PlayerCards == 3
		},
	}},
	"small 3:2 (4 cards)": {variants: map[string]condition{
		"4": func(r round.Result) bool { return r.PlayerCards+r.BankerCards == 4 },
	}},
	"big 0.54:1 (5 or 6 cards)": {variants: map[string]condition{
		"5/6": func(r round.Result) bool { return r.PlayerCards+r.BankerCards > 4 },
	}},
	"perfect pair 25:1 / both 200:1 (Evolution variant)": {variants: bothPairs},
	"perfect pair 25:1 / both 250:1 (WoO version 2)":     {variants: bothPairs},
}

// bothPairs marks the variants that pay two perfect pairs apart; they are no
// condition on totals, see bothPerfect.
var bothPairs = map[string]condition{"one": nil, "both": nil}

// bothPerfect counts the draws of four cards with a perfect pair in both hands,
// on a full shoe, from first principles.
func bothPerfect(decks int) uint64 {
	n := uint64(decks)
	return 52 * (n*(n-1)*51*n*(n-1) + n*(n-1)*(n-2)*(n-3))
}

// events of a bet in the table, with what they pay and their count over den.
func countEvents(t *testing.T, decks int, bet string, rows []row) (counts map[string]uint64, den uint64) {
	t.Helper()
	c := fullShoe(t, decks)
	j := joint(t, c.Values())
	is, known := sideBets[bet]
	counts, den = map[string]uint64{}, j.Den
	if !known {
		t.Fatalf("bet %q is not in sideBets", bet)
	}
	if is.ours != "" {
		prices := pricesOf(t, c)
		p := priceOf(t, prices, is.ours)
		den = p.Den
		for _, r := range rows {
			i := slices.IndexFunc(p.Tiers, func(tier TierPrice) bool { return paysText(tier.Pays) == r["pays_to_1"] })
			switch {
			case strings.HasSuffix(r["event"], "tie push") || r["event"] == "natural tie":
				counts[r["event"]] = p.Push
			case is.ours == "player_bonus" || is.ours == "banker_bonus":
				counts[r["event"]] = bonusTier(t, p, r["event"])
			case i >= 0:
				counts[r["event"]] = p.Tiers[i].Num
			}
		}
	} else {
		for event, holds := range is.variants {
			if holds != nil {
				counts[event] = j.sum(holds)
			}
		}
		if _, pairs := is.variants["both"]; pairs {
			num, d := c.perfectPair()
			den = d
			counts["both"] = bothPerfect(decks)
			counts["one"] = num - counts["both"]
		}
	}
	lose := den
	for _, n := range counts {
		lose -= n
	}
	counts["lose"] = lose
	return counts, den
}

func bonusTier(t *testing.T, p Price, event string) uint64 {
	order := []string{"natural win", "non-natural win by 4", "non-natural win by 5", "non-natural win by 6",
		"non-natural win by 7", "non-natural win by 8", "non-natural win by 9"}
	if i := slices.Index(order, event); i >= 0 {
		return p.Tiers[i].Num
	}
	return 0
}

func paysText(r round.Ratio) string {
	return strconv.FormatFloat(float64(r.Num)/float64(r.Den), 'g', -1, 64)
}

func TestSideBetsComputed(t *testing.T) {
	bets := map[[2]string][]row{}
	for _, r := range readReference(t, "side_bets_computed") {
		key := [2]string{r["decks"], r["bet"]}
		bets[key] = append(bets[key], r)
	}
	for key, rows := range bets {
		decks := rows[0].int(t, "decks")
		counts, den := countEvents(t, decks, key[1], rows)
		kept := new(big.Rat)
		for _, r := range rows {
			n, ok := counts[r["event"]]
			if !ok {
				t.Errorf("%v: no such event", r)
				continue
			}
			if p := float64(n) / float64(den); !rounded(r["probability"], p) {
				t.Errorf("%v: probability %.15f", r, p)
			}
			six := falling(uint64(52*decks), 6)
			if want := r["count_if_six_card_denominator"]; want != "" && n*(six/den) != r.uint(t, "count_if_six_card_denominator") {
				t.Errorf("%v: count %d", r, n*(six/den))
			}
			pays, ok := new(big.Rat).SetString(r["pays_to_1"])
			if !ok {
				t.Fatal(r)
			}
			kept.Sub(kept, pays.Mul(pays, new(big.Rat).SetFrac(new(big.Int).SetUint64(n), new(big.Int).SetUint64(den))))
		}
		edge := kept
		if is := sideBets[key[1]]; is.ours != "" {
			prices := pricesOf(t, fullShoe(t, decks))
			if edge = priceOf(t, prices, is.ours).Edge; edge.Cmp(kept) != 0 {
				t.Errorf("%v: edge %v, the events say %v", key, edge, kept)
			}
		}
		for _, r := range rows {
			if !rounded(r["bet_house_edge"], float(edge)) || !rounded(r["bet_rtp"], 1-float(edge)) {
				t.Errorf("%v: edge %.12f", r, float(edge))
			}
		}
	}
}

// The published counts that a spreadsheet rounded to 15 digits: published, and
// what they should be.
var roundedCounts = map[uint64]uint64{
	3460101558850300: 3460101558850304, // Player Dragon Bonus, loss
	3495551656153850: 3495551656153856, // Banker Dragon Bonus, loss
	4998398275503350: 4998398275503360, // both tables' totals
}

func TestSideBetsPublished(t *testing.T) {
	misprints := map[uint64]bool{}
	for _, r := range readReference(t, "side_bets_published") {
		e := publishedEvent(t, r)
		if text := r["published_count"]; text != "" {
			published := r.uint(t, "published_count")
			if right, known := roundedCounts[published]; known {
				misprints[published] = true
				published = right
			}
			if e.num != published {
				t.Errorf("%v: count %d", r, e.num)
			}
		}
		if text := r["published_probability"]; text != "" && !rounded(text, float64(e.num)/float64(e.den)) {
			t.Errorf("%v: probability %.9f", r, float64(e.num)/float64(e.den))
		}
		if text := r["published_return_or_edge"]; text != "" && !rounded(text, e.returns) {
			t.Errorf("%v: return or edge %.9f", r, e.returns)
		}
	}
	if len(misprints) != len(roundedCounts) {
		t.Errorf("misprints met: %v", misprints)
	}
}

// published is what a row of side_bets_published.csv should say.
type published struct {
	num, den uint64
	returns  float64 // the row's pays times probability, or the bet's edge, as the row has it
}

func publishedEvent(t *testing.T, r row) published {
	t.Helper()
	decks := r.int(t, "decks")
	c := fullShoe(t, decks)
	j := joint(t, c.Values())
	prices := pricesOf(t, c)
	edgeOf := func(name string) float64 { return float(priceOf(t, prices, name).Edge) }
	event := func(n, den uint64) published {
		pays, err := strconv.ParseFloat(r["pays_to_1"], 64)
		if err != nil {
			t.Fatal(err)
		}
		return published{n, den, pays * float64(n) / float64(den)}
	}
	holds := func(f condition) published {
		n := j.sum(f)
		if r["pays_to_1"] == "" {
			return published{n, j.Den, 0}
		}
		return event(n, j.Den)
	}
	lucky6 := func(cards int) condition {
		return func(r round.Result) bool {
			return r.Outcome == round.BankerWins && banker6(r) && r.BankerCards == cards
		}
	}
	// expected gain of the bettor: −edge.
	total := func(num, den uint64, edge float64) published { return published{num, den, -edge} }

	bet, what := r["bet"], r["event"]
	side, bonus := strings.CutSuffix(bet, " dragon bonus")
	perfect, four := c.perfectPair()
	pair, two := c.pair()
	both := bothPerfect(decks)
	switch {
	case bonus && what == "house edge":
		return published{returns: edgeOf(side + "_bonus")}
	case bonus && what == "total":
		return total(j.Den, j.Den, edgeOf(side+"_bonus"))
	case bonus:
		p := priceOf(t, prices, side+"_bonus")
		switch n, by := strings.CutPrefix(what, "win by "); {
		case by:
			margin, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return event(p.Tiers[margin-3].Num, p.Den)
		case what == "natural win":
			return event(p.Tiers[0].Num, p.Den)
		case what == "natural tie":
			return event(p.Push, p.Den)
		case what == "loss":
			lose := p.Den - p.Push
			for _, tier := range p.Tiers {
				lose -= tier.Num
			}
			return event(lose, p.Den)
		}
	case strings.HasPrefix(bet, "lucky 6"):
		three := 20.0
		if bet == "lucky 6 liberal" {
			three = 23
		}
		wins := j.sum(lucky6(2)) + j.sum(lucky6(3))
		switch what {
		case "2-card winning banker 6":
			return holds(lucky6(2))
		case "3-card winning banker 6":
			return holds(lucky6(3))
		case "all other":
			return event(j.Den-wins, j.Den)
		case "total":
			return published{j.Den, j.Den, (12*float64(j.sum(lucky6(2))) + three*float64(j.sum(lucky6(3))) - float64(j.Den-wins)) / float64(j.Den)}
		}
	case bet == "perfect pair (paid once)":
		switch what {
		case "win": // over half as many draws as ours: the two hands in one order
			return published{perfect / (four / combinations(c)), combinations(c), 0}
		case "total 25:1":
			return total(combinations(c), combinations(c), edgeOf("perfect_pair"))
		case "total 26:1":
			return total(0, 1, (float64(four-perfect)-26*float64(perfect))/float64(four))
		}
	case bet == "perfect pair v2":
		switch scale := four / combinations(c); what {
		case "two":
			return event(both/scale, combinations(c))
		case "one":
			return event((perfect-both)/scale, combinations(c))
		case "total":
			return total(0, 1, (float64(four-perfect)-25*float64(perfect-both)-250*float64(both))/float64(four))
		}
	case bet == "player/banker pair":
		switch what {
		case "pair":
			return event(pair/2, two/2)
		case "total":
			return total(two/2, two/2, edgeOf("player_pair"))
		case "house edge":
			return published{returns: edgeOf("banker_pair")}
		}
	case bet == "total cards":
		return holds(func(r round.Result) bool { return strconv.Itoa(r.PlayerCards+r.BankerCards)+" cards" == what })
	}
	edges := map[string]float64{
		"either pair 5:1": edgeOf("any_pair"), "big tiger 50:1": edgeOf("lucky_six_3"), "small tiger 22:1": edgeOf("lucky_six_2"),
		"lucky seven 6/15":                 edgeOf("lucky_seven"),
		"banker no-commission 6 pays half": edgeOf("banker_no_commission"), "banker 5% commission": edgeOf("banker"),
	}
	for name, of := range map[string]struct {
		pays float64
		wins condition
	}{
		"dragon 7 40:1": {40, func(r round.Result) bool {
			return r.Outcome == round.BankerWins && r.BankerTotal == 7 && r.BankerCards == 3
		}},
		"panda 8 25:1": {25, func(r round.Result) bool {
			return r.Outcome == round.PlayerWins && r.PlayerTotal == 8 && r.PlayerCards == 3
		}},
	} {
		n := float64(j.sum(of.wins)) / float64(j.Den)
		edges[name] = 1 - n - of.pays*n
	}
	o := j.Outcomes() // EZ: no commission, Banker's three-card 7 pushes
	three7 := j.sum(func(r round.Result) bool {
		return r.Outcome == round.BankerWins && r.BankerTotal == 7 && r.BankerCards == 3
	})
	edges["EZ (3-card 7 push)"] = (float64(o.Player) - float64(o.Banker-three7)) / float64(j.Den)
	e, known := edges[bet]
	if !known {
		t.Fatalf("row %v is not understood", r)
	}
	return published{returns: e}
}

// combinations of two hands of two cards out of a composition, as the
// published perfect pair counts them: C(n,2)·C(n−2,2).
func combinations(c Composition) uint64 {
	n := uint64(c.Cards())
	return n * (n - 1) / 2 * ((n - 2) * (n - 3) / 2)
}

// Pairs against every draw of four cards from small shoes of faces.
func TestPairsAgainstDumb(t *testing.T) {
	r := seeded(t)
	for range 30 {
		n := 6 + r.IntN(15)
		var counts [round.Faces]int
		var cards []round.Card
		kinds := 2 + r.IntN(round.Faces-2)
		for len(cards) < n {
			i := r.IntN(kinds)
			if counts[i] < round.MaxDecks {
				counts[i]++
				cards = append(cards, round.CardAt(i))
			}
		}
		c, err := ByFace(counts)
		if err != nil {
			t.Fatal(err)
		}
		prices := pricesOf(t, c)
		want := map[string]uint64{}
		draws := uint64(0)
		for p1 := range cards {
			for p2 := range cards {
				for b1 := range cards {
					for b2 := range cards {
						if p1 == p2 || p1 == b1 || p1 == b2 || p2 == b1 || p2 == b2 || b1 == b2 {
							continue
						}
						draws++
						player, banker := cards[p1].Rank() == cards[p2].Rank(), cards[b1].Rank() == cards[b2].Rank()
						for name, holds := range map[string]bool{
							"player_pair": player, "banker_pair": banker, "any_pair": player || banker,
							"perfect_pair": cards[p1] == cards[p2] || cards[b1] == cards[b2],
						} {
							if holds {
								want[name]++
							}
						}
					}
				}
			}
		}
		for _, name := range []string{"player_pair", "banker_pair", "any_pair", "perfect_pair"} {
			p := priceOf(t, prices, name)
			if got := p.Tiers[0].Num * (draws / p.Den); draws%p.Den != 0 || got != want[name] {
				t.Errorf("%v, %s: %d of %d, want %d of %d", cards, name, p.Tiers[0].Num, p.Den, want[name], draws)
			}
		}
	}
}

// Every bet on every complete round of small shoes, settled from the words of
// game.md section 2.
func TestBetsAgainstDumb(t *testing.T) {
	r := seeded(t)
	for range 12 {
		shoe := randomShoe(r, 6+r.IntN(8))
		c, err := ByValue(shoe)
		if err != nil {
			t.Fatal(err)
		}
		prices := pricesOf(t, c)
		want := map[string]*big.Int{}
		for key, ways := range dumbJoint(shoe) {
			for _, won := range dumbSettle(key[0], key[1], key[2], key[3]) {
				if want[won] == nil {
					want[won] = new(big.Int)
				}
				want[won].Add(want[won], ways)
			}
		}
		for _, p := range prices {
			bet := p.Bet.String()
			counts := map[string]uint64{bet + " push": p.Push}
			for _, tier := range p.Tiers {
				counts[bet+" "+tier.Tier.String()] = tier.Num
			}
			for name, got := range counts {
				w := want[name]
				if w == nil {
					w = new(big.Int)
				}
				if w.Cmp(new(big.Int).SetUint64(got)) != 0 {
					t.Errorf("%v, %s: %d, want %v", shoe, name, got, w)
				}
			}
		}
	}
}

// dumbSettle names the bets, with tier or push, that a final hand settles.
func dumbSettle(pc, bc, p, b int) (won []string) {
	add := func(name string, holds bool) {
		if holds {
			won = append(won, name)
		}
	}
	playerNatural, bankerNatural := pc == 2 && p > 7, bc == 2 && b > 7
	add("player win", p > b)
	add("player push", p == b)
	add("banker win", b > p)
	add("banker push", p == b)
	add("banker_no_commission win", b > p && b != 6)
	add("banker_no_commission win_with_6", b > p && b == 6)
	add("banker_no_commission push", p == b)
	add("tie win", p == b)
	add("player_natural win", playerNatural)
	add("banker_natural win", bankerNatural)
	add("player_bonus natural", playerNatural && p > b)
	add("banker_bonus natural", bankerNatural && b > p)
	add("player_bonus push", playerNatural && bankerNatural && p == b)
	add("banker_bonus push", playerNatural && bankerNatural && p == b)
	for by := 4; by <= 9; by++ {
		add("player_bonus by_"+strconv.Itoa(by), p-b == by && !playerNatural)
		add("banker_bonus by_"+strconv.Itoa(by), b-p == by && !bankerNatural)
	}
	add("lucky_six two_cards", b == 6 && p < 6 && bc == 2)
	add("lucky_six three_cards", b == 6 && p < 6 && bc == 3)
	add("lucky_six_2 win", b == 6 && p < 6 && bc == 2)
	add("lucky_six_3 win", b == 6 && p < 6 && bc == 3)
	add("lucky_seven two_cards", p == 7 && b < 7 && pc == 2)
	add("lucky_seven three_cards", p == 7 && b < 7 && pc == 3)
	add("lucky_seven_2 win", p == 7 && b < 7 && pc == 2)
	add("lucky_seven_3 win", p == 7 && b < 7 && pc == 3)
	add("super_lucky_seven four_cards", p == 7 && b == 6 && pc+bc == 4)
	add("super_lucky_seven five_cards", p == 7 && b == 6 && pc+bc == 5)
	add("super_lucky_seven six_cards", p == 7 && b == 6 && pc+bc == 6)
	return won
}

// but is bets_offered without the bets named, or with them alone.
func but(names ...string) string {
	return offering(func(b string) bool { return !slices.Contains(names, b) })
}
func only(name string) string { return offering(func(b string) bool { return b == name }) }

func offering(wanted func(string) bool) string {
	var names []string
	for _, row := range round.DefaultBets.Rows {
		if name := row.Bet.String(); wanted(name) {
			names = append(names, name)
		}
	}
	return "bets_offered=" + strings.Join(slices.Compact(names), "+")
}

// Seed 001 prints "RTP สูงสุด 98.94%": Banker after 5 % commission on eight
// decks, the best of all its bets. In its mode without commission, all bets but
// banker, the best is Player, 98.76 %: Banker, paid 1:2 on a 6, returns 98.54 %.
func TestRTPMax(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []string
		want  string
	}{
		{"all bets", nil, "98.9421"},
		{"commission", []string{but("banker_no_commission")}, "98.9421"},
		{"5 % commission by rule", []string{"commission_bp=500"}, "98.9421"},
		{"no commission", []string{but("banker")}, "98.7649"},
		{"no commission, the best is Player", []string{only("player")}, "98.7649"},
		{"no commission, Banker alone", []string{only("banker_no_commission")}, "98.5419"},
		{"4 % commission", []string{"commission_bp=400"}, "99.4007"},
		{"ties lose", []string{"tie_main=lose"}, "97.3483"},
		{"six decks", []string{"decks=6"}, "98.9442"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := RTPMax(house(t, c.rules...))
			if err != nil {
				t.Fatal(err)
			}
			if percent := new(big.Rat).Mul(got, big.NewRat(100, 1)).FloatString(4); percent != c.want {
				t.Errorf("%s %%, want %s", percent, c.want)
			}
		})
	}
	none, decks := house(t), house(t)
	none.Bets = round.BetTable{}
	decks.Decks = round.MaxDecks + 1
	for want, rules := range map[string]*round.Rules{"no bet": none, "13 decks": decks} {
		if _, err := RTPMax(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// What the house decides reaches the prices: tie_main, commission_bp, which
// outranks the table's pays, and those where it is not set; bets_offered.
func TestHouseRules(t *testing.T) {
	c := fullShoe(t, 8)
	prices, err := Prices(c, house(t, "tie_main=lose", "commission_bp=123", but("tie", "lucky_six")))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prices {
		switch name := p.Bet.String(); name {
		case "player", "banker", "banker_no_commission":
			if p.Push != 0 {
				t.Errorf("%s pushes in %d ways although ties lose", name, p.Push)
			}
		case "player_bonus", "banker_bonus":
			if p.Push == 0 {
				t.Errorf("tie_main touches %s, no main bet", name)
			}
		case "tie", "lucky_six":
			t.Errorf("%s is not offered and has a price", name)
		}
	}
	if len(prices) != 17 {
		t.Errorf("%d prices, want 17", len(prices))
	}
	if pays := priceOf(t, prices, "banker").Tiers[0].Pays; pays != (round.Ratio{Num: 9877, Den: 10000}) {
		t.Errorf("1.23 %% commission pays %v", pays)
	}
	own := house(t)
	if own.Bets, err = round.ParseBets("bet,tier,pays_num,pays_den,push,last_round\nbanker,win,24,25,tie,\n"); err != nil {
		t.Fatal(err)
	}
	if prices, err = Prices(c, own); err != nil || len(prices) != 1 || prices[0].Tiers[0].Pays != (round.Ratio{Num: 24, Den: 25}) {
		t.Errorf("the table's own pays of banker: %+v, %v", prices, err)
	}
}

func TestPricesByValue(t *testing.T) {
	c, err := ByValue([10]int{128, 32, 32, 32, 32, 32, 32, 32, 32, 32})
	if err != nil {
		t.Fatal(err)
	}
	got, want := pricesOf(t, c), pricesOf(t, fullShoe(t, 8))
	if len(want) != 19 || len(got) != len(want)-4 {
		t.Fatalf("%d bets by face, %d by value: want all and all but the pairs", len(want), len(got))
	}
	for _, p := range got {
		if name := p.Bet.String(); strings.HasSuffix(name, "pair") || p.Edge.Cmp(priceOf(t, want, name).Edge) != 0 {
			t.Errorf("%+v", p)
		}
	}
	few, err := ByValue([10]int{5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prices(few, house(t)); err == nil {
		t.Error("five cards are not refused")
	}
}
