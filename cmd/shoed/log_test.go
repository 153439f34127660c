package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"shoed/config"
)

// logged is one message in the source.
type logged struct {
	at, code, what string
	urgent         bool // a warning or an error
}

// forwards are functions that log what they are given, by folder and name, with
// the places of code and text among their arguments.
var forwards = map[string]struct{ code, what int }{"mqtt report": {1, 3}, "mqtt refuse": {1, 2}, "shoed tell": {1, 2}}

// messages are all that the program logs.
func messages(t *testing.T) []logged {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []logged
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata") {
			return cmpErr(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if m, ok := message(filepath.Base(filepath.Dir(path)), decl, call); ok {
						m.at = files.Position(call.Pos()).String()
						all = append(all, m)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// message reads a call that logs.
func message(folder string, in ast.Decl, call *ast.CallExpr) (m logged, ok bool) {
	callee, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return m, false
	}
	name := callee.Sel.Name
	f, forwarded := forwards[folder+" "+name]
	switch {
	case forwarded:
		m.code, m.what = literal(call.Args[f.code]), wording(call.Args[f.what])
		m.urgent = wording(call.Args[0]) != "slog.LevelInfo"
		return m, true
	case name == "Log" && len(call.Args) > 2, len(call.Args) > 0 && (name == "Debug" || name == "Info" || name == "Warn" || name == "Error"):
	default:
		return m, false
	}
	if d, ok := in.(*ast.FuncDecl); ok {
		if _, forwarding := forwards[folder+" "+d.Name.Name]; forwarding {
			return m, false
		}
	}
	m.what, m.urgent = wording(call.Args[0]), name == "Warn" || name == "Error"
	for i := 1; i+1 < len(call.Args); i += 2 {
		if literal(call.Args[i]) == "code" {
			m.code = literal(call.Args[i+1])
		}
	}
	return m, true
}

func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

// wording is an expression as it is written, near enough.
func wording(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return wording(e.X) + "." + e.Sel.Name
	case *ast.BinaryExpr:
		return wording(e.X) + e.Op.String() + wording(e.Y)
	}
	return fmt.Sprintf("%T", e)
}

// TestLogCodes: every message has its own code, and the README says of each
// warning and error what it means and what to do.
func TestLogCodes(t *testing.T) {
	all := messages(t)
	if len(all) < 35 {
		t.Errorf("only %d messages were found in the source: how is it logged now?", len(all))
	}
	explained := explainedCodes(t)
	codes, whats := map[string]logged{}, map[string]logged{}
	for _, m := range all {
		if !regexp.MustCompile(`^[a-z]+([._][a-z]+)*$`).MatchString(m.code) {
			t.Errorf("%s: %s has no code: give a literal \"code\" first, lower case, that is never changed", m.at, m.what)
			continue
		}
		if other, ok := codes[m.code]; ok && other.what != m.what {
			t.Errorf("%s: code %s is that of another message at %s", m.at, m.code, other.at)
		}
		if other, ok := whats[m.what]; ok && other.code != m.code {
			t.Errorf("%s: message %s has another code at %s", m.at, m.what, other.at)
		}
		codes[m.code], whats[m.what] = m, m
		if m.urgent && !explained[m.code] {
			t.Errorf("%s: the README does not say what code=%s means and what to do", m.at, m.code)
		}
	}
	for code := range explained {
		if _, ok := codes[code]; !ok {
			t.Errorf("the README explains code=%s, which nothing logs", code)
		}
	}
}

// explainedCodes are those of the table in the README: `code=x …`, `y`.
func explainedCodes(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| you see | it means | do |\n")
	if !found {
		t.Fatal("the README has no table of what one sees in the log")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	codes := map[string]bool{}
	for line := range strings.Lines(table) {
		seen := strings.Split(line, "|")[1]
		if !strings.Contains(seen, "code=") {
			continue
		}
		for _, m := range regexp.MustCompile("`(?:code=)?([a-z]+(?:[._][a-z]+)*)(?: [^`]*)?`").FindAllStringSubmatch(seen, -1) {
			codes[m[1]] = true
		}
	}
	return codes
}

// TestRepeats: what happens again is told the 1st, 2nd, 4th ... time, and the
// log ends with what is.
func TestRepeats(t *testing.T) {
	var log bytes.Buffer
	c := &core{log: slog.New(slog.NewTextHandler(&log, nil))}
	lines := func() string {
		defer log.Reset()
		var short []string
		for line := range strings.Lines(log.String()) {
			_, rest, _ := strings.Cut(strings.TrimSpace(line), "code=")
			short = append(short, rest)
		}
		return strings.Join(short, "\n")
	}
	flap := func() {
		c.tell(slog.LevelWarn, "down", "is down", "cause", errors.New("pulled"))
		c.tell(slog.LevelInfo, "up", "is up")
	}
	for range 11 {
		flap()
	}
	c.tell(slog.LevelWarn, "down", "is down", "cause", errors.New("burnt"))
	if got := lines(); got != "down cause=pulled\nup\ndown cause=pulled times=2\nup times=2\ndown cause=pulled times=4\nup times=4\ndown cause=pulled times=8\nup times=8\ndown cause=burnt" {
		t.Errorf("got\n%s", got)
	}
	now := time.Now()
	if c.settle(now); lines() != "" {
		t.Error("told before it was quiet")
	}
	c.settle(now.Add(quietFor + time.Second))
	if got := lines(); got != "down cause=pulled times=11\nup times=11" {
		t.Errorf("quiet: got\n%s", got)
	}
	c.settle(now.Add(forgotten + time.Second))
	if flap(); len(c.repeats) != 2 || lines() != "down cause=pulled\nup" {
		t.Error("not forgotten")
	}
}

// TestJournalLog: the systemd journal gets priorities, and neither time nor level
// a second time, when it is the one that reads; others get what they got.
func TestJournalLog(t *testing.T) {
	tb := newTable(t, "")
	tb.rewrite(`format = "text"`, `level = "debug"`)
	for _, journal := range []bool{true, false} {
		out, err := os.Create(filepath.Join(tb.dir, "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		info, err := out.Stat()
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		inode := st.Ino
		if !journal {
			inode++ // of somebody else's
		}
		t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", st.Dev, inode))
		said := func(wanted string) {
			t.Helper()
			eventually(t, wanted, func() bool {
				text, err := os.ReadFile(out.Name())
				return err == nil && regexp.MustCompile(`(?m)^`+wanted).Match(text)
			})
		}
		cmd := exec.Command(os.Args[0], "run", "--config", tb.config)
		cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1"), out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tb.cmd, tb.exited = cmd, make(chan error, 1)
		go func() { tb.exited <- cmd.Wait() }()
		if journal {
			said(`<6>msg=starting code=starting version=`)
			said(`<4>msg="not connected" code=device.down device=reader cause=`)
			said(`<7>msg=.* listener`)
		} else {
			said(`{"time":"[^"]*","level":"INFO","msg":"starting","code":"starting",`)
		}
		if err := tb.stop(); err != nil {
			t.Error(err)
		}
	}
	out := filepath.Join(tb.dir, "stderr")
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	st := info.Sys().(*syscall.Stat_t)
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", st.Dev, st.Ino))
	report(errors.New("one\ntwo"), f)
	if text, err := os.ReadFile(out); err != nil || string(text) != "<3>shoed: one\n<3>two\n" {
		t.Errorf("%v: %q", err, text)
	}
}

// JSON stays JSON whoever reads.
func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"json": `{"time"`, "text": "time=", "auto": `{"time"`} {
		var out bytes.Buffer
		log, level := newLog(config.Log{Level: "warn", Format: format}, &out)
		log.Info("x", "code", "x")
		if out.Len() > 0 {
			t.Errorf("%s: below the level", format)
		}
		level.Set(slog.LevelInfo)
		log.Info("x", "code", "x")
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %s", format, &out)
		}
	}
}
