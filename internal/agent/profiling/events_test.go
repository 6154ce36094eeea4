// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
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

// One sampler takes samples of several events, one after the other. What an earlier event has left does not count, also a call that
// has not ended in between.
func TestEventsTakeTurns(t *testing.T) {
	privilegetest.Alone(t)
	s, err := Open(Options{Ready: []Event{SystemCalls, OffCPU, OCalls, ECalls, AEX}, Entries: 1024, Sys: hostfs.At("/sys")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(Clock); err == nil {
		t.Error("it takes samples of an event that was not loaded")
	}
	call := func(n int) {
		for range n {
			_ = os.Getppid()
		}
	}
	own := func() (samples, longest uint64) {
		if err := s.Drain(func(one *Sample) {
			if one.PID == os.Getpid() {
				samples += one.Samples
				longest = max(longest, one.Events/one.Samples)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return samples, longest
	}
	call(100)
	if n, _ := own(); n != 0 {
		t.Errorf("%d samples before the first event", n)
	}
	for range 2 {
		if err := s.Begin(SystemCalls); err != nil {
			t.Fatal(err)
		}
		call(1000)
		if n, _ := own(); n < 1000 {
			t.Errorf("%d samples of 1000 calls", n)
		}
		// A call goes on while the event ends and begins again.
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		calls := s.object.Map("calling")
		go func() {
			_, err := unix.Read(int(read.Fd()), make([]byte, 1))
			ended <- err
		}()
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
		call(1000)
		lost := s.Tallies().LostSamples
		if err := s.Begin(OffCPU); err != nil {
			t.Fatal(err)
		}
		if n := s.Tallies().LostSamples; n > lost {
			t.Errorf("%d calls that had not ended count as lost", n-lost)
		}
		if _, err := write.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := s.Drain(func(one *Sample) {
			if one.Call >= 0 {
				t.Errorf("a wait has the system call %d", one.Call)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
		if err := bpf.Each(calls, func(tid uint32, _ []byte) { t.Errorf("the call of thread %d is remembered", tid) }); err != nil {
			t.Error(err)
		}
		_ = errors.Join(read.Close(), write.Close())
	}
	call(1000)
	if n, _ := own(); n > 1000 {
		t.Errorf("%d samples after the end", n)
	}
}
