// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// CanWalkStacks reports whether a program can walk a user stack itself: the kernel has bpf_loop (Linux 5.17), and
// bpf_task_pt_regs for the registers at which the walk begins.
func CanWalkStacks() bool {
	return features.HaveProgramHelper(ebpf.PerfEvent, asm.FnLoop) == nil && features.HaveProgramHelper(ebpf.PerfEvent, asm.FnTaskPtRegs) == nil
}
