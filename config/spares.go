package config

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/pelletier/go-toml/v2"
)

// A table with several readers gives each its own [[reader]]. The first is the
// one in use at first, and is what SHOED_READER_ variables speak of; the others
// are Config.Spares, and "reader[1].device" is a key of the first of them.

// readerSection is the only section that may be given several times.
const readerSection = "reader"

// ReaderSection is the name of the nth reader's section, the first being 0.
func ReaderSection(n int) string {
	if n == 0 {
		return readerSection
	}
	return fmt.Sprintf("%s[%d]", readerSection, n)
}

// Readers are all of the table's, the one in use at first before its spares.
func (c *Config) Readers() []Reader {
	return append([]Reader{c.Reader}, c.Spares...)
}

// readerKeys yields the keys of the nth reader.
func readerKeys(n int) iter.Seq[key] {
	return func(yield func(key) bool) {
		for k := range keys() {
			if !strings.HasPrefix(k.path, readerSection+".") {
				continue
			}
			k.path = ReaderSection(n) + "." + k.name
			if !yield(k) {
				return
			}
		}
	}
}

// split gives the file with its first reader only, as viper can take it, and the
// other readers. Of a file that is not TOML it gives nothing: strict says why.
func split(file []byte) (first map[string]any, others []map[string]any) {
	if toml.Unmarshal(file, &first) != nil {
		return nil, nil
	}
	list, several := first[readerSection].([]any)
	if !several {
		return first, nil
	}
	for i, r := range list {
		section, _ := r.(map[string]any)
		if i == 0 {
			first[readerSection] = section
		} else {
			others = append(others, section)
		}
	}
	return first, others
}

// setSpares fills in and checks the readers besides the first.
func (c *Config) setSpares(others []map[string]any) (problems []Problem) {
	names := []string{c.Reader.Name}
	for i, given := range others {
		values := map[string]any{}
		for k := range readerKeys(i + 1) {
			if values[k.name] = k.value; given[k.name] != nil {
				values[k.name] = given[k.name]
			}
			problems = append(problems, c.refused(k, values[k.name])...)
		}
		var r Reader
		if err := mapstructure.Decode(values, &r); err != nil {
			return append(problems, Problem{c.Where(ReaderSection(i + 1)), ReaderSection(i + 1), err.Error()})
		}
		c.Spares = append(c.Spares, r)
		for j, name := range names {
			if name == r.Name {
				key := ReaderSection(i+1) + ".name"
				problems = append(problems, Problem{c.Where(key), key, fmt.Sprintf("%q is the name of %s too; give each its own", name, ReaderSection(j))})
			}
		}
		names = append(names, r.Name)
	}
	return problems
}

// spareSettings are those of the readers besides the first.
func (c *Config) spareSettings() []Setting {
	var all []Setting
	for i := range c.Spares {
		of := reflect.ValueOf(c.Spares[i])
		for k := range readerKeys(i + 1) {
			for f := range of.NumField() {
				if of.Type().Field(f).Tag.Get("mapstructure") == k.name {
					all = append(all, Setting{k.path, of.Field(f).Interface(), c.Where(k.path), k.takes})
				}
			}
		}
	}
	return all
}
