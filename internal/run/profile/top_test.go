// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The functions with the most samples are chosen by the same samples that their intervals are of. Their intervals must hold
// still: here each function has the same share, and chance decides which are shown. The numbers are always the same.
func TestIntervalsOfTheLargestHold(t *testing.T) {
	const simulations, level = 400, 0.05
	for _, tt := range []struct{ functions, samples int }{{400, 100}, {1000, 1000}, {50, 200}, {1000, 20}} {
		random := rand.New(rand.NewPCG(1, uint64(tt.functions*tt.samples)))
		missed := 0
		for range simulations {
			taken := make([]int, tt.functions)
			for range tt.samples {
				taken[random.IntN(tt.functions)]++
			}
			var lines strings.Builder
			for f, n := range taken {
				if n > 0 {
					fmt.Fprintf(&lines, "f%d %d\n", f, n)
				}
			}
			table := folded(t, counts, lines.String()).By("function", 5, Whole{})
			for _, r := range table.Rows {
				if truth := 1 / float64(tt.functions); r.Kind == Named && (r.Interval.Low > truth || r.Interval.High < truth) {
					missed++
					break
				}
			}
		}
		t.Logf("%d functions, %d samples: an interval misses in %.1f %% of %d", tt.functions, tt.samples, 100*float64(missed)/simulations, simulations)
		if float64(missed) > level*simulations {
			t.Errorf("%d functions, %d samples: an interval misses in %d of %d simulations", tt.functions, tt.samples, missed, simulations)
		}
	}
}
