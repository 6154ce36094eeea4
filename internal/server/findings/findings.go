// SPDX-License-Identifier: Apache-2.0

// Package findings runs the analysis periodically and publishes the findings: as a report over HTTP, as series, and as
// lines of the log.
//
// It contains no rules and does not depend on the database: it reads through a source, and its series are scraped like all
// others.
package findings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/advise/link"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/ledger"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/analysis/unitcost"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/clientname"
)

const (
	// maxTime is the time limit of an analysis of all machines, and that of the box plots and anomalies after it.
	maxTime = time.Minute
	// maxProblems is the maximum number of problems of box plots and anomalies.
	maxProblems = 100
	// maxRequest is the time limit of an analysis on request.
	maxRequest = 30 * time.Second
	// firstAfter is the time after the start at which another analysis runs if there was nothing to judge at the start. It
	// judges over the shortest window.
	firstAfter = 35 * time.Second
)

// Options configure an [Analyst].
type Options struct {
	Source query.Source
	Name   string // the name of the source in reports
	Rules  []engine.Rule
	// Limiter states what limits each workload. It may be nil.
	Limiter *engine.Limiter
	// Overrides replace thresholds of the rules.
	Overrides []engine.Override
	Interval  time.Duration // between the starts of two analyses
	Window    time.Duration // the time range of an analysis
	Scrape    time.Duration // between two samples of a series; 0 detects it
	// Keep stores the box plots of each window as series. It may be nil.
	Keep window.Appender
	File string // holds the state across restarts; its directory must exist at Init. Empty: no state is kept
	// SilenceFile holds the silences in the same way.
	SilenceFile string
	// HistoryFile holds the history of findings in the same way.
	HistoryFile string
	// Threads reads the threads of workloads on the machine Instance, if an agent of it is reachable. It may be nil.
	Threads  ThreadList
	Instance string
	// Lines asks agents for the lines of manifests that advice changes. It may be nil.
	Lines AskLines
	// Profiles are the profiles of the machine Instance. It may be nil.
	Profiles Profiles
	// Tell receives all current findings that are confirmed and not silenced, after each analysis and each change of the
	// silences. It may be nil.
	Tell func(live []analysis.Finding)
	Log  *slog.Logger
}

// Analyst is a service that runs analyses, a collector of findings, and a handler that answers with a report.
type Analyst struct {
	opts     Options
	families families
	asking   *clientname.Places // one, of requests for another time than that of the newest report, and for manifests
	ledger   *ledger.Ledger
	silences *silence.Store
	past     *archive
	damaged  []string // why the silences of the file are not used
	routes   *http.ServeMux
	memo     *engine.Memo
	boxes    boxes        // used only by Run
	unusual  unusual      // used only by Run
	threads  *threadNames // used only by Run
	code     *code        // used only by Run
	telling  sync.Mutex

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
	a := &Analyst{
		opts: o, memo: &engine.Memo{}, boxes: make(boxes), unusual: make(unusual), families: newFamilies(), asking: clientname.NewPlaces(1, 1),
		runs: map[outcome]float64{complete: 0, partial: 0, failed: 0}, threads: newThreadNames(o), code: newCode(o),
	}
	a.routes = a.newRoutes()
	return a
}

// Name implements service.Service and collector.Collector.
func (a *Analyst) Name() string { return "findings" }

// Init reads the saved findings, silences and history. Silences and a history that cannot be read do not stop the program.
func (a *Analyst) Init(context.Context) (err error) {
	if a.silences, err = silence.Open(a.opts.SilenceFile); err != nil {
		a.opts.Log.Error("reading the silences failed", "err", err)
		a.damaged = []string{err.Error()}
	}
	if a.ledger, err = ledger.Open(a.opts.File, a.opts.Log, a.log); err != nil {
		return err
	}
	now := time.Now()
	a.past = openArchive(a.opts, now, a.silences.Mark(a.ledger.Open(), now), a.ledger.Closed())
	return nil
}

