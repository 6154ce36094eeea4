// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	stale "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/convertnhcb"

	"github.com/teescope/teescope/internal/lib/packed"
)

// storedAsNative are the classic histograms that each workload has, and that each system call of a watched one has. Their series
// would be a fifth of all.
var storedAsNative = map[string]bool{
	"teescope_run_queue_latency_seconds": true, "teescope_process_run_queue_latency_seconds": true,
	"teescope_block_io_latency_seconds": true, "teescope_process_block_io_latency_seconds": true,
	"teescope_syscall_duration_seconds": true,
}

// StoresAsNative reports whether the database stores the classic histograms of a family as native ones, with one series each.
func StoresAsNative(family string) bool { return storedAsNative[family] }

// nativeAppender stores the classic histograms that as selects as native ones with the same buckets: one series each. Rules and
// panels query the classic series of the other histograms.
//
// The scraper's own option (convert_classic_histograms_to_nhcb) is not used: it converts any number of buckets, and if their
// bounds descend, it takes quadratic time. One answer of the largest size would take a processor for an hour.
type nativeAppender struct {
	storage.AppenderV2
	as func(family string) bool

	name       string // of the histogram whose series are being collected
	hash       uint64 // of its labels
	buckets    int
	sum, count bool // seen
	collected  convertnhcb.TempHistogram
	key        []byte // buffer for hashing
}

// The suffixes of the series of a classic histogram.
const (
	bucketSuffix = "_bucket"
	sumSuffix    = "_sum"
	countSuffix  = "_count"
)

// Append implements storage.AppenderV2. The last series of a histogram gets the reference of the native one, so the scraper
// marks this one as stale. The others have none.
func (a *nativeAppender) Append(
	ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options,
) (storage.SeriesRef, error) {
	full := ls.Get(model.MetricNameLabel)
	if len(opts.Exemplars) == 1 && a.as(full) {
		return a.unpack(ref, ls, st, t, v, opts)
	}
	at := strings.LastIndexByte(full, '_')
	if family, is := strings.CutSuffix(full, createdSuffix); is && storedAsNative[family] && !a.as(family) {
		return 0, nil // a classic histogram has no start
	}
	// The start of a histogram follows it. The next appender joins the two.
	if h != nil || fh != nil || at < 0 || !isPart(full[at:]) || !a.as(full[:at]) {
		return a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
	}
	name, suffix := full[:at], full[at:]
	if stale.IsStaleNaN(v) {
		return a.AppenderV2.Append(ref, labels.NewBuilder(ls).Set(model.MetricNameLabel, name).Labels(), st, t, v, nil, nil, opts)
	}
	if err := a.collect(name, suffix, ls, v); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if !a.sum || !a.count {
		return 0, nil
	}
	h, fh, err := a.collected.Convert()
	a.reset("", 0)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return a.AppenderV2.Append(ref, labels.NewBuilder(ls).Set(model.MetricNameLabel, name).Labels(), st, t, 0, h, fh, opts)
}

// unpack stores a histogram that is one line: see package packed.
func (a *nativeAppender) unpack(ref storage.SeriesRef, ls labels.Labels, st, t int64, n float64, opts storage.AppendV2Options) (storage.SeriesRef, error) {
	a.reset("", 0)
	one := opts.Exemplars[0]
	opts.Exemplars = nil
	valid := packed.Each(one.Labels.Get(packed.Bounds), one.Labels.Get(packed.Counts), func(bound, count float64) bool {
		a.buckets++
		return a.buckets <= nativeBucketLimit && a.collected.SetBucketCount(bound, count) == nil
	})
	err := errors.Join(a.collected.SetSum(one.Value), a.collected.SetCount(n))
	var h *histogram.Histogram
	var fh *histogram.FloatHistogram
	if err == nil && valid {
		h, fh, err = a.collected.Convert()
	}
	a.reset("", 0)
	name := ls.Get(model.MetricNameLabel)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", name, err)
	case !valid:
		return 0, fmt.Errorf("%s: its buckets cannot be read", name)
	}
	return a.AppenderV2.Append(ref, ls, st, t, 0, h, fh, opts)
}

// isPart reports whether a suffix is that of a series of a classic histogram.
func isPart(suffix string) bool {
	return suffix == bucketSuffix || suffix == sumSuffix || suffix == countSuffix
}

// collect adds one series to its histogram.
func (a *nativeAppender) collect(name, suffix string, ls labels.Labels, v float64) (err error) {
	var hash uint64
	hash, a.key = ls.HashWithoutLabels(a.key, model.BucketLabel)
	if name != a.name || hash != a.hash {
		a.reset(name, hash)
	}
	switch suffix {
	case bucketSuffix:
		if a.buckets++; a.buckets > nativeBucketLimit {
			return fmt.Errorf("it has more than %d buckets", nativeBucketLimit)
		}
		bound, err := strconv.ParseFloat(ls.Get(model.BucketLabel), 64)
		if err != nil {
			return fmt.Errorf("the bound of a bucket is not a number: %w", err)
		}
		return a.collected.SetBucketCount(bound, v)
	case sumSuffix:
		a.sum = true
		return a.collected.SetSum(v)
	case countSuffix:
		a.count = true
		return a.collected.SetCount(v)
	}
	return nil
}

func (a *nativeAppender) reset(name string, hash uint64) {
	a.name, a.hash, a.buckets, a.sum, a.count = name, hash, 0, false, false
	a.collected.Reset()
}
