package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

var rewrite = flag.Bool("rewrite", false, "write the example file anew")

// file writes text as a configuration that only its owner can read.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shoed.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// problems loads what must fail and returns the lines of the error, the path of
// the file shortened to its name.
func problems(t *testing.T, text string, env ...string) []string {
	t.Helper()
	path := file(t, text)
	c, err := Load(path, env)
	var e *Error
	if !errors.As(err, &e) || c != nil || len(e.Problems) == 0 {
		t.Fatalf("%q %v: loaded %v, %v; want problems", text, env, c, err)
	}
	for _, p := range e.Problems {
		if strings.ContainsAny(p.String(), "\n\r") {
			t.Errorf("%q: not one line", p)
		}
	}
	return strings.Split(strings.ReplaceAll(err.Error(), path, "shoed.toml"), "\n")
}

func want(t *testing.T, got []string, wanted ...string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(wanted, "\n  "))
	}
}

func load(t *testing.T, text string, env ...string) *Config {
	t.Helper()
	c, err := Load(file(t, text), env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// goodKey is a public key in base64.
const goodKey = "6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw="

func TestDefaults(t *testing.T) {
	c, err := Load("", []string{"HOME=/root", "shoed_reader_baud_rate=x"})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Rules: []string{},
		Table: Table{Site: "house", ID: "table-1"},
		Reader: Reader{Name: "reader", Protocol: "angel", Device: "/dev/ttyUSB0", BaudRate: 4800, DataBits: 8,
			Parity: "none", StopBits: 1, BufferBytes: 262144, Lines: []string{}, Active: "low", Bias: "up",
			WordBits: 26, SettleUS: 50, HoldMS: 10, Codes: []string{}, Framing: "line", LengthCounts: "payload",
			Checksum: "none", ChecksumForm: "binary", ChecksumCovers: "payload", CodeForm: "text"},
		Boxes: Boxes{Protocol: "presence", Lines: []string{}, SteadyMS: 20, Active: "low", Bias: "up", Codes: []string{},
			BaudRate: 9600, DataBits: 8, Parity: "none", StopBits: 1},
		Panel:   Panel{Lines: []string{}, SteadyMS: 20, Active: "low", Bias: "up"},
		Lamps:   Lamps{Lines: []string{}, Active: "high", BuzzerMS: 400},
		Journal: Journal{Dir: "/var/lib/shoed", MaxAgeDays: 30, MaxBytes: 1000000000},
		MQTT: MQTT{Servers: []string{}, Password: newSecret(""), KeepAliveS: 20, WriteTimeoutMS: 3000, Window: 1,
			Listen: "127.0.0.1:1883", ListenWS: "127.0.0.1:9001"},
		Access:  Access{Users: []string{}, Keys: []string{}, Dual: []string{"void", "manual", "correct"}},
		Control: Control{Socket: "/run/shoed/shoed.sock"},
		Metrics: Metrics{Listen: Off},
		Log:     Log{Level: "info", Format: "auto"},
		places:  map[string]Place{},
	}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("got  %+v\nwant %+v", *c, want)
	}
	if at := c.Where("reader.device").String(); at != "default" {
		t.Errorf("reader.device is from %s", at)
	}
}

