// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/query/querytest"
)

// A trend is asked once, only where it is worth it, and has the values after the last gap.
func TestTrends(t *testing.T) {
	used := Signal{Name: "used", Query: "used"}
	trend := Trend{Name: "trend", Query: "floor", Worth: used, Least: 0.2}
	rules := []Rule{{Name: "a", Trends: []Trend{trend}}, {Name: "b", Trends: []Trend{trend}}}
	const window, step = time.Minute, trendStride * time.Minute
	for _, one := range []struct {
		about  string
		value  float64
		absent int // the value that is missing, from the oldest
		asked  int
		want   int
	}{
		{"whole", 0.2, -1, 1, trendSteps},
		{"with a gap", 0.2, 3, 1, trendSteps - 4},
		{"without the newest value", 0.2, trendSteps - 1, 1, 0},
		{"not worth it", 0.19, -1, 0, 0},
	} {
		var points []query.Point
		for i := range trendSteps {
			if i != one.absent {
				points = append(points, query.Point{Time: querytest.Noon.Add(time.Duration(i+1-trendSteps) * step), Value: float64(i)})
			}
		}
		labels := map[string]string{"workload": "w", "instance": "here"}
		source := &querytest.Canned{Ranges: map[string][]query.Series{"floor": {{Labels: labels, Points: points}}}}
		q := &inquiry{Options: Options{At: querytest.Noon, Window: window}.withDefaults(), ctx: context.Background(), source: source, memo: &Memo{}, asked: make(answers)}
		s := scene{Options: q.Options, trendWindow: window.Seconds()}
		s.trends = readTrends(q, rules, answers{"used": {samples: []query.Sample{{Value: 0.1}, {Value: one.value}}}})
		w := Workload{trends: s.trendsOf(rules[1], query.TargetOf(labels)), trendWindow: s.trendWindow}
		values, distance := w.Trend(trend)
		if len(source.Asked) != one.asked || len(values) != one.want || distance != step {
			t.Errorf("%s: asked %v, values %v at %v", one.about, source.Asked, values, distance)
		}
		if len(values) > 0 && (values[len(values)-1] != trendSteps-1 || !slices.IsSorted(values)) {
			t.Errorf("%s: %v", one.about, values)
		}
	}
}
