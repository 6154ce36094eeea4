// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// autoregressive returns values of the first order with median 0 and standard deviation 1.
func autoregressive(r *rand.Rand, n int, phi float64) []float64 {
	x := make([]float64, n)
	v := r.NormFloat64()
	for i := range x {
		x[i] = v
		v = phi*v + math.Sqrt(1-phi*phi)*r.NormFloat64()
	}
	return x
}

// TestIntervalsOfDependentValues: the interval of a median covers it in at least 93 % of series whose values depend on
// the one before. STATISTICS_TABLE is the number of series of each row of the table in docs/decisions/analysis.md.
func TestIntervalsOfDependentValues(t *testing.T) {
	times := 400
	if n, _ := strconv.Atoi(os.Getenv("STATISTICS_TABLE")); n > 0 {
		times = n
	}
	for _, n := range []int{8, 10, 15, 20, 30, 60, 120, 300} {
		for _, phi := range []float64{0, 0.3, 0.5, 0.7, 0.8, 0.9} {
			t.Run(fmt.Sprintf("n=%d/phi=%v", n, phi), func(t *testing.T) {
				random := rand.New(rand.NewPCG(23, uint64(n)))
				naive, hit, bounded, wide, ratio := 0, 0, 0, 0.0, 0
				for range times {
					x := autoregressive(random, n, phi)
					if i := MedianInterval(x, 0.95); i.Low <= 0 && 0 <= i.High {
						naive++
					}
					i := SerialMedianInterval(x, 0.95)
					if i.Low <= 0 && 0 <= i.High {
						hit++
					}
					if i.Bounded() {
						bounded++
						wide += i.High - i.Low
					}
					y := autoregressive(random, n, phi)
					for j := range x {
						x[j], y[j] = math.Exp(0.3*x[j]), 2*math.Exp(0.3*y[j])
					}
					if r := ratioOfMedians(x, y, 0.95); r.Low <= 2 && 2 <= r.High {
						ratio++
					}
				}
				share := func(k int) float64 { return 100 * float64(k) / float64(times) }
				t.Logf("n %3d phi %.1f: independent %5.1f %%, effective %5.1f %%, has ends %5.1f %%, width %.2f, ratio %5.1f %%", n, phi, share(naive), share(hit), share(bounded), wide/float64(bounded), share(ratio))
				// Three standard errors below 95 %.
				least := 95 - 2 - 300*math.Sqrt(0.95*0.05/float64(times))
				if share(hit) < least || share(ratio) < least {
					t.Errorf("the 95 %% interval of a median covers it in %.1f %% of %d series, that of a ratio in %.1f %%", share(hit), times, share(ratio))
				}
			})
		}
	}
}
