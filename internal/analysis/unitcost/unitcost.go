// SPDX-License-Identifier: Apache-2.0

// Package unitcost computes the cost of one operation of a workload: its events divided by the operations that its
// application counts in the same windows.
//
// It does not depend on the source of operations. It reads [operation.Family] and the metrics of agents.
package unitcost

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/operation"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/stat"
)

const (
	// mostWorkloads is the number of workloads with costs.
	mostWorkloads = 128
	// leastWindows is the least number of windows of one scrape interval.
	leastWindows = 5
	// mostResets is how often a counter may go back within the window. A restart is one. Proposed.
	mostResets = 2
	// mostFigures is the number of figures of findings that are divided by operations.
	mostFigures = 100
	// longestMatcher is the longest matcher of workloads in bytes. A server accepts 16 KiB of a query.
	longestMatcher = 4 << 10
	perQuery       = 10 * time.Second
	level          = 0.95
)

// Options select what is computed.
type Options struct {
	Interval time.Duration // between two scrapes; for 0 it is derived from the samples
	Workload string        // only this one; empty means all
}

// A cost is one kind of event. Its query has $only for the matchers of the workload, and $rate(METRIC) for a rate.
type cost struct{ name, unit, query string }

func counted(name, unit, metric string, matchers ...string) cost {
	return cost{name, unit, "sum by (instance, workload) ($rate(" + metric + "{" + strings.Join(append(matchers, "$only"), ",") + "}[$over]))"}
}

// ofContainer is a cost whose metrics have the control group and not the workload.
func ofContainer(name, unit string, metrics ...string) cost {
	for i, m := range metrics {
		metrics[i] = "sum by (instance, id) ($rate(" + m + "[$over]))"
	}
	return cost{name, unit, "sum by (instance, workload) ((" + strings.Join(metrics, " + ") +
		") * on (instance, id) group_left (workload) " + promql.Newest("teescope_container_info{$only}", "instance", "id") + ")"}
}

// costs returns the kinds of events, in the order of reports.
func costs() []cost {
	return []cost{
		counted("system calls", "1", "teescope_syscalls_total"),
		counted("enclave exits", "1", "teescope_enclave_transitions_total", `kind="eexit"`),
		counted("interrupts of the enclave (AEX)", "1", "teescope_enclave_transitions_total", `kind="aex"`),
		counted("page faults", "1", "teescope_page_faults_total"),
		counted("context switches", "1", "teescope_context_switches_total"),
		counted("CPU time", "seconds", "teescope_cpu_seconds_total"),
		counted("enclave pages evicted", "1", "sgx_workload_pages_evicted_total"),
		ofContainer("disk", "bytes", "container_fs_reads_bytes_total", "container_fs_writes_bytes_total"),
		ofContainer("network", "bytes", "container_network_receive_bytes_total", "container_network_transmit_bytes_total"),
	}
}

// over fills the placeholders of a query.
func over(text, rate, span, only string) string {
	return strings.NewReplacer("$rate", rate, "$over", span, "$only", only).Replace(text)
}

// computation is one analysis of a window.
type computation struct {
	*query.Asker
	at             time.Time
	span, interval time.Duration
	two            string // a range that has two scrapes
	only           string // matchers of the workloads
	operations     map[query.Target][]query.Point
	targets        map[query.Target]int // applications that count the operations of a workload
}

// Add adds the costs of operations to a result, and divides the figures and the gains of its findings. The result's
// problems say which sources are not read.
func Add(ctx context.Context, source query.Source, r *engine.Result, o Options) {
	c := &computation{Asker: query.NewAsker(ctx, source, perQuery), at: r.At, span: r.Window, interval: o.Interval, targets: make(map[query.Target]int)}
	r.Operations = c.all(o)
	c.divide(r)
	r.Problems = append(r.Problems, c.Problems...)
}

