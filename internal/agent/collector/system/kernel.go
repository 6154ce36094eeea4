// SPDX-License-Identifier: Apache-2.0

package system

import (
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// kernelSide holds the maps and programs in the kernel, and the memory that both sides use.
type kernelSide struct {
	object *bpf.Object
	tasks  *link.Iter
	// snapshot stores the counters of the thread that a CPU runs. It is nil on kernels that cannot run it.
	snapshot   func(cpu int) error
	status     []bpf.Status
	start      []stage
	preemption preemption
	waits      bool        // the kernel measures waits for a CPU (CONFIG_SCHED_INFO)
	sys        hostfs.Root // /sys
	// switches detaches probes because of their cost.
	switches switches
	// startCosts are the costs of events that were measured at the start.
	startCosts *startCosts

	slots     int
	cpus      []cpuState
	rows      []row // [cpu*slots+slot]
	times     []rowTime
	blocks    []blockIO // by slot
	sums      *sums
	pids      []pidPage
	groups    *attribution.Kernel
	gauges    []gauge
	durations distributions
	losses    []uint64
	// controls has one element.
	controls []control
	changes  []changeRing // has one element

	wholeCgroups attribution.Table
	programs     attribution.Table // program names that differ from the name of the process, by process
	callErrors   *ebpf.Map
}

// stage is a stage of the start and its duration.
type stage struct {
	name string
	took time.Duration
}
