package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"shoed/round"
)

func replayCommand() *cobra.Command {
	var rules []string
	var bets, insurance string
	var all bool
	cmd := &cobra.Command{
		Use:   "replay FILE|-",
		Short: "Run recorded inputs through the rules and print the events",
		Long: `Replay reads one input a line (JSON, see the README's topics) and prints one
event a line, the same for the same inputs. Without --all it prints what the
public may see. Rules start from the defaults with round_start=first_card.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			r := round.DefaultRules()
			r.RoundStart = round.StartFirstCard
			if err := setTables(&r, bets, insurance); err != nil {
				return err
			}
			if err := setRules(&r, rules); err != nil {
				return err
			}
			in, name, err := openInput(cmd, a[0])
			if err != nil {
				return err
			}
			defer in.Close()
			return replay(in, name, cmd.OutOrStdout(), round.New(r), all)
		},
	}
	cmd.Flags().StringSliceVar(&rules, "rules", nil, "house rules, name=value, comma-separated")
	cmd.Flags().StringVar(&bets, "bets", "", "table of the bets, CSV like round/bets.csv")
	cmd.Flags().StringVar(&insurance, "insurance", "", "table of the insurance, CSV like round/insurance.csv")
	cmd.Flags().BoolVar(&all, "all", false, "print the full view, with the events that are not public")
	return cmd
}

// setRules applies name=value texts in order.
func setRules(r *round.Rules, texts []string) error {
	for _, text := range texts {
		if err := r.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// openInput opens a file, or standard input for "-".
func openInput(cmd *cobra.Command, name string) (io.ReadCloser, string, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), "standard input", nil
	}
	f, err := os.Open(name)
	return f, name, err
}

// maxLine bounds one line of inputs: the longest legal one is under 1 KB.
const maxLine = 64 << 10

func replay(in io.Reader, name string, out io.Writer, s round.State, all bool) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	w := bufio.NewWriter(out)
	var events []round.Event
	var text []byte
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		input, err := round.ParseInput(line)
		if err == nil {
			s, events, err = s.Step(input, events[:0])
		}
		if err != nil {
			w.Flush()
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		for i := range events {
			if events[i].Seq == 0 && !all {
				continue
			}
			render := appendEvent
			if all {
				render = appendFullEvent
			}
			if text, err = render(text[:0], &events[i]); err != nil {
				return err
			}
			if _, err := w.Write(append(text, '\n')); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		w.Flush()
		return fmt.Errorf("%s:%d: %s", name, n+1, strings.TrimPrefix(err.Error(), "bufio.Scanner: "))
	}
	return w.Flush()
}
