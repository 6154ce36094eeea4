// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/quietlog"
)

// openError reports that the database or its disk is damaged beyond repair.
type openError struct {
	Dir string
	Err error
}

// Error implements error.
func (e *openError) Error() string {
	if errors.Is(e.Err, unix.ENOSPC) || errors.Is(e.Err, unix.EDQUOT) {
		return fmt.Sprintf("opening the database in %s: %v; free some space there or choose another directory with --data-dir", e.Dir, e.Err)
	}
	return fmt.Sprintf("opening the database in %s: %v; to start with an empty one and keep this for inspection, move it away: mv %s %s.bad",
		e.Dir, e.Err, e.Dir, e.Dir)
}

// Unwrap returns the cause.
func (e *openError) Unwrap() error { return e.Err }

// dbOptions returns Prometheus' defaults with the following changes.
func dbOptions(opts Options) *tsdb.Options {
	o := tsdb.DefaultOptions()
	o.RetentionDuration = opts.RetentionTime.Milliseconds()
	o.MaxBytes = opts.RetentionSize
	if opts.block > 0 {
		o.MinBlockDuration = opts.block.Milliseconds()
	}
	// As in cmd/prometheus, a block covers at most a tenth of the retention, so that deletion is gradual.
	o.MaxBlockDuration = max(o.MinBlockDuration, min((31*24*time.Hour).Milliseconds(), o.RetentionDuration/10))
	o.EnableSTAsZeroSample = true // see startsAppender
	o.WALCompression = compression.Snappy
	o.NoLockfile = true // lockDataDir holds the same lock, and finds out which process has it
	// The head starts smaller than by default, because one machine has some ten thousand series, not a million.
	o.StripeSize = 512
	o.HeadChunksWriteBufferSize = 256 << 10
	o.WALSegmentSize = 32 << 20
	return o
}

// openDB opens the database. Prometheus truncates a damaged write-ahead log at the damage. Earlier samples stay, and
// the truncation is logged.
func openDB(dir string, opts Options, metrics *registrations, stats *tsdb.DBStats, damages *damages) (*tsdb.DB, error) {
	var opened atomic.Pointer[tsdb.DB]
	o := dbOptions(opts)
	o.BlocksToDelete = func(blocks []*tsdb.Block) map[ulid.ULID]struct{} {
		gone := obsolete(blocks, opened.Load(), opts.RetentionTime)
		for _, id := range damages.moveAside(dir, blocks) {
			gone[id] = struct{}{}
		}
		return gone
	}
	o.BlockQuerierFunc, o.NewCompactorFunc = damages.querier, damages.compactor
	db, err := tsdb.Open(dir, quietlog.New(opts.Log, "tsdb"), metrics, o, stats)
	if err != nil {
		return nil, &openError{Dir: dir, Err: err}
	}
	opened.Store(db)
	warnOfRepairs(opts.Log, opts.Registry, dir)
	return db, nil
}

func warnOfRepairs(log *slog.Logger, reg prometheus.Gatherer, dir string) {
	if counter(reg, "prometheus_tsdb_wal_corruptions_total") > 0 {
		log.Warn("the write-ahead log was damaged and was truncated there: "+
			"the newest samples, of at most the last three hours, may be missing; older ones are intact", "dir", dir)
	}
	if counter(reg, "prometheus_tsdb_mmap_chunk_corruptions_total") > 0 {
		log.Warn("a file of recent chunks was damaged and was rebuilt from the write-ahead log", "dir", dir)
	}
}

// counter returns the value of a counter without labels, or 0 when it does not exist.
func counter(reg prometheus.Gatherer, name string) float64 {
	families, _ := reg.Gather() // the families come along with an error
	for _, f := range families {
		if f.GetName() == name && len(f.GetMetric()) > 0 {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}
