// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// descs are the metrics of a finder.
type descs struct{ targets, failures *metric.Desc }

func newDescs() descs {
	own := metric.Own("teescope server")
	return descs{
		targets: own(metric.Desc{
			Name: "teescope_discovery_targets", Kind: metric.Gauge, Unit: "targets", Labels: []string{"source"},
			Help: "Number of agents that a source of discovery named when it last answered. Absent before its first answer.",
		}),
		failures: own(metric.Desc{
			Name: "teescope_discovery_failures_total", Kind: metric.Counter, Unit: "failures", Labels: []string{"source"},
			Help: "Number of times that a source of discovery could not be read. The agents that it named before are still scraped; the log has the reason.",
		}),
	}
}

// Name implements collector.Collector.
func (*Finder) Name() string { return "discovery" }

// Describe implements collector.Collector.
func (f *Finder) Describe() []*metric.Desc { return []*metric.Desc{f.descs.targets, f.descs.failures} }

// Collect implements collector.Collector.
func (f *Finder) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.found {
		if s.known {
			emit(f.descs.targets.Value(float64(len(s.targets)), s.source.String()))
		}
		emit(f.descs.failures.Value(s.failures, s.source.String()))
	}
	return nil
}
