// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/promql"
)

// leastBusy is the least CPU time, in cores, that a workload must use to be judged by its rates. Below it, the cost of
// any event is a large share of almost nothing. Proposed.
const leastBusy = 0.05

// perSecond returns the rate of a counter by workload and further labels. The selector is the metric's name with
// matchers.
func perSecond(selector string, labels ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$window]))", strings.Join(append([]string{"workload", "instance"}, labels...), ", "), selector)
}

// machinePerSecond returns the rate of a counter of the machine by labels.
func machinePerSecond(selector string, labels ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$window]))", strings.Join(append([]string{"instance"}, labels...), ", "), selector)
}

// ofContainer adds the label workload to a query on a metric of containers.
func ofContainer(aggregate, query string) string {
	return fmt.Sprintf("%s by (workload, instance) ((%s) * on (instance, id) group_left (workload) %s)", aggregate, query,
		promql.Newest("teescope_container_info", "instance", "id"))
}

// ofEnclave adds the label workload to a query on a metric of enclaves. at is the modifier of its selectors.
func ofEnclave(query, at string) string {
	return query + " * on (instance, enclave, pid) group_left (workload) " + promql.Newest("sgx_enclave_info"+at, "instance", "enclave", "pid")
}

// Signals that several rules read.
var (
	teeSignal = engine.Signal{
		Name: "tee", Query: "max by (workload, instance, tee, runtime) (teescope_workload_info)",
		Help: "TEE and runtime of the workload",
	}
	cpuSignal = engine.Signal{
		Name: "cpu", Query: engine.CPUQuery, Unit: "cores", Help: "CPU time of the workload",
	}
	coresSignal = engine.Signal{
		Name: "cores", Query: engine.CoresQuery, Unit: "cores", Help: "CPUs of the machine",
	}
	idleSignal = engine.Signal{
		Name: "idle", Query: engine.IdleQuery, Unit: "cores", Help: "idle CPUs",
	}
	waitSignal = engine.Signal{
		Name: "wait", Query: engine.WaitQuery, Unit: "threads",
		Help: "threads of the workload that waited for a CPU, on average",
	}
	exitsSignal = engine.Signal{
		Name: "exits", Query: engine.ExitsQuery, Unit: "1/s", Help: "exits from the enclave",
	}
	allCallsSignal = engine.Signal{
		Name: "calls", Query: perSecond("teescope_syscalls_total"), Unit: "1/s", Help: "system calls",
	}
	missesSignal = engine.Signal{
		Name: "misses", Query: perSecond("teescope_llc_misses_total"), Unit: "1/s", Help: "last-level cache misses",
	}
	migrationsSignal = engine.Signal{
		Name: "migrations", Query: perSecond("teescope_cpu_migrations_total"), Unit: "1/s", Help: "moves of threads to another CPU",
	}
	threadsSignal = engine.Signal{
		Name: "threads", Query: engine.ThreadsQuery, Unit: "threads", Help: "threads of the workload",
	}
	threadStartsSignal = engine.Signal{
		Name: "starts", Query: perSecond("teescope_thread_starts_total"), Unit: "1/s", Help: "threads created",
	}
	majorFaultsSignal = engine.Signal{
		Name: "major", Query: perSecond(`teescope_page_faults_handled_total{type="major"}`), Unit: "1/s", Help: "page faults that waited for a device",
	}
	forksSignal = engine.Signal{
		Name: "forks", Query: perSecond("teescope_forks_total"), Unit: "1/s", Help: "processes created",
	}
)

// figures reads signals, each as the sum of its samples. It returns false when one of them was not measured.
func figures(w engine.Workload, signals ...engine.Signal) (v map[engine.Signal]float64, ok bool) {
	v = make(map[engine.Signal]float64, len(signals))
	for _, signal := range signals {
		value, measured := w.Value(signal)
		if !measured {
			return nil, false
		}
		v[signal] = value
	}
	return v, true
}

// figure formats a number for a sentence: without decimals from 10 on, and with a comma between thousands.
func figure(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2g", x)
	}
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
