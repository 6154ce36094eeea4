// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/promql"
)

// Queries about the CPU time of workloads. Rules have signals with the same text, so each runs once.
const (
	CPUQuery     = `sum by (workload, instance) (rate(teescope_cpu_seconds_total[$window]))`
	ThreadsQuery = `sum by (workload, instance) (teescope_threads)`
	BusiestQuery = `max by (workload, instance) (avg_over_time(teescope_busiest_thread_cpu_ratio[$window]))`
	WaitQuery    = `sum by (workload, instance) (rate(teescope_run_queue_wait_seconds_total[$window]))`
	// Unthrottled ends queries about throttling. The counters are absent without a quota, so a container without them is not throttled.
	// Otherwise a quota that is removed within the window would count until the window has passed.
	Unthrottled = ` or 0 * rate(container_cpu_usage_seconds_total[$window])`
	CoresQuery  = `count by (instance) (node_cpu_seconds_total{mode="idle"})`
	ExitsQuery  = `sum by (workload, instance) (rate(teescope_enclave_transitions_total{kind="eexit"}[$window]))`
	AsyncQuery  = `sum by (workload, instance) (rate(teescope_enclave_transitions_total{kind="aex"}[$window]))`
	IdleQuery   = `sum by (instance) (rate(node_cpu_seconds_total{mode="idle"}[$window]))`
)

// ThrottledQuery is the share of the CPU periods in which the quota of a workload's container ran out.
var ThrottledQuery = `max by (workload, instance) ((rate(container_cpu_cfs_throttled_periods_total[$window]) / ` +
	`(rate(container_cpu_cfs_periods_total[$window]) > 0)` + Unthrottled + `) * on (instance, id) group_left (workload) ` +
	promql.Newest("teescope_container_info", "instance", "id") + `)`

const (
	// ScarceIdle is the largest idle share of the machine's CPUs at which they count as scarce. Proposed.
	ScarceIdle = 0.10
	// ScarceWait is the least ratio of time waited for a CPU to CPU time used, for threads that compete for CPUs.
	// Proposed.
	ScarceWait = 0.25
	// pinnedWait is the same ratio where other CPUs of the machine are idle, which the threads may not use. Proposed.
	pinnedWait = 0.5
	// ThrottledPeriods is the least share of CPU periods that are throttled. Documented (kubernetes-mixin,
	// CPUThrottlingHigh).
	ThrottledPeriods = 0.25
	// busyThread is the least share of the time for which a thread at its limit runs. Proposed: below 1 because a server
	// at its limit still waits for packets, and above the 0.8 at which response times are five times those of an idle server
	// (M/M/1: 1/(1-0.8)).
	busyThread = 0.85
)

// Load is the CPU time that a workload uses and waits for, and its exits from the enclave, over the window. Missing values
// are NaN.
type Load struct {
	Cores     float64 // used
	Threads   float64
	Busiest   float64 // share of the time for which its busiest thread runs
	Wait      float64 // threads that wait for a CPU, on average
	Throttled float64 // share of the CPU periods in which the quota stopped the container
	CPUs      float64 // of the machine
	Idle      float64 // CPUs of the machine that are idle
	Exits     float64 // from the enclave, per second
	Async     float64 // asynchronous exits, per second

	open bool // the finding that requests the limit is open
}

// UnknownLoad is the load of a workload without measurements.
func UnknownLoad() Load {
	nan := math.NaN()
	return Load{Cores: nan, Threads: nan, Busiest: nan, Wait: nan, Throttled: nan, CPUs: nan, Idle: nan, Exits: nan, Async: nan}
}

// Limit returns what limits the throughput of the workload, or nothing if no measurement shows a limit. waiting is the
// number of threads that the cause keeps waiting outside the CPU, such as for enclave pages. spinning means that the cause
// itself keeps threads busy, so that busy threads show no limit.
func (l Load) Limit(waiting float64, spinning bool) string {
	scarce := l.least(l.Idle) <= ScarceIdle*l.CPUs
	switch busy := l.Cores + waiting; {
	case l.Throttled >= l.least(ThrottledPeriods):
		return fmt.Sprintf("its CPU quota, which stops it in %.0f %% of the periods", 100*l.Throttled)
	case scarce && l.Wait >= l.least(ScarceWait)*l.Cores:
		return fmt.Sprintf("the CPUs of the machine: %s threads wait for one", short(l.Wait))
	case l.Wait >= l.least(pinnedWait)*l.Cores:
		return fmt.Sprintf("the CPUs that its threads may use: %s threads wait for one", short(l.Wait))
	case spinning:
		return ""
	case l.Threads >= 1 && busy >= l.least(busyThread)*l.Threads:
		return fmt.Sprintf("its threads: they are busy for %.0f %% of the time", min(100, 100*busy/l.Threads))
	case l.Busiest+waiting >= l.least(busyThread):
		return fmt.Sprintf("its busiest thread, which runs for %.0f %% of the time", 100*l.Busiest)
	}
	return ""
}

// Confined reports whether idle CPUs of the machine are not for the workload: its quota stops it, or its threads wait for CPUs
// while others are idle.
func (l Load) Confined() bool {
	scarce := l.least(l.Idle) <= ScarceIdle*l.CPUs
	return l.Throttled >= l.least(ThrottledPeriods) || !scarce && l.Wait >= l.least(pinnedWait)*l.Cores
}

func short(x float64) string { return fmt.Sprintf("%.2g", x) }

// loads holds the answers about the load, in the order of the fields of [Load].
type loads [9]string

// readLoads runs the queries about the load that no rule has run.
func readLoads(q *inquiry, found answers) loads {
	var l loads
	for i, text := range []string{CPUQuery, ThreadsQuery, BusiestQuery, WaitQuery, ThrottledQuery, CoresQuery, IdleQuery, ExitsQuery, AsyncQuery} {
		l[i] = q.expr(text)
		if _, asked := found[l[i]]; !asked {
			found[l[i]] = q.own(text)
		}
	}
	return l
}

// load returns the load of a workload.
func (s scene) load(t query.Target) Load {
	if known, ok := s.loadOf[t]; ok {
		return known
	}
	var v [len(s.loads)]float64
	for i, expr := range s.loads {
		v[i] = math.NaN()
		samples, _ := s.samples(s.answers[expr], t)
		for j, one := range samples {
			if j == 0 {
				v[i] = 0
			}
			v[i] += one.Value
		}
	}
	l := Load{Cores: v[0], Threads: v[1], Busiest: v[2], Wait: v[3], Throttled: v[4], CPUs: v[5], Idle: v[6], Exits: v[7], Async: v[8]}
	s.loadOf[t] = l
	return l
}
