// SPDX-License-Identifier: Apache-2.0

package window

import (
	"strings"

	"github.com/teescope/teescope/internal/lib/operation"
)

// A Metric is the subject of box plots, baselines and change points.
type Metric struct {
	Name string // value of the label metric: the family without _total, and the selected label values
	Unit string // of its values: "calls/s", "bytes"
	Help string
	// Least is the smallest difference of two medians that is reported, in the unit. It prevents findings about an idle
	// program that makes three calls a second instead of one. Proposed.
	Least float64

	Selector string // the family with its matchers
	Gauge    bool
	Machine  bool // has no workload
}

// grouped returns the aggregation by workload or machine.
func (m Metric) grouped() string {
	if m.Machine {
		return "sum by (instance) "
	}
	return "sum by (instance, workload) "
}

// each returns the query of single observations. For a counter it is the rate between two consecutive scrapes, and the
// range must contain two of them.
func (m Metric) each(twoScrapes string) string {
	if m.Gauge {
		return m.grouped() + "(last_over_time(" + m.Selector + "[" + twoScrapes + "]))"
	}
	return m.grouped() + "(irate(" + m.Selector + "[" + twoScrapes + "]))"
}

// Mean returns the query of the mean over a range.
func (m Metric) Mean(over string) string {
	if m.Gauge {
		return m.grouped() + "(avg_over_time(" + m.Selector + "[" + over + "]))"
	}
	return m.grouped() + "(rate(" + m.Selector + "[" + over + "]))"
}

// counted returns a metric of a counter: of one value of a label, or of all values.
func counted(family, unit string, least float64, help string, matchers ...string) Metric {
	m := Metric{Name: strings.TrimSuffix(family, "_total"), Unit: unit + "/s", Least: least, Help: help, Selector: family}
	for i := 0; i+1 < len(matchers); i += 2 {
		m.Name += "_" + matchers[i+1]
		m.Selector = family + `{` + matchers[i] + `="` + matchers[i+1] + `"}`
	}
	return m
}

func measured(family, help string) Metric {
	const least = 8 << 20
	return Metric{Name: family, Unit: "bytes", Least: least, Help: help, Selector: family, Gauge: true}
}

func ofMachine(m Metric) Metric {
	m.Machine = true
	return m
}

// Metrics returns the metrics of windows, sorted by name. Together with the limit of 128 workloads of a machine they bound the
// number of stored series.
func Metrics() []Metric {
	return []Metric{
		ofMachine(measured("sgx_epc_free_bytes", "free enclave memory of the machine")),
		ofMachine(counted("sgx_reclaim_pages_written_total", "pages", 100, "pages that the driver evicted, of the machine")),
		counted("sgx_workload_enclaves_created_total", "enclaves", 0.1, "enclaves created"),
		counted("sgx_workload_faults_total", "faults", 100, "page faults that reached the SGX driver"),
		counted("sgx_workload_pages_added_total", "pages", 1000, "pages added to enclaves that start"),
		counted("sgx_workload_pages_augmented_total", "pages", 1000, "pages added to enclaves that run"),
		counted("sgx_workload_pages_evicted_total", "pages", 100, "pages evicted from enclave memory"),
		counted("sgx_workload_pages_loaded_back_total", "pages", 100, "evicted pages loaded back"),
		measured("sgx_workload_resident_bytes", "enclave memory in use"),
		measured("sgx_workload_working_set_bytes", "enclave memory in recent use"),
		counted(operation.Family, "operations", 100, "operations that the application counts"),
		counted("teescope_context_switches_total", "switches", 1000, "switches of threads that were preempted", "kind", "involuntary"),
		counted("teescope_context_switches_total", "switches", 1000, "switches of threads that waited", "kind", "voluntary"),
		counted("teescope_cpu_migrations_total", "migrations", 200, "moves of threads between processors"),
		counted("teescope_cpu_seconds_total", "seconds", 0.1, "processor time"),
		counted("teescope_ecalls_total", "calls", 1000, "calls into enclaves"),
		counted("teescope_enclave_transitions_total", "transitions", 1000, "interrupts of enclaves (AEX)", "kind", "aex"),
		counted("teescope_enclave_transitions_total", "transitions", 1000, "entries into enclaves", "kind", "eenter"),
		counted("teescope_enclave_transitions_total", "transitions", 1000, "exits from enclaves", "kind", "eexit"),
		counted("teescope_forks_total", "processes", 5, "processes created"),
		counted("teescope_llc_misses_total", "misses", 1e6, "misses of the last-level cache"),
		counted("teescope_ocalls_total", "calls", 1000, "calls out of enclaves"),
		counted("teescope_page_faults_total", "faults", 1000, "page faults in kernel mode", "mode", "kernel"),
		counted("teescope_page_faults_total", "faults", 1000, "page faults in user mode", "mode", "user"),
		counted("teescope_page_faults_handled_total", "faults", 50, "page faults that needed a device", "type", "major"),
		counted("teescope_run_queue_wait_seconds_total", "seconds", 0.1, "time that threads waited for a processor"),
		counted("teescope_syscalls_total", "calls", 1000, "system calls"),
		counted("teescope_thread_starts_total", "threads", 10, "threads created"),
	}
}
