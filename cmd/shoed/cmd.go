package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shoed/config"
	"shoed/mqtt"
)

// passwordVariable holds the password for a broker where no file does.
const passwordVariable = "SHOED_CMD_PASSWORD"

// cmdOptions are the flags of shoed cmd.
type cmdOptions struct {
	mqtt.Account
	configPath, site, table string
	passwordFile, key       string
	id, reason              string
	expect                  []string
	ttl, wait               time.Duration
	waitSecond, json        bool
}

func cmdCommand() *cobra.Command {
	var o cmdOptions
	cmd := &cobra.Command{
		Use:   "cmd COMMAND [key=value ...]",
		Short: "Give a table a command over its broker, and print what it says",
		Long: `Cmd gives a command as one of the table's users and waits for the reply:

  shoed cmd --server mqtts://broker:8883 --site house --table table-1 --user anna --password-file anna.pw pause
  shoed cmd … correct round=12 P2=8s --expect round_id=table-1-S000731-R012
  shoed cmd … --wait-second void --reason "card on the floor"
  shoed cmd … approve cmd_id=01J...
  shoed cmd … sync from_seq=1 > events.jsonl

Keys and values are those of shoed answer. Commands: ` + strings.Join(mqtt.CommandNames(), " ") + `.

The password comes from --password-file, which nobody else may be able to read,
or from the variable ` + passwordVariable + `. With --config the broker (the first of
mqtt.servers, or the one inside shoed), site and table are those of that file.

The exit code is 0 when the table accepted the command, 1 when it did not or no
reply came: then the same again with --id has no second effect if it did arrive.`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			q, err := o.question(a)
			if err != nil {
				return err
			}
			return o.ask(cmd.Context(), q, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.configPath, "config", "", "configuration file of the table, for broker, site and table")
	f.StringVar(&o.Server, "server", "", "broker, such as mqtt://broker:1883 or mqtts://broker:8883")
	f.StringVar(&o.User, "user", "", "who gives it, one of the table's users")
	f.StringVar(&o.passwordFile, "password-file", "", "file with the user's password at the broker")
	f.StringVar(&o.TLS.CAFile, "ca-file", "", "certificates in PEM to trust besides the system's")
	f.StringVar(&o.TLS.ServerName, "server-name", "", "name that the broker's certificate must bear, instead of its address's")
	f.StringVar(&o.TLS.CertFile, "cert-file", "", "certificate in PEM to show to the broker")
	f.StringVar(&o.TLS.KeyFile, "cert-key-file", "", "its key in PEM")
	f.StringVar(&o.site, "site", "", "the house, as in topic names")
	f.StringVar(&o.table, "table", "", "the table, as in topic names")
	f.StringVar(&o.key, "key", "", "sign the command with the key in this file, see shoed key")
	f.StringVar(&o.id, "id", "", "id (ULID) of the command, to repeat one; by default a new one")
	f.StringArrayVar(&o.expect, "expect", nil, "what must hold of the table, else it refuses: epoch, shoe_id, round_id, rev, alert or phase, as key=value; repeatable")
	f.StringVar(&o.reason, "reason", "", "why, for the record")
	f.DurationVar(&o.ttl, "ttl", 30*time.Second, "how old it may be when it has its effect, at most 30s")
	f.DurationVar(&o.wait, "wait", 10*time.Second, "how long to wait for each reply")
	f.BoolVar(&o.waitSecond, "wait-second", false, "wait until another person has approved it, or has not in time")
	f.BoolVar(&o.json, "json", false, "print replies as they come, JSON on a line each")
	return cmd
}

// question makes the command, and finds out whom to ask.
func (o *cmdOptions) question(words []string) (q mqtt.Question, err error) {
	if o.configPath != "" {
		if err := o.fromConfig(); err != nil {
			return q, err
		}
	}
	if o.Server == "" || o.site == "" || o.table == "" || o.User == "" {
		return q, usageError{errors.New("needed are --user and --server, --site and --table, or --config for these three")}
	}
	if o.Password, err = passwordOf(o.passwordFile); err != nil {
		return q, err
	}
	q = mqtt.Question{Site: o.site, Table: o.table, Name: words[0]}
	if q.Command, err = commandOf(words[1:]); err != nil {
		return q, usageError{err}
	}
	if q.Command.Expect, err = expectOf(o.expect); err != nil {
		return q, usageError{err}
	}
	q.Command.TTLMS, q.Command.Reason = o.ttl.Milliseconds(), o.reason
	if o.id != "" {
		q.Command.CmdID = o.id
	}
	if o.key != "" {
		q.Key, err = readKey(o.key)
	}
	return q, err
}

// fromConfig takes what no flag gives.
func (o *cmdOptions) fromConfig() error {
	cfg, err := loadConfig(o.configPath)
	if err != nil {
		return err
	}
	o.site, o.table = cmp.Or(o.site, cfg.Table.Site), cmp.Or(o.table, cfg.Table.ID)
	if o.Server != "" {
		return nil
	}
	m := &cfg.MQTT
	if len(m.Servers) > 0 {
		o.Server = m.Servers[0]
		o.TLS.CAFile, o.TLS.ServerName = m.CAFile, m.ServerName
		return nil
	}
	o.Server, err = embeddedServer(m)
	return err
}

// embeddedServer is the address of the broker inside shoed, from this machine.
func embeddedServer(m *config.MQTT) (string, error) {
	host, port, err := net.SplitHostPort(m.Listen)
	if err != nil || port == "0" {
		return "", fmt.Errorf("mqtt.listen is %q, which does not say where the broker is; give --server", m.Listen)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "mqtt"
	if m.ListenCertFile != "" {
		scheme = "mqtts"
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}

// passwordOf reads the file, or the variable; "" without either.
func passwordOf(file string) (string, error) {
	if file == "" {
		return os.Getenv(passwordVariable), nil
	}
	password, err := config.ReadPassword(file, os.Environ())
	if err != nil {
		return "", fmt.Errorf("--password-file: %w", err)
	}
	return password, nil
}

// expectOf reads what must hold of the table; nil for nothing.
func expectOf(words []string) (*mqtt.Expect, error) {
	if len(words) == 0 {
		return nil, nil
	}
	fields := map[string]any{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || value == "" {
			return nil, fmt.Errorf("--expect %q: write it as key=value", word)
		}
		fields[key] = value
		if key == "rev" {
			fields[key] = json.RawMessage(value)
		}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, errors.New("--expect: rev is a number")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var e mqtt.Expect
	if err := d.Decode(&e); err != nil {
		return nil, fmt.Errorf("--expect: there are epoch, shoe_id, round_id, rev, alert and phase: %w", err)
	}
	return &e, nil
}

// ask prints what the table says until it has said all. A refusal is an error.
func (o *cmdOptions) ask(ctx context.Context, q mqtt.Question, out, errs io.Writer) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	late := time.AfterFunc(o.wait, func() { giveUp(fmt.Errorf("no reply within %v", o.wait)) })
	defer late.Stop()
	said := out // by a person's line, which must not stand among events
	if q.Name == "sync" {
		said = errs
	}
	var failed error
	err := mqtt.Ask(ctx, o.Account, q, func(a mqtt.Answer) bool {
		late.Reset(o.wait)
		if a.Replay != nil {
			for _, event := range a.Replay.Events {
				fmt.Fprintf(out, "%s\n", event)
			}
			return true
		}
		r := &a.Rsp.Reply
		if o.json {
			fmt.Fprintf(out, "%s\n", a.Raw)
			failed = showReply(q.Name, r, io.Discard)
		} else {
			failed = showReply(q.Name, r, said)
		}
		second := r.Code == mqtt.CodeNeedsSecond
		if second {
			late.Reset(mqtt.SecondWithin + o.wait)
		}
		return r.Status == mqtt.Accepted && (!second || o.waitSecond)
	})
	if err != nil {
		return fmt.Errorf("%s: %w; to send the same once more: --id %s", q.Name, err, q.Command.CmdID)
	}
	return failed
}
