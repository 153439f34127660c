package scanner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseCapture(t *testing.T) {
	for _, v := range []struct{ text, want string }{
		{"", ""},
		{"# only\n\n  \t\r\n#", ""},
		{"05 31\n0531\n05\t3 1", "1 -1 0531|2 -1 0531|capture line 3: \"3\""},
		{"aB cD # why\r\nEF", "1 -1 abcd|2 -1 ef|"},
		{"@0 05\n31\n@250 44\n@250 81", "1 0 05|2 -1 31|3 250 44|4 250 81|"},
		{"@250 44\n\n@249 81", "1 250 44|capture line 3: @249 is before @250"},
		{"@9223372036854 05", "1 9223372036854 05|"},
		{"@9223372036855 05", "capture line 1: @9223372036855 is no number"},
		{"@ 05", "capture line 1: @ is no number"},
		{"@-1 05", "capture line 1: @-1 is no number"},
		{"@+1 05", "capture line 1: @+1 is no number"},
		{"@1", "capture line 1: a time without bytes"},
		{"05 @1", "capture line 1: \"@1\""},
		{"\n\n0x05", "capture line 3: \"0x05\""},
		{"05\n" + strings.Repeat("0", 1<<17), "1 -1 05|capture line 2: bufio.Scanner: token too long"},
		{"05\nff\n31", "1 -1 05|capture line 2: enough"},
	} {
		var got strings.Builder
		err := ParseCapture(strings.NewReader(v.text), func(ms int64, line int, b []byte) error {
			if b[0] == 0xff {
				return errors.New("enough")
			}
			fmt.Fprintf(&got, "%d %d %x|", line, ms, b)
			return nil
		})
		if err != nil {
			got.WriteString(err.Error())
		}
		if !strings.HasPrefix(got.String(), v.want) || err == nil && got.String() != v.want {
			t.Errorf("%.40q gave %q, want %q", v.text, got.String(), v.want)
		}
	}
}

// FuzzParseCapture: what is read and written again is read the same.
func FuzzParseCapture(f *testing.F) {
	f.Add("# x\n05 31\n@3 ff\n@4 0A0b # y\n")
	f.Add("@ 1")
	f.Add("\r\n@1 5")
	f.Fuzz(func(t *testing.T, text string) {
		parse := func(text string) (reads string, err error) {
			var all strings.Builder
			latest := int64(-1)
			err = ParseCapture(strings.NewReader(text), func(ms int64, line int, b []byte) error {
				if len(b) == 0 || line < 1 || ms < -1 || ms >= 0 && ms < latest {
					t.Fatalf("line %d: %d, % x", line, ms, b)
				}
				latest = max(latest, ms)
				if ms >= 0 {
					fmt.Fprintf(&all, "@%d ", ms)
				}
				fmt.Fprintf(&all, "%x\n", b)
				return nil
			})
			return all.String(), err
		}
		reads, err := parse(text)
		if err != nil && !strings.HasPrefix(err.Error(), "capture line ") {
			t.Fatal(err)
		}
		if back, err := parse(reads); err != nil || back != reads {
			t.Fatalf("%q read as %q, then %q, %v", text, reads, back, err)
		}
	})
}
