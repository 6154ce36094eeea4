// SPDX-License-Identifier: Apache-2.0

package sampling

import "time"

// edge is a moment in a cycle at which the window opens or closes.
type edge struct {
	at   time.Duration // time since the beginning of the cycle
	open bool
}

// windowEdges puts one window into a cycle at a random phase. A window that begins late continues at the beginning of the
// same cycle. So every moment of a cycle is equally likely to be in the window, for a load of any period.
func windowEdges(cycle, window time.Duration, phase float64) []edge {
	start := time.Duration(phase * float64(cycle))
	end := start + window
	if end <= cycle {
		return []edge{{0, false}, {start, true}, {end, false}}
	}
	return []edge{{0, true}, {end - cycle, false}, {start, true}}
}
