package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// keyFile is the name of the table's key in the journal's directory: the two
// are of no use without each other, and move together.
const keyFile = "table.key"

// openTableKey reads the key that the table signs with (PEM, PKCS#8, Ed25519),
// or makes one when there is none. Only one process may call it at a time: the
// one that has the journal open.
func openTableKey(dir string, log *slog.Logger) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeTableKey(path, log)
	}
	if err != nil {
		return nil, fmt.Errorf("the table's key: %w", err)
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, fmt.Errorf("the table's key %s: %w: put it back from a backup, or move it away, and the table begins a new one, which its info shows", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("others on this machine may use the table's key: chmod 600", "code", "key.exposed", "path", path)
	}
	return key, nil
}

func makeTableKey(path string, log *slog.Logger) (ed25519.PrivateKey, error) {
	key, err := makeKey(path)
	if err != nil {
		return nil, fmt.Errorf("the table's key cannot be kept: %w", err)
	}
	log.Info("the table has a new key", "code", "key.created", "path", path, "public_key", publicHalf(key))
	return key, nil
}
