// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
	"testing"
)

func TestAmdahl(t *testing.T) {
	for _, c := range []struct{ low, high, wantLow, wantHigh float64 }{
		{0.2, 0.5, 0.25, 1},
		{0, 0.1, 0, 1.0 / 9},
		{-1, 0.5, 0, 1},
		{0.5, 7, 1, 19}, // clipped to MaxShare
		{3, 7, 19, 19},
		{0.6, 0.5, 1, 1}, // reversed: the lower bound must not exceed the upper one
	} {
		g := Amdahl(c.low, c.high, "a")
		if math.Abs(g.Low-c.wantLow) > 1e-9 || math.Abs(g.High-c.wantHigh) > 1e-9 {
			t.Errorf("shares %v to %v: gain %v to %v, want %v to %v", c.low, c.high, g.Low, g.High, c.wantLow, c.wantHigh)
		}
	}
	for _, high := range []float64{0, -1, math.NaN()} {
		if g := Amdahl(0, high); g != nil {
			t.Errorf("share %v: gain %+v, want none", high, g)
		}
	}
}
