// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"slices"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
)

// Workloads share the limits of a recording max-min fairly. Nothing is taken from a workload while there is room. A workload that
// needs room when there is none gets it from the one that uses most, if that uses more: the newest samples of that one lose
// their stacks, and those of further threads their threads. So a workload that uses less than its equal share keeps all it has,
// however many others want all.

// resource is what a recording has a limited amount of.
type resource int

const (
	ofSamples resource = iota
	ofBytes
	ofLocations
	resources
)

// amounts are those of each resource.
type amounts [resources]int

// use is what a workload uses.
type use struct {
	name   string
	used   amounts
	newest [2][]int // its samples in the order in which they were added, withStack and stackless
	shared int      // index of the sample that its further threads share, plus 1
}

// Indices of use.newest.
const withStack, stackless = 0, 1

// hold says how many samples have a location, and by which workload it was needed first.
type hold struct {
	of    *use
	times int
}

func (o *Options) limit(what resource) int {
	return amounts{ofSamples: o.Stacks, ofBytes: o.Bytes, ofLocations: o.Locations}[what]
}

func (r *Recording) take(by *use, n amounts) {
	for what := range resources {
		by.used[what] += n[what]
		r.used[what] += n[what]
	}
}

func (r *Recording) giveBack(by *use, n amounts) {
	for what := range resources {
		by.used[what] -= n[what]
		r.used[what] -= n[what]
	}
}

// release gives up locations. Those that nothing has are free.
func (r *Recording) release(stack []uint32) {
	for _, at := range stack {
		h := &r.holds[at]
		if h.times--; h.times > 0 {
			continue
		}
		delete(r.locationIDs, keyOf(r.locations[at]))
		r.giveBack(h.of, amounts{ofLocations: 1})
		r.free.locations = append(r.free.locations, int(at))
	}
}

// makeRoom makes room for what a workload needs, and reports whether there is.
func (r *Recording) makeRoom(by *use, needs amounts) bool {
	return r.makeRoomFrom(needs, func(most *use, what resource) bool { return most.used[what] > by.used[what]+needs[what] })
}

// makeRoomFrom takes room from the workload that uses most while it may.
func (r *Recording) makeRoomFrom(needs amounts, may func(most *use, what resource) bool) bool {
	for what := range resources {
		for r.used[what]+needs[what] > r.limit(what) {
			most := r.largest(what)
			if most == nil || !may(most, what) || !r.fold(most, what) {
				return false
			}
		}
	}
	return true
}

// largest returns the workload that uses most of a resource and can give some of it back.
func (r *Recording) largest(what resource) (most *use) {
	for _, u := range r.workloads {
		if len(u.newest[withStack]) == 0 && (what == ofLocations || len(u.newest[stackless]) == 0) {
			continue
		}
		if most == nil || u.used[what] > most.used[what] || u.used[what] == most.used[what] && u.name < most.name {
			most = u
		}
	}
	return most
}

// fold takes the stack of the newest sample of a workload, or its thread if that frees nothing of what is needed.
func (r *Recording) fold(of *use, what resource) bool {
	list := &of.newest[withStack]
	if len(*list) == 0 {
		list = &of.newest[stackless]
	}
	if len(*list) == 0 {
		return false
	}
	at := (*list)[len(*list)-1]
	*list = (*list)[:len(*list)-1]
	s := &r.samples[at]
	if len(s.stack) > 0 {
		key := withoutStack(s.key, len(s.stack))
		if to, known := r.index[key]; known {
			r.merge(at, to, of)
			return true
		}
		if what == ofLocations {
			delete(r.index, s.key)
			r.strip(s, of)
			s.key = key
			r.index[key] = at
			of.newest[stackless] = append(of.newest[stackless], at)
			return true
		}
	}
	if of.shared != 0 {
		r.merge(at, of.shared-1, of)
		return true
	}
	delete(r.index, s.key)
	r.strip(s, of)
	*s = sharedOf(of, s)
	of.shared = at + 1
	return true
}

// strip takes the stack of a sample.
func (r *Recording) strip(s *sample, of *use) {
	r.giveBack(of, amounts{ofBytes: addressSize * len(s.stack)})
	r.release(s.stack)
	s.stack, s.kernel, s.stackLost, s.left = nil, 0, true, false
}

// withoutStack returns the key that a sample has without its stack.
func withoutStack(key string, frames int) string {
	b := []byte(key[:len(key)-4*frames])
	b[keyKernel], b[keyLost], b[keyLeft] = 0, 1, 0
	return string(b)
}

// merge adds a sample to another one, and frees it.
func (r *Recording) merge(at, to int, of *use) {
	s, sum := &r.samples[at], &r.samples[to]
	sum.samples += s.samples
	sum.events += s.events
	r.clock.moments -= len(s.moments) + len(sum.moments)
	sum.moments = mergeMoments(sum.moments, s.moments)
	r.clock.moments += len(sum.moments)
	delete(r.index, s.key)
	r.strip(s, of)
	r.giveBack(of, amounts{ofSamples: 1, ofBytes: sampleSize})
	*s = sample{}
	r.free.samples = append(r.free.samples, at)
}

// mergeMoments returns the moments of two samples, in ascending order.
func mergeMoments(a, b []moment) []moment {
	all := make([]moment, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		from := &a
		if b[0].bucket < a[0].bucket {
			from = &b
		}
		all = addMoment(all, (*from)[0])
		*from = (*from)[1:]
	}
	for _, m := range slices.Concat(a, b) {
		all = addMoment(all, m)
	}
	return all
}

// sharedOf is the sample that threads of a workload share, with the counts of its first one.
func sharedOf(of *use, first *sample) sample {
	return sample{
		process: &symbol.Process{Workload: of.name}, stackLost: true, shared: true, kind: kind{call: -1, cause: -1},
		samples: first.samples, events: first.events, moments: first.moments,
	}
}

// share adds a sample to the one that threads of its workload share, for which any workload gives room. It returns false if there is
// none.
func (r *Recording) share(s *profiling.Sample, by *use) bool {
	needs := amounts{ofSamples: 1, ofBytes: sampleSize}
	if by.shared == 0 && r.makeRoomFrom(needs, func(*use, resource) bool { return true }) && by.shared == 0 {
		by.shared = 1 + r.append(by, needs, sharedOf(by, &sample{}))
	}
	if by.shared == 0 {
		return false
	}
	r.count(by.shared-1, s)
	return true
}

// append returns the index of a new sample.
func (r *Recording) append(by *use, needs amounts, s sample) int {
	r.take(by, needs)
	if n := len(r.free.samples); n > 0 {
		at := r.free.samples[n-1]
		r.free.samples = r.free.samples[:n-1]
		r.samples[at] = s
		return at
	}
	r.samples = append(r.samples, s)
	return len(r.samples) - 1
}
