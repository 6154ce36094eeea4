// SPDX-License-Identifier: Apache-2.0

package boundary

import "github.com/teescope/teescope/internal/agent/workload"

// GroupCalls is how many system calls a group of processes has made.
type GroupCalls struct {
	Group uint32 // what tells groups apart, while they are
	N     uint64
}

// guesses remembers how many system calls were made by the groups whose crossings nothing measures.
type guesses map[uint32]uint64

// estimate adds the system calls of programs with an enclave whose crossings nothing measures. It is a family of its
// own: nobody adds up what was measured and what was guessed without saying so.
func (b *Backend) estimate() {
	if b.opts.Calls == nil {
		return
	}
	var pids []int
	for tgid, p := range b.processes {
		if p.enclave {
			pids = append(pids, int(tgid))
		}
	}
	if len(pids) == 0 && len(b.guessed) == 0 {
		return
	}
	calls, owners := guesses{}, map[uint32]*workload.Workload[counts]{}
	measured := map[uint32]bool{}
	for pid, c := range b.opts.Calls(pids) {
		p := b.processes[uint32(pid)]
		calls[c.Group], owners[c.Group] = c.N, p.owner
		measured[c.Group] = measured[c.Group] || p.measured()
	}
	for group, n := range calls {
		if measured[group] {
			delete(calls, group)
			continue
		}
		if last, known := b.guessed[group]; known && n > last {
			b.add(owners[group], float64(n-last), b.families.estimated, "syscalls")
		}
	}
	b.guessed = calls
}

// measured tells whether something better than a guess is known of a process.
func (p *process) measured() bool {
	if p.layout != nil {
		return true
	}
	for file := range p.files {
		if len(file.sites) > 0 && (file.runtime != throughVDSO || p.byVDSO) {
			return true
		}
	}
	return false
}
