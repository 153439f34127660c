package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"shoed/scanner"
)

func decodeCommand() *cobra.Command {
	var protocol, configPath, name string
	cmd := &cobra.Command{
		Use:   "decode --protocol NAME|--config FILE FILE|-",
		Short: "Turn a capture of a reader's line into inputs",
		Long: `Decode reads a capture: one read a line in hex, # comments, and @milliseconds
before a read where its time is known. It prints one input a line for replay,
and on standard error one JSON object that counts frames and refusals.

With --config the capture is of the table's reader, or of --device, which is one
of its readers, boxes or panel: so its codes and frames are known.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if configPath != "" && cmd.Flags().Changed("protocol") || configPath == "" && name != "" {
				return usageError{errors.New("give --protocol, or --config with or without --device")}
			}
			d, err := captured(protocol, configPath, name)
			if err != nil {
				return err
			}
			in, _, err := openInput(cmd, a[0])
			if err != nil {
				return err
			}
			defer in.Close()
			if err := decode(in, cmd.OutOrStdout(), d); err != nil {
				return err
			}
			return json.NewEncoder(cmd.ErrOrStderr()).Encode(d.Stats())
		},
	}
	f := cmd.Flags()
	f.StringVar(&protocol, "protocol", "angel", "the reader's protocol")
	f.StringVar(&configPath, "config", "", "configuration file of the table, for its protocol")
	f.StringVar(&name, "device", "", "name of the device in it; by default the reader in use at first")
	return cmd
}

// captured is the decoder of a protocol, or of a device in a configuration.
func captured(protocol, configPath, name string) (scanner.Decoder, error) {
	if configPath == "" {
		d, err := scanner.New(protocol, scanner.Options{})
		if err != nil {
			return nil, usageError{err}
		}
		return d, nil
	}
	cfg, err := loadConfig(configPath)
	if err != nil {
		return nil, err
	}
	sources, err := openSources(cfg, scanner.Options{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(sources, func(s *source) bool { return name == "" || s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s has no device %q", configPath, name)
	}
	return sources[i].decoder, nil
}

// captureStart is the time of a capture's first read: captures tell none.
var captureStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// decode writes the inputs of a capture. Reads without a time arrive at once
// after the last, and each new telegram in them is put a second later, so that
// copies are close to their original and telegrams are not.
func decode(in io.Reader, out io.Writer, d scanner.Decoder) error {
	w := bufio.NewWriter(out)
	at := captureStart
	var readings []scanner.Reading
	var line []byte
	err := scanner.ParseCapture(in, func(ms int64, _ int, b []byte) error {
		if ms >= 0 {
			at = captureStart.Add(time.Duration(ms) * time.Millisecond)
		}
		readings = d.Feed(at, b, readings[:0])
		for _, r := range readings {
			if r.Err != nil {
				continue
			}
			if ms < 0 {
				at = at.Add(time.Second)
				r.Input.At = at
			}
			line = append(r.Input.AppendText(line[:0]), '\n')
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
	if flushErr := w.Flush(); err == nil {
		err = flushErr
	}
	return err
}
