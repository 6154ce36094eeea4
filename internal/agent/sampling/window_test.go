// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"math"
	"testing"
	"time"
)

func TestEachMomentOfACycleIsAsLikelyToBeSeen(t *testing.T) {
	const n = 100_000
	seen := make([]int, 20)
	for i := range n {
		open, from := false, time.Duration(0)
		mark := func(to time.Duration) {
			for part := range seen {
				if middle := Period * time.Duration(2*part+1) / 40; open && middle >= from && middle < to {
					seen[part]++
				}
			}
			from = to
		}
		for _, e := range windowEdges(Period, Period/10, (float64(i)+0.5)/n) {
			mark(e.at)
			open = e.open
		}
		mark(Period)
	}
	for part, times := range seen {
		if share := float64(times) / n; math.Abs(share-0.1) > 0.001 {
			t.Errorf("%d/20 of a cycle: seen in %.3f of cycles, want 0.1", part, share)
		}
	}
}
