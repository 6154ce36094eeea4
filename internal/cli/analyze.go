// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/advise/link"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/query/promapi"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/analysis/unitcost"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/prom"
)

// Analysis describes one analysis of stored series.
type Analysis struct {
	File     string // a run file or OpenMetrics text with timestamps; when empty, the server is queried
	Server   string
	Access   remote.Access
	Window   time.Duration // zero is 5 minutes, or the steady state of a run file
	At       time.Time     // zero is now, or the last sample of the file
	Workload string
	Timeout  time.Duration // of the whole analysis
	Windows  bool          // whether to add box plots of the window
	Silences string        // a file with silences; when empty, those of the server count
	Profiles []string      // files with the functions that findings are about
	Muted    bool          // whether to list findings that a silence hides
}

// perQuery bounds a single query to a server.
const perQuery = 10 * time.Second

// Analyze searches for causes in a file or on a server. The result contains all findings, marked with their silences. The
// returned function makes a report that lists at most the given number of them; 0 lists all. It counts those that a silence
// hides, and lists them only with Muted.
func Analyze(ctx context.Context, a Analysis) (engine.Result, func(most int) render.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.Timeout, fmt.Errorf("not finished within %s (--timeout)", a.Timeout))
	defer cancel()
	fail := func(err error) (engine.Result, func(int) render.Report, error) { return engine.Result{}, nil, err }
	profiles, err := readProfiles(a.Profiles) // before an analysis that takes long
	if err != nil {
		return fail(err)
	}
	options := engine.Options{Window: a.Window, At: a.At, Workload: a.Workload, Timeout: a.Timeout, Limiter: rules.Limits()}
	var source query.Source
	var asked *remote.Server // nil for a file
	var run *recorded        // nil unless the input is a run file
	name, warnings := a.File, func() []string { return nil }
	switch {
	case IsRunFile(a.File):
		r, err := readRun(a.File)
		if err != nil {
			return fail(err)
		}
		run = r
		if source, err = r.store.Source(); err != nil {
			return fail(fmt.Errorf("%s: %w", a.File, err))
		}
		window, end := r.window()
		if options.At.IsZero() {
			options.At = end
		}
		if options.Window == 0 {
			options.Window = window
		}
		warnings = r.warnings
	case a.File != "":
		store, err := readFile(a.File)
		if err != nil {
			return fail(err)
		}
		if source, err = store.Source(); err != nil {
			return fail(fmt.Errorf("%s: %w", a.File, err))
		}
		if _, last := store.Bounds(); options.At.IsZero() {
			options.At = last
		}
	default:
		server, elsewhere, err := openServer(ctx, a.Server, a.Access, a.Timeout)
		if err != nil {
			return fail(err)
		}
		source, name, warnings, asked = elsewhere, server.Target(), elsewhere.Warnings, server
	}
	result, err := engine.Evaluate(ctx, source, rules.All(), options)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) {
			err = fmt.Errorf("analysing %s: %w", name, cause)
		}
		return fail(err)
	}
	unitcost.Add(ctx, source, &result, unitcost.Options{Workload: a.Workload})
	link.Add(ctx, source, &result)
	marked, warning, err := a.mark(ctx, result.Findings)
	if err != nil {
		return fail(err)
	}
	result.Findings = marked
	if asked != nil {
		a.link(ctx, asked, result.Window, marked)
	}
	said := []string{warning}
	if run != nil {
		said = append(said, linkRecorded(run, marked))
	}
	said = append(said, linkNamed(profiles, marked)...)
	var windows []window.Stat
	if a.Windows {
		var problems []query.Problem
		windows, problems = window.ComputeEach(ctx, result.Sources(), result.At, window.Options{Window: result.Window})
		windows = slices.DeleteFunc(windows, func(s window.Stat) bool { return a.Workload != "" && s.Workload != a.Workload })
		result.Problems = append(result.Problems, problems...)
	}
	return result, func(most int) render.Report {
		listed, hidden := analysis.Listed(marked)
		shown := result
		if shown.Findings = listed; a.Muted {
			shown.Findings = marked
		}
		all := slices.DeleteFunc(slices.Concat(warnings(), said), func(s string) bool { return s == "" })
		r := render.New(name, shown, most, all)
		r.Muted = hidden
		if a.Windows {
			r = r.WithWindows(windows)
		}
		return r
	}, nil
}

// readFile reads series from OpenMetrics text with timestamps. "-" is the standard input.
func readFile(name string) (*prom.Store, error) {
	in, shown := io.Reader(os.Stdin), "the standard input"
	if name != "-" {
		f, err := inputfile.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading the series: %w", text.Remedy(err, "leave FILE out to query a server (--server)"))
		}
		defer f.Close()
		in, shown = f, name
	}
	store := prom.NewStore()
	if err := store.ReadOpenMetrics(in); errors.Is(err, prom.ErrEmpty) {
		return nil, fmt.Errorf("reading the series: %s is empty; write OpenMetrics text with timestamps, for example with\n"+
			"\"promtool tsdb dump-openmetrics /var/lib/teescope/tsdb > series.om\"", shown)
	} else if err != nil {
		return nil, fmt.Errorf("reading the series in %s: %w", shown, err)
	}
	return store, nil
}

// openServer connects to a Prometheus that the user names, and checks that it answers.
func openServer(ctx context.Context, address string, access remote.Access, timeout time.Duration) (*remote.Server, *promapi.Source, error) {
	server, err := remote.New("--server", address, access, min(perQuery, timeout))
	if err != nil {
		return nil, nil, err
	}
	source, err := promapi.New(server)
	if err != nil {
		return nil, nil, err
	}
	return server, source, source.Check(ctx)
}
