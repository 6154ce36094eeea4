// SPDX-License-Identifier: Apache-2.0

package sampling

// caution is the factor by which the variance is raised, so that the interval of a minute holds the truth 95 times in 100
// (TestEstimatesAreUnbiasedAndKnowTheirError).
const caution = 1.2

// Variance is the error of the estimates of one kind of events. Groups that are added up share one.
type Variance struct {
	last, residual float64 // of the last cycle, and of this one
	modelError     float64 // of this cycle: the standard error of what event rates stood in for
	cycles         int
	sum            float64
}

// Sum is the variance of the number of events since sampling began, and false before there was a sampled cycle.
func (v *Variance) Sum() (float64, bool) { return v.sum, v.cycles > 0 }

func (v *Variance) add(residual, modelError float64) {
	v.residual += residual
	v.modelError += modelError
}

// EndCycle ends a cycle. The phases of the windows are random and independent, so the variances of cycles add up. Half the
// squared difference of the residuals of two cycles estimates the variance of one. It is right for a steady load, and
// too large, never too small, for one that changes from cycle to cycle (Wolter, Introduction to Variance Estimation, on
// one unit per stratum). Over a minute it is itself an estimate from 60 numbers, which for loads in short bursts are far
// from normal: caution makes up for that. The model error has the same sign in each cycle, so it adds up as such, and
// not as its square, over modelErrorCycles.
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
