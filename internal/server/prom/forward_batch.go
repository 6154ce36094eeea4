// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/server/spool"
)

// batchSamples is the usual number of samples of a request. Receivers limit the size of requests.
const batchSamples = 5000

// forwarded is a sample that waits to become part of a request.
type forwarded struct {
	ls    labels.Labels
	name  string
	st, t int64 // ms; st is 0 for an unknown start
	v     float64
	meta  metadata.Metadata
}

// family returns the name of the metric family, as the target describes it.
func (s *forwarded) family() string {
	if s.meta.Type != model.MetricTypeHistogram && s.meta.Type != model.MetricTypeSummary {
		return s.name
	}
	for _, suffix := range []string{bucketSuffix, sumSuffix, countSuffix} {
		if family, is := strings.CutSuffix(s.name, suffix); is {
			return family
		}
	}
	return s.name
}

// format writes samples as the body of a request.
type format func([]forwarded) ([]byte, error)

// batcher collects the samples of scrapes, and hands requests to the queues. It implements storage.AppendableV2.
type batcher struct {
	encode  format
	extra   map[string]string // labels that are added
	senders []*spool.Sender

	mu      sync.Mutex
	waiting []forwarded
}

func newBatcher(encode format, extra map[string]string, senders []*spool.Sender) *batcher {
	return &batcher{encode: encode, extra: extra, senders: senders}
}

// AppenderV2 implements storage.AppendableV2.
func (b *batcher) AppenderV2(context.Context) storage.AppenderV2 {
	return &batchAppender{to: b, seen: map[uint64]bool{}}
}

// run hands over what waits, at least each interval.
func (b *batcher) run(ctx context.Context, every time.Duration) {
	service.Every(ctx, every, func() { _ = b.flush() }) // it cannot fail for these samples
}

// add takes the samples of a scrape.
func (b *batcher) add(samples []forwarded) error {
	b.mu.Lock()
	b.waiting = append(b.waiting, samples...)
	full := len(b.waiting) >= batchSamples
	b.mu.Unlock()
	if full {
		return b.flush()
	}
	return nil
}

// flush makes requests of what waits.
func (b *batcher) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for rest := b.waiting; len(rest) > 0; {
		n := requestEnd(rest)
		part := rest[:n]
		rest = rest[n:]
		body, err := b.encode(part)
		if err != nil {
			errs = append(errs, fmt.Errorf("encoding %d samples: %w", n, err))
			continue
		}
		oldest := part[0].t
		for _, s := range part {
			oldest = min(oldest, s.t)
		}
		for _, s := range b.senders {
			s.Queue.Add(body, n, time.UnixMilli(oldest))
		}
	}
	clear(b.waiting)
	b.waiting = b.waiting[:0]
	return errors.Join(errs...)
}

// requestEnd returns how many samples the next request has. A histogram is not divided, unless it is larger than two requests.
func requestEnd(samples []forwarded) int {
	n := min(batchSamples, len(samples))
	for n < len(samples) && n < 2*batchSamples && samples[n].family() == samples[n-1].family() {
		n++
	}
	return n
}

// with adds the labels of the forwarder. A label that the series has stays.
func (b *batcher) with(ls labels.Labels) labels.Labels {
	if len(b.extra) == 0 {
		return ls
	}
	all := labels.NewBuilder(ls)
	for name, value := range b.extra {
		if !ls.Has(name) {
			all.Set(name, value)
		}
	}
	return all.Labels()
}

// batchAppender collects the samples of one scrape. It implements storage.AppenderV2.
type batchAppender struct {
	to     *batcher
	staged []forwarded
	seen   map[uint64]bool // series; a receiver refuses a request with a series twice
}

// Append implements storage.AppenderV2. The reference is the hash of the series, by which the scraper finds series that ended.
func (a *batchAppender) Append(
	_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options,
) (storage.SeriesRef, error) {
	if h != nil || fh != nil {
		return 0, errNative
	}
	name := ls.Get(model.MetricNameLabel)
	if a.startsLast(name, ls, v) {
		return 0, nil
	}
	ref := ls.Hash()
	if a.seen[ref] {
		return 0, storage.ErrDuplicateSampleForTimestamp
	}
	a.seen[ref] = true
	a.staged = append(a.staged, forwarded{ls: a.to.with(ls), name: name, st: st, t: t, v: v, meta: opts.Metadata})
	return storage.SeriesRef(ref), nil
}

// startsLast reports whether the sample is the start time of the counter before it. It then stores the start with that
// counter.
func (a *batchAppender) startsLast(name string, ls labels.Labels, v float64) bool {
	family, is := strings.CutSuffix(name, createdSuffix)
	if !is || len(a.staged) == 0 {
		return false
	}
	last := &a.staged[len(a.staged)-1]
	if last.name != family+totalSuffix {
		return false
	}
	own, _ := ls.HashWithoutLabels(nil, model.MetricNameLabel)
	its, _ := last.ls.HashWithoutLabels(nil, append(keys(a.to.extra, ls), model.MetricNameLabel)...)
	if own != its {
		return false
	}
	last.st = startAt(v)
	return true
}

// keys returns the names of the labels that were added to a series.
func keys(extra map[string]string, ls labels.Labels) []string {
	var names []string
	for name := range extra {
		if !ls.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// Commit implements storage.AppenderV2.
func (a *batchAppender) Commit() error { return a.to.add(a.staged) }

// Rollback implements storage.AppenderV2.
func (a *batchAppender) Rollback() error {
	a.staged = nil
	return nil
}
