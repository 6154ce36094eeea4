// SPDX-License-Identifier: Apache-2.0

package system

import (
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
)

// beginSampling turns all slots to estimates. They have just been read.
func (s *slots) beginSampling(warmUp bool) {
	s.kernel.controls[0].Sampled = 1
	for sl := range s.All() {
		sl.estimator.Begin(&s.sampler.counters, sl.raw.words()[:], sl.words()[:], warmUp)
	}
	s.sampler.Begin(warmUp)
}

// step does what the duty cycle must do now, and returns when it must do something again.
func (s *slots) step(now time.Time) (next time.Time, err error) {
	ended, err := s.sampler.Step()
	if ended {
		s.Adopt(now) // a cycle is that of all groups there are
		for sl := range s.All() {
			s.kernel.sum(sl.Number, &sl.raw)
		}
		s.settle()
	}
	return s.sampler.Next(), err
}

// settle turns what was counted in a cycle into what happened in it. All slots have just been read.
func (s *slots) settle() {
	cycle, ok := s.sampler.EndCycle()
	if !ok {
		for sl := range s.All() {
			sl.estimator.Hold()
		}
		return
	}
	for sl := range s.All() {
		s.settleSlot(sl, cycle)
	}
	s.Registry.Each(func(w *workload.Workload[kept]) {
		for kind := range w.Kept.variance {
			w.Kept.variance[kind].EndCycle(cycle)
		}
	})
}

func (s *slots) settleSlot(sl *slot, c sampling.Cycle) {
	sl.estimator.Settle(c, s.sampler.Take(int(sl.Number)), sl.raw.words()[:], sl.Workload.Kept.variance[:])
}

// settleLast settles a slot that is about to be given back.
func (s *slots) settleLast(sl *slot) {
	if sl.estimator.Sampled() {
		s.settleSlot(sl, s.sampler.Interrupted())
		sl.report(1)
	}
	s.sampler.Forget(int(sl.Number))
}

// endSampling goes back to counting each event. All slots have just been read.
func (s *slots) endSampling() error {
	s.settle()
	err := s.sampler.End()
	for sl := range s.All() {
		sl.estimator.End(sl.raw.words()[:])
		sl.report(1)
	}
	s.kernel.controls[0].Sampled = 0
	return err
}
