// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/strutil"

	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/quietlog"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom/rulefile"
)

// RuleOptions configure which rules are evaluated and where alerts are sent.
type RuleOptions struct {
	Files    []string      // patterns of file names
	Shipped  fs.FS         // the rules that come with the program, *.yaml; nil for none
	Interval time.Duration // between two evaluations, unless a group sets its own
	Step     time.Duration // of subqueries that name none; 0 is the default time between two scrapes
	Hub      *notify.Hub   // with nil, no rules are evaluated
	Alerts   *Alertmanagers
	// URL returns the address of this server, without a slash at its end. It is called after the initialisation.
	URL func() string
}

// resolvedAfter is the number of evaluations after which a missing alert counts as resolved. Two restore the state of
// "for" (Group.run in rules/group.go), one lets alerts fire, and one more is for rates.
const resolvedAfter = 4

// Resend is how often firing alerts are sent to Alertmanagers again. Prometheus uses one minute. It is less where rules
// are evaluated more often than every 15 seconds. Prometheus does not restore "for" of rules that wait for less than
// this time, so they wait again.
func (o RuleOptions) Resend() time.Duration { return resolvedAfter * min(o.Interval, 15*time.Second) }

// outage is the maximum age of a stored "for" state that is restored. It is Prometheus' default.
const outage = time.Hour

// source is the prefix of a group's name in the hub.
const source = "rules "

// ruler evaluates rules and reports firing alerts to the hub. It outlives the database, which may be reopened.
type ruler struct {
	opts RuleOptions
	log  *slog.Logger
	// current returns nil when the newest samples are stored. Otherwise rules may miss samples, and no alert ends.
	current func() error

	reloading sync.Mutex
	mu        sync.Mutex
	files     rulefile.Loader
	manager   *rules.Manager // nil while the database is not open
	running   bool
	seen      map[string]int       // evaluations without an error by group, up to resolvedAfter
	ended     map[string]time.Time // when the newest evaluation of each group ended

	good bool      // whether the last reading succeeded
	read time.Time // when the rules in use were read

	success, at prometheus.Collector
}

func newRuler(o RuleOptions, log *slog.Logger) *ruler {
	if o.URL == nil {
		o.URL = func() string { return "" }
	}
	r := &ruler{opts: o, log: log, seen: map[string]int{}, ended: map[string]time.Time{}, current: func() error { return nil }}
	// They have the names of Prometheus's own metrics about its configuration.
	r.success = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "prometheus_config_last_reload_successful", Help: "Whether the last configuration reload attempt was successful.",
	}, func() float64 {
		if good, _ := r.reloaded(); good {
			return 1
		}
		return 0
	})
	r.at = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "prometheus_config_last_reload_success_timestamp_seconds", Help: "Timestamp of the last successful configuration reload.",
	}, func() float64 {
		_, at := r.reloaded()
		return float64(at.UnixMilli()) / 1000
	})
	return r
}

// reloaded reports whether the last reading succeeded, and when the rules in use were read.
func (r *ruler) reloaded() (good bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.good, r.read
}

// load reads the files. The previous rules stay when a file is invalid.
func (r *ruler) load() error {
	files, err := ReadRules(r.opts)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.good = err == nil; r.good {
		r.files, r.read = files, time.Now()
	}
	return err
}

// ReadRules reads the files that a server evaluates. The error may be a *[rulefile.Error].
func ReadRules(o RuleOptions) ([]*rulefile.File, error) {
	step := o.Step
	if step == 0 {
		step = rulefile.DefaultStep
	}
	var files []*rulefile.File
	if o.Shipped != nil {
		shipped, err := rulefile.Shipped(o.Shipped, step)
		if err != nil {
			return nil, err
		}
		files = shipped
	}
	names, err := rulefile.Find(o.Files)
	if err != nil {
		return nil, err
	}
	own, err := rulefile.Read(names, step)
	return append(files, own...), err
}

// Load implements rules.GroupLoader. It returns what load has read.
func (r *ruler) Load(name string, unknown bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return r.loaded().Load(name, unknown, scheme)
}

// Parse implements rules.GroupLoader.
func (r *ruler) Parse(query string) (parser.Expr, error) { return r.loaded().Parse(query) }

func (r *ruler) loaded() rulefile.Loader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files
}

