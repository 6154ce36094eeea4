// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"strings"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/collector/system"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/lib/privilege"
)

const (
	groupPrivilege = "privilege"
	groupProbe     = "probe"
)

// needed lists the capabilities without which no probe attaches. CAP_SYS_ADMIN includes both.
var needed = []string{"CAP_BPF", "CAP_PERFMON"}

// missing returns the needed capabilities that the process lacks.
func (o Options) missing() (names []string) {
	if o.Held("CAP_SYS_ADMIN") {
		return nil
	}
	for _, name := range needed {
		if !o.Held(name) {
			names = append(names, name)
		}
	}
	return names
}

func (o Options) privileges() []Check {
	var checks []Check
	for _, p := range []struct {
		name, use, without string
		required           bool
	}{
		{"CAP_BPF", "load BPF programs", "", true},
		{"CAP_PERFMON", "attach them to events of the kernel", "", true},
		{"CAP_SYS_PTRACE", "identify other users' processes", "a runtime or TEE of other users' processes is not recognised", false},
		{"CAP_DAC_READ_SEARCH", "read files of other users in /proc and /sys", "figures of patched SGX drivers are not read", false},
		{"CAP_SYS_ADMIN", "measure at the start what the probes cost", "teescope_bpf_program_sampled_* are absent", false},
	} {
		c := Check{Group: groupPrivilege, Name: p.name, Required: p.required, Status: OK, Detail: p.use}
		included := p.required && o.Held("CAP_SYS_ADMIN")
		switch {
		case o.Held(p.name):
		case included:
			c.Detail += " (included in CAP_SYS_ADMIN)"
		case p.required:
			c.Status, c.Advice = Missing, "run as root: sudo "+o.Binary+" ...; or grant it: "+privilege.Grant(o.Binary)
		case p.name == "CAP_SYS_ADMIN": // only root has it, and it is given up a second after the start
			c.Status, c.Detail = Limited, c.Detail+"; without it "+p.without
		default:
			c.Status, c.Detail = Limited, c.Detail+"; without it "+p.without
			c.Advice = privilege.Grant(o.Binary)
		}
		checks = append(checks, c)
	}
	if o.Hidden != nil {
		checks = append(checks, Check{
			Group: groupPrivilege, Name: "files", Status: Limited,
			Detail: printable(o.Hidden.Error()) + "; names of pods and containers, devices, control groups and file systems are missing",
			Advice: "grant CAP_SYS_PTRACE to the container, and let its AppArmor profile or SELinux type allow ptrace",
		})
	}
	return checks
}

// probes reports how each probe would attach. It returns a single check when nothing could be tried.
func (o Options) probes(t trials) []Check {
	all := Check{Group: groupProbe, Name: "all", Status: Unknown, Required: true, Detail: t.not}
	switch {
	case t.not != "":
		all.Advice = "grant the privileges above and check again"
		return []Check{all}
	case t.err != nil:
		all.Status, all.Detail = Missing, printable(bpf.Reason(t.err))
		all.Advice = "without BPF maps nothing is counted; in a container, it must be privileged or have CAP_BPF and CAP_PERFMON of the host"
		if errors.Is(t.err, system.ErrNoBTF) {
			all.Advice = "see btf"
		}
		return []Check{all}
	}
	var checks []Check
	for _, trial := range t.all {
		checks = append(checks, check(trial))
	}
	return checks
}

func check(t probe.Trial) Check {
	c := Check{Group: groupProbe, Name: t.Probe, Status: OK, Required: t.Required}
	for _, w := range t.Ways {
		way := Way{Mechanism: string(w.Mechanism), Target: w.Target, Attaches: w.Err == nil}
		if w.Err != nil {
			way.Reason = printable(bpf.Reason(w.Err))
		} else if c.Mechanism == "" {
			c.Mechanism, c.Detail = way.Mechanism, way.Mechanism+" on "+way.Target
		}
		c.Ways = append(c.Ways, way)
	}
	switch {
	case !t.Attached():
		c.Status, c.Detail, c.Advice = Missing, printable(t.Reason), adviceFor(t)
	case t.Reason != "":
		c.Status, c.Detail = Limited, c.Detail+": "+printable(t.Reason)
		c.Advice = "a kernel with function probes counts it exactly as documented"
	}
	return c
}

// adviceFor returns what to do about a probe that does not attach.
func adviceFor(t probe.Trial) string {
	switch {
	case strings.HasPrefix(t.Probe, "user/"):
		return "do what its reason says, or correct the probe in its file; the agent starts without it, and only its metric is absent"
	case strings.HasPrefix(t.Probe, "llc_"):
		return "see pmu"
	case t.Required:
		return "nothing can be counted without it; see lockdown, btf and the privileges, or run another kernel"
	}
	return "this kernel does not have the event or does not allow a probe on it; only the metrics that need it are absent"
}
