package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"shoed/config"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

// inspected is the table that is looked at.
type inspected struct {
	cfg      *config.Config
	rules    round.Rules
	access   mqtt.GateOptions
	sources  []*source
	observer mqtt.Account  // user and password of somebody who sees the table at its brokers; may be empty
	running  bool          // shoed may be at work here
	says     *diagnosis    // of itself; nil when it does not run, or may not be asked
	root     string        // where dev, etc, proc, run, sys and the journal are: "/" but in tests
	listen   time.Duration // to the reader, for a frame; 0 not to
	now      time.Time
}

// checks are all there are, in their order. None opens what a running shoed uses.
var checks = []func(context.Context, *inspected) []mqtt.Finding{
	checkSettings, checkRules, checkSources, checkFaces, checkClock, checkDisk, checkSupply, checkCertificates,
	checkUser, checkBrokers, checkEmbedded,
}

func checkCommand() *cobra.Command {
	var configPath, passwordFile string
	var asJSON bool
	var p inspected
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that the table could work as configured, and say what to do where not",
		Long: `Check looks at the configuration and at what it names: the reader's port and who
else wants it, what can be seen of the cards, clock, disk, supply, certificates,
brokers. It prints what it found, a line each: pass, warn or fail, and what to do.
It disturbs no table at work: only while shoed does not run here does it open the
reader's line, and listens for a frame. Run it as the user that runs shoed, for
the same rights to files; what only root sees is said not to be known.

At each broker it sends and receives as the table's own user, for a broker may
acknowledge what it then refuses. Most topics only somebody else may read: with
--as and his password those are tried too, while the table is stopped.

The exit code is 1 if anything failed.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if p.observer.Password, err = passwordOf(passwordFile); err != nil {
				return err
			}
			found := p.check(cmd.Context(), configPath)
			return showFindings(found, asJSON, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&configPath, "config", "", "configuration file; without one the defaults and SHOED_ variables")
	f.StringVar(&p.observer.User, "as", "", "user at the broker who may read the table's topics, best for surveillance, for audit too")
	f.StringVar(&passwordFile, "password-file", "", "file with his password; or the variable "+passwordVariable)
	f.BoolVar(&asJSON, "json", false, "print JSON, a line each")
	f.DurationVar(&p.listen, "listen", 5*time.Second, "how long to wait for a frame of the reader, while shoed does not run; 0 not to open its line")
	f.StringVar(&p.root, "root", "/", "where dev, etc, proc, run and sys are")
	f.Lookup("root").Hidden = true // for tests
	return cmd
}

// check is every finding. Without a valid configuration there is nothing to
// look at.
func (p *inspected) check(ctx context.Context, configPath string) []mqtt.Finding {
	var err error
	p.cfg, err = loadConfig(configPath)
	var wrong *config.Error
	if errors.As(err, &wrong) {
		var found []mqtt.Finding
		for _, p := range wrong.Problems {
			found = append(found, mqtt.Finding{Result: mqtt.Fail, Check: "configuration", Text: p.String()})
		}
		return found
	}
	if err != nil {
		return failed("configuration", err)
	}
	var access, rules error
	p.access, access = accessRights(p.cfg)
	p.rules, rules = configRules(p.cfg)
	p.sources, err = openSources(p.cfg, scanner.Options{})
	if err = errors.Join(access, rules, err); err != nil {
		return failed("configuration", err)
	}
	p.now, p.running = time.Now(), mayRun(p.cfg.Control.Socket)
	if p.running {
		p.says, _ = diagnose(p.cfg.Control.Socket) // reported of each reader
	}
	var found []mqtt.Finding
	for _, look := range checks {
		found = append(found, look(ctx, p)...)
	}
	return found
}

// under is a file of the machine that is looked at.
func (p *inspected) under(path string) string { return filepath.Join(p.root, path) }

// diagnosis is what the running shoed says of itself.
type diagnosis struct {
	Readers []lineDiagnosis `json:"readers"`
	Masked  *bool           `json:"masked"` // nil: the reader has not told a card yet
}

// lineDiagnosis is what it says of a reader.
type lineDiagnosis struct {
	Name           string `json:"name"`
	Up             bool   `json:"up"` // its line is open
	Frames         uint64 `json:"frames"`
	LastFrameAgeMS *int64 `json:"last_frame_age_ms"` // nil: nothing was read since the start
}

// diagnose asks it.
func diagnose(socket string) (*diagnosis, error) {
	said, err := askDiag(socket)
	if err != nil {
		return nil, err
	}
	d := new(diagnosis)
	return d, json.Unmarshal(said, d)
}

// askDiag is what the running shoed answers to diag.
func askDiag(socket string) (json.RawMessage, error) {
	asked, err := mqtt.NewCommand(time.Now(), map[string]any{})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	reply, err := askTable(socket, controlRequest{Command: "diag", Body: body})
	if err != nil {
		return nil, err
	}
	if reply.Status != mqtt.Done {
		return nil, fmt.Errorf("shoed does not tell: %s: %s", reply.Code, reply.Message)
	}
	return json.Marshal(reply.Result)
}

// failed is a finding for each of what may be several errors.
func failed(name string, err error) (found []mqtt.Finding) {
	for text := range strings.SplitSeq(err.Error(), "\n") {
		found = append(found, mqtt.Finding{Result: mqtt.Fail, Check: name, Text: text})
	}
	return found
}

func passed(name, format string, args ...any) []mqtt.Finding {
	return []mqtt.Finding{{Result: mqtt.Pass, Check: name, Text: fmt.Sprintf(format, args...)}}
}

func warned(name, format string, args ...any) []mqtt.Finding {
	return []mqtt.Finding{{Result: mqtt.Warn, Check: name, Text: fmt.Sprintf(format, args...)}}
}

// mayRun is false when certainly no shoed serves the socket.
func mayRun(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		conn.Close()
	}
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
}

// checkSettings tells that check has found nothing wrong with them.
func checkSettings(_ context.Context, p *inspected) []mqtt.Finding {
	return passed("configuration", "it is valid, for table %s of %s", p.cfg.Table.ID, p.cfg.Table.Site)
}

// checkUser: brokers give a table its rights by its user's name.
func checkUser(_ context.Context, p *inspected) []mqtt.Finding {
	user, table := p.cfg.MQTT.User, p.cfg.Table.ID
	if user == "" || user == table {
		return nil
	}
	return warned("user", "mqtt.user is %q and table.id %q: where rights follow the user's name, as in mosquitto.acl, the table has none; give both one name", user, table)
}

// checkBrokers proves the table's rights at each broker elsewhere.
func checkBrokers(ctx context.Context, p *inspected) []mqtt.Finding {
	var found []mqtt.Finding
	m := &p.cfg.MQTT
	for _, server := range m.Servers {
		o := mqtt.ProveOptions{
			Account:  mqtt.Account{Server: server, User: m.User, Password: m.Password.Reveal(), TLS: brokerTLS(m)},
			Observer: p.observer, Site: p.cfg.Table.Site, Table: p.cfg.Table.ID, Audit: m.Audit, Running: p.running,
		}
		o.Observer.Server = server
		o.Observer.TLS = mqtt.TLS{CAFile: m.CAFile, ServerName: m.ServerName} // the certificate is the table's
		if i := slices.IndexFunc(p.access.Users, func(u mqtt.User) bool { return u.Name == p.observer.User }); i >= 0 {
			o.Role = p.access.Users[i].Role
		}
		name := server
		if u, err := url.Parse(server); err == nil {
			name = u.Host
		}
		for _, f := range mqtt.Prove(ctx, o) {
			f.Check = "broker " + name + ", " + f.Check
			found = append(found, f)
		}
	}
	return found
}

// checkEmbedded looks at what the broker inside shoed needs, if it is to run.
func checkEmbedded(ctx context.Context, p *inspected) []mqtt.Finding {
	m := &p.cfg.MQTT
	if len(m.Servers) > 0 {
		return nil
	}
	b, err := mqtt.OpenBroker(mqtt.BrokerOptions{ // where it is in nobody's way
		TCP: "127.0.0.1:0", CertFile: m.ListenCertFile, KeyFile: m.ListenKeyFile, Users: p.access.Users,
		PasswordFile: p.cfg.Access.PasswordFile, Site: p.cfg.Table.Site, Table: p.cfg.Table.ID, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return failed("broker inside shoed", err)
	}
	found := passed("broker inside shoed", "it starts, with %d users", len(p.access.Users))
	if err := b.Close(); err != nil {
		return failed("broker inside shoed", err)
	}
	found = append(found, p.checkAddress(ctx, "mqtt.listen", m.Listen)...)
	return append(found, p.checkAddress(ctx, "mqtt.listen_ws", m.ListenWS)...)
}

// checkAddress: it is free, or shoed has it.
func (p *inspected) checkAddress(ctx context.Context, key, address string) []mqtt.Finding {
	if address == config.Off {
		return nil
	}
	if _, port, _ := net.SplitHostPort(address); p.running && port != "0" {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return failed(key, fmt.Errorf("shoed runs here, but its broker does not answer: %w; see its log", err))
		}
		conn.Close()
		return passed(key, "%s answers", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return failed(key, fmt.Errorf("%w; stop the program that has it, or give another address or port", err))
	}
	l.Close()
	return passed(key, "%s is free", address)
}

// showFindings prints them. A failure is an error.
func showFindings(found []mqtt.Finding, asJSON bool, out io.Writer) error {
	bad := 0
	lines := json.NewEncoder(out)
	for _, f := range found {
		if f.Result == mqtt.Fail {
			bad++
		}
		if asJSON {
			if err := lines.Encode(f); err != nil {
				return err
			}
		} else if _, err := fmt.Fprintf(out, "%s  %s: %s\n", f.Result, f.Check, f.Text); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d checks failed", bad, len(found))
	}
	return nil
}
