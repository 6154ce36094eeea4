// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/analysis/runs"
	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// correlateFlags are those of the subcommand.
type correlateFlags struct {
	at      []string
	outcome string
	format  string
}

func correlateCommand() *cobra.Command {
	var o correlateFlags
	cmd := &cobra.Command{
		Use:   "correlate FILE...",
		Short: "Show which settings move which outcomes over many runs, and predict an outcome",
		Long: "Reads a table of runs: the settings of each run and its outcomes. It shows how each outcome moves with each\n" +
			"setting: the rank correlation with its interval, the number of runs, and a p value corrected for the number of\n" +
			"pairs. With --at it predicts an outcome for settings that no run needs to have had. It warns when they lie outside\n" +
			"the settings of the runs.\n\n" +
			"FILE is CSV or JSON; - is the standard input. The first line of CSV has names such as\n" +
			"setting:threads,setting:exitless,outcome:throughput. Or it is one or more run files (*.tsrun), or folders of them:\n" +
			"then each repetition is a run, and the labels are its settings.",
		Example: "  teescope correlate runs.csv\n" +
			"  teescope correlate runs.csv --outcome throughput --at threads=16\n" +
			"  teescope correlate sweep/",
		Args: needsFiles(0),
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.at, "at", nil, "predict at this `SETTING=NUMBER`; may be repeated, once for each setting")
	f.StringVar(&o.outcome, "outcome", "", "with --at: the `name` of the outcome to predict")
	f.StringVar(&o.format, "format", "text", "`text` or json")
	complete(cmd, "format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// table reads a table of runs, or recorded runs.
func (o *correlateFlags) table(args []string) ([]runs.Run, error) {
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

func (o *correlateFlags) run(cmd *cobra.Command, args []string) error {
	at, err := o.settings()
	if err != nil {
		return err
	}
	table, err := o.table(args)
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
