package round

// RoadRows is how many rows every road has (game.md section 6).
const RoadRows = 6

// RoadResult is what the roads keep of a decided round. Of its tags they show
// natural, player_pair and banker_pair.
type RoadResult struct {
	Outcome Outcome
	Tags    Tags
}

// RoadSet is the five roads of a shoe (game.md section 6): history, not
// prediction. Columns and rows count from 0, lists stand in entry order.
type RoadSet struct {
	// Bead plate: round i lies in column i/RoadRows, row i%RoadRows.
	Bead []RoadResult
	// LeadTies came before the first win; the big road's first cell counts
	// them too, as soon as there is one.
	LeadTies int
	Big      []BigCell
	// Derived are the big eye boy, the small road and the cockroach pig.
	Derived [3][]MarkCell
	// AskPlayer and AskBanker are the marks that the derived roads would get
	// if that side won the next round; 0 for a road that would not start yet.
	AskPlayer, AskBanker [3]Mark
}

// BigCell is a round won, on the big road.
type BigCell struct {
	Col, Row int
	Side     Side
	Ties     int  // tied after it; in the first cell also LeadTies
	Tags     Tags // its own; those of its ties are on the bead plate alone
}

// Mark is the colour of a cell of a derived road. It tells whether streaks
// repeat, not who won.
type Mark uint8

const (
	Red  Mark = iota + 1 // alike
	Blue                 // different
)

// MarkCell is a round won, on a derived road.
type MarkCell struct {
	Col, Row int
	Mark     Mark
}

// Roads draws the rounds of one shoe, oldest first. Void rounds, and free
// hands unless the house wants them, are for the caller to leave out; a result
// without an outcome is on no road.
func Roads(results []RoadResult) RoadSet {
	d := drawing{RoadSet: RoadSet{Bead: make([]RoadResult, 0, len(results)), Big: make([]BigCell, 0, len(results))}}
	for k := range d.Derived {
		d.Derived[k] = make([]MarkCell, 0, len(results))
	}
	for _, r := range results {
		switch r.Outcome {
		case PlayerWins:
			d.win(Player, r.Tags)
		case BankerWins:
			d.win(Banker, r.Tags)
		case Tie:
			d.tie()
		default:
			continue
		}
		d.Bead = append(d.Bead, r)
	}
	d.AskPlayer, d.AskBanker = d.streaks.ask(Player), d.streaks.ask(Banker)
	return d.RoadSet
}

// drawing is a RoadSet in the making.
type drawing struct {
	RoadSet
	streaks streaks
	big     path
	derived [3]path
}

func (d *drawing) win(side Side, tags Tags) {
	cell := BigCell{Side: side, Tags: tags}
	if len(d.Big) == 0 {
		cell.Ties = d.LeadTies
	}
	cell.Col, cell.Row = d.big.next(d.streaks.add(side))
	d.Big = append(d.Big, cell)
	for i, mark := range d.streaks.marks() {
		if mark == 0 {
			continue
		}
		road := d.Derived[i]
		changed := len(road) == 0 || road[len(road)-1].Mark != mark
		col, row := d.derived[i].next(changed)
		d.Derived[i] = append(road, MarkCell{Col: col, Row: row, Mark: mark})
	}
}

func (d *drawing) tie() {
	if len(d.Big) == 0 {
		d.LeadTies++
		return
	}
	d.Big[len(d.Big)-1].Ties++
}

// streaks are the lengths of the latest streaks, the one in hand first, 0
// where there was none. The cockroach pig looks the farthest back, by four.
type streaks struct {
	side   Side // of the streak in hand
	length [5]int
}

// add reports whether a win of side began a streak.
func (s *streaks) add(side Side) bool {
	if side == s.side {
		s.length[0]++
		return false
	}
	copy(s.length[1:], s.length[:])
	s.side, s.length[0] = side, 1
	return true
}

// marks of the latest win on the three derived roads.
func (s *streaks) marks() [3]Mark {
	return [3]Mark{s.mark(1), s.mark(2), s.mark(3)}
}

// mark of the latest win on the derived road that compares k streaks back; 0
// while there is nothing to compare.
func (s *streaks) mark(k int) Mark {
	entry, other := s.length[0], s.length[k]
	if entry == 1 { // a change of side: what counts is how the streak before it ended
		ended, other := s.length[1], s.length[k+1]
		switch other {
		case 0:
			return 0
		case ended:
			return Red
		}
		return Blue
	}
	switch other {
	case 0:
		return 0
	case entry - 1: // this entry is the first to outrun it; later ones are alike again
		return Blue
	}
	return Red
}

