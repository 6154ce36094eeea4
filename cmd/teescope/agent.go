// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/app"
)

func agentCommand() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "agent",
		Short: "Export metrics to a Prometheus or a teescope server elsewhere",
		Long: "Counts the system calls, page faults, context switches and enclave events of this machine's workloads and\n" +
			"exports them at /metrics, in the OpenMetrics and Prometheus text formats. It stores nothing.\n\n" +
			"It needs root, or the capabilities CAP_BPF and CAP_PERFMON.",
		Example: "  sudo teescope agent\n" +
			"  sudo teescope agent --listen :9750 --web.config-file web.yml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := options(cmd)
			if err != nil {
				return err
			}
			return app.Agent(cmd.Context(), o)
		},
	})
}
