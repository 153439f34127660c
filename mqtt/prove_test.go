package mqtt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// shippedBroker is a mosquitto with the shipped file and its examples, whose
// lines a test takes away.
type shippedBroker struct {
	*mosquitto
	acl  string // path
	text string
}

func newShippedBroker(t *testing.T) *shippedBroker {
	shipped, err := os.ReadFile("mosquitto.acl")
	if err != nil {
		t.Fatal(err)
	}
	b := &shippedBroker{acl: filepath.Join(t.TempDir(), "acl"), text: string(shipped)}
	names := []string{desk}
	for _, u := range people {
		names = append(names, u.Name)
		b.text += aclBlock(t, string(shipped), u)
	}
	if err := os.WriteFile(b.acl, []byte(b.text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.mosquitto = startMosquitto(t, "allow_anonymous false", "set_tcp_nodelay true", "password_file "+passwordFile(t, names...), "acl_file "+b.acl)
	return b
}

// without takes a line away until the next call.
func (b *shippedBroker) without(line string) {
	b.t.Helper()
	text := strings.Replace(b.text, line+"\n", "", 1)
	if line != "" && text == b.text {
		b.t.Fatalf("no line %q", line)
	}
	if err := os.WriteFile(b.acl, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	before := b.log.count("Reloading config.")
	b.signal(syscall.SIGHUP)
	until(b.t, "the broker has read its files", func() bool { return b.log.count("Reloading config.") > before })
}

func (b *shippedBroker) options(observer string, role Role) ProveOptions {
	as := func(name string) Account {
		return Account{Server: "mqtt://" + b.addr, User: name, Password: passwordOf(name)}
	}
	o := ProveOptions{Account: as(desk), Site: site, Table: desk, Audit: true, Wait: time.Second}
	if observer != "" {
		o.Observer, o.Role = as(observer), role
	}
	return o
}

func failures(found []Finding) (texts []string) {
	for _, f := range found {
		if f.Result == Fail {
			texts = append(texts, f.Check+": "+f.Text)
		}
	}
	return texts
}

// With the shipped file every right is proven. Of each line taken away the
// missing right is named, with the line that gives it.
func TestProve(t *testing.T) {
	b := newShippedBroker(t)
	root := Topic(site, desk, "")
	found := Prove(t.Context(), b.options("cctv", Surveillance))
	last := found[len(found)-1]
	if slices.ContainsFunc(found, func(f Finding) bool { return f.Result != Pass }) || len(found) != 4 ||
		!strings.Contains(last.Text, desk+" may write info roads insurance state event health alerts audit rsp/+/+ replay/+: cctv has seen it") {
		t.Errorf("with the shipped file: %+v", found)
	}
	for line := range strings.Lines(b.text) {
		kind, name, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "pattern "), " shoed/v1/house/%u/")
		if !found {
			continue
		}
		b.without(strings.TrimSpace(line))
		name = strings.ReplaceAll(name, "%u", desk)
		want := fmt.Sprintf("user %s may not %s %s: add to its rights at the broker: topic %s %s", desk, kind, root+name, kind, root+name)
		got := failures(Prove(t.Context(), b.options("cctv", Surveillance)))
		if len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("without %s %s:\n%s\nwant %s", kind, name, strings.Join(got, "\n"), want)
		}
	}
	b.without("")
	if kept := b.retained(t); len(kept) > 0 {
		t.Errorf("left at the broker: %v", kept)
	}
}

// retained is what a late consumer would get.
func (b *shippedBroker) retained(t *testing.T) (topics []string) {
	w := connectAs(t, b.addr, "cctv", passwordOf("cctv"), nil)
	w.subscribe(Topic(site, desk, "#"))
	for _, m := range w.got {
		topics = append(topics, m.TopicName)
	}
	return topics
}

// Without an observer only what the table itself can read is proven, and it is
// said what is not; a supervisor sees no audit.
func TestProveAlone(t *testing.T) {
	b := newShippedBroker(t)
	for _, c := range []struct {
		without, observer string
		role              Role
		want              string // of the failure, or of the warning
	}{
		{"", "", 0, "not tried whether table-1 may write its other topics"},
		{"", "fred", Floor, "not tried whether table-1 may write audit: fred may not read it"},
		{"", "fred", 0, "audit; or fred may not read it"},
		{"pattern read shoed/v1/house/%u/cmd/+/+", "", 0, "may not write shoed/v1/house/table-1/cmd/table-1/loopback, or not read shoed/v1/house/table-1/cmd/+/+"},
		{"pattern read shoed/v1/house/%u/status", "", 0, "may not write shoed/v1/house/table-1/status, or not read shoed/v1/house/table-1/status"},
	} {
		b.without(c.without)
		found := Prove(t.Context(), b.options(c.observer, c.role))
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Result != Pass && strings.Contains(f.Text, c.want) }) {
			t.Errorf("without %q, as %q: %+v, want %s", c.without, c.observer, found, c.want)
		}
	}
	b.without("")
	o := b.options("", 0)
	o.Password = "falsch"
	if got := fmt.Sprint(Prove(t.Context(), o)); !strings.Contains(got, `refuses user "table-1": check name and password`) || strings.Contains(got, "falsch") {
		t.Errorf("wrong password: %s", got)
	}
	o = b.options("cctv", 0)
	o.Observer.Password = "falsch"
	if got := failures(Prove(t.Context(), o)); len(got) != 1 || !strings.Contains(got[0], `observer: broker`) {
		t.Errorf("wrong password of the observer: %s", got)
	}
}

// A table at work is not disturbed: nothing is heard of the check but the
// table's own loopback.
func TestProveAtWork(t *testing.T) {
	b := newShippedBroker(t)
	d := newTable(t, 1)
	d.deal(3)
	r := publish(t, d, b.addr, func(o *Options) { o.User, o.Password = desk, passwordOf(desk) })
	until(t, "the table", func() bool { return d.cursor() == d.last() })
	watch := connectAs(t, b.addr, "cctv", passwordOf("cctv"), nil)
	watch.subscribe("shoed/v1/+/+/#")
	watch.got = nil
	found := Prove(t.Context(), b.options("cctv", Surveillance))
	if len(failures(found)) > 0 || !strings.Contains(fmt.Sprint(found), "the table is online at this broker, and its status is kept and read") {
		t.Errorf("%+v", found)
	}
	r.stop(nil)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	watch.awaits(func(m *packets.PublishPacket) bool { return strings.HasSuffix(m.TopicName, "/status") })
	for _, m := range watch.got[:len(watch.got)-1] {
		if !strings.HasSuffix(m.TopicName, "/"+loopback) && !strings.HasSuffix(m.TopicName, "/health") {
			t.Errorf("%s: %s", m.TopicName, m.Payload)
		}
	}
	// Stopped it is tried, unless it may be under way.
	o := b.options("cctv", Surveillance)
	o.Running = true
	if found := Prove(t.Context(), o); !strings.Contains(fmt.Sprint(found), "shoed runs on this machine but is not seen to be online") {
		t.Errorf("starting: %+v", found)
	}
	kept := len(b.retained(t))
	o.Running = false
	found = Prove(t.Context(), o)
	if len(failures(found)) > 0 || !strings.Contains(fmt.Sprint(found), "cctv has seen it") {
		t.Errorf("stopped: %+v", found)
	}
	if n := len(b.retained(t)); n != kept || n != 6 {
		t.Errorf("%d documents are kept, before %d", n, kept)
	}
}
