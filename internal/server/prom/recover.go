// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/clock"
)

const (
	// tick is how often the clock and the storage are checked.
	tick = time.Second
	// backgroundTick is how often the failures of compactions are read.
	backgroundTick = 15 * time.Second
	// maxReopenPause is the longest pause between two attempts to open the database again.
	maxReopenPause = 30 * time.Second
)

// event is what must be done before scraping can continue. The zero value is nothing.
type event struct {
	ahead  time.Duration // the clock was set back, and samples are so far ahead of it
	reopen bool          // the disk can be written again after an error
}

// watcher watches an opened database.
type watcher struct {
	db      *tsdb.DB
	health  *health
	reserve *reserve
	metrics *registrations
}

// wait returns the next event. It returns none when ctx ends.
func (w watcher) wait(ctx context.Context) event {
	watch, background := clock.New(), newBackground(w.metrics)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	looked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return event{}
		case <-ticker.C:
		}
		if time.Since(looked) >= backgroundTick {
			looked = time.Now()
			background.look(w.health)
		}
		if w.health.err() != nil {
			if w.health.mustClose() || w.reserve.probe() == nil {
				return event{reopen: true}
			}
			w.reserve.release()
			continue
		}
		if watch.Step() >= 0 {
			continue
		}
		if ahead := aheadOfClock(w.db); ahead > tolerance {
			return event{ahead: ahead}
		}
	}
}

// reopen closes the database and opens it again, which repairs the write-ahead log at the failed write. It
// tries until it succeeds or ctx ends.
func (s *Server) reopen(ctx context.Context) error {
	began := time.Now()
	reason := "the database is being opened again after a write error"
	if err := s.health.err(); err != nil {
		reason += ": " + err.Error()
	}
	ending, cancel := context.WithTimeout(ctx, queriesEnd)
	defer cancel()
	s.drainer.close(ending, reason)
	said := ""
	if err := s.close(); err != nil { // what could not be flushed is in the write-ahead log
		s.opts.Log.Debug("closing the database after a write error", "reason", err)
	}
	for pause := tick; ; pause = min(2*pause, maxReopenPause) {
		err := s.reserve.probe()
		if err == nil {
			if err = s.open(); err == nil {
				break
			}
			_ = s.close()
		}
		s.reserve.release()
		if text := err.Error(); text != said {
			s.opts.Log.Error("the database cannot be opened again yet", "reason", err, "advice", remedy(err))
			said = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
	s.opts.Log.Info("storing samples again", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// background finds failures of what Prometheus does between scrapes, from its own counters.
type background struct {
	of    *registrations
	known map[string]float64
}

// operations are the counters of failures by operation.
var operations = map[string][]string{
	opCompaction: {"prometheus_tsdb_compactions_failed_total"},
	opTruncation: {
		"prometheus_tsdb_head_truncations_failed_total", "prometheus_tsdb_wal_truncations_failed_total",
		"prometheus_tsdb_checkpoint_creations_failed_total",
	},
	opReload: {"prometheus_tsdb_reloads_failures_total"},
}

func newBackground(of *registrations) *background {
	b := &background{of: of}
	b.known = b.read()
	return b
}

// read returns the number of failures of each operation.
func (b *background) read() map[string]float64 {
	all := map[string]float64{}
	families, _ := b.of.Gather() // the families come along with an error
	values := map[string]float64{}
	for _, f := range families {
		if len(f.GetMetric()) > 0 {
			values[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	for operation, names := range operations {
		for _, name := range names {
			all[operation] += values[name]
		}
	}
	return all
}

func (b *background) look(h *health) {
	now := b.read()
	for operation, n := range now {
		if more := n - b.known[operation]; more > 0 {
			h.failedInBackground(operation, uint64(more))
		}
	}
	b.known = now
}
