package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// source is what was found in one source of values.
type source struct {
	values   map[string]any   // by key; only of the environment
	places   map[string]Place // by key, and for lists also by element, "rules[2]"
	problems []Problem
}

// document is one file being compared with the keys.
type document struct {
	source
	file    string
	parser  unstable.Parser
	seen    map[string]spelling // by name in lower case; sections in brackets
	readers int                 // [[reader]] sections so far
}

type spelling struct {
	name string
	at   Place
}

// strict compares the file with the keys: unknown names, wrong types, names given
// twice (in whatever case) and bad TOML, each with its position. Bad syntax ends
// the comparison where it stands; all else is found in one go.
func strict(file string, text []byte) source {
	d := &document{source: source{places: map[string]Place{}}, file: file, seen: map[string]spelling{}}
	d.parser.Reset(slices.Clip(text)) // its positions rest on capacities
	var in []string                   // the section that the next pairs are in
	known := true
	for d.parser.NextExpression() {
		e := d.parser.Expression()
		if e.Kind == unstable.KeyValue {
			if known {
				d.pair(in, e)
			}
			continue
		}
		in = parts(e)
		if e.Kind == unstable.ArrayTable && join(in) == readerSection {
			in = []string{ReaderSection(d.readers)}
			d.places[in[0]] = d.keyPlace(e)
			d.readers++
			known = true
			continue
		}
		known = d.header(in, e)
	}
	d.syntax(d.parser.Error())
	d.decode(text)
	return d.source
}

// header checks a [section] line and tells whether its pairs can be checked too.
func (d *document) header(in []string, e *unstable.Node) bool {
	section, at := join(in), d.keyPlace(e)
	switch _, isKey := keyAt(section); {
	case d.twice("["+section+"]", section, at):
		return isSection(section)
	case isKey:
		d.problem(at, section, "is a single setting, not a section; write %s", sample(section))
		return false
	case !isSection(section):
		d.problem(at, section, "no such section; %s", advice(section))
		return false
	case e.Kind == unstable.ArrayTable:
		d.problem(at, section, "is given as a list of sections; write [%s]", section)
		return false
	}
	return true
}

// pair checks one "key = value".
func (d *document) pair(in []string, e *unstable.Node) {
	full := slices.Concat(in, parts(e))
	path, at, value := join(full), d.keyPlace(e), e.Value()
	if len(in) == 1 && strings.HasPrefix(in[0], readerSection+"[") {
		path = in[0] + "." + join(parts(e))
	}
	k, isKey := d.keyAt(path)
	switch {
	case d.twice(path, path, at):
	case isSection(path) && value.Kind == unstable.InlineTable:
		for it := value.Children(); it.Next(); {
			d.pair(full, it.Node())
		}
	case isSection(path):
		d.problem(at, path, "is a section, not a single setting; write [%s] on a line of its own", path)
	case !isKey:
		d.problem(at, path, "no such key; %s", advice(path))
	default:
		d.value(k, e)
	}
}

// keyAt is keyAt, which knows the keys of further readers too.
func (d *document) keyAt(path string) (key, bool) {
	for n := 1; n < d.readers; n++ {
		for k := range readerKeys(n) {
			if k.path == path {
				return k, true
			}
		}
	}
	return keyAt(path)
}

// value checks the type of a value and notes its place.
func (d *document) value(k key, e *unstable.Node) {
	at := d.valuePlace(e)
	d.places[k.path] = at
	if found, want := e.Value().Kind, kindOf(k.value); found != want {
		d.problem(at, k.path, "is %s and should be %s; write such as %s = %s", kindText[found], kindText[want], k.name, literal(k.value))
		return
	}
	if e.Value().Kind != unstable.Array {
		return
	}
	i := 0
	for it := e.Value().Children(); it.Next(); i++ {
		element := fmt.Sprintf("%s[%d]", k.path, i)
		if it.Node().Raw.Length > 0 { // lists and tables within have none
			at = d.place(it.Node().Raw)
		}
		d.places[element] = at
		if found := it.Node().Kind; found != unstable.String {
			d.problem(at, element, "is %s and should be a string; put it in quotes", kindText[found])
		}
	}
}

