// SPDX-License-Identifier: Apache-2.0

package sampling

// caution is a factor on the variance. With it, the 95 % interval of a minute contains the true number in 95 of 100
// cases (TestEstimatesAreUnbiasedAndKnowTheirError).
const caution = 1.2

// Variance is the error of the estimates of one kind of events. Groups whose estimates are added up share one.
type Variance struct {
	last, residual float64 // residuals of the last cycle and of this one
	modelError     float64 // of this cycle: standard error of the events that were estimated from event rates
	cycles         int
	sum            float64
}

// Sum returns the variance of the number of events since sampling began. It returns false before the first sampled
// cycle.
func (v *Variance) Sum() (float64, bool) { return v.sum, v.cycles > 0 }

func (v *Variance) add(residual, modelError float64) {
	v.residual += residual
	v.modelError += modelError
}

// EndCycle ends a cycle. The phases of the windows are random and independent, so the variances of cycles add up. Half
// the squared difference of the residuals of two cycles estimates the variance of one. This is right for a steady load.
// It is too large, never too small, for a load that changes from cycle to cycle (Wolter, Introduction to Variance
// Estimation, on one unit per stratum). Over a minute it is itself an estimate from 60 numbers. For loads in short
// bursts these are far from normal, so the result is multiplied by caution. The model error has the same sign in each
// cycle. So its values, and not their squares, add up over modelErrorCycles.
func (v *Variance) EndCycle(c Cycle) {
	if c.Sampled() {
		if v.cycles > 0 {
			d := v.residual - v.last
			v.sum += caution * d * d / 2
		}
		v.sum += modelErrorCycles * v.modelError * v.modelError
		v.cycles++
		v.last = v.residual
	}
	v.residual, v.modelError = 0, 0
}
