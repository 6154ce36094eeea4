// SPDX-License-Identifier: Apache-2.0

package ruletest

import (
	"context"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"

	"github.com/teescope/teescope/internal/server/prom/rulefile"
)

// run is one group of tests on its own storage.
type run struct {
	*file
	*group
	suite    *promqltest.LazyLoader
	groups   []*rules.Group
	problems []rulefile.Problem
}

// fail records a failed expectation.
func (r *run) fail(line int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.TestGroupName != "" {
		text = fmt.Sprintf("test %q: %s", r.TestGroupName, text)
	}
	r.problems = append(r.problems, rulefile.Problem{File: r.name, Line: line, Text: text})
}

// test evaluates the rules at each interval over the input series, and compares the results.
func (f *file) test(ctx context.Context, g *group) []rulefile.Problem {
	if g.Interval == 0 {
		g.Interval = f.EvaluationInterval
	}
	r := &run{file: f, group: g}
	for _, c := range g.AlertRuleTests {
		if c.Alertname == "" {
			r.fail(c.line, "alert_rule_test without an alertname: add the name of the alert that is tested")
			return r.problems
		}
	}
	if err := g.samples(); err != nil {
		r.fail(0, "input_series: %v", err)
		return r.problems
	}
	var err error
	r.suite, err = promqltest.NewLazyLoader(g.load(), promqltest.LazyLoaderOpts{
		EnableAtModifier: true, EnableNegativeOffset: true, StartTime: g.StartTimestamp.Time,
	})
	if err != nil {
		r.fail(0, "input_series: %v", err)
		return r.problems
	}
	defer func() { _ = r.suite.Close() }() // removes a temporary directory
	r.suite.SubqueryInterval = time.Duration(f.EvaluationInterval)
	if r.loadRules(); len(r.problems) == 0 && r.evaluate(ctx) {
		for _, c := range g.PromqlExprTests {
			r.expression(ctx, c)
		}
	}
	return r.problems
}

// maxSamples is the maximum number of samples of all input series of a test. The library makes them all before it looks at
// any.
const maxSamples = 2_000_000

// repeated matches how often a value is repeated, as in 1+2x10.
var repeated = lazy.Regexp(`x([0-9]+)`)

// samples returns an error if the input series have too many samples.
func (g *group) samples() error {
	all := 0
	for _, s := range g.InputSeries {
		for _, m := range repeated().FindAllStringSubmatch(s.Values, -1) {
			n, err := strconv.Atoi(m[1])
			if all += n; err != nil || n > maxSamples || all > maxSamples {
				return fmt.Errorf("%s of the series %s: the input series of a test may have %d samples", m[0], s.Series, maxSamples)
			}
		}
	}
	return nil
}

// load returns the input series in the notation of PromQL's own tests.
func (g *group) load() string {
	var b strings.Builder
	interval := g.Interval.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(interval, zero) {
			interval = interval[:len(interval)-2]
		}
	}
	fmt.Fprintf(&b, "load %s\n", interval)
	for _, s := range g.InputSeries {
		fmt.Fprintf(&b, "  %s %s\n", s.Series, s.Values)
	}
	return b.String()
}

func (r *run) loadRules() {
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:   rules.EngineQueryFunc(r.suite.QueryEngine(), r.suite.Storage()),
		Appendable:  r.suite.Storage(),
		Context:     r.suite.Context(),
		NotifyFunc:  func(context.Context, string, ...*rules.Alert) {},
		Logger:      discard(),
		GroupLoader: r.rules,
	})
	byKey, errs := m.LoadGroups(time.Duration(r.Interval), labels.FromMap(r.ExternalLabels), r.ExternalURL, nil, false, r.rules.Names()...)
	for _, err := range errs {
		r.fail(0, "%v", err)
	}
	r.groups = slices.Collect(maps.Values(byKey))
	slices.SortFunc(r.groups, func(a, b *rules.Group) int { // groups that group_eval_order does not name come first, sorted by name
		if d := r.order[a.Name()] - r.order[b.Name()]; d != 0 {
			return d
		}
		return strings.Compare(rules.GroupKey(a.File(), a.Name()), rules.GroupKey(b.File(), b.Name()))
	})
	for _, g := range r.groups {
		for _, rule := range g.AlertingRules() {
			rule.SetRestored(true) // otherwise there would be no series ALERTS
		}
	}
}

// begin returns the time of the first evaluation.
func (r *run) begin() time.Time {
	if r.StartTimestamp.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return r.StartTimestamp.Time
}

// evaluate evaluates the rules up to the last time of any case, and compares alerts at each. A failed evaluation ends
// the test.
func (r *run) evaluate(ctx context.Context) (complete bool) {
	var last model.Duration
	at := map[model.Duration][]alertCase{}
	for _, c := range r.AlertRuleTests {
		at[c.EvalTime] = append(at[c.EvalTime], c)
		last = max(last, c.EvalTime)
	}
	for _, c := range r.PromqlExprTests {
		last = max(last, c.EvalTime)
	}
	times := slices.Sorted(maps.Keys(at))
	every, begin := time.Duration(r.EvaluationInterval), r.begin()
	for now := begin; !now.After(begin.Add(time.Duration(last))) && ctx.Err() == nil; now = now.Add(every) {
		if !r.step(now) {
			return false
		}
		// A case between two evaluations uses the first of them.
		for len(times) > 0 && time.Duration(times[0]) < now.Add(every).Sub(begin) {
			for _, c := range at[times[0]] {
				r.alerts(c)
			}
			times = times[1:]
		}
	}
	return ctx.Err() == nil
}

