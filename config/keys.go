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

// serialKeys are those of a serial line.
func serialKeys(baudRate int64) []key {
	return []key{
		{name: "baud_rate", value: baudRate, doc: "Speed of the line", accepts: within(300, 4000000)},
		{name: "data_bits", value: int64(8), doc: "Data bits of a character", accepts: within(5, 8)},
		{name: "parity", value: "none", doc: "Parity of a character", accepts: oneOf("none", "even", "odd")},
		{name: "stop_bits", value: int64(1), doc: "Stop bits of a character", accepts: within(1, 2)},
	}
}

// wireKeys are those of inputs on a GPIO chip.
var wireKeys = []key{
	{name: "active", value: "low", doc: "The level of a GPIO wire that is pressed, occupied or pulsed", accepts: oneOf("high", "low")},
	{name: "bias", value: "up", doc: "The chip's own resistor at each of them; as-is leaves it as it is", accepts: oneOf("up", "down", "off", "as-is")},
}

// codeKeys say what the codes of cards mean.
var codeKeys = []key{
	{name: "codes", value: []string{}, doc: `What each code means: its bytes in hex or its characters in quotes, such as "1A2B=As", "'1010'=As", or "FF=cut" of the cut card`, accepts: matching(`^.{1,100}=(.{2}|cut)$`, `"code=card"`)},
	{name: "codes_file", value: "", doc: `The same in a file, which "shoed learn" writes; empty for none`, accepts: orEmpty(absolute)},
}

// frameKeys describe how a generic reader sends a code. Which of them go together
// is for its decoder to say.
var frameKeys = []key{
	{name: "framing", value: "line", doc: "What a frame of generic is: line, [start] payload [checksum] and a line end; stx_etx, start payload end, the checksum before the end or after it; fixed, start payload [checksum] [end]; length, start length payload [checksum] [end]", accepts: oneOf("line", "stx_etx", "fixed", "length")},
	{name: "frame_start", value: "", doc: `Its first bytes, such as "AA55"; empty for none, or for 02 of stx_etx`, accepts: orEmpty(hexBytes(4))},
	{name: "frame_end", value: "", doc: "Its last byte; empty for none, or for 03 of stx_etx", accepts: orEmpty(hexBytes(1))},
	{name: "length_counts", value: "payload", doc: `What the length byte counts, such as "length payload checksum"`, accepts: words("start", "length", "payload", "checksum", "end")},
	{name: "payload_bytes", value: int64(0), doc: "How long the payload of a card's frame is; another is refused", accepts: within(0, 64)},
	{name: "checksum", value: "none", doc: "How it is reckoned", accepts: oneOf("none", "xor", "sum", "crc16_modbus", "crc16_ccitt_false", "crc16_xmodem", "crc16_kermit")},
	{name: "checksum_form", value: "binary", doc: "How it is written", accepts: oneOf("binary", "hex")},
	{name: "checksum_order", value: "", doc: "Which byte of a CRC comes first; empty for what is usual with it", accepts: orEmpty(oneOf("high_first", "low_first"))},
	{name: "checksum_place", value: "", doc: "Where it stands in a frame with an end", accepts: orEmpty(oneOf("before_end", "after_end"))},
	{name: "checksum_covers", value: "payload", doc: `What it is reckoned from, such as "start payload end"; decoded is the bytes that the payload's hex digits stand for`, accepts: words("start", "length", "payload", "decoded", "end")},
	{name: "code_form", value: "text", doc: "How a card's code is written: text, hex digits (two a byte) or binary", accepts: oneOf("text", "hex", "binary")},
	{name: "code_offset", value: int64(0), doc: "Where in the payload it begins, counted from 0", accepts: within(0, 63)},
	{name: "code_bytes", value: int64(0), doc: "How many bytes of the payload it takes; 0 all that follow", accepts: within(0, 64)},
}

