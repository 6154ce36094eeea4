// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/run"
)

const (
	// mixed are the series whose distribution is judged, by the label mixedBy.
	mixed, mixedBy = "teescope_syscalls_total", "syscall"
	// leastMixSamples is the number of samples that a phase needs for four quarters of two intervals each.
	leastMixSamples = 9
	// leastMixCalls is the number of calls in each half. With fewer, chance moves the shares.
	leastMixCalls = 1000
	// leastDrift is the least share of the calls of the second half that differ from those of the first. Proposed.
	leastDrift = 0.05
	// overNoise is how many times as much that must be as between the two quarters of a half, which differ by chance. If a
	// share grows evenly, it is twice as much, so fewer repetitions than severalDrifts can show steps only.
	//
	// If nothing drifts and quarters are independent, with two names and shares that are about normal, the difference of the halves
	// has the variance v, and those of the quarters 2 v each. The three are independent. So one repetition is over k times the noise
	// with the solid angle of two square pyramids: p = 2/pi * asin(1/(1 + 2 k^2)). With more names it is less. For 4 this is 1.9 %, and both
	// of two repetitions are over it in 0.04 %. For 1.5 it is 12 %, and two of three are in 3.7 %.
	overNoise, overNoiseOfFew, severalDrifts = 1.5, 4, 3
)

// A mix is how many calls of each name there were.
type mix map[string]float64

func (m mix) sum() (sum float64) {
	for _, v := range m {
		sum += v
	}
	return sum
}

// mixOf counts the calls of the samples from..to-1.
func mixOf(chosen []candidate, from, to int) mix {
	m := mix{}
	for _, s := range chosen {
		if s.Name == mixed {
			if v := s.Total(from, to); isNumber(v) && v > 0 {
				m[s.Labels[mixedBy]] += v
			}
		}
	}
	return m
}

// distance returns the share of calls that differ between a and b, from 0 to 1, and the name whose share differs most.
// It is the total variation distance of the two distributions.
func distance(a, b mix) (share float64, most string) {
	x, y, largest := a.sum(), b.sum(), 0.0
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := math.Abs(a[name]/x - b[name]/y)
		if share += d / 2; d > largest {
			largest, most = d, name
		}
	}
	return share, most
}

// A drift is how the mix of a repetition changes from its first to its second half.
type drift struct {
	share, noise float64
	most         string
	before       float64 // share of most in the first half
	after        float64
}

// driftOf returns the drift of the samples from..to-1, or false if they are too few to judge.
func driftOf(chosen []candidate, from, to int) (d drift, ok bool) {
	if to-from < leastMixSamples {
		return d, false
	}
	at := func(quarter int) int { return from + (to-1-from)*quarter/4 }
	var quarters [4]mix
	for i := range quarters {
		quarters[i] = mixOf(chosen, at(i), at(i+1)+1)
	}
	first, second := mixOf(chosen, at(0), at(2)+1), mixOf(chosen, at(2), at(4)+1)
	if first.sum() < leastMixCalls || second.sum() < leastMixCalls {
		return d, false
	}
	for i := 0; i < 4; i += 2 {
		if quarters[i].sum() == 0 || quarters[i+1].sum() == 0 {
			return d, false
		}
		noise, _ := distance(quarters[i], quarters[i+1])
		d.noise = max(d.noise, noise)
	}
	d.share, d.most = distance(first, second)
	d.before, d.after = first[d.most]/first.sum(), second[d.most]/second.sum()
	return d, true
}

// noteDrift notes that figures depend on the length of the run, if in most repetitions the system calls of the second
// half differ from those of the first one.
func (x *Record) noteDrift(phase string, all []drift) {
	var drifting []drift
	var shares []float64
	over := overNoise
	if len(all) < severalDrifts {
		over = overNoiseOfFew
	}
	for _, d := range all {
		if d.share >= leastDrift && d.share >= over*d.noise {
			drifting, shares = append(drifting, d), append(shares, d.share)
		}
	}
	if 2*len(drifting) <= len(all) {
		return
	}
	what := "the run"
	if phase == run.Steady {
		what = "the steady state"
	}
	d := drifting[0]
	x.Notes = append(x.Notes, fmt.Sprintf("the mix of system calls changes during %s, so figures depend on its length: in %d of %d repetitions %.2g %% of the calls of the second half differ from those of the first, such as %s from %.2g to %.2g %%",
		what, len(drifting), len(all), 100*stat.Median(shares), d.most, 100*d.before, 100*d.after))
}
