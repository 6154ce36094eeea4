// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"testing"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// One workload has a new stack in each sample, of new addresses. When its part of the memory is used up, its samples lose their stacks,
// and another workload still has room for its own. No sample is lost.
func TestOneWorkloadLeavesRoomForOthers(t *testing.T) {
	const samples, depth = 1000, 10
	proc := hostfs.At(t.TempDir())
	for _, limits := range []Options{{Bytes: 100 * (8*depth + 256)}, {Locations: 100 * depth}} {
		limits.Table, limits.All = symbol.New(symbol.Options{Proc: proc, Sys: proc}), true
		r := New(limits)
		address := uint64(1 << 63)
		add := func(kernelThread bool) {
			s := profiling.Sample{Samples: 1, Events: 10, Call: -1, Cause: -1, KernelThread: kernelThread, Process: profiling.Process{PID: map[bool]int{true: 7, false: 8}[kernelThread]}}
			for range depth {
				address += 16
				s.Kernel = append(s.Kernel, address)
			}
			r.Add(&s)
		}
		for range samples {
			add(true)
		}
		for range 20 {
			add(false) // of a process that has ended, which is another workload
		}
		p, f := r.Profile(About{Event: profiling.Clock, Frequency: 19})
		if f.Samples != samples+20 || f.Dropped != 0 || f.Stackless != samples-100/parts {
			t.Errorf("%d samples, %d dropped, %d without a stack", f.Samples, f.Dropped, f.Stackless)
		}
		whole := 0
		for _, s := range p.Sample {
			if len(s.Location) == depth {
				whole++
			}
		}
		if whole != 100/parts+20 {
			t.Errorf("%d stacks, want those of a part and all of the other workload", whole)
		}
	}
}
