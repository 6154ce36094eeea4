// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/text"
)

// pause is a probe that is switched off by request, with the reason that its status has.
type pause struct{ probe, reason string }

// pauses are sorted by probe.
type pauses []pause

func newPauses(until map[string]time.Time) (all pauses) {
	now := time.Now()
	for _, probe := range slices.Sorted(maps.Keys(until)) {
		end := now.Round(0).Add(until[probe].Sub(now)) // by the present clock
		all = append(all, pause{probe, "off by request until " + end.UTC().Format(time.RFC3339)})
	}
	return all
}

// key is equal for equal pauses.
func (p pauses) key() string {
	var all strings.Builder
	for _, one := range p {
		fmt.Fprintf(&all, "%s %s\n", one.probe, one.reason)
	}
	return all.String()
}

func (p pauses) has(probe string) bool {
	return slices.ContainsFunc(p, func(one pause) bool { return one.probe == probe })
}

// pausable lists the probes that can be switched off. Each is only the source of its own counts. The others find processes and
// assign events to workloads.
func pausable() []string {
	return []string{
		"syscall", "cpu_migration", "oom_kill", "page_fault_user", "page_fault_kernel", "page_cache_insertion", "page_cache_access",
		"page_cache_dirty_page", "page_cache_dirty_buffer", endProbe,
	}
}

// pausedWith lists the probes that are switched together with a probe, in the order in which they are attached. A request that one
// of them has not seen would count for another workload.
func pausedWith(probe string) []string {
	if probe == endProbe {
		return []string{endProbe, mergedProbe, beginProbe, queuedProbe}
	}
	return []string{probe}
}

// whyNotPaused returns why a probe cannot be switched off, or nil.
func whyNotPaused(probe string, probes []bpf.Status) error {
	at := slices.IndexFunc(probes, func(s bpf.Status) bool { return s.Probe == probe })
	switch {
	case at < 0:
		names := pausable()
		if near := text.Nearest(probe, names); near != "" {
			names = []string{near}
		}
		return fmt.Errorf("probe %.40q is unknown: use one of %s", probe, strings.Join(names, ", "))
	case probe == exitProbe:
		return fmt.Errorf("the probe %s is attached while processes are watched or system calls are timed: end these", probe)
	case slices.Contains(pausedWith(endProbe), probe) && probe != endProbe:
		return fmt.Errorf("the probe %s needs %s: switch that off, and both are", endProbe, probe)
	case probes[at].Mechanism == bpf.PerfEvent || probes[at].Mechanism == bpf.Kprobe:
		return fmt.Errorf("the probe %s cannot be switched: attaching it again needs a privilege that the agent has dropped", probe)
	case !slices.Contains(pausable(), probe):
		return fmt.Errorf("other probes need the probe %s: it finds processes, or assigns events to workloads", probe)
	case !probes[at].Attached():
		return fmt.Errorf("the probe %s is not attached: %s", probe, probes[at].Reason)
	}
	return nil
}

// Probes lists the probes of this machine that can be switched off. It is valid after Init.
func (s *Demands) Probes() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, probe := range pausable() {
		if whyNotPaused(probe, s.probes) == nil {
			names = append(names, probe)
		}
	}
	return names
}

// Pauses returns why a probe cannot be switched off, or nil. It is valid after Init.
func (s *Demands) Pauses(probe string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return whyNotPaused(probe, s.probes)
}

// programsOf lists the attached programs of a probe and of those that are switched with it.
func programsOf(k *kernelSide, probe string) (all []attachedProbe) {
	for _, name := range pausedWith(probe) {
		for _, s := range k.status {
			if s.Probe == name && s.Attached() {
				all = append(all, attachedProbe{s.Probe, s.Program, s.Mechanism})
			}
		}
	}
	return all
}

// pauseAll detaches the probes that requests have switched off. The lock of the collector is not held, because the kernel may need long.
func pauseAll(k *kernelSide, wanted pauses) {
	for _, one := range wanted {
		for _, p := range slices.Backward(programsOf(k, one.probe)) {
			k.switches.hold(p, one.reason)
		}
		if one.probe == endProbe {
			if err := forgetRequests(k); err != nil {
				k.switches.log.Warn("removing the requests to block devices that have not ended", "error", err)
			}
		}
	}
}

// resumeOthers attaches the probes whose pauses have ended. The lock of the collector is not held.
func resumeOthers(k *kernelSide, wanted pauses) {
	for _, probe := range pausable() {
		if wanted.has(probe) || !k.switches.isHeld(probe) {
			continue
		}
		for _, p := range programsOf(k, probe) {
			k.switches.release(p)
		}
		if probe == endProbe {
			if err := seesRequests(k); err != nil {
				k.switches.log.Warn("setting the time from which requests to block devices are seen", "error", err)
			}
		}
	}
}
