// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"
	"time"
)

// Spending compares the CPU time of programs that cannot be sampled with a budget.
type Spending struct {
	Budget float64 // share of the machine's CPU time; 1 and more is no limit
	CPUs   int
	since  time.Time
	spent  time.Duration
}

// Exceeded reports whether the programs took more than the budget since the last call, and their share of the machine's CPU time.
// spent is their total CPU time until now.
func (s *Spending) Exceeded(now time.Time, spent time.Duration) (share float64, over bool) {
	elapsed, more := now.Sub(s.since), spent-s.spent
	first := s.since.IsZero()
	s.since, s.spent = now, spent
	if first || elapsed <= 0 || more < 0 {
		return 0, false
	}
	share = more.Seconds() / (elapsed.Seconds() * float64(s.CPUs))
	return share, s.Budget < 1 && share > s.Budget
}

// Reason says why counting has stopped after the programs took a share of the machine's CPU time.
func (s *Spending) Reason(share float64) string {
	return fmt.Sprintf("counting took %.1f %% of the machine's CPU time, more than overhead.budget (%.1f %%): raise it and start the agent again", 100*share, 100*s.Budget)
}
