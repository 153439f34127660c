package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shoed/device"
	"shoed/journal"
)

// What a bundle holds of what may be long.
const (
	bundledRecords = 2000 // of the journal: a shoe and more
	bundledLines   = 1000 // of each log
	// bundleWait bounds each program that is run for it.
	bundleWait = 10 * time.Second
)

func bundleCommand() *cobra.Command {
	p := inspected{root: "/"}
	var configPath string
	cmd := &cobra.Command{
		Use:   "bundle [FILE.tar.gz]",
		Short: "Pack what others need to find out what is wrong",
		Long: `Bundle packs what check finds, version, configuration, the journal's last
records, what the running shoed says of itself, serial ports, kernel and logs, as
text. Passwords and keys are not in it, and no card that the table has not shown;
names of users, addresses and the rounds of the last shoe are. It disturbs no
table at work. What this user may not see is left out, and said to be.`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			p.now = time.Now().UTC()
			path := "shoed-bundle-" + p.now.Format("20060102T150405Z") + ".tar.gz"
			if len(a) == 1 {
				path = a[0]
			}
			if err := p.bundle(cmd.Context(), configPath, path); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&configPath, "config", "", "configuration file; without one the defaults and SHOED_ variables")
	f.DurationVar(&p.listen, "listen", 5*time.Second, "as of check")
	return cmd
}

// bundle makes the file at path, which must not be there, for its owner alone.
func (p *inspected) bundle(ctx context.Context, configPath, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(p.pack(ctx, configPath, f), f.Close())
	if err != nil {
		os.Remove(path)
	}
	return err
}

// pack writes the archive: one file for each part, or why it is not there.
func (p *inspected) pack(ctx context.Context, configPath string, out io.Writer) error {
	parts := []struct {
		name  string
		write func(context.Context, io.Writer) error
	}{
		{"check.jsonl", func(ctx context.Context, w io.Writer) error { return showFindings(p.check(ctx, configPath), true, w) }},
		{"version.txt", func(_ context.Context, w io.Writer) error { return printVersion(w) }},
		{"config.txt", p.bundleConfig},
		{"journal.txt", p.bundleJournal},
		{"diag.json", p.bundleDiag},
		{"ports.json", func(_ context.Context, w io.Writer) error { return json.NewEncoder(w).Encode(device.Ports(p.root)) }},
		{"system.txt", p.bundleSystem},
		{"log.txt", func(ctx context.Context, w io.Writer) error {
			return outputOf(ctx, w, nil, "journalctl", "-u", "shoed", "-n", fmt.Sprint(bundledLines), "--no-pager", "-o", "short-iso-precise")
		}},
		{"dmesg.txt", func(ctx context.Context, w io.Writer) error { return outputOf(ctx, w, ofHardware, "dmesg") }},
	}
	packed := gzip.NewWriter(out)
	archive := tar.NewWriter(packed)
	for _, part := range parts {
		var text bytes.Buffer
		if err := part.write(ctx, &text); err != nil {
			fmt.Fprintf(&text, "# not all: %v\n", err)
		}
		clean := p.redact(text.Bytes())
		head := tar.Header{Name: "shoed-bundle/" + part.name, Mode: 0o600, Size: int64(len(clean)), ModTime: p.now}
		if err := archive.WriteHeader(&head); err != nil {
			return err
		}
		if _, err := archive.Write(clean); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}

// redact takes the password out of a text in which somebody else put it; ours
// have none.
func (p *inspected) redact(text []byte) []byte {
	if p.cfg == nil || p.cfg.MQTT.Password.Reveal() == "" {
		return text
	}
	return bytes.ReplaceAll(text, []byte(p.cfg.MQTT.Password.Reveal()), []byte("[secret]"))
}

var errNoConfiguration = errors.New("without a valid configuration it is not known where it is: see check.jsonl")

func (p *inspected) bundleConfig(_ context.Context, w io.Writer) error {
	if p.cfg == nil {
		return errNoConfiguration
	}
	for _, s := range p.cfg.Settings() {
		fmt.Fprintln(w, s)
	}
	return nil
}

// bundleJournal writes the last records as journal show prints them.
func (p *inspected) bundleJournal(_ context.Context, w io.Writer) error {
	if p.cfg == nil {
		return errNoConfiguration
	}
	r, err := journal.OpenRead(p.under(filepath.Join(p.cfg.Journal.Dir, journalFile)))
	if err != nil {
		return err
	}
	defer r.Close()
	shot, _, err := r.LastSnapshot() // the last records come after it, or not long before
	if err != nil {
		return err
	}
	from := uint64(1)
	if shot.No > bundledRecords {
		from = shot.No - bundledRecords
	}
	var last []string
	err = readDiscreetly(r, from, func(rec *journal.Record) error {
		var line strings.Builder
		if len(last) >= 2*bundledRecords {
			last = append(last[:0], last[bundledRecords:]...)
		}
		err := showRecord(&line, rec)
		last = append(last, line.String())
		return err
	})
	for _, line := range last[max(0, len(last)-bundledRecords):] {
		io.WriteString(w, line)
	}
	return err
}

func (p *inspected) bundleDiag(_ context.Context, w io.Writer) error {
	if p.cfg == nil {
		return errNoConfiguration
	}
	said, err := askDiag(p.cfg.Control.Socket)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", said)
	return err
}

func (p *inspected) bundleSystem(_ context.Context, w io.Writer) error {
	var failed error
	for _, file := range []string{"proc/version", "proc/uptime", "proc/self/mountinfo", "proc/device-tree/model", "etc/os-release"} {
		text, err := os.ReadFile(p.under(file))
		if errors.Is(err, fs.ErrNotExist) { // only a board has a model
			continue
		}
		fmt.Fprintf(w, "# /%s\n%s\n", file, strings.TrimRight(string(text), "\n\x00"))
		failed = errors.Join(failed, err)
	}
	return failed
}

// ofHardware tells a line of the kernel's log that may say why the reader or the
// disk was lost.
func ofHardware(line string) bool {
	line = strings.ToLower(line)
	for _, word := range []string{"tty", "usb", "serial", "mmc", "voltage", "i/o error", "ext4", "nvme", "ata", "watchdog", "oom"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// outputOf writes the last lines that a program prints, of those that are wanted.
func outputOf(ctx context.Context, w io.Writer, wanted func(line string) bool, program string, words ...string) error {
	ctx, stop := context.WithTimeout(ctx, bundleWait)
	defer stop()
	cmd := exec.CommandContext(ctx, program, words...)
	cmd.WaitDelay = time.Second
	text, err := cmd.CombinedOutput()
	var lines []string
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if wanted == nil || wanted(s.Text()) || err != nil {
			lines = append(lines, s.Text())
		}
	}
	for _, line := range lines[max(0, len(lines)-bundledLines):] {
		fmt.Fprintln(w, line)
	}
	return err
}
