// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// The buckets are those of the bounds that are emitted: a wait is below the first bound that it does not reach.
func TestAWaitIsBelowItsBound(t *testing.T) {
	for _, ns := range []uint64{0, 1, 4095, 4096, 8191, 8192, 1 << 29, 1<<30 - 1, 1 << 30, math.MaxUint64} {
		var r row
		r.Waits[waitBucket(ns)] = 3
		upTo, n := metric.Cumulated(r.Waits[:])
		bounds := newFamilies().latency.workload.Bounds
		if n != 3 || len(upTo) != waits-1 || len(bounds) != len(upTo) {
			t.Fatalf("%d ns: %d waits with %d of %d bounds", ns, n, len(upTo), len(bounds))
		}
		for i, count := range upTo {
			if below := float64(ns) < math.Round(bounds[i]*1e9); (count == 3) != below || !below && count != 0 {
				t.Errorf("%d ns: %d waits up to %v s", ns, count, bounds[i])
			}
		}
	}
}

// A kernel without CONFIG_SCHED_INFO measures no waits. They are absent then, not zero.
func TestWaitsThatAreNotMeasuredAreAbsent(t *testing.T) {
	c := populated(t, 1, 1, 1)
	for _, measured := range []bool{true, false} {
		c.kernel.waits = measured
		text := string(exposition(t, c))
		for _, name := range []string{"teescope_run_queue_wait_seconds_total", "teescope_run_queue_latency_seconds_count"} {
			if has := strings.Contains(text, name+"{"); has != measured {
				t.Errorf("measured: %v, %s is there: %v", measured, name, has)
			}
		}
	}
}

// waited returns the histogram of the waits of a workload.
func waited(t *testing.T, c *Collector, workload string) *dto.Histogram {
	t.Helper()
	var found *dto.Histogram
	err := c.Collect(context.Background(), func(m prometheus.Metric) {
		var d dto.Metric
		if !strings.Contains(m.Desc().String(), `"teescope_run_queue_latency_seconds"`) {
			return
		}
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		for _, l := range d.Label {
			if l.GetName() == "workload" && l.GetValue() == workload {
				found = d.Histogram
			}
		}
	})
	if err != nil || found == nil {
		t.Fatalf("%s has no histogram of waits: %v", workload, err)
	}
	return found
}

// schedstat adds up what /proc/PID/task/*/schedstat says of the threads of a process: the seconds in which they waited for
// a CPU, and how often they got one.
func schedstat(t *testing.T, pid int) (waited, slices float64) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("process %d has no schedstat: %v", pid, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var ran, delay, count float64
		if _, err := fmt.Sscan(string(text), &ran, &delay, &count); err != nil {
			t.Fatal(err)
		}
		waited, slices = waited+delay/1e9, slices+count
	}
	return waited, slices
}

// pinned restricts this thread, and so what it starts, to one CPU until the test ends.
func pinned(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.SchedSetaffinity(0, &all); runtime.UnlockOSThread() })
}

// bothWaits are the waits of a process by the kernel and by the collector, when none of its threads ran.
type bothWaits struct{ waited, slices, sum, count, lost float64 }

func whileAsleep(t *testing.T, c *Collector, pid int, workload string) (at bothWaits) {
	t.Helper()
	waittest.Until(t, "the program to sleep", func() bool {
		at.waited, at.slices = schedstat(t, pid)
		h := waited(t, c, workload)
		at.sum, at.count = h.GetSampleSum(), float64(h.GetSampleCount())
		at.lost = sum(scrape(t, c), "teescope_attribution_lost_total", "what", "switches")
		_, after := schedstat(t, pid)
		return after == at.slices
	})
	return at
}

// Threads that compete for a CPU wait as often and as long as the kernel's schedstat says, to the nanosecond. They have one
// CPU: a wait that ends on another one counts with its last part. A switch that the eBPF program did not see has no wait.
// Such a switch is counted for the whole machine, so at most that many waits may be missing. The comparison is repeated
// until none is, because a busy machine may always have one.
//
// False alarms: none. Both sides are read while the program sleeps.
func TestWaitsAreThoseOfSchedstat(t *testing.T) {
	c := start(t, Options{})
	pinned(t)
	p := converse(t, job(program(t, "competes"), "compete", ""))
	pid, workload := p.cmd.Process.Pid, unique("competes")
	p.say("1")
	for range 10 {
		before := whileAsleep(t, c, pid, workload)
		p.say("100")
		after := whileAsleep(t, c, pid, workload)
		wantWaited, wantN := after.waited-before.waited, after.slices-before.slices
		got, n, lost := after.sum-before.sum, after.count-before.count, after.lost-before.lost
		t.Logf("%v of %v waits, %.6f of %.6f s; %v switches of the machine were not seen", n, wantN, got, wantWaited, lost)
		if wantWaited < 0.05 || wantN < 300 {
			t.Fatal("the threads do not compete")
		}
		if missing := wantN - n; missing < 0 || missing > lost || got > wantWaited+1e-6 {
			t.Fatal("more waits are missing than switches, or there are too many")
		} else if missing == 0 {
			if math.Abs(got-wantWaited) > 1e-6 {
				t.Fatal("the waits have another length")
			}
			return
		}
	}
}
