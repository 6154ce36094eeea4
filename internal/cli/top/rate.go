// SPDX-License-Identifier: Apache-2.0

package top

import (
	"github.com/teescope/teescope/internal/lib/teelabel"
	"math"
	"time"
)

// Table holds the changes between two samples.
type rateTable struct {
	At        time.Time
	Over      time.Duration // between the samples; 0 when there is only one
	Restarted bool          // the agent was restarted between the samples, so there are no rates
	Rows      []rateRow
	TEE       bool               // a workload runs in a TEE, or there are metrics of the machine's enclaves
	Enclaves  map[Series]float64 // of the machine: rates of counters, values of gauges
	VMs       []vmRow
}

// rateRow is one workload or one watched process between two samples. Values that were not measured are NaN.
type rateRow struct {
	Key
	Process                                             // of a watched process
	Kind, TEE, Runtime                                  string
	CPU, Calls, Voluntary, Involuntary, Faults, Waiting float64 // per second; CPU and Waiting as a fraction of one CPU
	Resident, Processes, Threads                        float64
	Rates                                               map[Series]float64 // of each counter
	Values                                              map[Series]float64 // of each gauge
	Watched                                             []rateRow
}

// restartSlack is how much an agent's start time may vary, because the kernel computes it from the clock.
const restartSlack = 2

// restarted reports whether the agent was restarted between two samples. Its start time shows it. Without a start time,
// the counters of the reserved workloads do, because these exist as long as the agent.
func restarted(before, after *Sample) bool {
	if before.Started != 0 && after.Started != 0 && math.Abs(after.Started-before.Started) > restartSlack {
		return true
	}
	for _, name := range []string{"kernel", "idle", "other"} {
		b, a := before.Workloads[Key{Workload: name}], after.Workloads[Key{Workload: name}]
		if b != nil && a != nil && fell(b.Values, a.Values) {
			return true
		}
	}
	return false
}

// fell reports whether a counter is lower than before, so that it began again from zero.
func fell(before, after map[Series]float64) bool {
	for s, v := range before {
		if now, ok := after[s]; ok && isCounter(s.Family) && now < v {
			return true
		}
	}
	return false
}

// compare returns the table of two samples. before may be nil.
func compare(before, after *Sample) rateTable {
	t := rateTable{At: after.At, TEE: len(after.Enclaves) > 0}
	if before != nil {
		t.Restarted = restarted(before, after)
		t.Over = after.At.Sub(before.At)
	}
	if t.Restarted || t.Over <= 0 {
		before, t.Over = nil, 0
	}
	for key, w := range after.Workloads {
		var old *Workload
		if before != nil {
			old = before.Workloads[key]
		}
		row := compareWorkload(key, old, w, t.Over, after.Attached)
		t.TEE = t.TEE || teelabel.Kind(row.TEE).IsTEE()
		t.Rows = append(t.Rows, row)
	}
	var old map[Series]float64
	var vms map[string]*VM
	if before != nil {
		old, vms = before.Enclaves, before.VMs
	}
	t.VMs = compareVMs(vms, after.VMs, t.Over)
	t.Enclaves = rates(old, after.Enclaves, t.Over)
	for s, v := range after.Enclaves {
		if !isCounter(s.Family) {
			t.Enclaves[s] = v
		}
	}
	return t
}

func compareWorkload(key Key, before, after *Workload, over time.Duration, attached map[string]bool) rateRow {
	var old map[Series]float64
	if before != nil {
		old = before.Values
	}
	row := newRow(old, after.Values, over, attached)
	row.Key, row.Kind, row.TEE, row.Runtime = key, after.Kind, after.TEE, after.Runtime
	for p, values := range after.Processes {
		var old map[Series]float64
		if before != nil {
			old = before.Processes[p]
		}
		watched := newRow(old, values, over, attached)
		watched.Process = p
		row.Watched = append(row.Watched, watched)
	}
	return row
}

// rates returns the rate of each counter. A missing counter had the value zero, which the agent does not export. An
// example is a system call that had not been called yet. When a counter fell, all counters began again from zero, and
// there are no rates.
func rates(before, after map[Series]float64, over time.Duration) map[Series]float64 {
	r := map[Series]float64{}
	if before == nil || over <= 0 || fell(before, after) {
		return r
	}
	for s, v := range after {
		if rate := (v - before[s]) / over.Seconds(); isCounter(s.Family) && known(rate) {
			r[s] = rate
		}
	}
	return r
}

func newRow(before, after map[Series]float64, over time.Duration, attached map[string]bool) rateRow {
	row := rateRow{Rates: rates(before, after, over), Values: map[Series]float64{}}
	for s, v := range after {
		if !isCounter(s.Family) {
			row.Values[s] = v
		}
	}
	compared := before != nil && over > 0 && !fell(before, after)
	row.CPU = sum(row.Rates, cpuSeconds)
	row.Waiting = sum(row.Rates, runQueueWait)
	row.Calls = orZero(sum(row.Rates, syscalls), compared && attached["syscall"])
	row.Faults = orZero(sum(row.Rates, faults), compared && (attached["page_fault_user"] || attached["page_fault_kernel"]))
	row.Voluntary = one(row.Rates, Series{Family: switches, A: "voluntary"})
	row.Involuntary = one(row.Rates, Series{Family: switches, A: "involuntary"})
	row.Resident = one(row.Values, Series{Family: resident})
	row.Processes = one(row.Values, Series{Family: processes})
	row.Threads = one(row.Values, Series{Family: threads})
	return row
}

func one(values map[Series]float64, s Series) float64 {
	if v, ok := values[s]; ok {
		return v
	}
	return unknown()
}

// sum adds up a family. It is unknown when the family has no value.
func sum(values map[Series]float64, family string) float64 {
	total := unknown()
	for s, v := range values {
		if s.Family == family {
			total = plus(total, v)
		}
	}
	return total
}

// orZero is for families whose zeros the agent does not export. A missing value is 0 when the family is counted.
func orZero(v float64, counted bool) float64 {
	if math.IsNaN(v) && counted {
		return 0
	}
	return v
}

// plus adds the known values.
func plus(a, b float64) float64 {
	switch {
	case !known(a):
		return b
	case !known(b):
		return a
	}
	return a + b
}
