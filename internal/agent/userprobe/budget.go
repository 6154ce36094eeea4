// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"fmt"
	"math"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
)

const (
	// share is the part of overhead.budget that the user's probes may take together. The rest is for the built-in ones, which
	// can be sampled.
	share = 0.5
	// checkEvery is the interval at which the cost is compared with the budget.
	checkEvery = time.Second
	// overBefore is the number of consecutive checks with too high a cost before a probe is detached, so that a burst is not
	// enough.
	overBefore = 3
)

// spent is CPU time that a probe has taken: the programs', which measure themselves, and the kernel's path to them, which is
// a constant of one machine.
type spent struct{ program, path time.Duration }

func (s spent) total() time.Duration { return s.program + s.path }

// spend adds the CPU time that a probe has taken for its events since the last call, and returns it. An event of a call that is
// timed is its entry or its return.
func (a *active) spend(t tally) spent {
	program, _ := t.program()
	n := time.Duration(t.Events - a.seen)
	s := spent{n * program, n * a.path()}
	a.seen = t.Events
	a.took.program += s.program
	a.took.path += s.path
	return s
}

// spending compares the cost of the probes with the budget.
type spending struct {
	budget float64 // share of the machine's CPU time that all measuring may take; 0, or 1 and more, is no limit
	cpus   int
	at     time.Time // of the last check
	over   int       // checks in a row at which the cost was too high
}

func (s *spending) limited() bool { return s.budget > 0 && s.budget < 1 }

// exceeded takes the CPU time that the probes have taken since the last call, as it would be on this machine. It returns
// the share of the machine's CPU time, and whether a probe must go.
func (s *spending) exceeded(now time.Time, took time.Duration) (part float64, over bool) {
	elapsed := now.Sub(s.at)
	first := s.at.IsZero()
	s.at = now
	if first || elapsed <= 0 || took < 0 {
		return 0, false
	}
	part = took.Seconds() / (elapsed.Seconds() * float64(s.cpus))
	if !s.limited() || part <= s.budget*share {
		s.over = 0
		return part, false
	}
	if s.over++; s.over < overBefore {
		return part, false
	}
	s.over = 0
	return part, true
}

// check compares the cost with the budget. It returns the probe that must be detached, or nil, and adds up what all probes
// have taken.
func (b *Collector) check(now time.Time) (*kernelSide, *active) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel == nil {
		return nil, nil
	}
	var all spent
	var took, most time.Duration
	relative := math.Float64frombits(b.relative.Load())
	var worst *active
	for _, a := range b.kernel.probes {
		s := a.spend(b.kernel.tallyOf(a.number))
		all.program += a.took.program
		all.path += a.took.path
		cost := s.program + time.Duration(float64(s.path)*relative)
		if took += cost; cost > most && a.status.Attached() {
			most, worst = cost, a
		}
	}
	b.program.Store(int64(all.program))
	b.path.Store(int64(all.path))
	part, over := b.spending.exceeded(now, took)
	if !over || worst == nil {
		return nil, nil
	}
	worst.status.Mechanism = bpf.NotAttached
	worst.status.Reason = fmt.Sprintf("the user's probes took %.2g %% of the machine's CPU time, more than half of overhead.budget (%.2g %%), and this one the most: "+
		"raise the budget or choose a rarer event, and start the agent again", 100*part, 100*b.spending.budget)
	return b.kernel, worst
}

// Spent returns the CPU time that the probes have taken: the programs', and the kernel's path to them on the machine of the
// constants. relative is how much slower this machine is than that one. Spent never waits.
func (b *Collector) Spent(relative float64) (program, path time.Duration) {
	b.relative.Store(math.Float64bits(relative))
	return time.Duration(b.program.Load()), time.Duration(b.path.Load())
}

// enforce detaches a probe if the probes take too much. Detaching may take long, so the lock is not held meanwhile.
func (b *Collector) enforce(now time.Time) {
	k, a := b.check(now)
	if a == nil {
		return
	}
	b.log.Warn("a probe is detached", "probe", a.Name, "reason", a.status.Reason)
	for _, program := range a.programs {
		if err := k.object.Detach(program); err != nil {
			b.log.Warn("detaching a probe", "probe", a.Name, "err", err)
		}
	}
}