// sources finds which workloads have operations, and whether they are counted.
func (c *computation) sources(o Options) (all []analysis.Operations) {
	find := func(t query.Target) *analysis.Operations {
		if o.Workload != "" && t.Workload != o.Workload || t.Workload == "" {
			return nil
		}
		for i := range all {
			if all[i].Workload == t.Workload && all[i].Instance == t.Instance {
				return &all[i]
			}
		}
		all = append(all, analysis.Operations{
			Workload: t.Workload, Instance: t.Instance, State: operation.Counted, Window: c.span.Seconds(),
			Latency: []analysis.Evidence{}, Costs: []analysis.Evidence{}, Missing: []string{},
		})
		return &all[len(all)-1]
	}
	states := fmt.Sprintf(`max by (workload, machine, kind, selector, basis, state, target_job, target_instance) (%s)`, operation.SourceFamily)
	seen := make(map[[4]string]bool) // in a file, a state that has ended can still be there
	for _, s := range c.Instant(states, c.at) {
		l := s.Labels
		one := [4]string{l["kind"], l["target_job"], l["target_instance"], l["selector"]}
		if seen[one] {
			continue
		}
		seen[one] = true
		if one := find(query.Target{Workload: l["workload"], Instance: l["machine"]}); one != nil {
			target := fmt.Sprintf("%s at %s", l["target_job"], l["target_instance"])
			if l["kind"] == "operations" {
				c.counts(one, target, l)
			}
			if why := because(l["state"]); why != "" {
				c.Note(query.Problem{Kind: query.Absent, Workload: one.Workload, Instance: one.Instance, Error: fmt.Sprintf(
					"scrape, %s, %s=%s: %s", target, l["kind"], l["selector"], why)})
			}
		}
	}
	stored := fmt.Sprintf("group by (workload, instance, counter, basis) (last_over_time(%s[%s]))", operation.Family, query.Duration(c.span))
	for _, s := range c.Instant(stored, c.at) {
		if one := find(query.TargetOf(s.Labels)); one != nil && one.Counter == "" {
			one.Counter, one.Guessed = s.Labels[operation.Counter], s.Labels[operation.Basis] == operation.Guessed
		}
	}
	slices.SortFunc(all, func(a, b analysis.Operations) int {
		return strings.Compare(a.Workload+"\x00"+a.Instance, b.Workload+"\x00"+b.Instance)
	})
	if more := len(all) - mostWorkloads; more > 0 {
		c.Note(query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("%d workloads count operations: only %d have costs", len(all), mostWorkloads)})
		all = all[:mostWorkloads]
	}
	return all
}

// counts records one application that counts the operations of a workload. If there are several, all of them must be
// read.
func (c *computation) counts(one *analysis.Operations, application string, l map[string]string) {
	c.targets[target(*one)]++
	if c.targets[target(*one)] == 1 {
		one.Target, one.Counter, one.Guessed, one.State = application, l["selector"], l["basis"] == operation.Guessed, l["state"]
		return
	}
	one.Target += ", " + application
	one.Guessed = one.Guessed || l["basis"] == operation.Guessed
	if because(one.State) == "" {
		one.State = l["state"]
	}
	if one.Counter != l["selector"] {
		c.Note(query.Problem{Kind: query.Absent, Workload: one.Workload, Instance: one.Instance, Error: fmt.Sprintf(
			"scrape: %s and %s of %s are both operations of the workload, and are added", one.Counter, l["selector"], one.Target)})
	}
}

// because says why a source is not read. It is empty for one that is read.
func because(state string) string {
	return map[string]string{
		operation.Waiting:   "not scraped yet",
		operation.Down:      "the target does not answer",
		operation.Missing:   "no series of the target has this name and these labels",
		operation.NoKnown:   "no counter is named and the target has no known one: add operations=COUNTER",
		operation.Ambiguous: "no counter is named and the target has those of several exporters: add operations=COUNTER",
		operation.NoCounter: "it is not a counter",
		operation.Invalid:   "a value is not a number of operations: NaN, infinite, negative or above 2^53",
		operation.TooMany:   "more series than the limit: select fewer",
		operation.Refused:   "the target has used its part of the memory",
	}[state]
}

