// SPDX-License-Identifier: Apache-2.0

// Package findings runs the analysis periodically and publishes the findings: as a report over HTTP, as series, and as
// lines of the log.
//
// It refuses to judge, which the rules do, and to know the database: it reads through a source, and its series are
// scraped like all others.
package findings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/ledger"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/analysis/window"
)

// maxTime is the time limit of one analysis.
const maxTime = 30 * time.Second

// Options configure an [Analyst].
type Options struct {
	Source   query.Source
	Name     string // the name of the source in reports
	Rules    []engine.Rule
	Interval time.Duration // between the starts of two analyses
	Window   time.Duration // the time range of an analysis
	Scrape   time.Duration // between two samples of a series; 0 detects it
	// Keep stores the box plots of each window as series. It may be nil.
	Keep window.Appender
	File string // holds the state across restarts; its directory must exist at Init. Empty: no state is kept
	// Tell receives all current findings after each analysis. It may be nil.
	Tell func(live []analysis.Finding)
	Log  *slog.Logger
}

// Analyst is a service that runs analyses, a collector of findings, and a handler that answers with a report.
type Analyst struct {
	opts     Options
	families families
	asking   chan struct{} // a semaphore of one: requests for another time than that of the newest report
	ledger   *ledger.Ledger
	unusual  unusual // used only by Run

	mu     sync.Mutex
	newest *render.Report // all findings of the newest analysis; nil before the first
	runs   map[outcome]float64
	took   time.Duration // duration of the newest analysis
	cpu    time.Duration // CPU time of all analyses
}

// outcome is the result of an analysis.
type outcome string

const (
	complete outcome = "complete" // every query was answered
	partial  outcome = "partial"  // a query failed; its rules were not evaluated
	failed   outcome = "failed"   // no result
)

// New creates an analyst. It sends no queries before Run.
func New(o Options) *Analyst {
	return &Analyst{
		opts: o, families: newFamilies(), asking: make(chan struct{}, 1),
		runs: map[outcome]float64{complete: 0, partial: 0, failed: 0},
	}
}

// Name implements service.Service and collector.Collector.
func (a *Analyst) Name() string { return "findings" }

// Init reads the saved findings.
func (a *Analyst) Init(context.Context) (err error) {
	a.ledger, err = ledger.Open(a.opts.File, a.opts.Log, a.log)
	return err
}

// Run runs analyses until ctx ends. A failure is logged and the analysis retried. It never ends the program.
func (a *Analyst) Run(ctx context.Context) error {
	tick := time.NewTicker(a.opts.Interval)
	defer tick.Stop()
	var said string
	for {
		if err := a.once(ctx); err != nil && ctx.Err() == nil {
			if text := err.Error(); text != said { // log a repeated error only once
				a.opts.Log.Warn("analysis failed and will be retried", "err", err, "every", a.opts.Interval)
				said = text
			}
		} else {
			said = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// evaluate evaluates all rules over the window that ends at a time.
func (a *Analyst) evaluate(ctx context.Context, at time.Time) (engine.Result, error) {
	return engine.Evaluate(ctx, a.opts.Source, a.opts.Rules, engine.Options{
		Window: a.opts.Window, At: at, Timeout: maxTime,
	})
}

// look evaluates all rules, stores the box plots of the window, and looks for anomalies at a longer interval.
func (a *Analyst) look(ctx context.Context, at time.Time) (engine.Result, error) {
	result, err := a.evaluate(ctx, at)
	if err != nil || result.Workloads == 0 && firstFailure(result) != nil {
		return result, err // a source that does not answer is not queried again
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	windows, problems := window.Compute(ctx, a.opts.Source, at, window.Options{Window: a.opts.Window, Interval: a.opts.Scrape})
	if a.opts.Keep != nil {
		if err := window.Store(ctx, a.opts.Keep, windows); err != nil {
			problems = append(problems, query.Problem{Kind: query.Failed, Error: err.Error()})
		}
	}
	problems = append(problems, a.unusual.look(ctx, a.opts, at, windows)...)
	result.Findings = append(result.Findings, a.unusual.found...)
	result.Problems = append(result.Problems, problems...)
	return result, nil
}

// measured runs a function and returns its duration and its CPU time. The PromQL engine runs in the goroutine of its
// caller, so its CPU time is included.
func measured(f func() error) (took, cpu time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, before := time.Now(), threadTime()
	err = f()
	return time.Since(began), threadTime() - before, err
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0 // every Linux has it
	}
	return time.Duration(ts.Nano())
}

// once runs an analysis, and stores, logs and publishes its findings.
func (a *Analyst) once(ctx context.Context) (err error) {
	var result engine.Result
	took, cpu, err := measured(func() error {
		result, err = contained(func() (engine.Result, error) { return a.look(ctx, time.Now()) })
		return err
	})
	how := howItWent(result, err)
	a.mu.Lock()
	a.runs[how]++
	a.took = took
	a.cpu += cpu
	a.mu.Unlock()
	if err != nil {
		return err
	}
	unwritten := a.ledger.Update(ledger.Observation{At: result.At, Window: result.Window, Findings: result.Findings, Knows: result.Knows})
	result.Findings = a.ledger.Open()
	report := render.New(a.opts.Name, result, 0, nil)
	a.mu.Lock()
	a.newest = &report
	a.mu.Unlock()
	if a.opts.Tell != nil {
		a.opts.Tell(result.Findings)
	}
	if how == partial {
		return fmt.Errorf("some queries failed: %w", firstFailure(result))
	}
	return unwritten
}

// log writes a line when a finding starts, changes its severity or ends.
func (a *Analyst) log(e ledger.Event) {
	f, level := e.Finding, slog.LevelInfo
	attrs := []any{"rule", f.Rule, "workload", f.Workload, "instance", f.Instance, "severity", string(f.Severity)}
	text := ""
	switch e.Kind {
	case ledger.Opened:
		text = "found what slows a workload"
		attrs = append(attrs, "cause", f.Cause, "gain", render.Gain(f.Gain))
	case ledger.SeverityChanged:
		text = "a finding has another severity"
		attrs = append(attrs, "was", string(e.Was), "cause", f.Cause)
	case ledger.Closed:
		text = "a finding is over"
		attrs = append(attrs, "lasted", f.LastSeen.Sub(f.FirstSeen).Round(time.Second))
	}
	if e.Kind != ledger.Closed && f.Severity.AtLeast(analysis.Medium) {
		level = slog.LevelWarn
	}
	a.opts.Log.Log(context.Background(), level, text, attrs...)
}

func howItWent(r engine.Result, err error) outcome {
	switch {
	case err != nil:
		return failed
	case firstFailure(r) != nil:
		return partial
	}
	return complete
}

func firstFailure(r engine.Result) error {
	for _, p := range r.Problems {
		if p.Kind == query.Failed {
			return fmt.Errorf("%s: %s", p.Query, p.Error)
		}
	}
	return nil
}

// contained turns a panic into an error. A bug in the analysis must not end the agent.
func contained(f func() (engine.Result, error)) (r engine.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the analysis panicked: %v", p)
		}
	}()
	return f()
}

// errNone is returned before the first report.
var errNone = errors.New("the first analysis is still running")

// Newest returns the newest report with all its findings.
func (a *Analyst) Newest() (render.Report, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest == nil {
		return render.Report{}, errNone
	}
	return *a.newest, nil
}
