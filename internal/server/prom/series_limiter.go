// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
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

// Maximum number of bytes of all labels of a target's series in memory. This is 400 bytes for each series that an
// application may add, and 300 for each of an agent, which has about 150.
const (
	labelBytesLimit      = newSeriesLimit * 400
	agentLabelBytesLimit = agentNewSeriesLimit * 300
)

// seriesLimiter bounds how many series each target may add to the database within a window, how many bytes of memory
// they take, and how many bytes of metadata the scraper keeps. The limits of a scrape are not enough, because they apply
// to one scrape only. A target whose labels change at every scrape stays below them.
type seriesLimiter struct {
	storage.AppendableV2
	memory   *memoryLimiter
	accounts *accounts
	// oldest returns the time in milliseconds before which the database refuses samples, if it is known.
	oldest     func() (ms int64, known bool)
	native     func(family string) bool // which classic histograms of agents are stored as native ones
	references atomic.Uint64            // see unstored

	mu       sync.Mutex
	left     map[string]*seriesCount // by URL
	caches   map[string]int          // by the label generationOf of a target: how often its cache was discarded
	discard  map[string]bool         // the targets whose cache must be discarded
	counts   map[countKey]float64    // what the metrics count
	now      func() time.Time
	reserved *regexp.Regexp // names that targets cannot use

	operations map[string]*operationsOf // by the label endpointLabel of a target
}

type seriesCount struct {
	since time.Time
	made  int
}

func newSeriesLimiter(to storage.AppendableV2, memory *memoryLimiter, all *accounts) *seriesLimiter {
	return &seriesLimiter{
		AppendableV2: to, memory: memory, accounts: all, now: time.Now, oldest: func() (int64, bool) { return 0, false }, native: StoresAsNative,
		reserved: regexp.MustCompile("^(?:" + reservedForAgents + ")$"),
		left:     map[string]*seriesCount{}, caches: map[string]int{}, discard: map[string]bool{}, counts: map[countKey]float64{},
	}
}

// AppenderV2 implements storage.AppendableV2. The context identifies the target.
func (b *seriesLimiter) AppenderV2(ctx context.Context) storage.AppenderV2 {
	app := b.AppendableV2.AppenderV2(ctx)
	target, isScrape := scrape.TargetFromContext(ctx)
	known, ok := app.(storage.GetRef)
	if !isScrape || !ok {
		return app
	}
	if target.URL().Host == selfAddress {
		return b.ofAgent(app, known) // This process bounds its own series.
	}
	a := &limitedAppender{
		AppenderV2: app, known: known, all: b, target: target, url: target.URL().String(), key: keyOf(target.GetValue),
		mostSeries: newSeriesLimit, mostLabels: labelBytesLimit, mostMetadata: metadataLimit,
	}
	if a.key.job == jobLabel { // No other target may have this job.
		a.mostSeries, a.mostLabels, a.mostMetadata = agentNewSeriesLimit, agentLabelBytesLimit, agentMetadataLimit
	}
	a.metadata, _ = scrape.MetricMetadataStoreFromContext(ctx)
	if of := b.operations[target.GetValue(endpointLabel)]; of != nil {
		a.takings = &takings{of: of, counters: map[string][]taken{}, tooMany: map[string]bool{}, typeOf: a.typeOf}
	}
	if a.key.job == jobLabel {
		return b.ofAgent(a, known)
	}
	return a
}

// ofAgent returns an appender for the scrape of an agent.
func (b *seriesLimiter) ofAgent(to storage.AppenderV2, known storage.GetRef) storage.AppenderV2 {
	return &nativeAppender{AppenderV2: &startsAppender{AppenderV2: to, known: known}, as: b.native}
}

