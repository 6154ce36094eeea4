// SPDX-License-Identifier: Apache-2.0

package boundary

import "github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"

// GroupCalls is the number of system calls of a group of processes.
type GroupCalls struct {
	Group uint32 // identifies the group while it exists
	N     uint64
}

// systemCalls are the system calls of each group whose transitions are not measured, at the last estimate.
type systemCalls map[uint32]uint64

// estimate adds the system calls of programs with an enclave whose transitions no mechanism measures. They have
// their own family, so that a sum never mixes measured and estimated transitions.
func (b *Backend) estimate() {
	if b.opts.Calls == nil {
		return
	}
	var pids []int
	for p := range b.processes.All() {
		if p.Enclave {
			pids = append(pids, int(p.TGID))
		}
	}
	if len(pids) == 0 && len(b.estimated) == 0 {
		return
	}
	calls, owners := systemCalls{}, map[uint32]*count.Workload{}
	measured := map[uint32]bool{}
	for pid, c := range b.opts.Calls(pids) {
		p := b.processes.Known(uint32(pid))
		calls[c.Group], owners[c.Group] = c.N, p.Workload
		measured[c.Group] = measured[c.Group] || b.mechanisms.measure(p)
	}
	for group, n := range calls {
		if measured[group] {
			delete(calls, group)
			continue
		}
		if last, known := b.estimated[group]; known && n > last {
			count.AddOlder(owners[group], float64(n-last), b.families.Estimated, "syscalls")
		}
	}
	b.estimated = calls
}
