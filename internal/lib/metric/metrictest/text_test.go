// SPDX-License-Identifier: Apache-2.0

package metrictest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestTextIsReadAgain(t *testing.T) {
	desc := prometheus.NewDesc("things_total", "Things.", []string{"kind", "place"}, nil)
	text := Text(t, func(emit func(prometheus.Metric)) {
		emit(prometheus.MustNewConstMetric(desc, prometheus.CounterValue, 1, "a", "x"))
		emit(prometheus.MustNewConstMetric(desc, prometheus.CounterValue, 2, "a", "y"))
		emit(prometheus.MustNewConstMetric(desc, prometheus.CounterValue, 4, "b", "y"))
	})
	family := Families(t, text)["things_total"]
	for _, tt := range []struct {
		labels []string
		n      int
		sum    float64
	}{{nil, 3, 7}, {[]string{"kind", "a"}, 2, 3}, {[]string{"kind", "a", "place", "y"}, 1, 2}, {[]string{"kind", "c"}, 0, 0}, {[]string{"other", "a"}, 0, 0}} {
		if all := Matching(family, tt.labels...); len(all) != tt.n || Sum(all) != tt.sum {
			t.Errorf("%q: %d samples, sum %v, want %d and %v", tt.labels, len(all), Sum(all), tt.n, tt.sum)
		}
	}
	if all := Matching(Families(t, text)["others_total"]); all != nil {
		t.Errorf("a family that is missing has %v", all)
	}
	histogram := prometheus.MustNewConstHistogram(prometheus.NewDesc("h", "H.", nil, nil), 5, 1.5, map[float64]uint64{1: 5})
	if n := Sum(Families(t, Text(t, func(emit func(prometheus.Metric)) { emit(histogram) }))["h"].GetMetric()); n != 5 {
		t.Errorf("a histogram of 5 observations counts as %v", n)
	}
	if n := Number(t, " 1e3\n"); n != 1000 {
		t.Error(n)
	}
}
