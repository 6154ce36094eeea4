// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math/rand/v2"
	"time"
	"unsafe"
)

// frequent is a probe on events that may come a million times a second, and what it counts. While events
// are sampled it is attached for a part of the time, and what it counted is scaled up.
type frequent struct {
	probe       string
	kind        sampledKind
	first, last int // its counters: words of a row, the last one excluded
}

// sampledKind is a group of counters that share a variance.
type sampledKind int

const (
	sampledCalls sampledKind = iota
	sampledFaults
	sampledCache
	sampledKinds
)

// sampledNames are the values of the label family.
var sampledNames = [sampledKinds]string{"syscalls", "page_faults", "page_cache"}

func wordAt(offset uintptr) int { return int(offset / 8) }

// frequentProbes lists them, as an array: each slot asks at each scrape. What is rare is counted always:
// attaching costs more than it does.
func frequentProbes() [4]frequent {
	calls0 := wordAt(unsafe.Offsetof(row{}.Calls))
	faults0 := wordAt(unsafe.Offsetof(row{}.Faults))
	cache0 := wordAt(unsafe.Offsetof(row{}.Cache))
	return [...]frequent{
		{"syscall", sampledCalls, calls0, calls0 + calls},
		{"page_fault_user", sampledFaults, faults0, faults0 + faultReasons},
		{"page_cache_access", sampledCache, cache0 + cacheAccess, cache0 + cacheAccess + 1},
		{"page_cache_dirty_buffer", sampledCache, cache0 + cacheDirtyBuffer, cache0 + cacheDirtyBuffer + 1},
	}
}

// estimate is what is reported of a slot's frequent events while they are sampled. At the end of each cycle
// the counters of that cycle are known; what is reported moves there evenly during the next one, so that a
// steady rate is seen as steady by whoever reads at whatever moment.
type estimate struct {
	first    bool             // all is seen, and reported slower than it comes: to be a cycle behind in the end
	settled  [rowWords]uint64 // what the kernel side had counted at the last settlement
	from, to [rowWords]uint64
	habits
}

// caution is by how much the variance is raised, so that the interval of a minute holds the truth 95 times
// in 100 (TestEstimatesAreUnbiasedAndKnowTheirError).
const caution = 1.2

// variance is how far the estimates of a workload's events may be from the truth.
type variance struct {
	last, now float64 // by how much what was seen in the last cycle and in this one strays from what was expected
	doubt     float64 // of this cycle's events, by what an event costs
	cycles    int
	sum       float64
}

// turn ends a cycle, of which a part was seen. The phases of the cycles are random and independent, so their variances
// add up. Half the squared difference of two cycles is an estimate of one's that is right for a steady load, and too
// great, never too small, for one that changes from cycle to cycle (Wolter, Introduction to Variance
// Estimation, on one unit per stratum). Over a minute it is itself an estimate from 60 numbers, which for
// loads in short bursts are far from normal: caution makes up for that. What an event costs is wrong in the same
// direction in each cycle: then not the squares add up but the errors, as they do over doubtFor cycles.
func (v *variance) turn(sampled bool) {
	if sampled {
		if v.cycles > 0 {
			d := v.now - v.last
			v.sum += caution * d * d / 2
		}
		v.sum += doubtFor * v.doubt * v.doubt
		v.cycles++
		v.last = v.now
	}
	v.now, v.doubt = 0, 0
}

// report sets what is reported from what was counted.
func (sl *slot) report(fraction float64) {
	sl.row = sl.raw
	out := sl.words()
	if sl.estimate == nil {
		if sl.shift != nil {
			for w, v := range sl.shift {
				out[w] += v
			}
		}
		return
	}
	e := sl.estimate
	for _, p := range frequentProbes() {
		for w := p.first; w < p.last; w++ {
			if e.first {
				out[w] = e.from[w] + behind(sl.raw.words()[w]-e.settled[w])
				continue
			}
			step := e.to[w] - e.from[w]
			out[w] = e.from[w] + uint64(float64(step)*fraction)
		}
	}
}

// begin turns to estimates: they go on from what is reported.
func (sl *slot) begin(first bool) {
	sl.estimate = &estimate{first: first, settled: *sl.raw.words(), from: *sl.words(), to: *sl.words()}
}

// behind is how many of the events of the first cycle are reported by now: in its end those of one cycle are not.
func behind(n uint64) uint64 {
	return n * uint64(firstTime/time.Second) / uint64((firstTime+cycleTime)/time.Second)
}

// unsettled is how many events a probe has counted since the last settlement.
func (sl *slot) unsettled(p frequent) (n uint64) {
	raw := sl.raw.words()
	for w := p.first; w < p.last; w++ {
		n += raw[w] - sl.estimate.settled[w]
	}
	return n
}

// settle adds what a probe has counted since the last settlement, times the factor, and what the CPU time says that
// the window has missed. It returns how far what was counted strays from what the CPU time said, and the doubt.
func (sl *slot) settle(p frequent, factor float64, t ran, weight float64) (strayed, doubt float64) {
	e, raw := sl.estimate, sl.raw.words()
	missed := t.cycle - factor*t.window
	for w := p.first; w < p.last; w++ {
		n := raw[w] - e.settled[w]
		if n == 0 && e.known[w] == 0 && e.owed[w] == 0 { // a call that the group does not make
			e.from[w] = e.to[w]
			continue
		}
		e.settled[w] = raw[w]
		counted, habit := float64(n), e.habit(w)
		e.meet(w, weight*counted)
		if e.first {
			e.from[w] += behind(n)
			e.to[w] += n
			continue
		}
		e.from[w] = e.to[w]
		happened := counted*factor + habit*missed + float64(e.owed[w])
		e.owed[w] = float32(min(0, happened))
		if happened > 0 {
			e.to[w] += roundRandomly(happened)
		}
		strayed += factor * (counted - habit*t.window)
		doubt += habit
	}
	return strayed, doubt * e.doubt()
}

// hold keeps what is reported where the last cycle has brought it.
func (sl *slot) hold() { sl.estimate.from = sl.estimate.to }

// end turns back to counting: from here on each event is one.
func (sl *slot) end() {
	raw := sl.raw.words()
	sl.shift = &[rowWords]uint64{}
	for _, p := range frequentProbes() {
		for w := p.first; w < p.last; w++ {
			sl.shift[w] = sl.estimate.to[w] - raw[w]
		}
	}
	sl.estimate = nil
	sl.report(1)
}

// roundRandomly rounds up as often as the fraction says. To the nearest, a counter of rare events, of which
// each stands for 10.4, would be wrong by 4 % for ever.
func roundRandomly(v float64) uint64 {
	n := uint64(v)
	if rand.Float64() < v-float64(n) { //nolint:gosec // no secret
		n++
	}
	return n
}

// turn is a moment in a cycle at which the frequent probes are attached or detached.
type turn struct {
	at time.Duration // after the beginning of the cycle
	on bool
}

// plan places one window at random in a cycle. It may begin before the end and go on at the beginning: so
// each moment of a cycle is as likely as any other to be in it, and no load with a period of its own hides.
func plan(cycle, window time.Duration, phase float64) []turn {
	start := time.Duration(phase * float64(cycle))
	end := start + window
	if end <= cycle {
		return []turn{{0, false}, {start, true}, {end, false}}
	}
	return []turn{{0, true}, {end - cycle, false}, {start, true}}
}
