// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/analysis/runs"
	"github.com/teescope/teescope/internal/cli"
	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// correlateFlags are the flags of the subcommand.
type correlateFlags struct {
	cli.LiveRuns
	span    string
	queries []string
	at      []string
	outcome string
	format  string
}

func correlateCommand() *cobra.Command {
	var o correlateFlags
	cmd := &cobra.Command{
		Use:   "correlate [FILE...]",
		Short: "Show which settings correlate with which outcomes over many runs, and predict an outcome",
		Long: "Reads a table of runs: the settings of each run and its outcomes. It shows how each outcome changes with each\n" +
			"setting: the rank correlation with its interval, the number of runs, and a p value corrected for the number of\n" +
			"pairs. With --at it predicts an outcome for settings that no run needs to have had. It warns when they lie outside\n" +
			"the settings of the runs.\n\n" +
			"FILE is CSV or JSON; - is the standard input. The first line of CSV has names such as\n" +
			"setting:threads,setting:exitless,outcome:throughput. Or it is one or more run files (*.tsrun), or folders of them:\n" +
			"then each repetition is a run. Its settings are the labels, and the recorded properties of the machine, the environment\n" +
			"and Gramine's manifest that differ between the runs.\n\n" +
			"With --workload it reads no file and asks a server. A run is then the time in which the settings of the workload stayed\n" +
			"the same on one machine, for at least three steps of a 500th of --range and of at least a minute. The settings are\n" +
			"environment variables (workloads.settings of the agents), or the labels of an --info metric of the application. The\n" +
			"outcomes are medians of the agents' counts per second, or of --query.",
		Example: "  teescope correlate runs.csv\n" +
			"  teescope correlate runs.csv --outcome throughput --at threads=16\n" +
			"  teescope correlate sweep/\n" +
			"  teescope correlate --workload model-server --range 7d\n" +
			"  teescope correlate --workload redis-server --info redis_config_info --query 'p99=redis_p99_seconds'",
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Workload, "workload", "", "ask a server for the settings and outcomes of this `workload`")
	f.StringVar(&o.span, "range", "1d", "with --workload: how far back, a `duration` such as 12h or 7d")
	f.StringVar(&o.Info, "info", "", "with --workload: the `metric` whose labels are the settings, with the label workload")
	f.StringArrayVar(&o.queries, "query", nil, "with --workload: an outcome as `NAME=PROMQL`, with the labels instance and workload; may be repeated")
	f.DurationVar(&o.Timeout, "timeout", time.Minute, "with --workload: stop after this time")
	serverFlags(cmd, &o.Server, &o.Access)
	f.StringArrayVar(&o.at, "at", nil, "predict at this `SETTING=NUMBER`; may be repeated, once for each setting")
	f.StringVar(&o.outcome, "outcome", "", "with --at: the `name` of the outcome to predict")
	f.StringVar(&o.format, "format", "text", "`text` or json")
	for _, name := range []string{"workload", "range", "info", "query", "timeout", "at", "outcome"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	complete(cmd, "format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// table reads a table of runs, or recorded runs.
func (o *correlateFlags) table(cmd *cobra.Command, args []string) ([]runs.Run, error) {
	if o.Workload != "" {
		return o.live(cmd, args)
	}
	if len(args) == 0 {
		return nil, errors.New("name a file, for example: teescope correlate runs.csv, or a workload of a server: teescope correlate --workload model-server")
	}
	for _, name := range append([]string{"range", "info", "query", "timeout"}, serverFlagNames()...) {
		if cmd.Flags().Changed(name) {
			return nil, fmt.Errorf("--%s needs --workload: without it, runs are read from files", name)
		}
	}
	if recorded, err := compared.Runs(args); recorded != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return runs.Recorded(recorded)
	}
	if len(args) > 1 {
		return nil, fmt.Errorf("%d arguments; the maximum is 1 for tables, and run files are called *%s", len(args), compared.Extension)
	}
	if args[0] == "-" {
		return runs.Read("standard input", os.Stdin)
	}
	in, err := inputfile.Open(args[0])
	if err != nil {
		return nil, fmt.Errorf("reading the runs: %w", text.Remedy(err, "use - for the standard input"))
	}
	defer in.Close()
	return runs.Read(args[0], in)
}

// live asks a server for the runs.
func (o *correlateFlags) live(cmd *cobra.Command, args []string) ([]runs.Run, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("--workload asks a server, and %s is a file: use one of them", text.Terminal(args[0]))
	}
	span, err := model.ParseDuration(o.span)
	if err != nil || span < model.Duration(10*time.Minute) {
		return nil, fmt.Errorf("--range %q: use a duration of at least 10m, such as 12h or 7d", o.span)
	}
	o.Span, o.Outcomes = time.Duration(span), make(map[string]string, len(o.queries))
	for _, q := range o.queries {
		name, expr, ok := strings.Cut(q, "=")
		if _, twice := o.Outcomes[name]; !ok || name == "" || expr == "" || twice {
			return nil, fmt.Errorf("--query %q: use NAME=PROMQL, each name once", q)
		}
		o.Outcomes[name] = expr
	}
	table, warnings, err := o.Table(cmd.Context())
	for _, w := range warnings {
		cmd.PrintErrf("warning: %s\n", w)
	}
	return table, err
}

func (o *correlateFlags) run(cmd *cobra.Command, args []string) error {
	at, err := o.settings()
	if err != nil {
		return err
	}
	table, err := o.table(cmd, args)
	if err != nil {
		return err
	}
	var forecast *runs.Forecast
	if len(at) > 0 {
		if forecast, err = runs.Predict(table, o.outcome, at); err != nil {
			return err
		}
	}
	found := runs.Correlate(table)
	if o.format == "json" {
		return runs.WriteJSON(cmd.OutOrStdout(), found, forecast)
	}
	if err := found.Text(cmd.OutOrStdout()); err != nil || forecast == nil {
		return err
	}
	return forecast.Text(cmd.OutOrStdout())
}

// settings reads --at.
func (o *correlateFlags) settings() (map[string]float64, error) {
	if o.format != "text" && o.format != "json" {
		return nil, fmt.Errorf("--format %q: use text or json", o.format)
	}
	if (o.outcome == "") != (len(o.at) == 0) {
		return nil, errors.New("a prediction needs both --outcome and --at: which outcome, at which settings")
	}
	at := make(map[string]float64)
	for _, text := range o.at {
		name, value, _ := strings.Cut(text, "=")
		v, err := strconv.ParseFloat(value, 64)
		if _, twice := at[name]; err != nil || name == "" || twice {
			return nil, fmt.Errorf("--at %q: use SETTING=NUMBER, once for each setting", text)
		}
		at[name] = v
	}
	return at, nil
}
