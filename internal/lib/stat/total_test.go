// SPDX-License-Identifier: Apache-2.0

package stat

import "testing"

// TestTotal: without the compensation the sum would be 0.
func TestTotal(t *testing.T) {
	var sum Total
	for _, v := range []float64{1, 1e100, 1, -1e100} {
		sum.Add(v)
	}
	if sum.Value() != 2 {
		t.Errorf("the sum is %v, want 2", sum.Value())
	}
}
