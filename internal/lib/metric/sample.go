// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Sample is one value of a family, made by [Desc.Value] or [Desc.Since]. A scrape makes thousands of samples, so it has no further
// fields. [prometheus.MustNewConstMetric] would allocate three objects for each label.
type Sample struct {
	Of     *Desc
	Labels []string // values, in the order of Of.Labels
	Last   string   // the value of the last label, if Labels is one shorter. So the samples of one thing share a list.
	Value  float64
	// Began is when a counter was zero and began to count, as the agent's clock showed it. It must not be later than the first
	// event that is counted, nor earlier than the end of an earlier counter with the same labels. It is zero if this is not known,
	// for counters whose value is older than the agent's knowledge of them, and for gauges.
	Began time.Time
}

// Started returns when a counter began, by the clock of now, from the time that the agent's clock showed then. After a change of
// the clock it is rather too early than too late: a zero that is too late would make the events before it count twice.
func Started(began, now time.Time) time.Time {
	age := now.Sub(began) // by the monotonic clock, which no change of the clock affects and which stops in suspension
	if at := now.Add(-age); at.Round(0).Before(began.Round(0)) {
		return at
	}
	return began
}

// Values returns the values of all labels.
func (s *Sample) Values() []string {
	if len(s.Labels) == len(s.Of.Labels) {
		return s.Labels
	}
	return append(slices.Clone(s.Labels), s.Last)
}

// Desc implements prometheus.Metric.
func (s *Sample) Desc() *prometheus.Desc { return s.Of.prom }

// Write implements prometheus.Metric.
func (s *Sample) Write(out *dto.Metric) error {
	out.Label = prometheus.MakeLabelPairs(s.Of.prom, s.Values())
	switch s.Of.Kind {
	case Counter:
		out.Counter = &dto.Counter{Value: &s.Value}
		if !s.Began.IsZero() {
			out.Counter.CreatedTimestamp = timestamppb.New(Started(s.Began, time.Now()))
		}
	case Untyped:
		out.Untyped = &dto.Untyped{Value: &s.Value}
	default:
		out.Gauge = &dto.Gauge{Value: &s.Value}
	}
	return nil
}
