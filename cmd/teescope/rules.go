// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teescope/teescope/internal/app"
	"github.com/teescope/teescope/internal/cli"
)

func rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check, test, show and export alerting and recording rules",
		Long: "Rule files have Prometheus' format. \"teescope up\" and \"teescope server\" evaluate the rules that come with\n" +
			"teescope and those of rules.files. They run unchanged on a stock Prometheus.",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(rulesCheckCommand(), rulesExportCommand(), rulesShowCommand(), rulesTestCommand())
	return cmd
}

func rulesCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Check rule files for errors",
		Long: "Reads rule files as Prometheus does and lists the errors with file, line and rule. It warns about rules that work\n" +
			"but are probably mistakes: an unknown metric of teescope, a rule that occurs twice.\n\n" +
			"The exit status is 0 when the rules are valid, and 1 when they are not.",
		Example: "  teescope rules check /etc/teescope/rules/*.yaml",
		Args:    needsFiles(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.CheckRules(cmd.OutOrStdout(), app.Descriptions(), args)
		},
	}
}

func rulesTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE...",
		Short: "Run unit tests of rules in promtool's format",
		Long: "Runs files of unit tests as \"promtool test rules\" does. A test has input series and the alerts and results that\n" +
			"are expected. The names of rule files in a test file are relative to it.\n\n" +
			"The exit status is 0 when all tests pass, and 1 when one fails.",
		Example: "  teescope rules test rules_test.yaml",
		Args:    needsFiles(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.TestRules(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
}

func rulesShowCommand() *cobra.Command {
	cmd := configured(&cobra.Command{
		Use:   "show",
		Short: "List the rules that a server with this configuration evaluates",
		Long: "Lists the rules in the order of their evaluation, each with its file and line. Alerts are listed with the basis of\n" +
			"their threshold: measured, documented or proposed.",
		Example: "  teescope rules show\n" +
			"  teescope rules show --json --rules.files '/etc/teescope/rules/*.yaml'",
	})
	// The flags of a server are accepted, so that a user can repeat a server's command line. Only a few change the list.
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "config" && !strings.HasPrefix(f.Name, "rules.") })
	asJSON := cmd.Flags().Bool("json", false, "write JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := load(cmd)
		if err != nil {
			return err
		}
		files, err := app.Rules(cfg)
		if err != nil {
			return err
		}
		return cli.ShowRules(cmd.OutOrStdout(), files, cfg.Rules.Interval, *asJSON)
	}
	return cmd
}

func rulesExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export DIRECTORY",
		Short: "Write the rules that come with teescope for a stock Prometheus",
		Long: "Writes the rule files and the runbooks that their alerts link to. Links are relative (docs/runbooks/NAME.md) unless\n" +
			"--runbooks sets the address of the runbooks.",
		Example: "  teescope rules export /etc/prometheus/teescope\n" +
			"  teescope rules export --runbooks http://teescope:9750/docs/runbooks /etc/prometheus/teescope",
		Args: needs(1, "the directory to write to"),
	}
	base := cmd.Flags().String("runbooks", "", "base `URL` of the runbooks")
	force := cmd.Flags().Bool("force", false, "overwrite existing files")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return cli.ExportRules(cmd.OutOrStdout(), args[0], *base, *force)
	}
	return cmd
}
