// SPDX-License-Identifier: Apache-2.0

package analysis

import "strings"

// A WindowMetric is one that box plots, baselines and change points are made of.
type WindowMetric struct {
	Name string // value of the label metric: the family without _total, and what is selected of it
	Unit string // of its values: "calls/s", "bytes"
	Help string
	// Least is the smallest difference of two medians that is worth telling of, in the unit. Proposed, so that
	// nobody is told that an idle program does three calls a second instead of one.
	Least float64

	selector string // the family with its matchers
	gauge    bool
	machine  bool // has no workload
}

// grouped is whom a value is of.
func (m WindowMetric) grouped() string {
	if m.machine {
		return "sum by (instance) "
	}
	return "sum by (instance, workload) "
}

// each is the query of single observations: of a counter the rate between two neighbouring scrapes. The range is long
// enough for two of them.
func (m WindowMetric) each(twoScrapes string) string {
	if m.gauge {
		return m.grouped() + "(last_over_time(" + m.selector + "[" + twoScrapes + "]))"
	}
	return m.grouped() + "(irate(" + m.selector + "[" + twoScrapes + "]))"
}

// mean is the query of the mean over a range.
func (m WindowMetric) mean(over string) string {
	if m.gauge {
		return m.grouped() + "(avg_over_time(" + m.selector + "[" + over + "]))"
	}
	return m.grouped() + "(rate(" + m.selector + "[" + over + "]))"
}

// counted is a metric of a counter: of each of the values of a label, or of all when there is none.
func counted(family, unit string, least float64, help string, matchers ...string) WindowMetric {
	m := WindowMetric{Name: strings.TrimSuffix(family, "_total"), Unit: unit + "/s", Least: least, Help: help, selector: family}
	for i := 0; i+1 < len(matchers); i += 2 {
		m.Name += "_" + matchers[i+1]
		m.selector = family + `{` + matchers[i] + `="` + matchers[i+1] + `"}`
	}
	return m
}

func measured(family, help string) WindowMetric {
	const least = 8 << 20
	return WindowMetric{Name: family, Unit: "bytes", Least: least, Help: help, selector: family, gauge: true}
}

func ofMachine(m WindowMetric) WindowMetric {
	m.machine = true
	return m
}

// WindowMetrics lists what windows are computed of, sorted by name. With 128 workloads it bounds how many series are
// kept. Of what a machine does not measure there are none.
func WindowMetrics() []WindowMetric {
	return []WindowMetric{
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
