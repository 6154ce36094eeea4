// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/app"
	"github.com/teescope/teescope/internal/lib/supervisor"
)

// The subcommands that up runs as its parts.
const (
	upAgent  = "up-agent"
	upServer = "up-server"
)

// isPart reports whether this process is a part of up. A service manager sends its signals to all processes, and the
// supervisor sends one too, so a second one must not cut the end short. The supervisor kills a part that hangs.
func isPart(args []string) bool {
	return len(args) > 0 && (args[0] == upAgent || args[0] == upServer)
}

func upCommand() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "up",
		Short: "Watch this machine: agent, storage and page in one command",
		Long: "Counts the system calls, page faults, context switches and enclave events of this machine's workloads, stores\n" +
			"them and shows them. One port serves the page at /, the Prometheus API at /api/v1 and the metrics at /metrics.\n" +
			"The agent and the storage are two processes. One that ends is started again, and the other goes on.\n\n" +
			"It needs root, or the capabilities CAP_BPF and CAP_PERFMON.",
		Example: "  sudo teescope up\n" +
			"  sudo teescope up --interval 1s --watch comm=redis-server\n" +
			"  sudo teescope up --data-dir /srv/teescope --retention.time 2d",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := options(cmd)
			if err != nil {
				return err
			}
			return app.Up(cmd.Context(), o, app.Parts{
				Agent: app.PartArgs(os.Args[1:], upAgent), Server: app.PartArgs(os.Args[1:], upServer),
			})
		},
	})
}

// upPartCommand is the command of one part of up. Only up runs it.
func upPartCommand(name string, run func(context.Context, app.Options, *supervisor.Link) error) *cobra.Command {
	return configured(&cobra.Command{
		Use: name, Hidden: true, Short: "A part of up",
		RunE: func(cmd *cobra.Command, _ []string) error {
			link, err := supervisor.Inherited()
			if err != nil {
				return err
			}
			o, err := options(cmd)
			if err == nil {
				err = run(cmd.Context(), o, link)
			}
			if err != nil {
				link.Fail(err)
				os.Exit(1) // the supervisor reports the error
			}
			return nil
		},
	})
}
