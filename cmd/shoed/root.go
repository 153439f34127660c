package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "shoed",
		Short: "Dealer-shoe controller of one baccarat table",
		Long: `shoed reads cards from a dealer's shoe, tracks the rounds of Punto Banco under
the house's error rules, and publishes results over MQTT. Nothing that it has
taken in is lost, whatever happens to the power, the disk or the broker.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, a []string) error {
			if len(a) > 0 {
				return usageError{fmt.Errorf("unknown command %q: shoed --help lists them", a[0])}
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(), demoCommand(), replayCommand(), decodeCommand(), answerCommand(), restartCommand(), journalCommand(), oddsCommand(), portsCommand(), linesCommand(), configCommand(), roadsCommand(), schemaCommand(), manCommand(), versionCommand(), keyCommand(), cmdCommand(), checkCommand(), bundleCommand(), adoptCommand(), learnCommand())
	return root
}

// args turns a wrong number of arguments into a usageError.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if err := check(cmd, a); err != nil {
			return usageError{err}
		}
		return nil
	}
}
