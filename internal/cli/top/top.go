// SPDX-License-Identifier: Apache-2.0

// Package top is the view in a terminal: the workloads of one machine, their requests to the kernel per second, and
// details of one workload.
//
// It is a client of a running agent. It scrapes the agent's metrics and computes the rates itself. So it needs no privilege
// and shows what any other client of /metrics would see. Single threads of a workload are no metrics; the agent has a
// separate request for them. The model is state, update and view without input or output. Source scrapes, and the program
// connects the two in a terminal. The package does not count anything, keep a history or depend on how an agent is started.
package top

import (
	"math"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Options configure a run.
type Options struct {
	Target   string // the agent's name, for display
	Interval time.Duration
	Sort     string // one of SortKeys
	Reverse  bool
	Filter   string
}

// Key identifies a workload.
type Key struct{ Workload, Container, Pod, Namespace string }

// Series identifies one value of a workload: its family and the labels that only this family has.
type Series struct{ Family, A, B string }

// Families of the agent. A family of a watched process has the name of the same family of workloads.
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

// isCounter reports whether a family is a counter. OpenMetrics requires the suffix.
func isCounter(family string) bool { return strings.HasSuffix(family, "_total") }

// unknown is a value that was not measured. It is shown as "-" and never as 0.
func unknown() float64 { return math.NaN() }

// known is also false for infinite values, which the sums of a faulty agent may contain.
func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// longestLabel is the maximum length of a displayed label, in bytes.
const longestLabel = 200

// clean makes a label printable. Other users choose labels.
func clean(s string) string { return text.Cut(text.Terminal(s), longestLabel) }
