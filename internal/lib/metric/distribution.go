// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Distribution is one sample of a histogram, made by [Desc.Distribution].
type Distribution struct {
	Of     *Desc
	Labels []string  // values, in the order of Of.Labels
	UpTo   []uint64  // the number of values at or below each of Of.Bounds
	N      uint64    // of all values
	Sum    float64   // of all values, in the family's unit
	Began  time.Time // as [Sample.Began]
}

// Distribution makes one sample of a histogram that counts from a time on, which is zero if unknown: the number of values at or
// below each bound, that of all values, and their sum. It panics when the numbers of bounds or labels are wrong.
func (d *Desc) Distribution(began time.Time, upTo []uint64, n uint64, sum float64, labels ...string) *Distribution {
	if len(labels) != len(d.Labels) || len(upTo) != len(d.Bounds) {
		panic(fmt.Sprintf("%s has the labels %q and %d bounds, and was given %q and %d", d.Name, d.Labels, len(d.Bounds), labels, len(upTo)))
	}
	return &Distribution{Of: d, Labels: labels, UpTo: upTo, N: n, Sum: sum, Began: began}
}

// Cumulated converts the numbers of values in each bucket, of which the last has no bound, to the number of values at or below
// each bound and that of all.
func Cumulated(in []uint64) (upTo []uint64, n uint64) {
	upTo = make([]uint64, len(in)-1)
	for i := range upTo {
		n += in[i]
		upTo[i] = n
	}
	return upTo, n + in[len(in)-1]
}

// Desc implements prometheus.Metric.
func (s *Distribution) Desc() *prometheus.Desc { return s.Of.prom }

// Write implements prometheus.Metric.
func (s *Distribution) Write(out *dto.Metric) error {
	out.Label = prometheus.MakeLabelPairs(s.Of.prom, s.Labels)
	h := &dto.Histogram{SampleCount: &s.N, SampleSum: &s.Sum, Bucket: make([]*dto.Bucket, len(s.UpTo))}
	for i := range s.UpTo {
		h.Bucket[i] = &dto.Bucket{UpperBound: &s.Of.Bounds[i], CumulativeCount: &s.UpTo[i]}
	}
	if !s.Began.IsZero() {
		h.CreatedTimestamp = timestamppb.New(Started(s.Began, time.Now()))
	}
	out.Histogram = h
	return nil
}
