// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

// An Appender stores samples as series; the label __name__ is the name. The embedded Prometheus implements it.
type Appender interface {
	// Append stores samples. It skips a sample that is not newer than the last one of its series, without an error.
	// Repeating a call is therefore harmless, also after a restart.
	Append(ctx context.Context, samples []query.Sample) error
}

// The families of stored windows. A sample of the first is a number of a box plot, in the unit of its metric. The
// others are counts. The colon marks computed series, as in Prometheus' recording rules, and separates them from an
// agent's metrics.
const (
	ValueFamily    = "teescope:window_value"
	samplesFamily  = "teescope:window_samples"
	outliersFamily = "teescope:window_outliers"
)

// windowSeries is the number of series of the window of one metric and workload.
const windowSeries = 9

// Store stores box plots as series, so that they have a history:
//
//	teescope:window_value{metric="teescope_syscalls", stat="median", window="5m", workload="redis", instance="here"}
//
// stat is min, whisker_low, q1, median, q3, whisker_high or max. samplesFamily, which is n, and outliersFamily have
// the same labels without stat. There are at most 9 series for each of [Metrics] and each of 128 workloads of a machine.
func Store(ctx context.Context, to Appender, stats []Stat) error {
	samples := make([]query.Sample, 0, windowSeries*len(stats))
	for _, s := range stats {
		samples = append(samples, s.samples()...)
	}
	if len(samples) == 0 {
		return nil
	}
	if err := to.Append(ctx, samples); err != nil {
		return fmt.Errorf("keeping %d box plots: %w", len(stats), err)
	}
	return nil
}

// labels returns the labels of a stored series of the window.
func (s Stat) labels(family, stat string) map[string]string {
	l := map[string]string{"__name__": family, "metric": s.Metric.Name, "window": query.Duration(s.Window)}
	for name, value := range map[string]string{"stat": stat, "workload": s.Workload, "instance": s.Instance} {
		if value != "" { // Prometheus treats an empty label as absent
			l[name] = value
		}
	}
	return l
}

func (s Stat) samples() []query.Sample {
	b := s.Box
	samples := []query.Sample{
		{Labels: s.labels(samplesFamily, ""), Value: float64(b.N)},
		{Labels: s.labels(outliersFamily, ""), Value: float64(b.Outlying)},
	}
	for _, v := range []struct {
		stat  string
		value float64
	}{
		{"min", b.Min}, {"whisker_low", b.WhiskerLow}, {"q1", b.Q1}, {"median", b.Median},
		{"q3", b.Q3}, {"whisker_high", b.WhiskerHigh}, {"max", b.Max},
	} {
		samples = append(samples, query.Sample{Labels: s.labels(ValueFamily, v.stat), Value: v.value})
	}
	for i := range samples {
		samples[i].Time = s.At.Truncate(time.Millisecond)
	}
	return samples
}
