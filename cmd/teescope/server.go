// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/app"
)

func serverCommand() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "server",
		Short: "Scrape, store and show the metrics of agents",
		Long: "Scrapes teescope agents, stores their metrics and shows them. One port serves the page at / and the Prometheus\n" +
			"API at /api/v1. It needs no privileges.",
		Example: "  teescope server --targets node1:9750,node2:9750\n" +
			"  teescope server --config server.yml --listen :9750 --web.config-file web.yml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := options(cmd)
			if err != nil {
				return err
			}
			return app.Server(cmd.Context(), o)
		},
	})
}
