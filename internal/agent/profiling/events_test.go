// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"os"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// A call or wait whose beginning the kernel has forgotten is a lost sample. The kernel forgets those of threads when there are too
// many. Here user space does it, when nothing else changes the map.
func TestForgottenBeginningsAreLost(t *testing.T) {
	privilegetest.Alone(t)
	for event, name := range ongoing {
		s, err := Open(Options{Event: event, Sys: hostfs.At("/sys")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		threads := func() (all []uint32) {
			var thread uint32
			var begun []byte
			for entries := s.object.Map(name).Iterate(); entries.Next(&thread, &begun); {
				all = append(all, thread)
			}
			return all
		}
		for len(threads()) < 3 || s.Tallies().Taken < 100 { // calls continue, and others have ended
			time.Sleep(10 * time.Millisecond)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(time.Minute); s.Tallies().LostSamples > 0 && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond) // until the last programs have ended
		}
		before, all := s.Tallies().LostSamples, threads()
		for i, thread := range all[:2] {
			if err := s.object.Map(name).Delete(thread); err != nil {
				t.Fatal(err)
			}
			if n := s.Tallies().LostSamples - before; n != uint64(i+1) {
				t.Errorf("%s: %d samples are lost after %d beginnings", event, n, i+1)
			}
		}
		if before != 0 {
			t.Errorf("%s: %d samples are lost at first, with %d calls that go on", event, before, len(all))
		}
	}
}

// TestIgnoredProcessesHaveNoSamples ignores this process, as soon as it has a sample. Then it has no more, although it runs.
func TestIgnoredProcessesHaveNoSamples(t *testing.T) {
	privilegetest.Alone(t)
	for _, ignores := range []bool{false, true} {
		s, err := Open(Options{Frequency: 997, Event: Clock, Ignores: ignores, Sys: hostfs.At("/sys")})
		if err != nil {
			t.Fatal(err)
		}
		own := Process{}
		drain := func() (n uint64) {
			spin(1)
			err := s.Drain(func(one *Sample) {
				if one.PID == os.Getpid() {
					own, n = one.Process, n+one.Samples
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for drain() == 0 {
		}
		if err := s.Ignore(own); err != nil {
			t.Fatal(err)
		}
		drain() // those that were taken before
		if n := drain(); (n == 0) != ignores {
			t.Errorf("%d samples of an ignored process, with %v", n, ignores)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
