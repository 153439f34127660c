package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

func keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make a key to sign commands with, or show a key's public half",
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "new FILE",
		Short: "Make an Ed25519 key (PEM, PKCS#8) that only you can read, and print its public half",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			key, err := makeKey(a[0])
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s is there already and no key is ever replaced: give another name, or see what it is: shoed key show %s", a[0], a[0])
			}
			if err != nil {
				return fmt.Errorf("the key cannot be kept: %w", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), publicHalf(key))
			fmt.Fprintf(cmd.ErrOrStderr(), "let the table know it, in [access]: keys = [\"NAME=%s\"]\n", publicHalf(key))
			return nil
		},
	}, &cobra.Command{
		Use:   "show FILE",
		Short: "Print the public half, in base64, of a key such as table.key",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			key, err := readKey(a[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), publicHalf(key))
			return err
		},
	})
	return cmd
}

// readKey reads the private key in a file.
func readKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: make one with shoed key new", path, err)
	}
	return key, nil
}
