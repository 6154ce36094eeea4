// SPDX-License-Identifier: Apache-2.0

// Command teescope shows, while it runs, why a workload inside a trusted execution environment is slow. This directory
// holds the flags and the help of the commands. What they do is in internal/cli, and internal/app composes the services.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/teescope/teescope/internal/lib/text"
)

func main() {
	surviveHangup(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if !isPart(os.Args[1:]) {
		context.AfterFunc(ctx, stop) // a second signal ends the program at once
	}
	if err := run(ctx, os.Stdout, os.Stderr, os.Args[1:]); err != nil {
		// An error may have names out of files.
		fmt.Fprintln(os.Stderr, "teescope:", text.TerminalLines(err.Error()))
		os.Exit(status(err))
	}
}

func run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	root := newRoot()
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	if err := knownSubcommand(root, args); err != nil {
		return err
	}
	return root.ExecuteContext(ctx)
}
