package mqtt

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"shoed/odds"
	"shoed/round"
)

// object is a JSON object whose members stay in order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(bytes.TrimSpace(plainJSON(m.name)))
		b.WriteByte(':')
		b.Write(bytes.TrimSpace(plainJSON(m.value)))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON is a document for people: indented, no HTML escapes.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// texts lists the names of an enumeration. Enumerations are open, so they are
// examples; but we send no others (strict).
func texts[T interface {
	~uint8
	fmt.Stringer
}](first T) object {
	var all []any
	for v := first; nameOf(v) != ""; v++ {
		all = append(all, nameOf(v))
	}
	return object{{"examples", all}}
}

// nameOf is "" where the enumeration ends.
func nameOf(v fmt.Stringer) string {
	defer func() { _ = recover() }()
	return v.String()
}

func among(names string) object {
	var all []any
	for name := range strings.FieldsSeq(names) {
		all = append(all, name)
	}
	return object{{"examples", all}}
}

func stringOf(word object) object { return append(object{{"type", "string"}}, word...) }

// listOf is an array of arrays of just these items.
func listOf(items ...object) object {
	tuple := object{{"type", "array"}, {"prefixItems", items}, {"items", false}, {"minItems", len(items)}}
	return object{{"type", "array"}, {"items", tuple}}
}

func pattern(p string) object { return object{{"pattern", p}} }

