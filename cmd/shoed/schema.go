package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"shoed/mqtt"
)

func schemaCommand() *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the contract: an AsyncAPI document, or one payload's JSON Schema",
		Long: `Schema prints the AsyncAPI 3.0 document of everything that a table sends and
receives over MQTT. With NAME it prints the JSON Schema (2020-12) of that
payload, such as state.

What a table sends may gain fields: the schemas allow those that they do not
name. The values of an enumeration are examples; others may come.`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			text, names := mqtt.AsyncAPI(), mqtt.SchemaNames()
			switch {
			case list && len(a) > 0:
				return usageError{errors.New("--list or NAME, not both")}
			case list:
				text = strings.Join(names, "\n") + "\n"
			case len(a) > 0:
				var ok bool
				if text, ok = mqtt.Schema(a[0]); !ok {
					return usageError{fmt.Errorf("no schema %q: there are %s", a[0], strings.Join(names, ", "))}
				}
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the payloads that have a schema")
	return cmd
}
