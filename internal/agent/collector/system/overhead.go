// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
)

// The programs on frequent events measure themselves for one second in thirty. The kernel's statistics are no
// alternative: they need a privilege that the agent drops after its start, and they measure the programs of all users.
const (
	measureFirst = 10 * time.Second
	measureEvery = 30 * time.Second
	measureFor   = time.Second
)

// overhead keeps the cost of counting within the budget.
type overhead struct {
	governor sampling.Governor
	meter    sampling.Meter
	costs    sampling.EventCosts                                  // as measured
	measured [sampling.Events]sampling.RunTime                    // run times at the beginning of the measurement
	exceeded bool                                                 // the log says that no level keeps the budget
	began    chan struct{}                                        // receives when sampling begins, and the duty cycle must be stepped
	budget   float64                                              // as configured; the governor has none while everything is counted on demand
	others   func(relative float64) (program, path time.Duration) // see Options
	log      *slog.Logger
}

func newOverhead(o Options) overhead {
	return overhead{
		governor: sampling.Governor{Budget: o.Budget, Timing: o.SyscallTime, Watching: len(o.Watch) > 0},
		began:    make(chan struct{}, 1), budget: o.Budget, others: o.Others, log: o.Log,
	}
}

// measure begins or ends a measurement, and returns the time until it must be called again.
func (o *overhead) measure(k *kernelSide) time.Duration {
	on := &k.controls[0].Metering
	if atomic.LoadUint64(on) == 0 {
		o.measured = k.runTimes()
		atomic.StoreUint64(on, 1)
		return measureFor
	}
	atomic.StoreUint64(on, 0)
	o.costs.Update(o.measured, k.runTimes())
	return measureEvery - measureFor
}

// mostReading is the time after which counts are too old to say a rate, because reading them was interrupted.
const mostReading = 100 * time.Millisecond

// govern chooses the level of watching. The caller has begun to read all slots at this time.
func (o *overhead) govern(s *slots, now time.Time) {
	if !o.meter.Due(now) || o.governor.Limited() && time.Since(now) > mostReading {
		return
	}
	from := o.governor.Level
	d, ok := o.meter.Read(now, o.totals(s), o.governor.Demand, from != sampling.Off)
	if !ok {
		return
	}
	d.Costs = o.costs
	d.Programs, d.Attaching = len(s.sampler.switched()), s.kernel.switches.measured()
	d.CacheStays = slices.ContainsFunc(s.sampler.probes, func(p attachedProbe) bool { return !p.mechanism.Switchable() })
	to := o.governor.Decide(now, d)
	s.sampler.SetRatio(o.governor.Ratio())
	o.reportExcess()
	o.change(s, from, to)
}

// change moves from one level to another.
func (o *overhead) change(s *slots, from, to sampling.Level) {
	if to == from {
		return
	}
	o.log.Info("the level of watching has changed", "from", from.String(), "to", to.String(), "budget", percent(o.governor.Limit()),
		"before", percent(o.governor.Cost(from)), "now", percent(o.governor.Cost(to)))
	if err := o.move(s, from, to); err != nil {
		o.log.Warn("changing the level of watching", "level", to.String(), "error", err)
	}
}

// reportExcess logs when the events that every level counts take more than the budget, and when they no longer do.
func (o *overhead) reportExcess() {
	always, limit := o.governor.Always(), o.governor.Limit()
	switch {
	case !o.governor.Limited():
	case !o.exceeded && always > limit:
		o.exceeded = true
		o.log.Warn("the budget is exceeded: context switches and other events that are always counted take more", "budget", percent(limit),
			"take", percent(always), "switches_per_second", int(o.governor.Demand.Switches))
	case o.exceeded && always < limit*stillExceeded:
		o.exceeded = false
		o.log.Info("events that are always counted take less than the budget again", "budget", percent(limit), "take", percent(always))
	}
}

// stillExceeded is the share of the budget below which it is no longer exceeded.
const stillExceeded = 0.7

func percent(share float64) string { return fmt.Sprintf("%.2g%%", 100*share) }

// othersCost returns the CPU time of the programs on rare events: their run times in docs/dev/probe-cost.md, and 40 ns of
// the kernel's path. An interrupt of a performance counter takes about a microsecond, and so do the two programs on a request
// to a block device.
func othersCost(r *counts) time.Duration {
	faults := uint64(0)
	for _, n := range r.Faults[1] {
		faults += n
	}
	requests := uint64(0)
	for op := range r.block.Requests {
		for _, n := range r.block.Requests[op] {
			requests += n
		}
	}
	interrupts := (r.LLCReferences + r.LLCMisses) / counterPeriod
	return time.Duration(r.Forks*340 + r.Threads*340 + r.Exits*280 + r.Execs*2500 + r.Migrations*700 + faults*120 +
		(r.Cache[cacheInsertion]+r.Cache[cacheDirtyPage])*100 + (interrupts+requests)*1000)
}

// totals adds up the counts of all workloads.
func (o *overhead) totals(s *slots) sampling.Totals {
	t := sampling.Totals{Agent: cpuOfAgent()}
	if o.others != nil {
		t.Measured, t.Others = o.others(o.costs.Relative())
	}
	add := func(r *counts) {
		for _, n := range r.Calls {
			t.Calls += n
		}
		for mode := range r.Faults {
			for _, n := range r.Faults[mode] {
				t.Faults += n
			}
		}
		t.Cache += r.Cache[cacheAccess] + r.Cache[cacheDirtyBuffer]
		t.Switches += r.Switches[0] + r.Switches[1]
		t.Others += othersCost(r)
	}
	s.Registry.Each(func(w *workload.Workload[counts]) { add(&w.Data) })
	for sl := range s.All() {
		add(&sl.counts)
	}
	return t
}

// cpuOfAgent is the CPU time of this process.
func cpuOfAgent() time.Duration {
	var use unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &use) // fails only with wrong arguments
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// move changes from one level to another.
func (o *overhead) move(s *slots, from, to sampling.Level) error {
	if from.Samples() && !to.Samples() {
		if err := s.endSampling(); err != nil {
			return err
		}
	}
	if (from == sampling.Off) != (to == sampling.Off) {
		s.sampler.setDetached(to == sampling.Off)
	}
	if to.Samples() && !from.Samples() {
		s.beginSampling(from != sampling.Off)
		select {
		case o.began <- struct{}{}:
		default: // a value is pending already
		}
	}
	return o.detail(s.kernel, to)
}

// detail attaches the probe on the ends of system calls at the levels that need it, and times calls.
func (o *overhead) detail(k *kernelSide, l sampling.Level) error {
	timing, watching := o.governor.Timing, o.governor.Watching
	reason := detachedReason
	if !timing && !watching {
		reason = notWantedReason
	}
	timed := timing && l == sampling.Full
	if !timed {
		if err := k.setTimed(false); err != nil {
			return err
		}
	}
	k.attachExits(timed || watching && l < sampling.SampledSums, reason)
	if timed {
		return k.setTimed(true)
	}
	return nil
}

// ratios returns the fraction of the time for which each frequent probe counts.
func ratios(s *sampler) map[string]float64 {
	all := map[string]float64{}
	for _, p := range s.probes {
		if s.kernel.switches.reason(p.probe) == "" {
			all[p.probe] = s.Ratio()
		}
	}
	return all
}
