// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

const stepsQuery = `sum by (instance) (increase(teescope_clock_steps_total[$window])) > 0`

// machines holds properties of each machine, by instance.
type machines struct {
	stepped map[string]bool // its clock was set within the window
	costs   cost.Machines
}

// readMachines queries the properties of each machine. blind is the reason why nothing can be judged, or empty.
func readMachines(q *inquiry) (m machines, blind string) {
	m = machines{stepped: make(map[string]bool)}
	steps := q.own(stepsQuery)
	for _, s := range steps.samples {
		m.stepped[s.Labels["instance"]] = true
	}
	if steps.kind == query.Failed {
		blind = "it is not known whether the clock was set"
	}
	for _, s := range q.own(cost.ClockQuery).samples {
		m.costs.AddClock(s.Labels, s.Value)
	}
	for _, s := range q.own(cost.OCALLQuery).samples {
		m.costs.AddOCALL(s.Labels, s.Value)
	}
	return m, blind
}
