// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

// Queries about machines.
const (
	stepsQuery = `sum by (instance) (increase(teescope_clock_steps_total[$window])) > 0`
	clockQuery = `max by (instance) (node_cpu_frequency_max_hertz or node_cpu_scaling_frequency_max_hertz or node_cpu_frequency_hertz)`
	ocallQuery = `max by (instance, bound) (teescope_enclave_crossing_seconds)`
)

// machines holds properties of each machine, by instance.
type machines struct {
	stepped map[string]bool       // its clock was set within the window
	clocks  map[string]cost.Clock // of its processor
	ocalls  map[string]cost.Cost  // measured cost of an OCALL
}

// readMachines queries the properties of each machine. blind is the reason why nothing can be judged, or empty.
func readMachines(q *inquiry) (m machines, blind string) {
	m = machines{stepped: make(map[string]bool), clocks: make(map[string]cost.Clock)}
	steps := q.own(stepsQuery)
	for _, s := range steps.samples {
		m.stepped[s.Labels["instance"]] = true
	}
	if steps.kind == query.Failed {
		blind = "it is not known whether the clock was set"
	}
	for _, s := range q.own(clockQuery).samples {
		if s.Value > 0 {
			m.clocks[s.Labels["instance"]] = cost.Clock{Low: s.Value, High: s.Value, Measured: true}
		}
	}
	m.ocalls = measuredOCALLs(q.own(ocallQuery).samples)
	return m, blind
}

// clock returns the processor clock of an instance.
func (m machines) clock(instance string) cost.Clock {
	return ofInstance(m.clocks, instance, cost.UnknownClock)
}

// ocall returns the cost of an OCALL on an instance.
func (m machines) ocall(instance string) cost.Cost {
	return ofInstance(m.ocalls, instance, cost.Cost(cost.OCALL))
}

// ofInstance returns the value of an instance, if necessary from another port of the same host.
func ofInstance[T any](known map[string]T, instance string, otherwise T) T {
	if found, ok := known[instance]; ok {
		return found
	}
	for other, found := range known {
		if other == "" || query.SameHost(other, instance) {
			return found
		}
	}
	return otherwise
}

// measuredOCALLs returns the costs that users configured for their machines, by instance. Invalid ones are omitted.
func measuredOCALLs(samples []query.Sample) map[string]cost.Cost {
	bounds := make(map[string]map[string]float64)
	for _, s := range samples {
		instance := s.Labels["instance"]
		if bounds[instance] == nil {
			bounds[instance] = make(map[string]float64)
		}
		bounds[instance][s.Labels["bound"]] = s.Value
	}
	costs := make(map[string]cost.Cost)
	for instance, b := range bounds {
		if low, high := b["low"], b["high"]; low > 0 && high >= low {
			costs[instance] = cost.Seconds{What: cost.OCALL.What, Low: low, High: high, Source: "transitions.cost: measured on this machine"}
		}
	}
	return costs
}