// What fields hold beyond their Go types. A name means the same everywhere,
// unless it is given with its type. A text's keywords go with its type, or
// those of a list's items; what has a type here is the whole schema.
var (
	faces     = pattern(`^(\?\?|[A2-9TJQK][shdc])$`)
	instant   = object{{"format", "date-time"}, {"pattern", `\.[0-9]{3}Z$`}}
	ratio     = pattern(`^[0-9]+:[0-9]+$`)
	name32    = pattern(`^[a-z0-9][a-z0-9-]{0,31}$`)
	roundID   = pattern(`-S[0-9]{6,}-R[0-9]{3,}$`)
	shoeID    = pattern(`-S[0-9]{6,}$`)
	marks     = listOf(whole, whole, stringOf(pattern("^[RB]$")))
	outcomes  = texts(round.PlayerWins)
	commandID = pattern(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`) // a ULID
	sides     = texts(round.Player)
	whole     = object{{"type", "integer"}, {"minimum", 0}}
	digits    = object{{"type", []string{"integer", "string"}}, {"pattern", "^-?[0-9]+$"}, {"description", "a string from 2^53 on"}}

	words = map[string]object{
		"site": name32, "table": name32, "ts": instant, "clock": among("synced holdover unset"),
		"shoe_id": shoeID, "round_id": roundID, "window_id": pattern(`-S[0-9]{6,}-R[0-9]{3,}-W[0-9]$`), "alert": pattern(`-A[0-9]{6,}$`),
		"Shoe.id": shoeID, "Decided.id": roundID, "since": instant, "closes_at": instant,
		"ev": {{"examples", append(texts(round.ShoeLoaded)[0].value.([]any), commandEv)}}, "code": texts(round.DealExtraCard), "priority": pattern(`^P[1-4]$`),
		"do": texts(round.DoResume), "answers": texts(round.DoResume),
		"card": faces, "cards": faces, "pays": ratio, "posted": ratio,
		"hand": among("player banker unknown"), "to": texts(round.ToPlayer), "outside": texts(round.OutsideLock),
		"where": texts(round.WhereNextRound), "order": among("any player_first banker_first"), "due": texts(round.P1),
		"outcome": outcomes, "was": outcomes, "wins_on": outcomes, "side": sides, "affects": among("none insurance all"),
		"tags": among(strings.Join(round.Tags(1<<8-1).Texts(), " ")), "stage": texts(round.StageOneHand),
		"result":       texts(round.OfferWon),
		"Status.state": among("online stopped offline"), "Window.state": among("closed open void"), "State.bets": among("open closed"), "bets_closes_at": instant,
		"placement": among("none presence rfid"), "currency": pattern("^[A-Z]{3}$"), "config_hash": pattern("^[0-9a-f]{64}$"),
		"phase":          among("closed burning ready betting no_more_bets dealing insurance decided paused void last_round_over"),
		"Devices.reader": among("up down"), "storage": among("ok full"),
		"bead": pattern(`^[PBT]p?b?n?$`), "RoadsAsks.player": pattern(`^[RB-]{3}$`), "RoadsAsks.banker": pattern(`^[RB-]{3}$`),
		"big_road": listOf(whole, whole, stringOf(pattern("^[PB]$")), whole, stringOf(pattern("^p?b?n?$"))),
		"big_eye":  marks, "small": marks, "cockroach": marks,
		"EventText.bets": {{"type", []string{"array", "object"}}, {"items", stringOf(nil)},
			{"additionalProperties", object{{"type", "object"}, {"required", []string{"result"}}, {"properties", object{
				{"result", stringOf(texts(round.BetWon))}, {"pays", stringOf(ratio)}}}}}},

		"raised_at": instant, "last_at": instant, "shelved_until": instant, "Acked.at": instant, "AlertItem.state": among("active acked returned"),
		"Option.command": among(strings.Join(CommandNames(), " ")), "role": among("view floor pit tech"),
		"cmd_id": commandID, "issued_at": {{"format", "date-time"}}, "ttl_ms": {{"type", "integer"}, {"minimum", 1}, {"maximum", maxTTL.Milliseconds()}},
		"Command.reason": {{"maxLength", maxReason}}, "Reply.cmd_id": {{"pattern", "^$|" + commandID[0].value.(string)}}, "Reply.result": {{"type", "object"}},
		"Reply.status": among("accepted done rejected failed"),
		"Reply.code":   among("ok conflict expired retained not_allowed bad_request not_applicable needs_second busy internal"),
		"head":         pattern("^[0-9a-f]{64}$"),
	}
	byHand = map[reflect.Type]object{
		reflect.TypeFor[[]byte]():          {{"type", "string"}, {"contentEncoding", "base64"}},
		reflect.TypeFor[json.RawMessage](): {{"type", "object"}},
		reflect.TypeFor[odds.Fraction]():   {{"type", "object"}, {"required", []string{"num", "den"}}, {"properties", object{{"num", digits}, {"den", digits}}}},
	}
)

// shape is the schema of what encoding/json makes of a type, with what words
// has for it.
func shape(t reflect.Type, word object) object {
	if len(word) > 0 && word[0].name == "type" {
		return word
	}
	if t.Kind() == reflect.Pointer {
		return shape(t.Elem(), word)
	}
	if s, ok := byHand[t]; ok {
		return s
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		panic(fmt.Sprintf("%v encodes itself: it needs a schema in byHand", t))
	}
	switch kind := t.Kind(); {
	case kind == reflect.Struct:
		return structShape(t)
	case kind == reflect.Slice:
		return object{{"type", "array"}, {"items", shape(t.Elem(), word)}}
	case kind == reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", shape(t.Elem(), word)}}
	case kind == reflect.String:
		return stringOf(word)
	case kind == reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int <= kind && kind <= reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Uint <= kind && kind <= reflect.Uint64:
		return whole
	}
	panic(fmt.Sprintf("%v needs a schema in words or byHand", t))
}

// structShape: a field that may be omitted is not applicable when absent; one
// that is always sent and may be nil is null when known to be absent.
func structShape(t reflect.Type) object {
	required, properties := []string{}, object{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || name == "-" || !f.IsExported() {
			continue
		}
		if slices.ContainsFunc(properties, func(m member) bool { return m.name == name }) {
			panic(fmt.Sprintf("%v has two fields %q", t, name))
		}
		in := t
		for _, i := range f.Index[:len(f.Index)-1] {
			in = in.Field(i).Type
		}
		word, ok := words[in.Name()+"."+name]
		if !ok {
			word = words[name]
		}
		property := shape(f.Type, word)
		if strings.Contains(options, "omit") {
		} else if required = append(required, name); f.Type.Kind() == reflect.Pointer {
			property = orNull(property)
		}
		if about := cmp.Or(comments()[pathOf(in)+"."+f.Name], comments()[pathOf(f.Type)]); about != "" {
			property = append(slices.Clone(property), member{"description", about})
		}
		properties = append(properties, member{name, property})
	}
	return object{{"type", "object"}, {"properties", properties}, {"required", required}}
}

// orNull allows null too.
func orNull(s object) object {
	s = slices.Clone(s)
	s[0].value = []any{s[0].value, "null"} // of every shape the type comes first
	return s
}

func pathOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.PkgPath() + "." + t.Name()
}

// comments are the doc comments of our types and their fields, without "Type
// is", by path.
var comments = sync.OnceValue(func() map[string]string {
	all, subject := map[string]string{}, regexp.MustCompile(`^[A-Z]\w+( is| are| says|:) `)
	note := func(path string, doc *ast.CommentGroup) {
		if line := strings.Join(strings.Fields(doc.Text()), " "); line != "" {
			all[path] = subject.ReplaceAllString(line, "")
		}
	}
	for _, folder := range []string{"mqtt", "round", "odds"} {
		files, _ := filepath.Glob("../" + folder + "/*.go")
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				panic(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				d, ok := n.(*ast.GenDecl)
				if !ok || d.Tok != token.TYPE {
					return true
				}
				for _, spec := range d.Specs {
					t := spec.(*ast.TypeSpec)
					path := "shoed/" + folder + "." + t.Name.Name
					note(path, cmp.Or(t.Doc, d.Doc))
					fields, ok := t.Type.(*ast.StructType)
					if !ok {
						continue
					}
					for _, field := range fields.Fields.List {
						for _, name := range field.Names {
							note(path+"."+name.Name, cmp.Or(field.Doc, field.Comment))
						}
					}
				}
				return false
			})
		}
	}
	return all
})
