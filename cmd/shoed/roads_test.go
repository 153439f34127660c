package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
)

const (
	roadsDrawn = `Bead plate
  T B P P
  P B P B
  P B P P
  T B P B
  B B P B
  B B P .

Big road (ties before the first win: 1)
  P1 B  P  B  P  B
  P1 B  P  .  .  B
  .  B  P  .  .  .
  .  B  P  .  .  .
  .  B  P  P  P  .
  .  B  B  B  .  .

Big eye boy
  R B R B R B R B
  . . R . R B . .
  . . R . R . . .
  . . R . R . . .
  . . R . R . . .
  . . . . R . . .

Small road
  R B R B
  . . R B
  . . R B
  . . R B
  . . . .
  . . . .

Cockroach pig
  B R
  B .
  . .
  . .
  . .
  . .

If next is       Player  Banker
  Big eye boy    B       R
  Small road     B       R
  Cockroach pig  B       R
`
	roadsEmpty = `Bead plate
  (empty)

Big road
  (empty)

Big eye boy
  (empty)

Small road
  (empty)

Cockroach pig
  (empty)

If next is       Player  Banker
  Big eye boy    -       -
  Small road     -       -
  Cockroach pig  -       -
`
	roadsColoured = "Bead plate\r\n  \x1b[34mP\x1b[0m\r\n  \x1b[31mB\x1b[0m\r\n  \x1b[32mT\x1b[0m\r\n"
)

func TestRoads(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"drawn":     {[]string{"TPPTBBBBBBBBPPPPPPPBPBB"}, roadsDrawn},
		"empty":     {[]string{""}, roadsEmpty},
		"ties only": {[]string{"TT"}, strings.NewReplacer("Bead plate\n  (empty)", "Bead plate\n  T\n  T\n  .\n  .\n  .\n  .", "Big road", "Big road (ties before the first win: 2)").Replace(roadsEmpty)},
		"JSON": {[]string{"TPTBPB", "--json"}, `{"rows":6,"bead":["T","P","T","B","P","B"],"lead_ties":1,` +
			`"big_road":[[0,0,"P",2,""],[1,0,"B",0,""],[2,0,"P",0,""],[3,0,"B",0,""]],` +
			`"big_eye":[[0,0,"R"],[0,1,"R"]],"small":[[0,0,"R"]],"cockroach":[],"ask":{"player":"RRR","banker":"BBB"}}` + "\n"},
		"JSON empty": {[]string{"--json", ""}, `{"rows":6,"bead":[],"lead_ties":0,"big_road":[],"big_eye":[],"small":[],"cockroach":[],` +
			`"ask":{"player":"---","banker":"---"}}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := shoed(t, "", append([]string{"roads"}, c.args...)...)
			if err != nil || out != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, out, c.want)
			}
		})
	}
}

func TestRoadsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no sequence":   {nil, "accepts 1 arg(s), received 0"},
		"two":           {[]string{"P", "B"}, "accepts 1 arg(s), received 2"},
		"wrong letter":  {[]string{"PBX"}, "letter 3 is 'X': want only P, B and T, in capitals"},
		"lower case":    {[]string{"Pb"}, "letter 2 is 'b'"},
		"space":         {[]string{"PB T"}, "letter 3 is ' '"},
		"after letters": {[]string{"PTé"}, "letter 3 is 'é'"},
		"no text":       {[]string{"P\xff"}, "letter 2 is '\ufffd'"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := shoed(t, "", append([]string{"roads"}, c.args...)...)
			if report(err, io.Discard) != 2 || !strings.Contains(err.Error(), c.want) || out != "" {
				t.Errorf("%q, %v; want nothing and a usage error with %q", out, err, c.want)
			}
		})
	}
}

// TestRoadsColour: on a terminal only, and not against NO_COLOR.
func TestRoadsColour(t *testing.T) {
	for noColor, want := range map[string]string{"": roadsColoured, "1": "Bead plate\r\n  P\r\n  B\r\n  T\r\n"} {
		t.Setenv("NO_COLOR", noColor)
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		if err := run(context.Background(), []string{"roads", "PBT"}, strings.NewReader(""), tty, tty); err != nil {
			t.Error(err)
		}
		tty.Close()
		var out bytes.Buffer
		io.Copy(&out, master) // ends with EIO: the other end is closed
		if got := out.String(); !strings.HasPrefix(got, want) || strings.Contains(got, "\x1b") != (noColor == "") {
			t.Errorf("NO_COLOR=%q: %q, want it to begin with %q", noColor, got, want)
		}
	}
}
