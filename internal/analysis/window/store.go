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

// mostWhole is the number of workloads of all machines together whose box plots are stored. Of all others, only medians are stored:
// baselines read nothing else. 1,000 agents would otherwise have 650,000 series that only a page can show.
const mostWhole = 128

// Whole returns the number of workloads of a machine whose box plots are stored, for a number of machines.
func Whole(machines int) int { return mostWhole / max(1, machines) }

// Store stores box plots as series, so that they have a history:
//
//	teescope:window_value{metric="teescope_syscalls", stat="median", window="5m", workload="redis", instance="here"}
//
// stat is min, whisker_low, q1, median, q3, whisker_high or max. samplesFamily, which is n, and outliersFamily have
// the same labels without stat. Only the most important workloads have all nine series, at most as many as whole. The others have
// the median. If whole is 0, so has the machine.
func Store(ctx context.Context, to Appender, stats []Stat, whole int) error {
	targets := important(stats)
	full := setOf(targets[:min(len(targets), whole)])
	var samples []query.Sample
	for _, s := range stats {
		samples = append(samples, s.samples(full[s.target()] || s.Workload == "" && whole > 0)...)
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

// samples returns the samples of a box plot, or of its median alone.
func (s Stat) samples(whole bool) []query.Sample {
	b := s.Box
	samples := []query.Sample{{Labels: s.labels(ValueFamily, "median"), Value: b.Median}}
	if whole {
		samples = append(samples,
			query.Sample{Labels: s.labels(samplesFamily, ""), Value: float64(b.N)},
			query.Sample{Labels: s.labels(outliersFamily, ""), Value: float64(b.Outlying)})
		for _, v := range []struct {
			stat  string
			value float64
		}{
			{"min", b.Min}, {"whisker_low", b.WhiskerLow}, {"q1", b.Q1}, {"q3", b.Q3}, {"whisker_high", b.WhiskerHigh}, {"max", b.Max},
		} {
			samples = append(samples, query.Sample{Labels: s.labels(ValueFamily, v.stat), Value: v.value})
		}
	}
	for i := range samples {
		samples[i].Time = s.At.Truncate(time.Millisecond)
	}
	return samples
}
