// SPDX-License-Identifier: Apache-2.0

package metrictest

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/teescope/teescope/internal/lib/exposition"
)

// Text runs collect once and returns its samples in the text format of Prometheus. The test fails if a series is emitted twice.
func Text(t testing.TB, collect func(emit func(prometheus.Metric))) []byte {
	t.Helper()
	families, err := gather(collect)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&out, family); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// Families reads the text format. The test fails if there is no family.
func Families(t testing.TB, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := exposition.Parse(text)
	if err != nil || len(families) == 0 {
		t.Fatalf("reading an exposition: %d families, %v\n%s", len(families), err, text)
	}
	return families
}

// Matching returns the samples of a family with the labels given as name, value, name, value.
func Matching(family *dto.MetricFamily, labels ...string) (all []*dto.Metric) {
next:
	for _, m := range family.GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		for i := 0; i < len(labels); i += 2 {
			if have[labels[i]] != labels[i+1] {
				continue next
			}
		}
		all = append(all, m)
	}
	return all
}

// Sum adds up the values of samples: of counters, gauges and the number of observations of histograms.
func Sum(all []*dto.Metric) (total float64) {
	for _, m := range all {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return total
}

// Number reads a number with spaces around it.
func Number(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