// ask is what marks would be if side won next.
func (s streaks) ask(side Side) [3]Mark {
	s.add(side)
	return s.marks()
}

// path lays out the streaks of one road. Tails run right only, and a streak
// starts to the right of all that row 0 holds, so the cells taken ahead of it
// in a row are those up to one edge.
type path struct {
	col, row int
	turned   bool
	free     [RoadRows]int // first free column of each row
}

// next is the cell of the next entry: down, but at the last row or on a taken
// cell the streak turns right and keeps right.
func (p *path) next(newStreak bool) (col, row int) {
	below := p.row + 1
	switch {
	case newStreak:
		p.col, p.row, p.turned = p.free[0], 0, false
	case !p.turned && below < RoadRows && p.free[below] <= p.col:
		p.row = below
	default:
		p.col++
		p.turned = true
	}
	p.free[p.row] = p.col + 1
	return p.col, p.row
}

// RoadsText is a RoadSet in JSON, as contract.md's payload roads has it after
// shoe_id and through_round.
type RoadsText struct {
	Rows      int       `json:"rows"`
	Bead      []string  `json:"bead"`      // P, B or T, then flags
	LeadTies  int       `json:"lead_ties"` // counted in the first cell of big_road too
	BigRoad   [][5]any  `json:"big_road"`  // col, row, P or B, ties, flags
	BigEye    [][3]any  `json:"big_eye"`   // col, row, R or B (blue)
	Small     [][3]any  `json:"small"`
	Cockroach [][3]any  `json:"cockroach"`
	Ask       RoadsAsks `json:"ask"`
}

// RoadsAsks are the marks that the next round would add to the big eye boy,
// the small road and the cockroach pig: three letters of R, B (blue) and - for
// a road that would not start yet.
type RoadsAsks struct {
	Player string `json:"player"`
	Banker string `json:"banker"`
}

// The letters of the roads. Flags are p Player pair, b Banker pair, n natural.
var (
	roadOutcomeText = [...]string{PlayerWins: "P", BankerWins: "B", Tie: "T"}
	roadSideText    = [...]string{Player: "P", Banker: "B"}
	markText        = [...]string{"-", Red: "R", Blue: "B"}
	roadFlagsText   = [...]string{
		TagPlayerPair:                              "p",
		TagBankerPair:                              "b",
		TagNatural:                                 "n",
		TagPlayerPair | TagBankerPair:              "pb",
		TagPlayerPair | TagNatural:                 "pn",
		TagBankerPair | TagNatural:                 "bn",
		TagPlayerPair | TagBankerPair | TagNatural: "pbn",
	}
)

func (m Mark) String() string { return markText[m] }

func roadFlags(t Tags) string {
	return roadFlagsText[t&(TagPlayerPair|TagBankerPair|TagNatural)]
}

// Text of the roads.
func (s RoadSet) Text() RoadsText {
	t := RoadsText{
		Rows:      RoadRows,
		Bead:      make([]string, len(s.Bead)),
		LeadTies:  s.LeadTies,
		BigRoad:   make([][5]any, len(s.Big)),
		BigEye:    markCells(s.Derived[0]),
		Small:     markCells(s.Derived[1]),
		Cockroach: markCells(s.Derived[2]),
		Ask:       RoadsAsks{Player: marksText(s.AskPlayer), Banker: marksText(s.AskBanker)},
	}
	for i, r := range s.Bead {
		t.Bead[i] = roadOutcomeText[r.Outcome] + roadFlags(r.Tags)
	}
	for i, c := range s.Big {
		t.BigRoad[i] = [5]any{c.Col, c.Row, roadSideText[c.Side], c.Ties, roadFlags(c.Tags)}
	}
	return t
}

func markCells(cells []MarkCell) [][3]any {
	texts := make([][3]any, len(cells))
	for i, c := range cells {
		texts[i] = [3]any{c.Col, c.Row, c.Mark.String()}
	}
	return texts
}

func marksText(marks [3]Mark) string {
	return marks[0].String() + marks[1].String() + marks[2].String()
}
