// SPDX-License-Identifier: Apache-2.0

package system

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/teescope/teescope/internal/agent/sampling"
)

// The kinds of sampled counters. All counters of a kind have one variance.
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

// sampledEvents are the events of each kind.
var sampledEvents = [sampledKinds]sampling.Event{sampledCalls: sampling.Syscall, sampledFaults: sampling.PageFault, sampledCache: sampling.PageCache}

// setCosts sets the cost of counting one event of each kind: the program and the kernel's path to it.
func (s *sampler) setCosts(c *sampling.EventCosts) {
	for kind, event := range sampledEvents {
		s.counters.Costs[kind] = c.InServers(event)
	}
}

// sampler restricts the frequent probes to the windows of a duty cycle. It implements sampling.Programs.
//
// Programs stay attached if they are not switchable, or if that costs less than attaching them in each cycle. Outside the window
// they return at once.
type sampler struct {
	*sampling.DutyCycle
	kernel   *kernelSide
	counters sampling.Counters
	probes   []attachedProbe
	stays    []atomic.Bool // by probe: its program stays attached because it has few events

	wanted    atomic.Bool // the programs are to be attached
	switching sync.Mutex  // protects the field below, and is held while programs are attached or detached
	detached  []detachedProbe
}

// detachedProbe is a probe that is detached outside the window.
type detachedProbe struct {
	attachedProbe
	took time.Duration // CPU time
}

func newSampler(k *kernelSide) *sampler {
	s := &sampler{kernel: k, counters: sampling.Counters{Costs: make([]float64, sampledKinds)}}
	s.setCosts(&sampling.EventCosts{})
	s.wanted.Store(true)
	s.DutyCycle = sampling.NewDutyCycle(s, k.slots)
	for _, f := range frequentProbes() {
		for _, status := range k.status {
			if status.Probe == f.probe && status.Attached() {
				s.probes = append(s.probes, attachedProbe{f.probe, status.Program, status.Mechanism})
				s.counters.Series = append(s.counters.Series, f.Series) // in the same order
			}
		}
	}
	s.stays = make([]atomic.Bool, len(s.probes))
	return s
}

// skip leaves probes that are switched off by request out of the cycles from the next one on.
func (s *sampler) skip(paused pauses) {
	for i, p := range s.probes {
		s.counters.Series[i].Off = paused.has(p.probe)
	}
}

// switched reports whether a probe is detached outside the window. One that could not be reattached is not.
func (s *sampler) switched(probe int) bool {
	p := s.probes[probe]
	return p.mechanism.Switchable() && !s.stays[probe].Load() && s.kernel.switches.reason(p.probe) == ""
}

// choose decides which programs stay attached outside the window at this demand, and adds their cost to it.
func (s *sampler) choose(d *sampling.Demand) {
	rates := map[string]float64{
		"syscall": d.Calls, "page_fault_user": d.Faults, "page_cache_access": d.Cache - d.Dirtied, "page_cache_dirty_buffer": d.Dirtied,
	}
	took := time.Duration(0)
	d.Staying, d.Programs = 0, 0
	for i, p := range s.probes {
		spent := rates[p.probe] * s.counters.Costs[s.counters.Series[i].Kind] / float64(time.Second)
		cost := s.kernel.switches.took(p.probe)
		s.stays[i].Store(p.mechanism.Switchable() && sampling.Cheaper(spent, cost, s.stays[i].Load()))
		switch {
		case s.switched(i):
			d.Programs++
			took += cost
		case s.kernel.switches.reason(p.probe) == "":
			d.Staying += spent
		}
	}
	d.Attaching = took / time.Duration(max(1, d.Programs))
}

// Attach attaches the programs.
func (s *sampler) Attach() error {
	s.wanted.Store(true)
	s.attach()
	return nil
}

// Detach requests that the programs are detached. The caller that steps the cycle calls apply afterwards, without the lock of the
// collector, because the kernel may need long to detach a program.
func (s *sampler) Detach() error {
	s.wanted.Store(false)
	return nil
}

// start attaches all programs, also those that were stopped or could not be reattached. The program on system calls is the
// last, as in attach.
func (s *sampler) start() {
	s.wanted.Store(true)
	s.switching.Lock()
	defer s.switching.Unlock()
	for _, p := range slices.Backward(s.probes) {
		s.kernel.switches.on(p)
	}
	s.detached = nil
}

// stop detaches all programs because of their cost. Their counts are absent meanwhile.
func (s *sampler) stop() {
	s.switching.Lock()
	defer s.switching.Unlock()
	for _, p := range s.probes {
		s.kernel.switches.stop(p, detachedReason)
	}
	s.detached = nil
}

// apply detaches or attaches the programs as last requested.
func (s *sampler) apply() {
	if s.wanted.Load() {
		s.attach()
		return
	}
	s.switching.Lock()
	defer s.switching.Unlock()
	if len(s.detached) > 0 || s.wanted.Load() { // a change of the level attaches them
		return
	}
	for i, p := range s.probes {
		if s.switched(i) {
			s.detached = append(s.detached, detachedProbe{p, s.kernel.switches.off(p)})
		}
	}
}

// attach attaches the program on system calls last, and apply detaches it first. Attaching the others takes longer on
// busy CPUs, and each system call is expensive while its program is attached.
func (s *sampler) attach() {
	s.switching.Lock()
	defer s.switching.Unlock()
	for _, p := range slices.Backward(s.detached) {
		s.kernel.switches.learn(p.probe, p.took+s.kernel.switches.on(p.attachedProbe))
	}
	s.detached = nil
}

// Count opens or closes the window: attached programs count only while it is open.
func (s *sampler) Count(on bool) {
	closed := uint64(1)
	if on {
		closed = 0
	}
	atomic.StoreUint64(&s.kernel.controls[0].Closed, closed)
}

// Snapshot stores the counters of the thread that each CPU runs. An error means that the CPU is off line. An idle CPU is
// left alone: its idle thread has no run time.
func (s *sampler) Snapshot() {
	if s.kernel.snapshot == nil {
		return
	}
	for cpu := range s.kernel.cpus {
		state := &s.kernel.cpus[cpu]
		if atomic.LoadUint32(&state.Slot) == slotIdle || atomic.LoadUint32(&state.PID) == pidUnknown {
			continue
		}
		_ = s.kernel.snapshot(cpu)
	}
}

// CPUTimes reports the CPU time of each slot.
func (s *sampler) CPUTimes(report func(group int, ns uint64)) {
	s.kernel.sums.collect()
	s.kernel.sums.readInflight()
	for n := range s.kernel.slots {
		if n < slotFirst || s.kernel.groups.Records[n].Ready != 0 {
			report(n, s.kernel.sums.ranNS(n))
		}
	}
}
