// SPDX-License-Identifier: Apache-2.0

package system

import (
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/sampling"
)

// paused returns a demand that switches probes off.
func paused(probes ...string) Demand {
	d := Demand{Paused: map[string]time.Time{}}
	for _, p := range probes {
		d.Paused[p] = time.Now().Add(time.Hour)
	}
	return d
}

// pausing switches probes off, and all others on, at the present level.
func pausing(c *Collector, probes ...string) {
	c.overhead.pauses = newPauses(paused(probes...).Paused)
	changeRegime(c)
}

// statusOf returns whether a probe is attached, and its reason.
func statusOf(s []sample, probe string) (attached bool, reason string) {
	for _, one := range s {
		if one.name == "teescope_probe_attached" && one.labels["probe"] == probe {
			return one.value == 1, one.labels["reason"]
		}
	}
	return false, "there is no status"
}

// A probe that is switched off has no series. Afterwards they continue where they were, without the events in between.
func TestAProbeIsSwitchedOffAndOn(t *testing.T) {
	p := converse(t, job(program(t, "paused"), "on-line", ""))
	c := start(t, Options{OnDemand: true})
	mine := []string{"workload", unique("paused"), "syscall", "getppid"}
	calls := func() (n float64, any bool) {
		s := scrape(t, c)
		for _, one := range s {
			any = any || one.name == "teescope_syscalls_total"
		}
		return sum(s, "teescope_syscalls_total", mine...), any
	}
	p.say("300")
	before, _ := calls()
	demand(c, paused("syscall"))
	p.say("400")
	if n, any := calls(); any || n != 0 {
		t.Errorf("calls are exported while their probe is off, %v of them those of the program", n)
	}
	s := scrape(t, c)
	if attached, reason := statusOf(s, "syscall"); attached || !strings.HasPrefix(reason, "off by request until 20") {
		t.Errorf("the probe is attached: %v, with the reason %q", attached, reason)
	}
	for _, other := range []string{"page_fault_user", "context_switch", "exec"} {
		if attached, reason := statusOf(s, other); !attached {
			t.Errorf("the probe %s is off: %s", other, reason)
		}
	}
	demand(c, Demand{})
	if n, _ := calls(); n != before || before != 300 {
		t.Errorf("%v calls before, and %v when the probe is on again, want 300", before, n)
	}
	p.say("500")
	if n, _ := calls(); n != before+500 {
		t.Errorf("%v calls after 500 more than %v", n, before)
	}
	if attached, reason := statusOf(scrape(t, c), "syscall"); !attached {
		t.Errorf("the probe is off afterwards: %s", reason)
	}
}

// While events are sampled, a probe that is off adds nothing to the estimates.
func TestASampledProbeIsSwitchedOffAndOn(t *testing.T) {
	c, programs := sampled(t)
	k, s := c.kernel, c.slots
	oneGroup(k, s)
	it := s.Get(slotFirst)
	endsCycle := func(calls uint64) uint64 {
		k.count(0, slotFirst).call(0, calls)
		k.count(0, slotFirst).Faults[0][0] += 100
		time.Sleep(sampling.Period / 20) // half of a window
		s.readRows()
		s.endCycle()
		it.report(1)
		return it.Calls[0]
	}
	for range 5 {
		endsCycle(1000)
	}
	pausing(c, "syscall")
	if c.overhead.now.level != sampling.Sampled || !s.sampler.Active() {
		t.Fatalf("the level is %s", c.overhead.now.level)
	}
	if !programs.off("syscall") || programs.off("page_fault_user") {
		t.Error("the wrong program is detached")
	}
	off, faults := it.Calls[0], it.Faults[0][0]
	for range 5 {
		if n := endsCycle(0); n != off {
			t.Errorf("%d calls while the probe is off, and %d before", n, off)
		}
	}
	if now := it.Faults[0][0]; now < faults+500 {
		t.Errorf("%d page faults, and %d before 500 more", now, faults)
	}
	pausing(c)
	if programs.off("syscall") || it.Calls[0] != off {
		t.Errorf("%d calls when the probe is on again, and %d before", it.Calls[0], off)
	}
	if n := endsCycle(1000); n < off+1000 {
		t.Errorf("%d calls after 1000 more than %d", n, off)
	}
}

