package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

// restartName is the one request at the control socket that is no command to
// the table: the table and its rounds go on with it.
const restartName = "restart"

type restartRequest struct {
	Now bool `json:"now"` // even with a shoe in play
}

func restartCommand() *cobra.Command {
	var configPath, socket string
	var asked restartRequest
	cmd := &cobra.Command{
		Use:   restartName + " [--now]",
		Short: "Restart the running table at the change of the shoe, or now",
		Long: `Restart asks the running shoed to be started anew by systemd, as after an
upgrade: when no card is in play, which is at the change of the shoe. With --now
it does not wait; a round in hand is resumed, and the table asks whether a card
was drawn meanwhile (power.mid_round).

The configuration is read first: one with a mistake is said, and nothing
restarts.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(configPath)
			if err == nil {
				_, err = configRules(cfg)
			}
			if err != nil {
				return err
			}
			if socket == "" {
				socket = cfg.Control.Socket
			}
			body, err := json.Marshal(asked)
			if err != nil {
				return err
			}
			reply, err := askTable(socket, controlRequest{Command: restartName, Body: body})
			if err != nil {
				return err
			}
			return showReply(restartName, reply, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&configPath, "config", "", "configuration file that the table is started with")
	cmd.Flags().StringVar(&socket, "socket", "", "control socket of the running shoed")
	cmd.Flags().BoolVar(&asked.Now, "now", false, "even with a shoe in play")
	return cmd
}
