// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"testing"
	"time"
)

// A program that restarts with another value each time creates no series after its twelfth value until it stops. The settings of
// its workload are then absent, because they are unknown.
func TestSettingsThatChangeOftenAreAbsent(t *testing.T) {
	processes := []Main{start(t, "GOGC=50"), start(t, "GOGC=60")}
	at, now := 0, time.Now()
	c := New(Options{Proc: "/proc", Names: []string{"GOGC"}, Mains: func() []Main { return processes[at : at+1] }})
	c.now = func() time.Time { return now }
	for n := 1; n <= 40; n++ {
		at = n % 2
		now = now.Add(time.Second)
		got, number := scrape(t, c)
		want := fmt.Sprint(50 + 10*at)
		if n <= mostChanges && (got["GOGC"] != want || number != 1) || n > mostChanges && (len(got) != 0 || number != -1) {
			t.Fatalf("after %d changes there are %v settings: %q", n, number, got)
		}
	}
	now = now.Add(changesIn - mostChanges*time.Second - time.Millisecond)
	if got, number := scrape(t, c); len(got) != 0 || number != -1 {
		t.Errorf("within an hour of the thirteenth last change there are %v settings: %q", number, got)
	}
	now = now.Add(time.Millisecond)
	if got, number := scrape(t, c); got["GOGC"] != "50" || number != 1 {
		t.Errorf("after an hour there are %v settings: %q", number, got)
	}
}

// The memory is bounded, and workloads that have ended free their places.
func TestWorkloadsWithSettingsAreBounded(t *testing.T) {
	c, now := changes{}, time.Now()
	for n := range mostWorkloads + 10 {
		if got := c.steady(fmt.Sprint(n), nil, now); got != (n < mostWorkloads) {
			t.Fatalf("workload %d is exported: %v", n, got)
		}
	}
	for range 100 {
		c.steady("0", map[string]string{"A": fmt.Sprint(now)}, now)
		now = now.Add(time.Second)
	}
	if n := len(c["0"].changed); n != mostChanges+1 {
		t.Errorf("%d times are kept", n)
	}
	now = now.Add(changesIn - 50*time.Second)
	c.tidy(now)
	if len(c) != 1 || !c.steady("another", nil, now) {
		t.Errorf("%d workloads are remembered, want 1", len(c))
	}
}
