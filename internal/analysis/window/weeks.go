// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// Weeks is for how many weeks medians are carried forward.
	Weeks = 6
	week  = 7 * 24 * time.Hour
	// stride is the number of weeks after which medians are carried forward, if the database still has them then. Medians of the
	// weeks between are found that many weeks ago. So two series are enough for six weeks.
	stride = 2
)

// WeekStat returns the value of the label stat of the median of some weeks earlier. 0 weeks are the window itself.
func WeekStat(weeks int) string {
	if weeks == 0 {
		return "median"
	}
	return fmt.Sprintf("median_%dw", weeks)
}

// weeksOf is the inverse of WeekStat.
func weeksOf(stat string) (weeks int, ok bool) {
	if stat == WeekStat(0) {
		return 0, true
	}
	text, _ := strings.CutPrefix(stat, "median_")
	weeks, err := strconv.Atoi(strings.TrimSuffix(text, "w"))
	return weeks, err == nil && weeks > 0 && weeks <= Weeks && stat == WeekStat(weeks)
}

// medians returns the query of the medians of a metric, also of those that were carried forward.
func medians(m Metric, span time.Duration) string {
	return fmt.Sprintf(`max by (instance, workload, stat) (%s{metric=%q,stat=~"median.*",window=%q})`, ValueFamily, m.Name, query.Duration(span))
}

// CarryWeeks stores the medians of the same window of earlier weeks as series of now:
//
//	teescope:window_value{metric="teescope_syscalls", stat="median_2w", window="5m", workload="redis", instance="here"}
//
// median_2w is a copy of the median, and median_4w one of median_2w, as they were stored two weeks ago. A database that keeps samples for
// 15 days so has medians of six weeks: see [ReadWeeks]. If it keeps them for little more than a week, or a workload is not two weeks old,
// medians are copied after one week, with the labels from median_1w to median_5w. Times are multiples of the window, so that weeks later
// there is a sample at exactly that time.
func CarryWeeks(ctx context.Context, q *query.Asker, to Appender, at time.Time, span time.Duration, metrics []Metric) error {
	at = at.Truncate(span)
	for _, m := range metrics {
		var samples []query.Sample
		carried := make(map[query.Target]bool)
		for back := stride; back > 0; back-- {
			found := make(map[query.Target]bool)
			for _, s := range q.Instant(medians(m, span), at.Add(-time.Duration(back)*week)) {
				t := query.TargetOf(s.Labels)
				weeks, ok := weeksOf(s.Labels["stat"])
				if next := weeks + back; ok && !carried[t] && weeks%back == 0 && next <= Weeks-back {
					one := Stat{Metric: m, Workload: t.Workload, Instance: t.Instance, Window: span, At: at}
					samples = append(samples, query.Sample{Labels: one.labels(ValueFamily, WeekStat(next)), Time: at, Value: s.Value})
					found[t] = true
				}
			}
			maps.Copy(carried, found)
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

// ReadWeeks returns the medians of a metric in the time before the same time of earlier weeks, by target and number of weeks.
func ReadWeeks(q *query.Asker, at time.Time, before, span time.Duration, m Metric) map[query.Target]map[int][]float64 {
	all := make(map[query.Target]map[int][]float64)
	for back := range stride + 1 {
		until := at.Add(-time.Duration(back) * week)
		for _, s := range q.Range(medians(m, span), until.Add(-before), until, span) {
			weeks, ok := weeksOf(s.Labels["stat"])
			if weeks += back; !ok || weeks == 0 || weeks > Weeks {
				continue
			}
			t := query.TargetOf(s.Labels)
			if all[t] == nil {
				all[t] = make(map[int][]float64)
			}
			if len(s.Points) > len(all[t][weeks]) { // several series may have the same week
				all[t][weeks] = query.Values(s.Points)
			}
		}
	}
	return all
}
