package mqtt

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDeaf: a broker that no longer gives the table its commands, without a word,
// is found by the table's own loopback; one that never gave it is left alone,
// for it may only forbid that.
func TestDeaf(t *testing.T) {
	acl := filepath.Join(t.TempDir(), "acl")
	allow := func(lines ...string) {
		if err := os.WriteFile(acl, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hears := []string{"topic readwrite shoed/#"}
	deaf := []string{"topic write shoed/#", "topic read " + Topic(site, desk, "status")}
	fast := func(o *Options) {
		o.LoopEvery, o.AckTimeout = 50*time.Millisecond, 500*time.Millisecond
		o.After = func(wait time.Duration) <-chan time.Time { return time.After(min(wait, 50*time.Millisecond)) }
	}

	allow(hears...)
	m := startMosquitto(t, "acl_file "+acl)
	d := newTable(t, 71)
	r := publish(t, d, m.addr, fast)
	until(t, "loopbacks", func() bool { return m.log.count("Sending PUBLISH to shoed-"+desk+" (d0, q1") > 2 })
	if n := r.log.count("code=broker_lost"); n != 0 {
		t.Errorf("a connection that hears was dropped %d times", n)
	}
	allow(deaf...)
	m.signal(syscall.SIGHUP)
	until(t, "the deaf connection is dropped", func() bool { return r.log.count("up but deaf") > 0 })
	allow(hears...)
	m.signal(syscall.SIGHUP)
	d.deal(20)
	until(t, "all is well again", func() bool { return d.cursor() == d.last() })

	allow(deaf...)
	forbids := startMosquitto(t, "acl_file "+acl)
	other := newTable(t, 72)
	q := publish(t, other, forbids.addr, fast)
	until(t, "a hint", func() bool { return q.log.count("code=loopback_denied") == 1 })
	other.deal(20)
	until(t, "the events", func() bool { return other.cursor() == other.last() })
	if n := q.log.count("code=broker_lost"); n != 0 {
		t.Errorf("a broker that forbids the loopback was left %d times", n)
	}
}
