// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// restingReason is why a probe is not attached that could be.
const restingReason = "over the budget (overhead.budget): not attached until there is less to count"

// govern keeps what watching costs within the budget. All slots have just been read.
func (c *Collector) govern() {
	d, ok := c.meter.read(time.Now(), c.slots, c.governor.demand, c.governor.level == levelOff)
	if !ok {
		return
	}
	d.programs = c.programs
	from := c.governor.level
	to := c.governor.decide(time.Now(), d)
	c.slots.duty.part = c.governor.part()
	if to == from {
		return
	}
	c.opts.Log.Info("another level of watching", "from", levelNames[from], "to", levelNames[to],
		"budget", percent(c.governor.limit()), "before", percent(c.governor.cost(from)), "now", percent(c.governor.cost(to)))
	if err := c.move(from, to); err != nil {
		c.opts.Log.Warn("changing the level of watching", "level", levelNames[to], "error", err)
	}
}

func percent(share float64) string { return fmt.Sprintf("%.2g%%", 100*share) }

func samples(l level) bool { return l == levelSampled || l == levelTotals }

// move goes from one level to another.
func (c *Collector) move(from, to level) error {
	duty := c.slots.duty
	if samples(from) && !samples(to) {
		duty.settle(c.slots)
		if err := duty.end(c.slots.active); err != nil {
			return err
		}
	}
	if (from == levelOff) != (to == levelOff) {
		if err := c.rest(to == levelOff); err != nil {
			return err
		}
	}
	if samples(to) && !samples(from) {
		duty.begin(c.slots.active, from != levelOff)
		select {
		case c.wake <- struct{}{}:
		default: // is awake already
		}
	}
	if err := c.exits(to); err != nil {
		return err
	}
	return c.time(to == levelFull)
}

// exits lets the ends of system calls be seen where a level has a use for them: whoever sees them keeps every
// call on the kernel's slow path, as if its beginning were seen.
func (c *Collector) exits(l level) error {
	needed := c.opts.SyscallTime && l == levelFull || len(c.opts.Watch) > 0 && l < levelTotals
	for _, s := range c.kernel.status {
		if s.Probe != exitProbe || !s.Attached() {
			continue
		}
		act := c.kernel.object.Detach
		if needed {
			act = c.kernel.object.Reattach
		}
		if err := act(s.Program); err != nil {
			return err
		}
		c.kernel.resting[exitProbe] = !needed
	}
	return nil
}

// rest detaches the frequent probes for good, or attaches them again. What they count is absent in between.
func (c *Collector) rest(on bool) error {
	for _, p := range c.slots.duty.probes {
		act := c.kernel.object.Reattach
		if on {
			act = c.kernel.object.Detach
		}
		if err := act(p.program); err != nil {
			return err
		}
		c.kernel.resting[p.probe] = on
	}
	return nil
}

// time lets the time of system calls be measured or not, where it was asked for.
func (c *Collector) time(on bool) error {
	if !c.opts.SyscallTime {
		return nil
	}
	control := &c.kernel.controls[0]
	if !on {
		atomic.StoreUint64(&control.TimingSince, timingRests)
	} else if control.TimingSince == timingRests {
		return c.kernel.timeFromNow()
	}
	return nil
}

// timeFromNow lets the time of system calls be measured that begin from now on. Their ends are seen already.
func (k *kernelSide) timeFromNow() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("reading the clock: %w", err)
	}
	atomic.StoreUint64(&k.controls[0].TimingSince, uint64(now.Nano()))
	return nil
}

// timed tells whether the time of system calls is measured now.
func (k *kernelSide) timed() bool { return k.controls[0].TimingSince != timingRests }

// turn does what the sampling of events has to do now, and says when it has to do something again.
func (c *Collector) turn() (wait time.Duration, sampled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || !c.slots.duty.active {
		return 0, false
	}
	ended, err := c.slots.duty.step()
	if err != nil {
		c.opts.Log.Warn("sampling events", "error", err)
	}
	if ended {
		c.slots.adopt(time.Now()) // a cycle is that of all groups there are
		for _, sl := range c.slots.active {
			c.kernel.sum(sl.number, &sl.raw)
		}
		c.slots.duty.settle(c.slots)
	}
	return max(0, time.Until(c.slots.duty.next())), true
}

// shares says of each frequent probe for which part of the time it counts.
func (c *Collector) shares() map[string]float64 {
	all := map[string]float64{}
	for _, p := range c.slots.duty.probes {
		if !c.kernel.resting[p.probe] {
			all[p.probe] = c.slots.duty.share()
		}
	}
	return all
}

// now is the status of a probe, which may rest.
func (k *kernelSide) now(s bpf.Status) bpf.Status {
	if k.resting[s.Probe] {
		return bpf.Status{Probe: s.Probe, Mechanism: bpf.NotAttached, Reason: restingReason}
	}
	return s
}
