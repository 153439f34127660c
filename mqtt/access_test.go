package mqtt

import (
	"slices"
	"strings"
	"testing"
)

func TestUsers(t *testing.T) {
	for _, c := range []struct {
		text string
		want User
		why  string
	}{
		{"anna=pit", User{"anna", Pit}, ""},
		{"board-1=board", User{"board-1", Board}, ""},
		{"cctv=surveillance", User{"cctv", Surveillance}, ""},
		{"7=floor", User{"7", Floor}, ""},
		{strings.Repeat("a", 32) + "=tech", User{strings.Repeat("a", 32), Tech}, ""},
		{strings.Repeat("a", 33) + "=tech", User{}, "name=role"},
		{"", User{}, "name=role"},
		{"anna", User{}, "name=role"},
		{"=pit", User{}, "name=role"},
		{"Anna=pit", User{}, "name=role"},
		{"-a=pit", User{}, "name=role"},
		{"a+=pit", User{}, "name=role"},
		{"a/b=pit", User{}, "name=role"},
		{"anna=", User{}, "want board, surveillance, floor, pit, tech"},
		{"anna=Pit", User{}, "want board"},
		{"anna=pit=pit", User{}, "want board"},
		{"anna=table", User{}, "want board"},
	} {
		got, err := ParseUser(c.text)
		if got != c.want || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q: %v, %v; want %v, %q", c.text, got, err, c.want, c.why)
		}
	}
	for r := Board; r <= Tech; r++ {
		if back, err := ParseRole(r.String()); back != r || err != nil {
			t.Errorf("%v: read back as %v, %v", r, back, err)
		}
	}
	if s := Role(0).String() + Role(99).String(); s != "Role(0)Role(99)" {
		t.Errorf("not roles: %s", s)
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		filter, asked string
		want          bool
	}{
		{"a/b", "a/b", true}, {"a/b", "a", false}, {"a", "a/b", false}, {"a/b", "a/c", false},
		{"a/b", "a/+", false}, {"a/b", "a/#", false}, {"a/b", "+/b", false}, {"a/b", "#", false}, {"a/b", "+/+", false},
		{"a/+", "a/b", true}, {"a/+", "a/+", true}, {"a/+", "a/#", false}, {"a/+", "a", false}, {"a/+", "a/b/c", false},
		{"a/+", "a/", true}, {"+/b", "a/b", true}, {"+/b", "a/+", false},
		{"a/#", "a", true}, {"a/#", "a/b/c", true}, {"a/#", "a/#", true}, {"a/#", "a/+/c", true}, {"a/#", "b", false}, {"a/#", "#", false},
		{"a/#", "+/b", false}, {"a/b", "a/b/", false}, {"a/b", "/a/b", false}, {"a/b", "", false}, {"a", "", false},
		{"a/b", "$share/g/a/b", false},
	} {
		if got := covers(c.filter, c.asked); got != c.want {
			t.Errorf("%q covers %q: %v", c.filter, c.asked, got)
		}
	}
}

// topicsOf are all topics of a table and some more, with commands and answers
// of me and of another.
func topicsOf(site, table, me string) []string {
	names := strings.Fields("status info roads insurance state event health alerts audit cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback" +
		" cmd/other/sync cmd/other/loopback rsp/{me}/sync rsp/other/sync replay/{me} replay/other" +
		" cmd cmd/{me} cmd/{me}/a/b rsp/{me} replay/{me}/a state/x nonsense")
	for i, n := range names {
		names[i] = Topic(site, table, strings.ReplaceAll(n, "{me}", me))
	}
	return names
}

const (
	open       = "status info roads insurance state event health"
	supervised = open + " alerts cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback cmd/other/sync cmd/other/loopback rsp/{me}/sync rsp/other/sync replay/{me} replay/other"
)

// allowed says once more, apart from the code and topic by topic, what each role
// may read and write of topicsOf; everything else is refused.
var allowed = map[Role]struct{ read, write string }{
	Board:        {open + " rsp/{me}/sync replay/{me}", "cmd/{me}/sync"},
	Surveillance: {supervised + " audit cmd cmd/{me} cmd/{me}/a/b rsp/{me} replay/{me}/a state/x nonsense", "cmd/{me}/sync"},
	Floor:        {supervised, "cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback"},
	Pit:          {supervised, "cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback"},
	Tech:         {supervised, "cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback"},
	itself: {"status cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback cmd/other/sync cmd/other/loopback",
		open + " alerts audit rsp/{me}/sync rsp/other/sync replay/{me} replay/other cmd/{me}/loopback"},
}

// has tells whether a topic below root is in a list of allowed.
func has(list, root, topic, me string) bool {
	name, below := strings.CutPrefix(topic, root)
	return below && slices.Contains(strings.Fields(strings.ReplaceAll(list, "{me}", me)), name)
}

// elsewhere are topics that are no table's.
var elsewhere = strings.Fields("shoed shoed/v1 shoed/v1/house shoed/v2/house/table-1/state /shoed/v1/house/table-1/state" +
	" shoed//v1/house/table-1/state other/topic x SHOED/v1/house/table-1/state $SYS/broker/version $SYS/x")

func TestRights(t *testing.T) {
	for role, may := range allowed {
		a, root := User{desk, role}.at(site, desk), Topic(site, desk, "")
		for _, topic := range topicsOf(site, desk, desk) {
			if got, want := a.mayRead(topic), has(may.read, root, topic, desk); got != want {
				t.Errorf("%v reads %s: %v", role, topic, got)
			}
			if got, want := a.mayWrite(topic), has(may.write, root, topic, desk); got != want {
				t.Errorf("%v writes %s: %v", role, topic, got)
			}
		}
		for _, topic := range append(topicsOf("away", desk, desk), topicsOf(site, "table-2", desk)...) {
			if a.mayWrite(topic) {
				t.Errorf("%v writes %s", role, topic)
			}
			if role == itself && a.mayRead(topic) {
				t.Errorf("%v reads %s", role, topic)
			}
		}
		for _, topic := range append(elsewhere, "#", "+/#", "shoed/#", "shoed/v1/#", "shoed/v1/+/#", "$SYS/#", "$share/x/shoed/v1/a/b/state") {
			if a.mayRead(topic) || a.mayWrite(topic) {
				t.Errorf("%v reads or writes %s", role, topic)
			}
		}
		for filter, want := range map[string]bool{
			"shoed/v1/+/+/state": role != itself, "shoed/v1/+/+/+": role == Surveillance, "shoed/v1/+/+/#": role == Surveillance,
			"shoed/v1/+/+/audit": role == Surveillance, "shoed/v1/+/+/alerts": role != itself && role != Board,
		} {
			if a.mayRead(filter) != want {
				t.Errorf("%v reads %s: %v", role, filter, !want)
			}
		}
	}
}

func TestRightsAllocateNothing(t *testing.T) {
	a, topic := User{"anna", Pit}.at(site, desk), Topic(site, desk, "state")
	if n := testing.AllocsPerRun(100, func() { a.mayRead(topic) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
