// SPDX-License-Identifier: Apache-2.0

package system

import (
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// cacheCounters are the performance counters. Their programs have the names of the probes.
var cacheCounters = []struct {
	probe  string
	config uint64
}{
	{"llc_references", unix.PERF_COUNT_HW_CACHE_REFERENCES}, {"llc_misses", unix.PERF_COUNT_HW_CACHE_MISSES},
}

// counterPeriod is the number of cache references or misses per sample. At 10^8 events per second and CPU it causes
// a thousand interrupts of about a microsecond each.
const counterPeriod = 100_000

// otherCache is the reason on processors whose generic cache events are those of another cache (the kernel's
// arch/x86/events/amd/core.c). Their last-level cache counts for all threads of its cores together.
const otherCache = "on this processor (AMD, Hygon) the generic cache events count the second-level cache"

// attachCounters attaches the performance counters to the CPUs that are on line. Without a PMU their statuses give the
// reason.
func (k *kernelSide) attachCounters(o Options) []bpf.Status {
	online, err := k.sys.CPUs("online")
	var list []bpf.Status
	for _, counter := range cacheCounters {
		status := bpf.Status{Probe: counter.probe, Mechanism: bpf.NotAttached}
		switch {
		case err != nil:
			status.Reason = bpf.Reason(err)
		case countsOtherCache(hostfs.At(o.Proc)):
			status.Reason = otherCache
		default:
			c := bpf.Counter{Type: unix.PERF_TYPE_HARDWARE, Config: counter.config, Period: counterPeriod}
			status, _ = k.object.AttachCounter(counter.probe, counter.probe, c, online)
		}
		list = append(list, status)
	}
	return list
}

// countsOtherCache reports whether the generic cache events of this processor are not those of the last-level cache.
func countsOtherCache(proc hostfs.Root) bool {
	cpu, _ := proc.Processor()
	return cpu.Vendor == "AuthenticAMD" || cpu.Vendor == "HygonGenuine"
}

// followCPUs attaches the performance counters to CPUs that have come on line. That needs CAP_PERFMON. If it fails, the
// statuses say so, and the other CPUs are counted.
func (k *kernelSide) followCPUs() {
	var online []int
	for i := range k.status {
		s := &k.status[i]
		if s.Mechanism != bpf.PerfEvent {
			continue
		}
		if online == nil {
			var err error
			if online, err = k.sys.CPUs("online"); err != nil {
				return
			}
		}
		s.Reason = ""
		if err := k.object.FollowCPUs(s.Program, online); err != nil {
			s.Reason = "a CPU that came on line later is not counted: " + bpf.Reason(err)
		}
	}
}
