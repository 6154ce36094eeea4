// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
)

// restBeforeFree is how long a group must have no enclave before it is given back.
const restBeforeFree = 2 * time.Second

// kept is what a workload keeps of groups that are no more.
type kept struct{ counts }

// pair is who was evicted, and by whom.
type pair struct{ victim, by *workload.Workload[kept] }

// owner is the user side of a group: processes with the same cgroup and program that own enclaves.
type owner struct {
	number   uint32
	counts   // as last read
	identity workload.Identity
	workload *workload.Workload[kept]

	restingSince time.Time // no enclave; zero while there are some
	atRest       counts
	withdrawn    bool // taken from group_of: no new enclave can join
}

// owners keeps the user side of all groups in step with the kernel's.
type owners struct {
	kernel   *kernelSide
	registry *workload.Registry[kept]
	active   map[uint32]*owner
	evicted  map[pair]uint64 // of groups that are no more, or that had another workload
}

func newOwners(k *kernelSide, limit int) *owners {
	o := &owners{
		kernel: k, registry: workload.NewRegistry[kept](limit), active: map[uint32]*owner{}, evicted: map[pair]uint64{},
	}
	o.active[groupOther] = &owner{number: groupOther, identity: workload.Folded, workload: o.registry.Other()}
	return o
}

// refresh brings the user side up to date: new groups, their counts, and groups that are no longer used.
func (o *owners) refresh(now time.Time) error {
	for n := 1; n < len(o.kernel.groups); n++ {
		o.adopt(uint32(n), now)
	}
	for _, w := range o.active {
		w.counts = o.kernel.groups[w.number].Count
	}
	o.promote(now)
	for _, w := range o.active {
		if err := o.retire(w, now); err != nil {
			return err
		}
	}
	return nil
}

// adopt names a group that the kernel side has made since the last time.
func (o *owners) adopt(n uint32, now time.Time) {
	g := &o.kernel.groups[n]
	if g.Ready == 0 || o.active[n] != nil {
		return
	}
	names := make([]string, 0, pathLevels)
	for i := range min(int(g.Depth), pathLevels) {
		names = append(names, text(g.Path[i][:]))
	}
	id := workload.Identify(names, text(g.Comm[:]))
	o.active[n] = &owner{number: n, identity: id, workload: o.registry.Join(id, now)}
}

// promote gives groups that were folded the name that there is room for by now. What they have counted so
// far stays where it was counted, so that no counter jumps.
func (o *owners) promote(now time.Time) {
	other := o.registry.Other()
	for _, w := range o.active {
		if w.workload != other || w.number == groupOther {
			continue
		}
		to := o.registry.Promote(w.identity, now)
		if to == nil {
			continue
		}
		o.fold(w.number)
		other.Kept.add(&w.counts)
		to.Kept.subtract(&w.counts)
		w.workload = to
	}
}

// retire gives a group back once nothing can count into it any more: it has no enclave, it is withdrawn so
// that none can join, and then nothing has moved for a while.
func (o *owners) retire(w *owner, now time.Time) error {
	if w.number == groupOther {
		return nil
	}
	g := &o.kernel.groups[w.number]
	switch {
	case g.Enclaves > 0:
		// One may have joined just before the group was withdrawn. The next gets another group, of the
		// same workload.
		w.restingSince = time.Time{}
	case w.restingSince.IsZero() || w.atRest != w.counts:
		w.restingSince, w.atRest = now, w.counts
		if !w.withdrawn {
			w.withdrawn = true
			_ = o.kernel.groupOf.Delete(groupKey{Cgroup: g.Cgroup, Comm: g.Comm}) // gone is as good
		}
	case now.Sub(w.restingSince) >= restBeforeFree:
		o.fold(w.number)
		w.workload.Kept.add(&w.counts)
		o.registry.Leave(w.workload, now)
		delete(o.active, w.number)
		*g = group{}
		return o.kernel.freeGroup(w.number)
	}
	return nil
}

// fold moves what the kernel side has counted of a group's evictions, on either side, to the workloads that
// it was counted for.
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

func (o *owners) workloadOf(group uint32) *workload.Workload[kept] {
	if w := o.active[group]; w != nil {
		return w.workload
	}
	return o.registry.Other() // made since the last look at the groups
}

// totals adds up the groups of each workload.
func (o *owners) totals() map[*workload.Workload[kept]]*counts {
	all := map[*workload.Workload[kept]]*counts{}
	o.registry.Each(func(w *workload.Workload[kept]) {
		sum := w.Kept.counts
		all[w] = &sum
	})
	for _, w := range o.active {
		all[w.workload].add(&w.counts)
	}
	return all
}

// evictions says who was evicted by whom, of the workloads that still have a name.
func (o *owners) evictions(named map[*workload.Workload[kept]]*counts) map[pair]uint64 {
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
