package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoed/round"
)

// unpacked is what a bundle holds, by name.
func unpacked(t testing.TB, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for archive := tar.NewReader(packed); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		parts[strings.TrimPrefix(head.Name, "shoed-bundle/")] = string(text)
	}
}

// programs puts scripts before all others.
func programs(t testing.TB, script map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range script {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestBundle: all parts of a table at work are in it, and no secret and no face
// that the table has not shown.
func TestBundle(t *testing.T) {
	const password = "PaSsW0rd-sentinel"
	programs(t, map[string]string{
		"journalctl": "echo code=broker_refused; echo somebody logged " + password,
		"dmesg":      "echo 'usb 1-1: USB disconnect'; echo 'wlan0: associated'",
	})
	broker := startMosquitto(t)
	tb := newTable(t, broker.url(), "reveal=on_signal")
	dir := t.TempDir()
	issue(t, dir, "own", 90, nil, nil)
	replaceIn(t, tb.config, "[mqtt]\n", fmt.Sprintf("[mqtt]\nuser = 't1'\npassword = '%s'\nlisten_cert_file = '%s/own.pem'\nlisten_key_file = '%s/own.key'\n", password, dir, dir))
	tb.plug()
	tb.listening()
	unseen := []string{"Kc", "Qh", "Td"} // no hash has such letters
	sent := [][]byte{card(t, '1', round.ToFirst, 0, "Ad"), card(t, '2', round.ToBurn, 0, unseen[0]), card(t, '3', round.ToPlayer, 1, unseen[1]), card(t, '4', round.ToBanker, 1, unseen[2])}
	n := 0
	for _, b := range sent {
		tb.send(b)
		n += len(b)
		eventually(t, "the card to be taken", func() bool { return tb.taken() == n })
	}
	keys := []string{filepath.Join(dir, "own.key"), filepath.Join(filepath.Dir(tb.file()), keyFile)}

	path := filepath.Join(t.TempDir(), "b.tar.gz")
	if out, _, err := shoedCommand("bundle", "--config", tb.config, "--listen", "0", path); err != nil || out != path+"\n" {
		t.Fatalf("%s %v", out, err)
	}
	parts := unpacked(t, path)
	for name, want := range map[string]string{
		"check.jsonl": `"check":"reader frames","text":"4 until now`,
		"version.txt": "shoed devel\n",
		"config.txt":  "mqtt.password = \"[secret]\"\n",
		"journal.txt": `"Ad"`,
		"diag.json":   `"reader_down":false`,
		"ports.json":  "[",
		"system.txt":  "Linux version",
		"log.txt":     "code=broker_refused\nsomebody logged [secret]\n",
		"dmesg.txt":   "usb 1-1: USB disconnect\n",
	} {
		if !strings.Contains(parts[name], want) || strings.Contains(parts[name], "# not all") && name != "check.jsonl" {
			t.Errorf("%s lacks %q:\n%s", name, want, parts[name])
		}
	}
	if strings.Contains(parts["dmesg.txt"], "wlan0") {
		t.Error("dmesg.txt has what is not of the hardware")
	}
	secrets := append(unseen, password)
	for _, b := range sent[1:] {
		secrets = append(secrets, fmt.Sprintf("% x", b))
	}
	for _, file := range keys {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, strings.Split(string(text), "\n")[1])
	}
	for name, text := range parts {
		for _, secret := range append(secrets, "PRIVATE KEY") {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q:\n%s", name, secret, text)
			}
		}
	}
	if _, _, err := shoedCommand("bundle", "--config", tb.config, "--listen", "0", path); err == nil {
		t.Error("an old bundle was replaced")
	}
}

// TestBundleWithoutTable: where nothing is right there is a bundle all the same,
// which says what is missing and not the password.
func TestBundleWithoutTable(t *testing.T) {
	programs(t, map[string]string{"journalctl": "echo no; exit 1", "dmesg": "echo 'dmesg: read kernel buffer failed: Operation not permitted'; exit 1"})
	for text, want := range map[string]string{
		"[mqtt]\npassword = 'PaSsW0rd'\nservers = ['mqtt://anna:PaSsW0rd@broker:1883']\nwindow = 'x'\n": "mqtt.window",
		"[mqtt]\npasword = 'PaSsW0rd'\n": "mqtt.pasword",
		"[mqtt]\npassword = 'PaSsW0rd\n": `"fail"`,
	} {
		path := filepath.Join(t.TempDir(), "b.tar.gz")
		if _, _, err := shoedCommand("bundle", "--config", secretFile(t, text), "--listen", "0", path); err != nil {
			t.Fatal(err)
		}
		parts := unpacked(t, path)
		if !strings.Contains(parts["check.jsonl"], want) || len(parts) != 9 {
			t.Errorf("%d parts:\n%s", len(parts), parts["check.jsonl"])
		}
		for _, name := range []string{"config.txt", "journal.txt", "diag.json", "log.txt", "dmesg.txt"} {
			if !strings.Contains(parts[name], "# not all: ") {
				t.Errorf("%s does not say what is missing: %s", name, parts[name])
			}
		}
		for name, text := range parts {
			if strings.Contains(text, "PaSsW0rd") {
				t.Errorf("%s holds the password:\n%s", name, text)
			}
		}
	}
}
