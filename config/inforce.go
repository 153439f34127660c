package config

import (
	"reflect"
	"strings"
)

// Setting is one key with the value in force.
type Setting struct {
	Key   string // such as "reader.baud_rate"
	Value any    // a secret that was given is a Secret, which does not print
	Where Place
	Takes Takes
}

// Settings are all there are, in the order of the file.
func (c *Config) Settings() []Setting {
	var all []Setting
	for k := range keys() {
		s := Setting{k.path, c.field(k.path).Interface(), c.Where(k.path), k.takes}
		if _, secret := s.Value.(Secret); secret && s.Where == (Place{}) {
			s.Value = "" // not given here
		}
		all = append(all, s)
	}
	return append(all, c.spareSettings()...)
}

// String is the setting as the file has it, "key = value".
func (s Setting) String() string {
	if _, secret := s.Value.(Secret); secret {
		return s.Key + " = " + literal(hidden)
	}
	return s.Key + " = " + literal(s.Value)
}

// Reload gives what is in force when c is and next has been read: of next what
// takes no restart. applied are the keys that this changes, restart those that
// differ and stay as they are.
func (c *Config) Reload(next *Config) (inForce *Config, applied, restart []string) {
	merged := *c
	merged.places = next.places
	for k := range keys() {
		from, to := next.field(k.path), merged.field(k.path)
		switch {
		case same(from, to):
		case k.takes == Restart || c.tied(k, next):
			restart = append(restart, k.path)
		default:
			to.Set(from)
			applied = append(applied, k.path)
		}
	}
	if !reflect.DeepEqual(c.Spares, next.Spares) {
		restart = append(restart, "the other readers")
	}
	return &merged, applied, restart
}

// tied tells whether a key must wait for others that take a restart, for only
// with those it was checked: users for the broker, rules for the reader and what
// tells of the table beside it.
func (c *Config) tied(k key, next *Config) bool {
	return strings.HasPrefix(k.path, "access.") && c.asks() != next.asks() ||
		k.takes == NextShoe && !reflect.DeepEqual(c.tells(), next.tells())
}

// tells is what tells of the table.
func (c *Config) tells() []any {
	return []any{c.Reader.Protocol, c.Boxes.Protocol, c.Boxes.Device, c.Panel.Device, c.Panel.Lines}
}

// asks is who asks users for their passwords: a broker elsewhere, the one inside
// shoed, or nobody. Listeners and the table's own login depend on it.
func (c *Config) asks() string {
	switch {
	case len(c.MQTT.Servers) > 0:
		return "elsewhere"
	case len(c.Access.Users) > 0:
		return "inside"
	}
	return "nobody"
}

// field is the one that a key fills.
func (c *Config) field(path string) reflect.Value {
	v := reflect.ValueOf(c).Elem()
	for name := range strings.SplitSeq(path, ".") {
		of := v.Type()
		for i := range of.NumField() {
			if tag := of.Field(i).Tag.Get("mapstructure"); tag == name || tag == "-" && strings.EqualFold(of.Field(i).Name, name) {
				v = v.Field(i)
				break
			}
		}
	}
	return v
}

func same(a, b reflect.Value) bool {
	if secret, ok := a.Interface().(Secret); ok {
		return secret.Reveal() == b.Interface().(Secret).Reveal()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
