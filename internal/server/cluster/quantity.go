// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"
	"strconv"
	"strings"
)

// quantity reads a quantity of Kubernetes, such as 512Ki, 10M or 1e6, as the API server writes it.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
func quantity(s string) (float64, bool) {
	factor := 1.0
	for i, unit := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		if digits, ok := strings.CutSuffix(s, unit); ok {
			s, factor = digits, math.Pow(1024, float64(i+1))
			break
		}
	}
	for unit, by := range map[string]float64{"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18} {
		if digits, ok := strings.CutSuffix(s, unit); ok && factor == 1 {
			s, factor = digits, by
			break
		}
	}
	if strings.ContainsAny(s, "xX_pPnN") { // notations of Go
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || math.IsInf(v*factor, 0) {
		return 0, false
	}
	return v * factor, true
}
