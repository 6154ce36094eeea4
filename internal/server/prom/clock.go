// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/quietlog"
)

// A series has one past, and Prometheus takes no sample that is older than the newest of its series. Were
// nothing done after the clock was set back, every sample would be refused until the clock had caught up.
// Taking them out of order would mix two pasts: a counter would seem to be reset at every other sample,
// and each reset would count as an increase by all of the counter. So what is ahead of the clock goes.
const (
	// tolerance is how far back the clock may be set without that: so long, at most, nothing is stored.
	tolerance = time.Minute
	// aheadAtStart is the same for a database that is opened. Whether the clock was set back is not known
	// then, and targets may give samples times of their own up to ten minutes ahead.
	aheadAtStart = 10*time.Minute + tolerance
	// clockTick is how often the clock is looked at.
	clockTick = time.Second
	// queriesEnd is how long queries may take to end before the database is cut.
	queriesEnd = 5 * time.Second
)

// watchClock returns how far the database is ahead of a clock that was set back, or 0 when ctx ends.
func watchClock(ctx context.Context, db *tsdb.DB) time.Duration {
	watch := clock.New()
	tick := time.NewTicker(clockTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0
		case <-tick.C:
		}
		if watch.Step() >= 0 {
			continue
		}
		if ahead := aheadOfClock(db); ahead > tolerance {
			return ahead
		}
	}
}

// aheadOfClock is how far the newest sample is ahead of the clock, 0 when it is not.
func aheadOfClock(db *tsdb.DB) time.Duration {
	newest := int64(math.MinInt64)
	if h := db.Head(); h.MinTime() <= h.MaxTime() { // an empty one has them the other way round
		newest = h.MaxTime()
	}
	for _, b := range db.Blocks() {
		newest = max(newest, b.MaxTime())
	}
	now := time.Now().UnixMilli()
	if newest <= now {
		return 0
	}
	return time.Duration(min(newest-now, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// rewind takes what is ahead of the clock out of the database and opens it again. Nothing may scrape.
func (s *Server) rewind(ctx context.Context, ahead time.Duration) error {
	began := time.Now()
	s.opts.Log.Warn("the clock was set back: samples in the future are removed, so that new samples can be stored",
		"ahead", ahead.Round(time.Second), "from", time.Now().UTC().Format(time.RFC3339), "dir", s.tsdbDir())
	ending, cancel := context.WithTimeout(ctx, queriesEnd)
	defer cancel()
	s.gate.close(ending, "the clock was set back and the database is being opened again")
	obsolete, err := s.keepUntil(ctx, time.Now().UnixMilli())
	if err == nil {
		err = s.close()
	}
	for _, dir := range obsolete {
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}
	if err == nil {
		err = s.open()
	}
	if err != nil {
		return fmt.Errorf("removing samples in the future: %w", err)
	}
	s.opts.Log.Info("storing samples again", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// keepUntil writes what is older than a time, in milliseconds since 1970, to blocks. It returns the
// directories that hold nothing else, or what is ahead: those of the head, its logs last, because whatever
// happens before they are gone is done again at the next start, and then finds the samples that it looks for.
func (s *Server) keepUntil(ctx context.Context, now int64) ([]string, error) {
	s.db.DisableCompactions()
	var obsolete []string
	compactor, err := tsdb.NewLeveledCompactor(ctx, nil, quietlog.New(s.opts.Log, "tsdb"), tsdb.ExponentialBlockRanges(tsdb.DefaultBlockDuration, 1, 1), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, b := range s.db.Blocks() {
		if b.MaxTime() <= now {
			continue
		}
		if b.MinTime() < now {
			if _, err := compactor.Write(s.tsdbDir(), b, b.MinTime(), now, nil); err != nil {
				return nil, err
			}
		}
		obsolete = append(obsolete, b.Dir())
	}
	if head := s.db.Head(); head.MinTime() < now {
		if err := s.db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), now-1)); err != nil {
			return nil, err
		}
	}
	for _, part := range []string{"chunks_head", "wbl", "wal"} {
		obsolete = append(obsolete, filepath.Join(s.tsdbDir(), part))
	}
	return obsolete, nil
}
