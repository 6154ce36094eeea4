// SPDX-License-Identifier: Apache-2.0

// Package processreads is the collector of statistics about reads of other processes, such as reads that did not return in time.
// It reads no process itself.
package processreads

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/metric"
)

// Collector is the collector.
type Collector struct {
	pool                        *reader.Pool
	stuck, quarantined, refused *metric.Desc
}

// New returns the collector of a pool.
func New(pool *reader.Pool) *Collector {
	family := func(name string, kind metric.Kind, unit, help string, labels ...string) *metric.Desc {
		return metric.New(metric.Desc{Name: name, Kind: kind, Unit: unit, Help: help, Labels: labels, Source: metric.Agent, Origin: "the agent"})
	}
	return &Collector{
		pool: pool,
		stuck: family("teescope_proc_reads_stuck", metric.Gauge, "reads",
			"Reads of other processes that passed their deadline and have not returned. Each keeps a thread of the agent. At 16, processes are no longer read."),
		quarantined: family("teescope_processes_quarantined", metric.Gauge, "processes",
			"Processes that are not read, because they did not answer in time. They are counted and named as before. Their TEE and runtime are not recognised, and their enclave calls are not counted."),
		refused: family("teescope_proc_reads_refused_total", metric.Counter, "reads",
			"Reads of other processes that were not begun. reason is quarantined (the process did not answer before), tenant (too many processes of its user or control group did not), slow (processes of its user or control group answered, and took more than a second together), or exhausted (too many processes of all).", "reason"),
	}
}

// Name is "processreads".
func (c *Collector) Name() string { return "processreads" }

// Describe lists the families.
func (c *Collector) Describe() []*metric.Desc {
	return []*metric.Desc{c.stuck, c.quarantined, c.refused}
}

// Collect emits the samples of one scrape.
func (c *Collector) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	f := c.pool.Figures()
	emit(c.stuck.Value(float64(f.Stuck)))
	emit(c.quarantined.Value(float64(f.Quarantined)))
	emit(c.refused.Value(float64(f.RefusedQuarantined), "quarantined"))
	emit(c.refused.Value(float64(f.RefusedTenant), "tenant"))
	emit(c.refused.Value(float64(f.RefusedSlow), "slow"))
	emit(c.refused.Value(float64(f.RefusedExhausted), "exhausted"))
	return nil
}
