// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// reportFlags are the flags of the subcommand.
type reportFlags struct {
	cli.ReportOptions
	from, to, window, out string
}

func reportCommand() *cobra.Command {
	var o reportFlags
	cmd := &cobra.Command{
		Use:   "report [RUNFILE]",
		Short: "Write everything that the page shows of a time range as one HTML file",
		Long: "Queries a running teescope up or server, or any Prometheus that scrapes the agents, for everything that the page\n" +
			"shows of a time range. It writes one HTML file with the verdict, the findings, and every panel with its data and\n" +
			"its PromQL. The file opens in any browser without a server, sends no requests, and can be printed.\n\n" +
			"With a run file of teescope record (*.tsrun) it queries no server, and the time range is that of the recording.\n\n" +
			"Findings that a silence of the server hides are counted and not listed. --silences reads silences from a file.\n\n" +
			"It needs no privileges. A report has a few hundred kilobytes. It contains the 300 largest series of each query.",
		Example: "  teescope report\n" +
			"  teescope report --window 1h --workload redis-server -o redis.html\n" +
			"  teescope report redis.tsrun -o redis.html\n" +
			"  teescope report --server http://prometheus:9090 --from 2026-01-02T15:00:00Z --to 2026-01-02T15:30:00Z",
		Args: cobra.MaximumNArgs(1),
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	serverFlags(cmd, &o.Server, &o.Access)
	f.StringVar(&o.window, "window", "15m", "how far back to look, a `duration` such as 90s or 6h")
	f.StringVar(&o.from, "from", "", "start at this `time`, such as 2026-01-02T15:04:05Z or seconds since 1970, instead of --window before the end")
	f.StringVar(&o.to, "to", "", "end at this `time` (default now)")
	f.StringVar(&o.Workload, "workload", "", "show only the workload with this `name` and the machine as a whole")
	silencesFlag(cmd, &o.Silences)
	f.StringVarP(&o.out, "output", "o", "teescope-report.html", "write this `file`, - for the standard output")
	f.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "stop after this time")
	for _, name := range []string{"window", "from", "to", "workload", "timeout"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (o *reportFlags) run(cmd *cobra.Command, args []string) error {
	if err := o.validate(cmd); err != nil {
		return err
	}
	if len(args) > 0 {
		if err := o.recorded(cmd, args[0]); err != nil {
			return err
		}
	}
	o.Version, o.Page = version(), page()
	var file bytes.Buffer
	summary, err := cli.Report(cmd.Context(), &file, o.ReportOptions)
	if err != nil {
		return findServer(err)
	}
	if o.out == "-" {
		_, err := cmd.OutOrStdout().Write(file.Bytes())
		return err
	}
	if err := atomicfile.Write(o.out, file.Bytes(), 0o644); err != nil { // it is made to be passed on
		return fmt.Errorf("writing the report: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d kB, %d series of %s; open it in a browser.\n",
		o.out, (file.Len()+999)/1000, summary.Series, text.Plural(summary.Questions, "query", "queries"))
	if n := len(summary.LeftOut); n > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "The report is not complete: %s missing. Its end lists what is missing, with the reasons.\n", text.Plural(n, "part is", "parts are"))
	}
	return nil
}

// recorded takes the series from a run file. Without times of the user, its own count.
func (o *reportFlags) recorded(cmd *cobra.Command, file string) error {
	if !cli.IsRunFile(file) {
		return fmt.Errorf("%s is not a run file (*.tsrun): name one that teescope record wrote, or a server with --server", file)
	}
	set := cmd.Flags().Changed
	for _, name := range serverFlagNames() {
		if set(name) {
			return fmt.Errorf("--%s names a server, but the series are read from %s: use only one of the two", name, file)
		}
	}
	if o.File = file; !set("from") && !set("to") && !set("window") {
		o.From, o.To = time.Time{}, time.Time{}
	} else if !set("to") {
		return errors.New("--from and --window of a run file need --to: its end is not now")
	}
	return nil
}

func (o *reportFlags) validate(cmd *cobra.Command) error {
	if o.Timeout < time.Second || o.Timeout > time.Hour {
		return fmt.Errorf("--timeout %s: use a time from 1s to 1h", o.Timeout)
	}
	if o.from != "" && cmd.Flags().Changed("window") {
		return errors.New("--from and --window exclude each other: both set the start")
	}
	o.To = time.Now()
	var err error
	if o.to != "" {
		if o.To, err = moment("to", o.to); err != nil {
			return err
		}
	}
	// The page has a resolution of one second.
	o.To = o.To.Truncate(time.Second)
	window, err := model.ParseDuration(o.window)
	o.From = o.To.Add(-time.Duration(window))
	if o.from != "" {
		if o.From, err = moment("from", o.from); err != nil {
			return err
		}
		o.From = o.From.Truncate(time.Second)
		if !o.From.Before(o.To) {
			return fmt.Errorf("--from %q: it must be before the end, which is %s", o.from, o.To.UTC().Format(time.RFC3339))
		}
		if length := o.To.Sub(o.From); length < 10*time.Second || length > 7*24*time.Hour {
			return fmt.Errorf("--from %q: it is %s before the end; a report covers 10s to 7d", o.from, length)
		}
	} else if err != nil || window < model.Duration(10*time.Second) || window > model.Duration(7*24*time.Hour) {
		return fmt.Errorf("--window %q: use a duration from 10s to 7d, such as 90s or 6h", o.window)
	}
	return nil
}
