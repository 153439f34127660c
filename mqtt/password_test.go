package mqtt

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the real mosquitto_passwd writes is read, and nothing else.
func TestPasswords(t *testing.T) {
	path := passwordFile(t, "anna", "board-1")
	if out, err := exec.Command("mosquitto_passwd", "-b", "-I", "5000", path, "slow", "x").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	kept, err := readPasswords(path)
	if err != nil || len(kept) != 3 || kept["slow"].iterations != 5000 {
		t.Fatalf("%d users, %v", len(kept), err)
	}
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"anna", passwordOf("anna"), true}, {"board-1", passwordOf("board-1"), true}, {"slow", "x", true},
		{"anna", passwordOf("board-1"), false}, {"anna", "", false}, {"slow", "X", false}, {"slow", "xx", false},
	} {
		if got := kept[c.name].is([]byte(c.text)); got != c.want {
			t.Errorf("%s, %q: %v", c.name, c.text, got)
		}
	}
	if (password{}).is(nil) {
		t.Error("no password is a password")
	}
}

func TestPasswordFileIsBad(t *testing.T) {
	hash := strings.Repeat("A", 86) + "=="
	for _, c := range []struct{ text, why string }{
		{"geheim", ":1: no user:password"},
		{"# comment\n\nanna:geheim", `:3: user "anna": the password is not as mosquitto_passwd 2 writes it`},
		{"anna:$6$AAAA$" + hash, "is not as mosquitto_passwd 2 writes it"},
		{"anna:$7$101$AAAA", "is not as mosquitto_passwd 2 writes it"},
		{"anna:x$7$101$AAAA$" + hash, "is not as mosquitto_passwd 2 writes it"},
		{"anna:$7$0$AAAA$" + hash, "iterations"},
		{"anna:$7$1000001$AAAA$" + hash, "iterations"},
		{"anna:$7$geheim$AAAA$" + hash, "iterations"},
		{"anna:$7$101$$" + hash, "damaged"},
		{"anna:$7$101$?$" + hash, "damaged"},
		{"anna:$7$101$AAAA$geheim", "damaged"},
		{"anna:$7$101$AAAA$AAAA", "damaged"},
		{"anna:$7$101$AAAA$" + hash + "\nanna:$7$101$AAAA$" + hash, `:2: user "anna" is there twice`},
		{strings.Repeat("#\n", maxPasswordFile), "more than"},
	} {
		path := filepath.Join(t.TempDir(), "passwd")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		kept, err := readPasswords(path)
		if err == nil || kept != nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.why)
		}
	}
	if _, err := readPasswords("/none"); err == nil {
		t.Error("no file, no error")
	}
}
