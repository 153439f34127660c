package config

import (
	"fmt"
	"iter"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// section is one [section] of the file; the nameless one comes before all others.
type section struct {
	name, doc string
	keys      []key
}

// key is one setting. The type of its default is its type: string, int64, bool or
// []string, whose elements are checked one by one.
type key struct {
	name    string // within its section
	value   any    // the default
	doc     string // without the full stop at its end
	accepts accepts
	secret  bool  // messages must not show the value
	takes   Takes // what a change needs to take effect

	path string // full name, set by keys
}

// Takes is what it takes until a changed setting is in force.
type Takes uint8

const (
	Restart  Takes = iota // the program must start anew
	Reload                // it reads its configuration again, between two rounds
	NextShoe              // as Reload, and then the next shoe
)

var takesText = [...]string{Restart: "restart", Reload: "reload", NextShoe: "reload, next shoe"}

// String is such as "restart".
func (t Takes) String() string { return takesText[t] }

// MarshalText returns String.
func (t Takes) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// accepts says which values are allowed, in words that follow "give", and tests
// one. Its zero value allows everything of the key's type.
type accepts struct {
	give string
	ok   func(value any) bool
}

var sections = []section{
	{"", "", []key{
		{name: "rules", value: []string{}, doc: `House rules that differ from the usual ones, each "name=value", such as "decks=8" or "burn=first_card"`, takes: NextShoe},
		{name: "bets_file", value: "", doc: "Table of the bets instead of the usual one, in CSV like round/bets.csv; empty for none", accepts: orEmpty(absolute), takes: NextShoe},
		{name: "insurance_file", value: "", doc: "Table of the insurance instead of the usual one, in CSV like round/insurance.csv; empty for none", accepts: orEmpty(absolute), takes: NextShoe},
	}},
	{"table", "The table.", []key{
		{name: "site", value: "house", doc: "The house, as in topic names", accepts: name},
		{name: "id", value: "table-1", doc: "The table, unique in the house, as in topic names", accepts: name},
		{name: "label", value: "", doc: "What stands on the felt, for people", accepts: printable(16), takes: Reload},
	}},
	{"reader", "The card reader and its line. A device server sets speed and characters of its line itself.", []key{
		{name: "name", value: "reader", doc: "Its name in messages and in the journal", accepts: not(name, "journal", "broker", "clock", "power", "certificate", "commands", "publisher")},
		{name: "protocol", value: "angel", doc: "What it speaks", accepts: name},
		{name: "device", value: "/dev/ttyUSB0", doc: `The serial port, which "shoed ports" tells, or a device server that passes bytes as they are; ttyUSB numbers move`, accepts: line},
		{name: "baud_rate", value: int64(4800), doc: "Speed of the line", accepts: within(300, 4000000)},
		{name: "data_bits", value: int64(8), doc: "Data bits of a character", accepts: within(5, 8)},
		{name: "parity", value: "none", doc: "Parity of a character", accepts: oneOf("none", "even", "odd")},
		{name: "stop_bits", value: int64(1), doc: "Stop bits of a character", accepts: within(1, 2)},
		{name: "buffer_bytes", value: int64(262144), doc: "How much may wait between line and journal before bytes are dropped, which is reported", accepts: within(4096, 16777216)},
	}},
	{"journal", "The journal on disk: everything read and everything that followed.", []key{
		{name: "dir", value: "/var/lib/shoed", doc: "Its folder", accepts: absolute},
		{name: "max_age_days", value: int64(30), doc: "How long it is kept, in days", accepts: within(1, 3650), takes: Reload},
		{name: "max_bytes", value: int64(1000000000), doc: "How large it may grow", accepts: within(50000000, 1000000000000), takes: Reload},
	}},
	{"mqtt", "The way out.", []key{
		{name: "servers", value: []string{}, doc: `Brokers, tried in random order; none means the broker inside shoed, see listen`, accepts: server, secret: true},
		{name: "user", value: "", doc: "User at the broker; empty for none", accepts: printable(128)},
		{name: "password", value: "", doc: "Password at the broker; better in password_file. With it, nobody but the owner may be able to read this file (or root's group, if root owns it)", secret: true},
		{name: "password_file", value: "", doc: "File with the password, readable by nobody but its owner (or by root's choice of group, if root owns it, as systemd credentials are); empty for none", accepts: orEmpty(credential)},
		{name: "ca_file", value: "", doc: "Certificates in PEM to trust besides the system's, at brokers with mqtts:// or wss://; empty for none", accepts: orEmpty(absolute)},
		{name: "cert_file", value: "", doc: "Certificate in PEM to show to those brokers, read again for each connection; empty for none", accepts: orEmpty(absolute)},
		{name: "key_file", value: "", doc: "Its key in PEM, as private as password_file", accepts: orEmpty(absolute)},
		{name: "server_name", value: "", doc: "Name that the brokers' certificates must bear; empty for that of each address", accepts: orEmpty(matching(`^[0-9A-Za-z.:_-]{1,253}$`, "a host's name or IP address"))},
		{name: "client_id", value: "", doc: "Client id at the broker; empty to derive it from site and table", accepts: orEmpty(matching(`^[0-9A-Za-z._-]{1,64}$`, "1 to 64 of letters, digits, '.', '_' and '-'"))},
		{name: "keep_alive_s", value: int64(20), doc: "Silence after which the link is probed, in seconds", accepts: within(5, 3600)},
		{name: "write_timeout_ms", value: int64(3000), doc: "How long a write may block before the link counts as dead, in milliseconds", accepts: within(100, 60000)},
		{name: "window", value: int64(1), doc: "Messages under way at once; more than 1 may arrive out of order after a reconnect", accepts: within(1, 16)},
		{name: "listen", value: "127.0.0.1:1883", doc: "Where the broker inside shoed listens; port 0 takes a free one", accepts: listener},
		{name: "listen_ws", value: "127.0.0.1:9001", doc: "The same for MQTT over WebSocket", accepts: listener},
		{name: "listen_cert_file", value: "", doc: "TLS certificate (PEM, with its chain) for both; without one passwords cross the network readable", accepts: orEmpty(absolute)},
		{name: "listen_key_file", value: "", doc: "Its key, readable by nobody but its owner (or by root's choice of group)", accepts: orEmpty(absolute)},
		{name: "audit", value: false, doc: "Whether the full view goes out too, on the topic audit, which only surveillance may be let read"},
	}},
	{"access", "Who uses the table over MQTT. The broker inside shoed asks everybody for user and password as soon as one is named here.", []key{
		{name: "users", value: []string{}, doc: `Users and their roles, such as "anna=pit", "board-1=board" and "cctv=surveillance"`, accepts: user, takes: Reload},
		{name: "password_file", value: "", doc: "Their passwords for the broker inside shoed, as mosquitto_passwd writes them, readable by nobody but the file's owner (or by root's choice of group)", accepts: orEmpty(absolute), takes: Reload},
		{name: "keys", value: []string{}, doc: `Public keys of those who sign their commands, such as "anna=" and what "shoed key new" prints`, accepts: userKey, takes: Reload},
		{name: "require_signature", value: false, doc: "Whether every command over a broker must be signed; for brokers that are not trusted to know who sends", takes: Reload},
		{name: "dual", value: []string{"void", "manual", "correct"}, doc: "Commands that take two people, a correct only after the outcome; they hold as soon as users are named", accepts: commandName, takes: Reload},
	}},
	{"control", "The local command socket.", []key{
		{name: "socket", value: "/run/shoed/shoed.sock", doc: "Its path", accepts: socketPath},
	}},
	{"metrics", "Numbers for Prometheus.", []key{
		{name: "listen", value: Off, doc: "Where they can be read by HTTP, at /metrics, by anybody who reaches the address; port 0 takes a free one", accepts: scraped},
	}},
	{"log", "The program's own log.", []key{
		{name: "level", value: "info", doc: "What is logged", accepts: oneOf("debug", "info", "warn", "error"), takes: Reload},
		{name: "format", value: "auto", doc: "How; auto is text for the systemd journal, with priorities, and for a terminal, JSON otherwise", accepts: oneOf("auto", "text", "json")},
	}},
}

// keys yields every key with its full name, in the order of the file.
func keys() iter.Seq[key] {
	return func(yield func(key) bool) {
		for _, s := range sections {
			for _, k := range s.keys {
				k.path = k.name
				if s.name != "" {
					k.path = s.name + "." + k.name
				}
				if !yield(k) {
					return
				}
			}
		}
	}
}

func keyAt(path string) (key, bool) {
	for k := range keys() {
		if k.path == path {
			return k, true
		}
	}
	return key{}, false
}

func isSection(name string) bool {
	return name != "" && slices.ContainsFunc(sections, func(s section) bool { return s.name == name })
}

var (
	name       = matching(`^[a-z0-9][a-z0-9-]{0,31}$`, "1 to 32 of a-z, 0-9 and '-', not starting with '-'")
	absolute   = accepts{"an absolute path", func(v any) bool { return isAbsolute(v.(string)) }}
	line       = accepts{`an absolute path, such as one in /dev/serial/by-id, "usb:VID:PID" or "usb:VID:PID:SERIAL" of an adapter, or "tcp://host:port"`, isLine}
	credential = accepts{`an absolute path, or "credential:NAME" of a systemd credential`, isCredential}
	// The kernel's sockaddr_un holds 108 bytes with the closing zero.
	socketPath = accepts{"an absolute path of at most 107 bytes", func(v any) bool { return isAbsolute(v.(string)) && len(v.(string)) <= 107 }}
	server     = accepts{`addresses such as "mqtt://broker:1883", "mqtts://broker:8883", "ws://broker:9001/path" or "wss://...", with a port and without user or password`, isServer}
	listener   = accepts{`"off" or an address with a port, such as "127.0.0.1:1883"; one that others can reach, such as "0.0.0.0:1883", only with access.users`, isListener}
	scraped    = accepts{`"off" or an address with a port, such as "127.0.0.1:9464"`, isListener}
	userKey    = matching(`^[a-z0-9][a-z0-9-]{0,31}=[0-9A-Za-z+/]{43}=$`, `"name=key", the key 32 bytes in base64`)
	// The program knows which there are.
	commandName = matching(`^[a-z][a-z_-]{0,31}$`, `the name of a command, such as "void"`)
	user        = matching(`^[a-z0-9][a-z0-9-]{0,31}=(board|surveillance|floor|pit|tech)$`, `"name=role", the name 1 to 32 of a-z, 0-9 and '-', not starting with '-', the role board, surveillance, floor, pit or tech`)
)

func within(low, high int64) accepts {
	return accepts{fmt.Sprintf("%d to %d", low, high), func(v any) bool { return v.(int64) >= low && v.(int64) <= high }}
}

func oneOf(words ...string) accepts {
	last := len(words) - 1
	give := `"` + strings.Join(words[:last], `", "`) + `" or "` + words[last] + `"`
	return accepts{give, func(v any) bool { return slices.Contains(words, v.(string)) }}
}

func matching(pattern, give string) accepts {
	re := regexp.MustCompile(pattern)
	return accepts{give, func(v any) bool { return re.MatchString(v.(string)) }}
}

func printable(most int) accepts {
	return accepts{fmt.Sprintf("at most %d printable characters", most), func(v any) bool {
		s := v.(string)
		unprintable := strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
		return utf8.ValidString(s) && !unprintable && utf8.RuneCountInString(s) <= most
	}}
}

// not keeps words for something else.
func not(a accepts, words ...string) accepts {
	return accepts{a.give + ", and not " + strings.Join(words, ", "), func(v any) bool { return !slices.Contains(words, v.(string)) && a.ok(v) }}
}

func orEmpty(a accepts) accepts {
	return accepts{a.give + `, or ""`, func(v any) bool { return v == "" || a.ok(v) }}
}

func isAbsolute(s string) bool {
	return filepath.IsAbs(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

var usbAdapter = regexp.MustCompile(`^usb:[[:xdigit:]]{4}:[[:xdigit:]]{4}(:[ -~]+)?$`)

func isLine(v any) bool {
	server, isTCP := strings.CutPrefix(v.(string), "tcp:")
	host, port, err := net.SplitHostPort(strings.TrimPrefix(server, "//"))
	if isTCP {
		return err == nil && isPort(port) && host != "" && !strings.ContainsAny(host, "/@ ")
	}
	return isAbsolute(v.(string)) || usbAdapter.MatchString(v.(string))
}

func isPort(s string) bool {
	port, err := strconv.Atoi(s)
	return err == nil && port >= 1 && port <= 65535
}

var credentialName = regexp.MustCompile(`^credential:[0-9A-Za-z_-][0-9A-Za-z._-]*$`)

func isCredential(v any) bool {
	return isAbsolute(v.(string)) || credentialName.MatchString(v.(string))
}

func isServer(v any) bool {
	u, err := url.Parse(v.(string))
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	if !isPort(u.Port()) {
		return false
	}
	switch u.Scheme {
	case "tcp", "mqtt", "ssl", "mqtts":
		return u.Path == ""
	case "ws", "wss":
		return true
	}
	return false
}

func isListener(v any) bool {
	if v == Off {
		return true
	}
	host, portText, err := net.SplitHostPort(v.(string))
	port, portErr := strconv.Atoi(portText)
	if err != nil || portErr != nil || port < 0 || port > 65535 {
		return false
	}
	return host == "localhost" || net.ParseIP(host) != nil
}

// isOpen tells whether others can reach a listener.
func isOpen(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return address != Off && host != "localhost" && !net.ParseIP(host).IsLoopback()
}
