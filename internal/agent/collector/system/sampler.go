// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/teescope/teescope/internal/agent/sampling"
)

// The kinds of sampled counters. All counters of a kind share a variance.
const (
	sampledCalls = iota
	sampledFaults
	sampledCache
	sampledKinds
)

// sampledNames are the values of the label "family".
var sampledNames = [sampledKinds]string{"syscalls", "page_faults", "page_cache"}

// frequentProbe is a probe on events that may happen a million times per second, with the words of a row that it
// counts.
type frequentProbe struct {
	probe string
	sampling.Series
}

func wordAt(offset uintptr) int { return int(offset / 8) }

// frequentProbes lists the sampled probes. Rare events are always counted, because attaching costs more than counting.
func frequentProbes() []frequentProbe {
	calls0 := wordAt(unsafe.Offsetof(row{}.Calls))
	faults0 := wordAt(unsafe.Offsetof(row{}.Faults))
	cache0 := wordAt(unsafe.Offsetof(row{}.Cache))
	return []frequentProbe{
		{"syscall", sampling.Series{Kind: sampledCalls, First: calls0, Last: calls0 + calls}},
		{"page_fault_user", sampling.Series{Kind: sampledFaults, First: faults0, Last: faults0 + faultReasons}},
		{"page_cache_access", sampling.Series{Kind: sampledCache, First: cache0 + cacheAccess, Last: cache0 + cacheAccess + 1}},
		{"page_cache_dirty_buffer", sampling.Series{Kind: sampledCache, First: cache0 + cacheDirtyBuffer, Last: cache0 + cacheDirtyBuffer + 1}},
	}
}

// countingCosts returns the cost of counting one event of each kind in nanoseconds: the program and the kernel's path
// to it. A system call costs 115 ns in a loop of getppid, and 130 to 200 ns in servers (docs/decisions/overhead.md).
// The model error of the estimate is larger than this difference.
func countingCosts() []float64 {
	return []float64{sampledCalls: 120, sampledFaults: 50, sampledCache: 40}
}

// attacher detaches and reattaches programs.
type attacher interface {
	Detach(program string) error
	Reattach(program string) error
}

// sampler restricts the frequent probes to the windows of a duty cycle. It implements sampling.Programs.
type sampler struct {
	*sampling.DutyCycle
	programs attacher
	kernel   *kernelSide
	counters sampling.Counters
	probes   []attachedProbe
}

// attachedProbe is an attached frequent probe and its program.
type attachedProbe struct{ probe, program string }

func newSampler(k *kernelSide) *sampler {
	s := &sampler{programs: k.object, kernel: k, counters: sampling.Counters{Costs: countingCosts()}}
	s.DutyCycle = sampling.NewDutyCycle(s, k.slots)
	for _, f := range frequentProbes() {
		for _, status := range k.status {
			if status.Probe == f.probe && status.Attached() {
				s.probes = append(s.probes, attachedProbe{f.probe, status.Program})
				s.counters.Series = append(s.counters.Series, f.Series)
			}
		}
	}
	return s
}

// Attach attaches the program on system calls last, and Detach detaches it first. Attaching the others takes longer on
// busy CPUs, and each system call is expensive while its program is attached.
func (s *sampler) Attach() error {
	var errs []error
	for i := range s.probes {
		errs = append(errs, s.programs.Reattach(s.probes[len(s.probes)-1-i].program))
	}
	return errors.Join(errs...)
}

// Detach detaches the programs.
func (s *sampler) Detach() error {
	var errs []error
	for _, p := range s.probes {
		errs = append(errs, s.programs.Detach(p.program))
	}
	return errors.Join(errs...)
}

// Count opens or closes the window: attached programs count only while it is open.
func (s *sampler) Count(on bool) {
	closed := uint64(1)
	if on {
		closed = 0
	}
	atomic.StoreUint64(&s.kernel.controls[0].Closed, closed)
}

// Snapshot stores the counters of the thread that each CPU runs. An error means that the CPU is off line.
func (s *sampler) Snapshot() {
	if s.kernel.snapshot == nil {
		return
	}
	for cpu := range s.kernel.cpus {
		_ = s.kernel.snapshot(cpu)
	}
}

// CPUTimes reports the CPU time of each slot.
func (s *sampler) CPUTimes(report func(group int, ns uint64)) {
	for n := range s.kernel.slots {
		if n < slotFirst || s.kernel.groups.Records[n].Ready != 0 {
			report(n, s.kernel.ranNS(uint32(n)))
		}
	}
}
