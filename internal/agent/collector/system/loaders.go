// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/watch"
)

// maxLoaders is the maximum number of processes with the name of a loader that one pass inspects.
const maxLoaders = 256

// nameLoaders gives loaders of Gramine that started before the programs were attached the names of their applications. The kernel
// side reads the arguments of the current process only. So it has assigned these loaders to the slot of all programs named
// "loader". It assigns a new slot at their next event. A loader that does not answer is asked again in the next pass, which lists no other
// processes.
func (s *slots) nameLoaders(proc hostfs.Root, reads *reader.Pool) error {
	pids := s.silent
	if s.loaders {
		var err error
		if pids, err = proc.Processes(); err != nil {
			return fmt.Errorf("listing loaders: %w", err)
		}
	}
	s.loaders, s.silent = false, nil
	seen := 0
	for _, pid := range pids {
		at, ok := s.kernel.slotOf(pid)
		if !ok || at < slotFirst || !watch.MayBeLoader(s.kernel.groups.Records[at].Program()) {
			continue
		}
		if seen++; seen > maxLoaders {
			break
		}
		name, err := watch.Application(proc, reads, pid)
		switch {
		case reader.Unanswered(err):
			s.silent = append(s.silent, pid)
			continue
		case name == "":
			continue
		}
		var program attribution.Program
		copy(program.Name[:len(program.Name)-1], name)
		if err := s.kernel.programs.Update(uint32(pid), program, ebpf.UpdateAny); err != nil {
			return fmt.Errorf("naming the program of process %d: %w", pid, err)
		}
		s.kernel.moveProcess(pid, at, slotUnknown)
	}
	return nil
}
