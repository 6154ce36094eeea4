// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// The size of a series in memory, in bytes: in the database, its index and the scraper's cache. Measured with 100,000 series
// of one target: see TestCostOfASeries.
const (
	bytesPerSeries    = 1500
	bytesPerLabelByte = 3
)

// seriesShare is the share of the memory limit for the series of all targets. Half of it is reserved in equal parts,
// one for each target, so that a target that grows cannot take the part of another one. The other half is for the target
// that needs it first.
const seriesShare = 0.4

// accounts track how much memory the series of each target take. Series stay in memory for up to three hours after their
// last sample.
type accounts struct {
	limit   int64 // bytes for the series of all targets; 0 is unlimited
	reserve int64 // the part of each target

	mu     sync.Mutex
	of     map[accountKey]*account
	held   map[accountKey]*account // of series whose scrape has not ended; they are not in the database yet
	excess int64                   // bytes beyond the reserves
	since  map[accountKey]*account // what was added since a count began; nil without one
}

// accountKey identifies a target by its labels, which it cannot change.
type accountKey struct{ job, instance string }

func keyOf(get func(string) string) accountKey {
	return accountKey{get(model.JobLabel), get(model.InstanceLabel)}
}

type account struct {
	labels int64 // bytes of labels
	series int64
}

// divide sets the number of targets that share the reserves.
func (a *accounts) divide(targets int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reserve = a.limit / 2 / int64(max(1, targets))
	a.addExcess()
}

// addExcess adds up what targets use beyond their reserves.
func (a *accounts) addExcess() {
	a.excess = 0
	for key := range a.of {
		a.excess += max(0, a.sum(key).bytes()-a.reserve)
	}
	for key := range a.held {
		if a.of[key] == nil {
			a.excess += max(0, a.sum(key).bytes()-a.reserve)
		}
	}
}

// sum returns what a target has stored and what it holds.
func (a *accounts) sum(key accountKey) (all account) {
	for _, one := range []*account{a.of[key], a.held[key]} {
		if one != nil {
			all.labels += one.labels
			all.series += one.series
		}
	}
	return all
}

func accountOf(ls labels.Labels) account { return account{labels: int64(ls.ByteSize()), series: 1} }

func (a account) bytes() int64 { return a.series*bytesPerSeries + a.labels*bytesPerLabelByte }

func newAccounts(memoryLimit int64, targets int) *accounts {
	a := &accounts{of: map[accountKey]*account{}, held: map[accountKey]*account{}, limit: int64(seriesShare * float64(memoryLimit))}
	a.reserve = a.limit / 2 / int64(max(1, targets))
	return a
}

// add reserves memory for a new series of a target, until settle. It is an error when the target has used its part.
func (a *accounts) add(key accountKey, ls labels.Labels, mostLabels int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, one := a.sum(key), accountOf(ls)
	if now.labels+one.labels > mostLabels {
		return fmt.Errorf("the labels of its series take more than %d MB of memory: check whether a label of the target contains texts, times, IDs or addresses",
			mostLabels/1e6)
	}
	if a.limit > 0 {
		before := max(0, now.bytes()-a.reserve)
		after := max(0, now.bytes()+one.bytes()-a.reserve)
		if after > before && a.excess+after-before > a.limit/2 {
			return fmt.Errorf("its series take %d MiB, which is the limit of a target within memory.limit: raise the limit, or reduce the series or labels of the target", now.bytes()>>20)
		}
		a.excess += after - before
	}
	put(a.held, key, one)
	return nil
}

// settle counts the series of a reservation as stored, or ends the reservation.
func (a *accounts) settle(key accountKey, ls labels.Labels, stored bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := accountOf(ls)
	if stored {
		put(a.of, key, one)
		if a.since != nil {
			put(a.since, key, one)
		}
	} else {
		now := a.sum(key).bytes() - a.reserve
		a.excess -= max(0, now) - max(0, now-one.bytes())
	}
	put(a.held, key, account{labels: -one.labels, series: -one.series})
	if a.held[key].series == 0 {
		delete(a.held, key)
	}
}

func put(to map[accountKey]*account, key accountKey, more account) {
	if to[key] == nil {
		to[key] = &account{}
	}
	to[key].labels += more.labels
	to[key].series += more.series
}

// count replaces the accounts by the actual series in memory. The database removes idle series when it writes a block.
func (a *accounts) count(ctx context.Context, head *tsdb.Head) error {
	a.mu.Lock()
	a.since = map[accountKey]*account{}
	a.mu.Unlock()
	counted, err := countSeries(ctx, head)
	a.mu.Lock()
	defer a.mu.Unlock()
	since := a.since
	a.since = nil
	if err != nil {
		return fmt.Errorf("counting the series of the targets: %w", err)
	}
	for key, more := range since {
		put(counted, key, *more) // Some were counted twice. The next count corrects it.
	}
	a.of = counted
	a.addExcess()
	return nil
}

// countSeries adds up the series in memory by their labels job and instance.
func countSeries(ctx context.Context, head *tsdb.Head) (map[accountKey]*account, error) {
	all, err := head.Index()
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Close() }() // nothing was written
	name, value := index.AllPostingsKey()
	postings, err := all.Postings(ctx, name, value)
	if err != nil {
		return nil, err
	}
	counted := map[accountKey]*account{}
	var b labels.ScratchBuilder
	var unused []chunks.Meta
	for postings.Next() {
		if err := all.Series(postings.At(), &b, &unused); err != nil {
			continue // It was removed meanwhile.
		}
		ls := b.Labels()
		put(counted, keyOf(ls.Get), accountOf(ls))
	}
	return counted, postings.Err()
}

// each calls f for the account of each target.
func (a *accounts) each(f func(accountKey, account)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, one := range a.of {
		f(key, *one)
	}
}
