// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 0.00004: "<0.01 %", 0.0004: "0.04 %", 0.004: "0.4 %", 0.034: "3.4 %", 0.0995: "10 %", 0.5: "50 %", 0.998: "100 %",
		0.9995: ">99.9 %", 1: "100 %", 12.5: "1250 %", -0.25: "-25 %",
	} {
		if got := Percent(share); got != want {
			t.Errorf("%v is %q, want %q", share, got, want)
		}
	}
}