// all computes the costs of all workloads.
func (c *computation) all(o Options) []analysis.Operations {
	all := c.sources(o)
	if len(all) == 0 {
		return nil
	}
	if c.interval <= 0 {
		c.interval = window.Interval(c.Asker, c.at, c.span)
	}
	if c.interval <= 0 || c.span/c.interval < leastWindows {
		for i := range all {
			all[i].Because = "the window has too few scrapes"
		}
		return all
	}
	c.interval = max(c.interval, c.span/window.MaxObservations)
	c.two = query.Duration(c.interval * 5 / 2)
	var names []string
	for _, one := range all {
		names = append(names, regexp.QuoteMeta(one.Workload))
	}
	slices.Sort(names)
	if c.only = "workload=~" + strconv.Quote(strings.Join(slices.Compact(names), "|")); len(c.only) > longestMatcher {
		c.only = `workload!=""`
	}
	throughput := counted("operations", "1/s", operation.Family)
	c.operations = c.each(throughput.query)
	resets := make(map[query.Target]float64)
	for _, s := range c.Instant(fmt.Sprintf("max by (instance, workload) (resets(%s{%s}[%s]))", operation.Family, c.only, query.Duration(c.span)), c.at) {
		resets[query.TargetOf(s.Labels)] = s.Value
	}
	for i := range all {
		c.throughput(&all[i], throughput, resets[target(all[i])])
	}
	for _, kind := range costs() {
		found := c.each(kind.query)
		for i := range all {
			c.cost(&all[i], kind, found[target(all[i])])
		}
	}
	c.latencies(all)
	return all
}

func target(o analysis.Operations) query.Target {
	return query.Target{Workload: o.Workload, Instance: o.Instance}
}

// each returns the rates between two scrapes.
func (c *computation) each(text string) map[query.Target][]query.Point {
	by := make(map[query.Target][]query.Point)
	for _, s := range c.Range(over(text, "irate", c.two, c.only), c.at.Add(-c.span+c.interval), c.at, c.interval) {
		t := query.TargetOf(s.Labels)
		by[t] = add(by[t], s.Points)
	}
	return by
}

// add returns the sums of points of the same times.
func add(a, b []query.Point) []query.Point {
	if len(a) == 0 {
		return b
	}
	sums := slices.Clone(a)
	for _, p := range b {
		if i := slices.IndexFunc(sums, func(o query.Point) bool { return o.Time.Equal(p.Time) }); i >= 0 {
			sums[i].Value += p.Value
		} else {
			sums = append(sums, p)
		}
	}
	return sums
}

// throughput sets the operations per second, or why they are not known.
func (c *computation) throughput(o *analysis.Operations, of cost, resets float64) {
	points := c.operations[target(*o)]
	switch why := because(o.State); {
	case resets > mostResets:
		o.Because = fmt.Sprintf("the counter went back %.0f times within the window: it is not a counter, or its program ends again and again", resets)
	case why != "" && (len(points) < leastWindows || c.targets[target(*o)] > 1):
		o.Because = why
	case len(points) < leastWindows:
		o.Because = fmt.Sprintf("%d windows of one scrape; at least %d are needed", len(points), leastWindows)
	}
	if o.Because != "" {
		delete(c.operations, target(*o))
		return
	}
	ones := make([]float64, len(points))
	for i := range ones {
		ones[i] = 1
	}
	o.PerSecond = evidence("operations", "1/s", stat.RatioOfSums(query.Values(points), ones, level))
	o.PerSecond.Query = over(of.query, "rate", query.Duration(c.span), matchers(*o))
}

// evidence returns a figure with its interval. It has ends of an interval only if there are both.
func evidence(name, unit string, i stat.Interval) *analysis.Evidence {
	e := &analysis.Evidence{Name: name, Unit: unit, Value: i.Value, N: i.N}
	if i.Bounded() {
		low, high := math.Max(0, i.Low), i.High // a count is not negative
		e.Low, e.High = &low, &high
	}
	return e
}

func matchers(o analysis.Operations) string {
	s := "workload=" + strconv.Quote(o.Workload)
	if o.Instance != "" {
		s += ",instance=" + strconv.Quote(o.Instance)
	}
	return s
}

// paired returns the values of both at the times that both have.
func paired(y, x []query.Point) (ys, xs []float64) {
	at := make(map[int64]float64, len(x))
	for _, p := range x {
		at[p.Time.UnixMilli()] = p.Value
	}
	for _, p := range y {
		if v, there := at[p.Time.UnixMilli()]; there {
			ys, xs = append(ys, p.Value), append(xs, v)
		}
	}
	return ys, xs
}

// cost adds the cost of one kind of event.
func (c *computation) cost(o *analysis.Operations, kind cost, events []query.Point) {
	if o.PerSecond == nil {
		return
	}
	if i := stat.RatioOfSums(pairs(events, c.operations[target(*o)])); i.N >= leastWindows && !math.IsNaN(i.Value) {
		e := evidence(kind.name, kind.unit, i)
		span := query.Duration(c.span)
		e.Query = over(kind.query, "rate", span, matchers(*o)) + " / " + over(counted("", "", operation.Family).query, "rate", span, matchers(*o))
		o.Costs = append(o.Costs, *e)
	} else if i.N < leastWindows {
		o.Missing = append(o.Missing, kind.name)
	} else if o.Because == "" {
		o.Because = "no operation within the window"
	}
}

