package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is where a value was given: a position in the file, a variable of the
// environment, or, if zero, nowhere: it is the default.
type Place struct {
	File         string
	Line, Column int    // from 1; columns count bytes; both 0 for the file as a whole
	Variable     string // such as "SHOED_READER_DEVICE"
}

// String is "file:line:column", the name of the variable, or "default".
func (p Place) String() string {
	switch {
	case p.Variable != "":
		return p.Variable
	case p.Line > 0:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	case p.File != "":
		return p.File
	}
	return "default"
}

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	Place
	Key  string // full, such as "reader.baud_rate" or "rules[2]"; may be empty for bad syntax
	Text string // what is wrong; what to do. Never holds a secret.
}

// String is one line, "place: key: what is wrong; what to do".
func (p Problem) String() string {
	if p.Key == "" {
		return fmt.Sprintf("%v: %s", p.Place, p.Text)
	}
	return fmt.Sprintf("%v: %s: %s", p.Place, p.Key, p.Text)
}

// Error is a configuration that cannot be used, with all that is wrong.
type Error struct {
	Problems []Problem // at least one, in the order of the file, then by variable
}

// Error is one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func newError(problems []Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{problems}
}

// Nearest returns the name that the word was probably meant to be, or "". Of
// dotted names the last part alone counts too, for keys in a wrong section.
func Nearest(word string, names []string) string {
	const longest = 64 // the longest key has half of it; no word beyond is a slip
	if len(word) > longest {
		return ""
	}
	word = strings.ToLower(word)
	best, least := "", 1+len(lastPart(word))/3 // how many letters may be wrong
	for _, name := range names {
		d := min(distance(word, strings.ToLower(name)), 1+distance(lastPart(word), lastPart(name)))
		if d < least || d == least && best == "" {
			best, least = name, d
		}
	}
	return best
}

func lastPart(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

// distance is the number of letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
