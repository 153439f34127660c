package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoed/device"
	"shoed/sim"
)

func TestLinesWithoutChips(t *testing.T) {
	root := t.TempDir()
	if out, _, err := shoedCommand("lines", "--root", root); err != nil || !strings.Contains(out, "no GPIO chip is there") {
		t.Errorf("%q, %v", out, err)
	}
	if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "dev/gpiochip0"), nil, 0o600); err != nil { // a file that is no chip
		t.Fatal(err)
	}
	out, _, err := shoedCommand("lines", "--root", root, "--json")
	var chips []device.Chip
	if err := errors.Join(err, json.Unmarshal([]byte(out), &chips)); err != nil || chips == nil || len(chips) != 0 {
		t.Errorf("%s, %v", out, err)
	}
}

func TestLinesAreDescribed(t *testing.T) {
	mine := device.Access{User: "table", Owner: "root", Group: "gpio", Mode: "0660"}
	var out strings.Builder
	err := printChips(&out, []device.Chip{
		{Device: "/dev/gpiochip0", Name: "gpiochip0", Label: "shoe\x1b", Address: "gpio:shoe", Access: mine, Lines: []device.ChipLine{
			{Line: "WIEGAND_D0", Name: "WIEGAND_D0", Flags: []string{"active-low", "debounce 5ms"}, Used: true, Consumer: "shoed reader"},
			{Line: "1", Offset: 1, Name: "NC", Output: true, Used: true},
			{Line: "2", Offset: 2},
		}},
		{Device: "/dev/gpiochip1", Access: device.Access{User: "table", Denied: "it belongs to root:root"}},
	})
	want := `/dev/gpiochip0
  label "shoe?", name gpiochip0, 3 lines
  table may open it (root:gpio 0660)
  device = "gpio:shoe"
    "WIEGAND_D0"  offset 0  in use by shoed reader, input, active-low, debounce 5ms
    "1"           offset 1  in use by the kernel, output
    "2"           offset 2  free, input
/dev/gpiochip1
  table may not open it: it belongs to root:root
`
	if err != nil || out.String() != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, out.String(), want)
	}
}

// wireCapture is reads of wires, one a list of records.
func wireCapture(reads ...[]device.WireRecord) string {
	var capture strings.Builder
	for _, read := range reads {
		var b []byte
		for _, r := range read {
			b = r.Append(b)
		}
		fmt.Fprintf(&capture, "@0 %x\n", b)
	}
	return capture.String()
}

func TestLinesWatchPrintsAndRecords(t *testing.T) {
	capture := wireCapture(
		[]device.WireRecord{{Kind: device.WireLevels, Levels: 2, Time: 1500 * time.Millisecond}},
		[]device.WireRecord{{Kind: device.WireActive, Wire: 0, Seq: 1, Time: 2*time.Second + 1}, {Kind: device.WireInactive, Wire: 1, Seq: 4, Time: 2*time.Second + 2}},
		[]device.WireRecord{{Kind: device.WireUnsteady, Levels: 0, Seq: 4, Time: 3 * time.Second}},
		[]device.WireRecord{{Kind: device.WireActive, Wire: 1, Seq: 5, Time: 4 * time.Second}, {Kind: device.WireLevels, Levels: 3, Seq: 5, Time: 5 * time.Second}},
	)
	player, err := sim.NewPlayer(strings.NewReader(capture), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	o := device.Options{Wires: []device.Wire{{Line: "D0"}, {Line: "D1"}},
		Opener: func(context.Context, device.Options) (device.Line, error) { return player, nil }}
	var out strings.Builder
	file := filepath.Join(t.TempDir(), "capture")
	if err := watchLines(context.Background(), o, &out, file); !errors.Is(err, device.ErrUnplugged) {
		t.Error(err)
	}
	want := `1.500000000 #0 levels, active: D1
2.000000001 #1 D0 active
2.000000002 #4 D1 inactive
3.000000000 #4 levels, active: none, unsteady; 2 edges lost, or more a second than a wire may have
4.000000000 #5 D1 active
5.000000000 #5 levels, active: D0 D1
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if record, err := os.ReadFile(file); err != nil || string(record) != capture {
		t.Errorf("recorded\n%s\nof\n%s%v", record, capture, err)
	}
	if err := watchLines(context.Background(), o, &out, file); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
}

func TestLinesWatchEndsWhenStopped(t *testing.T) {
	player, err := sim.NewPlayer(strings.NewReader(wireCapture([]device.WireRecord{{Kind: device.WireLevels}})), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := player.Read(context.Background()); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	o := device.Options{Opener: func(context.Context, device.Options) (device.Line, error) { return player, nil }}
	if err := watchLines(stopped, o, nil, ""); err != nil {
		t.Error(err)
	}
}

func TestLinesRefusesWhatItCannotDo(t *testing.T) {
	for _, a := range [][]string{{"watch"}, {"watch", "gpio:shoe"}, {"watch", "/dev/ttyUSB0", "1"}, {"read", "1"}, {"watch", "gpio:shoe", "1", "--debounce", "fast"}} {
		var usage usageError
		if _, _, err := shoedCommand(append([]string{"lines"}, a...)...); !errors.As(err, &usage) {
			t.Errorf("%v: %v", a, err)
		}
	}
	for _, a := range [][]string{{"watch", "gpio:no such chip", "1"}, {"read", "gpio:no such chip", "1"}} {
		if _, _, err := shoedCommand(append([]string{"lines"}, a...)...); !errors.Is(err, device.ErrAbsent) {
			t.Errorf("%v: %v", a, err)
		}
	}
	if _, _, err := shoedCommand("lines", "watch", "gpio:no such chip", "1", "--bias", "high"); err == nil || !strings.Contains(err.Error(), `bias "high"`) {
		t.Error(err)
	}
}