// spend counts one new series of a target. It is an error when the target has reached its limit.
func (b *seriesLimiter) spend(target string, most int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	one := b.left[target]
	if one == nil && len(b.left) >= 2*manyTargets { // targets of a discovery come and go
		maps.DeleteFunc(b.left, func(_ string, c *seriesCount) bool { return now.Sub(c.since) >= newSeriesWindow })
	}
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

// giveBack undoes a spend for a series that was not stored.
func (b *seriesLimiter) giveBack(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.left[target]; one != nil && one.made > 0 {
		one.made--
	}
}

// limitedAppender appends the samples of one scrape of a target.
type limitedAppender struct {
	storage.AppenderV2

	known      storage.GetRef
	all        *seriesLimiter
	target     *scrape.Target
	url        string
	key        accountKey
	metadata   scrape.MetricMetadataStore // may be nil
	appended   int
	down       bool // the scrape has failed
	mostSeries int
	mostLabels int64
	// mostMetadata is the limit for metadata, in bytes.
	mostMetadata int
	takings      *takings // of the operations of the target's workload; may be nil
	first        []firstSample
}

// Append implements storage.AppenderV2. The scraper fails the scrape on most errors.
func (a *limitedAppender) Append(
	ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options,
) (_ storage.SeriesRef, err error) {
	if name, is := report(opts); is {
		v = a.report(name, v)
		return a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
	}
	if a.appended%metadataEvery == 0 {
		if err := a.checkMetadata(); err != nil {
			return 0, err
		}
	}
	a.appended++
	if ref, err = a.append(ref, ls, st, t, v, h, fh, opts); err == nil && a.takings != nil {
		a.takings.take(ls, t, v, h, fh)
	}
	return ref, err
}

// append appends a sample of a series that exists or is new.
func (a *limitedAppender) append(
	ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options,
) (storage.SeriesRef, error) {
	if ref == 0 || ref&unstored != 0 {
		there, _ := a.known.GetRef(ls, ls.Hash())
		if there == 0 {
			return a.appendNew(ref, ls, st, t, v, h, fh, opts)
		}
		ref = there
	}
	return a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
}

// allow reserves memory for a new series. It returns an error if the target has reached its limit.
func (a *limitedAppender) allow(ls labels.Labels) error {
	if err := a.all.memory.refusal(); err != nil {
		return a.all.refuse(a.key, "memory", err)
	}
	if err := a.all.spend(a.url, a.mostSeries); err != nil {
		return a.all.refuse(a.key, "series", err)
	}
	if err := a.all.accounts.add(a.key, ls, a.mostLabels); err != nil {
		a.all.giveBack(a.url)
		return a.all.refuse(a.key, "bytes", err)
	}
	if renamed(ls, a.all.reserved) {
		a.all.event(a.key, renamedSeries)
	}
	return nil
}

// Commit implements storage.AppenderV2. It first appends the first samples of new series, and copies the operations of the
// target's workload.
func (a *limitedAppender) Commit() error {
	err := a.appendFirst()
	if a.takings != nil {
		a.takings.copyAll(copyTo{allow: a.allowCopy, store: a.storeCopy}, a.down)
	}
	return errors.Join(err, a.AppenderV2.Commit())
}

func (a *limitedAppender) allowCopy(ls labels.Labels) error {
	if there, _ := a.known.GetRef(ls, ls.Hash()); there != 0 {
		return nil
	}
	err := a.allow(ls)
	if err == nil {
		a.settle(ls, true)
	}
	return err
}

func (a *limitedAppender) storeCopy(ls labels.Labels, one taken) error {
	_, err := a.AppenderV2.Append(0, ls, 0, one.t, one.v, one.h, one.fh, storage.AppendV2Options{RejectOutOfOrder: true})
	if tooLate(err) {
		return nil
	}
	return err
}

// typeOf returns the type of a metric that the target has stated.
func (a *limitedAppender) typeOf(name string) (kind model.MetricType, known bool) {
	if a.metadata == nil {
		return "", false
	}
	for _, family := range []string{name, strings.TrimSuffix(name, "_total")} {
		if m, there := a.metadata.GetMetadata(family); there {
			return m.Type, true
		}
	}
	return "", false
}

// report recognises a sample that the scraper adds about each scrape, and returns the name of its series. Those are stored
// even when all others are refused. The scraper marks the name with a byte that no target can send in a name.
func report(opts storage.AppendV2Options) (name string, is bool) {
	return strings.CutSuffix(opts.MetricFamilyName, "\xff")
}
