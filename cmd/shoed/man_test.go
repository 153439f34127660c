package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestMan: every command and flag is in the manual, and no text of theirs is
// taken for a macro.
func TestMan(t *testing.T) {
	page, _, err := shoedCommand("man")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(page, "\n") {
		if !regexp.MustCompile(`^$|^\.(TH|SH|SS|TP|B|BR|I|PP|nf|fi)\b|^(\\&)?[^.']`).MatchString(line) || regexp.MustCompile(`(^|[^\\])\\[^-&e]`).MatchString(line) {
			t.Errorf("troff would not print %q as it is", line)
		}
	}
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		if c.Runnable() && c.HasParent() && !strings.Contains(page, "\n.SS "+troff(useLine(c))+"\n") {
			t.Errorf("no section for %s", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if sub.Name() != "completion" {
				look(sub)
			}
		}
	}
	look(rootCommand())
	if !strings.Contains(page, "\n.B \\-\\-now\n") {
		t.Error("no flag --now")
	}
	if got := troff(`.a\b-c`); got != `\&.a\eb\-c` {
		t.Errorf("escaped to %s", got)
	}
}
