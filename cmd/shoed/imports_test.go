package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The import table: data flows one way, and each library is known to one
// folder. A folder may import those of ours named in may, and alone imports
// the modules in own.
var imports = map[string]struct{ may, own []string }{
	"cmd/shoed": {
		may: []string{"device", "scanner", "round", "odds", "journal", "mqtt", "sim", "config"},
		own: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/prometheus/client_golang"}},
	"device":  {own: []string{"go.bug.st/serial", "periph.io/x/conn/v3", "periph.io/x/host/v3", "golang.org/x/sys"}},
	"scanner": {may: []string{"round"}},
	"round":   {},
	"odds":    {may: []string{"round"}},
	"journal": {own: []string{"modernc.org/sqlite"}},
	"mqtt": {may: []string{"round", "odds"},
		own: []string{"github.com/eclipse/paho.mqtt.golang", "github.com/mochi-mqtt/server/v2", "github.com/gorilla/websocket", "github.com/oklog/ulid/v2"}},
	"sim":      {may: []string{"round", "scanner", "device"}, own: []string{"github.com/creack/pty"}},
	"bench/vm": {may: []string{"scanner", "round", "mqtt"}},
	"config":   {own: []string{"github.com/spf13/viper", "github.com/pelletier/go-toml/v2", "github.com/go-viper/mapstructure/v2"}},
}

// pure folders compute; what is here would make their results depend on more
// than their arguments.
var (
	pure        = []string{"round", "odds"}
	impure      = []string{"os", "net", "log", "log/slog", "sync", "sync/atomic", "context", "math/rand", "math/rand/v2"}
	impureCalls = []string{"Now", "Since", "Until", "After", "Tick", "NewTimer", "NewTicker", "Sleep", "AfterFunc"}
)

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata") {
			return cmpErr(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		checkFile(t, path, filepath.ToSlash(folder))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func checkFile(t *testing.T, path, folder string) {
	rule, known := imports[folder]
	if !known {
		t.Errorf("%s: no folder %q in the architecture; a new one needs its sentence there and its line in this table", path, folder)
		return
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Error(err)
		return
	}
	isPure := slices.Contains(pure, folder) && !strings.HasSuffix(path, "_test.go")
	for _, spec := range f.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		ours, isOurs := strings.CutPrefix(name, "shoed/")
		first, _, _ := strings.Cut(name, "/")
		switch {
		case isOurs && ours != folder && !slices.Contains(rule.may, ours) && !strings.HasSuffix(path, "_test.go"):
			t.Errorf("%s imports %s: data flows one way; %s may import of ours only %v", path, name, folder, rule.may)
		case strings.Contains(first, ".") && !owns(rule.own, name) && !strings.HasSuffix(path, "_test.go"):
			t.Errorf("%s imports %s: a library is known to one folder, so that it can be changed in one place; %s has %v", path, name, folder, rule.own)
		case isPure && slices.Contains(impure, name):
			t.Errorf("%s imports %s: %s computes from its arguments alone, so that a journal replays to the same events", path, name, folder)
		}
	}
	if isPure {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(impureCalls, s.Sel.Name) {
					t.Errorf("%s calls time.%s: time reaches %s on its inputs only", path, s.Sel.Name, folder)
				}
			}
			return true
		})
	}
}

func owns(modules []string, name string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return name == m || strings.HasPrefix(name, m+"/") })
}
