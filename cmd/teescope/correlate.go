// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/analysis"
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
		Use:   "correlate FILE",
		Short: "Say which setting moves which outcome, over runs, and predict one",
		Long: "Reads a table of runs, each with the settings that it had and what came of it, and says how each outcome\n" +
			"moves with each setting: by rank correlation, with interval, number of runs, and a correction for how many\n" +
			"pairs were looked at. With --at it predicts an outcome at settings that need not have been tried, and says\n" +
			"when they lie outside those that were.\n\n" +
			"FILE is CSV with a first line of names such as setting:threads,setting:exitless,outcome:throughput, or JSON;\n" +
			"- is the standard input.",
		Example: "  teescope correlate runs.csv\n" +
			"  teescope correlate runs.csv --outcome throughput --at threads=16",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.at, "at", nil, "predict at this `SETTING=NUMBER`; once for each setting")
	f.StringVar(&o.outcome, "outcome", "", "with --at: the `name` of the outcome to predict")
	f.StringVar(&o.format, "format", "text", "`text` or json")
	complete(cmd, "format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *correlateFlags) run(cmd *cobra.Command, file string) error {
	at, err := o.settings()
	if err != nil {
		return err
	}
	in, name := os.Stdin, "standard input"
	if file != "-" {
		if in, err = os.Open(file); err != nil {
			return fmt.Errorf("reading the runs: %w", err)
		}
		defer in.Close()
		name = file
	}
	runs, err := analysis.ReadRuns(name, in)
	if err != nil {
		return err
	}
	var forecast *analysis.Forecast
	if len(at) > 0 {
		if forecast, err = analysis.Predict(runs, o.outcome, at); err != nil {
			return err
		}
	}
	found := analysis.Correlate(runs)
	if o.format == "json" {
		return analysis.WriteCorrelation(cmd.OutOrStdout(), found, forecast)
	}
	if err := found.Text(cmd.OutOrStdout()); err != nil || forecast == nil {
		return err
	}
	return forecast.Text(cmd.OutOrStdout())
}

// settings reads --at.
func (o *correlateFlags) settings() (map[string]float64, error) {
	if o.format != "text" && o.format != "json" {
		return nil, fmt.Errorf("--format %q: it is text or json", o.format)
	}
	if (o.outcome == "") != (len(o.at) == 0) {
		return nil, errors.New("a prediction needs both --outcome, which one, and --at, at which setting")
	}
	at := make(map[string]float64)
	for _, text := range o.at {
		name, value, _ := strings.Cut(text, "=")
		v, err := strconv.ParseFloat(value, 64)
		if _, twice := at[name]; err != nil || name == "" || twice {
			return nil, fmt.Errorf("--at %q: it is SETTING=NUMBER, each setting once", text)
		}
		at[name] = v
	}
	return at, nil
}
