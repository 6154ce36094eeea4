// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/app"
)

func upCommand() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "up",
		Short: "Watch this machine: agent, storage and page in one process",
		Long: "Counts the system calls, page faults, context switches and enclave events of this machine's workloads, stores\n" +
			"them and shows them. One port serves the page at /, the Prometheus API at /api/v1 and the metrics at /metrics.\n\n" +
			"It needs root, or the capabilities CAP_BPF and CAP_PERFMON.",
		Example: "  sudo teescope up\n" +
			"  sudo teescope up --interval 1s --watch comm=redis-server\n" +
			"  sudo teescope up --data-dir /srv/teescope --retention.time 2d",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := options(cmd)
			if err != nil {
				return err
			}
			return app.Up(cmd.Context(), o)
		},
	})
}
