// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli/runfile"
)

func runFileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Show and export run files of teescope record",
		Long:    "Shows run files of teescope record, and exports them to the formats of other programs.",
		Example: "  teescope run show redis.tsrun",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(runShowCommand(), runExportCommand())
	return cmd
}

func runShowCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "show FILE...",
		Short: "Show what run files have",
		Long: "Shows what was run under which conditions, how the recording ended, the phases and outcomes of each repetition, and\n" +
			"the totals of the metrics that teescope compare uses. A file that was cut off or is damaged is shown as far as it\n" +
			"can be read, and the command says so.",
		Example: "  teescope run show redis.tsrun",
		Args:    needsFiles(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, file := range args {
				r, err := runfile.Open(file)
				if err != nil {
					return err
				}
				if err := runfile.Show(cmd.OutOrStdout(), r, file, all); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list each series with its last value")
	return cmd
}

func runExportCommand() *cobra.Command {
	var o runsFlags
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write a run file in the format of another program",
		Long: "Writes the samples as OpenMetrics text with timestamps (for teescope analyze or promtool) or as CSV, the whole file as\n" +
			"JSON, or the outcomes in Go's benchmark format (for benchstat).",
		Example: "  teescope run export redis.tsrun --format openmetrics -o redis.om\n" +
			"  teescope run export redis.tsrun --format json",
		Args: needsFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(runfile.Formats(), o.format) {
				return fmt.Errorf("--format %q: use one of %s", o.format, strings.Join(runfile.Formats(), ", "))
			}
			r, err := runfile.Open(args[0])
			if err != nil {
				return err
			}
			return o.save(cmd.OutOrStdout(), func(w io.Writer) error { return runfile.Export(w, r, o.format) })
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.format, "format", "openmetrics", "output `format`: "+strings.Join(runfile.Formats(), ", "))
	f.StringVarP(&o.saved, "output", "o", "", "write to this `file`")
	complete(cmd, "format", cobra.FixedCompletions(runfile.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
