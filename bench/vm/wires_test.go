//go:build vm

package vm

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// wiresPatience is for 1,000 Wiegand words and 10,000 box changes: they take a
// minute and a half by themselves, more where the sender is not let run.
const wiresPatience = 20 * time.Minute

// TestWires lets the tests that package device has for a real chip run in the
// guest, on a chip of gpio-sim: every edge is told or counted as lost, no bit is
// another than was sent.
func TestWires(t *testing.T) {
	newDisk(t)
	m := boot(t, t.TempDir(), "9", "") // no broker is wanted
	m.must("chip_with shoe WIEGAND_D0 WIEGAND_D1 BOX_P1 BOX_P2 BOX_P3 BOX_B1 BOX_B2 BOX_B3; echo 1 >/sys/kernel/config/gpio-sim/shoe/live")
	m.must("{ /root/device.test -test.run Real -test.v -gpio-chip shoe; echo $? >/root/wires.done; } </dev/null >/root/wires.said 2>&1 3>&- &")
	m.eventually("the tests of wires", wiresPatience, func() error {
		if out := m.must("cat /root/wires.done 2>/dev/null; true"); out == "" {
			return errors.New(tail(m.must("cat /root/wires.said"), 5))
		}
		return nil
	})
	said := m.must("cat /root/wires.said")
	t.Log(said)
	if code := strings.TrimSpace(m.must("cat /root/wires.done")); code != "0" || strings.Contains(said, "SKIP") || !strings.Contains(said, "PASS: TestRealWiegandWords") {
		t.Errorf("exit code %s", code)
	}
}
