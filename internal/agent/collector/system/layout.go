// SPDX-License-Identifier: Apache-2.0

// Package system is the collector of what workloads ask of the kernel: system calls, context switches,
// page faults, the page cache, CPU time and memory (the System Metrics Exporter of TEEMon, section 4).
//
// The kernel side (system.bpf.c, slots.h) counts into slots; this side names the slots, adds them up
// into workloads and takes back those that nobody uses. It refuses to know how metrics are scraped or stored.
package system

import "unsafe"

// The constants of system.h.
const (
	calls            = 512
	callCompat       = 510
	callOther        = 511
	slotUnknown      = 0
	slotOther        = 1
	slotKernel       = 2
	slotIdle         = 3
	slotFirst        = 4
	pidsPerPage      = 2048
	pathLevels       = 8
	pathName         = 96
	faultReasons     = 9
	cacheOps         = 4
	cacheAccess      = 1
	cacheDirtyBuffer = 3
	pidUnknown       = 0xffffffff
)

// The programs that measure themselves (enum metered).
const (
	meterCall = iota
	meterExit
	meterSwitch
	meterFault
	meterCache
	meters
)

// row mirrors struct row.
type row struct {
	Calls         [calls]uint64
	Switches      [2]uint64
	Migrations    uint64
	RunNS         uint64
	UserNS        uint64
	SysNS         uint64
	DelayNS       uint64
	MinorFaults   uint64
	MajorFaults   uint64
	Forks         uint64
	Threads       uint64
	Execs         uint64
	Exits         uint64
	Faults        [2][faultReasons]uint64
	Cache         [cacheOps]uint64
	LLCReferences uint64
	LLCMisses     uint64
	_             [27]uint64
}

const rowWords = int(unsafe.Sizeof(row{}) / 8)

// words sees the row as the counters that it consists of.
func (r *row) words() *[rowWords]uint64 { return (*[rowWords]uint64)(unsafe.Pointer(r)) }

// rowTime mirrors struct row_time.
type rowTime struct{ CallNS [calls]uint64 }

// threadCounters mirrors struct thread_counters.
type threadCounters struct {
	RunNS, UserNS, SysNS, DelayNS, MinorFaults, MajorFaults uint64
}

// cpuState mirrors struct cpu_state.
type cpuState struct {
	Row, Slot, PID, Watched uint32
	NVCSw                   uint64
	Switches                uint64
	Call                    uint64
	Regs                    uint64
	Start                   threadCounters
	SnapshotSwitches        uint64
	Inflight                threadCounters
	RunTimes                [meters]runTime
	_                       [3]uint64
}

// runTime mirrors struct run_time: how often a program has run while it was measured, and for how long.
type runTime struct{ Runs, NS uint64 }

// pidPage mirrors struct pid_page.
type pidPage struct{ Slot [pidsPerPage]uint16 }

// groupKey mirrors struct group_key.
type groupKey struct {
	Cgroup uint64
	Comm   [16]byte
}

// group mirrors struct group.
type group struct {
	Cgroup                            uint64
	Ready, TGID, Base, Watched, Depth uint32
	Comm                              [16]byte
	Path                              [pathLevels][pathName]byte
	_                                 uint32
}

// gauge mirrors struct gauge.
type gauge struct {
	Processes, Threads, RSSPages uint64
	OldestStart                  uint64
	Oldest                       uint32
	_                            uint32
}

// control mirrors struct control.
type control struct{ TimingSince, Sampled, Closed, Metering uint64 }

// timingRests is a time that never comes.
const timingRests = ^uint64(0)

// errorKey mirrors struct error_key.
type errorKey struct {
	Slot  uint32
	Call  uint16
	Error uint16
}

// text reads a NUL-terminated string.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
