package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
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
	key, err := parseTableKey(text)
	if err != nil {
		return nil, fmt.Errorf("the table's key %s: %w: put it back from a backup, or move it away, and the table begins a new one, which its info shows", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("others on this machine may use the table's key: chmod 600", "code", "key.exposed", "path", path)
	}
	return key, nil
}

func parseTableKey(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is no PEM file")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it is no PKCS#8 private key") // the cause might quote it
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it is a %T, not an Ed25519 key", parsed)
	}
	return key, nil
}

func makeTableKey(path string, log *slog.Logger) (ed25519.PrivateKey, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := writeSecret(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
		return nil, fmt.Errorf("the table's key cannot be kept: %w", err)
	}
	log.Info("the table has a new key", "code", "key.created", "path", path, "public_key", base64.StdEncoding.EncodeToString(public))
	return key, nil
}

// writeSecret makes a file that only its owner reads. It is there whole or not
// at all, whenever the power fails.
func writeSecret(path string, b []byte) error {
	made := path + ".new"
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
