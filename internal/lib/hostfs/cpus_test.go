// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{
		"0\n": {0}, "0-1\n": {0, 1}, "0,2-3,7\n": {0, 2, 3, 7},
		"": nil, "\n": nil, "x": nil, "3-1": nil, "1-": nil, "0,,1": nil, "99999999": nil,
	} {
		got, err := parseCPUs(list)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v (%v), want %v", list, got, err, want)
		}
	}
}