// Run runs analyses until ctx ends. A failure is logged and the analysis retried. It never ends the program.
func (a *Analyst) Run(ctx context.Context) error {
	tick := time.NewTicker(a.opts.Interval)
	defer tick.Stop()
	var said string
	for first := true; ; first = false {
		if err := a.once(ctx); err != nil && ctx.Err() == nil {
			if text := err.Error(); text != said { // log a repeated error only once
				a.opts.Log.Warn("analysis failed and will be retried", "err", err, "every", a.opts.Interval)
				said = text
			}
		} else {
			said = ""
		}
		var early <-chan time.Time // nil is never ready
		if report, err := a.Newest(); first && (err != nil || report.Workloads == 0) {
			early = time.After(firstAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-early:
		case <-tick.C:
		}
	}
}

// evaluate evaluates all rules over the window that ends at a time. open has the severities of open findings by ID.
func (a *Analyst) evaluate(ctx context.Context, at time.Time, limit time.Duration, open map[string]analysis.Severity) (engine.Result, error) {
	result, err := engine.Evaluate(ctx, a.opts.Source, a.opts.Rules, engine.Options{
		Memo: a.memo, Window: a.opts.Window, At: at, Timeout: limit, Around: a.metered, Overrides: a.opts.Overrides, Limiter: a.opts.Limiter,
		Open: func(rule, workload, instance string) analysis.Severity {
			if len(open) == 0 {
				return ""
			}
			return open[analysis.ID(rule, workload, instance)]
		},
	})
	if err != nil || result.Workloads == 0 && firstFailure(result) != nil {
		return result, err // a source that does not answer is not queried again
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	unitcost.Add(ctx, a.opts.Source, &result, unitcost.Options{Interval: a.opts.Scrape})
	link.Add(ctx, a.opts.Source, &result)
	return result, nil
}

// metered runs a function in a goroutine of its own, and adds its CPU time.
func (a *Analyst) metered(f func()) {
	_, cpu, _ := measured(func() error { f(); return nil })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpu += cpu
}

// look evaluates all rules. At longer intervals it stores the box plots of the window, and looks for anomalies.
func (a *Analyst) look(ctx context.Context, at time.Time) (engine.Result, error) {
	result, err := a.evaluate(ctx, at, maxTime, a.ledger.Severities())
	if err != nil || result.Workloads == 0 && firstFailure(result) != nil {
		return result, err // a source that does not answer is not queried again
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	keepOnly(a.unusual, result.Machines)
	keepOnly(a.boxes, result.Machines)
	var all []query.Problem
	for i, m := range result.Machines {
		if ctx.Err() != nil {
			all = append(all, query.Problem{Kind: query.Bounded, Error: fmt.Sprintf(
				"%d of %d machines have no box plots of this window: %s are over", len(result.Machines)-i, len(result.Machines), query.Duration(maxTime))})
			break
		}
		if !a.boxes.due(m, at, a.opts.Window) && !a.unusual.due(m, at) {
			all = append(all, a.boxes[m.Name].problems...)
			continue
		}
		windows, problems := window.Compute(ctx, m.Source, at, window.Options{Window: a.opts.Window, Interval: a.opts.Scrape})
		if a.opts.Keep != nil {
			if err := window.Store(ctx, a.opts.Keep, windows, window.Whole(len(result.Machines))); err != nil {
				problems = append(problems, query.Problem{Kind: query.Failed, Error: err.Error()})
			}
		}
		problems = about(m, append(problems, a.unusual.look(ctx, m, a.opts.Keep, at, windows)...))
		a.boxes.made(m, at, windows, problems)
		all = append(all, problems...)
	}
	result.Problems = append(result.Problems, bounded(all)...)
	for _, f := range a.unusual.found() {
		result.Findings = append(result.Findings, f)
		result.AtOnce[f.ID] = true // the search bounds its own rate of false alarms, so no second analysis has to confirm it
	}
	return result, nil
}

// bounded keeps the first problems, and failed queries before all others.
func bounded(all []query.Problem) []query.Problem {
	more := len(all) - maxProblems
	if more <= 0 {
		return all
	}
	failed := func(p query.Problem) int {
		if p.Kind == query.Failed {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b query.Problem) int { return failed(a) - failed(b) })
	return append(all[:maxProblems:maxProblems], query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("%d further problems of box plots", more)})
}

// about names the machine of problems if there are several.
func about(m engine.Machine, problems []query.Problem) []query.Problem {
	for i := range problems {
		if m.Name != "" && problems[i].Instance == "" {
			problems[i].Error += ", on " + m.Name
		}
	}
	return problems
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
	unwritten := a.ledger.Update(ledger.Observation{At: result.At, Window: a.opts.Window, Findings: result.Findings, AtOnce: result.AtOnce, Knows: result.Knows})
	unwritten = errors.Join(unwritten, a.past.Sync(result.At, a.silences.Mark(a.ledger.Open(), result.At), a.ledger.Closed()))
	a.metered(func() { a.threads.look(ctx, result) })
	a.metered(func() { a.code.look(ctx, result) })
	a.publish(result)
	a.tell()
	a.metered(func() { unwritten = errors.Join(unwritten, a.past.search(ctx, a.opts.Source, result.At)) })
	a.publish(result) // with what preceded new findings
	if how == partial {
		return fmt.Errorf("some queries failed: %w", firstFailure(result))
	}
	return unwritten
}

// publish makes the report of the open findings the newest one.
func (a *Analyst) publish(result engine.Result) {
	result.Findings = a.code.linked(current(a.threads.named(a.past.explained(a.ledger.Open()))))
	report := render.New(a.opts.Name, result, 0, nil)
	a.mu.Lock()
	a.newest = &report
	a.mu.Unlock()
}

// current marks the causes of findings that are no longer found, so that they do not appear as present.
func current(open []analysis.Finding) []analysis.Finding {
	for i, f := range open {
		if !f.AbsentSince.IsZero() {
			open[i].Cause = fmt.Sprintf("not found since %s; before: %s", f.AbsentSince.UTC().Format("15:04:05 UTC"), f.Cause)
		}
	}
	return open
}

// tell passes the findings of the newest analysis on that are confirmed and not silenced. Calls do not overlap, so that the last one has
// the newest state.
func (a *Analyst) tell() {
	a.telling.Lock()
	defer a.telling.Unlock()
	if report, err := a.Newest(); err == nil && a.opts.Tell != nil {
		live := analysis.Audible(a.silences.Mark(report.Findings, time.Now()))
		a.opts.Tell(slices.DeleteFunc(live, func(f analysis.Finding) bool { return f.Unconfirmed }))
	}
}

// log writes a line when a finding starts, changes its severity or ends.
func (a *Analyst) log(e ledger.Event) {
	f, level := e.Finding, slog.LevelInfo
	attrs := []any{"rule", f.Rule, "workload", f.Workload, "instance", f.Instance, "severity", string(f.Severity)}
	text := ""
	switch e.Kind {
	case ledger.Opened:
		text = "found what slows a workload"
		attrs = append(attrs, "cause", f.Cause, "gain", render.Worth(f))
	case ledger.SeverityChanged:
		text = "the severity of a finding has changed"
		attrs = append(attrs, "was", string(e.Was), "cause", f.Cause)
	case ledger.Closed:
		text = "a finding is over"
		attrs = append(attrs, "lasted", f.LastSeen.Sub(f.FirstSeen).Round(time.Second))
	}
	if by := a.silences.Mark([]analysis.Finding{f}, e.At)[0].Silence; by != nil {
		attrs = append(attrs, "silence", by.ID)
	} else if e.Kind != ledger.Closed && f.Severity.AtLeast(analysis.Medium) {
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
			return fmt.Errorf("%s, in the query %s", p.Error, p.Query) // log lines are cut, and a query may be long
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
