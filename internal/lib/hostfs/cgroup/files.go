// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"slices"
)

// file describes how to read one file. The first existing one of its names is used.
type file struct {
	names []string
	parse func(data []byte, s *Stats)
}

// table lists the files of one controller.
type table struct {
	controller string // of version 1; "" for files that version 1 does not have
	files      []file
}

const (
	perMicrosecond = 1_000      // nanoseconds
	perTick        = 10_000_000 // nanoseconds: USER_HZ is 100 on every architecture that Go supports
)

// The files of version 1 (Documentation/admin-guide/cgroup-v1). Times are in nanoseconds unless stated otherwise.
var v1Files = []table{
	{"cpuacct", []file{
		{[]string{"cpuacct.usage"}, number(CPUUsage)},
		{[]string{"cpuacct.stat"}, flat(map[string]field{"user": {CPUUser, perTick}, "system": {CPUSystem, perTick}})},
	}},
	{"cpu", []file{
		{[]string{"cpu.stat"}, flat(map[string]field{
			"nr_periods": {Periods, 1}, "nr_throttled": {ThrottledPeriods, 1}, "throttled_time": {ThrottledTime, 1},
		})},
		{[]string{"cpu.cfs_quota_us"}, quota},
		{[]string{"cpu.cfs_period_us"}, number(CPUPeriod)},
		{[]string{"cpu.shares"}, number(CPUShares)},
	}},
	{"memory", []file{
		{[]string{"memory.usage_in_bytes"}, number(MemoryUsage)},
		{[]string{"memory.max_usage_in_bytes"}, number(MemoryPeak)},
		{[]string{"memory.limit_in_bytes"}, limit(MemoryLimit)},
		{[]string{"memory.failcnt"}, number(MemoryLimitHits)},
		{[]string{"memory.oom_control"}, flat(map[string]field{"oom_kill": {OOMKills, 1}})},
		{[]string{"memory.stat"}, flat(map[string]field{
			"total_rss": {RSS, 1}, "total_cache": {Cache, 1}, "total_mapped_file": {MappedFile, 1},
			"total_inactive_file": {InactiveFile, 1}, "total_swap": {Swap, 1},
			"total_pgfault": {PageFaults, 1}, "total_pgmajfault": {MajorPageFaults, 1},
		})},
	}},
	// The throttling layer counts all input and output, also without limits. The files of bfq contain the same as seen
	// by another scheduler.
	{"blkio", []file{
		{[]string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"}, blkio(func(d *Device) (r, w *uint64) {
			return &d.ReadBytes, &d.WriteBytes
		})},
		{[]string{"blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced"}, blkio(func(d *Device) (r, w *uint64) {
			return &d.Reads, &d.Writes
		})},
	}},
	{"pids", pidsFiles},
	{"misc", miscFiles},
}

// The files of version 2: Documentation/admin-guide/cgroup-v2.rst.
var v2Files = []table{
	// In version 2, the controller that accounts CPU time has no name of its own, and the same file contains
	// throttling. A hybrid machine has either both of version 1 or none.
	{"cpuacct", []file{
		{[]string{"cpu.stat"}, flat(map[string]field{
			"usage_usec": {CPUUsage, perMicrosecond}, "user_usec": {CPUUser, perMicrosecond}, "system_usec": {CPUSystem, perMicrosecond},
			"nr_periods": {Periods, 1}, "nr_throttled": {ThrottledPeriods, 1}, "throttled_usec": {ThrottledTime, perMicrosecond},
		})},
	}},
	{"cpu", []file{
		{[]string{"cpu.max"}, cpuMax},
		{[]string{"cpu.weight"}, cpuWeight},
	}},
	{"memory", []file{
		{[]string{"memory.current"}, number(MemoryUsage)},
		{[]string{"memory.peak"}, number(MemoryPeak)}, // since 5.19
		{[]string{"memory.max"}, limit(MemoryLimit)},
		{[]string{"memory.swap.current"}, number(Swap)},
		{[]string{"memory.events"}, flat(map[string]field{"max": {MemoryLimitHits, 1}, "oom_kill": {OOMKills, 1}})},
		{[]string{"memory.stat"}, flat(map[string]field{
			"anon": {RSS, 1}, "file": {Cache, 1}, "file_mapped": {MappedFile, 1}, "inactive_file": {InactiveFile, 1},
			"pgfault": {PageFaults, 1}, "pgmajfault": {MajorPageFaults, 1},
		})},
	}},
	{"blkio", []file{{[]string{"io.stat"}, ioStat}}},
	{"pids", pidsFiles},
	{"misc", miscFiles},
	{"", []file{
		{[]string{"cpu.pressure"}, pressure(CPUSome, CPUFull)},
		{[]string{"memory.pressure"}, pressure(MemorySome, MemoryFull)},
		{[]string{"io.pressure"}, pressure(IOSome, IOFull)},
	}},
}

