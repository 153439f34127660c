package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"shoed/config"
	"shoed/round"
	"shoed/scanner"
)

func runCommand() *cobra.Command {
	var configPath string
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the table",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			hangups := make(chan os.Signal, 1) // from here on SIGHUP does not end the program
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			cfg, err := loadConfig(configPath)
			if err != nil {
				return err
			}
			rules, err := configRules(cfg)
			_, sources := openSources(cfg, scanner.Options{}) // to tell all that is wrong at once
			if err := errors.Join(err, sources); err != nil {
				return err
			}
			log, level := newLog(cfg.Log, cmd.ErrOrStderr())
			s := &service{
				cfg: cfg, rules: rules, build: thisBuild(), log: log, level: level, path: configPath, hangups: hangups,
				clock: wall,
			}
			s.log.Info("starting", "code", "starting", "version", s.build.version, "sha256", s.build.sha256,
				"table", cfg.Table.ID, "rules", rules.Texts())
			if s.systemd, err = openSystemd(os.Getenv); err != nil {
				return err
			}
			defer s.systemd.close()
			if err := s.open(); err != nil {
				return err
			}
			err = s.serve(cmd.Context())
			if closed := s.close(); err == nil {
				err = closed
			}
			return err
		},
	}
	cmd.Flags().StringVar(&configPath, "config", "", "configuration file; without one the defaults and SHOED_ variables")
	return cmd
}

func loadConfig(path string) (*config.Config, error) {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, passwordVariable+"=") })
	return config.Load(path, env)
}

// configRules applies the configured rules; an error names the places of all
// that are wrong.
func configRules(cfg *config.Config) (round.Rules, error) {
	rules := round.DefaultRules()
	wrong := setTables(&rules, cfg.BetsFile, cfg.InsuranceFile)
	for i, text := range cfg.Rules {
		if err := rules.Set(text); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%v: rules: %w", cfg.Where(fmt.Sprintf("rules[%d]", i)), err))
		}
	}
	if wrong != nil {
		return rules, wrong
	}
	return rules, errors.Join(toldBy(cfg, &rules)...)
}

// toldBy finds rules that wait for what nothing at this table tells.
func toldBy(cfg *config.Config, rules *round.Rules) (wrong []error) {
	lacks := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%v: rules: "+format, append([]any{cfg.Where("rules")}, args...)...))
	}
	boxes, panel := cfg.Boxes.Device != "", uses(cfg.Panel.Lines)
	for _, r := range cfg.Readers() {
		if rules.RoundStart == round.StartReader && scanner.Reads(r.Protocol) == scanner.Cards && !scanner.Places(r.Protocol) {
			lacks("round_start=reader, but a %s reader does not say where a round begins: give round_start=bets, button, boxes or first_card", r.Protocol)
		}
		if _, err := scanner.Order(r.Protocol, scanner.Lock, 0); err != nil && rules.DrawGate == round.GateOn {
			lacks("draw_gate=on, but %w: give draw_gate=off", err)
		}
	}
	switch {
	case rules.RoundStart == round.StartBets && !slices.Contains(panel, "bets"):
		lacks("round_start=bets, but nothing tells that bets are closed: give panel.lines a switch bets, or another round_start")
	case rules.RoundStart == round.StartButton && !slices.Contains(panel, "start"):
		lacks("round_start=button, but there is none: give panel.lines a button start, or another round_start")
	case rules.RoundStart == round.StartBoxes && !boxes:
		lacks("round_start=boxes, but nothing sees them: give boxes.device, or another round_start")
	}
	if placement := rules.Placement; placement != round.PlacementNone && (!boxes || cfg.Boxes.Protocol != placement.String()) {
		lacks("placement=%s, but no such sensors see the boxes: give boxes.device and boxes.protocol = %q, or placement=none", placement, placement)
	}
	return wrong
}

// setTables replaces the usual tables by those in files; "" keeps them.
func setTables(r *round.Rules, betsFile, insuranceFile string) error {
	if err := setTable(&r.Bets, betsFile, round.ParseBets); err != nil {
		return err
	}
	return setTable(&r.InsuranceTable, insuranceFile, round.ParseInsurance)
}

func setTable[T any](to *T, path string, parse func(string) (T, error)) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	table, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	*to = table
	return nil
}
