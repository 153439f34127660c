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

// topicsOf are all topics of a table, with commands and answers of me and of
// another.
func topicsOf(site, table, me string) []string {
	names := strings.Fields(unhidden + " audit cmd/{user}/sync cmd/{user}/pause cmd/{user}/loopback rsp/{user}/sync replay/{user}" +
		" cmd/other/sync rsp/other/sync replay/other cmd/{user} cmd/{user}/a/b state/x nonsense")
	all := []string{}
	for _, n := range names {
		if !strings.Contains(n, "+") {
			all = append(all, Topic(site, table, strings.ReplaceAll(n, "{user}", me)))
		}
	}
	return all
}

// What each role may do is said here once more, apart from the code, topic by
// topic; everything else is refused.
func TestRights(t *testing.T) {
	const public = "status info roads insurance state event health"
	supervisor := public + " alerts cmd/me/sync cmd/me/pause cmd/me/loopback cmd/other/sync rsp/me/sync rsp/other/sync replay/me replay/other"
	for _, c := range []struct {
		role        Role
		read, write string
	}{
		{Board, public + " rsp/me/sync replay/me", "cmd/me/sync"},
		{Surveillance, supervisor + " audit cmd/me cmd/me/a/b state/x nonsense", "cmd/me/sync"},
		{Floor, supervisor, "cmd/me/sync cmd/me/pause cmd/me/loopback"},
		{Pit, supervisor, "cmd/me/sync cmd/me/pause cmd/me/loopback"},
		{Tech, supervisor, "cmd/me/sync cmd/me/pause cmd/me/loopback"},
		{itself, "status cmd/me/sync cmd/me/pause cmd/me/loopback cmd/other/sync",
			public + " alerts audit rsp/me/sync rsp/other/sync replay/me replay/other cmd/me/loopback"},
	} {
		here := "table-1"
		if c.role == itself {
			here = "me"
		}
		a := User{"me", c.role}.at(site, here)
		for _, topic := range topicsOf(site, here, "me") {
			name := strings.TrimPrefix(topic, Topic(site, here, ""))
			if got, want := a.mayRead(topic), slices.Contains(strings.Fields(c.read), name); got != want {
				t.Errorf("%v reads %s: %v", c.role, name, got)
			}
			if got, want := a.mayWrite(topic), slices.Contains(strings.Fields(c.write), name); got != want {
				t.Errorf("%v writes %s: %v", c.role, name, got)
			}
		}
		for _, topic := range append(topicsOf("elsewhere", here, "me"), topicsOf(site, "table-2", "me")...) {
			if a.mayWrite(topic) {
				t.Errorf("%v writes %s", c.role, topic)
			}
			if c.role == itself && a.mayRead(topic) {
				t.Errorf("%v reads %s", c.role, topic)
			}
		}
		for _, filter := range []string{"#", "+/#", "shoed/#", "shoed/v1/#", "shoed/v1/+/#", "$SYS/#", "$SYS/broker/uptime", "shoed/v2/a/b/state", "$share/x/shoed/v1/a/b/state"} {
			if a.mayRead(filter) || a.mayWrite(filter) {
				t.Errorf("%v reads or writes %s", c.role, filter)
			}
		}
		for filter, want := range map[string]bool{
			"shoed/v1/+/+/state": c.role != itself, "shoed/v1/+/+/+": c.role == Surveillance, "shoed/v1/+/+/#": c.role == Surveillance,
			"shoed/v1/+/+/audit": c.role == Surveillance, "shoed/v1/+/+/alerts": c.role != itself && c.role != Board,
		} {
			if a.mayRead(filter) != want {
				t.Errorf("%v reads %s: %v", c.role, filter, !want)
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
