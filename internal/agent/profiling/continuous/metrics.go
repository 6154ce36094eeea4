// SPDX-License-Identifier: Apache-2.0

package continuous

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

type families struct{ frequency, samples, dropped *metric.Desc }

func newFamilies() families {
	own := metric.Own("the sampler of profiles")
	return families{
		frequency: own(metric.Desc{
			Name: "teescope_profile_frequency_hertz", Kind: metric.Gauge, Unit: "hertz",
			Help: "Number of samples of stacks that are taken per second and CPU at present; 0 while none are taken.",
		}),
		samples: own(metric.Desc{
			Name: "teescope_profile_samples_total", Kind: metric.Counter, Unit: "samples", Labels: []string{"outcome"},
			Help: "Number of samples of stacks since the agent started, of CPU time and of events: taken of a thread, of an idle CPU, or lost because a buffer was full.",
		}),
		dropped: own(metric.Desc{
			Name: "teescope_profile_dropped_total", Kind: metric.Counter, Unit: "profiles",
			Help: "Number of profiles since the agent started that were replaced by newer ones in memory. A server may have fetched them before.",
		}),
	}
}

// Describe implements collector.Collector.
func (p *Profiler) Describe() []*metric.Desc {
	return []*metric.Desc{p.families.frequency, p.families.samples, p.families.dropped}
}

// Collect implements collector.Collector. An agent that takes no samples has none of these.
func (p *Profiler) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lacks != nil {
		return nil
	}
	emit(p.families.frequency.Value(float64(p.hertz)))
	emit(p.families.samples.Value(float64(p.tallies.Taken+p.ofEvents.Taken), "taken"))
	emit(p.families.samples.Value(float64(p.tallies.Idle), "idle"))
	emit(p.families.samples.Value(float64(p.tallies.LostSamples+p.ofEvents.LostSamples), "lost"))
	p.profiles.mu.Lock()
	defer p.profiles.mu.Unlock()
	emit(p.families.dropped.Value(float64(p.profiles.dropped)))
	return nil
}
