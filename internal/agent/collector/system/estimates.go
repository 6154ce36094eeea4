// SPDX-License-Identifier: Apache-2.0

package system

import (
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
)

// beginSampling begins to estimate the counts of all slots. The caller has just read them.
func (s *slots) beginSampling(warmUp bool) {
	s.kernel.controls[0].Sampled = 1
	s.kernel.controls[0].ClockCycle++
	for sl := range s.All() {
		sl.estimator.Begin(&s.sampler.counters, sl.raw.words()[:], sl.words()[:], warmUp)
	}
	s.sampler.Begin(warmUp)
}

// step performs the next step of the duty cycle, and returns the time of the following one.
func (s *slots) step(now time.Time) (next time.Time, err error) {
	ended, err := s.sampler.Step()
	if ended {
		s.kernel.controls[0].ClockCycle++
		s.Adopt(now) // a cycle ends for all groups, including new ones
		s.readRows()
		s.endCycle()
	}
	return s.sampler.Next(), err
}

// endCycle ends a cycle: it estimates the events of the cycle from those counted in its window. The caller has just read
// all slots.
func (s *slots) endCycle() {
	cycle, ok := s.sampler.EndCycle()
	if !ok {
		for sl := range s.All() {
			sl.estimator.Hold()
		}
		return
	}
	for sl := range s.All() {
		s.endSlotCycle(sl, cycle)
	}
	s.Registry.Each(func(w *workload.Workload[counts]) {
		for kind := range w.Data.variance {
			if !causes(w.Kind, kind) {
				continue
			}
			s.variance[kind].Include(&w.Data.variance[kind])
			w.Data.variance[kind].EndCycle(cycle, s.variance[kind].Rate())
		}
	})
	for kind := range s.variance {
		s.variance[kind].EndCycle(cycle, 0)
	}
}

// causes reports whether threads of a workload may cause events of a kind. If not, no window can have missed any.
func causes(of workload.Kind, kind int) bool {
	return kind == sampledCache || of.RunsPrograms()
}

func (s *slots) endSlotCycle(sl *slot, c sampling.Cycle) {
	sl.estimator.EndCycle(c, s.sampler.Take(int(sl.Number)), sl.raw.words()[:], sl.Workload.Data.variance[:])
}

// settle reports all events of the slots whose threads have ended, once. Otherwise they would be reported up to two cycles later,
// when another process of the same program may run.
func (s *slots) settle() {
	for sl := range s.All() {
		if sl.settled || sl.gauge.Threads > 0 || sl.gauge.Exiting > 0 || sl.Number < slotFirst || !sl.estimator.Sampled() {
			continue
		}
		s.sampler.Observe(int(sl.Number), s.kernel.sums.ranNS(int(sl.Number)))
		s.endSlotCycle(sl, s.sampler.Interrupted())
		sl.report(1)
		sl.settled = true
	}
}

// endLastCycle ends the cycle of a slot that is about to be freed.
func (s *slots) endLastCycle(sl *slot) {
	if sl.estimator.Sampled() {
		s.endSlotCycle(sl, s.sampler.Interrupted())
		sl.report(1)
	}
	s.sampler.Forget(int(sl.Number))
}

// endSampling returns to counting each event.
func (s *slots) endSampling() error {
	err := s.sampler.Finish() // first, so that no moment is omitted
	s.readRows()
	s.endCycle()
	s.sampler.End()
	for sl := range s.All() {
		sl.estimator.End(sl.raw.words()[:])
		sl.report(1)
	}
	s.kernel.controls[0].Sampled = 0
	return err
}
