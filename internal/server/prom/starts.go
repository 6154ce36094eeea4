// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"math"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// startsAppender stores the start of new counters and native histograms of agents. An agent states it in a line NAME_created
// after NAME_total, or after the last line of the histogram NAME (OpenMetrics 1.0), and the database stores a zero at that
// time before the first value. So rate() and increase() include events before the first scrape. The series of a classic
// histogram get none.
//
// The scraper's own option (ParseST) is not used: for each counter without such a line it reads the rest of the family, which
// takes quadratic time. One answer of the largest size would take a processor for hours.
//
// A counter that the database does not have is held back until the next sample, which may be its start. A counter that it
// has gets no start, because the clock of the agent's machine may differ: a zero after a sample that is not zero would make a
// rate too high.
type startsAppender struct {
	storage.AppenderV2

	known storage.GetRef
	last  labels.Labels // of the sample before, if it is that of a counter or a native histogram
	held  held
	key   []byte // buffer for hashing
}

// held is a counter or histogram whose start may follow.
type held struct {
	is   bool
	ls   labels.Labels
	t    int64
	v    float64
	h    *histogram.Histogram
	fh   *histogram.FloatHistogram
	opts storage.AppendV2Options
}

// Names of a counter and of its start.
const (
	totalSuffix   = "_total"
	createdSuffix = "_created"
)

// Append implements storage.AppenderV2. An error may be that of the counter that was held back. The scraper handles both
// alike: it fails the scrape, or counts a refused sample.
func (a *startsAppender) Append(
	ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options,
) (storage.SeriesRef, error) {
	name := ls.Get(model.MetricNameLabel)
	if a.startsLast(name, ls) {
		return 0, a.release(startAt(v))
	}
	err := a.release(0)
	a.last = labels.EmptyLabels()
	if _, is := report(opts); is {
		return a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts) // stored even when all others are refused
	}
	if err != nil {
		return 0, err
	}
	if h != nil || fh != nil || strings.HasSuffix(name, totalSuffix) {
		a.last = ls
		if ref == 0 && a.isNew(ls) {
			a.held = held{true, ls, t, v, h, fh, opts}
			return 0, nil // so the scraper does not know the reference until the next scrape
		}
	}
	return a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
}

func (a *startsAppender) isNew(ls labels.Labels) bool {
	there, _ := a.known.GetRef(ls, ls.Hash())
	return there == 0
}

// startsLast reports whether a sample is the start of the counter before it.
func (a *startsAppender) startsLast(name string, ls labels.Labels) bool {
	family, is := strings.CutSuffix(name, createdSuffix)
	if !is || strings.TrimSuffix(a.last.Get(model.MetricNameLabel), totalSuffix) != family {
		return false
	}
	var its, last uint64
	its, a.key = ls.HashWithoutLabels(a.key, model.MetricNameLabel)
	last, a.key = a.last.HashWithoutLabels(a.key, model.MetricNameLabel)
	return its == last
}

// startAt returns a time in milliseconds, or 0 if the value is not a valid time.
func startAt(seconds float64) int64 {
	if ms := seconds * 1e3; ms > 0 && ms < math.MaxInt64/2 {
		return int64(math.Round(ms))
	}
	return 0
}

// release appends the counter that is held back, with the time of its start or 0. The database refuses a start that is not
// before the value or is too old, and stores the value.
func (a *startsAppender) release(start int64) error {
	one := a.held
	a.held = held{}
	if !one.is {
		return nil
	}
	_, err := a.AppenderV2.Append(0, one.ls, start, one.t, one.v, one.h, one.fh, one.opts)
	return err
}

// Commit implements storage.AppenderV2. The counter that is held back is the last sample of the scrape, so its error fails
// nothing else.
func (a *startsAppender) Commit() error {
	_ = a.release(0)
	return a.AppenderV2.Commit()
}

// Rollback implements storage.AppenderV2.
func (a *startsAppender) Rollback() error {
	a.held = held{}
	return a.AppenderV2.Rollback()
}
