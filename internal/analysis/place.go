// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"slices"
)

// find lists the workloads that any query told of, at most MaxWorkloads.
func (e *evaluation) find() {
	seen := make(map[place]bool)
	named := make(map[string]bool) // workloads with an instance
	for _, by := range e.index {
		for p := range by {
			if p.workload != "" && !collective(p.workload) && (e.Workload == "" || p.workload == e.Workload) {
				seen[p] = true
				named[p.workload] = named[p.workload] || p.instance != ""
			}
		}
	}
	for p := range seen {
		if p.instance != "" || !named[p.workload] {
			e.places = append(e.places, p)
		}
	}
	slices.SortFunc(e.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.workload, b.workload), cmp.Compare(a.instance, b.instance))
	})
	if n := len(e.places); n > e.MaxWorkloads {
		e.problem(Problem{Kind: Bounded, Error: fmt.Sprintf("%d workloads: only the first %d by name are looked at", n, e.MaxWorkloads)})
		for _, p := range e.places[e.MaxWorkloads:] {
			e.result.unknownPlaces[p] = true
		}
		e.places = e.places[:e.MaxWorkloads]
	}
	e.sight()
	e.places = slices.DeleteFunc(e.places, func(p place) bool {
		why := e.absence(p)
		if why != "" {
			e.result.unknownPlaces[p] = true
			e.problem(Problem{Kind: Gap, Workload: p.workload, Instance: p.instance, Error: why})
		}
		return why != ""
	})
}

// samples are those of one query that a workload sees: its own and its machine's.
func (e *evaluation) samples(query string, p place) []Sample {
	if e.uncounted[p.instance] && asksFrequent(query) {
		return nil
	}
	by := e.index[query]
	var all []Sample
	if p.workload != "" {
		all = append(all, by[p]...)
		if p.instance != "" {
			all = append(all, by[place{workload: p.workload}]...)
		}
	}
	machine := slices.Clone(by[place{instance: p.instance}])
	if p.instance != "" {
		machine = append(machine, by[place{}]...)
	}
	if len(machine) == 0 {
		// A stock Prometheus knows the machine's own exporter under another port.
		for _, other := range e.hosts[query] {
			if sameHost(other.instance, p.instance) {
				machine = append(machine, by[other]...)
			}
		}
	}
	return append(all, machine...)
}

// machines lists the instances that any of a rule's queries told of.
func (e *evaluation) machines(rule Rule) []place {
	seen := make(map[string]bool)
	for _, s := range rule.Signals {
		for p := range e.index[e.query(s)] {
			seen[p.instance] = true
		}
	}
	if len(seen) > 1 {
		delete(seen, "") // seen by all the others
	}
	var found []place
	for instance := range seen {
		p := place{instance: instance}
		if why := e.absence(p); why != "" {
			e.result.unknownPlaces[p] = true
			e.problem(Problem{Kind: Gap, Instance: instance, Error: why, Rules: []string{rule.Name}})
		} else {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b place) int { return cmp.Compare(a.instance, b.instance) })
	return found
}
