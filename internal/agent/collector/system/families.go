// SPDX-License-Identifier: Apache-2.0

package system

import (
	"strings"

	"github.com/teescope/teescope/internal/lib/metric"
)

// workloadLabels are on every family about a workload. container, pod and namespace are empty where
// they are not known.
var workloadLabels = []string{"workload", "container", "pod", "namespace"}

// The values of the label reason, in the order of enum fault_reason. The first four are the paper's.
var faultReasonNames = [faultReasons]string{
	"no_page_found", "write_fault", "write_prot_fault", "read_prot_fault",
	"instr_fetch_fault", "protection_key", "sgx", "rmp", "other",
}

var cacheOpNames = [cacheOps]string{"insertion", "access", "dirty_page", "dirty_buffer"}

// family is a metric of a workload and its twin for one watched process.
type family struct {
	workload, process *metric.Desc
}

// twin describes a family once for workloads and once for watched processes. A process counts into its
// workload too: hence two names, so that no sum counts it twice.
func twin(d metric.Desc) family {
	extra := d.Labels
	d.Labels = append(append([]string{}, workloadLabels...), extra...)
	d.Source = metric.Kernel
	p := d
	p.Name = strings.Replace(d.Name, "teescope_", "teescope_process_", 1)
	p.Help = strings.TrimSuffix(d.Help, ".") + ", of one watched process."
	p.Labels = append(append(append([]string{}, workloadLabels...), "pid", "comm"), extra...)
	return family{metric.New(d), metric.New(p)}
}

type families struct {
	syscalls, syscallSeconds             family
	switches, wait, migrations           family
	faults, faultsHandled, pageCache     family
	llcReferences, llcMisses             family
	cpuSeconds, resident, processes      family
	threads, forks, starts, execs, exits family
	syscallErrors, info, change          *metric.Desc
	workloads, slots, lost               *metric.Desc
	start                                *metric.Desc
	level, budget, selfCost, eventCost   *metric.Desc
	samplingShare, samplingVariance      *metric.Desc
}

