package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/viper"
)

// checkEach tests every value against what its key accepts. When something is
// wrong already, only the given values with which nothing is.
func checkEach(c *Config, v *viper.Viper, wrong []Problem) []Problem {
	var problems []Problem
	for k := range keys() {
		if _, given := c.places[k.path]; len(wrong) > 0 && (!given || slices.ContainsFunc(wrong, func(p Problem) bool { return strings.HasPrefix(p.Key, k.path) })) {
			continue
		}
		switch k.value.(type) {
		case int64:
			problems = append(problems, c.refused(k, v.GetInt64(k.path))...)
		case []string:
			problems = append(problems, c.refused(k, v.GetStringSlice(k.path))...)
		default:
			if text, ok := v.Get(k.path).(string); ok { // else its section is wrong, which is said already
				problems = append(problems, c.refused(k, text)...)
			}
		}
	}
	return problems
}

// refused tests a value, or each element of a list, against what the key accepts.
func (c *Config) refused(k key, value any) (problems []Problem) {
	test := func(path string, value any) {
		if k.accepts.ok == nil || k.accepts.ok(value) {
			return
		}
		shown := "this value"
		if !k.secret {
			shown = fmt.Sprintf("%#v", value)
		}
		problems = append(problems, Problem{c.Where(path), path, shown + " is not allowed; give " + k.accepts.give})
	}
	switch list := value.(type) {
	case []string:
		for i, element := range list {
			test(fmt.Sprintf("%s[%d]", k.path, i), element)
		}
	case []any: // as TOML has it
		for i, element := range list {
			if text, ok := element.(string); ok { // else that is said already
				test(fmt.Sprintf("%s[%d]", k.path, i), text)
			}
		}
	default:
		test(k.path, value)
	}
	return problems
}

// checkTogether tests values against each other, and fetches the password.
func checkTogether(c *Config, env []string) []Problem {
	var problems []Problem
	report := func(key, text string) {
		problems = append(problems, Problem{c.Where(key), key, text})
	}
	m := &c.MQTT
	if m.Listen == m.ListenWS && m.Listen != Off && !strings.HasSuffix(m.Listen, ":0") {
		report("mqtt.listen_ws", `is the same address as mqtt.listen; give another port, or "off"`)
	}
	if m.Listen == Off && len(m.Servers) == 0 {
		report("mqtt.listen", `is "off" and mqtt.servers is empty, so nothing could be published; give one of them`)
	}
	checkWires(c, report)
	checkPassword(c, env, report)
	checkTLS(m, report)
	checkAccess(c, report)
	return problems
}

// checkWires finds a wire or a use that is given twice, and wires without the chip
// that they are on. How many a protocol takes is for the one that reads it.
func checkWires(c *Config, report func(key, text string)) {
	first := map[string]string{} // by chip and wire
	add := func(section, device string, lines []string) {
		uses := map[string]bool{}
		for i, text := range lines {
			key := fmt.Sprintf("%s.lines[%d]", section, i)
			use, wire, named := strings.Cut(text, "=")
			if !named {
				use, wire = key, text
			}
			if !strings.HasPrefix(device, "gpio:") {
				report(key, fmt.Sprintf(`is a wire, but %s.device is no GPIO chip; give such as "gpio:pinctrl-bcm2711", or remove it`, section))
				return
			}
			if uses[use] {
				report(key, fmt.Sprintf("%s is there twice; give each its own wire", use))
			}
			if before, taken := first[device+"="+wire]; taken {
				report(key, fmt.Sprintf("%s is that of %s too; give another wire", wire, before))
			}
			uses[use], first[device+"="+wire] = true, key
		}
	}
	for i, r := range c.Readers() {
		add(ReaderSection(i), r.Device, r.Lines)
	}
	add("boxes", c.Boxes.Device, c.Boxes.Lines)
	add("panel", c.Panel.Device, c.Panel.Lines)
	add("lamps", c.Lamps.Device, c.Lamps.Lines)
}

// checkPassword fetches it, too.
func checkPassword(c *Config, env []string, report func(key, text string)) {
	m := &c.MQTT
	given := "mqtt.password"
	if m.PasswordFile != "" {
		given = "mqtt.password_file"
		if m.Password.Reveal() != "" {
			report(given, "mqtt.password is given too; remove one of them")
		}
		password, err := ReadPassword(m.PasswordFile, env)
		if err != nil {
			report(given, err.Error())
		}
		m.Password = newSecret(password)
	} else if at := c.Where(given); at.File != "" && m.Password.Reveal() != "" {
		if err := private(at.File); err != nil {
			report(given, err.Error()+"; or use mqtt.password_file")
		}
	}
	if (m.Password.Reveal() != "" || m.PasswordFile != "") && m.User == "" {
		report(given, "MQTT knows no password without a user; give mqtt.user too")
	}
}

