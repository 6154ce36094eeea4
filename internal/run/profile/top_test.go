// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// The functions with the largest changes are chosen by the same samples that their intervals are of. Of two profiles of the same, at most
// one in 20 has a change that is not noise. The numbers are always the same.
func TestTheLargestChangesOfTheSameAreNoise(t *testing.T) {
	const simulations, level, shown = 400, 0.05, 5
	whole := Whole{Amount: 1e9, Unit: "ns"}
	for _, tt := range []struct{ functions, samples int }{{400, 100}, {1000, 1000}, {50, 200}, {10, 2000}} {
		random := rand.New(rand.NewPCG(2, uint64(tt.functions*tt.samples)))
		table := func() *Table {
			taken := make([]int, tt.functions)
			for range tt.samples {
				taken[random.IntN(tt.functions)]++
			}
			t := &Table{Total: int64(tt.samples), Taken: float64(tt.samples), Whole: whole}
			for f, n := range taken {
				if n > 0 {
					t.Rows = append(t.Rows, Row{Name: fmt.Sprint("f", f), Kind: Named, Self: int64(n), Absolute: whole.Amount / t.Total * int64(n)})
				}
			}
			return t
		}
		wrong := 0
		for range simulations {
			d, err := Compare(table(), table(), shown)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(d.Changes, func(c Change) bool { return c.Sure }) {
				wrong++
			}
		}
		t.Logf("%d functions, %d samples: a change in %.1f %% of %d pairs of the same", tt.functions, tt.samples, 100*float64(wrong)/simulations, simulations)
		if float64(wrong) > level*simulations {
			t.Errorf("%d functions, %d samples: a change in %d of %d pairs of the same", tt.functions, tt.samples, wrong, simulations)
		}
	}
}
