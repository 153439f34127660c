package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTableKey: made once, for its owner's eyes, and then the same for ever.
func TestTableKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, keyFile)
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	key, err := openTableKey(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	if again, err := openTableKey(dir, log); err != nil || !again.Equal(key) {
		t.Errorf("opened again it is another key: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("not the key alone is there: %v, %v", files, err)
	}
	if strings.Count(said.String(), "code=key.created") != 1 || strings.Contains(said.String(), "key.exposed") {
		t.Errorf("logged:\n%s", &said)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := openTableKey(dir, log); err != nil || !strings.Contains(said.String(), "code=key.exposed") {
		t.Errorf("readable by others: %v\n%s", err, &said)
	}
}

// TestTableKeyRefused: a bad file is named, and is neither replaced nor quoted.
func TestTableKeyRefused(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	block := func(b []byte) string { return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})) }
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "no PEM"},
		"cut":      {block(der)[:60], "no PEM"},
		"nonsense": {block([]byte("nonsense")), "no PKCS#8"},
		"ecdsa":    {block(der), "not an Ed25519 key"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, keyFile)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openTableKey(dir, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%s: %v", name, err)
		}
		if b, _ := os.ReadFile(path); string(b) != c.text {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := openTableKey(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a key was kept in no directory")
	}
}
