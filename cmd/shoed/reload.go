package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"shoed/config"
	"shoed/mqtt"
	"shoed/round"
)

// The configuration is read again on SIGHUP and by the command config-reload. It
// is read, checked and made ready as a whole, so that a wrong one changes
// nothing; then it waits until no round is open, and nothing can fail any more.

// change is a configuration on its way into force.
type change struct {
	Applied []string `json:"applied"` // keys that it changes
	Restart []string `json:"restart"` // keys that differ from what is in force, and take a restart

	rules round.Rules
	setup mqtt.Setup
	apply func()    // to everything but the core
	asked []request // config-reload that wait for it
}

// terms are what follows from a configuration and can change in a running table.
type terms struct {
	rules  round.Rules
	rights mqtt.GateOptions
	logins *mqtt.Logins // nil when the embedded broker asks nobody, or there is none
}

func (s *service) terms(cfg *config.Config) (t terms, err error) {
	var rules, rights, logins error
	t.rules, rules = configRules(cfg)
	t.rights, rights = accessRights(cfg)
	t.rights.Epoch = s.journal.Epoch()
	if s.broker != nil && len(t.rights.Users) > 0 && cfg.Access.PasswordFile != "" {
		t.logins, logins = s.broker.Logins(t.rights.Users, cfg.Access.PasswordFile)
	}
	return t, errors.Join(rules, rights, logins)
}

// reread makes ready what the configuration file says now. It runs in the core's
// goroutine.
func (s *service) reread() (*change, error) {
	next, err := loadConfig(s.path)
	if err != nil {
		return nil, err
	}
	_, wrong := s.terms(next)
	_, sources := openSources(next, s.decoding)
	if err := errors.Join(wrong, sources); err != nil { // all of it must do after a restart
		return nil, err
	}
	cfg, applied, restart := s.inForce.Reload(next)
	t, err := s.terms(cfg)
	if err != nil {
		return nil, err
	}
	return &change{Applied: applied, Restart: restart, rules: t.rules, setup: setupOf(cfg, &t.rights), apply: func() {
		s.inForce = cfg
		s.level.Set(logLevel(cfg.Log))
		s.journal.Bound(journalBounds(cfg))
		s.gate.Permit(t.rights)
		if t.logins != nil {
			s.broker.Admit(t.logins)
		}
	}}, nil
}

func journalBounds(cfg *config.Config) (maxAge time.Duration, maxBytes int64) {
	return time.Duration(cfg.Journal.MaxAgeDays) * 24 * time.Hour, cfg.Journal.MaxBytes
}

// hangup answers SIGHUP.
func (c *core) hangup() {
	_, _ = c.reload() // logged there
}

// reload reads the configuration again and logs what is to come of it.
func (c *core) reload() (*change, error) {
	read, err := c.reread()
	if err != nil {
		for problem := range strings.SplitSeq(err.Error(), "\n") {
			c.log.Error("the configuration is wrong: the last good one stays in force", "code", "config.wrong", "problem", problem)
		}
		return nil, err
	}
	if c.next != nil {
		read.asked = c.next.asked
	}
	c.next = read
	if len(read.Restart) > 0 {
		c.log.Warn("settings have changed that take a restart", "code", "config.restart", "keys", read.Restart)
	}
	if c.state.Round.Open {
		c.log.Info("the configuration changes after this round", "code", "config.waits", "keys", read.Applied)
	}
	return read, nil
}

// reloadFor answers config-reload.
func (c *core) reloadFor(r *request) *mqtt.Reply {
	if c.reread == nil {
		return mqtt.Refuse(mqtt.CodeNotApplicable, "this table runs without a configuration that could be read again")
	}
	read, err := c.reload()
	if err != nil {
		return &mqtt.Reply{Status: mqtt.Failed, Code: mqtt.CodeNotApplicable, Message: "the configuration is wrong: the last good one stays in force",
			Result: map[string]any{"problems": problemsOf(err)}}
	}
	if c.state.Round.Open {
		read.asked = append(read.asked, *r)
		return &mqtt.Reply{Status: mqtt.Accepted, Code: mqtt.CodeOK, Message: "it changes after this round", Result: read}
	}
	return read.done()
}

func (n *change) done() *mqtt.Reply {
	return &mqtt.Reply{Status: mqtt.Done, Code: mqtt.CodeOK, Message: "it is in force, but for what takes a restart", Result: n}
}

// problemsOf are the lines of an error, as many and as much of them as a message
// takes.
func problemsOf(err error) []string {
	const most, longest = 30, 300
	lines := strings.Split(err.Error(), "\n")
	if len(lines) > most {
		lines = append(lines[:most], "… and more: see the log")
	}
	for i := range lines {
		lines[i] = strings.ToValidUTF8(lines[i][:min(len(lines[i]), longest)], "")
	}
	return lines
}

// reconfigure puts what was read into force once no round is open. Rules are for
// the next shoe, or for the first one at once: a snapshot keeps them, and replay
// goes on from there.
func (c *core) reconfigure(ctx context.Context) error {
	n := c.next
	if n == nil || c.state.Round.Open {
		return nil
	}
	c.next = nil
	c.begin()
	changed := c.state
	changed.Adopt(n.rules)
	c.sayRules(n.rules)
	if changed != c.state {
		c.records = append(c.records, c.snapshot(changed, c.now()))
	}
	if err := c.commit(ctx, changed); err != nil {
		return err
	}
	n.apply()
	c.setup = n.setup
	c.tellFacts()
	c.adopted()
	c.log.Info("the configuration in force has changed", "code", "config.applied", "keys", n.Applied)
	for _, r := range n.asked {
		a := r.with(*n.done())
		if err := c.conclude(ctx, &a); err != nil {
			return err
		}
	}
	return nil
}
