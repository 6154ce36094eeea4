// SPDX-License-Identifier: Apache-2.0

package system

import (
	"maps"
	"time"

	"github.com/cilium/ebpf"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Sizes of maps in the kernel.
const (
	maxWholeCgroups = 4096
	maxErrors       = 8192
	maxWatched      = 16
)

// counts holds the counts of a group. A workload keeps the sum of the counts of its ended groups.
type counts struct {
	row
	times     *rowTime  // nil unless calls are timed
	durations durations // of watched processes
	block     blockIO
	cpu       cpuTime
	// The fields below are used for workloads only.
	tee        verdict
	succession succession
	variance   [sampledKinds]sampling.Variance // error of the estimates
}

// verdict is the TEE and the runtime that were last detected for a workload.
type verdict struct {
	kind    teelabel.Kind
	runtime teelabel.Runtime
}

func (k *counts) add(from *counts) { k.combine(from, 1) }

// subtract may give results below zero, modulo 2^64. Later additions make them positive again.
func (k *counts) subtract(from *counts) { k.combine(from, ^uint64(0)) }

func (k *counts) combine(from *counts, sign uint64) {
	k.markAs(&from.row)
	sum, more := k.words(), from.words()
	for first, last := range from.parts() {
		for w := first; w < last; w++ {
			sum[w] += sign * more[w]
		}
	}
	if from.times != nil {
		if k.times == nil {
			k.times = &rowTime{}
		}
		for w, v := range from.times.CallNS {
			k.times.CallNS[w] += sign * v
		}
	}
	k.durations.combine(from.durations, sign)
	requests := k.block.words()
	for w, v := range from.block.words() {
		requests[w] += sign * v
	}
	k.cpu.user += sign * from.cpu.user
	k.cpu.system += sign * from.cpu.system
}

// slot is the user side of a group. Its number is that of the group.
type slot struct {
	attribution.Group[counts]
	counts        // reported counts
	raw       row // counts of the kernel side
	estimator sampling.Estimator
	gauge     gauge    // processes, threads and memory as of this scrape
	watched   *watched // set if the slot is for one process
	isBase    bool     // children of a watched process get this slot
	moved     bool     // something was counted since the last call of Moved
	settled   bool     // no thread is left, and everything counted is reported
}

// InUse implements attribution.Member.
func (sl *slot) InUse() bool { return sl.gauge.Threads > 0 || sl.gauge.Exiting > 0 || sl.isBase }

// Moved implements attribution.Member.
func (sl *slot) Moved() bool {
	moved := sl.moved
	sl.moved = false
	return moved
}

// AddTo implements attribution.Member.
func (sl *slot) AddTo(k *counts) { k.add(&sl.counts) }

// SubtractFrom implements attribution.Member.
func (sl *slot) SubtractFrom(k *counts) { k.subtract(&sl.counts) }

type watched struct {
	pid   int
	comm  string
	base  uint32
	rules []string // that matched the process
	ended bool     // none of these is in force any more; the slot is freed when it is unused
}

// slots synchronises the user side of all slots with the kernel side.
type slots struct {
	*attribution.Groups[*slot, counts]
	kernel   *kernelSide
	sampler  *sampler
	loaders  bool                            // a group of programs with the name of a loader is new
	silent   []int                           // loaders that did not answer
	variance [sampledKinds]sampling.Variance // error of the estimated number of events of all workloads
}

func newSlots(k *kernelSide, limit int, complete func(*workload.Identity) bool) *slots {
	s := &slots{kernel: k, sampler: newSampler(k)}
	s.Groups = attribution.New(k.groups, limit, attribution.Hooks[*slot, counts]{
		Adopt: s.adopted, Complete: complete, Withdraw: k.withdrawn, Retire: s.endLastCycle, Clear: k.clear,
	})
	for n, id := range map[uint32]workload.Identity{
		slotKernel: workload.KernelThreads, slotIdle: workload.IdleThreads,
	} {
		s.Put(&slot{Group: attribution.Group[counts]{Number: n, Identity: id, Workload: s.Registry.Join(id, time.Time{}, time.Time{})}})
	}
	for _, n := range []uint32{slotUnknown, slotOther} {
		s.Put(&slot{Group: attribution.Group[counts]{Number: n, Identity: workload.Folded, Workload: s.Registry.Other()}})
	}
	return s
}

// refresh synchronises with the kernel side: it adopts new groups, reads counters and frees unused slots.
func (s *slots) refresh(now time.Time) error {
	if err := s.kernel.iterate(); err != nil {
		return err
	}
	return s.update(now)
}

// update does the same without a pass over the tasks.
func (s *slots) update(now time.Time) error {
	s.Adopt(now)
	s.read()
	s.settle()
	s.Promote(now)
	for sl := range s.All() {
		if sl.watched == nil {
			continue
		}
		if base := s.Get(sl.watched.base); base != nil {
			base.isBase = true
		}
	}
	return s.Retire(now)
}

// adopted returns the slot of a new group.
func (s *slots) adopted(g attribution.Group[counts], r *attribution.Record) *slot {
	if g.Identity.Kind == workload.Container || g.Identity.Kind == workload.Unit {
		// From now on all programs of the cgroup have one slot. If the map is full, they use more slots.
		_ = s.kernel.wholeCgroups.Update(r.Cgroup, uint8(1), ebpf.UpdateAny)
	}
	s.loaders = s.loaders || g.Identity.Kind == workload.Program && watch.MayBeLoader(r.Program())
	return s.estimated(&slot{Group: g})
}

// estimated begins to estimate a new slot at once if events are sampled, because a cycle may end before the slot is
// read.
func (s *slots) estimated(sl *slot) *slot {
	if s.sampler.Active() {
		sl.estimator.Begin(&s.sampler.counters, sl.raw.words()[:], sl.words()[:], s.sampler.WarmingUp())
	}
	return sl
}

// read reads the counts and gauges of all slots.
func (s *slots) read() {
	s.readCounts()
	for sl := range s.All() {
		sl.cpu.divide(sl.RunNS, sl.UserNS, sl.SysNS)
		sl.gauge = s.kernel.gauges[sl.Number]
		sl.isBase = false
	}
}

// readRows reads what the kernel side has counted.
func (s *slots) readRows() {
	s.kernel.sums.readRows()
	for sl := range s.All() {
		s.hold(sl)
	}
}

func (s *slots) hold(sl *slot) (counted bool) {
	counted = s.kernel.sums.hold(sl.Number, &sl.raw, &sl.times)
	counted = sl.block.read(&s.kernel.blocks[sl.Number]) || counted
	counted = s.kernel.durations.read(sl) || counted
	sl.moved = sl.moved || counted
	sl.settled = sl.settled && !counted
	return counted
}

// readCounts does the same, and reports the counts.
func (s *slots) readCounts() {
	s.kernel.sums.readRows()
	for sl := range s.All() {
		if s.hold(sl) || sl.estimator.Sampled() {
			sl.report(s.sampler.Fraction())
		}
	}
}

// report computes the reported counts. The fraction is the reported part of the last cycle's estimates.
func (sl *slot) report(fraction float64) {
	if !sl.estimator.Exact() {
		sl.estimator.Report(sl.raw.words()[:], sl.words()[:], fraction)
		return
	}
	counted, reported := sl.raw.words(), sl.words()
	for first, last := range sl.raw.parts() {
		copy(reported[first:last], counted[first:last])
	}
	sl.Called = sl.raw.Called
}

// cpuTime divides exact run time into user and system time by the kernel's accounting, as
// cputime_adjust (kernel/sched/cputime.c) does for /proc/PID/stat. Both never decrease. Their sum is the run time.
type cpuTime struct{ user, system uint64 } // nanoseconds

func (c *cpuTime) divide(run, user, system uint64) {
	if run <= c.user+c.system {
		return
	}
	s := uint64(0)
	switch {
	case system == 0:
	case user == 0:
		s = run
	default:
		s = uint64(float64(run) * (float64(system) / (float64(user) + float64(system))))
	}
	s = max(s, c.system)
	u := run - min(s, run)
	if u < c.user {
		u = c.user
		s = run - u
	}
	c.user, c.system = u, s
}

// callNS returns the time of each call, which is zero if calls are not timed.
func (k *counts) callNS() [calls]uint64 {
	if k.times == nil {
		return [calls]uint64{}
	}
	return k.times.CallNS
}

// copyTo copies the counts. The copy may be changed without the original.
func (k *counts) copyTo(to *counts) {
	times := to.times // used again, as most workloads have none or all have some
	*to = *k
	if k.times != nil {
		if times == nil {
			times = &rowTime{}
		}
		*times = *k.times
		to.times = times
	}
	to.durations = maps.Clone(k.durations)
}
