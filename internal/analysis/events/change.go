// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"math"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/operation"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/stat"
)

// parts is the number of parts into which the time before and after an event is cut, and skipped the number of parts after
// it that are omitted: the workload starts then.
const (
	parts   = 10
	skipped = 1
	level   = 0.95
)

// Change is the difference of a figure between the time before and after an event.
type Change struct {
	Before, After   float64 // medians
	NBefore, NAfter int     // parts
	// Low and High are the ends of the 95 % interval of the difference. They are NaN if there are too few parts, or if they
	// depend too much on each other.
	Low, High float64
	Query     string
}

// Changed evaluates a query over the parts before an event, not earlier than from, and over those after it, not later than
// to. The ranges of the query are set to the length of a part, so that no two values share a sample. It returns nil if
// there is nothing to compare.
func Changed(q *query.Asker, expr string, from, event, to time.Time, part time.Duration) *Change {
	expr = promql.Ranges(expr, query.Duration(part))
	start := event.Add(-(parts - 1) * part)
	for start.Before(from) {
		start = start.Add(part)
	}
	before := values(q, expr, start, event, part)
	first := event.Add((skipped + 1) * part)
	last := event.Add((skipped + parts) * part)
	if last.After(to) {
		last = to
	}
	after := values(q, expr, first, last, part)
	if len(before) == 0 || len(after) == 0 {
		return nil
	}
	b, a := stat.SerialMedianInterval(before, level), stat.SerialMedianInterval(after, level)
	shift := stat.ShiftOfProportions(b, a, 1, 1) // the method is that of any two intervals
	c := &Change{Before: b.Value, After: a.Value, NBefore: len(before), NAfter: len(after), Low: shift.Low, High: shift.High, Query: expr}
	if len(before) < leastParts || len(after) < leastParts || math.IsInf(c.Low, 0) || math.IsInf(c.High, 0) {
		c.Low, c.High = math.NaN(), math.NaN()
	}
	return c
}

// leastParts is the least number of values on each side for an interval. Fewer values do not show whether they depend on each other.
// Of 95 % intervals of 10 values that have ends, 90 % or more cover the median up to an autocorrelation of 0.5
// (docs/decisions/analysis.md).
const leastParts = 8

// values returns the finite values of the only series of a query.
func values(q *query.Asker, expr string, start, end time.Time, step time.Duration) (all []float64) {
	if start.After(end) {
		return nil
	}
	series := q.Range(expr, start, end, step)
	if len(series) != 1 {
		return nil
	}
	for _, v := range query.Values(series[0].Points) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			all = append(all, v)
		}
	}
	return all
}

// Cores returns the query for the CPU time that a workload uses, in cores.
func Cores(who query.Target) string {
	return "sum(rate(teescope_cpu_seconds_total" + selector(who, "workload", who.Workload) + "[1m]))"
}

// Operations returns the query for the operations of a workload per second, where an application counts them.
func Operations(who query.Target) string {
	return "sum(rate(" + operation.Family + selector(who, "workload", who.Workload) + "[1m]))"
}

// CPUPerOperation returns the query for the CPU time of one operation of a workload.
func CPUPerOperation(who query.Target) string { return Cores(who) + " / " + Operations(who) }

// Gone reports whether a workload has no samples at a time.
func Gone(q *query.Asker, who query.Target, at time.Time) bool {
	if who.Workload == "" {
		return false
	}
	return len(q.Instant(fmt.Sprintf("count(teescope_processes%s)", selector(who, "workload", who.Workload)), at)) == 0
}
