// SPDX-License-Identifier: Apache-2.0

package container

import (
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/metric"
)

// labels are the labels of every family: cAdvisor's id, name and image, and the kubelet's container, pod and
// namespace. They are empty if they are unknown.
var labels = []string{"id", "name", "image", "container", "pod", "namespace"}

// plain is a family with one number per group.
type plain struct {
	stat  cgroup.Stat
	scale float64 // divisor of the number
	desc  *metric.Desc
}

type families struct {
	plain []plain
	// throttled are families that exist only with a quota, as in cAdvisor.
	throttled []plain

	cpuUsage, workingSet, failures       *metric.Desc
	readBytes, writeBytes, reads, writes *metric.Desc
	blkio                                *metric.Desc
	network                              [8]*metric.Desc // in the order of counters
	processes, start, lastSeen           *metric.Desc
	miscUsage, miscLimit, miscHits       *metric.Desc
	info, change, containers             *metric.Desc
}

func describe(d metric.Desc) *metric.Desc {
	d.Labels = append(append([]string{}, labels...), d.Labels...)
	d.Source = metric.Kernel
	return metric.New(d)
}

const (
	nano  = 1e9
	units = 1
)

// networkFamilies are the names, units and descriptions of the network families.
var networkFamilies = [8]struct{ name, unit, help string }{
	{"receive_bytes", "bytes", "Bytes received"},
	{"receive_packets", "packets", "Packets received"},
	{"receive_errors", "errors", "Errors while receiving"},
	{"receive_packets_dropped", "packets", "Packets dropped while receiving"},
	{"transmit_bytes", "bytes", "Bytes sent"},
	{"transmit_packets", "packets", "Packets sent"},
	{"transmit_errors", "errors", "Errors while sending"},
	{"transmit_packets_dropped", "packets", "Packets dropped while sending"},
}

