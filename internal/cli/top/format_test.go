// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		write func(float64) string
		v     float64
		want  string
	}{
		{number, math.NaN(), "-"}, {number, 0, "0"}, {number, 0.04, "0.0"}, {number, 9.94, "9.9"}, {number, 9.96, "10"},
		{number, 999, "999"}, {number, 999.6, "1.00k"}, {number, 12345, "12.3k"}, {number, 999499, "999k"}, {number, 1e6, "1.00M"},
		{number, 999.6e3, "1.00M"}, {number, 1e30, "1000000000000E"},
		{count, math.NaN(), "-"}, {count, 9999, "9999"}, {count, 10000, "10.0k"},
		{percent, math.NaN(), "-"}, {percent, 0, "0"}, {percent, 0.5, "50.0"}, {percent, 0.9996, "100"}, {percent, 64, "6400"},
		{size, math.NaN(), "-"}, {size, 0, "0"}, {size, 4096, "4.00K"}, {size, 1 << 20, "1.00M"}, {size, 1000 << 20, "0.98G"},
		{seconds, math.NaN(), "-"}, {seconds, 2.5e-6, "2.5 µs"}, {seconds, 0.0125, "12.5 ms"}, {seconds, 3, "3 s"},
	} {
		if got := tt.write(tt.v); got != tt.want {
			t.Errorf("%v is written %q, want %q", tt.v, got, tt.want)
		}
	}
}

// Names are cut by columns on the screen, not by bytes or letters.
func TestFitting(t *testing.T) {
	for _, s := range []string{"", "a", "workload", "日本語のプログラム", "é́", "👩‍🚀 rocket"} {
		for width := range 12 {
			for _, got := range []string{left(s, width), right(s, width)} {
				if w := ansi.StringWidth(got); w != width {
					t.Errorf("%q in %d columns takes %d", s, width, w)
				}
			}
		}
	}
}
