package mqtt

import (
	"fmt"
	"strings"
)

// Role is what a user of a broker is to a table (contract.md, Broker access and
// Commands). At the broker floor, pit and tech are one, the supervisor; which
// command is whose the table decides.
type Role uint8

// The roles, from the one that may least.
const (
	_            Role = iota
	Board             // shows the table to players
	Surveillance      // sees everything, commands nothing
	Floor
	Pit
	Tech
	itself // the table; no user's
)

var roleNames = [...]string{Board: "board", Surveillance: "surveillance", Floor: "floor", Pit: "pit", Tech: "tech", itself: "table"}

// String is the role's name in the configuration.
func (r Role) String() string {
	if r == 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return roleNames[r]
}

// ParseRole reads a role's name. The error says which there are.
func ParseRole(s string) (Role, error) {
	for r := Board; r <= Tech; r++ {
		if roleNames[r] == s {
			return r, nil
		}
	}
	return 0, fmt.Errorf("role %q: want %s", s, strings.Join(roleNames[Board:itself], ", "))
}

// User is a person or program that a broker knows by name and password.
type User struct {
	Name string // contract.md: [a-z0-9][a-z0-9-]{0,31}
	Role Role
}

// ParseUser reads a user as configured: "name=role". The error says what is
// wrong with it.
func ParseUser(s string) (User, error) {
	name, role, found := strings.Cut(s, "=")
	if !found || !validName.MatchString(name) {
		return User{}, fmt.Errorf("user %q: write it as name=role, the name in a-z, 0-9 and -, at most 32, the first no -", s)
	}
	r, err := ParseRole(role)
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", s, err)
	}
	return User{name, r}, nil
}

const (
	shown    = "status info roads insurance state event health" // what everybody may see
	unhidden = shown + " alerts cmd/+/+ rsp/+/+ replay/+"       // everything but audit
)

// rights are what each role may read and write below shoed/v1/{site}/{table}/.
// mosquitto.acl says the same to mosquitto.
var rights = [...]struct{ read, write string }{
	Board:        {shown + " rsp/{user}/+ replay/{user}", "cmd/{user}/sync"},
	Surveillance: {"#", "cmd/{user}/sync"},
	Floor:        {unhidden, "cmd/{user}/+"},
	Pit:          {unhidden, "cmd/{user}/+"},
	Tech:         {unhidden, "cmd/{user}/+"},
	// loopback, which is not of the contract, lets the table find a connection
	// that is up but deaf.
	itself: {"cmd/+/+ status", shown + " alerts audit rsp/+/+ replay/+ cmd/{user}/loopback"},
}

// access is what one user may read and write, as topic filters.
type access struct{ read, write []string }

// at gives the user's access to a broker that serves one table. Reading is not
// bound to the table, so that boards may subscribe with wildcards for any.
func (u User) at(site, table string) access {
	may, anywhere, here := rights[u.Role], Topic("+", "+", ""), Topic(site, table, "")
	if u.Role == itself {
		anywhere = here
	}
	return access{u.below(anywhere, may.read), u.below(here, may.write)}
}

func (u User) below(root, names string) []string {
	filters := strings.Fields(strings.ReplaceAll(names, "{user}", u.Name))
	for i := range filters {
		filters[i] = root + filters[i]
	}
	return filters
}

// mayRead tells whether everything that a filter matches may be read.
func (a access) mayRead(filter string) bool { return anyCovers(a.read, filter) }

// mayWrite tells whether a message may be published.
func (a access) mayWrite(topic string) bool { return anyCovers(a.write, topic) }

func anyCovers(filters []string, asked string) bool {
	for _, f := range filters {
		if covers(f, asked) {
			return true
		}
	}
	return false
}

// covers tells whether filter matches every topic that asked, a topic or a
// filter, matches. It allocates nothing: brokers ask for each delivery.
func covers(filter, asked string) bool {
	for more, left := true, true; more; {
		var want, have string
		want, filter, more = strings.Cut(filter, "/")
		if want == "#" {
			return true
		}
		if !left {
			return false
		}
		have, asked, left = strings.Cut(asked, "/")
		if have == "#" || want != "+" && want != have {
			return false
		}
		if !more {
			return !left
		}
	}
	return false
}