func newFamilies() *families {
	counter := func(stat cgroup.Stat, scale float64, name, unit, help, origin string) plain {
		return plain{stat, scale, describe(metric.Desc{Name: "container_" + name, Kind: metric.Counter, Unit: unit, Help: help, Origin: origin})}
	}
	gauge := func(stat cgroup.Stat, name, unit, help, origin string) plain {
		return plain{stat, units, describe(metric.Desc{Name: "container_" + name, Kind: metric.Gauge, Unit: unit, Help: help, Origin: origin})}
	}
	pressure := func(stat cgroup.Stat, resource, how, help string) plain {
		return counter(stat, nano, "pressure_"+resource+"_"+how+"_seconds_total", "seconds", help, resource+".pressure (cgroup v2)")
	}
	f := &families{
		plain: []plain{
			counter(cgroup.CPUUser, nano, "cpu_user_seconds_total", "seconds", "CPU time in user mode.", "cpu.stat; v1: cpuacct.stat"),
			counter(cgroup.CPUSystem, nano, "cpu_system_seconds_total", "seconds", "CPU time in the kernel.", "cpu.stat; v1: cpuacct.stat"),
			gauge(cgroup.CPUQuota, "spec_cpu_quota", "microseconds", "CPU time allowed in each period. Absent without a limit.", "cpu.max; v1: cpu.cfs_quota_us"),
			gauge(cgroup.CPUPeriod, "spec_cpu_period", "microseconds", "Period of the CPU quota.", "cpu.max; v1: cpu.cfs_period_us"),
			gauge(cgroup.CPUShares, "spec_cpu_shares", "shares", "Relative share of the CPU under contention, from 2 to 262144.", "cpu.weight, converted as cAdvisor does; v1: cpu.shares"),
			gauge(cgroup.MemoryUsage, "memory_usage_bytes", "bytes", "Memory in use, page cache and kernel memory included.", "memory.current; v1: memory.usage_in_bytes"),
			gauge(cgroup.MemoryPeak, "memory_max_usage_bytes", "bytes", "Maximum memory use so far.", "memory.peak (since Linux 5.19); v1: memory.max_usage_in_bytes"),
			// cAdvisor has a counter. OpenMetrics would append _total to its name, and dashboards query this name.
			gauge(cgroup.MemoryLimitHits, "memory_failcnt", "hits", "Number of times that memory use reached the limit.", "memory.events: max; v1: memory.failcnt"),
			gauge(cgroup.RSS, "memory_rss", "bytes", "Anonymous memory.", "memory.stat: anon; v1: total_rss"),
			gauge(cgroup.Cache, "memory_cache", "bytes", "Page cache.", "memory.stat: file; v1: total_cache"),
			gauge(cgroup.MappedFile, "memory_mapped_file", "bytes", "Page cache that is mapped.", "memory.stat: file_mapped; v1: total_mapped_file"),
			gauge(cgroup.Swap, "memory_swap", "bytes", "Memory swapped out.", "memory.swap.current; v1: memory.stat: total_swap"),
			gauge(cgroup.MemoryLimit, "spec_memory_limit_bytes", "bytes", "Memory limit. 0 means no limit.", "memory.max; v1: memory.limit_in_bytes"),
			counter(cgroup.OOMKills, units, "oom_events_total", "processes", "Processes killed because memory ran out (OOM kills).", "memory.events: oom_kill; v1: memory.oom_control"),
			gauge(cgroup.Threads, "threads", "threads", "Threads.", "pids.current"),
			gauge(cgroup.ThreadsLimit, "threads_max", "threads", "Maximum number of threads. 0 means no limit.", "pids.max"),
			pressure(cgroup.CPUSome, "cpu", "waiting", "Time in which some task waited for a CPU."),
			pressure(cgroup.CPUFull, "cpu", "stalled", "Time in which every task waited for a CPU."),
			pressure(cgroup.MemorySome, "memory", "waiting", "Time in which some task waited for memory."),
			pressure(cgroup.MemoryFull, "memory", "stalled", "Time in which every task waited for memory."),
			pressure(cgroup.IOSome, "io", "waiting", "Time in which some task waited for input or output."),
			pressure(cgroup.IOFull, "io", "stalled", "Time in which every task waited for input or output."),
		},
		throttled: []plain{
			counter(cgroup.Periods, units, "cpu_cfs_periods_total", "periods", "Periods in which the CPU quota was enforced. Absent without a quota.", "cpu.stat: nr_periods"),
			counter(cgroup.ThrottledPeriods, units, "cpu_cfs_throttled_periods_total", "periods", "Periods in which the CPU quota ran out. Absent without a quota.", "cpu.stat: nr_throttled"),
			counter(cgroup.ThrottledTime, nano, "cpu_cfs_throttled_seconds_total", "seconds", "Time throttled, summed over CPUs. Absent without a quota.", "cpu.stat: throttled_usec; v1: throttled_time"),
		},
		cpuUsage: describe(metric.Desc{
			Name: "container_cpu_usage_seconds_total", Kind: metric.Counter, Unit: "seconds", Labels: []string{"cpu"},
			Help: "CPU time. The label cpu is always total, as in the kubelet's metrics.", Origin: "cpu.stat: usage_usec; v1: cpuacct.usage",
		}),
		workingSet: describe(metric.Desc{
			Name: "container_memory_working_set_bytes", Kind: metric.Gauge, Unit: "bytes",
			Help: "Memory in use minus the inactive page cache. The kubelet evicts pods by this value.", Origin: "memory.current - memory.stat: inactive_file; v1: memory.usage_in_bytes - total_inactive_file",
		}),
		failures: describe(metric.Desc{
			Name: "container_memory_failures_total", Kind: metric.Counter, Unit: "faults", Labels: []string{"failure_type", "scope"},
			Help: "Page faults. failure_type pgmajfault counts those that read from a device. Both scopes count the whole container.", Origin: "memory.stat: pgfault, pgmajfault; v1: total_pgfault, total_pgmajfault",
		}),
		blkio: describe(metric.Desc{
			Name: "container_blkio_device_usage_total", Kind: metric.Counter, Unit: "bytes", Labels: []string{"device", "major", "minor", "operation"},
			Help: "Bytes read and written, by device and operation.", Origin: "io.stat; v1: blkio.throttle.io_service_bytes_recursive",
		}),
		processes: describe(metric.Desc{
			Name: "container_processes", Kind: metric.Gauge, Unit: "processes",
			Help: "Processes.", Origin: "cgroup.procs",
		}),
		start: describe(metric.Desc{
			Name: "container_start_time_seconds", Kind: metric.Gauge, Unit: "seconds",
			Help: "Start time of the container's first process in seconds since 1970.", Origin: "/proc/PID/stat, /proc/stat: btime",
		}),
		lastSeen: describe(metric.Desc{
			Name: "container_last_seen", Kind: metric.Gauge, Unit: "seconds",
			Help: "Time when the container was last seen, in seconds since 1970.", Origin: "the walk over the control groups",
		}),
		miscUsage: describe(metric.Desc{
			Name: "container_misc_usage", Kind: metric.Gauge, Labels: []string{"resource"},
			Help: "Use of a limited resource of the machine: sgx_epc in bytes of enclave memory, sev and sev_es in address space identifiers (ASIDs), tdx in keys.", Origin: "misc.current",
		}),
		miscLimit: describe(metric.Desc{
			Name: "container_misc_limit", Kind: metric.Gauge, Labels: []string{"resource"},
			Help: "Limit of the resource, in the unit of container_misc_usage. Absent without a limit.", Origin: "misc.max",
		}),
		miscHits: describe(metric.Desc{
			Name: "container_misc_limit_hits_total", Kind: metric.Counter, Unit: "hits", Labels: []string{"resource"},
			Help: "Number of times that the use of the resource reached its limit.", Origin: "misc.events",
		}),
		info: metric.New(metric.Desc{
			Name: "teescope_container_info", Kind: metric.Info, Labels: append([]string{"workload"}, labels...), Source: metric.Agent,
			Help: "Always 1. It joins the container_ families with the families of workloads, where workload is the beginning of the container's ID.", Origin: "names of control groups; files of the container runtimes",
		}),
		change: metric.New(metric.Desc{
			Name: "teescope_container_change_timestamp_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Agent,
			Labels: append(append([]string{"workload"}, labels...), "change"),
			Help: "Start time of a container that replaced another one of the same name (on Kubernetes: of the same container of the " +
				"same controller), in seconds since 1970. change is restart when both have the same image, deployment when not. " +
				"Absent for containers that replaced none.",
			Origin: "names of control groups; files of the container runtimes; /proc/PID/stat",
		}),
		containers: metric.New(metric.Desc{
			Name: "teescope_containers", Kind: metric.Gauge, Unit: "containers", Labels: []string{"state"}, Source: metric.Agent,
			Help: "Number of containers. state is named for those that have series, left_out for those beyond the limit.", Origin: "the walk over the control groups",
		}),
	}
	f.readBytes = device("reads_bytes_total", "bytes", "Bytes read from the device.")
	f.writeBytes = device("writes_bytes_total", "bytes", "Bytes written to the device.")
	f.reads = device("reads_total", "operations", "Reads from the device.")
	f.writes = device("writes_total", "operations", "Writes to the device.")
	for i, n := range networkFamilies {
		f.network[i] = describe(metric.Desc{
			Name: "container_network_" + n.name + "_total", Kind: metric.Counter, Unit: n.unit, Labels: []string{"interface"},
			Help:   n.help + ", in the container's own network namespace. If several containers share one, only the oldest has the series.",
			Origin: "/proc/PID/net/dev",
		})
	}
	return f
}

func device(name, unit, help string) *metric.Desc {
	return describe(metric.Desc{
		Name: "container_fs_" + name, Kind: metric.Counter, Unit: unit, Labels: []string{"device"}, Help: help,
		Origin: "io.stat; v1: blkio.throttle.io_service_bytes_recursive and io_serviced_recursive",
	})
}

func (f *families) all() []*metric.Desc {
	all := []*metric.Desc{
		f.cpuUsage, f.workingSet, f.failures, f.readBytes, f.writeBytes, f.reads, f.writes, f.blkio,
		f.processes, f.start, f.lastSeen, f.miscUsage, f.miscLimit, f.miscHits, f.info, f.change, f.containers,
	}
	for _, p := range append(append([]plain{}, f.plain...), f.throttled...) {
		all = append(all, p.desc)
	}
	return append(all, f.network[:]...)
}
