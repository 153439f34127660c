package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"shoed/journal"
	"shoed/round"
)

// journalFile is the journal's name in its directory.
const journalFile = "journal.db"

func journalCommand() *cobra.Command {
	var configPath string
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Check and read the journal, also while shoed runs",
	}
	cmd.PersistentFlags().StringVar(&configPath, "config", "", "configuration file that names the journal")
	path := func(a []string) (string, error) {
		if len(a) == 1 {
			return a[0], nil
		}
		cfg, err := loadConfig(configPath)
		if err != nil {
			return "", err
		}
		return filepath.Join(cfg.Journal.Dir, journalFile), nil
	}
	sub := func(use, short string, run func(path string, out io.Writer) error) *cobra.Command {
		return &cobra.Command{Use: use + " [FILE]", Short: short, Args: args(cobra.MaximumNArgs(1)),
			RunE: func(cmd *cobra.Command, a []string) error {
				p, err := path(a)
				if err != nil {
					return err
				}
				return run(p, cmd.OutOrStdout())
			}}
	}
	export := sub("export", "Print inputs and events as JSON lines, as replay takes and gives them", func(p string, out io.Writer) error {
		return readJournal(p, out, exportRecord)
	})
	show := sub("show", "Print every record on a line", func(p string, out io.Writer) error {
		return readJournal(p, out, showRecord)
	})
	var anchors, key string
	verify := sub("verify", "Check every record and the chain that binds them", func(p string, out io.Writer) error {
		switch {
		case anchors != "":
			return verifyAnchored(p, anchors, key, out)
		case key != "":
			return usageError{errors.New("--key goes with --anchor")}
		}
		return verifyJournal(p, out)
	})
	verify.Long = `Verify finds what was changed in a journal. Who has root on the table can change
a record and compute all that follows anew; that is found with --anchor FILE,
messages of the table as they were received and kept on another machine, for
instance by

    mosquitto_sub -h BROKER -t 'shoed/v1/SITE/TABLE/+' >> FILE

Health, and each event that says what a round came to, names the journal's head
and is signed with the table's key; its public half is in info. A FILE or a key
that comes from the table's own machine proves less: note the key elsewhere.`
	verify.Flags().StringVar(&anchors, "anchor", "", "messages kept elsewhere, a line each")
	verify.Flags().StringVar(&key, "key", "", "the table's public key, base64 or a file with it; otherwise that of an info message in the anchors")
	cmd.AddCommand(verify, show, export)
	return cmd
}

func verifyJournal(path string, out io.Writer) error {
	r, err := journal.Verify(path)
	if err != nil {
		return err
	}
	return printReport(path, &r, out)
}

// printReport gives an error for a journal that is not all right.
func printReport(path string, r *journal.Report, out io.Writer) error {
	fmt.Fprintf(out, "journal %s, epoch %s\nrecords %d to %d, %d events to seq %d, delivered to seq %d, %d snapshots\n",
		path, r.Epoch, r.First, r.Last, r.Events, r.FirstSeq+r.Events-1, r.Delivered, r.Snapshots)
	if r.Head.Seq > 0 {
		fmt.Fprintf(out, "head at event %d, as published: %x\n", r.Head.Seq, r.Head.Hash)
	}
	if r.OK() {
		fmt.Fprintln(out, "every record is as it was written")
		return nil
	}
	for _, d := range r.Findings {
		fmt.Fprintln(out, "DAMAGED:", d.Error())
	}
	return errors.New("the journal is damaged: keep the file as it is and restore a backup or start a new one")
}

// readJournal prints records with write.
func readJournal(path string, out io.Writer, write func(io.Writer, *journal.Record) error) error {
	r, err := journal.OpenRead(path)
	if err != nil {
		return err
	}
	defer r.Close()
	w := bufio.NewWriter(out)
	err = readDiscreetly(r, 1, func(rec *journal.Record) error { return write(w, rec) })
	return errors.Join(err, w.Flush())
}

// readDiscreetly hands the records from number from on to fn. Cards that the
// table has not shown are left out until their round is closed, and burned, held
// or stray ones until their shoe is over (game.md section 4); what came before
// from is not known, so in doubt more is left out.
func readDiscreetly(r *journal.Reader, from uint64, fn func(*journal.Record) error) error {
	unseen := discretion{}
	if err := r.Read(from, unseen.note); err != nil {
		return err
	}
	return r.Read(from, func(rec journal.Record) error {
		if err := unseen.mask(&rec); err != nil {
			return err
		}
		return fn(&rec)
	})
}

// discretion knows from which record on faces may still be unseen.
type discretion struct {
	chunk uint64 // the last read's record: what came of it follows
	shoe  uint64 // first record of the shoe in hand
	round uint64 // first record after the last closed round
}

// note follows the events to find where the open shoe and round begin.
func (d *discretion) note(rec journal.Record) error {
	if rec.Kind == journal.Chunk {
		d.chunk = rec.No
	}
	if rec.Kind != journal.Event {
		return nil
	}
	var e round.EventText
	if err := json.Unmarshal(rec.Body, &e); err != nil {
		return fmt.Errorf("journal record %d: %w", rec.No, err)
	}
	switch e.Ev {
	case round.ShoeLoaded.String():
		d.shoe, d.round = d.chunk, rec.No // one read may hold the new shoe's first cards
	case round.RoundDecided.String(), round.RoundVoided.String():
		d.round = rec.No + 1
	case round.ShoeEnded.String():
		d.shoe = rec.No + 1
	}
	return nil
}

// mask hides what may be unseen: bytes and snapshots of the shoe in hand, and
// the faces in its inputs. Events hold shown faces only.
func (d *discretion) mask(rec *journal.Record) error {
	if rec.No < d.shoe && rec.Kind != journal.Snapshot {
		return nil
	}
	switch rec.Kind {
	case journal.Chunk, journal.Snapshot:
		rec.Body = nil
	case journal.Command: // its arguments may name cards
		if rec.No >= d.round {
			rec.Body = nil
		}
	case journal.Input:
		in, err := round.ParseInput(rec.Body)
		if err != nil {
			return fmt.Errorf("journal record %d: %w", rec.No, err)
		}
		public := in.To == round.ToFirst || in.Kind == round.InShow
		closed := rec.No < d.round && in.To.Side() != 0 && in.Outside == 0
		if in.Kind == round.InCard && !public && !closed {
			in.Card = round.Masked
			rec.Body = in.AppendText(nil)
		}
	}
	return nil
}

func exportRecord(w io.Writer, rec *journal.Record) error {
	if rec.Kind != journal.Input && rec.Kind != journal.Event {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s\n", rec.Body)
	return err
}

func showRecord(w io.Writer, rec *journal.Record) error {
	body := string(rec.Body)
	switch rec.Kind {
	case journal.Chunk:
		body = fmt.Sprintf("% x", rec.Body)
	case journal.Snapshot:
		body = "restart point"
	}
	if rec.Body == nil && rec.Kind == journal.Chunk {
		body = "(not shown while its shoe is in play)"
	}
	_, err := fmt.Fprintf(w, "%8d  %s  %-8s  %s\n", rec.No, rec.At.UTC().Format(time.RFC3339Nano), rec.Kind, body)
	return err
}