// attach creates the rule manager of an opened database. Nothing is evaluated before run.
func (r *ruler) attach(s *Server) *rules.Manager {
	queries := &ruleQueries{db: s.db, run: rules.EngineQueryFunc(s.engine, s.db), parsed: map[string]promql.Query{}}
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:       queries.query,
		NotifyFunc:      func(context.Context, string, ...*rules.Alert) {}, // evaluated reports alerts instead
		Context:         s.evaluating,
		Appendable:      &guard{s.db, s.health},
		Queryable:       s.db,
		Logger:          slog.New(quietRefusals{quietlog.New(s.opts.Log, "rules").Handler()}),
		Registerer:      s.metrics,
		OutageTolerance: outage,
		ForGracePeriod:  r.opts.Resend(),
		GroupLoader:     r,
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manager, r.running, r.seen, r.ended = m, false, map[string]int{}, map[string]time.Time{}
	return m
}

// run starts the evaluations.
func (r *ruler) run() error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	r.mu.Lock()
	m := r.manager
	r.running = true
	r.mu.Unlock()
	err := r.update(m)
	go m.Run()
	return err
}

// stop ends the evaluations. The manager's context must have ended.
func (r *ruler) stop() {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	r.mu.Lock()
	m, running := r.manager, r.running
	r.manager, r.running = nil, false
	r.mu.Unlock()
	if running {
		m.Stop()
	}
}

// reload reads the files again. The previous rules stay in effect when a file is invalid. The error, a
// *[rulefile.Error], names the position.
func (r *ruler) reload() error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if err := r.load(); err != nil {
		return err
	}
	r.mu.Lock()
	m := r.manager
	if !r.running {
		m = nil // run will use what was read
	}
	r.mu.Unlock()
	if m == nil {
		return nil
	}
	return r.update(m)
}

// update passes the files to the manager, and ends the alerts of removed groups.
func (r *ruler) update(m *rules.Manager) error {
	if err := m.Update(r.opts.Interval, r.loaded().Names(), labels.EmptyLabels(), r.opts.URL(), r.evaluate); err != nil {
		return fmt.Errorf("loading rules: %w", err)
	}
	var groups []string
	for _, g := range m.RuleGroups() {
		groups = append(groups, source+rules.GroupKey(g.File(), g.Name()))
	}
	r.opts.Hub.Retain(source, groups)
	return nil
}

// evaluate evaluates a group once and reports its firing alerts to the hub.
func (r *ruler) evaluate(ctx context.Context, g *rules.Group, at time.Time) {
	rules.DefaultEvalIterationFunc(ctx, g, at)
	if ctx.Err() != nil {
		return // the program stops; an alert that was not evaluated has not ended
	}
	key := rules.GroupKey(g.File(), g.Name())
	var now []notify.Alert
	failed := false
	for _, rule := range g.AlertingRules() {
		failed = failed || rule.LastError() != nil
		for _, a := range rule.ActiveAlerts() {
			now = append(now, notify.Alert{
				Labels: a.Labels.Map(), Annotations: a.Annotations.Map(), Since: a.FiredAt, Pending: a.State != rules.StateFiring,
				GeneratorURL: strutil.TableLinkForExpression(rule.Query().String()),
			})
		}
	}
	stale := r.current() != nil
	r.mu.Lock()
	switch {
	case stale:
		r.seen[key] = 0 // begin again as after a start
	case r.seen[key] < resolvedAfter && !failed:
		r.seen[key]++
	}
	complete := r.seen[key] == resolvedAfter
	r.ended[key] = time.Now()
	r.mu.Unlock()
	r.opts.Hub.Firing(source+key, now, complete)
}

// hangs returns an error when a group has not been evaluated for a long time.
func (r *ruler) hangs(now time.Time) error {
	r.mu.Lock()
	m, running := r.manager, r.running
	r.mu.Unlock()
	if m == nil || !running {
		return nil
	}
	for _, g := range m.RuleGroups() {
		r.mu.Lock()
		last, known := r.ended[rules.GroupKey(g.File(), g.Name())]
		r.mu.Unlock()
		if late := now.Sub(last); known && late > patience(g.Interval()) {
			return fmt.Errorf("evaluating rules hangs: the group %q was last evaluated %s ago", g.Name(), late.Round(time.Second))
		}
	}
	return nil
}

// logProblems logs each problem of the rule files on its own line.
func logProblems(log *slog.Logger, err error) {
	var bad *rulefile.Error
	if !errors.As(err, &bad) {
		log.Error("rules cannot be read; the previous rules stay in effect", "reason", err)
		return
	}
	for _, p := range bad.Problems {
		log.Error("invalid rule; the previous rules stay in effect until it is fixed", "at", p.String())
	}
}
