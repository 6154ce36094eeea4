// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
)

// newSeriesWindow is how long the database keeps an idle series in memory: the length of a head block
// (tsdb.DefaultBlockDuration). Afterwards the head is truncated.
const newSeriesWindow = 2 * time.Hour

// Maximum number of series that a target may add within a window. This is the largest scrape, and half of it again for
// series that come and go.
const (
	newSeriesLimit      = sampleLimit * 3 / 2
	agentNewSeriesLimit = agentSampleLimit * 3 / 2
)

// seriesLimiter bounds how many series each target may add to the database within a window. The limits of a scrape are
// not enough, because they apply to one scrape only. A target whose labels change at every scrape stays below them.
// Series of a refused scrape stay in memory like any other.
type seriesLimiter struct {
	storage.AppendableV2
	memory *memoryLimiter

	mu   sync.Mutex
	left map[string]*seriesCount // by URL; the targets are a fixed list
	now  func() time.Time
}

type seriesCount struct {
	since time.Time
	made  int
}

func newSeriesLimiter(to storage.AppendableV2, memory *memoryLimiter) *seriesLimiter {
	return &seriesLimiter{AppendableV2: to, memory: memory, left: map[string]*seriesCount{}, now: time.Now}
}

// AppenderV2 implements storage.AppendableV2. The context identifies the target.
func (b *seriesLimiter) AppenderV2(ctx context.Context) storage.AppenderV2 {
	app := b.AppendableV2.AppenderV2(ctx)
	target, ok := scrape.TargetFromContext(ctx)
	if !ok || target.URL().Host == selfAddress {
		return app // This process bounds its own series.
	}
	known, ok := app.(storage.GetRef)
	if !ok {
		return app
	}
	most := newSeriesLimit
	if target.GetValue(model.JobLabel) == jobLabel {
		most = agentNewSeriesLimit // No other target may have this job.
	}
	return &limitedAppender{AppenderV2: app, known: known, all: b, target: target.URL().String(), most: most}
}

// spend counts one new series of a target. It is an error when the target has reached its limit.
func (b *seriesLimiter) spend(target string, most int) error {
	if b.memory.near() {
		return fmt.Errorf("%s; no new series are accepted: raise the limit, or scrape fewer series", b.memory.reason())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	one := b.left[target]
	if one == nil || now.Sub(one.since) >= newSeriesWindow {
		one = &seriesCount{since: now}
		b.left[target] = one
	}
	if one.made >= most {
		return fmt.Errorf("more than %d new series within %v: check whether a label of the target contains times, IDs or addresses",
			most, newSeriesWindow)
	}
	one.made++
	return nil
}

type limitedAppender struct {
	storage.AppenderV2

	known  storage.GetRef
	all    *seriesLimiter
	target string
	most   int
}

// Append implements storage.AppenderV2.
func (a *limitedAppender) Append(
	ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options,
) (storage.SeriesRef, error) {
	if ref == 0 && !isReport(ls) {
		if there, _ := a.known.GetRef(ls, ls.Hash()); there == 0 {
			if err := a.all.spend(a.target, a.most); err != nil {
				return 0, err
			}
		}
	}
	return a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
}

// isReport recognises the series that the scraper adds about each scrape. They are stored even when all others are
// refused. They have only the target's labels, so a target cannot multiply them.
func isReport(ls labels.Labels) bool {
	return ls.Len() == 3 && slices.Contains([]string{ // __name__, job, instance
		"up", "scrape_duration_seconds", "scrape_samples_scraped",
		"scrape_samples_post_metric_relabeling", "scrape_series_added",
	}, ls.Get(model.MetricNameLabel))
}
