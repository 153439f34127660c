package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"shoed/config"
	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

func adoptCommand() *cobra.Command {
	var configPath, backup, passwordFile string
	var fromBroker bool
	var reader mqtt.Account
	cmd := &cobra.Command{
		Use:   "adopt --from-broker|--backup FILE",
		Short: "Begin the journal of a replacement where the old machine's ended",
		Long: `Adopt begins a new journal whose shoes, alerts and sessions are numbered on from
those of the machine that was replaced, so that no id comes twice. Its epoch is
new and its events begin at 1. The numbers come from a copy of the old journal,
from what the broker keeps of the table, or the higher ones of both: a backup
does not know what came after it, and the broker not what never reached it nor
which alerts were cleared; so 1000 alerts are skipped.

Do it before shoed runs for the first time. It refuses where a journal is. The
table's key, table.key beside the old journal, may be copied; without it a new one
is made, and info shows it.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !fromBroker && backup == "" {
				return usageError{errors.New("give --from-broker, --backup FILE or both")}
			}
			cfg, err := loadConfig(configPath)
			if err != nil {
				return err
			}
			var last mqtt.Numbers
			if backup != "" {
				if last, err = numbersIn(backup, cfg); err != nil {
					return err
				}
			}
			if fromBroker {
				if reader.Password, err = passwordOf(passwordFile); err != nil {
					return err
				}
				there, err := numbersAt(cmd.Context(), cfg, reader)
				if err != nil {
					return err
				}
				last = higher(last, there)
			}
			if err := adopt(cfg, last); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the next shoe is %s, the next alert %s, the next session %d\n",
				mqtt.ShoeID(cfg.Table.ID, last.Shoe+1), mqtt.AlertID(cfg.Table.ID, last.Alert+1), last.Session+1)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&configPath, "config", "", "configuration file of the table")
	f.StringVar(&backup, "backup", "", "copy of the old journal, with its -wal file if it has one")
	f.BoolVar(&fromBroker, "from-broker", false, "take what the brokers in mqtt.servers keep of the table")
	f.StringVar(&reader.User, "as", "", "user at the broker who may read the table's topics; otherwise the table's own")
	f.StringVar(&passwordFile, "password-file", "", "file with his password; or the variable "+passwordVariable)
	return cmd
}

func higher(a, b mqtt.Numbers) mqtt.Numbers {
	return mqtt.Numbers{Shoe: max(a.Shoe, b.Shoe), Alert: max(a.Alert, b.Alert), Private: max(a.Private, b.Private), Session: max(a.Session, b.Session)}
}

// numbersIn reads them in a journal: its last snapshot and what followed it,
// computed anew but not compared, for another program may have written it.
func numbersIn(path string, cfg *config.Config) (n mqtt.Numbers, err error) {
	if _, err := os.Stat(path); err != nil {
		return n, err
	}
	r, err := journal.OpenRead(path)
	if err != nil {
		return n, err
	}
	defer r.Close()
	state, err := lastState(r, cfg)
	if err != nil {
		return n, err
	}
	n.Shoe, n.Alert, n.Private = state.Shoe.No, state.AlertNo, state.PrivateNo
	n.Session, err = r.Counted("session")
	return n, err
}

func lastState(r *journal.Reader, cfg *config.Config) (round.State, error) {
	rules, err := configRules(cfg)
	if err != nil {
		return round.State{}, err
	}
	c := &core{state: round.New(rules)}
	from := uint64(1)
	last, ok, err := r.LastSnapshot()
	if err != nil {
		return c.state, err
	}
	if ok {
		var s snapshot
		if err := json.Unmarshal(last.Body, &s); err != nil {
			return c.state, fmt.Errorf("journal record %d: %w", last.No, err)
		}
		c.state, from = s.State, last.No+1
	}
	again := rerun{core: c}
	err = r.Read(from, func(rec journal.Record) error {
		if rec.Kind == journal.Chunk { // its inputs are records of their own
			return nil
		}
		return again.record(rec)
	})
	return c.state, err
}

// numbersAt asks the table's brokers, one after the other.
func numbersAt(ctx context.Context, cfg *config.Config, reader mqtt.Account) (n mqtt.Numbers, err error) {
	m := &cfg.MQTT
	err = errors.New("mqtt.servers names no broker, and the one inside shoed is gone with the old machine: give --backup")
	for _, server := range m.Servers {
		a := mqtt.Account{Server: server, User: m.User, Password: m.Password.Reveal(), TLS: brokerTLS(m)}
		if reader.User != "" {
			a.User, a.Password = reader.User, reader.Password
			a.TLS.CertFile, a.TLS.KeyFile = "", "" // these are the table's
		}
		if n, err = mqtt.LastNumbers(ctx, a, cfg.Table.Site, cfg.Table.ID); err == nil {
			return n, nil
		}
	}
	return n, err
}

// adopt makes the journal, which has its name only once it is complete.
func adopt(cfg *config.Config, last mqtt.Numbers) error {
	path := filepath.Join(cfg.Journal.Dir, journalFile)
	for _, file := range []string{path, path + "-wal"} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s is there: this table has its own numbers already; to give it others, stop shoed and move its journal away", file), err)
		}
	}
	if err := os.MkdirAll(cfg.Journal.Dir, 0o750); err != nil {
		return fmt.Errorf("journal directory: %w", err)
	}
	making, err := os.MkdirTemp(cfg.Journal.Dir, ".adopt-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(making)
	made := filepath.Join(making, journalFile)
	if err := begin(made, cfg, last); err != nil {
		return err
	}
	if err := likeFolder(made, cfg.Journal.Dir); err != nil {
		return err
	}
	if err := os.Link(made, path); err != nil { // a rename would replace
		return err
	}
	d, err := os.Open(cfg.Journal.Dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// begin writes a journal at path whose first record goes on from the numbers.
func begin(path string, cfg *config.Config, last mqtt.Numbers) error {
	rules, err := configRules(cfg)
	if err != nil {
		return err
	}
	sources, err := openSources(cfg, scanner.Options{})
	if err != nil {
		return err
	}
	state := round.New(rules)
	state.Shoe.No, state.AlertNo, state.PrivateNo = last.Shoe, last.Alert, last.Private
	j, _, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	c := &core{sources: sources, program: "adopt"}
	return errors.Join(j.Append([]journal.Record{c.snapshot(state, time.Now())}), j.Raise("session", last.Session), j.Close())
}

// likeFolder gives a file that root made to whom the folder belongs: shoed's user.
func likeFolder(file, dir string) error {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return os.Chown(file, int(owner.Uid), int(owner.Gid))
}
