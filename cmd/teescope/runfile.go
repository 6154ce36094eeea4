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
		Use:   "run",
		Short: "Show, export and import run files of teescope record, and keep them on a server",
		Long: "Shows run files of teescope record, exports them to the formats of other programs, imports such files as runs, and\n" +
			"keeps runs on a server.",
		Example: "  teescope run show redis.tsrun",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(runShowCommand(), runExportCommand(), runImportCommand())
	cmd.AddCommand(pushedCommands()...)
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

func runImportCommand() *cobra.Command {
	var format, saved string
	var labels []string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a run file of samples or benchmark results of another program",
		Long: "Makes a run file of OpenMetrics or Prometheus text with the time of each sample, of the CSV and JSON that\n" +
			"teescope run export writes, or of the output of a benchmark. A file of go test -bench -count 10 becomes a run\n" +
			"with 10 repetitions and no samples, which teescope compare takes. The format is recognised by the content.",
		Example: "  teescope run import redis.om\n" +
			"  teescope run import --label commit=a1b2c3d -o a1b2c3d.tsrun bench.txt",
		Args: needsFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "" && !slices.Contains(runfile.Formats(), format) {
				return fmt.Errorf("--format %q: use one of %s", format, strings.Join(runfile.Formats(), ", "))
			}
			given, err := pairs("label", labels)
			if err != nil {
				return err
			}
			said, err := runfile.Convert(args[0], format, saved, given)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), said)
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&format, "format", "", "input `format`: "+strings.Join(runfile.Formats(), ", ")+" (default: recognised)")
	f.StringVarP(&saved, "output", "o", "", "write this run `file` (default: FILE with the ending .tsrun)")
	f.StringArrayVar(&labels, "label", nil, "describe the run by a label `NAME=VALUE`; may be repeated")
	complete(cmd, "format", cobra.FixedCompletions(runfile.Formats(), cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "label", cobra.NoFileCompletions)
	return cmd
}
