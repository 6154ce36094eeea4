// SPDX-License-Identifier: Apache-2.0

package boundary

import "github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"

// GroupCalls is how many system calls a group of processes has made.
type GroupCalls struct {
	Group uint32 // what tells groups apart, while they are
	N     uint64
}

// systemCalls are how many were made by each group whose crossings nothing measures.
type systemCalls map[uint32]uint64

// estimate adds the system calls of programs with an enclave whose crossings nothing measures. It is a family of its
// own, so that measured and estimated crossings are never added up unseen.
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
			count.Add(owners[group], float64(n-last), b.families.Estimated, "syscalls")
		}
	}
	b.estimated = calls
}
