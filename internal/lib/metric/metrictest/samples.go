// SPDX-License-Identifier: Apache-2.0

package metrictest

import (
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// emitter is a collector that describes no families.
type emitter func(chan<- prometheus.Metric)

func (emitter) Describe(chan<- *prometheus.Desc)      {}
func (e emitter) Collect(ch chan<- prometheus.Metric) { e(ch) }

// gather runs collect once. It is an error if a series is emitted twice, or if families and labels are not valid.
func gather(collect func(emit func(prometheus.Metric))) ([]*dto.MetricFamily, error) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(emitter(func(ch chan<- prometheus.Metric) {
		collect(func(m prometheus.Metric) { ch <- m })
	}))
	return registry.Gather()
}

// Samples runs collect once and checks that its samples are valid for any input. It requires unique series, UTF-8 names
// and labels, finite values, and at most the given number of series.
func Samples(t testing.TB, most int, collect func(emit func(prometheus.Metric))) []*dto.MetricFamily {
	t.Helper()
	families, err := gather(collect)
	if err != nil {
		t.Error(err)
	}
	n := 0
	for _, family := range families {
		n += len(family.GetMetric())
		for _, m := range family.GetMetric() {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s is %v", family.GetName(), v)
			}
		}
	}
	if n > most {
		t.Errorf("%d series, more than %d", n, most)
	}
	return families
}

// NoControls checks that no label contains a control character.
func NoControls(t testing.TB, families []*dto.MetricFamily) {
	t.Helper()
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.ContainsFunc(l.GetValue(), unicode.IsControl) {
					t.Errorf("%s has the label %s=%q", family.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
}
