// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/run/profile"
)

// One workload has a new stack in each sample, of new addresses. When the memory is used up, its samples lose their stacks, and the
// stacks of another workload take the places of its newest ones. No sample is lost.
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
		if f.Samples != samples+20 || f.Dropped != 0 || f.Stackless < samples-100+20 || f.Stackless > samples-100+20+2 {
			t.Errorf("%d samples, %d dropped, %d without a stack", f.Samples, f.Dropped, f.Stackless)
		}
		whole := map[string]int{}
		for _, s := range p.Sample {
			if len(s.Location) == depth {
				whole[workloadOf(s)]++
			}
		}
		if whole[""] != 20 || whole["kernel"] < 100-20-2 {
			t.Errorf("%v stacks, want all of the other workload", whole)
		}
	}
}

// One workload has a new thread in each sample. When the room is used up, its further threads share one sample, and the samples of
// another workload keep their stacks. No sample is lost.
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

// hungry adds samples of a workload, each with new addresses.
type hungry struct {
	*Recording
	process *symbol.Process
	address uint64
	depth   int
	threads bool // each sample is of another thread
	added   int
}

func (h *hungry) add() {
	h.added++
	s := profiling.Sample{Samples: 1, Events: 10, Call: -1, Cause: -1, Process: profiling.Process{PID: h.process.PID}, TID: h.process.PID}
	if h.threads {
		s.TID += h.added
	}
	for range h.depth {
		h.address += 16
		s.Kernel = append(s.Kernel, h.address)
	}
	h.keep(&s, h.process)
}

// Four workloads need all the room, and one needs less than a fifth. It keeps all its stacks, whether its samples come first, last or in
// between. The others share the rest equally. No sample is lost.
func TestFourGreedyWorkloadsLeaveRoomForAModestOne(t *testing.T) {
	const samples, depth, room, modest = 2000, 10, 500, 80
	proc := hostfs.At(t.TempDir())
	for name, limits := range map[string]Options{
		"bytes": {Bytes: room * (8*depth + 256)}, "stacks": {Stacks: room}, "addresses": {Locations: room * depth},
	} {
		for when, due := range map[string]func(i int) bool{
			"first": func(i int) bool { return i < modest }, "last": func(i int) bool { return i >= samples-modest },
			"in between": func(i int) bool { return i%(samples/modest) == 0 },
		} {
			for _, threads := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", when, " ", threads), func(t *testing.T) {
					limits.Table, limits.All, limits.Moments = symbol.New(symbol.Options{Proc: proc, Sys: proc}), true, 1000
					r := New(limits)
					now := time.Now()
					r.Tick(now)
					all := make([]*hungry, 5)
					for i := range all {
						all[i] = &hungry{
							Recording: r, process: &symbol.Process{Workload: fmt.Sprint("greedy", i), Process: profiling.Process{PID: 1000000 * (i + 1)}}, address: 1<<63 + uint64(i)<<40, depth: depth, threads: threads,
						}
					}
					all[4].process.Workload = "modest"
					for i := range samples {
						now = now.Add(100 * time.Millisecond)
						r.Tick(now)
						for _, g := range all[:4] {
							g.add()
						}
						if due(i) {
							all[4].add()
						}
					}
					p, f := r.Profile(About{Event: profiling.Clock, Frequency: 19})
					stacks, sum := map[string]int{}, map[string]int64{}
					for _, s := range p.Sample {
						sum[workloadOf(s)] += s.Value[0]
						if len(s.Location) == depth {
							stacks[workloadOf(s)]++
						}
					}
					if f.Dropped != 0 || sum["modest"] != modest || stacks["modest"] != modest {
						t.Errorf("%d dropped, %v samples, %v stacks, want %d of modest", f.Dropped, sum, stacks, modest)
					}
					for _, g := range all[:4] {
						if n := stacks[g.process.Workload]; sum[g.process.Workload] != samples || n < room/5-5 || n > room/4 {
							t.Errorf("%s: %d samples, %d stacks", g.process.Workload, sum[g.process.Workload], n)
						}
					}
					checkUse(t, r)
				})
			}
		}
	}
}

