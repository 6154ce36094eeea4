// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"cmp"
	"maps"
	"slices"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
)

// refuse records that a process gets no breakpoints.
func (b *Breakpoints) refuse(p *process.Process, reason error) error {
	b.state(p.TGID).refused = true
	b.Log.Info("AEXs are not counted", "pid", p.TGID, "reason", reason)
	if err := b.open(); err != nil {
		return err
	}
	p.Files[b.file] = true
	explain(b, p, reason)
	return nil
}

// explain states why a process does not have all breakpoints, or that it has. The file has the reason of the process with the lowest number.
func explain(b *Breakpoints, p *process.Process, reason error) {
	s := b.state(p.TGID)
	if s.reason = ""; reason != nil {
		s.reason = bpf.Reason(reason)
	}
	summarize(b)
}

// summarize sets the reason of the file from those of the processes.
func summarize(b *Breakpoints) {
	b.file.Partly = ""
	for _, tgid := range slices.Sorted(maps.Keys(b.processes)) {
		b.file.Partly = cmp.Or(b.file.Partly, b.processes[tgid].reason)
	}
	if !b.file.Waits() {
		b.file.Reason = b.file.Partly
	}
}