// twice reports a name that has been given before, perhaps in another case.
func (d *document) twice(id, name string, at Place) bool {
	first, given := d.seen[strings.ToLower(id)]
	if !given {
		d.seen[strings.ToLower(id)] = spelling{name, at}
		return false
	}
	how := "given twice"
	if first.name != name {
		how = fmt.Sprintf("given twice, the other time as %s: names are lower case", first.name)
	}
	d.problem(at, name, "%s (first at %d:%d); keep one", how, first.at.Line, first.at.Column)
	return true
}

const seeExample = "; see the example for how it is written"

// syntax reports where the parser gave up, if it did.
func (d *document) syntax(err error) {
	var p *unstable.ParserError
	if errors.As(err, &p) {
		d.problem(d.place(d.parser.Range(p.Highlight)), "", "%s", p.Message+seeExample)
	}
}

// decode lets the library decode the whole, which finds what the parser above
// lets pass, such as numbers out of range and sections in conflict.
func (d *document) decode(text []byte) {
	var all map[string]any
	err := toml.Unmarshal(text, &all)
	if err == nil {
		return
	}
	at := Place{File: d.file}
	var position *toml.DecodeError
	if errors.As(err, &position) {
		at.Line, at.Column = position.Position()
	}
	if slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Line == at.Line }) {
		return // found before, and said better
	}
	name := ""
	for path, place := range d.places {
		if place == at {
			name = path
		}
	}
	d.problem(at, name, "%s", strings.TrimPrefix(err.Error(), "toml: ")+seeExample)
}

func (d *document) problem(at Place, key, format string, args ...any) {
	d.problems = append(d.problems, Problem{Place: at, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (d *document) place(r unstable.Range) Place {
	start := d.parser.Shape(r).Start
	return Place{File: d.file, Line: start.Line, Column: start.Column}
}

func (d *document) keyPlace(e *unstable.Node) Place {
	it := e.Key()
	it.Next()
	return d.place(it.Node().Raw)
}

// valuePlace finds where the value of a pair starts: past the key, "=" and blanks.
func (d *document) valuePlace(e *unstable.Node) Place {
	var last unstable.Range
	for it := e.Key(); it.Next(); {
		last = it.Node().Raw
	}
	rest := unstable.Range{Offset: last.Offset + last.Length}
	rest.Length = e.Raw.Offset + e.Raw.Length - rest.Offset
	text := d.parser.Raw(rest)
	blanks := len(text) - len(strings.TrimLeft(string(text), " \t="))
	return d.place(unstable.Range{Offset: rest.Offset + uint32(blanks)})
}

// parts is the dotted key of a header or pair.
func parts(e *unstable.Node) []string {
	var all []string
	for it := e.Key(); it.Next(); {
		all = append(all, string(it.Node().Data))
	}
	return all
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join writes a dotted key as TOML does, so that a dot within a quoted part is
// not taken for a dotted key.
func join(parts []string) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p
		if !bare.MatchString(p) {
			all[i] = strconv.Quote(p)
		}
	}
	return strings.Join(all, ".")
}

// advice says what an unknown name was probably meant to be.
func advice(name string) string {
	var names []string
	for _, s := range sections[1:] {
		names = append(names, s.name)
	}
	for k := range keys() {
		names = append(names, k.path)
	}
	if n := Nearest(name, names); n != "" {
		return "did you mean " + n + "?"
	}
	return "remove it, or see the example for the names there are"
}

var kindText = map[unstable.Kind]string{
	unstable.String: "a string", unstable.Integer: "a whole number", unstable.Bool: "true or false",
	unstable.Array: "a list of strings", unstable.InlineTable: "a section", unstable.Float: "a fraction",
	unstable.LocalDate: "a date", unstable.LocalTime: "a time", unstable.LocalDateTime: "a date", unstable.DateTime: "a date",
}

func kindOf(value any) unstable.Kind {
	switch value.(type) {
	case int64:
		return unstable.Integer
	case bool:
		return unstable.Bool
	case []string:
		return unstable.Array
	}
	return unstable.String
}
