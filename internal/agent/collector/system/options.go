// SPDX-License-Identifier: Apache-2.0

package system

import (
	"log/slog"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Options of the collector.
type Options struct {
	// MaxWorkloads bounds the label workload; what does not fit is folded into "other".
	MaxWorkloads int
	// Watch singles out processes to break down one by one.
	Watch []watch.Rule
	// SyscallTime also measures the time spent in each system call, which doubles what a call costs.
	SyscallTime bool
	// Budget is the share of the machine's CPU time that watching may take; 0, or 1 and more, is no limit.
	Budget float64
	// Proc and Cgroup are the roots of /proc and of the cgroup file systems.
	Proc, Cgroup string
	// Detector tells in which TEE a process runs. Others may ask it too.
	Detector *tee.Detector
	Log      *slog.Logger
}
