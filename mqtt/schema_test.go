package mqtt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const draft = "https://json-schema.org/draft/2020-12/schema"

// schema is the payload's schema, with an own schema field.
func (c channel) schema() object {
	s := shape(reflect.TypeOf(c.payload), nil)
	minor := "[0-9]+" // the next adds fields, which consumers ignore
	if c.in {
		minor = "0"
		s = closed(s)
	}
	properties := s[1].value.(object)
	i := slices.IndexFunc(properties, func(m member) bool { return m.name == "schema" })
	field := properties[i].value.(object)
	properties[i].value = slices.Insert(field, 1, member{"pattern", `^` + c.name + `/1\.` + minor + `$`})
	return append(object{{"title", c.name + "/1.0"}, {"description", c.about}}, s...)
}

// closed refuses fields without a name in the schema, as the table does in what
// it receives.
func closed(s object) object {
	s = slices.Clone(s)
	for i, m := range s {
		if sub, ok := m.value.(object); ok {
			s[i].value = closed(sub)
		}
	}
	if slices.ContainsFunc(s, func(m member) bool { return m.name == "properties" }) {
		s = append(s, member{"additionalProperties", false})
	}
	return s
}

// address is the topic with its parameters.
func (c channel) address() string { return Topic("{site}", "{table}", c.name+c.rest) }

// parameters of the addresses.
var parameters = map[string]string{
	"site":    "The house: [a-z0-9][a-z0-9-]{0,31}.",
	"table":   "An asset id that never changes, and the table's user at the broker: [a-z0-9][a-z0-9-]{0,31}.",
	"user":    "Who sends the command, and reads the reply: [a-z0-9][a-z0-9-]{0,31}.",
	"command": "What to do.",
}

func (c channel) ref(path string) object { return object{{"$ref", "#/" + path + c.name}} }

func (c channel) topic() object {
	var named object
	for _, p := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(c.address(), -1) {
		named = append(named, member{p[1], object{{"description", parameters[p[1]]}}})
	}
	return object{{"address", c.address()}, {"description", c.about},
		{"parameters", named}, {"messages", object{{c.name, c.ref("components/messages/")}}}}
}

// operation is what the table does.
func (c channel) operation() object {
	action := "send"
	if c.in {
		action = "receive"
	}
	o := object{{"action", action}, {"channel", c.ref("channels/")}, {"summary", c.about},
		{"messages", []any{c.ref("channels/" + c.name + "/messages/")}},
		{"bindings", object{{"mqtt", object{{"qos", c.qos}, {"retain", c.retained}, {"bindingVersion", "0.2.0"}}}}}}
	if c.in {
		o = append(o, member{"reply", object{{"channel", object{{"$ref", "#/channels/rsp"}}}}})
	}
	return o
}

func asyncAPI() object {
	var topics, operations, messages, payloads object
	for _, c := range channels {
		topics = append(topics, member{c.name, c.topic()})
		operations = append(operations, member{c.name, c.operation()})
		messages = append(messages, member{c.name, object{{"name", c.name}, {"title", c.name + "/1.0"}, {"summary", c.about},
			{"contentType", "application/json"}, {"payload", c.ref("components/schemas/")}}})
		payloads = append(payloads, member{c.name, object{{"schemaFormat", "application/schema+json;version=draft-2020-12"}, {"schema", c.schema()}}})
	}
	return object{
		{"asyncapi", "3.0.0"},
		{"info", object{{"title", "shoed"}, {"version", "1.0.0"},
			{"description", "A baccarat table over MQTT 3.1.1, seen from the table. Consumers ignore fields that they do not know and take enumerations as open. A field that is absent is not applicable; null is known to be absent."}}},
		{"defaultContentType", "application/json"},
		{"servers", object{{"broker", object{{"host", "{broker}"}, {"protocol", "mqtt"}, {"protocolVersion", "3.1.1"},
			{"description", "The house's broker, or the one inside shoed."},
			{"variables", object{{"broker", object{{"default", "127.0.0.1:1883"}, {"description", "host:port"}}}}}}}}},
		{"channels", topics}, {"operations", operations},
		{"components", object{{"messages", messages}, {"schemas", payloads}}},
	}
}

// TestSchema: the schemas that the program carries are those of its types.
func TestSchema(t *testing.T) {
	files := map[string][]byte{"asyncapi": plainJSON(asyncAPI())}
	for _, c := range channels {
		head := object{{"$schema", draft}, {"$id", "urn:shoed:" + c.name + ":1.0"}}
		files[c.name] = plainJSON(append(head, c.schema()...))
	}
	for name, want := range files {
		path := filepath.Join("schema", name+".json")
		if *rewrite {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types say (%v): go test ./mqtt -run TestSchema -rewrite, then read the difference", path, err)
		}
	}
	kept, err := filepath.Glob("schema/*.json")
	if err != nil || len(kept) != len(files) {
		t.Errorf("schema/ has %d files, want %d: %v", len(kept), len(files), err)
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

// compile reads the payload's schema, as it is or strictly.
func (c channel) compile(change func(any)) *jsonschema.Schema {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(plainJSON(c.schema())))
	if err != nil {
		panic(err)
	}
	change(schema)
	compiler := jsonschema.NewCompiler() // of the draft 2020-12
	compiler.AssertFormat()
	if err := compiler.AddResource("urn:"+c.name, schema); err != nil {
		panic(err)
	}
	return compiler.MustCompile("urn:" + c.name)
}

var strictly = sync.OnceValue(func() map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{}
	for _, c := range channels {
		all[c.name] = c.compile(strict)
	}
	return all
})

