// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Sample is one value of a family, made by [Desc.Value]. A scrape makes thousands of samples, so it has no further
// fields. [prometheus.MustNewConstMetric] would allocate three objects for each label.
type Sample struct {
	Of     *Desc
	Labels []string // values, in the order of Of.Labels
	Value  float64
}

// Desc implements prometheus.Metric.
func (s *Sample) Desc() *prometheus.Desc { return s.Of.prom }

// Write implements prometheus.Metric.
func (s *Sample) Write(out *dto.Metric) error {
	out.Label = prometheus.MakeLabelPairs(s.Of.prom, s.Labels)
	switch s.Of.Kind {
	case Counter:
		out.Counter = &dto.Counter{Value: &s.Value}
	case Untyped:
		out.Untyped = &dto.Untyped{Value: &s.Value}
	default:
		out.Gauge = &dto.Gauge{Value: &s.Value}
	}
	return nil
}