var pidsFiles = []file{
	{[]string{"pids.current"}, number(Threads)},
	{[]string{"pids.max"}, limit(ThreadsLimit)},
}

var miscFiles = []file{
	{[]string{"misc.current"}, func(data []byte, s *Stats) {
		ParseFlat(data, func(name []byte, v uint64) { addResource(&s.MiscUsage, name, v) })
	}},
	{[]string{"misc.max"}, func(data []byte, s *Stats) {
		ParseFlat(data, func(name []byte, v uint64) { addResource(&s.MiscLimit, name, v) })
	}},
	{[]string{"misc.events"}, func(data []byte, s *Stats) { // "sgx_epc.max 3"
		ParseFlat(data, func(name []byte, v uint64) {
			if name, ok := bytes.CutSuffix(name, []byte(".max")); ok {
				addResource(&s.MiscHits, name, v)
			}
		})
	}},
}

func number(n Stat) func([]byte, *Stats) {
	return func(data []byte, s *Stats) {
		if v, ok := parseNumber(data); ok {
			s.set(n, v)
		}
	}
}

func limit(n Stat) func([]byte, *Stats) {
	return func(data []byte, s *Stats) {
		if v, ok := parseLimit(data); ok {
			s.set(n, v)
		}
	}
}

// field is the statistic that a line of a flat keyed file sets, and the factor of its number.
type field struct {
	stat Stat
	unit uint64
}

func flat(fields map[string]field) func([]byte, *Stats) {
	return func(data []byte, s *Stats) {
		ParseFlat(data, func(key []byte, v uint64) {
			if to, ok := fields[string(key)]; ok {
				s.setIn(to.stat, v, to.unit)
			}
		})
	}
}

func quota(data []byte, s *Stats) {
	if v, ok := parseLimit(data); ok && v > 0 {
		s.set(CPUQuota, v)
	}
}

func cpuMax(data []byte, s *Stats) {
	quota, period, ok := parseCPUMax(data)
	if !ok {
		return
	}
	s.set(CPUPeriod, period)
	if quota > 0 {
		s.set(CPUQuota, quota)
	}
}

func cpuWeight(data []byte, s *Stats) {
	weight, ok := parseNumber(data)
	if shares, valid := sharesOfWeight(weight); ok && valid {
		s.set(CPUShares, shares)
	}
}

func pressure(some, full Stat) func([]byte, *Stats) {
	return func(data []byte, s *Stats) {
		parsePressure(data, func(kind []byte, total uint64) {
			switch string(kind) {
			case "some":
				s.setIn(some, total, perMicrosecond)
			case "full":
				s.setIn(full, total, perMicrosecond)
			}
		})
	}
}

func ioStat(data []byte, s *Stats) {
	parseIOStat(data, func(major, minor uint32, key []byte, v uint64) {
		if !slices.Contains([]string{"rbytes", "wbytes", "rios", "wios"}, string(key)) {
			return
		}
		d := s.device(major, minor)
		if d == nil {
			return
		}
		switch string(key) {
		case "rbytes":
			d.ReadBytes = v
		case "wbytes":
			d.WriteBytes = v
		case "rios":
			d.Reads = v
		case "wios":
			d.Writes = v
		}
	})
}

func blkio(of func(*Device) (reads, writes *uint64)) func([]byte, *Stats) {
	return func(data []byte, s *Stats) {
		parseBlkio(data, func(major, minor uint32, operation []byte, v uint64) {
			isRead := string(operation) == "Read"
			if !isRead && string(operation) != "Write" {
				return
			}
			if d := s.device(major, minor); d != nil {
				reads, writes := of(d)
				if isRead {
					*reads = v
				} else {
					*writes = v
				}
			}
		})
	}
}
