// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
)

// weight is the rank of a finding: the middle of the gain, or that of the rule's own severity, times the confidence.
func weight(f analysis.Finding, own analysis.Severity) float64 {
	var gain float64
	if f.Gain != nil {
		gain = f.Gain.Mid()
	}
	return max(gain, own.LeastGain()) * f.Confidence.Weight()
}

// rank sorts findings by weight and leaves out those that another one explains.
func rank(drafts []draft) []analysis.Finding {
	drafts = slices.Clone(drafts)
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
	ranked := []analysis.Finding{}
	for _, d := range kept {
		d.consequences(d, dropped)
		ranked = append(ranked, d.Finding)
	}
	return ranked
}

// explains reports whether this finding makes another one redundant.
func (d *draft) explains(other draft) bool {
	return d.Workload == other.Workload && d.Instance == other.Instance && slices.Contains(d.supersedes, other.Rule)
}

// consequences records what this finding explains through another one, starting with itself.
func (d *draft) consequences(by draft, dropped map[string]draft) {
	for _, rule := range by.supersedes {
		id := analysis.ID(rule, d.Workload, d.Instance)
		if other, found := dropped[id]; found && !slices.Contains(d.Explains, rule) {
			d.Explains = append(d.Explains, rule)
			d.consequences(other, dropped)
		}
	}
}
