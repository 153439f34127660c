package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shoed/mqtt"
	"shoed/round"
)

func answerCommand() *cobra.Command {
	var configPath, socket, user string
	cmd := &cobra.Command{
		Use:   "answer COMMAND [key=value ...]",
		Short: "Answer an alert, or give another command, at the table itself",
		Long: `Answer tells the running shoed what was decided:

  shoed answer confirm
  shoed answer correct P2=8s B3=9d
  shoed answer hold_card where=next_round
  shoed answer void alert=A000012 --user anna
  shoed answer approve cmd_id=01J... --user bela

Without alert= it goes to the oldest alert that allows it. Keys: alert, round,
where (next_round, burn, free_hand, use), exposed, as_dealt, order
(any, player_first, banker_first), for_ms, and cards by box. Other commands:
` + strings.Join(mqtt.CommandNames(), " ") + `.

Where users are configured, some commands take two people: the second one
approves within a minute.`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			given, err := commandOf(a[1:])
			if err != nil {
				return usageError{err}
			}
			if socket == "" {
				cfg, err := loadConfig(configPath)
				if err != nil {
					return err
				}
				socket = cfg.Control.Socket
			}
			return sendAnswer(socket, user, a[0], given, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&configPath, "config", "", "configuration file that names the socket")
	cmd.Flags().StringVar(&socket, "socket", "", "control socket of the running shoed")
	cmd.Flags().StringVar(&user, "user", "", "who gives it, one of the configured users; by default the owner of the socket")
	return cmd
}

// commandOf makes a command from the command line's words: cards by box go
// together, and a value that is JSON, such as a number, is taken as that.
func commandOf(words []string) (mqtt.Command, error) {
	fields := map[string]any{}
	cards := map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		switch _, err := round.ParseBox(key); {
		case !ok || value == "":
			return mqtt.Command{}, fmt.Errorf("%q: write it as key=value", word)
		case err == nil:
			cards[key] = value
		case json.Valid([]byte(value)):
			fields[key] = json.RawMessage(value)
		default:
			fields[key] = value
		}
	}
	if len(cards) > 0 {
		fields["cards"] = cards
	}
	return mqtt.NewCommand(time.Now(), fields)
}

// sendAnswer prints what the table says. A refusal is an error.
func sendAnswer(socket, user, name string, given mqtt.Command, out io.Writer) error {
	body, err := json.Marshal(given)
	if err != nil {
		return err
	}
	reply, err := askTable(socket, controlRequest{User: user, Command: name, Body: body})
	if err != nil {
		return err
	}
	return showReply(name, reply, out)
}

// askTable gives the running shoed one request.
func askTable(socket string, r controlRequest) (*mqtt.Reply, error) {
	conn, err := net.DialTimeout("unix", socket, controlTimeout)
	if err != nil {
		return nil, fmt.Errorf("no shoed answers: %w; is it running, and are you its user or root?", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(3 * controlTimeout))
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return nil, err
	}
	reply := new(mqtt.Reply)
	if err := json.NewDecoder(bufio.NewReader(conn)).Decode(reply); err != nil {
		return nil, fmt.Errorf("no reply from shoed: %w", err)
	}
	return reply, nil
}

// showReply prints a reply for a person. A refusal is an error.
func showReply(name string, r *mqtt.Reply, out io.Writer) error {
	if r.Status == mqtt.Rejected || r.Status == mqtt.Failed || r.Code == mqtt.CodeBusy {
		return fmt.Errorf("%s %s: %s: %s", name, r.Status, r.Code, r.Message)
	}
	fmt.Fprintf(out, "%s: %s\n", r.Status, r.Message)
	if r.Code == mqtt.CodeNeedsSecond {
		fmt.Fprintf(out, "approve cmd_id=%s\n", r.CmdID)
	} else if r.Result != nil {
		result, err := json.Marshal(r.Result)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", result)
	}
	return nil
}
