// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/app"
)

func rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check, test, show and export alerting and recording rules",
		Long: "Rules are files in Prometheus' format. Those that come with teescope and those of rules.files are evaluated by\n" +
			"\"teescope up\" and \"teescope server\", and run unchanged on a stock Prometheus.",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(rulesCheckCommand(), rulesExportCommand(), rulesShowCommand(), rulesTestCommand())
	return cmd
}

func rulesCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Say what is wrong with files of rules",
		Long: "Reads files of rules as Prometheus would, and says what is wrong with them, with file, line and rule. Warnings\n" +
			"are about rules that work and are probably not meant: an unknown metric of teescope, a rule that is there twice.\n\n" +
			"The exit status is 0 when the rules can be used, and 1 when they cannot.",
		Example: "  teescope rules check /etc/teescope/rules/*.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.CheckRules(cmd.OutOrStdout(), args)
		},
	}
}

func rulesTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE...",
		Short: "Run unit tests of rules, in promtool's format",
		Long: "Runs files of unit tests as \"promtool test rules\" does: input series, and the alerts and results that are\n" +
			"expected of them. Names of rule files in them are relative to the file.\n\n" +
			"The exit status is 0 when all tests pass, and 1 when one does not.",
		Example: "  teescope rules test rules_test.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.TestRules(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
}

func rulesShowCommand() *cobra.Command {
	cmd := configured(&cobra.Command{
		Use:   "show",
		Short: "List the rules that a server with this configuration evaluates",
		Long: "Lists the rules in the order of their evaluation, each with its file and line, and alerts with what their\n" +
			"threshold rests on: measured, documented or proposed.",
		Example: "  teescope rules show\n" +
			"  teescope rules show --json --rules.files '/etc/teescope/rules/*.yaml'",
	})
	asJSON := cmd.Flags().Bool("json", false, "write JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(cmd)
		if err != nil {
			return err
		}
		return app.ShowRules(cmd.OutOrStdout(), cfg, *asJSON)
	}
	return cmd
}

func rulesExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export DIRECTORY",
		Short: "Write the rules that come with teescope, for a stock Prometheus",
		Long: "Writes the files of rules and the runbooks that their alerts link to. Links are relative (docs/runbooks/NAME.md)\n" +
			"unless --runbooks says where the runbooks can be read.",
		Example: "  teescope rules export /etc/prometheus/teescope\n" +
			"  teescope rules export --runbooks http://teescope:9750/docs/runbooks /etc/prometheus/teescope",
		Args: cobra.ExactArgs(1),
	}
	base := cmd.Flags().String("runbooks", "", "`URL` below which the runbooks can be read")
	force := cmd.Flags().Bool("force", false, "overwrite files")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return app.ExportRules(cmd.OutOrStdout(), args[0], *base, *force)
	}
	return cmd
}
