// SPDX-License-Identifier: Apache-2.0

package system

import (
	"cmp"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

const (
	// minCPUs is the minimum CPU use, in CPUs, of a workload whose threads are inspected. So there are at most two such workloads
	// for each CPU.
	minCPUs = 0.5
	// minWindow is the minimum time between two looks. The kernel gives the CPU time of a thread in ticks of 10 ms.
	minWindow = time.Second
	// maxFollowed is the maximum number of threads that a look leaves to the next one, in all workloads together. A look
	// reads these, and replaces at most as many.
	maxFollowed = 512
	// maxListed is the maximum number of threads of a process that are listed.
	maxListed = 1 << 14
	// maxLook is the maximum duration of a look.
	maxLook = 200 * time.Millisecond
)

// busiest finds the busiest thread of each busy workload. The CPU time of a workload is known exactly. The part of it that the
// threads that were read did not use is an upper bound for every other thread. So the busiest thread that was read is the busiest
// of all if it ran at least that long. Otherwise there is no ratio.
//
// Only Collect uses it, without the lock of the collector except in plan.
type busiest struct {
	proc   hostfs.Root          // /proc
	clock  func() time.Duration // time since boot
	looked time.Duration        // time of the last look; 0 before the first
	ran    map[*workload.Workload[counts]]uint64
	lists  map[*workload.Workload[counts]]watchlist
	ratios map[*workload.Workload[counts]]float64
	until  time.Duration // end of the present look
	window time.Duration // time between the previous look and the present one
}

// busy is a workload whose threads are inspected.
type busy struct {
	of      *workload.Workload[counts]
	cpus    float64 // CPU time per time since the last look
	threads uint64
	pids    []int // in ascending order
}

// watchlist has the threads of a workload that the next look reads first.
type watchlist struct {
	followed []reading // by run time, longest first
	last     thread    // the last thread that became one of them
}

// thread identifies a thread at one time.
type thread struct{ pid, tid int }

// reading is the state of a thread at one time.
type reading struct {
	thread
	started, cpu, at time.Duration
	ratio            float64 // share of the time since the last look in which it ran
}

// plan finds the workloads that were busy since the last look, and begins the next one. It returns false if the last one
// was less than minWindow ago. It reads the maps, and no process.
func (b *busiest) plan(k *kernelSide, s *slots, m *members) (all []*busy, due bool) {
	now := b.clock()
	if b.looked != 0 && now-b.looked < minWindow {
		return nil, false
	}
	before := b.ran
	b.window, b.looked, b.ran = now-b.looked, now, make(map[*workload.Workload[counts]]uint64, len(before))
	s.Registry.Each(func(w *workload.Workload[counts]) {
		if w.Kind.IsNamed() {
			b.ran[w] = w.Data.RunNS
		}
	})
	for sl := range s.All() {
		if _, ok := b.ran[sl.Workload]; ok {
			b.ran[sl.Workload] += sl.RunNS
		}
	}
	by := map[*workload.Workload[counts]]*busy{}
	for w, ran := range b.ran {
		was, ok := before[w]
		if cpus := float64(int64(ran-was)) / float64(b.window); ok && cpus >= minCPUs {
			by[w] = &busy{of: w, cpus: cpus}
			all = append(all, by[w])
		}
	}
	if len(all) == 0 {
		return nil, true
	}
	m.list(k, time.Now())
	for sl := range s.All() {
		if w := by[sl.Workload]; w != nil {
			w.threads += sl.gauge.Threads
			w.pids = append(w.pids, m.all(k, sl)...)
		}
	}
	return all, true
}

// look reads the threads of busy workloads. Each gets the same number of threads. Workloads with fewer threads leave the
// remaining ones to the others.
func (b *busiest) look(all []*busy) {
	before := b.lists
	b.lists, b.ratios = map[*workload.Workload[counts]]watchlist{}, map[*workload.Workload[counts]]float64{}
	b.until = b.clock() + maxLook
	slices.SortFunc(all, func(x, y *busy) int { return cmp.Compare(x.threads, y.threads) })
	left := maxFollowed
	for i, w := range all {
		slices.Sort(w.pids)
		w.pids = slices.Compact(w.pids)
		c, ratio, certain := b.of(w, before[w.of], left/(len(all)-i))
		left -= len(c.followed)
		b.lists[w.of] = c
		if certain {
			b.ratios[w.of] = min(ratio, 1)
		}
	}
}

// of returns the ratio of the busiest thread of one workload, and whether it is certain.
func (b *busiest) of(w *busy, c watchlist, most int) (next watchlist, ratio float64, certain bool) {
	rest := w.cpus // CPU time that the threads that were read have not used
	next.last = c.last
	read := func(t thread, was *reading) {
		now, known, ok := b.read(t, was)
		if !ok {
			return
		}
		if known {
			rest -= now.ratio
			ratio = max(ratio, now.ratio)
		}
		next.followed = append(next.followed, now)
	}
	for i := range c.followed[:min(most, len(c.followed))] {
		read(c.followed[i].thread, &c.followed[i])
	}
	slices.SortStableFunc(next.followed, func(x, y reading) int { return cmp.Compare(y.ratio, x.ratio) })
	if ratio < rest {
		others := b.others(w.pids, &next, max(most-len(next.followed), most/4))
		next.followed = next.followed[:min(len(next.followed), most-len(others))]
		for _, t := range others {
			read(t, nil)
		}
	}
	return next, ratio, ratio > 0 && ratio >= rest
}

// others returns threads that are not followed, beginning after the last one that was added. So each thread is read
// at some time if there are more than can be followed.
func (b *busiest) others(pids []int, c *watchlist, most int) (found []thread) {
	followed := make(map[thread]bool, len(c.followed))
	for _, r := range c.followed {
		followed[r.thread] = true
	}
	if len(pids) == 0 {
		return nil
	}
	from := c.last
	first, _ := slices.BinarySearch(pids, from.pid)
	for n := range min(len(pids)+1, most+1) { // the first process comes again at the end
		pid := pids[(first+n)%len(pids)]
		if b.clock() > b.until {
			break
		}
		tids, _ := b.proc.Process(pid).Threads(maxListed) // an error means that it has ended
		for _, tid := range tids {
			t := thread{pid, tid}
			before := pid == from.pid && tid <= from.tid
			if followed[t] || before != (n == len(pids)) {
				continue
			}
			if len(found) == most {
				return found
			}
			found, c.last = append(found, t), t
		}
	}
	return found
}

// read reads a thread. The ratio is known if it was read before, or has started since the last look. Another thread that
// has got the same ID has another start.
func (b *busiest) read(t thread, was *reading) (now reading, known, ok bool) {
	from := b.clock()
	if from > b.until {
		return reading{}, false, false
	}
	s, err := b.proc.Process(t.pid).Thread(t.tid).Stat()
	if err != nil {
		return reading{}, false, false // it has ended
	}
	now = reading{thread: t, started: s.Started, cpu: s.CPU, at: from + (b.clock()-from)/2}
	switch begun := b.looked - b.window; {
	case was != nil && was.started == s.Started:
		now.ratio = float64(now.cpu-was.cpu) / float64(now.at-was.at)
	case s.Started >= begun:
		now.ratio = float64(now.cpu) / float64(now.at-begun)
	default:
		return now, false, true
	}
	return now, true, true
}