func pairs(y, x []query.Point) (ys, xs []float64, at float64) {
	ys, xs = paired(y, x)
	return ys, xs, level
}

// durations returns a query of the durations: f of the sums of the buckets of classic histograms, and of native ones. f
// has %s for the sum.
func durations(f, rate, le, only, span string) string {
	sum := func(suffix, by string) string {
		return fmt.Sprintf("sum by (instance, workload, counter, unit%s) (%s(%s%s{%s}[%s]))", by, rate, operation.Durations, suffix, only, span)
	}
	return fmt.Sprintf(f, sum("_bucket", le), sum("", ""))
}

// latencies adds the quantiles of durations.
func (c *computation) latencies(all []analysis.Operations) {
	span := query.Duration(c.span)
	n := make(map[query.Target]int)
	number := durations("%s or histogram_count(%s)", "increase", "", c.only, span)
	number = strings.Replace(number, "_bucket{", `_bucket{le="+Inf",`, 1)
	for _, s := range c.Instant(number, c.at) {
		if s.Value >= 1 && s.Value < operation.Most {
			n[query.TargetOf(s.Labels)] = int(s.Value + 0.5)
		}
	}
	units := operation.Units()
	for _, p := range []string{"0.5", "0.99"} {
		text := func(only string) string {
			return durations("histogram_quantile("+p+", %s) or histogram_quantile("+p+", %s)", "rate", ", le", only, span)
		}
		for _, s := range c.Instant(text(c.only), c.at) {
			t, unit := query.TargetOf(s.Labels), units[s.Labels[operation.Unit]]
			i := slices.IndexFunc(all, func(o analysis.Operations) bool { return target(o) == t })
			if i < 0 || unit == 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || n[t] == 0 {
				continue
			}
			e := analysis.Evidence{Name: "p" + strings.TrimPrefix(p+"0", "0.")[:2], Unit: "seconds", Value: s.Value * unit, N: n[t], Query: text(matchers(all[i]))}
			if unit != 1 {
				e.Query = fmt.Sprintf("(%s) * %g", e.Query, unit)
			}
			all[i].Latency = append(all[i].Latency, e)
		}
	}
}

// divide divides the figures of findings by the operations of their workloads, and states gains in operations.
func (c *computation) divide(r *engine.Result) {
	figures := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		at := slices.IndexFunc(r.Operations, func(o analysis.Operations) bool {
			return o.PerSecond != nil && o.PerSecond.Value > 0 && target(o) == query.Target{Workload: f.Workload, Instance: f.Instance}
		})
		if at < 0 {
			continue
		}
		now := *r.Operations[at].PerSecond
		f.Throughput, f.Gain = &now, f.Gain.Times(now.Value)
		f.Evidence = slices.Clone(f.Evidence)
		for k := range f.Evidence {
			if figures++; figures > mostFigures {
				return
			}
			f.Evidence[k].PerOperation = c.perOperation(f.Evidence[k], target(r.Operations[at]))
		}
	}
}

// perOperation divides one figure. It returns nil for one that is not a rate of the workload's own events.
func (c *computation) perOperation(e analysis.Evidence, t query.Target) *analysis.PerOperation {
	unit := map[string]string{"cores": "seconds", "1/s": "1", "bytes/s": "bytes", "pages/s": "pages"}[e.Unit]
	if unit == "" || !strings.Contains(e.Query, "workload="+strconv.Quote(t.Workload)) {
		return nil
	}
	expr, ok := promql.EachScrape(e.Query, query.Duration(c.span), c.two)
	if !ok {
		return nil
	}
	var events []query.Point
	for _, s := range c.Range(expr, c.at.Add(-c.span+c.interval), c.at, c.interval) {
		if its := query.TargetOf(s.Labels); its.Instance == "" || its.Instance == t.Instance {
			events = add(events, s.Points)
		}
	}
	i := stat.RatioOfSums(pairs(events, c.operations[t]))
	if i.N < leastWindows || math.IsNaN(i.Value) {
		return nil
	}
	as := evidence(e.Name, unit, i)
	return &analysis.PerOperation{Value: as.Value, Unit: unit, Low: as.Low, High: as.High, N: as.N}
}
