// SPDX-License-Identifier: Apache-2.0

// Package events finds events of a workload shortly before a finding about it began or ended: restarts, deployments, and new
// workloads on the same machine.
//
// It computes the probability of a coincidence, and skips events that are probably coincidences. It does not name causes.
package events

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// window is the longest time between an event and what it precedes.
	window = 10 * time.Minute
	// MaxChance is the largest chance with which an event is named.
	MaxChance = 0.05
	// day is the time over which events are counted for the chance.
	day = 24 * time.Hour
	// slot is the time between two evaluations, and between the moments at which workloads are counted. A workload that exists for less
	// may be missed.
	slot = time.Minute
	// most is the largest number of events that are named.
	most = 3
	// mostNew bounds the new neighbours that are inspected.
	mostNew = 50
)

// past has the events before a moment, and their number in the time for which samples exist.
type past struct {
	events  []analysis.Preceding // without seconds and chance
	count   float64
	covered time.Duration
}

// Before returns the events that preceded a moment at a workload, the last one first. With a resource, new workloads of the
// machine that use it count as events. It returns nothing where chance explains an event, and false if a query failed or the
// machine has no samples. The caller checks whether the context has ended.
func Before(q *query.Asker, who query.Target, shared analysis.Resource, at time.Time) ([]analysis.Preceding, bool) {
	problems := len(q.Problems)
	p := past{covered: covered(q, who, at)}
	if p.covered > 0 {
		p.replacements(q, who, at)
		p.neighbours(q, who, shared, at)
	}
	return p.named(at), p.covered > 0 && len(q.Problems) == problems
}

// named returns the events that are too close for chance. If count events come at any times within the covered time, the
// share of moments with one in the d before is at most count*d/covered. A look comes once a minute, so a moment may be that
// much later than what it stands for: events at the same second of each minute must not seem to be close.
func (p past) named(at time.Time) (named []analysis.Preceding) {
	for _, e := range p.events {
		d := at.Sub(e.At)
		if d < 0 || d > window || p.covered <= 0 {
			continue
		}
		e.Seconds = d.Seconds()
		e.Chance = min(1, max(p.count, 1)*(d+slot).Seconds()/p.covered.Seconds())
		if e.Chance <= MaxChance {
			named = append(named, e)
		}
	}
	slices.SortFunc(named, func(a, b analysis.Preceding) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Workload, b.Workload))
	})
	return named[:min(len(named), most)]
}

