// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// A running counter takes as many samples as its frequency says. The clock fires at most once in a period, also on a slow machine, so the
// limit is the number of periods and one for each CPU and change.
func TestTheFrequencyChangesWhileSamplesAreTaken(t *testing.T) {
	privilegetest.Alone(t)
	s, err := Open(Options{Frequency: 19, Event: Clock, Rows: 1024, Sys: hostfs.At("/sys")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := func() uint64 { n := s.Tallies(); return n.Taken + n.Idle }
	cpus, err := s.sys.CPUs("online")
	if err != nil {
		t.Fatal(err)
	}
	for _, hertz := range []int{0, 499, 19, 499, 0} {
		before, began := all(), time.Now() // samples of the time before may still be added
		if err := s.SetFrequency(hertz); err != nil {
			t.Fatal(err)
		}
		if hertz == 0 {
			before = all()
			time.Sleep(50 * time.Millisecond)
			if n := all() - before; n > uint64(len(cpus)) {
				t.Errorf("%d samples were taken by a counter that is stopped", n)
			}
			continue
		}
		for end := began.Add(30 * time.Second); all()-before < uint64(2*len(cpus)) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		n, passed := all()-before, time.Since(began).Seconds()
		if n < uint64(len(cpus)) || float64(n) > (passed*float64(hertz)+2)*float64(len(cpus)) {
			t.Errorf("%d samples in %.2f s on %d CPUs at %d Hz", n, passed, len(cpus), hertz)
		}
		t.Logf("%d samples in %.2f s on %d CPUs at %d Hz", n, passed, len(cpus), hertz)
	}
	for _, hertz := range []int{-1, MaxFrequency + 1} {
		if s.SetFrequency(hertz) == nil {
			t.Errorf("%d samples a second are accepted", hertz)
		}
	}
}
