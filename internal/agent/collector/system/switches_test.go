// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/agent/workload"
)

// recorder counts what happens to each program, and refuses to reattach some.
type recorder struct {
	mu       sync.Mutex
	detached map[string]int
	attached map[string]int
	last     map[string]string // what happened to a program last
	refused  map[string]bool
	changing func() // is called in Detach and Reattach; may be nil
}

func (c *recorder) Detach(program string) error {
	c.mu.Lock()
	c.detached[program]++
	c.last[program] = "detached"
	c.mu.Unlock()
	if c.changing != nil {
		c.changing()
	}
	return nil
}

func (c *recorder) Reattach(program string) error {
	if c.changing != nil {
		c.changing()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused[program] {
		return errors.New("operation not permitted")
	}
	c.attached[program]++
	c.last[program] = "attached"
	return nil
}

// off reports whether a program was last detached.
func (c *recorder) off(program string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[program] == "detached"
}

// sampled returns a collector that samples, with programs of this attacher. The programs have the names of their probes.
func sampled(t *testing.T, refused ...string) (*Collector, *recorder) {
	t.Helper()
	k := made(t)
	for i := range k.status {
		k.status[i].Program = k.status[i].Probe
	}
	programs := &recorder{detached: map[string]int{}, attached: map[string]int{}, last: map[string]string{}, refused: map[string]bool{}}
	for _, p := range refused {
		programs.refused[p] = true
	}
	k.switches.programs = programs
	c := New(Options{Log: slog.New(slog.DiscardHandler)})
	c.kernel, c.slots = k, newSlots(k, 8, nil)
	c.slots.beginSampling(false)
	c.overhead.governor.Level = sampling.Sampled
	c.overhead.now = c.overhead.wanted()
	return c, programs
}

// at changes the level, as Run does.
func at(c *Collector, to sampling.Level) {
	c.overhead.governor.Level = to
	changeRegime(c)
}

// cycles steps the collector until the window has opened again several times, and returns how often.
func cycles(t *testing.T, c *Collector) (opened int) {
	t.Helper()
	closed := false
	for end := time.Now().Add(time.Minute); opened < 2; {
		wait, active := c.step()
		if !active || time.Now().After(end) {
			t.Fatalf("the window has opened %d times", opened)
		}
		now := c.kernel.controls[0].Closed == 1
		if closed && !now {
			opened++
		}
		closed = now
		time.Sleep(min(wait, sampling.Period/50))
	}
	return opened
}

// A kernel may refuse to attach a program again, for example a kprobe after the agent has dropped CAP_PERFMON. Its events
// are absent then, with the reason. Other events are sampled on.
func TestAProbeThatCannotBeReattachedLeaves(t *testing.T) {
	c, programs := sampled(t, "page_fault_user")
	cycles(t, c)
	if programs.attached["syscall"] < 2 || programs.attached["page_cache_dirty_buffer"] < 2 {
		t.Errorf("attached again: %v", programs.attached)
	}
	if n := programs.detached["page_fault_user"]; n != 1 {
		t.Errorf("the probe that left was detached %d times", n)
	}
	for _, s := range c.kernel.status {
		now := c.kernel.current(s)
		if left := s.Probe == "page_fault_user"; s.Attached() && now.Attached() == left {
			t.Errorf("%+v", now)
		} else if left && now.Reason != "operation not permitted" {
			t.Errorf("the reason is %q", now.Reason)
		}
	}
	if _, ok := ratios(c.slots.sampler)["page_fault_user"]; ok {
		t.Error("a probe that has left is reported as sampled")
	}
	// After a change of the level the kernel may accept it.
	programs.refused = nil
	for _, to := range []sampling.Level{sampling.Off, sampling.Full} {
		at(c, to)
	}
	if !c.kernel.attached("page_fault_user") {
		t.Error("the probe does not come back")
	}
}

// Programs on functions take a tenth of a second to attach on Debian's kernels, and kprobes a privilege. Neither is
// detached outside the window.
func TestSlowProgramsStayAttached(t *testing.T) {
	for m, switched := range map[bpf.Mechanism]bool{bpf.TypedTracepoint: true, bpf.Fentry: false, bpf.Kprobe: false} {
		c, programs := sampled(t)
		for i := range c.slots.sampler.probes {
			if p := &c.slots.sampler.probes[i]; p.probe == "page_cache_access" {
				p.mechanism = m
			}
		}
		cycles(t, c)
		if n := programs.detached["page_cache_access"]; n > 0 != switched {
			t.Errorf("%s was detached %d times", m, n)
		}
		if programs.detached["syscall"] < 2 {
			t.Errorf("system calls were detached %d times", programs.detached["syscall"])
		}
		if at(c, sampling.Off); programs.detached["page_cache_access"] == 0 {
			t.Errorf("%s stays attached at the level off", m)
		}
	}
}

// A program with few events stays attached, if that costs less than attaching it in each cycle.
func TestProgramsWithFewEventsStayAttached(t *testing.T) {
	c, programs := sampled(t)
	s := c.slots.sampler
	for _, p := range s.probes {
		c.kernel.switches.learn(p.probe, time.Millisecond)
	}
	faultCost := s.counters.Costs[sampledFaults] / 1e9
	for _, tt := range []struct {
		faults float64
		stays  bool
	}{{1e6, false}, {100, true}, {5000, true}, {20_000, false}, {5000, false}, {100, true}} {
		d := sampling.Demand{Calls: 1e6, Faults: tt.faults, Cache: 1e6, Dirtied: 100}
		s.choose(&d)
		dirtied := 100 * s.counters.Costs[sampledCache] / 1e9
		want, staying := len(s.probes)-1, dirtied // the program on dirtied buffers stays
		if tt.stays {
			want, staying = want-1, staying+tt.faults*faultCost
		}
		if d.Programs != want || math.Abs(d.Staying-staying) > 1e-9 || d.Attaching != time.Millisecond {
			t.Errorf("%.0f faults a second: %d programs do not stay, want %d; %v take %.6f s, want %.6f", tt.faults, d.Programs, want, d.Attaching, d.Staying, staying)
		}
	}
	cycles(t, c)
	faults, calls := programs.detached["page_fault_user"], programs.detached["syscall"]
	cycles(t, c)
	if now := programs.detached["page_fault_user"]; now != faults || programs.attached["page_fault_user"] != faults {
		t.Errorf("the program on faults was detached %d times and attached %d times, want %d", now, programs.attached["page_fault_user"], faults)
	}
	if programs.detached["syscall"] == calls {
		t.Error("the program on system calls stays attached")
	}
}

// The kernel may need long to attach or detach a program. Scrapes do not wait for it, in no window and at no change of the level.
func TestScrapesDoNotWaitForAttaching(t *testing.T) {
	for _, tt := range []struct {
		what string
		from sampling.Level
		do   func(*testing.T, *Collector)
	}{
		{"a window", sampling.Sampled, func(t *testing.T, c *Collector) { cycles(t, c) }},
		{"everything is counted again", sampling.Sampled, func(_ *testing.T, c *Collector) { at(c, sampling.Full) }},
		{"counting stops", sampling.Sampled, func(_ *testing.T, c *Collector) { at(c, sampling.Off) }},
		{"counting goes on", sampling.Off, func(_ *testing.T, c *Collector) { at(c, sampling.Sampled) }},
		{"watching begins", sampling.Full, func(_ *testing.T, c *Collector) { c.overhead.governor.Watching = true; changeRegime(c) }},
	} {
		c, programs := sampled(t)
		at(c, tt.from)
		changes, waited := 0, 0
		programs.changing = func() {
			changes++
			if !c.mu.TryLock() {
				waited++
				return
			}
			c.mu.Unlock()
		}
		if tt.do(t, c); changes == 0 || waited > 0 {
			t.Errorf("%s: %d programs were attached or detached, %d of them while the collector was locked", tt.what, changes, waited)
		}
	}
}

// A scrape may choose the earlier level again while programs are attached for another one. It returns although no later scrape says so.
func TestARegimeThatIsNoLongerWantedIsLeft(t *testing.T) {
	c, programs := sampled(t)
	programs.changing = func() {
		if c.overhead.now.level == sampling.Sampled { // before the change
			c.overhead.governor.Level = sampling.Sampled
			c.overhead.announce()
		}
	}
	at(c, sampling.Full)
	programs.changing = nil
	select {
	case <-c.overhead.changed:
		changeRegime(c)
	default:
		t.Error("the change is not announced")
	}
	if level := c.overhead.now.level; level != sampling.Sampled {
		t.Errorf("the level is %s", level)
	}
}

// Windows without a system call of the kernel's threads do not mean that some were missed.
func TestCallsOfTheKernelHaveNoError(t *testing.T) {
	c, _ := sampled(t)
	cycles(t, c)
	seen := 0
	c.slots.Registry.Each(func(w *workload.Workload[counts]) {
		kernel := w.Kind == workload.Kernel || w.Kind == workload.Idle
		for kind, name := range sampledNames {
			seen++
			if _, known := w.Data.variance[kind].Sum(); known == (kernel && kind != sampledCache) {
				t.Errorf("the workload %s has an error of its %s: %v", w.Name, name, known)
			}
		}
	})
	if seen < 3*sampledKinds {
		t.Errorf("%d errors are known", seen)
	}
}