func TestExample(t *testing.T) {
	c := load(t, Example())
	defaults, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.places = map[string]Place{}
	if !reflect.DeepEqual(c, defaults) {
		t.Errorf("the example gives %+v\nthe defaults are %+v", c, defaults)
	}
	for i, line := range strings.Split(Example(), "\n") {
		if len(line) > 80 {
			t.Errorf("line %d is longer than 80: %s", i+1, line)
		}
	}
	if *rewrite {
		if err := os.WriteFile("shoed.example.toml", []byte(Example()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile("shoed.example.toml")
	if err != nil || string(golden) != Example() {
		t.Errorf("shoed.example.toml is not what Example returns (%v); run: go test ./config -run Example -rewrite", err)
	}
}

// Each key reaches its own field, from the file and from the environment, so no
// key and no field can be forgotten.
func TestEveryKeyReachesItsField(t *testing.T) {
	own := file(t, "")          // one that nobody else may read
	given := map[string]string{ // one other than the default for each key, as in a variable
		"rules": "decks=6,burn=none", "table.site": "spa", "table.id": "b-2", "table.label": "Bacc 2", "reader.name": "shoe",
		"reader.protocol": "barcode", "reader.device": "gpio:shoe", "reader.baud_rate": "9600", "reader.data_bits": "7",
		"bets_file": "/etc/shoed/bets.csv", "insurance_file": "/etc/shoed/insurance.csv",
		"reader.parity": "even", "reader.stop_bits": "2", "reader.buffer_bytes": "4096",
		"reader.lines": "GPIO20,21", "reader.active": "high", "reader.bias": "down", "reader.word_bits": "34", "reader.settle_us": "51",
		"reader.hold_ms": "11", "reader.codes": "0x1A=As,0xFF=cut", "reader.codes_file": "/etc/shoed/codes.csv",
		"reader.framing": "length", "reader.frame_start": "AA55", "reader.frame_end": "03", "reader.length_counts": "length payload",
		"reader.payload_bytes": "6", "reader.checksum": "crc16_modbus", "reader.checksum_form": "hex", "reader.checksum_order": "high_first",
		"reader.checksum_place": "after_end", "reader.checksum_covers": "length payload", "reader.code_form": "binary", "reader.code_offset": "1", "reader.code_bytes": "4",
		"boxes.protocol": "rfid", "boxes.device": "gpio:layout", "boxes.lines": "P1=BOX_P1,B3=7", "boxes.steady_ms": "21", "boxes.active": "high",
		"boxes.bias": "off", "boxes.codes": "04A2B3C4=As", "boxes.codes_file": "/etc/shoed/tags.csv", "boxes.baud_rate": "19200",
		"boxes.data_bits": "7", "boxes.parity": "odd", "boxes.stop_bits": "2",
		"panel.device": "gpio:panel", "panel.lines": "start=GPIO5,call=GPIO6", "panel.steady_ms": "5", "panel.active": "high", "panel.bias": "as-is",
		"lamps.device": "gpio:lamps", "lamps.lines": "red=1,buzzer=2,P1=3", "lamps.active": "low", "lamps.buzzer_ms": "500",
		"journal.dir": "/j", "journal.max_age_days": "31", "journal.max_bytes": "5000000000",
		"mqtt.servers": "tcp://a:1883,mqtts://b:1884", "mqtt.ca_file": "/ca", "mqtt.cert_file": "/cert", "mqtt.key_file": own,
		"mqtt.server_name": "broker.example.org", "mqtt.user": "u", "mqtt.password": "p", "mqtt.client_id": "c",
		"mqtt.keep_alive_s": "21", "mqtt.write_timeout_ms": "3001", "mqtt.window": "16", "mqtt.listen": "[::1]:0",
		"mqtt.listen_ws": "off", "mqtt.audit": "true", "mqtt.listen_cert_file": "/c", "mqtt.listen_key_file": own, "access.users": "anna=pit,board-1=board",
		"access.keys": "anna=" + goodKey, "access.require_signature": "true", "access.dual": "void",
		"access.password_file": own, "control.socket": "/s", "metrics.listen": "0.0.0.0:9464", "log.level": "debug", "log.format": "json",
	}
	var env []string
	text := ""
	for k := range keys() {
		if k.path == "mqtt.password_file" { // excludes mqtt.password; has its own test
			continue
		}
		v, ok := given[k.path]
		if !ok {
			t.Fatalf("the test knows no value for %s", k.path)
		}
		value, wrong := k.parse(v)
		if wrong != "" || reflect.DeepEqual(value, k.value) {
			t.Fatalf("%s: %s", k.path, wrong)
		}
		env = append(env, k.variable()+"="+v)
		text += k.path + " = " + literal(value) + "\n"
	}
	for from, c := range map[string]*Config{"file": load(t, text), "environment": load(t, "", env...),
		"environment over file": load(t, Example(), env...)} {
		n := 0
		sections := reflect.ValueOf(*c)
		for i := range sections.NumField() {
			s := sections.Type().Field(i)
			if !s.IsExported() || s.Name == "Spares" { // which have their own test
				continue
			}
			if s.Type.Kind() != reflect.Struct {
				n++
				field(t, from, s.Tag.Get("mapstructure"), sections.Field(i), given)
				continue
			}
			for j := range sections.Field(i).NumField() {
				f := s.Type.Field(j)
				if s.Name == "MQTT" && f.Name == "PasswordFile" {
					continue
				}
				n++
				name := f.Tag.Get("mapstructure")
				if name == "-" {
					name = "password"
				}
				field(t, from, s.Tag.Get("mapstructure")+"."+name, sections.Field(i).Field(j), given)
			}
		}
		if n != len(given) {
			t.Errorf("%s: %d fields for %d keys", from, n, len(given))
		}
	}
}

func field(t *testing.T, from, path string, v reflect.Value, given map[string]string) {
	t.Helper()
	got := fmt.Sprint(v.Interface())
	switch value := v.Interface().(type) {
	case Secret:
		got = value.Reveal()
	case []string:
		got = strings.Join(value, ",")
	}
	if got != given[path] {
		t.Errorf("%s: %s is %q, want %q", from, path, got, given[path])
	}
}

func TestTypos(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[reader]\nbaudrate = 9600", "2:1: reader.baudrate: no such key; did you mean reader.baud_rate?"},
		{"[reader]\n  Baud_Rate = 9600", "2:3: reader.Baud_Rate: no such key; did you mean reader.baud_rate?"},
		{"[reader]\nbaud-rate = 9600", "2:1: reader.baud-rate: no such key; did you mean reader.baud_rate?"},
		{"[reader]\n\n# x\nprotocoll = 'angel'", "4:1: reader.protocoll: no such key; did you mean reader.protocol?"},
		{"[raeder]\nname = 'x'", "1:2: raeder: no such section; did you mean reader?"},
		{"[ serail ]\nname = 'x'", "1:3: serail: no such section; remove it, or see the example for the names there are"},
		{"raeder.name = 'x'", "1:1: raeder.name: no such key; did you mean reader.name?"},
		{"mqqt = {}", "1:1: mqqt: no such key; did you mean mqtt?"},
		{"mqtt = { server = [] }", "1:10: mqtt.server: no such key; did you mean mqtt.servers?"},
		{"[mqtt]\nkeepalive_s = 5", "2:1: mqtt.keepalive_s: no such key; did you mean mqtt.keep_alive_s?"},
		{"[mqtt]\nwrite_timeout = 5", "2:1: mqtt.write_timeout: no such key; did you mean mqtt.write_timeout_ms?"},
		{"[mqtt]\npasswort_file = '/x'", "2:1: mqtt.passwort_file: no such key; did you mean mqtt.password_file?"},
		{"[journal]\r\ndirectory = '/x'\r\n", "2:1: journal.directory: no such key; remove it, or see the example for the names there are"},
		{"[journal]\nmax_age_day = 3", "2:1: journal.max_age_day: no such key; did you mean journal.max_age_days?"},
		{"[log]\nlevle = 'info'", "2:1: log.levle: no such key; did you mean log.level?"},
		{"[control]\nsock = '/x'", "2:1: control.sock: no such key; did you mean control.socket?"},
		{"[table]\nrules = []", "2:1: table.rules: no such key; did you mean rules?"},
		{"[reader]\nservers = []", "2:1: reader.servers: no such key; did you mean mqtt.servers?"},
		{"site = 'x'", "1:1: site: no such key; did you mean table.site?"},
		{"\"reader.name\" = 'x'", `1:1: "reader.name": no such key; did you mean reader.name?`},
		{"\ufeffrule = []", "1:1: rule: no such key; did you mean rules?"},
		{"[reader.line]\nx = 1", "1:2: reader.line: no such section; did you mean reader.lines?"},
		{"[reader.name]\nx = 1", `1:2: reader.name: is a single setting, not a section; write name = "reader"`},
		{"[rules]\ndecks = 8", "1:2: rules: is a single setting, not a section; write rules = []"},
		{"[[log]]\nlevel = 'info'", "1:3: log: is given as a list of sections; write [log]"},
		{"reader = 5", "1:1: reader: is a section, not a single setting; write [reader] on a line of its own"},
	} {
		want(t, problems(t, c.text), "shoed.toml:"+c.want)
	}
}

func TestTypes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[reader]\nbaud_rate = \"4800\"", "2:13: reader.baud_rate: is a string and should be a whole number; write such as baud_rate = 4800"},
		{"[reader]\nbaud_rate=4800.0", "2:11: reader.baud_rate: is a fraction and should be a whole number; write such as baud_rate = 4800"},
		{"[table]\nid = 12", `2:6: table.id: is a whole number and should be a string; write such as id = "table-1"`},
		{"[table]\nid = {a = 1}", `2:6: table.id: is a section and should be a string; write such as id = "table-1"`},
		{"[table]\nlabel = 2020-01-01", `2:9: table.label: is a date and should be a string; write such as label = ""`},
		{"rules = 'decks=8'", "1:9: rules: is a string and should be a list of strings; write such as rules = []"},
		{"rules = ['decks=8',\n 8]", "2:2: rules[1]: is a whole number and should be a string; put it in quotes"},
		{"rules = [[1]]", "1:9: rules[0]: is a list of strings and should be a string; put it in quotes"},
		{"[reader]\nbaud_rate = 99999999999999999999", "2:13: reader.baud_rate: decimal number is too large to fit in a 64-bit signed integer; see the example for how it is written"},
		{"[mqtt]\npassword = 12345", `2:12: mqtt.password: is a whole number and should be a string; write such as password = ""`},
	} {
		want(t, problems(t, c.text), "shoed.toml:"+c.want)
	}
}

