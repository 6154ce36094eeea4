// SPDX-License-Identifier: Apache-2.0

// Package cardinality counts the series that an agent makes or that a database has, by metric and label, and names the
// settings that lower their number.
//
// It does not change settings.
package cardinality

import (
	"cmp"
	"maps"
	"slices"
)

// Count holds the numbers of series of one agent, or of all agents that a database has.
type Count struct {
	Target   string `json:"target"`
	Series   int    `json:"series"`
	Machines int    `json:"machines"` // different values of the label instance; 1 for an agent
	// Workloads is the number of pairs of machine and workload with series of their own.
	Workloads int `json:"workloads"`
	// Stored is the number of series that a teescope server stores for an agent: it stores some histograms as one series each.
	// It is absent for a database, which shows what is stored.
	Stored *int `json:"stored_by_teescope_server,omitempty"`
	// Expected is absent without a workload.
	Expected *Expected `json:"expected,omitempty"`
	Metrics  []Metric  `json:"metrics"`
	Labels   []Label   `json:"labels"`
	Settings []Setting `json:"settings"`
	// Absent lists what could not be counted, and why.
	Absent []string `json:"absent,omitempty"`
}

// Expected is an estimate of the series of one machine with a number of workloads. It assumes that more workloads have as many
// series as the present ones have on average.
type Expected struct {
	Workloads   int     `json:"workloads"`
	Series      float64 `json:"series"`
	PerWorkload float64 `json:"series_per_workload"`
}

// Metric is the number of series with one name. The buckets of a histogram, its sum and its count are three metrics.
type Metric struct {
	Name   string         `json:"name"`
	Series int            `json:"series"`
	Labels map[string]int `json:"labels"` // different values by label
	// Settings are the keys of the configuration that lower it.
	Settings []string `json:"settings,omitempty"`
}

// Label is one label of series.
type Label struct {
	Name   string `json:"name"`
	Values int    `json:"values"` // different values in all metrics
	Series int    `json:"series"` // of the metrics that have the label
}

// byWorkload is the label that workloads.max bounds.
const byWorkload = "workload"

// newCount sorts and completes a count.
func newCount(target string, metrics map[string]*Metric, values map[string]int) *Count {
	c := &Count{Target: target, Machines: 1}
	having := map[string]int{}
	for _, m := range metrics {
		m.Settings = settingsOf(m)
		c.Series += m.Series
		for label := range m.Labels {
			having[label] += m.Series
		}
		c.Metrics = append(c.Metrics, *m)
	}
	for label, n := range values {
		c.Labels = append(c.Labels, Label{Name: label, Values: n, Series: having[label]})
	}
	slices.SortFunc(c.Metrics, func(a, b Metric) int {
		return cmp.Or(cmp.Compare(b.Series, a.Series), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(c.Labels, func(a, b Label) int {
		return cmp.Or(cmp.Compare(b.Values, a.Values), cmp.Compare(b.Series, a.Series), cmp.Compare(a.Name, b.Name))
	})
	c.Settings = c.settings()
	return c
}

// Expect adds the estimate for one machine with a number of workloads.
func (c *Count) Expect(workloads int) {
	i := slices.IndexFunc(c.Labels, func(l Label) bool { return l.Name == byWorkload })
	if i < 0 || c.Workloads == 0 || c.Machines == 0 {
		return
	}
	each := float64(c.Labels[i].Series) / float64(c.Workloads)
	fixed := float64(c.Series-c.Labels[i].Series) / float64(c.Machines)
	c.Expected = &Expected{Workloads: workloads, Series: fixed + each*float64(workloads), PerWorkload: each}
}

// labelsOf returns the names of a metric's labels in order.
func labelsOf(m Metric) []string { return slices.Sorted(maps.Keys(m.Labels)) }