// selector returns matchers for a metric: pairs of a label and its value. A machine without a name has no matcher.
func selector(who query.Target, pairs ...string) string {
	var all []string
	if who.Instance != "" {
		all = append(all, fmt.Sprintf("instance=%q", who.Instance))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf("%s=%q", pairs[i], pairs[i+1]))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// covered returns for how much of the last day the machine was watched.
func covered(q *query.Asker, who query.Target, at time.Time) time.Duration {
	samples := q.Instant(fmt.Sprintf("count_over_time(group(teescope_processes%s)[1d:5m])", selector(who)), at)
	if len(samples) != 1 {
		return 0
	}
	return min(day, time.Duration(samples[0].Value)*5*time.Minute)
}

// replaced describes a change: a restart or a deployment, of a program or of a container.
func replaced(kind, name, image string, container bool) analysis.Preceding {
	e := analysis.Preceding{Kind: analysis.Restart, Workload: name, What: name + " was restarted"}
	switch {
	case kind == string(analysis.Deployment) && container && image != "":
		e.Kind, e.What = analysis.Deployment, fmt.Sprintf("%s began with another image, %s", name, image)
	case kind == string(analysis.Deployment) && container:
		e.Kind, e.What = analysis.Deployment, name+" began with another image"
	case kind == string(analysis.Deployment):
		e.Kind, e.What = analysis.Deployment, name+" began with another program file"
	}
	return e
}

// replacements finds the last restart and the last deployment of the workload, and counts those of a day. A new container
// is a new workload, so those of its name are counted.
func (p *past) replacements(q *query.Asker, who query.Target, at time.Time) {
	if who.Workload == "" {
		return
	}
	own := "teescope_workload_change_timestamp_seconds" + selector(who, "workload", who.Workload)
	p.changed(q.Instant("max by (change) ("+own+")", at), who, false)
	for _, s := range q.Instant(fmt.Sprintf("sum(changes(%s[1d])) + count(last_over_time(%s[1d]))", own, own), at) {
		p.count += s.Value
	}
	const identity = "container, namespace, name, pod, image"
	own = "teescope_container_change_timestamp_seconds" + selector(who, "workload", who.Workload)
	containers := q.Instant("max by (change, "+identity+") ("+own+")", at)
	p.changed(containers, who, true)
	for _, s := range containers[:min(len(containers), 1)] {
		same := []string{"namespace", s.Labels["namespace"], "container", s.Labels["container"]}
		if s.Labels["container"] == "" {
			same = append(same, "name", s.Labels["name"])
		}
		named := "teescope_container_change_timestamp_seconds" + selector(who, same...)
		for _, n := range q.Instant("count(last_over_time("+named+"[1d]))", at) {
			p.count += n.Value
		}
	}
}

func (p *past) changed(samples []query.Sample, who query.Target, container bool) {
	for _, s := range samples {
		name := who.Workload
		if container {
			name = cmp.Or(s.Labels["container"], s.Labels["name"], name)
		}
		e := replaced(s.Labels["change"], name, s.Labels["image"], container)
		if e.At = moment(s.Value); !e.At.IsZero() {
			p.events = append(p.events, e)
		}
	}
}

// moment returns the time of a value in seconds since 1970, or the zero time if the value is invalid.
func moment(seconds float64) time.Time {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > 1e11 {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC()
}

// users selects the workloads that use a resource: an enclave, or a tenth of a core.
func users(shared analysis.Resource, who query.Target) string {
	switch shared {
	case analysis.SharedEPC:
		return "teescope_workload_info" + selector(who, "tee", "sgx")
	case analysis.SharedCPU:
		return "sum by (workload) (rate(teescope_cpu_seconds_total" + selector(who) + "[2m])) > 0.1"
	}
	return ""
}

// neighbours finds workloads that use the resource and did not exist in the day before the window. A container that
// replaces another one is not new.
func (p *past) neighbours(q *query.Asker, who query.Target, shared analysis.Resource, at time.Time) {
	using := users(shared, who)
	if using == "" {
		return
	}
	all := "teescope_processes" + selector(who)
	replacing := "unless on (workload) teescope_container_change_timestamp_seconds" + selector(who)
	expr := fmt.Sprintf("group by (workload) (%s) and on (workload) (%s) unless on (workload) last_over_time(%s[1d:1m] offset %s) %s",
		all, using, all, query.Duration(window), replacing)
	var names []string
	for _, s := range q.Instant(expr, at) {
		if name := s.Labels["workload"]; name != "" && name != who.Workload && !query.Collective(name) && len(names) < mostNew {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		one := "teescope_processes" + selector(who, "workload", name)
		for _, s := range q.Instant(fmt.Sprintf("min(min_over_time(timestamp(%s)[%s:15s]))", one, query.Duration(window+time.Minute)), at) {
			if begun := moment(s.Value); !begun.IsZero() {
				p.events = append(p.events, analysis.Preceding{Kind: analysis.Neighbour, At: begun, Workload: name, What: name + " began on the same machine"})
			}
		}
	}
	// All workloads that appeared since the beginning of the covered time count, also those that do not use it.
	first := query.Duration(max(p.covered-5*time.Minute, slot))
	expr = fmt.Sprintf("count(group by (workload) (last_over_time(%s[%s:%s])) unless on (workload) (%s offset %s))", all, first, query.Duration(slot), all, first)
	for _, s := range q.Instant(expr, at) {
		p.count += s.Value
	}
}

// Earlier evaluates a query before the last restart or deployment of these events, and at the same time of the day before and of the week
// before. It omits what has no sample.
func Earlier(q *query.Asker, name, unit, expr string, at time.Time, preceded []analysis.Preceding) (all []analysis.Earlier, ok bool) {
	if expr == "" {
		return nil, true
	}
	problems := len(q.Problems)
	moments := []time.Duration{day, 7 * day}
	if i := slices.IndexFunc(preceded, func(p analysis.Preceding) bool { return p.Kind != analysis.Neighbour && p.At.Before(at) }); i >= 0 {
		moments = slices.Insert(moments, 0, at.Sub(preceded[i].At))
	}
	for _, ago := range moments {
		samples := q.Instant(expr, at.Add(-ago))
		if len(samples) == 1 && !math.IsNaN(samples[0].Value) && !math.IsInf(samples[0].Value, 0) {
			all = append(all, analysis.Earlier{Ago: ago.Seconds(), Name: name, Value: samples[0].Value, Unit: unit, Query: expr})
		}
	}
	return all, len(q.Problems) == problems
}
