// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
)

// Bounds of what is kept in the kernel.
const (
	maxWholeCgroups = 4096
	maxErrors       = 8192
	maxWatched      = 16
	// A slot is given back when it had no process and counted nothing for this long.
	restBeforeFree = 2 * time.Second
)

// kept is what a workload keeps of groups that ended: so exited processes keep their counts.
type kept struct {
	row
	times rowTime
	cpu   cpuTime
	tee   verdict // of a workload
	// succession is of a workload too: who was its main process, and who came after.
	succession succession
	// variance is the error of the estimates of a workload.
	variance [sampledKinds]sampling.Variance
}

func (k *kept) add(from *kept) { k.combine(from, 1) }

// subtract may leave less than zero, modulo 2^64: what is added later brings it back.
func (k *kept) subtract(from *kept) { k.combine(from, ^uint64(0)) }

func (k *kept) combine(from *kept, sign uint64) {
	sum := k.words()
	for w, v := range from.words() {
		sum[w] += sign * v
	}
	for w, v := range from.times.CallNS {
		k.times.CallNS[w] += sign * v
	}
	k.cpu.user += sign * from.cpu.user
	k.cpu.system += sign * from.cpu.system
}

// slot is the user side of a kernel slot.
type slot struct {
	number    uint32
	kept          // its counters as they are reported
	raw       row // and as the kernel side has counted them
	estimator sampling.Estimator
	gauge     gauge // processes, threads and memory as of this scrape
	identity  workload.Identity
	owner     *workload.Workload[kept]
	tgid      uint32
	watched   *watched // of a slot for one process

	restingSince time.Time // no process; zero while there are some
	withdrawn    bool      // taken from slot_of_group: no new process can join
	atRest       [rowWords]uint64
}

type watched struct {
	pid  int
	comm string
	base uint32
}

// slots keeps the user side of all slots in step with the kernel's.
type slots struct {
	kernel   *kernelSide
	sampler  *sampler
	registry *workload.Registry[kept]
	active   map[uint32]*slot
}

func newSlots(k *kernelSide, limit int) *slots {
	s := &slots{kernel: k, sampler: newSampler(k), active: map[uint32]*slot{}, registry: workload.NewRegistry[kept](limit)}
	for n, id := range map[uint32]workload.Identity{
		slotKernel: workload.KernelThreads, slotIdle: workload.IdleThreads,
	} {
		s.active[n] = &slot{number: n, identity: id, owner: s.registry.Join(id, time.Time{})}
	}
	for _, n := range []uint32{slotUnknown, slotOther} {
		s.active[n] = &slot{number: n, identity: workload.Folded, owner: s.registry.Other()}
	}
	return s
}

// refresh brings the user side up to date: new groups, counters, and slots that are no longer used.
func (s *slots) refresh(now time.Time) error {
	if err := s.kernel.iterate(); err != nil {
		return err
	}
	return s.update(now)
}

// update does so from the maps as they are.
func (s *slots) update(now time.Time) error {
	s.adopt(now)
	for _, sl := range s.active {
		s.read(sl)
	}
	s.promote(now)
	bases := map[uint32]bool{}
	for _, sl := range s.active {
		if sl.watched != nil {
			bases[sl.watched.base] = true
		}
	}
	for _, sl := range s.active {
		if err := s.retire(sl, now, bases[sl.number]); err != nil {
			return err
		}
	}
	return nil
}

// adopt names the groups that the kernel side has made since the last time.
func (s *slots) adopt(now time.Time) {
	for n := slotFirst; n < s.kernel.slots; n++ {
		g := &s.kernel.groups[n]
		if g.Ready == 0 || s.active[uint32(n)] != nil {
			continue
		}
		id := workload.Identify(g.Cgroups(), g.Program())
		if id.Kind == workload.Container || id.Kind == workload.Unit {
			// One slot is enough for it from now on. When the map is full it only takes more slots.
			_ = s.kernel.wholeCgroups.Update(g.Cgroup, uint8(1), ebpf.UpdateAny)
		}
		s.place(&slot{number: uint32(n), identity: id, owner: s.registry.Join(id, now), tgid: g.TGID})
	}
}

