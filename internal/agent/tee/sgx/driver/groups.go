// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/workload"
)

// pair is the workload that lost a page, and the one that caused the eviction.
type pair struct{ victim, by *workload.Workload[counts] }

// owner is the user side of a group: processes with the same cgroup and program that own enclaves.
type owner struct {
	attribution.Counted[counts, *counts]
	use *groupUse // in the kernel
}

// InUse implements attribution.Member.
func (o *owner) InUse() bool { return o.use.Enclaves > 0 }

// owners keeps the user side of all groups in step with the kernel side.
type owners struct {
	*attribution.Groups[*owner, counts]
	kernel  *kernelSide
	evicted map[pair]uint64 // of removed groups, and of groups that had another workload
}

func newOwners(k *kernelSide, limit int, complete func(*workload.Identity) bool) *owners {
	o := &owners{kernel: k, evicted: map[pair]uint64{}}
	o.Groups = attribution.New(k.groups, limit, attribution.Hooks[*owner, counts]{
		Adopt:    func(g attribution.Group[counts], _ *attribution.Record) *owner { return o.owner(g) },
		Complete: complete,
		// Evictions stay with the workloads for which they were counted.
		Promote: func(w *owner) { o.fold(w.Number) },
		Retire:  func(w *owner) { o.fold(w.Number) },
		Clear:   func(w *owner) error { *w.use = groupUse{}; return nil },
	})
	o.Put(o.owner(attribution.Group[counts]{Number: groupOther, Identity: workload.Folded, Workload: o.Registry.Other()}))
	return o
}

func (o *owners) owner(g attribution.Group[counts]) *owner {
	return &owner{attribution.Counted[counts, *counts]{Group: g}, &o.kernel.uses[g.Number]}
}

// refresh updates the user side: new groups, their counts, and groups that are no longer used.
func (o *owners) refresh(now time.Time) error {
	o.Adopt(now)
	for w := range o.All() {
		w.Counts = w.use.Count
	}
	o.Promote(now)
	return o.Retire(now)
}

// fold moves the kernel side's evictions of a group, as victim and as cause, to the workloads for which they were
// counted.
func (o *owners) fold(number uint32) {
	var keys []evictionKey
	o.kernel.pairs(func(key evictionKey, _ uint64) {
		if key.Victim == number || key.By == number {
			keys = append(keys, key)
		}
	})
	for _, key := range keys {
		var n uint64
		if o.kernel.evictions.LookupAndDelete(key, &n) == nil {
			o.evicted[o.pairOf(key)] += n
		}
	}
}

func (o *owners) pairOf(key evictionKey) pair {
	return pair{o.workloadOf(key.Victim), o.workloadOf(key.By)}
}

func (o *owners) workloadOf(group uint32) *workload.Workload[counts] {
	if w := o.Get(group); w != nil {
		return w.Workload
	}
	return o.Registry.Other() // created since the last refresh of the groups
}

// evictions returns the evictions by pair of the workloads that still have a name.
func (o *owners) evictions(named map[*workload.Workload[counts]]*counts) map[pair]uint64 {
	all := map[pair]uint64{}
	for p, n := range o.evicted {
		if named[p.victim] == nil || named[p.by] == nil {
			delete(o.evicted, p)
			continue
		}
		all[p] = n
	}
	o.kernel.pairs(func(key evictionKey, n uint64) { all[o.pairOf(key)] += n })
	return all
}
