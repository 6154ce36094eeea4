// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli"
	"github.com/teescope/teescope/internal/lib/remote"
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
			names, err := cli.ExportDashboards(directory(args))
			return list(cmd, names, err)
		},
	}
	dashboards.AddCommand(export, keptDashboardsCommand())
	return dashboards
}

func keptDashboardsCommand() *cobra.Command {
	var server string
	var access remote.Access
	kept := &cobra.Command{
		Use:   "kept [DIR]",
		Short: "Export the dashboards that users have saved on a server for Grafana",
		Long: "Writes the dashboards that users have made on the page of a running teescope up or server as Grafana dashboards\n" +
			"(Grafana 10 to 12), one JSON file each, into a directory, which it creates if needed.",
		Example: "  teescope dashboards kept /etc/grafana/dashboards",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := cli.ExportKept(cmd.Context(), directory(args), server, access)
			return list(cmd, names, findServer(err))
		},
	}
	serverFlags(kept, &server, &access)
	return kept
}

// directory returns the directory that the arguments name, or the present one.
func directory(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "."
}

// list prints the names of files, unless they could not be written.
func list(cmd *cobra.Command, names []string, err error) error {
	for _, name := range names {
		fmt.Fprintln(cmd.OutOrStdout(), name)
	}
	return err
}
