// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/cli"
	"github.com/teescope/teescope/internal/lib/remote"
)

// foundStatus is the exit status when a finding matches --fail-on.
const foundStatus = 3

// statusError is an error with an exit status of its own.
type statusError struct {
	error
	status int
}

// status returns the exit status for an error.
func status(err error) int {
	var e *statusError
	if errors.As(err, &e) {
		return e.status
	}
	return 1
}

// analyzeFlags are the flags of an analysis.
type analyzeFlags struct {
	cli.Analysis
	at, window, format, failOn string
	limit                      int
	all                        bool
}

func formats() []string { return []string{"text", "json", "markdown"} }

func analyzeCommand() *cobra.Command {
	var o analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze [FILE]",
		Short: "Find out what slows workloads down, and estimate what a change would gain",
		Long: "Looks for known causes in the stored series of the last minutes. The report starts with the verdict. Each cause\n" +
			"follows with its figures, the queries that show them, advice, and an estimate of the gain. The report ends with\n" +
			"the questions that could not be answered.\n\n" +
			"It queries a running teescope up or server, or any Prometheus or VictoriaMetrics that scrapes the agents\n" +
			"(--server). With FILE it queries no server, and reads a run file of teescope record (*.tsrun), or OpenMetrics text\n" +
			"with timestamps, - for the standard input. In a run file it judges the steady state of the last repetition, or all\n" +
			"of it. It needs no privileges.\n\n" +
			"Findings that a silence of the server hides are counted and not listed. --silences reads silences from a file, and\n" +
			"--muted lists the hidden findings too.\n\n" +
			"The exit status is 0 on success, 1 when the analysis failed, and 3 when a finding without a silence matches --fail-on.",
		Example: "  teescope analyze\n" +
			"  teescope analyze --server http://prometheus:9090 --workload redis-server --window 15m\n" +
			"  teescope analyze --server https://admin@node1:9750 --ca-file ca.pem --password-file password\n" +
			"  teescope analyze --format json --fail-on high\n" +
			"  teescope analyze recorded.om\n" +
			"  teescope analyze redis.tsrun\n" +
			"  teescope analyze --profile ocalls.pb.gz --profile waits.pb.gz",
		Args: cobra.MaximumNArgs(1),
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	serverFlags(cmd, &o.Server, &o.Access)
	f.StringVar(&o.window, "window", "5m", "how far back to look, a `duration` such as 90s or 15m (for a run file: its steady state)")
	f.StringVar(&o.at, "at", "", "end of the window: a `time` such as 2026-01-02T15:04:05Z, or seconds since 1970 (default: now; for a file, its last sample)")
	f.StringVar(&o.Workload, "workload", "", "analyze only the workload with this `name`")
	f.StringVar(&o.format, "format", "text", "output `format`: "+strings.Join(formats(), ", "))
	f.StringVar(&o.failOn, "fail-on", "", "exit with status 3 when a finding has this `severity` or a higher one: "+strings.Join(render.Severities(), ", "))
	f.IntVar(&o.limit, "limit", render.Usual, "list at most this `number` of findings")
	f.BoolVar(&o.all, "all", false, "list all findings")
	f.BoolVar(&o.Muted, "muted", false, "also list findings that a silence hides")
	silencesFlag(cmd, &o.Silences)
	f.StringArrayVar(&o.Profiles, "profile", nil, "`file` of teescope profile record, from whose samples findings name functions; may be repeated")
	f.BoolVar(&o.Windows, "windows", false, "also show the quartiles, whiskers and outliers of each metric in the window")
	f.DurationVar(&o.Timeout, "timeout", 30*time.Second, "stop after this time")
	for _, name := range []string{"window", "at", "workload", "limit", "timeout"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	complete(cmd, "format", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "fail-on", cobra.FixedCompletions(render.Severities(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// silencesFlag adds the flag for a file with silences.
func silencesFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "silences", "", "take the silences from this `file`, such as silences.json of a data directory (default: those of the server)")
}

func (o *analyzeFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		o.File = args[0]
	}
	if err := o.validate(cmd); err != nil {
		return err
	}
	if cli.IsRunFile(o.File) && !cmd.Flags().Changed("window") {
		o.Window = 0 // that of the run
	}
	result, report, err := cli.Analyze(cmd.Context(), o.Analysis)
	if err != nil {
		var absent *remote.NotListeningError
		if errors.As(err, &absent) {
			return fmt.Errorf("%w: start one there with \"sudo teescope up\", name another with --server URL,\n"+
				"or name a FILE with series", err)
		}
		return err
	}
	most := o.limit
	if o.all {
		most = 0
	}
	out := cmd.OutOrStdout()
	if err := o.write(out, report(most)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if o.failOn == "" {
		return nil
	}
	if n := render.AtLeast(analysis.Audible(result.Findings), analysis.Severity(o.failOn)); n > 0 {
		return &statusError{fmt.Errorf("findings of severity %s or more: %d", o.failOn, n), foundStatus}
	}
	return nil
}

func (o *analyzeFlags) write(w io.Writer, r render.Report) error {
	switch o.format {
	case "json":
		return r.JSON(w)
	case "markdown":
		return r.Markdown(w)
	}
	return r.Text(w, coloured(w))
}

func (o *analyzeFlags) validate(cmd *cobra.Command) error {
	set := cmd.Flags().Changed
	if !slices.Contains(formats(), o.format) {
		return fmt.Errorf("--format %q: use one of %s", o.format, strings.Join(formats(), ", "))
	}
	if o.failOn != "" && !slices.Contains(render.Severities(), o.failOn) {
		return fmt.Errorf("--fail-on %q is not a severity: use one of %s", o.failOn, strings.Join(render.Severities(), ", "))
	}
	window, err := model.ParseDuration(o.window)
	if o.Window = time.Duration(window); err != nil || o.Window < 10*time.Second || o.Window > 7*24*time.Hour {
		return fmt.Errorf("--window %q: use a duration from 10s to 7d, such as 90s or 15m", o.window)
	}
	if err := checkTimeout(o.Timeout); err != nil {
		return err
	}
	if o.limit < 1 {
		return fmt.Errorf("--limit %d: the minimum is 1; --all lists all findings", o.limit)
	}
	if o.all && set("limit") {
		return errors.New("--all and --limit exclude each other")
	}
	for _, name := range serverFlagNames() {
		if o.File != "" && set(name) {
			return fmt.Errorf("--%s names a server, but the series are read from %s: use only one of the two", name, o.File)
		}
	}
	if o.at != "" {
		o.At, err = moment("at", o.at)
	}
	return err
}

// moment parses the time that the user gave for a flag.
func moment(flag, s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds > 0 && seconds < 1e11 {
		return time.UnixMilli(int64(seconds * 1000)), nil
	}
	return time.Time{}, fmt.Errorf("--%s %q is not a time: use for example 2026-01-02T15:04:05Z, or seconds since 1970", flag, s)
}

// coloured reports whether output may have colour: on a terminal, unless NO_COLOR is set (no-color.org).
func coloured(w io.Writer) bool {
	out, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return err == nil
}

// checkTimeout returns an error if an analysis cannot be limited to a time.
func checkTimeout(d time.Duration) error {
	if d < time.Second || d > time.Hour {
		return fmt.Errorf("--timeout %s: use a time from 1s to 1h", d)
	}
	return nil
}
