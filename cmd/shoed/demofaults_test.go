package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"shoed/sim"
)

// TestDemoFaults: every fault shows its alert and no other, in the whole program,
// and the table goes on.
func TestDemoFaults(t *testing.T) {
	seed := rand.Uint32()
	out, errs, err := shoedCommand("demo", "--faults", "all", "--speed", "1000", "--seed", fmt.Sprint(seed), "--mqtt", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("seed %d: %v\n%s%s", seed, err, out, errs)
	}
	n := len(sim.Faults())
	if !strings.HasSuffix(out, fmt.Sprintf("%d faults, %d seen\n", n, n)) || strings.Count(out, " seen\n") != n+1 {
		t.Errorf("seed %d: %s", seed, out)
	}
}

// TestDemoAttended: the demonstration says how to answer, and waits for it.
func TestDemoAttended(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out := &lockedBuffer{}
	done := task(func() error {
		return run(ctx, []string{"demo", "--faults", "wrong-box,card-while-paused", "--attended", "--speed", "200", "--mqtt", "127.0.0.1:0"}, nil, out, out)
	})
	command := regexp.MustCompile(`-> shoed (answer --socket \S+ .*)`)
	for answered := 0; answered < 3; answered++ { // the second fault has two alerts
		var told [][]string
		eventually(t, "a command", func() bool {
			told = command.FindAllStringSubmatch(out.String(), -1)
			return len(told) > answered
		})
		if reply, errs, err := shoedCommand(strings.Fields(told[answered][1])...); err != nil || !strings.HasPrefix(reply, "done") {
			t.Fatalf("%s: %v %s%s\n%s", told[answered][1], err, reply, errs, out.String())
		}
	}
	if err := <-done; err != nil || !strings.Contains(out.String(), "Card in the wrong box") || !strings.HasSuffix(out.String(), "2 faults, 2 seen\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestDemoFaultsChosen(t *testing.T) {
	for _, c := range []struct {
		args  []string
		wrong string
	}{
		{[]string{"--faults", "list"}, ""},
		{[]string{"--faults", "wrong-bix"}, `there is no "wrong-bix"; did you mean wrong-box?`},
		{[]string{"--faults", "deal.wrongbox"}, "did you mean deal.wrong_box?"},
		{[]string{"--faults", "call,"}, `there is no ""; "shoed demo --faults list" has them all`},
		{[]string{"--faults", "call", "--rounds", "3"}, "--rounds goes without --faults"},
		{[]string{"--attended"}, "--attended only with it"},
	} {
		out, _, err := shoedCommand(append([]string{"demo"}, c.args...)...)
		switch {
		case c.wrong == "":
			if err != nil || strings.Count(out, "\n") < len(sim.Faults()) {
				t.Errorf("%q: %v %s", c.args, err, out)
			}
		case err == nil || !strings.Contains(err.Error(), c.wrong):
			t.Errorf("%q: %v, want %s", c.args, err, c.wrong)
		}
	}
	all, err := chooseFaults("all")
	if two, err2 := chooseFaults("wire.faulty, call"); err != nil || err2 != nil || len(all) != len(sim.Faults()) || len(two) != 3 {
		t.Errorf("%d, %d, %v, %v", len(all), len(two), err, err2)
	}
	var b bytes.Buffer
	if err := listFaults(&b); err != nil || !strings.Contains(b.String(), "wrong-box ") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