// step evaluates every group once.
func (r *run) step(now time.Time) (good bool) {
	good = true
	r.suite.WithSamplesTill(now, func(err error) {
		if err != nil {
			r.fail(0, "input_series: %v", err)
			return
		}
		for _, g := range r.groups {
			g.Eval(r.suite.Context(), now)
			for _, rule := range g.Rules() {
				if err := rule.LastError(); err != nil {
					good = false
					r.fail(0, "rule %q of group %q cannot be evaluated at %s: %v", rule.Name(), g.Name(), now.Sub(r.begin()), err)
				}
			}
		}
	})
	return good
}

// alerts compares the firing alerts of one name.
func (r *run) alerts(c alertCase) {
	var got, want []string
	for _, g := range r.groups {
		for _, rule := range g.AlertingRules() {
			if rule.Name() != c.Alertname {
				continue
			}
			for _, a := range rule.ActiveAlerts() {
				if a.State == rules.StateFiring {
					got = append(got, a.Labels.String()+" "+a.Annotations.String())
				}
			}
		}
	}
	for _, e := range c.ExpAlerts {
		all := maps.Clone(e.ExpLabels)
		if all == nil {
			all = map[string]string{}
		}
		all[model.AlertNameLabel] = c.Alertname
		want = append(want, labels.FromMap(all).String()+" "+labels.FromMap(e.ExpAnnotations).String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.fail(c.line, "alert %s at %s: %s", c.Alertname, c.EvalTime, difference(got, want))
	}
}

// difference describes how two sorted lists differ.
func difference(got, want []string) string {
	only := func(a, b []string) string {
		left := slices.Clone(b)
		var out []string
		for _, s := range a {
			if i := slices.Index(left, s); i >= 0 {
				left = slices.Delete(left, i, i+1)
				continue
			}
			out = append(out, s)
		}
		if len(out) == 0 {
			return "nothing else"
		}
		return strings.Join(out, ", ")
	}
	return fmt.Sprintf("expected %s; got %s", only(want, got), only(got, want))
}

// result is a sample in the form that is compared.
type result struct {
	labels    string
	value     float64
	histogram string
}

func (r result) String() string {
	if r.histogram != "" {
		return r.labels + " " + r.histogram
	}
	return r.labels + " " + strconv.FormatFloat(r.value, 'g', -1, 64)
}

// expression compares the result of a query.
func (r *run) expression(ctx context.Context, c exprCase) {
	got, err := r.query(ctx, c)
	if err != nil {
		r.fail(c.line, "%s at %s: %v", c.Expr, c.EvalTime, err)
		return
	}
	var want []result
	for _, s := range c.ExpSamples {
		one, err := s.result()
		if err != nil {
			r.fail(c.line, "%s at %s: labels %q: %v", c.Expr, c.EvalTime, s.Labels, err)
			return
		}
		want = append(want, one)
	}
	byLabels := func(a, b result) int { return strings.Compare(a.labels, b.labels) }
	slices.SortStableFunc(got, byLabels)
	slices.SortStableFunc(want, byLabels)
	if !slices.EqualFunc(got, want, func(a, b result) bool {
		return a.labels == b.labels && a.histogram == b.histogram && same(a.value, b.value, r.FuzzyCompare)
	}) {
		r.fail(c.line, "%s at %s: %s", c.Expr, c.EvalTime, difference(texts(got), texts(want)))
	}
}

// same compares values. With fuzzy, neighbouring floating-point numbers are equal.
func same(x, y float64, fuzzy bool) bool {
	return x == y || fuzzy && (math.Nextafter(x, math.Inf(-1)) == y || math.Nextafter(x, math.Inf(1)) == y)
}

func texts(list []result) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.String()
	}
	return out
}

func (r *run) query(ctx context.Context, c exprCase) ([]result, error) {
	q, err := r.suite.QueryEngine().NewInstantQuery(ctx, r.suite.Queryable(), nil, c.Expr, r.begin().Add(time.Duration(c.EvalTime)))
	if err != nil {
		return nil, err
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		out := make([]result, len(v))
		for i, s := range v {
			out[i] = result{s.Metric.String(), s.F, promqltest.HistogramTestExpression(s.H)}
		}
		return out, nil
	case promql.Scalar:
		return []result{{labels.EmptyLabels().String(), v.V, ""}}, nil
	}
	return nil, errors.New("the result is neither a vector nor a scalar: use a range inside a function such as rate()")
}

// result converts an expected sample.
func (s expectedSample) result() (result, error) {
	p := parser.NewParser(parser.Options{})
	ls, err := p.ParseMetric(s.Labels)
	if err != nil {
		return result{}, err
	}
	var hist *histogram.FloatHistogram
	if s.Histogram != "" {
		_, values, err := p.ParseSeriesDesc("{} " + s.Histogram)
		if err != nil {
			return result{}, err
		}
		if len(values) != 1 || values[0].Histogram == nil {
			return result{}, fmt.Errorf("%q is not a single histogram", s.Histogram)
		}
		hist = values[0].Histogram
	}
	return result{ls.String(), s.Value, promqltest.HistogramTestExpression(hist)}, nil
}
