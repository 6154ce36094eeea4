// SPDX-License-Identifier: Apache-2.0

// Package top is the view for people who live in a terminal: the workloads of one machine, what each
// asks of the kernel per second, and one of them in detail.
//
// It is a client of a running agent. It scrapes the agent's exposition and computes the rates itself,
// so it needs no privilege and shows what any other client of /metrics would see, besides the single
// threads of a workload, which are no metrics and which it asks for by themselves. The model is state,
// update and view without input or output; Source scrapes, and the program joins the two in a
// terminal. It refuses to count anything, to keep a history and to know how an agent is started.
package top

import (
	"math"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Options are what a run is told.
type Options struct {
	Target   string // names the agent: it is shown
	Interval time.Duration
	Sort     string // one of SortKeys
	Reverse  bool
	Filter   string
}

// Key names a workload.
type Key struct{ Workload, Container, Pod, Namespace string }

// Series names one value of a workload: its family and the labels that only this family has.
type Series struct{ Family, A, B string }

// Families of the agent, as it names them. A family of a watched process is under the name of its
// workload's twin.
const (
	syscalls       = "teescope_syscalls_total"         // A is the name
	syscallSeconds = "teescope_syscall_seconds_total"  // A is the name
	switches       = "teescope_context_switches_total" // A is the kind
	runQueueWait   = "teescope_run_queue_wait_seconds_total"
	migrations     = "teescope_cpu_migrations_total"
	faults         = "teescope_page_faults_total"         // A is the reason, B the mode
	faultsHandled  = "teescope_page_faults_handled_total" // A is the type
	pageCache      = "teescope_page_cache_ops_total"      // A is the operation
	cpuSeconds     = "teescope_cpu_seconds_total"         // A is the mode
	resident       = "teescope_resident_memory_bytes"
	processes      = "teescope_processes"
	threads        = "teescope_threads"
	forks          = "teescope_forks_total"
	threadStarts   = "teescope_thread_starts_total"
	execs          = "teescope_execs_total"
	exits          = "teescope_exits_total"

	workloadInfo  = "teescope_workload_info"
	probeAttached = "teescope_probe_attached"
	processStart  = "process_start_time_seconds"
	processPrefix = "teescope_process_"
	enclavePrefix = "sgx_"
)

// isCounter tells counters from gauges by the name, as OpenMetrics demands it.
func isCounter(family string) bool { return strings.HasSuffix(family, "_total") }

// unknown is a value that was not measured. It is shown as "-" and never as 0.
func unknown() float64 { return math.NaN() }

// known is false too for what is no number: sums of an agent that lies.
func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// longestLabel bounds what is shown of a label, in bytes.
const longestLabel = 200

// clean makes a label fit to be shown: the one who started the program has chosen it.
func clean(s string) string { return text.Cut(text.Terminal(s), longestLabel) }
