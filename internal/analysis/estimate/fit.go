// SPDX-License-Identifier: Apache-2.0

package estimate

import "math"

// Part returns the saving with its ends multiplied by these parts, or nil if nothing remains.
func (s *Saving) Part(low, high float64) *Saving {
	if s == nil {
		return nil
	}
	return Saves(s.Low*min(low, high), s.High*high, s.Assumptions...)
}

// FitSavings limits savings of one workload to the cores that it uses: the upper ends together are at most that. Each
// interval keeps its place, and all become narrower by the same part. It reports whether it has changed any.
func FitSavings(cores float64, all []*Saving) bool {
	lows, highs := make([]float64, len(all)), make([]float64, len(all))
	for i, s := range all {
		lows[i], highs[i] = s.Low, s.High
	}
	if !fit(cores, lows, highs) {
		return false
	}
	for i, s := range all {
		s.Low, s.High = lows[i], highs[i]
	}
	return true
}

// FitGains limits gains of one workload in the same way: together they remove at most [MaxShare] of the time. It reports
// whether it has changed any.
func FitGains(all []*Gain) bool {
	share := func(gain float64) float64 { return gain / (1 + gain) }
	lows, highs, sure := make([]float64, len(all)), make([]float64, len(all)), make([]float64, len(all))
	for i, g := range all {
		lows[i], highs[i], sure[i] = share(g.Low), share(g.High), share(g.Sure())
	}
	if !fit(MaxShare, lows, highs) {
		return false
	}
	for i, g := range all {
		g.Low, g.High, g.sure = more(lows[i]), more(highs[i]), more(min(max(sure[i], lows[i]), highs[i]))
	}
	return true
}

// fit changes intervals so that their upper ends add up to at most total.
func fit(total float64, lows, highs []float64) bool {
	var low, high float64
	for i := range lows {
		low, high = low+lows[i], high+highs[i]
	}
	if math.IsNaN(total) || high <= total*(1+1e-9) {
		return false
	}
	part, spread := 1.0, 0.0
	if low > total {
		part = total / low
	} else if high > low {
		spread = (total - low) / (high - low)
	}
	for i := range lows {
		highs[i] = part*lows[i] + spread*(highs[i]-lows[i])
		lows[i] *= part
	}
	return true
}
