// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
)

// MaxShare is the largest share of the time that an estimate removes. A cost per event is a documented range and not a
// measurement, so a twentieth of the time always remains.
const MaxShare = 0.95

// Amdahl estimates the gain from removing a cause that takes a share of the time between low and high. For a share s it
// is s/(1-s) (G. Amdahl, AFIPS 1967). Shares are clipped to the range from 0 to [MaxShare]. It returns nil when a share
// is NaN or the upper one is not positive.
func Amdahl(low, high float64, assumptions ...string) *Gain {
	if math.IsNaN(low) || math.IsNaN(high) || high <= 0 {
		return nil
	}
	high = min(high, MaxShare)
	low = min(max(low, 0), high)
	return &Gain{Low: low / (1 - low), High: high / (1 - high), Assumptions: assumptions}
}

// Mid returns the middle of the interval.
func (g *Gain) Mid() float64 { return (g.Low + g.High) / 2 }
