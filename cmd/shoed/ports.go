package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"shoed/device"
)

func portsCommand() *cobra.Command {
	var asJSON bool
	var root string
	cmd := &cobra.Command{
		Use:   "ports",
		Short: "List the serial ports and what to configure for each",
		Long: `ports lists the serial ports of this machine: what each is, whether this user may
open it, who has it open, and the line for [reader] in the configuration. It
opens none of them, so it may be used while the table runs.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ports := device.Ports(root)
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(ports)
			}
			return printPorts(cmd.OutOrStdout(), ports)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&root, "root", "/", "where sys and dev are")
	cmd.Flags().Lookup("root").Hidden = true // for tests
	return cmd
}

func printPorts(w io.Writer, ports []device.Port) error {
	var text strings.Builder
	for i := range ports {
		describePort(&text, &ports[i])
	}
	if len(ports) == 0 {
		text.WriteString("no serial port is there: plug the adapter in, or give a device server: device = \"tcp://host:port\"\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func describePort(w io.Writer, p *device.Port) {
	fmt.Fprintln(w, p.Device)
	if u := p.USB; u != nil {
		serial := "no serial number"
		if u.Serial != "" {
			serial = fmt.Sprintf("serial number %q", u.Serial)
		}
		name := strings.Map(printed, strings.TrimSpace(u.Manufacturer+" "+u.Product))
		fmt.Fprintf(w, "  %s, usb %s:%s, %s, driver %s\n", cmp.Or(name, "unnamed"), u.VID, u.PID, serial, cmp.Or(p.Driver, "none"))
	} else {
		fmt.Fprintf(w, "  not USB, driver %s\n", cmp.Or(p.Driver, "none"))
	}
	if p.Denied == "" {
		fmt.Fprintf(w, "  %s may open it (%s:%s %s)\n", p.User, p.Owner, p.Group, p.Mode)
	} else {
		fmt.Fprintf(w, "  %s may not open it: %s\n", p.User, p.Denied)
	}
	switch {
	case len(p.HeldBy) > 0:
		fmt.Fprintf(w, "  in use by %s\n", strings.Join(p.HeldBy, " and "))
	case p.Unseen:
		fmt.Fprintln(w, "  not known whether it is in use: only root sees what other users have open")
	default:
		fmt.Fprintln(w, "  not in use")
	}
	fmt.Fprintf(w, "  device = %q\n", p.Address)
}

// printed keeps what an adapter calls itself from steering the terminal.
func printed(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}
