package config

import (
	"fmt"
	"strconv"
	"strings"
)

const prefix = "SHOED_"

// variable is the environment variable that overrides the key: SHOED_MQTT_SERVERS
// for mqtt.servers.
func (k key) variable() string {
	return prefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// environment reads the SHOED_ variables. A list is given with commas. A name
// that is no key's is refused: it is a slip that would go unnoticed.
func environment(env []string) source {
	s := source{values: map[string]any{}, places: map[string]Place{}}
	byName := map[string]key{}
	var names []string
	for k := range keys() {
		byName[k.variable()] = k
		names = append(names, strings.TrimPrefix(k.variable(), prefix))
	}
	for _, entry := range env {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		at := Place{Variable: name}
		k, known := byName[name]
		if !known {
			hint := "unset it"
			if n := Nearest(strings.TrimPrefix(name, prefix), names); n != "" {
				hint = "did you mean " + prefix + n + "?"
			}
			s.problems = append(s.problems, Problem{at, "", "no such setting; " + hint})
			continue
		}
		value, err := k.parse(text)
		if err != "" {
			s.problems = append(s.problems, Problem{at, k.path, err})
			continue
		}
		s.values[k.path], s.places[k.path] = value, at
		if list, ok := value.([]string); ok {
			for i := range list {
				s.places[fmt.Sprintf("%s[%d]", k.path, i)] = at
			}
		}
	}
	return s
}

// parse reads a value of the key's type from a variable, or says what is wrong.
func (k key) parse(text string) (value any, wrong string) {
	switch k.value.(type) {
	case int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Sprintf("%q is not a whole number; give such as %d", text, k.value)
		}
		return n, ""
	case bool:
		if text != "true" && text != "false" {
			return nil, fmt.Sprintf("%q is not true or false; give one of them", text)
		}
		return text == "true", ""
	case []string:
		list := []string{}
		for element := range strings.SplitSeq(text, ",") {
			if element = strings.TrimSpace(element); element != "" {
				list = append(list, element)
			}
		}
		return list, ""
	}
	return text, ""
}

// valueOf is the variable's value, "" without one; of several the last, as in
// package os/exec.
func valueOf(name string, env []string) (value string) {
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
