// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const busiestThread = "teescope_busiest_thread_cpu_ratio"

// threadsAt are the CPU times of all threads directly before and after a scrape, from other files than the agent reads.
type threadsAt struct {
	samples
	before, after map[int]procThread
	begun, ended  time.Time
}

func threadsAround(t *testing.T, a *teescope, pid int) (one threadsAt) {
	t.Helper()
	one.begun = time.Now()
	one.before = threadsIn(t, pid)
	one.samples = a.scrape(t)
	one.after = threadsIn(t, pid)
	one.ended = time.Now()
	return one
}

// busiestBetween returns the bounds of the share of the time between two scrapes in which the busiest thread ran, and the
// least number of CPUs that all threads used. The agent reads each thread within the scrape, and its CPU time
// grows only. So the bounds hold on any machine. The agent reads user and system time in ticks.
func busiestBetween(from, to threadsAt) (low, high, cpus float64) {
	const ticks = 0.02
	shortest, longest := to.begun.Sub(from.ended).Seconds(), to.ended.Sub(from.begun).Seconds()
	for tid := range to.before {
		least := to.before[tid].cpu - from.after[tid].cpu
		low = max(low, (least-ticks)/longest)
		high = max(high, (to.after[tid].cpu-from.before[tid].cpu+ticks)/shortest)
		cpus += least / longest
	}
	return min(low, 1), min(high, 1), cpus
}

// One thread that computes beside threads that sleep, and four that take turns. On a busy machine each gets less than it
// could use, and the bounds are lower. Rounds with wide bounds, or in which the program got less than half a CPU, are not judged.
func TestTheBusiestThreadRanAsLongAsProcSays(t *testing.T) {
	for _, tt := range []struct {
		source, name string
		threads      int
	}{{"crowd", "e2ebusiest", 4}, {"contend", "e2eturns", 4}} {
		t.Run(tt.source, func(t *testing.T) {
			a := agent(t)
			p := held(t, prog(t, tt.source, tt.name), strconv.Itoa(tt.threads))
			pid := p.cmd.Process.Pid
			// Without these, fewer rounds are judged.
			_ = syscall.Setpriority(syscall.PRIO_PGRP, a.cmd.Process.Pid, -15)
			_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, -10)
			eventually(t, testLimit, "the threads to start", func() error {
				if n := a.scrape(t).sum("teescope_threads", "workload", tt.name); n < float64(tt.threads)+1 {
					return fmt.Errorf("there are %v", n)
				}
				return nil
			})
			judged, absent := 0, 0
			from := threadsAround(t, a, pid)
			for round := 0; round < 12 && judged < 2; round++ {
				time.Sleep(4 * time.Second)
				to := threadsAround(t, a, pid)
				low, high, cpus := busiestBetween(from, to)
				from = to
				switch {
				case t.Failed():
					return
				case cpus < 0.55 || high-low > 0.3:
					t.Logf("not judged: within %.3f and %.3f, of %.3f CPUs", low, high, cpus)
				case !to.has(busiestThread, "workload", tt.name):
					absent++ // in the first round, which thread it was is not certain
					t.Logf("absent, within %.3f and %.3f, of %.3f CPUs", low, high, cpus)
				default:
					judged++
					wantBetween(t, busiestThread, to.sum(busiestThread, "workload", tt.name), low, high)
				}
			}
			switch {
			case judged == 0 && absent < 6:
				t.Skip("this machine is too busy")
			case judged == 0:
				t.Errorf("%s is absent in %d rounds", busiestThread, absent)
			}
		})
	}
}