func TestDuplicates(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[table]\nid = 'a'\nsite = 'b'\nid = 'c'", "4:1: table.id: given twice (first at 2:1); keep one"},
		{"[table]\nid = 'a'\n[log]\n[table]\nsite = 'b'", "4:2: table: given twice (first at 1:2); keep one"},
		{"table.id = 'a'\ntable = {site = 'b'}", "2:1: : toml"},
		{"[table]\nid = 'a'\n\"id\" = 'c'", "3:1: table.id: given twice (first at 2:1); keep one"},
	} {
		got := problems(t, c.text)
		if prefix, ok := strings.CutSuffix(c.want, ": : toml"); ok { // in the library's words
			if len(got) != 1 || !strings.HasPrefix(got[0], "shoed.toml:"+prefix+": ") {
				t.Errorf("%q: got %q", c.text, got)
			}
			continue
		}
		want(t, got, "shoed.toml:"+c.want)
	}
	want(t, problems(t, "[table]\nid = 'a'\n[table]\nsitte = 'b'"), // the second one's pairs are checked too
		"shoed.toml:3:2: table: given twice (first at 1:2); keep one",
		"shoed.toml:4:1: table.sitte: no such key; did you mean table.site?")
	// By case: viper would let the second win.
	want(t, problems(t, "[table]\nid = 'a'\nID = 'b'\n[Table]\nid = 'c'\n"),
		"shoed.toml:3:1: table.ID: given twice, the other time as table.id: names are lower case (first at 2:1); keep one",
		"shoed.toml:4:2: Table: given twice, the other time as table: names are lower case (first at 1:2); keep one")
}

