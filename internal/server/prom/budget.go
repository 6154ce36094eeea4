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

// budgetWindow is how long the database keeps a series in memory that is never written again: a head
// block, after which it is looked at whether anything is left of it (tsdb.DefaultBlockDuration).
const budgetWindow = 2 * time.Hour

// How many series a target may add within a window: one scrape as large as it may be, and half of it for
// what comes and goes.
const (
	seriesBudget = sampleLimit * 3 / 2
	agentBudget  = agentSampleLimit * 3 / 2
)

// budgets bound how many series each target may add to the database within a window. The limits of a
// scrape do not: they look at one scrape, a target whose labels change from scrape to scrape keeps
// them all, and a series that was made for a scrape that is then refused stays in memory like any other.
type budgets struct {
	storage.AppendableV2
	memory *pressure

	mu   sync.Mutex
	left map[string]*budget // by URL: the targets are a fixed list
	now  func() time.Time
}

type budget struct {
	since time.Time
	made  int
}

func newBudgets(to storage.AppendableV2, memory *pressure) *budgets {
	return &budgets{AppendableV2: to, memory: memory, left: map[string]*budget{}, now: time.Now}
}

// AppenderV2 implements storage.AppendableV2. The scraper says by the context for whom.
func (b *budgets) AppenderV2(ctx context.Context) storage.AppenderV2 {
	app := b.AppendableV2.AppenderV2(ctx)
	target, ok := scrape.TargetFromContext(ctx)
	if !ok || target.URL().Host == selfAddress {
		return app // this process bounds its own series
	}
	known, ok := app.(storage.GetRef)
	if !ok {
		return app
	}
	most := seriesBudget
	if target.GetValue(model.JobLabel) == jobLabel {
		most = agentBudget // no other target may have this job
	}
	return &budgetAppender{AppenderV2: app, known: known, all: b, target: target.URL().String(), most: most}
}

// spend takes one series from the budget of a target, which is at most so large.
func (b *budgets) spend(target string, most int) error {
	if b.memory.near() {
		return fmt.Errorf("%s; no new series are accepted: raise the limit, or scrape fewer series", b.memory.reason())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	one := b.left[target]
	if one == nil || now.Sub(one.since) >= budgetWindow {
		one = &budget{since: now}
		b.left[target] = one
	}
	if one.made >= most {
		return fmt.Errorf("more than %d new series within %v: check whether a label of the target contains times, IDs or addresses",
			most, budgetWindow)
	}
	one.made++
	return nil
}

type budgetAppender struct {
	storage.AppenderV2

	known  storage.GetRef
	all    *budgets
	target string
	most   int
}

// Append implements storage.AppenderV2.
func (a *budgetAppender) Append(
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

// isReport recognises what the scraper itself says of a scrape: it must be stored when all else is
// refused. Its series have no labels but those of the target, so a target can add none to them.
func isReport(ls labels.Labels) bool {
	return ls.Len() == 3 && slices.Contains([]string{ // __name__, job, instance
		"up", "scrape_duration_seconds", "scrape_samples_scraped",
		"scrape_samples_post_metric_relabeling", "scrape_series_added",
	}, ls.Get(model.MetricNameLabel))
}
