// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"testing"
	"time"
)

func TestSpending(t *testing.T) {
	at := time.Unix(1000, 0)
	s := Spending{Budget: 0.01, CPUs: 4}
	for _, step := range []struct {
		name    string
		seconds int
		spent   time.Duration
		share   float64
		over    bool
	}{
		{"nothing is known before the first look", 0, 500 * time.Second, 0, false},
		{"0.2 s in 5 s of 4 CPUs are 1 %", 5, 500*time.Second + 200*time.Millisecond, 0.01, false},
		{"what was counted is gone", 10, time.Second, 0, false},
		{"0.4 s in 10 s are 1 %", 20, 1400 * time.Millisecond, 0.01, false},
		{"0.3 s in 5 s are 1.5 %", 25, 1700 * time.Millisecond, 0.015, true},
		{"a clock that stands still", 25, 9 * time.Second, 0, false},
	} {
		share, over := s.Exceeded(at.Add(time.Duration(step.seconds)*time.Second), step.spent)
		if over != step.over || share < step.share-1e-9 || share > step.share+1e-9 {
			t.Errorf("%s: %v, %v; want %v, %v", step.name, share, over, step.share, step.over)
		}
	}
	unlimited := Spending{Budget: 1, CPUs: 1}
	unlimited.Exceeded(at, 0)
	if share, over := unlimited.Exceeded(at.Add(time.Second), 2*time.Second); over || share != 2 {
		t.Errorf("without a limit: %v, %v", share, over)
	}
}
