// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/app"
)

func dashboardsCommand() *cobra.Command {
	dashboards := &cobra.Command{
		Use:   "dashboards",
		Short: "The page's panels as Grafana dashboards",
	}
	export := &cobra.Command{
		Use:   "export [DIR]",
		Short: "Write Grafana dashboards, one JSON file each",
		Long: "Writes the panels of the page as Grafana dashboards (10 to 12), one file each, into a directory, which is made\n" +
			"when it is not there. They ask any Prometheus that scrapes teescope, or teescope itself; data source, machine and\n" +
			"workload are variables. Import them by hand or provision them: deploy/grafana has what that needs.",
		Example: "  teescope dashboards export /etc/grafana/dashboards",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			names, err := app.ExportDashboards(dir)
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return err
		},
	}
	dashboards.AddCommand(export)
	return dashboards
}
