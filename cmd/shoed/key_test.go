package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A new key is its owner's alone, shows its public half only, and replaces none.
func TestKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "anna.key")
	public, hint, err := shoed(t, "", "key", "new", path)
	if err != nil {
		t.Fatal(err)
	}
	if len(public) != 45 || !strings.Contains(hint, `keys = ["NAME=`+strings.TrimSpace(public)+`"]`) {
		t.Errorf("printed %q and %q", public, hint)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v, %v", info.Mode(), err)
	}
	if shown, _, err := shoed(t, "", "key", "show", path); shown != public || err != nil {
		t.Errorf("shown %q, %v; want %q", shown, err, public)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := shoed(t, "", "key", "new", path); err == nil || !strings.Contains(err.Error(), "no key is ever replaced") {
		t.Errorf("made again: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, before) {
		t.Error("the key was replaced")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("not the key alone is there: %v, %v", files, err)
	}
	if _, _, err := shoed(t, "", "key", "new", filepath.Join(dir, "none", "k")); err == nil || !strings.Contains(err.Error(), "cannot be kept") {
		t.Errorf("in no directory: %v", err)
	}
	if _, _, err := shoed(t, "", "key", "show", "key.go"); err == nil || !strings.Contains(err.Error(), "key.go: it is no PEM file") {
		t.Errorf("shown what is no key: %v", err)
	}
}
