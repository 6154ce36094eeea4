// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/quietlog"
)

// Prometheus refuses a sample that is older than the newest one of its series. After the clock is set back, it would
// refuse every sample until the clock has caught up. Accepting such samples out of order would mix two histories. A
// counter would then seem to be reset at every other sample, and each reset would count as an increase. So samples
// ahead of the clock are removed.
const (
	// tolerance is how far the clock may be set back before samples are removed. At most this long nothing is stored.
	tolerance = time.Minute
	// aheadAtStart is the tolerance when the database is opened. It is not known then whether the clock was set back.
	// Targets may send timestamps up to ten minutes ahead.
	aheadAtStart = 10*time.Minute + tolerance
	// queriesEnd is how long running queries may take to end before samples are removed.
	queriesEnd = 5 * time.Second
)

// aheadOfClock returns how far the newest sample is ahead of the clock, or 0 when it is not ahead.
func aheadOfClock(db *tsdb.DB) time.Duration {
	newest := int64(math.MinInt64)
	if h := db.Head(); h.MinTime() <= h.MaxTime() { // in an empty head, MinTime is above MaxTime
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

// rewind removes samples ahead of the clock from the database and opens it again. No scrape may run.
func (s *Server) rewind(ctx context.Context, ahead time.Duration) error {
	began := time.Now()
	s.opts.Log.Warn("the clock was set back: samples in the future are removed, so that new samples can be stored",
		"ahead", ahead.Round(time.Second), "from", time.Now().UTC().Format(time.RFC3339), "dir", s.tsdbDir())
	ending, cancel := context.WithTimeout(ctx, queriesEnd)
	defer cancel()
	s.drainer.close(ending, "the clock was set back and the database is being opened again")
	obsolete, err := keepUntil(ctx, s.db, s.opts.Log, time.Now().UnixMilli())
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

// keepUntil writes samples older than a time, in milliseconds since 1970, to blocks. It returns the directories that
// can be removed: those of newer blocks and of the head. The head's logs come last. If the program stops before they
// are removed, the next start finds the samples and repeats the work.
func keepUntil(ctx context.Context, db *tsdb.DB, log *slog.Logger, now int64) ([]string, error) {
	db.DisableCompactions()
	var obsolete []string
	compactor, err := tsdb.NewLeveledCompactor(ctx, nil, quietlog.New(log, "tsdb"), tsdb.ExponentialBlockRanges(tsdb.DefaultBlockDuration, 1, 1), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, b := range db.Blocks() {
		if b.MaxTime() <= now {
			continue
		}
		if b.MinTime() < now {
			if _, err := compactor.Write(db.Dir(), b, b.MinTime(), now, nil); err != nil {
				return nil, err
			}
		}
		obsolete = append(obsolete, b.Dir())
	}
	if head := db.Head(); head.MinTime() < now {
		if err := db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), now-1)); err != nil {
			return nil, err
		}
	}
	for _, part := range []string{"chunks_head", "wbl", "wal"} {
		obsolete = append(obsolete, filepath.Join(db.Dir(), part))
	}
	return obsolete, nil
}
