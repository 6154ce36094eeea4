// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/text"
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
	costs    sampling.EventCosts               // as measured
	measured [sampling.Events]sampling.RunTime // run times at the beginning of the measurement
	misses   misses
	exceeded bool                                                 // the log says that no level keeps the budget
	now      regime                                               // in force
	pauses   pauses                                               // as wanted
	changed  chan struct{}                                        // receives when the wanted regime is not in force
	began    chan struct{}                                        // receives when sampling begins, and the duty cycle must be stepped
	budget   float64                                              // as configured; the governor has none while everything is counted on demand
	others   func(relative float64) (program, path time.Duration) // see Options
	log      *slog.Logger
}

func newOverhead(o Options) overhead {
	h := overhead{
		governor: sampling.Governor{Budget: o.Budget, Timing: o.SyscallTime, Watching: len(o.Watch) > 0},
		changed:  make(chan struct{}, 1), began: make(chan struct{}, 1), budget: o.Budget, others: o.Others, log: o.Log,
	}
	h.now = h.wanted()
	return h
}

// regime is what decides which programs are attached.
type regime struct {
	level            sampling.Level
	timing, watching bool
	paused           string // the probes that are switched off by request, see pauses.key
}

// timed reports whether the time of system calls is measured.
func (r regime) timed() bool { return r.timing && r.level == sampling.Full }

// exits reports whether the probe on the ends of system calls is attached.
func (r regime) exits() bool { return r.timed() || r.watching && r.level < sampling.SampledSums }

// wanted returns the regime that the governor has chosen.
func (o *overhead) wanted() regime {
	return regime{o.governor.Level, o.governor.Timing, o.governor.Watching, o.pauses.key()}
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

// due reports whether the cost must be compared with the budget. While events are sampled, their estimates change once in a cycle.
func (o *overhead) due(now time.Time) bool {
	return o.meter.Due(now) && (!o.now.level.Samples() || now.Sub(o.meter.At) >= sampling.Period-budgetCheck/2)
}

// budgetCheck is the interval at which the cost of counting is compared with the budget. A load that begins in an interval
// fills the next one, so the level changes within a second.
const budgetCheck = time.Second / 2

// mostReading is the time after which counts are too old to say a rate, because reading them was interrupted.
const mostReading = 100 * time.Millisecond

// govern chooses the level of watching. The caller has begun to read all slots at this time.
func (o *overhead) govern(s *slots, now time.Time) {
	if !o.meter.Due(now) || o.governor.Limited() && time.Since(now) > mostReading {
		return
	}
	d, ok := o.meter.Read(now, o.totals(s), o.governor.Demand, o.now.level != sampling.Off)
	if !ok {
		return
	}
	d.Costs = o.costs
	s.sampler.choose(&d)
	o.governor.Decide(now, d)
	s.sampler.SetRatio(o.governor.Ratio())
	o.reportExcess()
	o.announce()
}

// announce wakes Run if another regime is wanted. Run changes it, because programs are attached and detached without the lock
// of the collector.
func (o *overhead) announce() {
	if o.wanted() == o.now {
		return
	}
	select {
	case o.changed <- struct{}{}:
	default: // a value is pending already
	}
}

// reportExcess logs when the events that every level counts take more than the budget, and when they no longer do.
func (o *overhead) reportExcess() {
	always, limit := o.governor.Always(), o.governor.Limit()
	switch {
	case !o.governor.Limited():
	case !o.exceeded && always > limit:
		o.exceeded = true
		o.log.Warn("the budget is exceeded: context switches and other events that are always counted take more", "budget", text.Percent(limit),
			"take", text.Percent(always), "switches_per_second", int(o.governor.Demand.Switches))
	case o.exceeded && always < limit*stillExceeded:
		o.exceeded = false
		o.log.Info("events that are always counted take less than the budget again", "budget", text.Percent(limit), "take", text.Percent(always))
	}
}

// stillExceeded is a fraction of the budget. An exceeded budget counts as exceeded until the cost is below it.
const stillExceeded = 0.7

// othersCost returns the CPU time of the programs on rare events: their run times in docs/dev/probe-cost.md, and 40 ns of
// the kernel's path. An interrupt of a performance counter takes about a microsecond, and so do the two programs on a request
// to a block device.
func othersCost(r *counts) time.Duration {
	faults := uint64(0)
	for _, n := range r.Faults[1] {
		faults += n
	}
	requests := uint64(0)
	for op, ns := range r.block.NS {
		if ns == 0 { // most workloads make none
			continue
		}
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
		for first, last := range r.marked() {
			for _, n := range r.Calls[first:last] {
				t.Calls += n
			}
		}
		for mode := range r.Faults {
			for _, n := range r.Faults[mode] {
				t.Faults += n
			}
		}
		t.Cache += r.Cache[cacheAccess] + r.Cache[cacheDirtyBuffer]
		t.Dirtied += r.Cache[cacheDirtyBuffer]
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

// prepare attaches the programs that a regime needs. As a program may take long to attach, the lock of the collector is not held.
func (k *kernelSide) prepare(s *sampler, wanted pauses, from, to regime) {
	resumeOthers(k, wanted)
	if to.level != sampling.Off && (!from.level.Samples() || !to.level.Samples() || from.paused != to.paused) {
		s.start()
	}
	if to.exits() {
		k.attachExits(true, "")
	}
}

// detachUnneeded detaches the programs that a regime does not need. As a program may take long to detach, the lock of the collector
// is not held.
func (k *kernelSide) detachUnneeded(s *sampler, wanted pauses, now regime) {
	pauseAll(k, wanted)
	if now.level == sampling.Off {
		s.stop()
	}
	switch {
	case now.exits():
	case now.timing || now.watching:
		k.attachExits(false, detachedReason)
	default:
		k.attachExits(false, notWantedReason)
	}
}

// enter puts a regime in force. The programs that it needs are attached already, and those that it does not need are still
// attached. The caller has just read all slots.
func (o *overhead) enter(s *slots, to regime) error {
	from := o.now
	o.now = to
	if from.level != to.level {
		o.log.Info("the level of watching has changed", "from", from.level.String(), "to", to.level.String(), "budget", text.Percent(o.governor.Limit()),
			"before", text.Percent(o.governor.Cost(from.level)), "now", text.Percent(o.governor.Cost(to.level)))
	}
	var err error
	switch samples := to.level.Samples(); {
	case from.level.Samples() && !samples:
		err = s.endSampling()
	case samples && !from.level.Samples():
		o.beginSampling(s, from.level != sampling.Off)
	case samples && from.paused != to.paused: // the sampled probes change
		err = s.endSampling()
		o.beginSampling(s, true)
	}
	return errors.Join(err, s.kernel.setTimed(to.timed()))
}

func (o *overhead) beginSampling(s *slots, warmUp bool) {
	s.sampler.skip(o.pauses)
	s.beginSampling(warmUp)
	select {
	case o.began <- struct{}{}:
	default: // a value is pending already
	}
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
