// SPDX-License-Identifier: Apache-2.0

package system

import (
	"strings"

	"github.com/teescope/teescope/internal/lib/metric"
)

// workloadLabels are the labels of every family about a workload. container, pod and namespace are empty if
// they are unknown.
var workloadLabels = []string{"workload", "container", "pod", "namespace"}

// The values of the label reason, in the order of enum fault_reason. The first four are the paper's.
var faultReasonNames = [faultReasons]string{
	"no_page_found", "write_fault", "write_prot_fault", "read_prot_fault",
	"instr_fetch_fault", "protection_key", "sgx", "rmp", "other",
}

var cacheOpNames = [cacheOps]string{"insertion", "access", "dirty_page", "dirty_buffer"}

// family is a metric of a workload and the same metric of one watched process.
type family struct {
	workload, process *metric.Desc
}

// twin describes a family once for workloads and once for watched processes. The names differ, because the counts of a
// process are part of its workload's, and a sum must not count them twice.
func twin(d metric.Desc) family {
	extra := d.Labels
	d.Labels = append(append([]string{}, workloadLabels...), extra...)
	d.Source = metric.Kernel
	p := d
	p.Name = strings.Replace(d.Name, "teescope_", "teescope_process_", 1)
	p.Help = d.Help + " A series covers one watched process."
	p.Labels = append(append(append([]string{}, workloadLabels...), "pid", "comm"), extra...)
	return family{metric.New(d), metric.New(p)}
}

type families struct {
	syscalls, syscallSeconds             family
	waitOutside, ioOutside               family
	switches, wait, latency, migrations  family
	faults, faultsHandled, pageCache     family
	llcReferences, llcMisses             family
	blockTime, blockBytes                family
	cpuSeconds, resident, processes      family
	threads, forks, starts, execs, exits family
	busiest, syscallErrors, info, change *metric.Desc
	boundaryBytes, durations             *metric.Desc
	oomKills                             *metric.Desc
	workloads, slots, lost               *metric.Desc
	start                                *metric.Desc
	level, budget, selfCost, eventCost   *metric.Desc
	samplingRatio, samplingVariance      *metric.Desc
	samplingSumVariance                  *metric.Desc
	attaching, loop                      *metric.Desc
}

