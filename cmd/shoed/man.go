package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print this program's manual page, for man -l -",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manPage(cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// manFiles ends the page.
const manFiles = `.SH FILES
.TP
.I /etc/shoed/shoed.toml
Configuration of the packaged service.
.TP
.I /var/lib/shoed
Journal, and the table's key.
.TP
.I /run/shoed/shoed.sock
Control socket, for its owner and root.
.SH EXIT STATUS
0 done, 1 failed, 2 the command line cannot be understood.
.SH SEE ALSO
.BR systemctl (1),
.BR journalctl (1)
`

// manPage writes all commands as one page, in troff's man macros (man(7)).
func manPage(root *cobra.Command, to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SHOED 1 \"\" \"shoed %s\" \"User Commands\"\n", version)
	fmt.Fprintf(&b, ".SH NAME\nshoed \\- %s\n", troff(root.Short))
	b.WriteString(".SH SYNOPSIS\n.B shoed\nCOMMAND [ARGUMENT ...]\n.SH DESCRIPTION\n")
	manText(&b, root.Long)
	b.WriteString(".SH COMMANDS\n")
	manCommands(&b, root)
	b.WriteString(manFiles)
	_, err := io.WriteString(to, b.String())
	return err
}

func manCommands(b *strings.Builder, of *cobra.Command) {
	for _, c := range of.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "completion" {
			continue
		}
		if c.Runnable() {
			manOf(b, c)
		}
		manCommands(b, c)
	}
}

func manOf(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, ".SS %s\n", troff(useLine(c)))
	if c.Long == "" {
		manText(b, c.Short+".")
	}
	manText(b, c.Long)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" {
			usage += " (" + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", troff(strings.TrimSpace("--"+f.Name+" "+value)), troff(usage))
	})
}

// useLine is without the hint at flags, which follow.
func useLine(c *cobra.Command) string { return strings.TrimSuffix(c.UseLine(), " [flags]") }

// manText keeps paragraphs, and the shape of what is indented.
func manText(b *strings.Builder, text string) {
	shaped := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		if now := strings.HasPrefix(line, "  "); now != shaped {
			shaped = now
			b.WriteString(either(shaped, ".nf\n", ".fi\n"))
		}
		b.WriteString(troff(line) + "\n")
	}
	if shaped {
		b.WriteString(".fi\n")
	}
}

// troff has text stand for itself.
func troff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