var steadyKey = key{name: "steady_ms", value: int64(20), doc: "How long a switch must keep its level to count, in milliseconds", accepts: within(1, 25)}

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
	{"reader", "The card reader and its line. A device server sets speed and characters of its line itself.", append([]key{
		{name: "name", value: "reader", doc: "Its name in messages and in the journal", accepts: not(name, "journal", "broker", "clock", "power", "certificate", "commands", "publisher", "boxes", "panel", "lamps")},
		{name: "protocol", value: "angel", doc: "What it speaks: angel, barcode, generic, parallel8 or wiegand", accepts: name},
		{name: "device", value: "/dev/ttyUSB0", doc: `The serial port, which "shoed ports" tells, a device server that passes bytes as they are, or the GPIO chip of parallel8 and wiegand, which "shoed lines" tells; ttyUSB and gpiochip numbers move`, accepts: line},
	}, slices.Concat(serialKeys(4800), []key{
		{name: "buffer_bytes", value: int64(262144), doc: "How much may wait between line and journal before bytes are dropped, which is reported", accepts: within(4096, 16777216)},
		{name: "lines", value: []string{}, doc: "Of a GPIO chip, its wires: D0 and D1 of wiegand; bits 0 to 7 and the strobe of parallel8", accepts: wire},
	}, wireKeys, codeKeys, []key{
		{name: "word_bits", value: int64(26), doc: "Bits of a wiegand word, its parity included: 26 or 34", accepts: within(26, 34)},
		{name: "settle_us", value: int64(50), doc: "After the strobe of parallel8, when its bits are read, in microseconds", accepts: within(0, 1000)},
		{name: "hold_ms", value: int64(10), doc: "After the strobe of parallel8, how long its bits stand, in milliseconds", accepts: within(1, 1000)},
	}, frameKeys)...)},
	{"boxes", "Sensors that see where the cards lie (rules placement=presence and placement=rfid).", append([]key{
		{name: "protocol", value: "presence", doc: "A switch in each box on a GPIO chip, or RFID readers that send lines such as P1 04A2B3C4D5E680", accepts: oneOf("presence", "rfid")},
		{name: "device", value: "", doc: "The GPIO chip of the switches, or the serial line of the RFID readers; empty for none", accepts: orEmpty(line)},
		{name: "lines", value: []string{}, doc: `The switches, such as "P1=GPIO5"; "shoed lines" tells the wires there are`, accepts: used("P1", "P2", "P3", "B1", "B2", "B3")},
		steadyKey,
	}, slices.Concat(wireKeys, codeKeys, serialKeys(9600))...)},
	{"panel", "The dealer's buttons, and what else has a switch.", append([]key{
		{name: "device", value: "", doc: "The GPIO chip; empty for none", accepts: orEmpty(chip)},
		{name: "lines", value: []string{}, doc: `Buttons start, end, call (for the supervisor), shoe (a new one) and insurance (closes it), the switch bets (on: no more bets), key and lid of the shoe, and cut, the cut card's sensor, such as "call=GPIO6"`,
			accepts: used("start", "end", "call", "shoe", "insurance", "bets", "key", "lid", "cut")},
		steadyKey,
	}, wireKeys...)},
	{"lamps", "Lamps that follow the table, and a buzzer. When the program ends the kernel leaves them as they are: what must be dark then is for the wiring.", []key{
		{name: "device", value: "", doc: "The GPIO chip; empty for none", accepts: orEmpty(chip)},
		{name: "lines", value: []string{}, doc: `Lamps green (deal), amber (wait) and red (paused), a lamp for each box (the card due) and the buzzer, such as "red=GPIO22"`,
			accepts: used("green", "amber", "red", "buzzer", "P1", "P2", "P3", "B1", "B2", "B3")},
		{name: "active", value: "high", doc: "The level at which a lamp is lit", accepts: oneOf("high", "low")},
		{name: "buzzer_ms", value: int64(400), doc: "How long the buzzer sounds when the table needs somebody, in milliseconds", accepts: within(50, 5000)},
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
	line       = accepts{`an absolute path, such as one in /dev/serial/by-id, "usb:VID:PID" or "usb:VID:PID:SERIAL" of an adapter, "tcp://host:port", or "gpio:" and the label of a GPIO chip`, isLine}
	chip       = matching(`^gpio:[ -~]{1,64}$`, `"gpio:" and the label of a GPIO chip, such as "gpio:pinctrl-bcm2711"`)
	wire       = matching(`^[!-<>-~]{1,32}$`, `the name or number of a wire, such as "GPIO20"`)
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

// hexBytes are up to most bytes in hex.
func hexBytes(most int) accepts {
	return matching(fmt.Sprintf("^([0-9A-Fa-f]{2}){1,%d}$", most), fmt.Sprintf("1 to %d bytes in hex", most))
}

// words are some of those there are, with spaces.
func words(all ...string) accepts {
	return accepts{"some of " + strings.Join(all, ", ") + ", with spaces between them", func(v any) bool {
		given := strings.Fields(v.(string))
		return len(given) > 0 && !slices.ContainsFunc(given, func(w string) bool { return !slices.Contains(all, w) })
	}}
}

// used is a wire with its use.
func used(uses ...string) accepts {
	return accepts{`"use=wire", the use ` + strings.Join(uses[:len(uses)-1], ", ") + " or " + uses[len(uses)-1], func(v any) bool {
		use, of, ok := strings.Cut(v.(string), "=")
		return ok && slices.Contains(uses, use) && wire.ok(of)
	}}
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
	return isAbsolute(v.(string)) || usbAdapter.MatchString(v.(string)) || chip.ok(v)
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