// checkUse compares what is counted with what is there.
func checkUse(t *testing.T, r *Recording) {
	t.Helper()
	var is amounts
	times := make([]int, len(r.locations))
	moments, alive := 0, 0
	for i := range r.samples {
		s := &r.samples[i]
		if s.samples == 0 {
			continue
		}
		alive++
		is[ofSamples]++
		is[ofBytes] += sampleSize + addressSize*len(s.stack)
		moments += len(s.moments)
		for _, at := range s.stack {
			times[at]++
		}
		if at, known := r.index[s.key]; !s.shared && (!known || at != i) {
			t.Fatalf("sample %d is not in the index", i)
		}
		if !slices.IsSortedFunc(s.moments, func(a, b moment) int { return cmp.Compare(a.bucket, b.bucket) }) {
			t.Errorf("the times of sample %d are %v", i, s.moments)
		}
	}
	for i, n := range times {
		if n != r.holds[i].times {
			t.Fatalf("location %d is held %d times, %d samples have it", i, r.holds[i].times, n)
		}
		if n > 0 {
			is[ofLocations]++
			if at, known := r.locationIDs[keyOf(r.locations[i])]; !known || int(at) != i {
				t.Fatalf("location %d is not in the index", i)
			}
		}
	}
	var sum amounts
	for _, u := range r.workloads {
		for what := range resources {
			sum[what] += u.used[what]
		}
	}
	shared := 0
	for _, u := range r.workloads {
		if u.shared != 0 {
			shared++
		}
	}
	if is != r.used || sum != r.used || moments != r.clock.moments || len(r.index)+shared != alive || len(r.locationIDs) != is[ofLocations] {
		t.Errorf("used %v, by workload %v, is %v; %d moments, is %d; %d samples and %d shared ones in the index, is %d", r.used, sum, is, r.clock.moments, moments, len(r.index), shared, alive)
	}
}

// Many workloads of all sizes share few places, with addresses in common. The counts stay right, and no workload with less than its
// equal share loses a stack.
func TestRoomIsSharedFairly(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	proc := hostfs.At(t.TempDir())
	for round := range 30 {
		limits := Options{
			Table: symbol.New(symbol.Options{Proc: proc, Sys: proc}), All: true, Moments: 500,
			Bytes: 20000 + random.IntN(20000), Locations: 100 + random.IntN(500), Stacks: 50 + random.IntN(100),
		}
		r := New(limits)
		now, workloads := time.Now(), 1+random.IntN(20)
		added := uint64(0)
		for range 3000 {
			now = now.Add(time.Duration(random.IntN(300)) * time.Millisecond)
			r.Tick(now)
			n := random.IntN(workloads)
			s := profiling.Sample{Samples: 1, Events: 1, Call: -1, Cause: -1, Process: profiling.Process{PID: n}, TID: random.IntN(1 + n*n)}
			for range 1 + random.IntN(8) {
				s.Kernel = append(s.Kernel, 1<<63+uint64(random.IntN(50*(n+1))))
			}
			r.keep(&s, &symbol.Process{Workload: fmt.Sprint(n)})
			added++
		}
		checkUse(t, r)
		if r.used[ofBytes] > limits.Bytes || r.used[ofLocations] > limits.Locations || r.used[ofSamples] > limits.Stacks {
			t.Errorf("round %d: %v of %+v", round, r.used, limits)
		}
		_, f := r.Profile(About{Event: profiling.Clock, Frequency: 19})
		if f.Samples != added || f.Dropped != 0 {
			t.Errorf("round %d: %d samples of %d, %d dropped", round, f.Samples, added, f.Dropped)
		}
	}
}