// A change of the level attaches programs, but none that is off by request.
func TestALevelDoesNotSwitchAProbeOn(t *testing.T) {
	c, programs := sampled(t)
	pausing(c, "page_fault_user", "oom_kill")
	for _, to := range []sampling.Level{sampling.Full, sampling.Off, sampling.Sampled, sampling.Full} {
		at(c, to)
		for _, probe := range []string{"page_fault_user", "oom_kill"} {
			if !programs.off(probe) {
				t.Errorf("%s is attached at the level %s", probe, to)
			}
		}
	}
	pausing(c)
	for _, probe := range []string{"page_fault_user", "oom_kill"} {
		if programs.off(probe) || !c.kernel.attached(probe) {
			t.Errorf("%s is off afterwards", probe)
		}
	}
	pausing(c, "page_fault_user")
	at(c, sampling.Off)
	pausing(c)
	if !programs.off("page_fault_user") {
		t.Error("a probe that the level does not want is attached after its pause")
	}
}

// The probes on requests are switched together. A request that was in flight at either time is not lost.
func TestRequestsAreSwitchedOffAndOn(t *testing.T) {
	device, workload := loopDevice(t), unique("unseen")
	p := converse(t, job(program(t, "unseen"), "disk", device))
	for range 20 { // the kernel drops some events while another program is attached to the tracepoint
		c := start(t, Options{OnDemand: true})
		p.say("read 100")
		before, lost := requestsOf(t, c, workload)["read"], statedLosses(t, c)
		demand(c, paused(endProbe))
		p.say("read 100")
		if off := requestsOf(t, c, workload); len(off) > 0 {
			t.Errorf("%+v are exported while the probes are off", off)
		}
		if attached, reason := statusOf(scrape(t, c), beginProbe); attached || !strings.Contains(reason, "off by request") {
			t.Errorf("the probe %s is attached: %v, %q", beginProbe, attached, reason)
		}
		demand(c, Demand{})
		again := requestsOf(t, c, workload)["read"].since(before)
		p.say("read 100")
		after, now := requestsOf(t, c, workload)["read"].since(before), statedLosses(t, c)
		t.Logf("%+v, then %+v after the pause, and %+v", before, again, after)
		if again.n > 1 { // one may be in flight
			t.Errorf("%+v requests while the probes were off", again)
		}
		if before.n == 100 && after.n == 100 && now == lost {
			return
		}
	}
	t.Error("requests are always lost")
}

// Each refusal says why, and what to do.
func TestWhichProbesCanBeSwitchedOff(t *testing.T) {
	status := []bpf.Status{
		{Probe: "fork", Mechanism: bpf.TypedTracepoint}, {Probe: exitProbe, Mechanism: bpf.TypedTracepoint},
		{Probe: "syscall", Mechanism: bpf.TypedTracepoint}, {Probe: endProbe, Mechanism: bpf.TypedTracepoint},
		{Probe: beginProbe, Mechanism: bpf.TypedTracepoint}, {Probe: "page_cache_access", Mechanism: bpf.Kprobe},
		{Probe: "llc_misses", Mechanism: bpf.PerfEvent}, {Probe: "oom_kill", Mechanism: bpf.NotAttached, Reason: "no such tracepoint"},
	}
	for probe, want := range map[string]string{
		"syscall": "", endProbe: "", "fork": "other probes need", exitProbe: "watched", beginProbe: "switch that off", "page_cache_access": "privilege",
		"llc_misses": "privilege", "oom_kill": "no such tracepoint", "sycall": "use one of syscall", "?": "use one of syscall, cpu_migration",
	} {
		err := whyNotPaused(probe, status)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", probe, err, want)
		}
	}
}
