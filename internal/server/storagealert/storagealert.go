// SPDX-License-Identifier: Apache-2.0

// Package storagealert reports the state of the storage: as metrics, and as an alert that needs no query.
//
// A rule cannot report that samples are not stored, because it reads what is stored. It does not depend on how samples are
// stored: the state comes from a function.
package storagealert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom"
)

const (
	// alertName is the name of the alert.
	alertName = "TeescopeStorageFailing"
	// source names this package as a source of alerts in the hub.
	source = "storage"
	// every is how often the state is read.
	every = time.Second
)

// Options configure a [Reporter].
type Options struct {
	State    func() prom.StorageState
	Hub      *notify.Hub
	Instance string // the label instance of the alert
}

// Reporter is a service with Run and a collector.
type Reporter struct {
	opts                                        Options
	working, failures, refused, free, bad, lost *metric.Desc
}

// New creates a reporter.
func New(o Options) *Reporter {
	own := metric.Own("teescope")
	return &Reporter{
		opts: o,
		working: own(metric.Desc{
			Name: "teescope_storage_working", Kind: metric.Gauge,
			Help: "1 when samples are stored and blocks are written. 0 when the disk cannot be written; /-/ready then gives the reason.",
		}),
		failures: own(metric.Desc{
			Name: "teescope_storage_failures_total", Kind: metric.Counter, Unit: "failures", Labels: []string{"operation"},
			Help: "Failures of the database's writes. operation is commit (new samples), compaction, truncation or reload.",
		}),
		refused: own(metric.Desc{
			Name: "teescope_storage_refused_total", Kind: metric.Counter, Unit: "batches",
			Help: "Batches of samples that were not stored because the disk could not be written. A batch is one scrape, or one pass of a rule group.",
		}),
		free: own(metric.Desc{
			Name: "teescope_storage_free_bytes", Kind: metric.Gauge, Unit: "bytes",
			Help: "Free space on the disk of the data directory, in bytes, as far as this process may use it.",
		}),
		bad: own(metric.Desc{
			Name: "teescope_storage_damaged_blocks", Kind: metric.Gauge, Unit: "blocks",
			Help: "Number of damaged blocks that were moved aside since the start. Their samples are missing; the log names them.",
		}),
		lost: own(metric.Desc{
			Name: "teescope_storage_damaged_chunks", Kind: metric.Gauge, Unit: "chunks",
			Help: "Number of damaged chunks that queries and compactions have met since the start. A chunk is about 120 samples of one series. " +
				"Their samples are missing; the log names their blocks.",
		}),
	}
}

// Name implements service.Service and collector.Collector.
func (*Reporter) Name() string { return "storage" }

// Run passes the alert to the hub until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	service.Every(ctx, every, func() { r.opts.Hub.Firing(source, r.alerts(r.opts.State()), true) })
	return nil
}

func (r *Reporter) alerts(s prom.StorageState) []notify.Alert {
	if s.Err == nil {
		return nil
	}
	return []notify.Alert{{
		Labels: map[string]string{"alertname": alertName, "severity": "critical", "instance": r.opts.Instance},
		Annotations: map[string]string{
			"summary":     fmt.Sprintf("%s: the database cannot be written", r.opts.Instance),
			"description": fmt.Sprintf("%v. Until this is fixed, no samples are stored, and no other alert begins or ends.", s.Err),
			"runbook_url": "docs/runbooks/storage-failing.md",
		},
		Since: s.Since, GeneratorURL: "/",
	}}
}

// Describe implements collector.Collector.
func (r *Reporter) Describe() []*metric.Desc {
	return []*metric.Desc{r.working, r.failures, r.refused, r.free, r.bad, r.lost}
}

// Collect implements collector.Collector.
func (r *Reporter) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	s := r.opts.State()
	working := 1.0
	if s.Err != nil {
		working = 0
	}
	emit(r.working.Value(working))
	for _, operation := range slices.Sorted(maps.Keys(s.Failures)) {
		emit(r.failures.Value(float64(s.Failures[operation]), operation))
	}
	emit(r.refused.Value(float64(s.Refused)))
	if s.Free >= 0 {
		emit(r.free.Value(float64(s.Free)))
	}
	emit(r.bad.Value(float64(s.Damaged)))
	emit(r.lost.Value(float64(s.Lost)))
	return nil
}
