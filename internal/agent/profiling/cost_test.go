// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"context"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// TestCost logs the cost of sampling. It checks nothing, because times on a shared machine differ.
func TestCost(t *testing.T) {
	if os.Getenv("PROFILING_COST") == "" {
		t.Skip("make bench-profiling measures the cost")
	}
	privilegetest.Alone(t)
	for _, hz := range []int{19, 99, 999} {
		running(t, hz)
	}
	const hz, pairs = 4999, 30
	for _, depth := range []int{1, 30, 100} {
		var costs []float64
		for range pairs {
			off := speed(depth)
			s := open(t, hz)
			on := speed(depth)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			costs = append(costs, (1-on/off)/hz*1e9)
		}
		slices.Sort(costs)
		t.Logf("%d frames: a sample takes %.0f ns of the sampled thread (%.0f to %.0f, n=%d), with the interrupt", depth+3, costs[pairs/2], costs[pairs/4], costs[3*pairs/4], pairs)
	}
}

func open(t *testing.T, hz int) *Sampler {
	t.Helper()
	s, err := Open(Options{Frequency: hz, Event: Clock, Sys: hostfs.At("/sys")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running measures the eBPF program with the kernel's own statistics, and the reading of the samples.
func running(t *testing.T, hz int) {
	s := open(t, hz)
	defer s.Close()
	const lasts = 20 * time.Second
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- bpf.SampleCosts(ctx, lasts) }()
	began, used := time.Now(), cpu(unix.RUSAGE_SELF)
	var deepest, stacks int
	for time.Since(began) < lasts {
		time.Sleep(100 * time.Millisecond)
		err := s.Drain(func(one *Sample) { deepest, stacks = max(deepest, len(one.User)+len(one.Kernel)), stacks+1 })
		if err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	reading := cpu(unix.RUSAGE_SELF) - used
	c := s.object.Costs()[0]
	each := float64(c.RunTime) / float64(c.Runs)
	t.Logf("%d Hz on %d CPUs, n=%d: the program takes %.0f ns, %.4f %% of a CPU; reading takes %.3f %% of a CPU; %+v, %d stacks of at most %d frames",
		hz, runtime.NumCPU(), c.Runs, each, 100*float64(c.RunTime)/float64(lasts), 100*reading.Seconds()/lasts.Seconds(), s.Tallies(), stacks, deepest)
}

func cpu(who int) time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(who, &r) // it cannot fail
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

//go:noinline
func spin(depth int) (n float64) {
	if depth > 1 {
		n = spin(depth - 1)
		return n
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var began, now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &began) // it cannot fail
	x := uint64(1)
	for time.Duration(now.Nano()-began.Nano()) < 300*time.Millisecond {
		for range 100_000 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		n++
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	}
	return n / float64(now.Nano()-began.Nano()+int64(x&1))
}

// speed is the work of a thread per unit of its CPU time. The CPU time includes interrupts.
func speed(depth int) float64 { return spin(depth) }