func newFamilies() *families {
	return &families{
		syscalls: twin(metric.Desc{
			Name: "teescope_syscalls_total", Kind: metric.Counter, Unit: "calls", Labels: []string{"syscall"},
			Help: "System calls entered, by name. uretprobe and uprobe are left out, because only tracing causes them. " +
				"compat is any call through the 32-bit entry. unknown is any call without a name.",
			Origin: "tracepoint raw_syscalls:sys_enter",
		}),
		syscallSeconds: twin(metric.Desc{
			Name: "teescope_syscall_seconds_total", Kind: metric.Counter, Unit: "seconds", Labels: []string{"syscall"},
			Help: "Time from entering to leaving system calls, including waiting. Calls that have not returned yet count with their time " +
				"so far. Calls that never return (exit) have no time. Only with --syscalls.time.",
			Origin: "tracepoints raw_syscalls:sys_enter and sys_exit, sched:sched_switch, task iterator",
		}),
		waitOutside: twin(metric.Desc{
			Name: "teescope_run_queue_wait_outside_calls_seconds_total", Kind: metric.Counter, Unit: "seconds",
			Help: "Time in which threads were ready to run and waited for a CPU, outside system calls or in calls that wait for others, " +
				"such as epoll_wait and futex. It is a part of teescope_run_queue_wait_seconds_total. The other part is included in " +
				"teescope_syscall_seconds_total of other calls, or in teescope_io_wait_outside_calls_seconds_total. Absent for threads of " +
				"the kernel, which make no system calls. Only with --syscalls.time.",
			Origin: "task_struct.sched_info.run_delay at sched:sched_switch",
		}),
		ioOutside: twin(metric.Desc{
			Name: "teescope_io_wait_outside_calls_seconds_total", Kind: metric.Counter, Unit: "seconds",
			Help: "Time in which threads waited for block I/O outside of system calls, until they ran again: page faults that read pages of files or of " +
				"swap space, and workers of io_uring. Absent for threads of the kernel, which make no system calls. Only with --syscalls.time.",
			Origin: "task_struct.in_iowait at sched:sched_switch",
		}),
		switches: twin(metric.Desc{
			Name: "teescope_context_switches_total", Kind: metric.Counter, Unit: "switches", Labels: []string{"kind"},
			Help:   "Number of times that a thread was switched out: voluntary when it waited, involuntary when it was preempted or yielded.",
			Origin: "tracepoint sched:sched_switch, task_struct.nvcsw",
		}),
		wait: twin(metric.Desc{
			Name: "teescope_run_queue_wait_seconds_total", Kind: metric.Counter, Unit: "seconds",
			Help:   "Time in which threads were ready to run and waited for a CPU.",
			Origin: "task_struct.sched_info.run_delay at sched:sched_switch",
		}),
		latency: twin(metric.Desc{
			Name: "teescope_run_queue_latency_seconds", Kind: metric.Histogram, Unit: "seconds", Bounds: metric.Doubled(waitShift, waits-1),
			Help: "Distribution of the time that a thread was ready to run and waited for a CPU, from its wakeup or preemption until it ran. " +
				"The sum is teescope_run_queue_wait_seconds_total. A thread that is moved to another CPU while it waits counts with the time after the move. " +
				"Waits that began before the agent started are left out. Counted at every teescope_self_level.",
			Origin: "task_struct.sched_info.run_delay and pcount at sched:sched_switch",
		}),
		migrations: twin(metric.Desc{
			Name: "teescope_cpu_migrations_total", Kind: metric.Counter, Unit: "migrations",
			Help:   "Number of times that a thread was moved to another CPU.",
			Origin: "tracepoint sched:sched_migrate_task",
		}),
		faults: twin(metric.Desc{
			Name: "teescope_page_faults_total", Kind: metric.Counter, Unit: "faults", Labels: []string{"mode", "reason"},
			Help:   "Page-fault exceptions, by CPU mode and by the reason in the x86 error code.",
			Origin: "tracepoints exceptions:page_fault_user and page_fault_kernel; Intel SDM vol. 3, 4.7",
		}),
		faultsHandled: twin(metric.Desc{
			Name: "teescope_page_faults_handled_total", Kind: metric.Counter, Unit: "faults", Labels: []string{"type"},
			Help:   "Page faults that the kernel resolved: major when it had to read from a device, minor otherwise.",
			Origin: "task_struct.min_flt and maj_flt at sched:sched_switch",
		}),
		pageCache: twin(metric.Desc{
			Name: "teescope_page_cache_ops_total", Kind: metric.Counter, Unit: "operations", Labels: []string{"op"},
			Help:   "Page-cache pages inserted, read by calls (access) and dirtied, and buffers dirtied. A page counts once for each call that reads from it.",
			Origin: "tracepoints filemap:mm_filemap_add_to_page_cache, filemap:mm_filemap_get_pages (to 6.10 function filemap_read), writeback:writeback_dirty_folio, block:block_dirty_buffer",
		}),
		llcReferences: twin(metric.Desc{
			Name: "teescope_llc_references_total", Kind: metric.Counter, Unit: "references",
			Help: "Last-level cache references, estimated from one sample in 100,000. Absent without a PMU, and on AMD processors, whose generic events count the second-level cache. " +
				"The processor does not count inside production SGX enclaves.",
			Origin: "perf event PERF_COUNT_HW_CACHE_REFERENCES",
		}),
		llcMisses: twin(metric.Desc{
			Name: "teescope_llc_misses_total", Kind: metric.Counter, Unit: "misses",
			Help: "Last-level cache misses, estimated from one sample in 100,000. Absent without a PMU, and on AMD processors, whose generic events count the second-level cache. " +
				"The processor does not count inside production SGX enclaves.",
			Origin: "perf event PERF_COUNT_HW_CACHE_MISSES",
		}),
		blockTime: twin(metric.Desc{
			Name: "teescope_block_io_latency_seconds", Kind: metric.Histogram, Unit: "seconds", Bounds: metric.Doubled(blockShift, blockBuckets-1),
			Labels: []string{"operation"},
			Help: "Distribution of the time of requests to block devices, from creation to completion, including the time in the kernel's queues. " +
				"Number, operation (read, write, discard) and time agree with /proc/diskstats: a flush is a write of zero bytes, and " +
				"merged requests count as one. A request counts for the workload of the thread that made it. Requests of kernel threads, such " +
				"as write-back, count for the container or unit that the kernel charges (cgroup v2 with the " +
				"io controller), otherwise for kernel. With stacked devices, a request counts at each device that has its own queue. Counted at every teescope_self_level.",
			Origin: "tracepoints block:block_io_start (to 6.4 block_rq_insert and block_rq_issue) and block:block_rq_complete; request.start_time_ns",
		}),
		blockBytes: twin(metric.Desc{
			Name: "teescope_block_io_bytes_total", Kind: metric.Counter, Unit: "bytes", Labels: []string{"operation"},
			Help:   "Bytes that block devices have read, written and discarded for the requests of teescope_block_io_latency_seconds.",
			Origin: "tracepoint block:block_rq_complete",
		}),
		cpuSeconds: twin(metric.Desc{
			Name: "teescope_cpu_seconds_total", Kind: metric.Counter, Unit: "seconds", Labels: []string{"mode"},
			Help:   "CPU time. The sum of the modes is exact. The kernel divides it between the modes, on most machines by ticks.",
			Origin: "task_struct.se.sum_exec_runtime, utime and stime at sched:sched_switch",
		}),
		resident: twin(metric.Desc{
			Name: "teescope_resident_memory_bytes", Kind: metric.Gauge, Unit: "bytes",
			Help:   "Resident memory, summed over processes. Shared memory counts once for each process. Enclave pages (EPC) are not included.",
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
			Help: "Programs executed, counted for the workload that the process belongs to afterwards.", Origin: "tracepoint sched:sched_process_exec",
		}),
		exits: twin(metric.Desc{
			Name: "teescope_exits_total", Kind: metric.Counter, Unit: "processes",
			Help: "Processes that ended: their last thread exited.", Origin: "tracepoint sched:sched_process_exit",
		}),
		busiest: metric.New(metric.Desc{
			Name: "teescope_busiest_thread_cpu_ratio", Kind: metric.Gauge, Unit: "ratio", Labels: workloadLabels, Source: metric.Kernel,
			Help: "Share of the time since the previous collection in which the workload's busiest thread ran on a CPU, 0 to 1. " +
				"1 means that the thread never waited. The time is at least a second, and CPU time has a precision of 20 ms. Absent for workloads that " +
				"used less than half a CPU, and while the busiest thread is not known. It is not known in the first collection of a busy " +
				"workload, and with more than 512 threads until all were read.",
			Origin: "utime, stime and starttime in /proc/PID/task/TID/stat; the workload's CPU time",
		}),
		oomKills: metric.New(metric.Desc{
			Name: "teescope_oom_kills_total", Kind: metric.Counter, Unit: "processes", Labels: workloadLabels, Source: metric.Kernel,
			Help: "Processes that the kernel killed because the memory of the machine or of a limit ran out. They count for the workload that " +
				"they belonged to when they were killed, also if its container ends with them.",
			Origin: "tracepoint oom:mark_victim",
		}),
		syscallErrors: metric.New(metric.Desc{
			Name: "teescope_process_syscall_errors_total", Kind: metric.Counter, Unit: "calls", Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "pid", "comm", "syscall", "errno"),
			Help:   "System calls of one watched process that failed, by error.",
			Origin: "tracepoint raw_syscalls:sys_exit",
		}),
		durations: metric.New(metric.Desc{
			Name: "teescope_syscall_duration_seconds", Kind: metric.Histogram, Unit: "seconds", Bounds: metric.Doubled(durationShift, durationBuckets-1), Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "syscall"),
			Help: "Distribution of the time from entering to leaving system calls of the workload's watched processes, including waiting. " +
				"A call counts when it returns, with its whole time. A call in which its thread waited when watching began may be missing. " +
				"Only with --syscalls.time and --watch, or while both are switched on.",
			Origin: "tracepoints raw_syscalls:sys_enter and sys_exit, sched:sched_switch, task iterator",
		}),
		boundaryBytes: metric.New(metric.Desc{
			Name: "teescope_enclave_boundary_bytes_total", Kind: metric.Counter, Unit: "bytes", Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "direction"),
			Help: "Bytes that system calls of the workload's watched processes have moved: direction is in (read, recv and their variants) or out (write, send and their variants). " +
				"They lie in memory outside the enclave, so the runtime copies what the enclave uses across the boundary. Buffers of ECALLs and calls that return no number of bytes are missing, and calls for threads outside the enclave are included. " +
				"Only for workloads with SGX, and not counted while system calls are sampled.",
			Origin: "tracepoint raw_syscalls:sys_exit",
		}),
		info: metric.New(metric.Desc{
			Name: "teescope_workload_info", Kind: metric.Info, Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "kind", "tee", "runtime"),
			Help:   "Always 1. The labels describe a workload. Join on the label workload to select by kind, TEE or runtime.",
			Origin: "cgroup and program names; device nodes, executables, arguments and mapped files of /proc/PID",
		}),
		change: metric.New(metric.Desc{
			Name: "teescope_workload_change_timestamp_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Kernel,
			Labels: append(append([]string{}, workloadLabels...), "change"),
			Help: "Unix time at which the main process of a workload (not of a container) last replaced another one. change is restart " +
				"if it runs the same program file, and deployment if it runs another one. Absent before the first change.",
			Origin: "task_struct.start_boottime; device, inode, size and modification time of /proc/PID/exe; process groups",
		}),
		workloads: agentFamily("teescope_workloads", metric.Gauge, "workloads",
			"Number of named workloads, and of process groups that are counted in the workload other because the limit is reached (raise --workloads.max).", "state"),
		slots: agentFamily("teescope_slots", metric.Gauge, "slots",
			"Slots in the BPF maps: one for each group of processes with the same cgroup and program.", "state"),
		lost: agentFamily("teescope_attribution_lost_total", metric.Counter, "events",
			"Events that could not be attributed at once. They are counted under other, or without errno. Requests whose end the kernel did not "+
				"report are counted only here. Requests that began before the probes were attached are counted under other and not here.", "what"),
		start: agentFamily("teescope_start_seconds", metric.Gauge, "seconds",
			"Duration of a stage of the start: maps creates the eBPF maps, programs verifies and attaches the eBPF programs.", "stage"),
		level: agentFamily("teescope_self_level", metric.Gauge, "",
			"1 for the current level of watching. full counts every event. incomplete is full or untimed in the minute after the kernel did not "+
				"run a program for an event (see teescope_bpf_program_missed_runs_total). untimed is without the time of system calls. sampled counts "+
				"frequent events for a part of the time and scales them up. totals does the same without counts of watched processes. off does "+
				"not count frequent events.", "level"),
		budget: agentFamily("teescope_self_budget_ratio", metric.Gauge, "ratio",
			"Share of the machine's CPU time that watching may take (overhead.budget, times five if processes are watched)."),
		selfCost: agentFamily("teescope_self_cpu_ratio", metric.Gauge, "ratio",
			"Share of the machine's CPU time that watching takes. part=\"agent\" is the agent's process, measured. part=\"probes\" is "+
				"estimated from the rate of each event and its cost.", "part"),
		eventCost: agentFamily("teescope_self_event_seconds", metric.Gauge, "seconds",
			"Estimated cost of one counted event in seconds. part=\"program\" is the eBPF program, measured for one second in thirty. "+
				"part=\"kernel\" is the kernel's path to it, measured in a loop (see teescope_self_loop_seconds). "+
				"Absent before it was measured.", "event", "part"),
		loop: agentFamily("teescope_self_loop_seconds", metric.Gauge, "seconds",
			"Time of one event, measured in a loop at the start: the fastest of several short runs, without its probe (probe=\"absent\") and "+
				"with it (probe=\"attached\"). The difference is the cost of counting. Absent where the difference was not plausible. "+
				"Constants are used then.", "event", "probe"),
		attaching: agentFamily("teescope_self_attach_seconds", metric.Gauge, "seconds",
			"CPU time of detaching and reattaching one eBPF program, measured. While events are sampled, this happens once in each second. "+
				"Programs that this kernel changes only slowly, or with a privilege that the agent has dropped, stay attached. "+
				"Absent before the first time."),
		samplingRatio: agentFamily("teescope_sampling_ratio", metric.Gauge, "ratio",
			"Fraction of the time for which the probe is attached. Counts are scaled up by its inverse. 1 is not scaled.", "probe"),
		samplingVariance: metric.New(metric.Desc{
			Name: "teescope_sampling_variance_total", Kind: metric.Counter, Unit: "events squared",
			Labels: append(append([]string{}, workloadLabels...), "family"), Source: metric.Agent,
			Help: "Variance of the estimated number of sampled events. The 95 % interval of the number in a time range of a minute " +
				"or more is its increase plus or minus 1.96 times the square root of the increase of this metric. All workloads " +
				"share the windows, so these variances do not add up: see teescope_sampling_sum_variance_total.",
			Origin: "half the squared difference of the residuals of consecutive cycles of a second, the uncertainty of the event " +
				"rate, and that of events which no window contained",
		}),
		samplingSumVariance: metric.New(metric.Desc{
			Name: "teescope_sampling_sum_variance_total", Kind: metric.Counter, Unit: "events squared", Labels: []string{"family"},
			Source: metric.Agent,
			Help: "Variance of the estimated number of sampled events of all workloads together. The variance of a sum over some " +
				"workloads is at most the square of the sum of their standard deviations.",
			Origin: "as teescope_sampling_variance_total, from the sums of the residuals",
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
		f.syscalls, f.syscallSeconds, f.waitOutside, f.ioOutside, f.switches, f.wait, f.latency, f.migrations, f.faults, f.faultsHandled, f.pageCache,
		f.llcReferences, f.llcMisses, f.blockTime, f.blockBytes, f.cpuSeconds, f.resident, f.processes, f.threads, f.forks, f.starts, f.execs, f.exits,
	}
	for _, t := range twins {
		list = append(list, t.workload)
	}
	list = append(list, f.oomKills, f.busiest, f.info, f.change)
	for _, t := range twins {
		list = append(list, t.process)
	}
	return append(list, f.syscallErrors, f.durations, f.boundaryBytes, f.workloads, f.slots, f.lost, f.start,
		f.level, f.budget, f.selfCost, f.eventCost, f.loop, f.attaching, f.samplingRatio, f.samplingVariance, f.samplingSumVariance)
}
