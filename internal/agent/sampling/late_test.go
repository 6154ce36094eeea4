// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// idle is an agent that attaches nothing and whose groups do not run.
type idle struct{}

func (idle) Attach() error                       { return nil }
func (idle) Detach() error                       { return nil }
func (idle) Count(bool)                          {}
func (idle) Snapshot()                           {}
func (idle) CPUTimes(func(group int, ns uint64)) {}

// A group that ends after windows that closed late is estimated from the time that they were open, as a group that ends with the
// cycle is. With the planned length of the windows the estimate would be 1.5 times the true number.
func TestAGroupThatEndsAfterLateWindows(t *testing.T) {
	const runs, late, rate = 4000, 10 * time.Millisecond, 1000.0
	interrupted, whole := 0.0, 0.0
	for seed := range uint64(runs) {
		d := NewDutyCycle(idle{}, 1)
		now := time.Unix(1e9, 0)
		d.now, d.phase = func() time.Time { return now }, rand.New(rand.NewPCG(seed, 1)).Float64 //nolint:gosec // a fixed seed
		d.SetRatio(0.02)
		d.Begin(false)
		for cycles := 0; cycles < 3; { // the first ones differ
			now = d.Next()
			if end, _ := d.Step(); end {
				d.EndCycle()
				cycles++
			}
		}
		began := now
		for len(d.edges) > 0 {
			now = d.Next()
			if !d.edges[0].open {
				now = now.Add(late)
			}
			_, _ = d.Step()
		}
		if end := began.Add(Period); now.Before(end) {
			now = end
		}
		seen := d.seen
		if d.open {
			seen += now.Sub(d.opened)
		}
		interrupted += rate * seen.Seconds() * d.Interrupted().factor
		cycle, _ := d.EndCycle()
		whole += rate * seen.Seconds() * cycle.factor
	}
	for what, estimate := range map[string]float64{"interrupted": interrupted, "whole": whole} {
		if got := estimate / (runs * rate * Period.Seconds()); math.Abs(got-1) > 0.02 {
			t.Errorf("%s cycles: %.3f times the true number", what, got)
		}
	}
}
