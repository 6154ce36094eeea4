// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/app"
)

func agentCommand() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "agent",
		Short: "Only export metrics, for a Prometheus or a teescope server elsewhere",
		Long: "Counts what the workloads of this machine ask of the kernel and exposes it at /metrics, in OpenMetrics\n" +
			"and Prometheus' text format. It stores nothing.\n\n" +
			"It needs root, or the capabilities CAP_BPF and CAP_PERFMON.",
		Example: "  sudo teescope agent\n" +
			"  sudo teescope agent --listen :9750 --workloads.max 256",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := options(cmd)
			if err != nil {
				return err
			}
			return app.Agent(cmd.Context(), o)
		},
	})
}
