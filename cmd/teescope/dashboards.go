// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli"
)

func dashboardsCommand() *cobra.Command {
	dashboards := &cobra.Command{
		Use:   "dashboards",
		Short: "Export the panels of the page as Grafana dashboards",
	}
	export := &cobra.Command{
		Use:   "export [DIR]",
		Short: "Write Grafana dashboards, one JSON file each",
		Long: "Writes the panels of the page as Grafana dashboards (Grafana 10 to 12), one file each, into a directory, which it\n" +
			"creates if needed. The dashboards query any Prometheus that scrapes teescope, or teescope itself. Data source,\n" +
			"machine and workload are variables. Import the files by hand, or provision them as deploy/grafana shows.",
		Example: "  teescope dashboards export /etc/grafana/dashboards",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			names, err := cli.ExportDashboards(dir)
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return err
		},
	}
	dashboards.AddCommand(export)
	return dashboards
}
