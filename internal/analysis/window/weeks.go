// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// Weeks is for how many weeks medians are carried forward.
	Weeks = 6
	week  = 7 * 24 * time.Hour
)

// WeekStat returns the value of the label stat of the median of some weeks earlier.
func WeekStat(weeks int) string { return fmt.Sprintf("median_%dw", weeks) }

// CarryWeeks stores the medians of the same window of earlier weeks as series of now:
//
//	teescope:window_value{metric="teescope_syscalls", stat="median_3w", window="5m", workload="redis", instance="here"}
//
// Each is a copy of the series for one week less, as it was stored a week ago. So a database that keeps samples for
// little more than a week has medians of six weeks. Times are multiples of the window, so that a week later there is a
// sample at exactly that time. There is at most one series for each week, metric and workload.
func CarryWeeks(ctx context.Context, q *query.Asker, to Appender, at time.Time, span time.Duration, metrics []Metric) error {
	at = at.Truncate(span)
	next := map[string]string{"median": WeekStat(1)}
	for i := 1; i < Weeks; i++ {
		next[WeekStat(i)] = WeekStat(i + 1)
	}
	for _, m := range metrics {
		expr := fmt.Sprintf(`max by (instance, workload, stat) (%s{metric=%q,stat=~"median.*",window=%q})`, ValueFamily, m.Name, query.Duration(span))
		var samples []query.Sample
		for _, s := range q.Instant(expr, at.Add(-week)) {
			if stat := next[s.Labels["stat"]]; stat != "" {
				one := Stat{Metric: m, Workload: s.Labels["workload"], Instance: s.Labels["instance"], Window: span, At: at}
				samples = append(samples, query.Sample{Labels: one.labels(ValueFamily, stat), Time: at, Value: s.Value})
			}
		}
		if len(samples) == 0 {
			continue
		}
		if err := to.Append(ctx, samples); err != nil {
			return fmt.Errorf("carrying medians of earlier weeks: %w", err)
		}
	}
	return nil
}
