// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"maps"
	"slices"
)

// Changes returns the processes that have started or run another program since the last call. It returns false if there
// may be others.
type Changes func() (tgids []uint32, complete bool)

// news are the reported changes.
type news struct {
	report   Changes
	complete bool // every change since the last report is known
	// waiting are the changed processes that the next call of Due returns. There is no next call if the enclave boundary
	// is not traced, so that they are limited.
	waiting map[uint32]bool
	missed  bool // others have changed too
}

// Follow makes the detector use reports. It must be called before the first query. The cost of queries then grows with the
// number of processes that start, and not with those that run.
func (d *Detector) Follow(report Changes) {
	d.news = news{report: report, waiting: map[uint32]bool{}, missed: true}
}

// learn reads the reports.
func (d *Detector) learn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := &d.news
	if n.report == nil {
		return
	}
	tgids, complete := n.report()
	if n.complete = complete; !complete {
		n.missed = true
		for _, s := range d.seen {
			s.changed = true
		}
	}
	for _, tgid := range tgids {
		if s := d.seen[tgid]; s != nil {
			s.changed = true
		}
		n.waiting[tgid] = true
	}
	if len(n.waiting) > maxSeen {
		clear(n.waiting)
		n.missed = true
	}
}

// Due returns the processes that are worth a query, the most urgent first: those that have changed since the last call, and
// those that must be inspected again because of their age, as many as may be inspected now. It returns false if there may be
// others, so that the caller must query all.
func (d *Detector) Due() (tgids []uint32, complete bool) {
	d.learn()
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	n := &d.news
	tgids = slices.AppendSeq(tgids, maps.Keys(n.waiting))
	clear(n.waiting)
	d.refill(now)
	for tgid, s := range d.seen {
		if float64(len(tgids)) >= d.looks {
			break
		}
		if !s.changed && !now.Before(s.next) {
			tgids = append(tgids, tgid)
		}
	}
	complete = n.report != nil && !n.missed
	n.missed = false
	return tgids, complete
}
