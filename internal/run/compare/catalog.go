// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// Area is the subject of a metric. Tables show the areas in the order of [areas].
type Area string

// The areas.
const (
	Outcome      Area = "outcome"
	Start        Area = "start-up"
	Transitions  Area = "transitions"
	SystemCalls  Area = "system calls"
	Paging       Area = "paging"
	Faults       Area = "faults"
	Scheduling   Area = "scheduling"
	Caches       Area = "caches"
	Instructions Area = "instructions"
	Memory       Area = "memory"
	Other        Area = "other"
)

// areas lists the areas in the order of tables.
func areas() []Area {
	return []Area{Outcome, Start, Transitions, SystemCalls, Paging, Faults, Scheduling, Caches, Instructions, Memory, Other}
}

// A family is a metric with the label that its parts differ in. Other labels are summed over.
type family struct {
	area  Area
	unit  string // of the sum: "calls" is shown as calls/s or calls per operation
	split string // label of the parts; empty for none
	parts bool   // whether only the parts have a meaning, and not their sum
}

// families are the compared metrics by the name of their series. docs/user/metrics.md describes them.
var families = map[string]family{
	"teescope_enclave_transitions_total":                  {Transitions, "transitions", "kind", true},
	"teescope_enclave_exits_estimated_total":              {Transitions, "exits", "", false},
	"teescope_enclave_signals_total":                      {Transitions, "signals", "kind", true},
	"teescope_ecalls_total":                               {Transitions, "calls", "ecall", false},
	"teescope_ocalls_total":                               {Transitions, "calls", "ocall", false},
	"teescope_ecall_seconds_sum":                          {Transitions, "s", "ecall", false},
	"teescope_ocall_seconds_sum":                          {Transitions, "s", "ocall", false},
	enclsSeries:                                           {Transitions, "instructions", "leaf", true},
	"teescope_syscalls_total":                             {SystemCalls, "calls", "syscall", false},
	"teescope_syscall_seconds_total":                      {SystemCalls, "s", "syscall", false},
	"sgx_workload_faults_total":                           {Paging, "faults", "", false},
	"sgx_workload_pages_added_total":                      {Paging, "pages", "", false},
	"sgx_workload_pages_augmented_total":                  {Paging, "pages", "", false},
	"sgx_workload_pages_evicted_total":                    {Paging, "pages", "", false},
	"sgx_workload_pages_loaded_back_total":                {Paging, "pages", "", false},
	"sgx_workload_resident_bytes":                         {Paging, "bytes", "", false},
	"sgx_workload_paged_out_bytes":                        {Paging, "bytes", "", false},
	"sgx_workload_working_set_bytes":                      {Paging, "bytes", "", false},
	"sgx_epc_faults_total":                                {Paging, "faults", "", false},
	"sgx_epc_pages_evicted_total":                         {Paging, "pages", "", false},
	"sgx_epc_pages_loaded_back_total":                     {Paging, "pages", "", false},
	"sgx_epc_free_bytes":                                  {Paging, "bytes", "", false},
	"sgx_load_back_seconds_sum":                           {Paging, "s", "", false},
	"sgx_reclaim_seconds_sum":                             {Paging, "s", "by", false},
	"teescope_page_faults_total":                          {Faults, "faults", "reason", false},
	"teescope_page_faults_handled_total":                  {Faults, "faults", "type", false},
	machineFaults:                                         {Faults, "faults", "", false},
	"teescope_page_cache_ops_total":                       {Faults, "operations", "op", true},
	"teescope_context_switches_total":                     {Scheduling, "switches", "kind", false},
	machineSwitches:                                       {Scheduling, "switches", "", false},
	"teescope_cpu_migrations_total":                       {Scheduling, "migrations", "", false},
	"teescope_run_queue_wait_seconds_total":               {Scheduling, "s", "", false},
	"teescope_run_queue_wait_outside_calls_seconds_total": {Scheduling, "s", "", false},
	"teescope_io_wait_outside_calls_seconds_total":        {Scheduling, "s", "", false},
	"teescope_cpu_seconds_total":                          {Scheduling, "s", "mode", false},
	"teescope_busiest_thread_cpu_ratio":                   {Scheduling, "ratio", "", false},
	"teescope_threads":                                    {Scheduling, "threads", "", false},
	"teescope_thread_starts_total":                        {Scheduling, "threads", "", false},
	"teescope_forks_total":                                {Scheduling, "processes", "", false},
	"teescope_execs_total":                                {Scheduling, "programs", "", false},
	runningRatio:                                          {Instructions, "ratio", "counter", true},
	"teescope_llc_references_total":                       {Caches, "references", "", false},
	"teescope_llc_misses_total":                           {Caches, "misses", "", false},
	"teescope_resident_memory_bytes":                      {Memory, "bytes", "", false},
	"container_cpu_cfs_throttled_seconds_total":           {Scheduling, "s", "", false},
}

