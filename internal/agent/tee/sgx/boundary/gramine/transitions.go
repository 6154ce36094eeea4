// SPDX-License-Identifier: Apache-2.0

package gramine

import (
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
)

func countsOf(n [counters]uint64) transition.Counts {
	aexs := n[aexs]
	return transition.Counts{Enters: n[eenters], Exits: n[eexits], AEXs: &aexs, Source: source}
}

// Transitions returns the transitions of a process up to the last Read, since its counters are known.
func (g *Counters) Transitions(p *process.Process) *transition.Counts {
	s := g.processes[p.TGID]
	if s == nil {
		return nil
	}
	all := countsOf(s.sum)
	return &all
}

// Threads returns the transitions of the running threads of processes up to the last Read, as Gramine counts them. Of threads
// that share a control block only the first has any: the others are RPC threads of Exitless, which do not cross, and threads
// that have no block of their own yet.
func (g *Counters) Threads(of map[uint32]bool) (map[transition.Thread]transition.Counts, error) {
	live, err := g.live()
	if err != nil {
		return nil, err
	}
	first := map[blockKey]liveThread{}
	for _, t := range live {
		at := blockKey{TGID: t.TGID, GS: t.GS}
		if known, twice := first[at]; of[t.TGID] && (!twice || t.Start < known.Start) {
			first[at] = t
		}
	}
	all := map[transition.Thread]transition.Counts{}
	for at, t := range first {
		s := g.processes[at.TGID]
		if s == nil {
			continue
		}
		if b := s.blocks[at.GS]; b != nil && b.alive && b.start <= t.Start && t.Start <= b.end && trust(b.last, b.reset) > aexs {
			all[transition.ThreadOf(t.TID, t.Start)] = countsOf(b.last)
		}
	}
	return all, nil
}