// place takes a slot into what is read. While events are sampled it is estimated from its first moment on:
// a cycle may end before it is read.
func (s *slots) place(sl *slot) {
	if s.sampler.Active() {
		sl.estimator.Begin(&s.sampler.counters, sl.raw.words()[:], sl.words()[:], s.sampler.WarmingUp())
	}
	s.active[sl.number] = sl
}

// promote gives groups that were folded the name that there is room for by now. What they have counted
// so far stays where it was counted, so that no counter jumps.
func (s *slots) promote(now time.Time) {
	other := s.registry.Other()
	for _, sl := range s.active {
		if sl.owner != other || sl.number < slotFirst {
			continue
		}
		if w := s.registry.Promote(sl.identity, now); w != nil {
			other.Kept.add(&sl.kept)
			w.Kept.subtract(&sl.kept)
			sl.owner = w
		}
	}
}

func (s *slots) read(sl *slot) {
	s.kernel.sum(sl.number, &sl.raw)
	sl.report(s.sampler.Fraction())
	if len(s.kernel.times) == len(s.kernel.rows) {
		s.kernel.sumTimes(sl.number, &sl.times)
	}
	sl.cpu.divide(sl.RunNS, sl.UserNS, sl.SysNS)
	sl.gauge = s.kernel.gauges[sl.number]
}

// report sets what is reported from what was counted. The fraction is that of the last cycle's estimates.
func (sl *slot) report(fraction float64) {
	sl.estimator.Report(sl.raw.words()[:], sl.words()[:], fraction)
}

// retire gives a slot back once nothing can count into it any more: it has no process, it is withdrawn
// so that none can join, and then nothing has moved for a while. If somebody joined in between, it
// goes on as before.
func (s *slots) retire(sl *slot, now time.Time, isBase bool) error {
	if sl.number < slotFirst {
		return nil
	}
	if sl.gauge.Processes > 0 || isBase {
		sl.restingSince = time.Time{}
		if !sl.withdrawn {
			return nil
		}
		sl.withdrawn = false
		return s.publish(sl)
	}
	if sl.restingSince.IsZero() || sl.atRest != *sl.raw.words() {
		sl.restingSince, sl.atRest = now, *sl.raw.words()
		if sl.withdrawn {
			return nil
		}
		sl.withdrawn = true
		return s.withdraw(sl)
	}
	if now.Sub(sl.restingSince) < restBeforeFree {
		return nil
	}
	s.settleLast(sl)
	sl.owner.Kept.add(&sl.kept)
	s.registry.Leave(sl.owner, now)
	delete(s.active, sl.number)
	s.kernel.groups[sl.number] = group{}
	s.kernel.reset(sl.number)
	if sl.watched != nil {
		if err := s.kernel.forgetErrors(sl.number); err != nil {
			return err
		}
	}
	return s.kernel.free(sl.number)
}

func (s *slots) key(sl *slot) groupKey {
	g := &s.kernel.groups[sl.number]
	return groupKey{Cgroup: g.Cgroup, Comm: g.Comm}
}

func (s *slots) withdraw(sl *slot) error {
	if sl.watched != nil {
		return nil
	}
	key := s.key(sl)
	if err := ignoreMissing(s.kernel.slotOfGroup.Delete(key)); err != nil {
		return fmt.Errorf("withdrawing slot %d: %w", sl.number, err)
	}
	_ = s.kernel.wholeCgroups.Delete(key.Cgroup) // there may be none
	return nil
}

func (s *slots) publish(sl *slot) error {
	if sl.watched != nil {
		return nil
	}
	// A newer slot may have taken the name: then both count into the same workload.
	err := s.kernel.slotOfGroup.Update(s.key(sl), sl.number, ebpf.UpdateNoExist)
	if err != nil && !isExist(err) {
		return fmt.Errorf("publishing slot %d: %w", sl.number, err)
	}
	return nil
}

// cpuTime divides exact run time into user and system by the kernel's own accounting, as
// cputime_adjust (kernel/sched/cputime.c) does for /proc/PID/stat. Both only grow; their sum is the run time.
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
