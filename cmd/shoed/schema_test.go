package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shoed/mqtt"
)

func TestSchemaCommand(t *testing.T) {
	list, _, err := shoedCommand("schema", "--list")
	names := strings.Fields(list)
	if err != nil || !slices.Equal(names, mqtt.SchemaNames()) || len(names) < 7 {
		t.Errorf("--list: %v, %v", names, err)
	}
	document, _, err := shoedCommand("schema")
	if err != nil || !strings.HasPrefix(document, "{\n  \"asyncapi\": \"3.0.0\"") {
		t.Errorf("schema: %.80s, %v", document, err)
	}
	for _, name := range names {
		out, _, err := shoedCommand("schema", name)
		if err != nil || !strings.Contains(out, `"title": "`+name+`/1.0"`) {
			t.Errorf("schema %s: %.200s, %v", name, out, err)
		}
	}
	for _, a := range [][]string{{"stat"}, {"../schema/state"}, {""}, {"state", "--list"}, {"state", "info"}} {
		_, _, err := shoedCommand(append([]string{"schema"}, a...)...)
		if err == nil || report(err, &bytes.Buffer{}) != 2 {
			t.Errorf("schema %q: %v, want a usage error", a, err)
		}
		if len(a) == 1 && !strings.Contains(err.Error(), "status, info,") {
			t.Errorf("schema %q does not say which there are: %v", a, err)
		}
	}
}

// strict makes a schema refuse what consumers ignore: a field that it does not
// name, and a value of an enumeration that it does not list.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["properties"] != nil {
			s["additionalProperties"] = false
		}
		if known, ok := s["examples"].([]any); ok {
			s["enum"] = append(known, nil) // where null is not allowed, the type says so
		}
		for _, sub := range s {
			strict(sub)
		}
	case []any:
		for _, sub := range s {
			strict(sub)
		}
	}
}

// strictly are the schemas that the program carries, taken strictly, by name.
var strictly = sync.OnceValue(func() map[string]*jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	all := map[string]*jsonschema.Schema{}
	for _, name := range mqtt.SchemaNames() {
		text, _ := mqtt.Schema(name)
		schema, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			panic(err)
		}
		strict(schema)
		if err := compiler.AddResource("urn:"+name, schema); err != nil {
			panic(err)
		}
		all[name] = compiler.MustCompile("urn:" + name)
	}
	return all
})

// follows says how a message differs from the schema of its topic.
func follows(topic string, body []byte) error {
	message, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w: %s", topic, err, body)
	}
	name := strings.Split(topic, "/")[4] // shoed/v1/site/table/name
	schema, ok := strictly()[name]
	if !ok {
		return fmt.Errorf("%s: no schema %q", topic, name)
	}
	if err := schema.Validate(message); err != nil {
		return fmt.Errorf("%s: %w: %s", topic, err, body)
	}
	return nil
}
