package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shoed/round"
)

func answerCommand() *cobra.Command {
	var configPath, socket string
	cmd := &cobra.Command{
		Use:   "answer DO [key=value ...]",
		Short: "Answer an alert at the table itself",
		Long: `Answer tells the running shoed what was decided about an alert:

  shoed answer confirm
  shoed answer correct P2=8s B3=9d
  shoed answer hold_card where=next_round
  shoed answer void alert=A000012

Without alert= it goes to the oldest alert that allows it. Keys: alert, round,
where (next_round, burn, free_hand, use), exposed, as_dealt, order
(any, player_first, banker_first), and cards by box.`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			body, err := answerBody(a[0], a[1:])
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
			return sendAnswer(socket, body, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&configPath, "config", "", "configuration file that names the socket")
	cmd.Flags().StringVar(&socket, "socket", "", "control socket of the running shoed")
	return cmd
}

// answerBody makes the request from the command line's words.
func answerBody(do string, words []string) ([]byte, error) {
	if _, err := round.ParseDo(do); err != nil {
		return nil, err
	}
	fields := map[string]any{"do": do}
	cards := map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case !ok || value == "":
			return nil, fmt.Errorf("%q: write it as key=value", word)
		case key == "alert" || key == "where" || key == "order":
			fields[key] = value
		case key == "round" || key == "exposed" || key == "as_dealt":
			fields[key] = json.RawMessage(value)
		default:
			cards[key] = value
		}
	}
	if len(cards) > 0 {
		fields["cards"] = cards
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("round= wants a number, exposed= and as_dealt= true or false: %w", err)
	}
	_, err = parseAnswer(body, "")
	return body, err
}

// sendAnswer prints the events that followed. A refusal is an error.
func sendAnswer(socket string, body []byte, out io.Writer) error {
	conn, err := net.DialTimeout("unix", socket, controlTimeout)
	if err != nil {
		return fmt.Errorf("no shoed answers: %w; is it running, and are you its user or root?", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(3 * controlTimeout))
	if _, err := conn.Write(append(body, '\n')); err != nil {
		return err
	}
	var reply controlReply
	if err := json.NewDecoder(bufio.NewReader(conn)).Decode(&reply); err != nil {
		return fmt.Errorf("no reply from shoed: %w", err)
	}
	if reply.Error != "" {
		return errors.New(reply.Error)
	}
	refused := ""
	for _, e := range reply.Events {
		fmt.Fprintln(out, e)
		var text round.EventText
		if err := json.Unmarshal([]byte(e), &text); err == nil && text.Ev == round.AnswerRefused.String() {
			refused = text.Why
		}
	}
	if refused != "" {
		return errors.New("refused: " + refused)
	}
	return nil
}