// The series of the whole machine beside those of a workload.
const (
	machineFaults   = "node_vmstat_pgfault"
	machineSwitches = "node_context_switches_total"
)

// Costs lists the series that show what an operation costs, in the order in which a sweep shows them.
func Costs() []string {
	return []string{
		callsSeries, "teescope_ocalls_total", "teescope_page_faults_total", machineFaults, "teescope_llc_misses_total", "sgx_epc_pages_evicted_total",
		"teescope_context_switches_total", machineSwitches, "teescope_cpu_seconds_total",
	}
}

var (
	// hardware are counters of the processor, as far as a recorder has them.
	hardware = lazy.Regexp(`^teescope_(\w*_)?(instructions|cycles|branches|branch_misses)_total$`)
	// known are the prefixes of metrics that this program and its peers write. Only families among these metrics are compared.
	known = lazy.Regexp(`^(teescope|sgx|node|container|process|go|scrape|prometheus|up|promhttp|net|machine)(_|$)`)
)

// familyOf returns the family of a series, and whether it is compared. Metrics of other programs are in the area other,
// summed over all their labels.
func familyOf(series string) (family, bool) {
	if f, ok := families[series]; ok {
		return f, true
	}
	if hardware().MatchString(series) && !strings.Contains(series, "bpf") && !strings.HasPrefix(series, "teescope_process_") {
		return family{area: Instructions, unit: "events", split: "mode"}, true
	}
	return family{area: Other}, !known().MatchString(series)
}

// runningRatio is the share of the time in which the processor's counters counted an event.
const runningRatio = "teescope_counter_running_ratio"

// shortName is the name of a metric in tables and conditions: that of its series without the prefix and the suffix.
func shortName(series string) string {
	name := strings.TrimPrefix(series, "teescope_")
	for _, suffix := range []string{"_total", "_sum"} {
		if cut, ok := strings.CutSuffix(name, suffix); ok {
			return cut
		}
	}
	return name
}

// ratios are metrics that follow from two others.
var ratios = []struct {
	name, over, under string // names of the metrics
	area              Area
}{
	{"llc_miss_ratio", "llc_misses", "llc_references", Caches},
	{"instructions_per_cycle", "instructions", "cycles", Instructions},
	{"branch_miss_ratio", "branch_misses", "branches", Instructions},
}

// Metric describes a row of a table.
type Metric struct {
	Name   string // such as syscalls; syscalls_per_op after Per
	Part   string // such as read; empty for the sum of all parts
	Area   Area
	Unit   string // with what it is divided by
	Series string // the series that it is from; empty for outcomes and ratios
	How    string // how its figures were obtained, such as by a counter of the processor; empty if docs/user/metrics.md says all
	Better string // "higher", "lower", or unknown
	// Time reports that the speed of the machine is in the value itself: an outcome, a time or a rate.
	Time  bool
	gauge bool
}

// ID is the name with the part, such as syscalls_per_op{read}. It identifies the metric within a comparison.
func (m Metric) ID() string { return id(m.Name, m.Part) }

func id(name, part string) string {
	if part == "" {
		return name
	}
	return name + "{" + part + "}"
}
