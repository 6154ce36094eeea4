// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
)

// MaxShare is the largest share of the time that an estimate takes away. Of a workload that seems to do nothing but
// the cause, a twentieth stays: a cost per event is a documented range and not a measurement.
const MaxShare = 0.95

// Amdahl estimates the gain when a cause that takes a share of the time, between low and high, goes away: for a share s
// it is s/(1-s) (G. Amdahl, AFIPS 1967). Shares are clipped to 0 and [MaxShare]. It is nil when a share is no number
// or the upper one is not positive: there is nothing to gain.
func Amdahl(low, high float64, assumptions ...string) *Gain {
	if math.IsNaN(low) || math.IsNaN(high) || high <= 0 {
		return nil
	}
	high = min(high, MaxShare)
	low = min(max(low, 0), high)
	return &Gain{Low: low / (1 - low), High: high / (1 - high), Assumptions: assumptions}
}

// Mid is the middle of the interval.
func (g *Gain) Mid() float64 { return (g.Low + g.High) / 2 }