func TestSyntax(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[table]\nid = ", "2:5: "},
		{"[table]\nid = 'a", "2:"},
		{"[table\n", "1:"},
		{"x", "1:"},
		{"[table]\nid = 'a' 'b'", "2:10: "},
		{"id = \"\xff\"", "1:"},
		{"\x00", "1:1: "},
	} {
		got := problems(t, c.text)
		if len(got) != 1 || !strings.HasPrefix(got[0], "shoed.toml:"+c.want) || !strings.HasSuffix(got[0], "; see the example for how it is written") {
			t.Errorf("%q: got %q, want it at %s", c.text, got, c.want)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	// First names and types, in the file and in the environment ...
	want(t, problems(t, "rulez = []\n[reader]\nbaud_rate = 'x'\nparity = 'mark'\nbaudrate = 1\n[raeder]\n[table]\nid = 5\nid = 'x'\ny = ?",
		"SHOED_MQTT_WINDOW=two", "SHOED_LOG_LEVLE=info"),
		"shoed.toml:1:1: rulez: no such key; did you mean rules?",
		"shoed.toml:3:13: reader.baud_rate: is a string and should be a whole number; write such as baud_rate = 4800",
		"shoed.toml:5:1: reader.baudrate: no such key; did you mean reader.baud_rate?",
		"shoed.toml:6:2: raeder: no such section; did you mean reader?",
		"shoed.toml:8:6: table.id: is a whole number and should be a string; write such as id = \"table-1\"",
		"shoed.toml:9:1: table.id: given twice (first at 8:1); keep one",
		"shoed.toml:10:5: unexpected character U+003F '?' at start of value; see the example for how it is written",
		"SHOED_LOG_LEVLE: no such setting; did you mean SHOED_LOG_LEVEL?",
		`SHOED_MQTT_WINDOW: mqtt.window: "two" is not a whole number; give such as 1`)
	// ... then the values.
	want(t, problems(t, "[reader]\nbaud_rate = 12\nparity = 'mark'\n[mqtt]\nuser = 'u'\nlisten_ws = '127.0.0.1:1883'\nservers = ['tcp://a:1883',\n  'http://b']",
		"SHOED_MQTT_WINDOW=17", "SHOED_JOURNAL_DIR=here"),
		"shoed.toml:2:13: reader.baud_rate: 12 is not allowed; give 300 to 4000000",
		`shoed.toml:3:10: reader.parity: "mark" is not allowed; give "none", "even" or "odd"`,
		`shoed.toml:6:13: mqtt.listen_ws: is the same address as mqtt.listen; give another port, or "off"`,
		`shoed.toml:8:3: mqtt.servers[1]: this value is not allowed; give `+server.give,
		`SHOED_JOURNAL_DIR: journal.dir: "here" is not allowed; give an absolute path`,
		"SHOED_MQTT_WINDOW: mqtt.window: 17 is not allowed; give 1 to 16")
}

func TestValues(t *testing.T) {
	long := strings.Repeat("x", 200)
	for path, c := range map[string]struct{ good, bad []any }{
		"table.site":            {[]any{"a", "0", "a-", strings.Repeat("x", 32)}, []any{"", "-a", "A", "a b", "a/b", "a+", "ä", "a\n", strings.Repeat("x", 33)}},
		"table.id":              {[]any{"table-1"}, []any{"", "#"}},
		"table.label":           {[]any{"", "Bacc 2", "ä€"}, []any{"a\tb", "\x1b[31m", long, "\xff"}},
		"reader.name":           {[]any{"reader-2"}, []any{"", "journal"}},
		"reader.protocol":       {[]any{"angel"}, []any{""}},
		"reader.device":         {[]any{"/dev/serial/by-id/usb-FTDI_A-if00", "usb:0403:6001", "usb:0403:6001:A5 02/8:5", "tcp://moxa-3.example:4001", "tcp:10.0.0.9:4001", "tcp://[fe80::1%eth0]:4001"}, []any{"", "ttyUSB0", "/dev/x\x00", "usb:403:6001", "usb:0403:6001:", "tcp://moxa", "tcp://:4001", "tcp://moxa:0", "tcp://moxa:65536", "tcp://moxa/x:4001", "tcp://u@moxa:4001", "moxa:4001", "http://moxa:4001"}},
		"reader.baud_rate":      {[]any{int64(300), int64(4000000)}, []any{int64(299), int64(4000001), int64(-4800)}},
		"reader.data_bits":      {[]any{int64(5), int64(8)}, []any{int64(4), int64(9)}},
		"reader.parity":         {[]any{"none", "even", "odd"}, []any{"", "None", "mark"}},
		"reader.stop_bits":      {[]any{int64(1), int64(2)}, []any{int64(0), int64(3)}},
		"reader.buffer_bytes":   {[]any{int64(4096), int64(16777216)}, []any{int64(0), int64(4095), int64(16777217)}},
		"journal.dir":           {[]any{"/"}, []any{"", "."}},
		"journal.max_age_days":  {[]any{int64(1), int64(3650)}, []any{int64(0), int64(3651)}},
		"journal.max_bytes":     {[]any{int64(50000000), int64(1000000000000)}, []any{int64(49999999), int64(1000000000001)}},
		"mqtt.servers":          {[]any{"tcp://b:1883", "mqtts://10.0.0.1:8883", "ssl://b:8883", "ws://b:9001", "wss://b:443/mqtt", "tcp://[::1]:1883"}, []any{"b", "b:1883", "tcp://b", "tcp://b:0", "tcp://b:65536", "tcp://:1883", "http://b:80", "tcp://u:p@b:1883", "tcp://b:1883/x", "tcp://b:1883?x=1", "tcp://b:1883#x", "tcp://b:x", "%"}},
		"mqtt.user":             {[]any{"", "u"}, []any{long, "u\n"}},
		"mqtt.client_id":        {[]any{"", "a.B_1-"}, []any{"a/b", long}},
		"mqtt.password_file":    {[]any{"", "/x", "credential:mqtt.password"}, []any{"x", "credential:", "credential:../x", "credential:a/b", "credential:.."}},
		"mqtt.ca_file":          {[]any{"", "/x"}, []any{"x"}},
		"mqtt.cert_file":        {[]any{"", "/x"}, []any{"x"}},
		"mqtt.key_file":         {[]any{"", "/x"}, []any{"x", "credential:x"}},
		"mqtt.server_name":      {[]any{"", "a.example.org", "10.0.0.1", "fe80::1"}, []any{"a b", "https://a", "*"}},
		"mqtt.keep_alive_s":     {[]any{int64(5), int64(3600)}, []any{int64(4), int64(3601)}},
		"mqtt.write_timeout_ms": {[]any{int64(100), int64(60000)}, []any{int64(99), int64(60001)}},
		"mqtt.window":           {[]any{int64(1), int64(16)}, []any{int64(0), int64(17)}},
		"mqtt.listen":           {[]any{"off", "127.0.0.1:0", "127.9.9.9:1883", "localhost:1", "[::1]:65535", "0.0.0.0:1883", "192.168.1.5:1883", "[::]:1883"}, []any{"", ":1883", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:mqtt", "Off", "example.org:1883"}},
		"mqtt.listen_ws":        {[]any{"off", "0.0.0.0:9001"}, []any{"9001"}},
		"mqtt.listen_cert_file": {[]any{"", "/x"}, []any{"x"}},
		"mqtt.listen_key_file":  {[]any{"", "/x"}, []any{"x"}},
		"access.keys":           {[]any{"anna=" + goodKey}, []any{"", "anna", "anna=", "=" + goodKey, "Anna=" + goodKey, "anna=" + goodKey + "=", "anna=" + goodKey[1:]}},
		"access.dual":           {[]any{"void", "hold_card", "config-reload"}, []any{"", "Void", "void,manual", "-", long}},
		"access.users":          {[]any{"anna=pit", "board-1=board", "c=surveillance", "7=floor", "t=tech"}, []any{"", "anna", "anna=", "anna=Pit", "Anna=pit", "-a=pit", "anna=table", "anna=pit=pit", long + "=pit", "a+=pit", "anna=pit\n"}},
		"access.password_file":  {[]any{"", "/x"}, []any{"x"}},
		"metrics.listen":        {[]any{"off", "127.0.0.1:0", "0.0.0.0:9464", "[::]:9464"}, []any{"", ":9464", "9464", "127.0.0.1:x"}},
		"control.socket":        {[]any{"/" + strings.Repeat("x", 106)}, []any{"x", "/" + strings.Repeat("x", 107)}},
		"log.level":             {[]any{"debug", "info", "warn", "error"}, []any{"", "trace", "INFO"}},
		"log.format":            {[]any{"auto", "text", "json"}, []any{"xml"}},
	} {
		k, ok := keyAt(path)
		if !ok {
			t.Fatalf("no key %s", path)
		}
		for _, v := range c.good {
			if !k.accepts.ok(v) {
				t.Errorf("%s: %#v refused", path, v)
			}
		}
		for _, v := range c.bad {
			if k.accepts.ok(v) {
				t.Errorf("%s: %#v accepted", path, v)
			}
		}
	}
}

func TestAccess(t *testing.T) {
	dir := t.TempDir()
	kept, shared := filepath.Join(dir, "kept"), filepath.Join(dir, "shared")
	for path, mode := range map[string]os.FileMode{kept: 0o600, shared: 0o644} {
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	const open = "mqtt.listen = '0.0.0.0:1883'\n"
	for _, c := range []struct{ text, want string }{
		{open, `1:15: mqtt.listen: "0.0.0.0:1883" can be reached by others, so everybody must be asked who he is; give access.users, or a loopback address`},
		{"mqtt.listen_ws = '[::]:9001'", `1:18: mqtt.listen_ws: "[::]:9001" can be reached by others, so everybody must be asked who he is; give access.users, or a loopback address`},
		{open + "access.users = ['a=pit']", "2:16: access.users: the broker inside shoed asks them for passwords; give access.password_file"},
		{"access.users = ['a=pit']", "1:16: access.users: the broker inside shoed asks them for passwords; give access.password_file"},
		{"access.password_file = '" + kept + "'", "1:24: access.password_file: nobody has a role; give access.users"},
		{"[access]\nusers = ['a=pit', 'b=board',\n 'a=tech']\npassword_file = '" + kept + "'", `3:2: access.users[2]: "a" is there twice, or is the table itself; give another name`},
		{"[access]\nusers = ['table-1=pit']\npassword_file = '" + kept + "'", `2:10: access.users[0]: "table-1" is there twice, or is the table itself; give another name`},
		{"[access]\nusers = ['a=pit']\npassword_file = '" + shared + "'", "3:17: access.password_file: " + shared + " has mode 0644, so others can read or change it; run: chmod go= " + shared},
		{"[access]\nusers = ['a=pit']\npassword_file = '" + dir + "/none'", "3:17: access.password_file: stat " + dir + "/none: no such file or directory; create it"},
		{"access.keys = ['anna=" + goodKey + "']", `1:16: access.keys[0]: "anna" is no user; name it in access.users`},
		{"access.require_signature = true", "1:28: access.require_signature: nobody has a key, so nobody could command over the broker; give access.keys"},
		{"mqtt.audit = true", "1:14: mqtt.audit: the broker inside shoed asks nobody, so anybody on this machine could read what the table has not shown; give access.users"},
		{"mqtt.listen_cert_file = '/c'", "1:25: mqtt.listen_cert_file: a certificate and its key go together; give listen_cert_file and listen_key_file"},
		{"[mqtt]\nlisten_cert_file = '/c'\nlisten_key_file = '" + shared + "'", "3:19: mqtt.listen_key_file: " + shared + " has mode 0644, so others can read or change it; run: chmod go= " + shared},
	} {
		want(t, problems(t, c.text), "shoed.toml:"+c.want)
	}
	for _, text := range []string{
		open + "[access]\nusers = ['a=pit', 'b=board']\npassword_file = '" + kept + "'",
		open + "mqtt.servers = ['tcp://a:1883']\nmqtt.audit = true",
		"mqtt.servers = ['tcp://a:1883']\naccess.users = ['a=pit']",
	} {
		load(t, text)
	}
}

func TestEnvironment(t *testing.T) {
	c := load(t, "[mqtt]\nservers = ['tcp://file:1883']\n[reader]\nbaud_rate = 9600\n",
		"SHOED_MQTT_SERVERS= tcp://a:1883 ,mqtt://b:8883,", "SHOED_READER_BAUD_RATE=1200", "SHOED_READER_BAUD_RATE=19200", "SHOED", "PATH=/bin")
	if !slices.Equal(c.MQTT.Servers, []string{"tcp://a:1883", "mqtt://b:8883"}) || c.Reader.BaudRate != 19200 {
		t.Errorf("%+v", c)
	}
	if at := c.Where("mqtt.servers[1]").String(); at != "SHOED_MQTT_SERVERS" {
		t.Error(at)
	}
	if c := load(t, "rules = ['x=1']", "SHOED_RULES="); len(c.Rules) != 0 {
		t.Errorf("an empty variable leaves %v", c.Rules)
	}
	want(t, problems(t, "", "SHOED_READER_BAUD_RATE=abc", "SHOED_READER_DATA_BITS=", "SHOED_READER_STOP_BITS=1.0", "SHOED_JOURNAL_MAX_BYTES=99999999999999999999",
		"SHOED_READER_BAUDRATE=1", "SHOED_reader_name=x", "SHOED_XYZZY=1"),
		`SHOED_JOURNAL_MAX_BYTES: journal.max_bytes: "99999999999999999999" is not a whole number; give such as 1000000000`,
		"SHOED_READER_BAUDRATE: no such setting; did you mean SHOED_READER_BAUD_RATE?",
		`SHOED_READER_BAUD_RATE: reader.baud_rate: "abc" is not a whole number; give such as 4800`,
		`SHOED_READER_DATA_BITS: reader.data_bits: "" is not a whole number; give such as 8`,
		`SHOED_READER_STOP_BITS: reader.stop_bits: "1.0" is not a whole number; give such as 1`,
		"SHOED_XYZZY: no such setting; unset it",
		"SHOED_reader_name: no such setting; did you mean SHOED_READER_NAME?")
}

func TestWhere(t *testing.T) {
	path := file(t, "rules = [\"decks=8\", # all of them\n  'burn=first_card' ]\nreader = { device = '/dev/ttyACM0' }\n[log]\n  level\t=\t\"warn\"")
	c, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, at := range map[string]string{"rules": "1:9", "rules[0]": "1:10", "rules[1]": "2:3", "reader.device": "3:21", "log.level": "5:11"} {
		if got := c.Where(key).String(); got != path+":"+at {
			t.Errorf("%s is at %s, want %s", key, got, at)
		}
	}
	p := Problem{c.Where("rules[1]"), "rules[1]", "no such rule; remove it"}
	if got := p.String(); got != path+":2:3: rules[1]: no such rule; remove it" {
		t.Error(got)
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "none.toml"): "no such file",
		dir:                             "is a directory",
		file(t, strings.Repeat("# so it goes\n", 6000)): "larger than",
	} {
		if c, err := Load(path, nil); c != nil || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

func TestPasswordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	text := "[mqtt]\nuser = 'u'\npassword_file = '" + path + "'"
	const at = "shoed.toml:3:17: mqtt.password_file: "
	want(t, problems(t, text), at+"stat "+path+": no such file or directory; create it")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, content := range []string{"hunter2", "hunter2\n", "hunter2\r\n"} {
		write(content, 0o400)
		if c := load(t, text); c.MQTT.Password.Reveal() != "hunter2" {
			t.Errorf("%q read as %q", content, c.MQTT.Password.Reveal())
		}
	}
	write("hunter2", 0o604)
	want(t, problems(t, text), at+path+" has mode 0604, so others can read or change it; run: chmod go= "+path)
	write("hunter2", 0o620)
	want(t, problems(t, text), at+path+" has mode 0620, so others can read or change it; run: chmod go= "+path)

	// Readable by its group: only if root owns it.
	write("hunter2", 0o640)
	if os.Geteuid() == 0 {
		load(t, text)
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	want(t, problems(t, text), at+path+" has mode 0640, so others can read or change it; run: chmod go= "+path)

	for _, content := range []string{"", "\n", "two\nlines", "a\x00b", strings.Repeat("x", 4097)} {
		write(content, 0o600)
		want(t, problems(t, text), at+path+" does not hold one line of 1 to 4096 bytes; write the password alone into it")
	}
	write("hunter2", 0o600)
	want(t, problems(t, text+"\npassword = 'x'"), at+"mqtt.password is given too; remove one of them")
	want(t, problems(t, "mqtt.password_file = '"+path+"'"), "shoed.toml:1:22: mqtt.password_file: MQTT knows no password without a user; give mqtt.user too")
	want(t, problems(t, "[mqtt]\nuser = 'u'\npassword_file = '/dev/null'"), at+"/dev/null is no regular file; give one")
}

func TestCredential(t *testing.T) {
	const text = "[mqtt]\nuser = 'u'\npassword_file = 'credential:mqtt'"
	const at = "shoed.toml:3:17: mqtt.password_file: "
	want(t, problems(t, text), at+"CREDENTIALS_DIRECTORY is not set: no systemd service was given the credential; put LoadCredential=mqtt:FILE into its unit")
	dir := t.TempDir()
	want(t, problems(t, text, "CREDENTIALS_DIRECTORY="+dir), at+"stat "+dir+"/mqtt: no such file or directory; create it")
	if err := os.WriteFile(filepath.Join(dir, "mqtt"), []byte("hunter2"), 0o400); err != nil {
		t.Fatal(err)
	}
	if c := load(t, text, "CREDENTIALS_DIRECTORY="+dir); c.MQTT.Password.Reveal() != "hunter2" {
		t.Errorf("read as %q", c.MQTT.Password.Reveal())
	}
}

func TestTLSFiles(t *testing.T) {
	const without = "no address in mqtt.servers uses TLS; write mqtts:// or wss:// there, or remove this"
	want(t, problems(t, "[mqtt]\nservers = ['mqtt://b:1883']\nca_file = '/ca'\nserver_name = 'b'"),
		"shoed.toml:3:11: mqtt.ca_file: "+without, "shoed.toml:4:15: mqtt.server_name: "+without)
	const tls = "[mqtt]\nservers = ['mqtt://b:1883', 'wss://b:443']\n"
	load(t, tls+"ca_file = '/ca'")
	want(t, problems(t, tls+"cert_file = '/cert'"), "shoed.toml:3:13: mqtt.cert_file: is of no use without its key; give mqtt.key_file too")
	want(t, problems(t, tls+"key_file = '/key'"), "shoed.toml:3:12: mqtt.key_file: is of no use without its certificate; give mqtt.cert_file too")
	key := file(t, "")
	pair := tls + "cert_file = '/cert'\nkey_file = '" + key + "'"
	load(t, pair)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	path := file(t, pair)
	if _, err := Load(path, nil); err == nil || err.Error() != path+":4:12: mqtt.key_file: "+key+" has mode 0644, so others can read or change it; run: chmod go= "+key {
		t.Error(err)
	}
}

func TestPasswordInTheFile(t *testing.T) {
	path := file(t, "[mqtt]\nuser = 'u'\npassword = 'hunter2'")
	if c, err := Load(path, nil); err != nil || c.MQTT.Password.Reveal() != "hunter2" {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path, nil)
	if err == nil || err.Error() != path+":3:12: mqtt.password: "+path+" has mode 0644, so others can read or change it; run: chmod go= "+path+"; or use mqtt.password_file" {
		t.Error(err)
	}
	if c := load(t, "", "SHOED_MQTT_USER=u", "SHOED_MQTT_PASSWORD=hunter2"); c.MQTT.Password.Reveal() != "hunter2" {
		t.Error("not from the environment")
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	const password = "hunter2"
	c := load(t, "[mqtt]\nuser = 'u'\npassword = '"+password+"'")
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		shown = append(shown, fmt.Sprintf(verb, c.MQTT.Password), fmt.Sprintf(verb, *c), fmt.Sprintf(verb, c), fmt.Sprintf(verb, c.MQTT),
			fmt.Sprintf(verb, struct{ kept Config }{*c})) // fmt asks no methods of unexported fields
	}
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, toml.Marshal} {
		b, err := marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), hidden) {
			t.Errorf("%s: does not say %s", b, hidden)
		}
		shown = append(shown, string(b))
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "password", c.MQTT.Password)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "password", c.MQTT.Password)
	for _, s := range append(shown, log.String()) {
		if strings.Contains(s, password) || strings.Contains(s, fmt.Sprintf("%x", password)) {
			t.Errorf("shows the password: %s", s)
		}
	}
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", *c), fmt.Sprintf("%#v", *c), fmt.Sprint(Secret{})} {
		if !strings.Contains(s, hidden) {
			t.Errorf("%s: does not say %s", s, hidden)
		}
	}
	if (Secret{}).Reveal() != "" {
		t.Error("the zero Secret is not empty")
	}
	// Nor by problems: a password in a server address, of a wrong type, in a broken line.
	for _, text := range []string{"mqtt.servers = ['tcp://u:hunter2@b:1883']", "mqtt.password = ['hunter2']", "mqtt.password = 'hunter2' x", "mqtt.password = 'hunter2"} {
		for _, p := range problems(t, text) {
			if strings.Contains(p, password) {
				t.Errorf("shows the password: %s", p)
			}
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(Example(), "SHOED_MQTT_SERVERS=tcp://a:1883")
	for _, text := range []string{"", "[reader]\nbaud_rate = 'x'", "reader = {name = 'x', name.y = 1}", "[[a]]\n[a.b]\n", "rules = [[[{}]], 1, \"é\"]",
		"[table]\nid = '''\nx'''\nID = \"\\u0000\"", "\"a.b\".'c d' = 1e9\r\n# \xff", "a.b.c = {d = {e = [{}]}}", "[a]\n[a]\n[A]"} {
		f.Add(text, "SHOED_X")
	}
	path := filepath.Join(f.TempDir(), "shoed.toml")
	f.Fuzz(func(t *testing.T, text, variable string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path, []string{variable})
		var e *Error
		switch {
		case (c == nil) == (err == nil):
			t.Fatalf("%v, %v", c, err)
		case err == nil:
			// What was accepted is good TOML with known names only.
			var all map[string]any
			if err := toml.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &all); err != nil {
				t.Fatal(err)
			}
			known(t, "", all)
		case errors.As(err, &e):
			lines := strings.Count(text, "\n") + 1
			for _, p := range e.Problems {
				if p.Text == "" || p.Variable == "" && (p.Line < 1 || p.Line > lines || p.Column < 1) {
					t.Fatalf("%+v", p)
				}
			}
		case len(text) <= maxFileBytes:
			t.Fatal(err)
		}
	})
}

func known(t *testing.T, under string, all map[string]any) {
	for name, value := range all {
		if inner, ok := value.(map[string]any); ok && isSection(under+name) {
			known(t, name+".", inner)
		} else if _, ok := keyAt(under + name); !ok {
			t.Fatalf("%s was accepted", under+name)
		}
	}
}

// A wrong value is said beside a wrong name and a wrong type, not after them.
func TestValuesBesideNames(t *testing.T) {
	want(t, problems(t, "[reader]\ndevise = \"/dev/x\"\nbaud_rate = \"fast\"\nparity = \"mark\"\n[log]\nlevel = \"loud\"\n"),
		"shoed.toml:2:1: reader.devise: no such key; did you mean reader.device?",
		"shoed.toml:3:13: reader.baud_rate: is a string and should be a whole number; write such as baud_rate = 4800",
		`shoed.toml:4:10: reader.parity: "mark" is not allowed; give "none", "even" or "odd"`,
		`shoed.toml:6:9: log.level: "loud" is not allowed; give "debug", "info", "warn" or "error"`)
}
