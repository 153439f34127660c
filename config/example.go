package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Example is a configuration file with every key at its default, explained.
func Example() string {
	var b strings.Builder
	comment(&b, "Configuration of shoed. Every value here is the default: keep only the lines that you change.")
	comment(&b, "A variable overrides its key: SHOED_READER_BAUD_RATE=9600, SHOED_MQTT_SERVERS=\"tcp://a:1883,tcp://b:1883\".")
	comment(&b, "A change takes a restart, or where it says so a reload (SIGHUP, or the command config-reload), which has its effect when no round is open.")
	for _, s := range sections {
		if s.name != "" {
			b.WriteByte('\n')
			comment(&b, s.doc)
			fmt.Fprintf(&b, "[%s]\n", s.name)
		}
		for _, k := range s.keys {
			b.WriteByte('\n')
			text := k.doc + "."
			if k.accepts.give != "" {
				text += " Give " + k.accepts.give + "."
			}
			if k.takes != Restart {
				text += " Takes: " + k.takes.String() + "."
			}
			comment(&b, text)
			fmt.Fprintf(&b, "%s = %s\n", k.name, literal(k.value))
		}
	}
	return b.String()
}

// sample is how a key is written, with its default, under its section.
func sample(path string) string {
	k, _ := keyAt(path)
	return lastPart(path) + " = " + literal(k.value)
}

// comment writes text as comment lines of at most 80 characters.
func comment(b *strings.Builder, text string) {
	const width = 80
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// literal writes a value in TOML; for the plain texts of the defaults, Go's
// quotes are TOML's.
func literal(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(v)
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(value)
}
