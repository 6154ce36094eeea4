// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

// mostTests bounds the tests of a benchmark that are shown over the points of a sweep.
const mostTests = 4

// overPoints lists the metrics that are shown over the points of a sweep: the throughputs with latencies of the same test, or else the
// main outcome, and what an operation costs. They are those in which TEEMon compares frameworks (Middleware 2020, 6.5) and a few more.
func overPoints(tables []*compare.Table) []compare.Metric {
	var all, shown []compare.Metric
	known := map[string]bool{}
	for _, t := range tables {
		for _, row := range t.Rows {
			if id := row.Metric.ID(); !known[id] {
				known[id] = true
				all = append(all, row.Metric)
			}
		}
	}
	outcomes := slices.DeleteFunc(slices.Clone(all), func(m compare.Metric) bool { return m.Area != compare.Outcome })
	tests := 0
	for _, m := range outcomes {
		if m.IsThroughput() && tests < mostTests {
			tests++
			shown = append(append(shown, m), latencies(outcomes, strings.TrimSuffix(m.Name, "throughput"))...)
		}
	}
	if main, ok := compare.Main(outcomes); ok && len(shown) == 0 {
		shown = []compare.Metric{main}
	}
	for _, series := range compare.Costs() {
		if i := slices.IndexFunc(all, func(m compare.Metric) bool { return m.Series == series && m.Part == "" && m.Area != compare.Start }); i >= 0 {
			shown = append(shown, all[i])
		}
	}
	return shown
}

// latencies returns latencies of a test, whose outcomes begin with its name.
func latencies(outcomes []compare.Metric, test string) []compare.Metric {
	var found []compare.Metric
	for _, name := range []string{"latency_mean", "latency_p50", "latency_p99"} {
		if i := slices.IndexFunc(outcomes, func(m compare.Metric) bool { return m.Name == test+name }); i >= 0 {
			found = append(found, outcomes[i])
		}
	}
	return found
}

// groupNames lists the groups of all tables, each once.
func groupNames(tables []*compare.Table) []string {
	var names []string
	for _, t := range tables {
		for _, g := range t.Groups {
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
		}
	}
	return names
}

// headToHead writes a metric of each group at each point of a sweep.
func (r *Report) headToHead(b *strings.Builder, m compare.Metric) error {
	high := 0.0
	for _, t := range r.Tables {
		for _, g := range t.Groups {
			if c, found := t.Cell(m.ID(), g.Name); found && len(c.Values) > 0 {
				high = math.Max(high, c.Median.Value)
			}
		}
	}
	by, unit := scaled(high, m.Unit)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, text.Terminal(titleOf(m, unit)))
	names := groupNames(r.Tables)
	for _, name := range names {
		fmt.Fprintf(w, "\t%s", text.Terminal(name))
	}
	fmt.Fprintln(w)
	for _, t := range r.Tables {
		fmt.Fprint(w, text.Terminal(t.Title))
		for _, name := range names {
			cell := "-"
			if c, found := t.Cell(m.ID(), name); found {
				cell = figure(c.Median, by)
				if c.Change != nil && len(c.Values) > 0 {
					cell += " (" + compare.Percent(c.Change.Ratio.Value) + " " + string(c.Change.Verdict) + ")"
				}
			}
			fmt.Fprintf(w, "\t%s", cell)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
