package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the release build with -ldflags "-X main.version=…".
var version = "devel"

// build says which program this is.
type build struct {
	version string
	commit  string
	sha256  string // of the running file; "" when it cannot be read
}

func thisBuild() build {
	b := build{version: version, commit: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.commit = s.Value
			}
		}
	}
	if path, err := os.Executable(); err == nil {
		b.sha256, _ = fileHash(path) // shown as unknown
	}
	return b
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and the hash of the running file",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout())
		},
	}
}

func printVersion(w io.Writer) error {
	b := thisBuild()
	_, err := fmt.Fprintf(w, "shoed %s\ncommit %s\nsha256 %s\n%s %s/%s\n",
		b.version, b.commit, b.sha256, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
