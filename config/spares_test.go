package config

import (
	"reflect"
	"strings"
	"testing"
)

const twoReaders = `[[reader]]
name = "shoe-1"
device = "/dev/ttyUSB0"
[table]
id = "b-2"
[[reader]]
name = "shoe-2"
device = "tcp://10.0.0.7:4001"
baud_rate = 9600
`

func TestSpares(t *testing.T) {
	c := load(t, twoReaders, "SHOED_READER_BAUD_RATE=2400")
	if c.Reader.Name != "shoe-1" || c.Reader.BaudRate != 2400 || c.Table.ID != "b-2" {
		t.Errorf("the first: %+v, table %+v", c.Reader, c.Table)
	}
	want := Reader{Name: "shoe-2", Protocol: "angel", Device: "tcp://10.0.0.7:4001", BaudRate: 9600, DataBits: 8, Parity: "none", StopBits: 1, BufferBytes: 262144,
		Lines: []string{}, Active: "low", Bias: "up", WordBits: 26, SettleUS: 50, HoldMS: 10, Codes: []string{},
		Framing: "line", LengthCounts: "payload", Checksum: "none", ChecksumForm: "binary", ChecksumCovers: "payload", CodeForm: "text"}
	if !reflect.DeepEqual(c.Spares, []Reader{want}) {
		t.Errorf("the other: %+v", c.Spares)
	}
	shown := ""
	for _, s := range c.Settings() {
		shown += s.String() + " # " + s.Where.String() + "\n"
	}
	for _, line := range []string{`reader.name = "shoe-1"`, "reader[1].baud_rate = 9600", `reader[1].parity = "none" # default`} {
		if !strings.Contains(shown, line) {
			t.Errorf("%s is not among the settings", line)
		}
	}
	next := load(t, strings.Replace(twoReaders, "9600", "4800", 1))
	if _, _, restart := c.Reload(next); !strings.Contains(strings.Join(restart, " "), "the other readers") {
		t.Errorf("another reader needs a restart: %v", restart)
	}
	if one := load(t, "[[reader]]\nname = 'x'"); one.Reader.Name != "x" || len(one.Spares) != 0 {
		t.Errorf("one in a list: %+v", one.Reader)
	}
}

func TestSparesRefuse(t *testing.T) {
	for text, wanted := range map[string]string{
		"[[reader]]\nname = 'a'\n[[reader]]\nname = 'a'":                 `4:8: reader[1].name: "a" is the name of reader too; give each its own`,
		"[[reader]]\nname = 'a'\n[[reader]]":                             "",
		"[[reader]]\n[[reader]]":                                         `default: reader[1].name: "reader" is the name of reader too; give each its own`,
		"[[reader]]\n[[reader]]\nname = 'b'\nbaud_rate = 5":              "4:13: reader[1].baud_rate: 5 is not allowed; give 300 to 4000000",
		"[[reader]]\n[[reader]]\nname = 'b'\nbaud_rate = 'x'":            "4:13: reader[1].baud_rate: is a string and should be a whole number; write such as baud_rate = 4800",
		"[[reader]]\n[[reader]]\nname = 'b'\nbaud_rat = 9600":            "4:1: reader[1].baud_rat: no such key; did you mean reader.baud_rate?",
		"[[reader]]\nname = 'a'\nname = 'c'\n[[reader]]\nname = 'b'":     "3:1: reader.name: given twice (first at 2:1); keep one",
		"[[reader]]\n[[reader]]\nname = 'b'\ndevice = 1\nprotocol = 'A'": "",
	} {
		c, err := Load(file(t, text), nil)
		switch {
		case wanted == "" && strings.Contains(text, "'A'"): // two at once
			if err == nil || strings.Count(err.Error(), "\n") < 1 && !strings.Contains(err.Error(), "reader[1].device") {
				t.Errorf("%q: %v", text, err)
			}
		case wanted == "":
			if err != nil || len(c.Spares) != 1 {
				t.Errorf("%q: %v", text, err)
			}
		case err == nil || !strings.Contains(err.Error(), wanted):
			t.Errorf("%q: %v, want %s", text, err, wanted)
		}
	}
}
