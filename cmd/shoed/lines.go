package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"shoed/device"
)

func linesCommand() *cobra.Command {
	var asJSON bool
	var root string
	cmd := &cobra.Command{
		Use:   "lines",
		Short: "List the GPIO chips, their lines and what to configure for each",
		Long: `lines lists the GPIO chips of this machine: the device for the configuration,
whether this user may open it, and each line with who uses it. It requests no
line, so it may be used while the table runs. A chip keeps its label; its
number may be another at the next boot.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chips := device.Chips(root)
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(chips)
			}
			return printChips(cmd.OutOrStdout(), chips)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&root, "root", "/", "where dev is")
	cmd.Flags().Lookup("root").Hidden = true // for tests
	cmd.AddCommand(linesWatchCommand(), linesReadCommand())
	return cmd
}

func printChips(w io.Writer, chips []device.Chip) error {
	var text strings.Builder
	for i := range chips {
		describeChip(&text, &chips[i])
	}
	if len(chips) == 0 {
		text.WriteString("no GPIO chip is there: plug the expander in, load its driver, or give the container its device\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func describeChip(w io.Writer, c *device.Chip) {
	fmt.Fprintln(w, c.Device)
	if c.Denied != "" {
		fmt.Fprintf(w, "  %s may not open it: %s\n", c.User, c.Denied)
		return
	}
	fmt.Fprintf(w, "  label %q, name %s, %d lines\n", strings.Map(printed, c.Label), c.Name, len(c.Lines))
	fmt.Fprintf(w, "  %s may open it (%s:%s %s)\n", c.User, c.Owner, c.Group, c.Mode)
	fmt.Fprintf(w, "  device = %q\n", c.Address)
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range c.Lines {
		fmt.Fprintf(columns, "    %q\toffset %d\t%s\n", strings.Map(printed, l.Line), l.Offset, lineState(l))
	}
	_ = columns.Flush() // into memory
}

// lineState is what is done with a line.
func lineState(l device.ChipLine) string {
	states := []string{"free"}
	if l.Used {
		states[0] = "in use by " + cmp.Or(strings.Map(printed, l.Consumer), "the kernel")
	}
	if l.Output {
		states = append(states, "output")
	} else {
		states = append(states, "input")
	}
	return strings.Join(append(states, l.Flags...), ", ")
}

func chipAndLines(_ *cobra.Command, a []string) error {
	if len(a) < 2 || !strings.HasPrefix(a[0], "gpio:") {
		return errors.New("give a chip as gpio:CHIP and its lines, as \"shoed lines\" lists them")
	}
	return nil
}

// wireFlags are how lines are to be requested.
type wireFlags struct {
	activeLow bool
	bias      string
}

func (f *wireFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.activeLow, "active-low", false, "active is the low level")
	cmd.Flags().StringVar(&f.bias, "bias", "", "up, down or none; as it is if not given")
}

func (f *wireFlags) wire(line string) device.Wire {
	return device.Wire{Use: line, Line: line, ActiveLow: f.activeLow, Bias: f.bias, Limit: device.PulseLimit}
}

func linesWatchCommand() *cobra.Command {
	var f wireFlags
	var debounce time.Duration
	var record string
	cmd := &cobra.Command{
		Use:   "watch gpio:CHIP LINE...",
		Short: "Print the edges of lines as they come",
		Long: `watch requests the lines as inputs and prints each edge: the kernel's time of it
since the start of the machine, its number, the line and what it became. It
ends at SIGINT, or when the chip is gone. Lines in use are refused.`,
		Args: args(chipAndLines),
		RunE: func(cmd *cobra.Command, a []string) error {
			o := device.Options{Name: "watch", Address: a[0]}
			for _, line := range a[1:] {
				w := f.wire(line)
				w.Debounce = debounce
				o.Wires = append(o.Wires, w)
			}
			return watchLines(cmd.Context(), o, cmd.OutOrStdout(), record)
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&debounce, "debounce", 0, "how long a level must last to count")
	cmd.Flags().StringVar(&record, "record", "", "also write a capture to this new `FILE`")
	return cmd
}

// watchLines prints what the wires tell until ctx ends, and writes it into the
// new file record, if there is to be one.
func watchLines(ctx context.Context, o device.Options, out io.Writer, record string) error {
	line, err := device.Open(ctx, o)
	if err != nil {
		return err
	}
	if record != "" {
		file, err := os.OpenFile(record, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return errors.Join(err, line.Close())
		}
		defer file.Close() // each read was written, or its error told
		line = device.Record(line, file)
	}
	p := edgePrinter{out: out, wires: o.Wires}
	for {
		c, err := line.Read(ctx)
		if err == nil {
			err = p.print(c.Bytes)
		}
		switch {
		case ctx.Err() != nil:
			return line.Close()
		case err != nil:
			return errors.Join(err, line.Close())
		}
	}
}

// edgePrinter prints wire records.
type edgePrinter struct {
	out   io.Writer
	wires []device.Wire
	told  uint32 // edges since levels were told
	upTo  uint32 // the number of the last edge before those
}

func (p *edgePrinter) print(b []byte) error {
	records, err := device.ParseWireRecords(b)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range records {
		fmt.Fprintf(&text, "%d.%09d #%d ", r.Time/time.Second, r.Time%time.Second, r.Seq)
		switch r.Kind {
		case device.WireActive:
			fmt.Fprintf(&text, "%s active\n", p.wires[r.Wire].Line)
		case device.WireInactive:
			fmt.Fprintf(&text, "%s inactive\n", p.wires[r.Wire].Line)
		default:
			p.levels(&text, r)
			continue
		}
		p.told++
	}
	_, err = io.WriteString(p.out, text.String())
	return err
}

// levels prints a record of levels, and how many edges were lost before it.
func (p *edgePrinter) levels(w io.Writer, r device.WireRecord) {
	var active []string
	for i, wire := range p.wires {
		if r.Levels>>i&1 != 0 {
			active = append(active, wire.Line)
		}
	}
	fmt.Fprintf(w, "levels, active: %s", cmp.Or(strings.Join(active, " "), "none"))
	if r.Kind == device.WireUnsteady {
		fmt.Fprint(w, ", unsteady")
	}
	if lost := int32(r.Seq - p.upTo - p.told); lost > 0 {
		fmt.Fprintf(w, "; %d edges lost, or more a second than a wire may have", lost)
	}
	fmt.Fprintln(w)
	p.upTo, p.told = r.Seq, 0
}

func linesReadCommand() *cobra.Command {
	var f wireFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "read gpio:CHIP LINE...",
		Short: "Print the levels of lines",
		Long: `read requests each line as an input and prints whether it is active, 1, or not,
0. With --wait it does so when the line has changed, or the time is over. Lines
in use are refused.`,
		Args: args(chipAndLines),
		RunE: func(cmd *cobra.Command, a []string) error {
			for _, line := range a[1:] {
				active, err := device.Look(device.Options{Name: "read", Address: a[0], Wires: []device.Wire{f.wire(line)}}, wait)
				if err != nil {
					return err
				}
				level := 0
				if active {
					level = 1
				}
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), line, level); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for each line to change")
	return cmd
}
