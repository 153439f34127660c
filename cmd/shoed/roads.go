package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"shoed/round"
)

func roadsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "roads SEQUENCE",
		Short: "Draw the roads of a sequence of outcomes",
		Long: `Roads draws the five roads as the board shows them. SEQUENCE is one capital
letter a round, oldest first: P Player, B Banker, T tie; "" is a new shoe.

  shoed roads PPBTBPB

On the bead plate and the big road letters are outcomes, and a number after one
counts its ties; on the other three R is red and B is blue. A dot is a free
cell. With --json it prints the fields of the document roads instead.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			results, err := parseSequence(a[0])
			if err != nil {
				return usageError{err}
			}
			roads := round.Roads(results)
			out := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(roads.Text())
			}
			_, err = io.WriteString(out, drawRoads(roads, wantsColour(out)))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the fields of the MQTT document roads")
	return cmd
}

// parseSequence reads outcomes. Lower case is refused: on the roads a small p
// or b is a pair.
func parseSequence(text string) ([]round.RoadResult, error) {
	results := make([]round.RoadResult, 0, len(text))
	for _, letter := range text {
		var outcome round.Outcome
		switch letter {
		case 'P':
			outcome = round.PlayerWins
		case 'B':
			outcome = round.BankerWins
		case 'T':
			outcome = round.Tie
		default:
			return nil, fmt.Errorf("SEQUENCE: letter %d is %q: want only P, B and T, in capitals", len(results)+1, letter)
		}
		results = append(results, round.RoadResult{Outcome: outcome})
	}
	return results, nil
}

// wantsColour: a terminal may have colour unless NO_COLOR is set to anything.
func wantsColour(out io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && isTerminal(out)
}

// colour is a terminal's colour number; 0 for none.
type colour int

const (
	red   colour = 31
	green colour = 32
	blue  colour = 34
)

// bead is one cell of a drawing.
type bead struct {
	col, row int
	text     string
	colour   colour
}

func (b bead) at(col, row int) bead {
	b.col, b.row = col, row
	return b
}

var (
	outcomeBead = [...]bead{round.PlayerWins: {text: "P", colour: blue}, round.BankerWins: {text: "B", colour: red}, round.Tie: {text: "T", colour: green}}
	sideBead    = [...]bead{round.Player: outcomeBead[round.PlayerWins], round.Banker: outcomeBead[round.BankerWins]}
	markBead    = [...]bead{round.Red: {text: "R", colour: red}, round.Blue: {text: "B", colour: blue}}
	derivedName = [...]string{"Big eye boy", "Small road", "Cockroach pig"}
)

func drawRoads(s round.RoadSet, coloured bool) string {
	var b strings.Builder
	beads := make([]bead, len(s.Bead))
	for i, r := range s.Bead {
		beads[i] = outcomeBead[r.Outcome].at(i/round.RoadRows, i%round.RoadRows)
	}
	drawRoad(&b, "Bead plate", beads, coloured)

	title := "Big road"
	if s.LeadTies > 0 {
		title = fmt.Sprintf("Big road (ties before the first win: %d)", s.LeadTies)
	}
	beads = beads[:0]
	for _, c := range s.Big {
		cell := sideBead[c.Side].at(c.Col, c.Row)
		if c.Ties > 0 {
			cell.text += strconv.Itoa(c.Ties)
		}
		beads = append(beads, cell)
	}
	drawRoad(&b, title, beads, coloured)

	for i, road := range s.Derived {
		beads = beads[:0]
		for _, c := range road {
			beads = append(beads, markBead[c.Mark].at(c.Col, c.Row))
		}
		drawRoad(&b, derivedName[i], beads, coloured)
	}

	fmt.Fprintf(&b, "%-17s%-8s%s\n", "If next is", "Player", "Banker")
	for i, name := range derivedName {
		fmt.Fprintf(&b, "  %-15s%-8s%s\n", name, s.AskPlayer[i], s.AskBanker[i])
	}
	return b.String()
}

// drawRoad draws one road below its title, and a blank line.
func drawRoad(b *strings.Builder, title string, beads []bead, coloured bool) {
	b.WriteString(title + "\n")
	if len(beads) == 0 {
		b.WriteString("  (empty)\n\n")
		return
	}
	cols, width := 0, 1
	for _, c := range beads {
		cols, width = max(cols, c.col+1), max(width, len(c.text))
	}
	grid := make([]bead, cols*round.RoadRows)
	for i := range grid {
		grid[i].text = "."
	}
	for _, c := range beads {
		grid[c.row*cols+c.col] = c
	}
	for i, c := range grid {
		text := c.text
		if coloured && c.colour != 0 {
			text = fmt.Sprintf("\x1b[%dm%s\x1b[0m", c.colour, c.text)
		}
		if i%cols == 0 {
			b.WriteString(" ")
		}
		b.WriteString(" " + text)
		if i%cols == cols-1 {
			b.WriteString("\n")
		} else {
			b.WriteString(strings.Repeat(" ", width-len(c.text)))
		}
	}
	b.WriteString("\n")
}
