// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
)

// weight is the rank of a finding within its severity: the cores that removing the cause is sure to be worth, times the
// confidence. A gain counts for the cores that the workload uses or waits for.
func weight(f analysis.Finding, l Load) float64 {
	var cores float64
	if f.Saving != nil {
		cores = f.Saving.Low
	}
	if used := l.Cores + zeroIfUnknown(l.Wait); f.Gain != nil && used > 0 {
		cores = max(cores, f.Gain.Sure()*used)
	}
	return cores * f.Confidence.Weight()
}

func zeroIfUnknown(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// compareDrafts orders findings by severity, then by weight.
func compareDrafts(a, b draft) int {
	return cmp.Or(cmp.Compare(b.Severity.LeastGain(), a.Severity.LeastGain()), cmp.Compare(b.weight, a.weight), cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
}

// rank sorts findings by severity, then by weight, and omits those that another one explains.
func rank(drafts []draft) []draft {
	drafts = slices.Clone(drafts)
	slices.SortStableFunc(drafts, compareDrafts)
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
	for i := range kept {
		kept[i].consequences(kept[i], dropped)
	}
	return kept
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
