// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/analysis/query"
)

// find lists the workloads that any query told of, at most MaxWorkloads.
func (e *evaluation) find() {
	seen := make(map[query.Target]bool)
	named := make(map[string]bool) // workloads with an instance
	for _, by := range e.index {
		for p := range by {
			if p.Workload != "" && !query.Collective(p.Workload) && (e.Workload == "" || p.Workload == e.Workload) {
				seen[p] = true
				named[p.Workload] = named[p.Workload] || p.Instance != ""
			}
		}
	}
	for p := range seen {
		if p.Instance != "" || !named[p.Workload] {
			e.places = append(e.places, p)
		}
	}
	slices.SortFunc(e.places, func(a, b query.Target) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
	})
	if n := len(e.places); n > e.MaxWorkloads {
		e.problem(query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("%d workloads: only the first %d by name are looked at", n, e.MaxWorkloads)})
		for _, p := range e.places[e.MaxWorkloads:] {
			e.result.unknownPlaces[p] = true
		}
		e.places = e.places[:e.MaxWorkloads]
	}
	e.sight()
	e.places = slices.DeleteFunc(e.places, func(p query.Target) bool {
		why := e.absence(p)
		if why != "" {
			e.result.unknownPlaces[p] = true
			e.problem(query.Problem{Kind: query.Gap, Workload: p.Workload, Instance: p.Instance, Error: why})
		}
		return why != ""
	})
}

// samples are those of one query that a workload sees: its own and its machine's.
func (e *evaluation) samples(expr string, p query.Target) []query.Sample {
	if e.uncounted[p.Instance] && asksFrequent(expr) {
		return nil
	}
	by := e.index[expr]
	var all []query.Sample
	if p.Workload != "" {
		all = append(all, by[p]...)
		if p.Instance != "" {
			all = append(all, by[query.Target{Workload: p.Workload}]...)
		}
	}
	machine := slices.Clone(by[query.Target{Instance: p.Instance}])
	if p.Instance != "" {
		machine = append(machine, by[query.Target{}]...)
	}
	if len(machine) == 0 {
		// A stock Prometheus knows the machine's own exporter under another port.
		for _, other := range e.hosts[expr] {
			if query.SameHost(other.Instance, p.Instance) {
				machine = append(machine, by[other]...)
			}
		}
	}
	return append(all, machine...)
}

// machines lists the instances that any of a rule's queries told of.
func (e *evaluation) machines(rule Rule) []query.Target {
	seen := make(map[string]bool)
	for _, s := range rule.Signals {
		for p := range e.index[e.query(s)] {
			seen[p.Instance] = true
		}
	}
	if len(seen) > 1 {
		delete(seen, "") // seen by all the others
	}
	var found []query.Target
	for instance := range seen {
		p := query.Target{Instance: instance}
		if why := e.absence(p); why != "" {
			e.result.unknownPlaces[p] = true
			e.problem(query.Problem{Kind: query.Gap, Instance: instance, Error: why, Rules: []string{rule.Name}})
		} else {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b query.Target) int { return cmp.Compare(a.Instance, b.Instance) })
	return found
}
