// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"math"
)

// Figure formats a value with three digits.
func Figure(v float64) string {
	if v == 0 || math.Abs(v) >= 0.001 && math.Abs(v) < 1e15 {
		digits := max(0, 2-int(math.Floor(math.Log10(max(math.Abs(v), 0.001)))))
		return fmt.Sprintf("%.*f", min(digits, 5), v)
	}
	return fmt.Sprintf("%.2e", v)
}
