// SPDX-License-Identifier: Apache-2.0

package system

import (
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// attacher detaches and reattaches programs.
type attacher interface {
	Detach(program string) error
	Reattach(program string) error
}

// attachedProbe is a probe that was attached at the start.
type attachedProbe struct {
	probe, program string
	mechanism      bpf.Mechanism
}

// switches detaches and reattaches programs while the agent runs. If a program cannot be reattached, its probe no longer counts,
// and the reason is stored. Other programs are not affected. It is safe for concurrent use.
type switches struct {
	programs attacher
	log      *slog.Logger

	mu     sync.Mutex
	absent map[string]string        // why a probe sees no events now
	held   map[string]string        // why it is detached by request, although the level needs it
	cost   map[string]time.Duration // CPU time of detaching and reattaching the program of a probe, after both were done
}

func newSwitches(a attacher, log *slog.Logger) switches {
	return switches{programs: a, log: log, absent: map[string]string{}, held: map[string]string{}, cost: map[string]time.Duration{}}
}

// on reattaches the program of a probe, and returns the CPU time that this took. A probe that is held is attached when it is released.
func (s *switches) on(p attachedProbe) (took time.Duration) {
	var err error
	if !s.isHeld(p.probe) {
		took = timed(func() { err = s.programs.Reattach(p.program) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.absent, p.probe)
		return took
	}
	s.absent[p.probe] = bpf.Reason(err)
	s.log.Warn("a probe could not be attached again: its events are not counted", "probe", p.probe, "error", err)
	return took
}

// off detaches the program of a probe, and returns the CPU time that this took.
func (s *switches) off(p attachedProbe) (took time.Duration) {
	var err error
	took = timed(func() { err = s.programs.Detach(p.program) })
	if err != nil {
		s.log.Warn("detaching a probe", "probe", p.probe, "error", err)
	}
	return took
}

// stop detaches the program of a probe for a reason. Its counts are absent until it is reattached.
func (s *switches) stop(p attachedProbe, reason string) {
	s.off(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absent[p.probe] = reason
}

// hold detaches the program of a probe until it is released.
func (s *switches) hold(p attachedProbe, reason string) {
	s.mu.Lock()
	s.held[p.probe] = reason
	s.mu.Unlock()
	s.off(p)
}

// release ends a hold. The program is attached unless it was stopped meanwhile.
func (s *switches) release(p attachedProbe) {
	s.mu.Lock()
	delete(s.held, p.probe)
	stopped := s.absent[p.probe] != ""
	s.mu.Unlock()
	if !stopped {
		s.on(p)
	}
}

func (s *switches) isHeld(probe string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[probe] != ""
}

// reason returns the reason why an attached probe sees no events now. It is empty if the probe sees them.
func (s *switches) reason(probe string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason := s.held[probe]; reason != "" {
		return reason
	}
	return s.absent[probe]
}

// timed returns the CPU time that something takes. Waiting for the kernel is not part of it.
func timed(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	do()
	return threadTime() - began
}

func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // fails only with wrong arguments
	return time.Duration(t.Nano())
}

// learn adds the CPU time of a detachment and a reattachment of a probe to the mean of about its last ten.
func (s *switches) learn(probe string, cost time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.cost[probe]
	if !known {
		was = cost
	}
	s.cost[probe] = was + (cost-was)/10
}

// took returns the CPU time of detaching and reattaching the program of a probe. It is 0 before both were done.
func (s *switches) took(probe string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cost[probe]
}

// measured returns the mean CPU time of detaching and reattaching a program. It is 0 before both were done.
func (s *switches) measured() (mean time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cost := range s.cost {
		mean += cost / time.Duration(len(s.cost))
	}
	return mean
}
