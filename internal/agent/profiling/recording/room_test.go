// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"testing"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/run/profile"
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

// One workload has a new thread in each sample. When its part of the room is used up, its further threads share one sample, and the
// samples of another workload keep their stacks. No sample is lost.
func TestThreadsOfOneWorkloadLeaveRoomForOthers(t *testing.T) {
	const samples, depth, room, others = 1000, 10, 100, 20
	proc := hostfs.At(t.TempDir())
	for name, tt := range map[string]struct {
		Options
		stacked bool
	}{
		"bytes":                   {Options{Bytes: room * (8*depth + 256)}, true},
		"bytes, without a stack":  {Options{Bytes: room * (8*depth + 256)}, false},
		"stacks":                  {Options{Stacks: room}, true},
		"stacks, without a stack": {Options{Stacks: room}, false},
		"addresses":               {Options{Locations: room * depth, Stacks: 3 * room}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.Table, tt.All = symbol.New(symbol.Options{Proc: proc, Sys: proc}), true
			r := New(tt.Options)
			address := uint64(1 << 63)
			add := func(s profiling.Sample, stacked bool) {
				s.Samples, s.Events, s.Call, s.Cause = 1, 10, -1, -1
				for range depth {
					if address += 16; stacked {
						s.Kernel = append(s.Kernel, address)
					}
				}
				r.Add(&s)
			}
			for i := range samples {
				add(profiling.Sample{KernelThread: true, Process: profiling.Process{PID: 7 + i}, TID: 7 + i, Name: "crowd", Thread: "one"}, tt.stacked)
			}
			for i := range others {
				add(profiling.Sample{Process: profiling.Process{PID: 5}, TID: 5 + i}, true) // it has ended, which is another workload
			}
			p, f := r.Profile(About{Event: profiling.Clock, Frequency: 19})
			if f.Samples != samples+others || f.Dropped != 0 || f.Threadless == 0 || f.Threadless > f.Stackless {
				t.Errorf("%d samples, %d dropped, %d without a stack, %d without a thread", f.Samples, f.Dropped, f.Stackless, f.Threadless)
			}
			var shared, whole int
			var sum int64
			for _, s := range p.Sample {
				sum += s.Value[1]
				if s.Label[profile.Thread] == nil {
					shared++
					if s.Value[0] != int64(f.Threadless) || s.Label[profile.Workload][0] != "kernel" || len(s.Label) != 1 {
						t.Errorf("the shared sample: %v of %v", s.Value, s.Label)
					}
				}
				if s.Label[profile.Workload] == nil && len(s.Location) == depth {
					whole++
				}
			}
			if shared != 1 || whole != others || sum != 10*(samples+others) {
				t.Errorf("%d shared samples, %d stacks of the other workload, time %d", shared, whole, sum)
			}
		})
	}
}
