// SPDX-License-Identifier: Apache-2.0

package stat

import "math"

// A Total adds up values with a compensation of the errors of rounding (Neumaier 1974), as the aggregation sum of PromQL does. The zero
// value is 0.
type Total struct{ sum, rest float64 }

// Add adds a value, which is finite.
func (t *Total) Add(v float64) {
	sum := t.sum + v
	if math.Abs(t.sum) >= math.Abs(v) {
		t.rest += (t.sum - sum) + v
	} else {
		t.rest += (v - sum) + t.sum
	}
	t.sum = sum
}

// Value returns the sum.
func (t *Total) Value() float64 { return t.sum + t.rest }
