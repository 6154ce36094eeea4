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

	"github.com/teescope/teescope/internal/lib/quietlog"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom/rulefile"
)

// RuleOptions say which rules are evaluated, and who is told of what fires.
type RuleOptions struct {
	Files    []string      // patterns of file names
	Shipped  fs.FS         // the rules that come with the program, *.yaml; nil is none of them
	Interval time.Duration // between two evaluations, where a group says nothing else
	Hub      *notify.Hub   // nil evaluates no rules at all
	Alerts   *Alertmanagers
	// URL is the address of this server, without a slash at its end. It is asked when all is initialised.
	URL func() string
}

// settle is how many evaluations a group needs until what it does not find is taken as not there: two until the state
// of "for" is restored (Group.run in rules/group.go), one to fire, and one more for rates.
const settle = 4

// Resend is how often Alertmanagers are told again what fires: Prometheus' one minute, and less where rules are
// evaluated more often than every 15 seconds. The state of "for" is not restored for rules that wait for less than
// that: they wait once more.
func (o RuleOptions) Resend() time.Duration { return settle * min(o.Interval, 15*time.Second) }

// outage is how long ago the state of "for" may have been written to be restored: Prometheus' default.
const outage = time.Hour

// source begins the name under which the hub knows a group.
const source = "rules "

// ruler evaluates rules and tells the hub what fires. It outlives the database, which may be opened again.
type ruler struct {
	opts RuleOptions
	log  *slog.Logger

	reloading sync.Mutex
	mu        sync.Mutex
	files     rulefile.Loader
	manager   *rules.Manager // nil while the database is not open
	running   bool
	seen      map[string]int // evaluations without an error of each group, until it has settled

	good bool      // what was read last
	read time.Time // when what is evaluated was read

	success, at prometheus.Collector
}

func newRuler(o RuleOptions, log *slog.Logger) *ruler {
	if o.URL == nil {
		o.URL = func() string { return "" }
	}
	r := &ruler{opts: o, log: log, seen: map[string]int{}}
	// As Prometheus calls what it says of its configuration.
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

// reloaded says whether what was read last was good, and when what is evaluated was read.
func (r *ruler) reloaded() (good bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.good, r.read
}

// load reads the files. What was read before stays when one of them is bad.
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
	var files []*rulefile.File
	if o.Shipped != nil {
		shipped, err := rulefile.Shipped(o.Shipped)
		if err != nil {
			return nil, err
		}
		files = shipped
	}
	names, err := rulefile.Find(o.Files)
	if err != nil {
		return nil, err
	}
	own, err := rulefile.Read(names)
	return append(files, own...), err
}

// Load implements rules.GroupLoader, from what load has read.
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

// attach makes the manager of a database that was opened. Nothing is evaluated before run.
func (r *ruler) attach(s *Server) *rules.Manager {
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:       rules.EngineQueryFunc(s.engine, s.db),
		NotifyFunc:      func(context.Context, string, ...*rules.Alert) {}, // evaluated tells
		Context:         s.evaluating,
		Appendable:      s.db,
		Queryable:       s.db,
		Logger:          quietlog.New(s.opts.Log, "rules"),
		Registerer:      s.metrics,
		OutageTolerance: outage,
		ForGracePeriod:  r.opts.Resend(),
		GroupLoader:     r,
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manager, r.running, r.seen = m, false, map[string]int{}
	return m
}

// run begins to evaluate.
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

// stop ends the evaluations. The context of the manager has ended.
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

// Reload reads the files again. What was evaluated before goes on when one of them is bad, and the error, a
// *[rulefile.Error], says where.
func (r *ruler) Reload() error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	if err := r.load(); err != nil {
		return err
	}
	r.mu.Lock()
	m := r.manager
	if !r.running {
		m = nil // run will take what was read
	}
	r.mu.Unlock()
	if m == nil {
		return nil
	}
	return r.update(m)
}

// update hands the files to the manager, and ends what fired by groups that are no more.
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

// evaluate evaluates a group once and tells the hub what fires.
func (r *ruler) evaluate(ctx context.Context, g *rules.Group, at time.Time) {
	rules.DefaultEvalIterationFunc(ctx, g, at)
	if ctx.Err() != nil {
		return // the program stops: what could not be evaluated has not ended
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
	r.mu.Lock()
	if r.seen[key] < settle && !failed {
		r.seen[key]++
	}
	complete := r.seen[key] == settle
	r.mu.Unlock()
	r.opts.Hub.Firing(source+key, now, complete)
}

// logProblems logs each problem of rule files on a line of its own.
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
