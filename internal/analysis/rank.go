// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"slices"
)

// The least gains of the severities.
const (
	leastLow    = 0.01
	leastMedium = 0.05
	leastHigh   = 0.20
)

// floor is the least gain of a severity, -1 when there is no such.
func floor(s Severity) float64 {
	switch s {
	case High:
		return leastHigh
	case Medium:
		return leastMedium
	case Low:
		return leastLow
	case Info:
		return 0
	}
	return -1
}

// AtLeast tells whether one severity matters as much as another.
func (s Severity) AtLeast(other Severity) bool { return floor(s) >= floor(other) }

// severityOf goes by the middle of the gain. What brings less than 1 %, or nobody knows what, is info.
func severityOf(g *Gain) Severity {
	if g != nil {
		for _, s := range []Severity{High, Medium, Low} {
			if g.Mid() >= floor(s) {
				return s
			}
		}
	}
	return Info
}

func (c Confidence) weight() float64 {
	switch c {
	case Measured:
		return 1
	case Likely:
		return 0.8
	case Possible:
		return 0.5
	}
	return 0
}

// weight is what findings rank by: the middle of the gain, or what a rule's own severity stands for, times the
// confidence.
func weight(f Finding, own Severity) float64 {
	var gain float64
	if f.Gain != nil {
		gain = f.Gain.Mid()
	}
	return max(gain, floor(own)) * f.Confidence.weight()
}

// rank puts the most worthwhile findings first and leaves out those that another explains.
func (e *evaluation) rank() []Finding {
	drafts := slices.Clone(e.drafts)
	slices.SortStableFunc(drafts, func(a, b draft) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
	})
	var kept []draft
	dropped := make(map[string]draft) // by ID
	for i, d := range drafts {
		explained := false
		for j, by := range drafts {
			// Of two that explain each other the first stays.
			mutual := i < j && slices.Contains(d.supersedes, by.Rule)
			explained = explained || i != j && !mutual && by.explains(d)
		}
		if explained {
			dropped[d.ID] = d
		} else {
			kept = append(kept, d)
		}
	}
	ranked := []Finding{}
	for _, d := range kept {
		d.consequences(d, dropped)
		ranked = append(ranked, d.Finding)
	}
	return ranked
}

// explains tells whether this finding makes another one superfluous.
func (d *draft) explains(other draft) bool {
	return d.Workload == other.Workload && d.Instance == other.Instance && slices.Contains(d.supersedes, other.Rule)
}

// consequences notes what this finding explains by way of another one, itself at first.
func (d *draft) consequences(by draft, dropped map[string]draft) {
	for _, rule := range by.supersedes {
		id := ID(rule, d.Workload, d.Instance)
		if other, found := dropped[id]; found && !slices.Contains(d.Explains, rule) {
			d.Explains = append(d.Explains, rule)
			d.consequences(other, dropped)
		}
	}
}