// follows says how a message differs from its schema, taken strictly.
func follows(body []byte) error {
	message, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	fields, _ := message.(map[string]any)
	name, _, _ := strings.Cut(fmt.Sprint(fields["schema"]), "/")
	schema, ok := strictly()[name]
	if !ok {
		return fmt.Errorf("no schema %q", name)
	}
	return schema.Validate(message)
}

// checkMessages has every message of a test run checked. invalid lists those
// that do not follow their schemas.
func checkMessages() (invalid func() []string) {
	var mu sync.Mutex
	var wrong []string
	checkMessage = func(body []byte) {
		if err := follows(body); err != nil {
			mu.Lock()
			defer mu.Unlock()
			wrong = append(wrong, fmt.Sprintf("%s\n%v", body, err))
		}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return wrong
	}
}

// TestSchemasHold: what was sent follows its schema. With a field more it does
// for a consumer, though not strictly, nor for the table in what it receives;
// with one less or of another type it does for nobody.
func TestSchemasHold(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	lenient, received, tried := map[string]*jsonschema.Schema{}, map[string]bool{}, map[string]bool{}
	for _, c := range channels {
		lenient[c.name], received[c.name] = c.compile(func(any) {}), c.in
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := follows(body); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		message := map[string]any{}
		if err := json.Unmarshal(body, &message); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(message["schema"].(string), "/")
		tried[name] = true
		broken := func(what string, change func(map[string]any), consumerTakes bool) {
			t.Helper()
			m := maps.Clone(message)
			change(m)
			if err := lenient[name].Validate(m); (err == nil) != consumerTakes {
				t.Errorf("%s with %s: a consumer says %v", file, what, err)
			}
			if strictly()[name].Validate(m) == nil {
				t.Errorf("%s with %s: no error", file, what)
			}
		}
		broken("a field more", func(m map[string]any) { m["colour"] = "red" }, !received[name])
		broken("another major", func(m map[string]any) { m["schema"] = name + "/2.0" }, false)
		for _, field := range lenient[name].Required {
			broken("no "+field, func(m map[string]any) { delete(m, field) }, false)
			broken("another "+field, func(m map[string]any) { m[field] = []any{1.5} }, false)
		}
	}
	for _, c := range channels {
		if !tried[c.name] {
			t.Errorf("no %s in testdata", c.name)
		}
	}
}

// TestCommandSchema: the table takes what the schema of cmd takes, and refuses
// what it refuses.
func TestCommandSchema(t *testing.T) {
	schema := channels[slices.IndexFunc(channels[:], func(c channel) bool { return c.name == "cmd" })].compile(func(any) {})
	good, err := os.ReadFile("testdata/cmd.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, now string }{
		{"", ""},
		{`"cmd/1.0"`, `"cmd/1.1"`},
		{`"cmd_id": "01`, `"cmd_id": "81`},
		{`"cmd_id": "01JNP`, `"cmd_id": "01jnp`},
		{`"cmd_id": "01`, `"cmd_id": "`},
		{`"cmd_id"`, `"cmdid"`},
		{`20:00:00.123Z`, `20:00:00Z`},
		{`20:00:00.123Z`, `20:00:00.123+07:00`},
		{`20:00:00.123Z`, `20:00`},
		{`"ttl_ms": 30000`, `"ttl_ms": 30001`},
		{`"ttl_ms": 30000`, `"ttl_ms": 0`},
		{`"ttl_ms": 30000`, `"ttl_ms": "30000"`},
		{`"ttl_ms": 30000,`, ``},
		{`"expect": {`, `"expect": {"colour": "red", `},
		{`"expect": {`, `"colour": "red", "expect": {`},
		{`"rev": 0`, `"rev": -1`},
		{`"args": {`, `"args": {"colour": "red", `},
		{`"reason": "`, `"reason": "` + strings.Repeat("x", maxReason)},
	} {
		body := bytes.Replace(good, []byte(c.old), []byte(c.now), 1)
		if c.old != c.now && bytes.Equal(body, good) {
			t.Errorf("no %s in testdata/cmd.json", c.old)
		}
		message, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_, refused := parseCommand(body)
		if invalid := schema.Validate(message); (invalid == nil) != (refused == nil) {
			t.Errorf("%s for %s: the table says %v, the schema %v", c.now, c.old, refused, invalid)
		}
	}
}
