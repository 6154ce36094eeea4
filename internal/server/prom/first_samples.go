// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	stale "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// unstored marks a reference that the scraper has of a series that is not in the database yet. The database counts its
// references from 1, so none of them has this bit.
const unstored = 1 << 63

// firstSample is the first sample of a new series. The database uses none of its options.
type firstSample struct {
	ls labels.Labels
	st int64
	t  int64
	v  float64
}

// appendNew appends a sample of a series that the database does not have. It holds the sample until the scrape has succeeded:
// the database keeps each new series for up to three hours, also if the scrape fails later, for example at the sample limit.
//
// The scraper gets a reference under which it tracks when the series ends. The next sample replaces it.
func (a *limitedAppender) appendNew(
	ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options,
) (storage.SeriesRef, error) {
	if ref != 0 && h == nil && fh == nil && stale.IsStaleNaN(v) {
		return ref, nil // The scrape with the first sample has failed, so there is nothing that ends.
	}
	if err := a.allow(ls); err != nil {
		return 0, err
	}
	if h != nil || fh != nil || a.refuses(ls, t) {
		stored, err := a.AppenderV2.Append(0, ls, st, t, v, h, fh, opts)
		a.settle(ls, err == nil)
		return stored, err
	}
	a.first = append(a.first, firstSample{ls, st, t, v})
	if ref == 0 {
		ref = storage.SeriesRef(unstored | a.all.references.Add(1))
	}
	return ref, nil
}

// refuses reports whether the database refuses a sample of a new series. The scraper then learns the reason from the database.
func (a *limitedAppender) refuses(ls labels.Labels, t int64) bool {
	if _, twice := ls.HasDuplicateLabelNames(); twice {
		return true
	}
	oldest, known := a.all.oldest()
	return known && t < oldest
}

// appendFirst appends the samples that were held.
func (a *limitedAppender) appendFirst() error {
	var all []error
	for _, one := range a.first {
		there, _ := a.known.GetRef(one.ls, one.ls.Hash()) // A target may send several samples of a series.
		_, err := a.AppenderV2.Append(there, one.ls, one.st, one.t, one.v, nil, nil, storage.AppendV2Options{})
		a.settle(one.ls, there == 0 && err == nil)
		if err != nil && !tooLate(err) && len(all) == 0 {
			all = append(all, err)
		}
	}
	a.first = nil
	return errors.Join(all...)
}

// settle ends the reservation of a series.
func (a *limitedAppender) settle(ls labels.Labels, stored bool) {
	a.all.accounts.settle(a.key, ls, stored)
	if !stored {
		a.all.giveBack(a.url)
	}
}

// Rollback implements storage.AppenderV2. Nothing of what was held is stored.
func (a *limitedAppender) Rollback() error {
	for _, one := range a.first {
		a.settle(one.ls, false)
	}
	a.first = nil
	return a.AppenderV2.Rollback()
}
