// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/operation"
)

// Targets is the collector of metrics about the server's targets.
type Targets struct {
	limiter                 func() *seriesLimiter // nil before the database is open
	refused, bytes, renamed *metric.Desc
	source                  *metric.Desc
}

// countKey identifies a counted event: the target and why.
type countKey struct {
	accountKey
	reason string
}

// renamedSeries is the reason of a counted series whose reserved name was changed.
const renamedSeries = "renamed"

// NewTargets returns the collector of a server, or with nil one that only describes.
func NewTargets(s *Server) *Targets {
	own := metric.Own("teescope server")
	t := &Targets{
		limiter: func() *seriesLimiter { return nil },
		refused: own(metric.Desc{
			Name: "teescope_target_refusals_total", Kind: metric.Counter, Unit: "scrapes", Labels: []string{"target_job", "target_instance", "reason"},
			Help: "Scrapes that were refused because the target had used its part of the server's memory. reason is the limit that was reached: " +
				"series within two hours, bytes of series, or metadata (HELP, TYPE and UNIT texts). The target is down meanwhile.",
		}),
		bytes: own(metric.Desc{
			Name: "teescope_target_memory_bytes", Kind: metric.Gauge, Unit: "bytes", Labels: []string{"target_job", "target_instance"},
			Help: "Memory that the series of a target take in the server, estimated from their number and the length of their labels.",
		}),
		renamed: own(metric.Desc{
			Name: "teescope_target_renamed_series_total", Kind: metric.Counter, Unit: "series", Labels: []string{"target_job", "target_instance"},
			Help: "New series of a target whose name is reserved for teescope or the server. They are stored with the prefix exported_.",
		}),
	}
	t.source = own(metric.Desc{
		Name: operation.SourceFamily, Kind: metric.Info, Labels: []string{"target_job", "target_instance", "workload", "machine", "kind", "selector", "basis", "state"},
		Help: "Always 1. What is read as the operations of a workload, or their latency (kind): the counter or histogram of an application (selector). basis is " +
			"configured or guessed. state is counted, or why nothing is read: waiting, down, missing, none-known, ambiguous, not-a-counter, " +
			"invalid-value, too-many-series, refused.",
	})
	if s != nil {
		t.limiter = s.limiter.Load
	}
	return t
}

// Name implements collector.Collector.
func (*Targets) Name() string { return "targets" }

// Describe implements collector.Collector.
func (t *Targets) Describe() []*metric.Desc {
	return []*metric.Desc{t.refused, t.bytes, t.renamed, t.source}
}

// Collect implements collector.Collector.
func (t *Targets) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	b := t.limiter()
	if b == nil {
		return nil
	}
	for key, n := range b.counted() {
		if key.reason == renamedSeries {
			emit(t.renamed.Value(n, key.job, key.instance))
		} else {
			emit(t.refused.Value(n, key.job, key.instance, key.reason))
		}
	}
	for _, o := range b.operations {
		for _, one := range o.sources() {
			emit(t.source.Value(1, o.key.job, o.key.instance, o.workload, o.machine, one.kind, one.selector, one.basis, one.state))
		}
	}
	b.accounts.each(func(key accountKey, one account) {
		if key.job != "" && key.instance != "" {
			emit(t.bytes.Value(float64(one.bytes()), key.job, key.instance))
		}
	})
	return nil
}

// refuse counts a refused scrape and returns its error.
func (b *seriesLimiter) refuse(target accountKey, reason string, err error) error {
	b.event(target, reason)
	return err
}

func (b *seriesLimiter) event(target accountKey, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[countKey{target, what}]++
}

// counted returns a copy of the counts.
func (b *seriesLimiter) counted() map[countKey]float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}
