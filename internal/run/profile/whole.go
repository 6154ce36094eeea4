// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseWhole reads CPU time: a time such as 5s, or a percentage of a CPU such as 5%.
func ParseWhole(s string) (Whole, error) {
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || !(v > 0 && v <= 1e6) {
			return Whole{}, fmt.Errorf("%q: use a percentage of a CPU, such as 5%%", s)
		}
		return Whole{int64(math.Round(v * 1e9)), "%"}, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return Whole{}, fmt.Errorf("%q: use a CPU time such as 5s or 1m30s, or a percentage of a CPU such as 5%%", s)
	}
	return Whole{int64(d), "ns"}, nil
}

// Shares is a whole of 100 %, for the shares themselves.
func Shares() Whole { return Whole{100e9, "%"} }

// Whole is the profile's own if its unit is one of time, and else unknown.
func (p *Profile) Whole() Whole {
	if ns, ok := p.Nanoseconds(); ok {
		return Whole{ns, "ns"}
	}
	return Whole{}
}

// Format formats an amount in the unit of the whole, with as many digits for all amounts.
func (w Whole) Format(amount int64) string {
	switch {
	case w.Unit == "":
		return "-"
	case w.Unit == "%":
		return fmt.Sprintf("%.3f %%", float64(amount)/1e9)
	case w.Amount >= 1e9:
		return fmt.Sprintf("%.3f s", float64(amount)/1e9)
	case w.Amount >= 1e6:
		return fmt.Sprintf("%.3f ms", float64(amount)/1e6)
	}
	return fmt.Sprintf("%.3f us", float64(amount)/1e3)
}