// checkAccess tests the users against each other and the broker inside shoed,
// if it is to run, against them.
func checkAccess(c *Config, report func(key, text string)) {
	m, a := &c.MQTT, &c.Access
	names := []string{c.Table.ID}
	for i, u := range a.Users {
		name, _, _ := strings.Cut(u, "=")
		if slices.Contains(names, name) {
			report(fmt.Sprintf("access.users[%d]", i), fmt.Sprintf("%q is there twice, or is the table itself; give another name", name))
		}
		names = append(names, name)
	}
	for i, k := range a.Keys {
		if name, _, _ := strings.Cut(k, "="); !slices.Contains(names[1:], name) {
			report(fmt.Sprintf("access.keys[%d]", i), fmt.Sprintf("%q is no user; name it in access.users", name))
		}
	}
	if a.RequireSignature && len(a.Keys) == 0 {
		report("access.require_signature", "nobody has a key, so nobody could command over the broker; give access.keys")
	}
	if a.PasswordFile != "" {
		if err := private(a.PasswordFile); err != nil {
			report("access.password_file", err.Error())
		}
	}
	if m.ListenKeyFile != "" {
		if err := private(m.ListenKeyFile); err != nil {
			report("mqtt.listen_key_file", err.Error())
		}
	}
	if (m.ListenCertFile == "") != (m.ListenKeyFile == "") {
		report("mqtt.listen_cert_file", "a certificate and its key go together; give listen_cert_file and listen_key_file")
	}
	switch {
	case len(m.Servers) > 0: // their broker knows the users
	case len(a.Users) > 0 && a.PasswordFile == "":
		report("access.users", "the broker inside shoed asks them for passwords; give access.password_file")
	case len(a.Users) == 0 && a.PasswordFile != "":
		report("access.password_file", "nobody has a role; give access.users")
	case len(a.Users) == 0:
		if m.Audit {
			report("mqtt.audit", "the broker inside shoed asks nobody, so anybody on this machine could read what the table has not shown; give access.users")
		}
		for key, address := range map[string]string{"mqtt.listen": m.Listen, "mqtt.listen_ws": m.ListenWS} {
			if isOpen(address) {
				report(key, fmt.Sprintf("%q can be reached by others, so everybody must be asked who he is; give access.users, or a loopback address", address))
			}
		}
	}
}

// checkTLS finds what would leave a connection less safe than it looks. What
// the files hold is for the one that uses them.
func checkTLS(m *MQTT, report func(key, text string)) {
	encrypted := func(server string) bool {
		u, err := url.Parse(server)
		return err == nil && slices.Contains([]string{"mqtts", "ssl", "wss"}, u.Scheme)
	}
	for key, value := range map[string]string{"mqtt.ca_file": m.CAFile, "mqtt.cert_file": m.CertFile, "mqtt.server_name": m.ServerName} {
		if value != "" && !slices.ContainsFunc(m.Servers, encrypted) {
			report(key, "no address in mqtt.servers uses TLS; write mqtts:// or wss:// there, or remove this")
		}
	}
	switch {
	case m.CertFile != "" && m.KeyFile == "":
		report("mqtt.cert_file", "is of no use without its key; give mqtt.key_file too")
	case m.KeyFile != "" && m.CertFile == "":
		report("mqtt.key_file", "is of no use without its certificate; give mqtt.cert_file too")
	case m.KeyFile != "":
		if err := private(m.KeyFile); err != nil {
			report("mqtt.key_file", err.Error())
		}
	}
}

// ReadPassword returns the first line of the file, or of the systemd credential
// ("credential:NAME"), which must be all of it. Others must not be able to read
// the file. env is as from os.Environ.
func ReadPassword(path string, env []string) (string, error) {
	const most = 4096 // bytes; MQTT itself stops at 65,535
	if name, ok := strings.CutPrefix(path, "credential:"); ok {
		dir := valueOf("CREDENTIALS_DIRECTORY", env)
		if dir == "" {
			return "", fmt.Errorf("CREDENTIALS_DIRECTORY is not set: no systemd service was given the credential; put LoadCredential=%s:FILE into its unit", name)
		}
		path = filepath.Join(dir, name)
	}
	if err := private(path); err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w; let the user of shoed read it", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" || len(text) > most || strings.ContainsAny(password, "\r\n\x00") {
		return "", fmt.Errorf("%s does not hold one line of 1 to %d bytes; write the password alone into it", path, most)
	}
	return password, nil
}

// private refuses a file that others than its owner can read. A group may if
// root owns the file: root:shoed 0640 is the usual way to hand a secret to a
// service, and systemd's credentials look like that too.
func private(path string) error {
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w; create it", err)
	}
	if err != nil {
		return fmt.Errorf("%w; let the user of shoed read it", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file; give one", path)
	}
	open := st.Mode().Perm() & 0o077
	if st.Sys().(*syscall.Stat_t).Uid == 0 {
		open &^= 0o040
	}
	if open != 0 {
		return fmt.Errorf("%s has mode %04o, so others can read or change it; run: chmod go= %s", path, st.Mode().Perm(), path)
	}
	return nil
}
