package device

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func TestChipsSayWhatToConfigure(t *testing.T) {
	k := fake(t)
	pi := k.chip("gpiochip0", "pinctrl-rp1", "GPIO2", "NC", "NC", "", "POWER")
	pi.lines[0].flags, pi.lines[0].consumer = flagUsed|flagActiveLow|flagPullUp, "spi0 CS0"
	pi.lines[4].flags = flagUsed | flagOutput | flagOpenDrain
	k.chip("gpiochip1", "mcp23017", "A")
	k.chip("gpiochip2", "mcp23017")
	k.chip("gpiochip3", "").denied = true
	if err := os.Symlink("gpiochip0", filepath.Join(k.root, "dev/gpiochip4")); err != nil {
		t.Fatal(err)
	}
	openWired(t, k.wired("gpio:pinctrl-rp1", Wire{Use: "d0", Line: "3", Debounce: 5 * time.Millisecond}))
	found := chips(k, k.root)
	if len(found) != 4 {
		t.Fatalf("%d chips: %+v", len(found), found)
	}
	for i, want := range []Chip{
		{Device: "/dev/gpiochip0", Name: "gpiochip0", Label: "pinctrl-rp1", Address: "gpio:pinctrl-rp1", Lines: []ChipLine{
			{Line: "GPIO2", Offset: 0, Name: "GPIO2", Used: true, Consumer: "spi0 CS0", Flags: []string{"active-low", "pull-up"}},
			{Line: "1", Offset: 1, Name: "NC", Flags: []string{}},
			{Line: "2", Offset: 2, Name: "NC", Flags: []string{}},
			{Line: "3", Offset: 3, Used: true, Consumer: "shoed reader", Flags: []string{"rising edges", "falling edges", "debounce 5ms"}},
			{Line: "POWER", Offset: 4, Name: "POWER", Used: true, Output: true, Flags: []string{"open-drain"}},
		}},
		{Device: "/dev/gpiochip1", Name: "gpiochip1", Label: "mcp23017", Address: "gpio:gpiochip1", Lines: []ChipLine{{Line: "A", Name: "A", Flags: []string{}}}},
		{Device: "/dev/gpiochip2", Name: "gpiochip2", Label: "mcp23017", Address: "gpio:gpiochip2", Lines: []ChipLine{}},
		{Device: "/dev/gpiochip3", Lines: []ChipLine{}},
	} {
		got := found[i]
		if (got.Denied != "") != (i == 3) || got.Mode != "0600" || got.User == "" {
			t.Errorf("%s: %+v", got.Device, got.Access)
		}
		got.Access = Access{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if len(k.files) != 1 {
		t.Errorf("%d descriptors left open", len(k.files)-1)
	}
}
