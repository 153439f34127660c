package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"shoed/config"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Explain the configuration",
		Args:  args(cobra.NoArgs),
	}
	cmd.AddCommand(configExampleCommand(), configShowCommand())
	return cmd
}

func configExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "example",
		Short: "Print a configuration file with every key at its default, explained",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), config.Example())
			return err
		},
	}
}

func configShowCommand() *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show --config FILE",
		Short: "Print every setting with its value, where that was given, and what a change takes",
		Long: `Show reads the configuration as run does. It prints each setting, the file and
line or the variable that gave it, and whether a change takes a restart or a
reload (SIGHUP). If something is wrong it prints that instead, and fails.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			_, wrongRules := configRules(cfg)
			_, wrongRights := accessRights(cfg)
			if err := errors.Join(wrongRules, wrongRights); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(shownSettings(cfg))
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, s := range cfg.Settings() {
				fmt.Fprintf(w, "%v\t# %v\t%v\n", s, s.Where, s.Takes)
			}
			return w.Flush()
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "configuration file; without one the defaults and SHOED_ variables")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a JSON array")
	return cmd
}

// shownSetting is a setting as JSON has it.
type shownSetting struct {
	Key   string       `json:"key"`
	Value any          `json:"value"`
	From  string       `json:"from"` // file:line:column, a variable's name, or "default"
	Takes config.Takes `json:"takes"`
}

func shownSettings(cfg *config.Config) []shownSetting {
	var all []shownSetting
	for _, s := range cfg.Settings() {
		all = append(all, shownSetting{s.Key, s.Value, s.Where.String(), s.Takes})
	}
	return all
}
