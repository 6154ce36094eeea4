// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
)

// Transitions returns the transitions of a process at this door, and how the transitions of its threads are read. It returns nil if a part
// of them is not counted.
func (b *Breakpoints) Transitions(p *process.Process) (*transition.Counts, *transition.Counter, error) {
	if !b.Measures(p) || !b.file.Exact() {
		return nil, nil, nil
	}
	sum, err := b.countsOf(p.TGID)
	if err != nil || sum == nil {
		return nil, nil, err
	}
	// An ENCLU of a runtime that resumes may be one that was omitted, unless one was seen to resume.
	resumes := sum.Resumes > 0 || !b.enclaves
	split := func(enters, aexs uint64) transition.Counts {
		n := transition.Counts{Enters: enters, Exits: enters, Source: b.source}
		if resumes {
			n.AEXs = &aexs
		}
		return n
	}
	all := split(sum.Enters, sum.Resumes)
	return &all, &transition.Counter{By: b.cookie, Split: split}, nil
}
