package mqtt

import (
	"bufio"
	"bytes"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

const (
	// More would keep a login waiting for seconds, and the processor busy.
	// mosquitto_passwd by itself takes 101.
	maxIterations = 1_000_000
	// A line of mosquitto_passwd is some 130 bytes.
	maxPasswordFile = 64 << 10
)

// password is one as mosquitto_passwd keeps it: PBKDF2 with HMAC-SHA512.
type password struct {
	iterations int
	salt, hash []byte
}

// newPassword keeps a text.
func newPassword(text string) (password, error) {
	p := password{iterations: 1, salt: []byte(rand.Text())}
	var err error
	p.hash, err = pbkdf2.Key(sha512.New, text, p.salt, p.iterations, sha512.Size)
	return p, err
}

// is tells whether it is the password of this text.
func (p password) is(text []byte) bool {
	hash, err := pbkdf2.Key(sha512.New, string(text), p.salt, p.iterations, len(p.hash))
	return err == nil && subtle.ConstantTimeCompare(hash, p.hash) == 1
}

// parsePassword reads "$7$iterations$salt$hash". The error does not show it.
func parsePassword(s string) (password, error) {
	parts := strings.Split(s, "$")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "7" {
		return password{}, errors.New("the password is not as mosquitto_passwd 2 writes it, $7$iterations$salt$hash")
	}
	iterations, err := strconv.Atoi(parts[2])
	if err != nil || iterations < 1 || iterations > maxIterations {
		return password{}, fmt.Errorf("the iterations of the password are not 1 to %d", maxIterations)
	}
	salt, err := base64.StdEncoding.DecodeString(parts[3])
	hash, err2 := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || err2 != nil || len(salt) == 0 || len(hash) != sha512.Size {
		return password{}, errors.New("salt or hash of the password is damaged")
	}
	return password{iterations, salt, hash}, nil
}

// readPasswords reads a file of mosquitto_passwd, "user:password" on each line.
// The error names the line and what to do.
func readPasswords(path string) (map[string]password, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPasswordFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxPasswordFile {
		return nil, fmt.Errorf("%s: more than %d bytes; give the right file", path, maxPasswordFile)
	}
	passwords := map[string]password{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, kept, found := strings.Cut(line, ":")
		if !found { // it may be a password
			return nil, fmt.Errorf("%s:%d: no user:password; write the file with mosquitto_passwd", path, n)
		}
		if _, twice := passwords[name]; twice {
			return nil, fmt.Errorf("%s:%d: user %q is there twice; remove one", path, n, name)
		}
		if passwords[name], err = parsePassword(kept); err != nil {
			return nil, fmt.Errorf("%s:%d: user %q: %w; set it anew: mosquitto_passwd %s %s", path, n, name, err, path, name)
		}
	}
	return passwords, lines.Err()
}
