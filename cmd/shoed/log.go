package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"syscall"

	"shoed/config"
)

// newLog writes as configured; auto is for the systemd journal where that reads
// it, text for a terminal, and JSON otherwise. Its level can be changed.
func newLog(c config.Log, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(logLevel(c))
	o := &slog.HandlerOptions{Level: level}
	switch {
	case c.Format == "json":
		return slog.New(slog.NewJSONHandler(w, o)), level
	case isJournal(w):
		return slog.New(newJournalLog(w, level)), level
	case c.Format == "text" || isTerminal(w):
		return slog.New(slog.NewTextHandler(w, o)), level
	}
	return slog.New(slog.NewJSONHandler(w, o)), level
}

func logLevel(c config.Log) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return slog.LevelInfo // config has checked it
	}
	return level
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// isJournal tells whether the systemd journal reads what is written: it names
// device and inode of the stream that it gave (systemd.exec(5)).
func isJournal(w io.Writer) bool {
	f, ok := w.(*os.File)
	stream := os.Getenv("JOURNAL_STREAM")
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// What the journal takes off a line's front as its priority (sd-daemon(3)).
const (
	isError   = "<3>"
	isWarning = "<4>"
	isInfo    = "<6>"
	isDebug   = "<7>"
)

// journalLog writes text without time and level, which the journal keeps itself:
// the level goes in front as a priority. It is one text handler for each.
type journalLog map[string]slog.Handler

func newJournalLog(w io.Writer, level slog.Leveler) journalLog {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}}
	h := journalLog{}
	for _, p := range []string{isError, isWarning, isInfo, isDebug} {
		h[p] = slog.NewTextHandler(prefixed{p, w}, o)
	}
	return h
}

func (h journalLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h[isError].Enabled(ctx, level)
}

func (h journalLog) Handle(ctx context.Context, r slog.Record) error {
	p := isDebug
	switch {
	case r.Level >= slog.LevelError:
		p = isError
	case r.Level >= slog.LevelWarn:
		p = isWarning
	case r.Level >= slog.LevelInfo:
		p = isInfo
	}
	return h[p].Handle(ctx, r)
}

func (h journalLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithAttrs(attrs) })
}

func (h journalLog) WithGroup(name string) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithGroup(name) })
}

func (h journalLog) each(change func(slog.Handler) slog.Handler) journalLog {
	changed := journalLog{}
	for p, one := range h {
		changed[p] = change(one)
	}
	return changed
}

// prefixed puts a text before each write, in the same one.
type prefixed struct {
	prefix string
	w      io.Writer
}

func (p prefixed) Write(b []byte) (int, error) {
	n, err := p.w.Write(slices.Concat([]byte(p.prefix), b))
	return max(n-len(p.prefix), 0), err
}