func newFamilies() *families {
	return &families{
		syscalls: twin(metric.Desc{
			Name: "teescope_syscalls_total", Kind: metric.Counter, Unit: "calls", Labels: []string{"syscall"},
			Help: "System calls entered, by name, without uretprobe and uprobe, which only tracing brings about. " +
				"compat is any call through the 32-bit entry, unknown a number without a name.",
			Origin: "tracepoint raw_syscalls:sys_enter",
		}),
		syscallSeconds: twin(metric.Desc{
			Name: "teescope_syscall_seconds_total", Kind: metric.Counter, Unit: "seconds", Labels: []string{"syscall"},
			Help: "Time from entering to leaving system calls, waiting included; of calls that threads wait in, what has " +
				"passed so far. Calls that never return (exit) have none. Only with --syscalls.time.",
			Origin: "tracepoints raw_syscalls:sys_enter and sys_exit, sched:sched_switch, task iterator",
		}),
		switches: twin(metric.Desc{
			Name: "teescope_context_switches_total", Kind: metric.Counter, Unit: "switches", Labels: []string{"kind"},
			Help:   "Times a thread was switched out: voluntary when it waited, involuntary when it was preempted or yielded.",
			Origin: "tracepoint sched:sched_switch, task_struct.nvcsw",
		}),
		wait: twin(metric.Desc{
			Name: "teescope_run_queue_wait_seconds_total", Kind: metric.Counter, Unit: "seconds",
			Help:   "Time that threads were ready to run and waited for a CPU.",
			Origin: "task_struct.sched_info.run_delay at sched:sched_switch",
		}),
		migrations: twin(metric.Desc{
			Name: "teescope_cpu_migrations_total", Kind: metric.Counter, Unit: "migrations",
			Help:   "Times a thread was moved to another CPU.",
			Origin: "tracepoint sched:sched_migrate_task",
		}),
		faults: twin(metric.Desc{
			Name: "teescope_page_faults_total", Kind: metric.Counter, Unit: "faults", Labels: []string{"mode", "reason"},
			Help:   "Page-fault exceptions, by the CPU mode they were raised in and the reason that the x86 error code gives.",
			Origin: "tracepoints exceptions:page_fault_user and page_fault_kernel; Intel SDM vol. 3, 4.7",
		}),
		faultsHandled: twin(metric.Desc{
			Name: "teescope_page_faults_handled_total", Kind: metric.Counter, Unit: "faults", Labels: []string{"type"},
			Help:   "Page faults that the kernel resolved: major when it had to read from a device, else minor.",
			Origin: "task_struct.min_flt and maj_flt at sched:sched_switch",
		}),
		pageCache: twin(metric.Desc{
			Name: "teescope_page_cache_ops_total", Kind: metric.Counter, Unit: "operations", Labels: []string{"op"},
			Help:   "Page-cache pages inserted, accessed and dirtied, and buffers dirtied. What access counts depends on teescope_probe_attached.",
			Origin: "tracepoints filemap:mm_filemap_add_to_page_cache, writeback:writeback_dirty_folio, block:block_dirty_buffer; function folio_mark_accessed",
		}),
		llcReferences: twin(metric.Desc{
			Name: "teescope_llc_references_total", Kind: metric.Counter, Unit: "references",
			Help: "Last-level cache references, estimated from one sample in 100,000. Absent without a PMU. " +
				"The processor does not count inside production SGX enclaves.",
			Origin: "perf event PERF_COUNT_HW_CACHE_REFERENCES",
		}),
		llcMisses: twin(metric.Desc{
			Name: "teescope_llc_misses_total", Kind: metric.Counter, Unit: "misses",
			Help: "Last-level cache misses, estimated from one sample in 100,000. Absent without a PMU. " +
				"The processor does not count inside production SGX enclaves.",
			Origin: "perf event PERF_COUNT_HW_CACHE_MISSES",
		}),
		cpuSeconds: twin(metric.Desc{
			Name: "teescope_cpu_seconds_total", Kind: metric.Counter, Unit: "seconds", Labels: []string{"mode"},
			Help:   "CPU time. The sum of the modes is exact; its division is the kernel's, by ticks on most machines.",
			Origin: "task_struct.se.sum_exec_runtime, utime and stime at sched:sched_switch",
		}),
		resident: twin(metric.Desc{
			Name: "teescope_resident_memory_bytes", Kind: metric.Gauge, Unit: "bytes",
			Help:   "Resident memory, summed over processes: memory that they share counts once for each. Enclave pages (EPC) are not in it.",
			Origin: "mm_struct.rss_stat",
		}),
		processes: twin(metric.Desc{
			Name: "teescope_processes", Kind: metric.Gauge, Unit: "processes",
			Help: "Processes that have not begun to exit.", Origin: "task iterator",
		}),
		threads: twin(metric.Desc{
			Name: "teescope_threads", Kind: metric.Gauge, Unit: "threads",
			Help: "Threads that have not begun to exit.", Origin: "task iterator",
		}),
		forks: twin(metric.Desc{
			Name: "teescope_forks_total", Kind: metric.Counter, Unit: "processes",
			Help: "Processes created by fork, vfork or clone, counted for the parent's workload.", Origin: "tracepoint sched:sched_process_fork",
		}),
		starts: twin(metric.Desc{
			Name: "teescope_thread_starts_total", Kind: metric.Counter, Unit: "threads",
			Help: "Threads created in existing processes.", Origin: "tracepoint sched:sched_process_fork",
		}),
		execs: twin(metric.Desc{
			Name: "teescope_execs_total", Kind: metric.Counter, Unit: "programs",
			Help: "Programs executed, counted for what the process became.", Origin: "tracepoint sched:sched_process_exec",
		}),
		exits: twin(metric.Desc{
			Name: "teescope_exits_total", Kind: metric.Counter, Unit: "processes",
			Help: "Processes whose first thread exited.", Origin: "tracepoint sched:sched_process_exit",
		}),
		syscallErrors: metric.New(metric.Desc{
			Name: "teescope_process_syscall_errors_total", Kind: metric.Counter, Unit: "calls", Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "pid", "comm", "syscall", "errno"),
			Help:   "System calls of one watched process that failed, by error.",
			Origin: "tracepoint raw_syscalls:sys_exit",
		}),
		info: metric.New(metric.Desc{
			Name: "teescope_workload_info", Kind: metric.Info, Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "kind", "tee", "runtime"),
			Help:   "What a workload is. Join it on workload to select by kind, TEE or runtime.",
			Origin: "cgroup and program names; device nodes, executables, arguments and mapped files of /proc/PID",
		}),
		change: metric.New(metric.Desc{
			Name: "teescope_workload_change_timestamp_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "change"),
			Help: "When the main process of a workload that is no container last followed another one, Unix time: change is restart " +
				"when it runs the same program file, deployment when another one. Absent before that was seen.",
			Origin: "task_struct.start_boottime; device, inode, size and modification time of /proc/PID/exe; process groups",
		}),
		workloads: agentFamily("teescope_workloads", metric.Gauge, "workloads",
			"Named workloads, and groups of processes that count into other because their name does not fit (raise --workloads.max).", "state"),
		slots: agentFamily("teescope_slots", metric.Gauge, "slots",
			"Slots of the kernel side: one for each group of processes with the same cgroup and program.", "state"),
		lost: agentFamily("teescope_attribution_lost_total", metric.Counter, "events",
			"What the kernel side could not attribute: it is counted, under other or not by errno.", "what"),
		start: agentFamily("teescope_start_seconds", metric.Gauge, "seconds",
			"How long a part of the start took: maps is making the eBPF maps, programs is verifying and attaching the eBPF programs.", "stage"),
		level: agentFamily("teescope_self_level", metric.Gauge, "",
			"1 for how much is watched now: full, untimed (without the time of system calls), sampled (frequent events are "+
				"counted for a part of the time and scaled up), totals (watched processes are not broken down either) or off "+
				"(frequent events are not counted).", "level"),
		budget: agentFamily("teescope_self_budget_ratio", metric.Gauge, "ratio",
			"The share of the machine's CPU time that watching may take (overhead.budget; five times that where processes are watched)."),
		selfCost: agentFamily("teescope_self_cpu_ratio", metric.Gauge, "ratio",
			"The share of the machine's CPU time that watching takes: that of this program, measured, and that of the probes, "+
				"reckoned from how often each event comes and what it costs where it happens.", "part"),
		eventCost: agentFamily("teescope_self_event_seconds", metric.Gauge, "seconds",
			"What one event takes that is counted, as the budget reckons: the program on it, measured by itself for a second "+
				"now and then, and what the kernel takes to come to it, found once by what servers take with and without. "+
				"Absent until there were enough events to measure.", "event", "part"),
		samplingShare: agentFamily("teescope_sampling_ratio", metric.Gauge, "ratio",
			"The part of the time for which the probe is attached; what it counts is scaled up by as much. 1 is exact.", "probe"),
		samplingVariance: metric.New(metric.Desc{
			Name: "teescope_sampling_variance_total", Kind: metric.Counter, Unit: "events squared",
			Labels: append(append([]string{}, workloadLabels...), "family"), Source: metric.Agent,
			Help: "Variance of the estimated number of events while they were sampled: their number in a time range is the " +
				"increase, more or less 1.96 times the square root of the increase of this, 95 times in 100.",
			Origin: "half the squared difference of how far consecutive cycles of a second stray from what the CPU time says, and what is doubted of that",
		}),
	}
}

func agentFamily(name string, kind metric.Kind, unit, help string, labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: kind, Unit: unit, Help: help, Labels: labels,
		Source: metric.Agent, Origin: "teescope",
	})
}

// all lists the descriptions in the order of the documentation.
func (f *families) all() []*metric.Desc {
	var list []*metric.Desc
	twins := []family{
		f.syscalls, f.syscallSeconds, f.switches, f.wait, f.migrations, f.faults, f.faultsHandled, f.pageCache,
		f.llcReferences, f.llcMisses, f.cpuSeconds, f.resident, f.processes, f.threads, f.forks, f.starts, f.execs, f.exits,
	}
	for _, t := range twins {
		list = append(list, t.workload)
	}
	list = append(list, f.info, f.change)
	for _, t := range twins {
		list = append(list, t.process)
	}
	return append(list, f.syscallErrors, f.workloads, f.slots, f.lost, f.start,
		f.level, f.budget, f.selfCost, f.eventCost, f.samplingShare, f.samplingVariance)
}
