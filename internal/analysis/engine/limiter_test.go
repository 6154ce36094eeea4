// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
)

// The workloads with the most CPU time are kept, on one machine and of all, and the others are counted.
func TestLimitsAreBounded(t *testing.T) {
	g := newGathering(&inquiry{Options: Options{}.withDefaults()}, 20)
	const machines, each = 20, 60
	for m := range machines {
		var one part
		for i := range each {
			one.limits = append(one.limits, statedLimit{Limit{Workload: fmt.Sprintf("w%d", m*each+i)}, float64(m*each + i)})
		}
		one.unstated = 3
		g.add(one, nil)
	}
	all := g.stated()
	if len(all) != mostLimitsOfAll || g.unstated != machines*each-mostLimitsOfAll+3*machines {
		t.Fatalf("%d limits and %d left out", len(all), g.unstated)
	}
	for i, l := range all {
		if want := fmt.Sprintf("w%d", machines*each-1-i); l.Workload != want {
			t.Fatalf("limit %d is of %s, not of %s", i, l.Workload, want)
		}
	}
}
