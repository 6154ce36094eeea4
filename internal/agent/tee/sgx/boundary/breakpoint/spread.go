// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/aex"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
)

// In each rareOver, the variance of rareAEXs in windows is added, as in package sampling. A window without an AEX does not
// show how many were missed, so otherwise the interval of a rare cause is often 0 +- 0.
const (
	rareOver = time.Minute
	rareAEXs = 2
)

// clusterOver is the time over which the size of clusters of AEXs is estimated, as in package sampling. Missed AEXs are assumed to have
// the same clusters as counted ones: if most windows are empty, and one contains a hundred, a missed cluster has a hundred.
const clusterOver = 10 * time.Minute

// few raises the variance, because it is itself an estimate from the windows of a minute, as in package sampling.
const few = 1.25

// cutOff returns the variance of the length of windows relative to the square of its mean, because windows are cut off at both
// ends of their cycle. An AEX in a window stands for weight (package window). Only few windows are cut off, so neighbours seldom
// show it: a minute of long cycles often has none.
func cutOff(weight float64) float64 {
	if weight < 2 {
		return 0
	}
	return (weight*2/3 - 1) / ((weight - 1) * (weight - 1))
}

// spread is how the sampled AEXs of a workload differ between neighbouring windows, by cause.
type spread struct {
	before, now aex.Causes[float64] // estimates for the last cycle and for this one
	begun       bool                // there was a last cycle

	// Sums that decay, of windows: their number, those that contained AEXs, and the squares of how many they contained.
	windows       float64
	hit, clusters aex.Causes[float64]
	counts        bool // the workload has breakpoints in this cycle
}

// endCycle ends a cycle and returns the variance of its estimates. An AEX that was seen stands for weight, and passed is the time
// since the last cycle ended. The positions of windows are independent, so with a steady load half the squared difference of two
// neighbours is the variance of one. With another load it is more.
//
// Their product is the square of the mean, as far as that is not by chance.
func (s *spread) endCycle(weight float64, passed time.Duration) (variance aex.Causes[float64]) {
	rare := rareAEXs * weight * weight * min(1, passed.Seconds()/rareOver.Seconds())
	keeps := 1 - min(1, passed.Seconds()/clusterOver.Seconds())
	s.windows = s.windows*keeps + 1
	for cause := range variance {
		variance[cause] = rare * s.cluster(cause, s.now[cause]/weight, keeps)
		if s.begun {
			difference := s.now[cause] - s.before[cause]
			variance[cause] += few*difference*difference/2 + cutOff(weight)*s.now[cause]*s.before[cause]
		}
	}
	s.before, s.now, s.begun, s.counts = s.now, aex.Causes[float64]{}, true, false
	return variance
}

// cluster adds the AEXs of a window. It returns the mean square of the number of AEXs in the windows that had some, times the
// fraction of empty windows, and at least 1.
func (s *spread) cluster(cause int, seen, keeps float64) float64 {
	s.hit[cause] *= keeps
	s.clusters[cause] = s.clusters[cause]*keeps + seen*seen
	if seen > 0 {
		s.hit[cause]++
	}
	if s.hit[cause] <= 0 {
		return 1
	}
	return max(1, s.clusters[cause]/s.hit[cause]*(1-s.hit[cause]/s.windows))
}

// spreads are the spreads of all workloads, while AEXs are sampled.
type spreads struct {
	of      map[*count.Workload]*spread
	lastEnd time.Time
}

// add adds estimates to this cycle.
func (s *spreads) add(w *count.Workload, n aex.Causes[float64]) {
	if s.of == nil {
		s.of = map[*count.Workload]*spread{}
	}
	one := s.of[w]
	if one == nil {
		one = &spread{}
		s.of[w] = one
	}
	one.counts = true
	for cause := range n {
		one.now[cause] += n[cause]
	}
}

// endCycle ends a cycle of all workloads, and forgets those without breakpoints.
func (s *spreads) endCycle(now time.Time, weight float64, add func(*count.Workload, aex.Causes[float64])) {
	passed := now.Sub(s.lastEnd)
	s.lastEnd = now
	for w, one := range s.of {
		if !one.counts {
			delete(s.of, w)
			continue
		}
		add(w, one.endCycle(weight, passed))
	}
}
