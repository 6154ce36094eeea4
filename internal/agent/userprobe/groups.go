// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/workload"
)

const (
	// groupsPerWorkload is the number of groups for each workload. A workload has several if its programs run in several
	// cgroups.
	groupsPerWorkload = 2
	// quiet is the time without counts after which a group counts as unused. The end of its processes is not reported.
	quiet = 5 * time.Minute
	// mostEnded is the number of series of a probe that a workload keeps of ended groups.
	mostEnded = 64
)

// total is the total of a series.
type total struct {
	events, sum uint64
	buckets     [buckets]uint64 // of histograms only
}

// combine adds what another series has counted, times the sign. Results may be below zero, modulo 2^64. Later additions
// make them positive again.
func (t *total) combine(from *total, sign uint64) {
	t.events += sign * from.events
	t.sum += sign * from.sum
	for i, n := range from.buckets {
		t.buckets[i] += sign * n
	}
}

// counts are the series of a group, or the series of ended groups that a workload keeps. The keys have no group.
type counts map[seriesKey]*total

func (c *counts) combine(from counts, sign uint64) {
	if *c == nil {
		*c = counts{}
	}
	for key, t := range from {
		c.at(key).combine(t, sign)
	}
}

func (c counts) at(key seriesKey) *total {
	if c[key] == nil {
		c[key] = &total{}
	}
	return c[key]
}

// addEnded is combine for the counts of ended groups, whose size it bounds.
func (c *counts) addEnded(from counts, sign uint64) {
	var has [maxProbes]int
	for key := range *c {
		has[key.Probe%maxProbes]++
	}
	bounded := counts{}
	for key, t := range from {
		if (*c)[key] == nil {
			if has[key.Probe%maxProbes] >= mostEnded {
				key = seriesKey{Probe: key.Probe, Folded: 1}
			} else {
				has[key.Probe%maxProbes]++
			}
		}
		bounded.at(key).combine(t, 1)
	}
	c.combine(bounded, sign)
}

// owner is the user side of a group: processes with the same cgroup and program.
type owner struct {
	attribution.Group[counts]
	series counts // as last read
	events uint64 // of all series, as last read
	before uint64 // as last read by Moved
	active time.Time
	now    time.Time // of the last refresh
}

// InUse implements attribution.Member.
func (o *owner) InUse() bool { return o.now.Sub(o.active) < quiet }

// Moved implements attribution.Member.
func (o *owner) Moved() bool {
	moved := o.before != o.events
	o.before = o.events
	return moved
}

// AddTo implements attribution.Member.
func (o *owner) AddTo(ended *counts) { ended.addEnded(o.series, 1) }

// SubtractFrom implements attribution.Member.
func (o *owner) SubtractFrom(ended *counts) { ended.addEnded(o.series, ^uint64(0)) }

// owners keeps the user side of all groups in step with the kernel side.
type owners struct {
	*attribution.Groups[*owner, counts]
	kernel *kernelSide
}

func newOwners(k *kernelSide, limit int, complete func(*workload.Identity) bool) *owners {
	o := &owners{kernel: k}
	o.Groups = attribution.New(k.groups, limit, attribution.Hooks[*owner, counts]{
		Adopt:    func(g attribution.Group[counts], _ *attribution.Record) *owner { return newOwner(g) },
		Complete: complete, Clear: o.clear,
	})
	for number, id := range map[uint32]workload.Identity{groupKernel: workload.KernelThreads, groupIdle: workload.IdleThreads} {
		o.Put(newOwner(attribution.Group[counts]{Number: number, Identity: id, Workload: o.Registry.Join(id, time.Time{}, time.Time{})}))
	}
	o.Put(newOwner(attribution.Group[counts]{Number: groupOther, Identity: workload.Folded, Workload: o.Registry.Other()}))
	return o
}

func newOwner(g attribution.Group[counts]) *owner { return &owner{Group: g, series: counts{}} }

// refresh updates the user side: new groups, their counts, and groups that are no longer used.
func (o *owners) refresh(now time.Time) error {
	o.Adopt(now)
	if err := o.read(now); err != nil {
		return err
	}
	o.Promote(now)
	return o.Retire(now)
}

// read reads the counts of the kernel side. Those of groups without a name yet wait there.
func (o *owners) read(now time.Time) error {
	at := func(key *seriesKey) *total {
		w := o.Get(key.Group)
		if w == nil {
			return &total{}
		}
		of := *key
		of.Group = 0
		return w.series.at(of)
	}
	err := errors.Join(
		o.kernel.sums.Each(func(key *seriesKey, s *sum) {
			t := at(key)
			t.events, t.sum = s.Events, s.Sum
		}),
		o.kernel.distributions.Each(func(key *seriesKey, d *distribution) {
			t := at(key)
			t.events, t.sum, t.buckets = d.Events, d.Sum, d.Buckets
		}),
	)
	for w := range o.All() {
		events := uint64(0)
		for _, t := range w.series {
			events += t.events
		}
		w.now = now
		if events != w.events || w.active.IsZero() {
			w.events, w.active = events, now
		}
	}
	return err
}

// clear removes the series of a group that has ended.
func (o *owners) clear(w *owner) error {
	var errs []error
	for key := range w.series {
		in := "sums"
		if o.kernel.probes[key.Probe].histogram() {
			in = "distributions"
		}
		p := o.kernel.probes[key.Probe]
		whole := key
		whole.Group = w.Number
		if err := o.kernel.object.Map(in).Delete(whole); err != nil {
			errs = append(errs, err)
			continue
		}
		if len(p.Keys) > 0 && key.Folded == 0 {
			atomic.AddUint64(&o.kernel.series[key.Probe], ^uint64(0))
		}
	}
	return errors.Join(errs...)
}

// totals adds up the groups of each workload.
func (o *owners) totals() map[*workload.Workload[counts]]counts {
	all := map[*workload.Workload[counts]]counts{}
	o.Registry.Each(func(w *workload.Workload[counts]) {
		sum := counts{}
		sum.combine(w.Data, 1)
		all[w] = sum
	})
	for w := range o.All() {
		of := all[w.Workload]
		of.combine(w.series, 1)
	}
	return all
}

// sorted returns the keys of the series of a probe.
func (c counts) sorted(probe int) []seriesKey {
	var of []seriesKey
	for key := range c {
		if int(key.Probe) == probe {
			of = append(of, key)
		}
	}
	slices.SortFunc(of, func(a, b seriesKey) int {
		if d := int(a.Folded) - int(b.Folded); d != 0 {
			return d
		}
		if d := slices.Compare(a.Key[:], b.Key[:]); d != 0 {
			return d
		}
		return slices.Compare(a.Comm[:], b.Comm[:])
	})
	return of
}
