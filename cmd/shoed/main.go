// Command shoed is the dealer-shoe controller of one baccarat table.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		stop()
		os.Exit(report(err, os.Stderr))
	}
}

// run is the whole program, for main and for tests.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cmd.ExecuteContext(ctx)
}

// report prints an error once and returns the exit code: 1 for a failure, 2
// for a command line that cannot be understood.
func report(err error, stderr io.Writer) int {
	text := "shoed: " + err.Error()
	if isJournal(stderr) { // takes each line for itself
		text = isError + strings.ReplaceAll(text, "\n", "\n"+isError)
	}
	fmt.Fprintln(stderr, text)
	var usage usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

// usageError is a mistake in the command line.
type usageError struct{ error }
