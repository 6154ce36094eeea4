// SPDX-License-Identifier: Apache-2.0

package system

import (
	"log/slog"
	"time"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Options of the collector.
type Options struct {
	// MaxWorkloads limits the number of workloads. Groups of further workloads are folded into "other".
	MaxWorkloads int
	// Watch selects processes that get counts of their own.
	Watch []watch.Rule
	// SyscallTime also measures the time spent in each system call, which doubles the cost of a call.
	SyscallTime bool
	// OnDemand prepares what Demand may switch on while the collector runs.
	OnDemand bool
	// Budget is the share of the machine's CPU time that watching may take. 0, or 1 and more, means no limit.
	Budget float64
	// Others returns the CPU time of eBPF programs of other collectors, which is part of the same budget: the measured time of
	// the programs, and the time of the kernel's path to them. Its argument is the speed of this machine relative to the machine
	// of the constant costs. If nil, both times are zero.
	Others func(relative float64) (program, path time.Duration)
	// Proc, Sys and Cgroup are the roots of /proc, /sys and of the cgroup file systems.
	Proc, Sys, Cgroup string
	// Detector finds the TEE that a process runs in. It may be shared with other users.
	Detector *tee.Detector
	// Reads reads processes that may not answer.
	Reads *reader.Pool
	// Pods completes the identity of a workload in a pod. It returns false if the names of the pod are not known yet. If nil, the
	// identity keeps the UID of the pod.
	Pods func(*workload.Identity) bool
	Log  *slog.Logger
}

// timesCalls reports whether system calls may be timed.
func (o Options) timesCalls() bool { return o.SyscallTime || o.OnDemand }

// distributesCalls reports whether the time of system calls of watched processes may have distributions.
func (o Options) distributesCalls() bool { return o.timesCalls() && o.countsErrors() }

// countsErrors reports whether errors of watched processes may be counted.
func (o Options) countsErrors() bool { return len(o.Watch) > 0 || o.OnDemand }
