// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/collector/system"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
)

const groupKernel = "kernel"

// oldest is the first supported kernel. From 5.15 on, perf events attach by links.
var oldest = [2]int{5, 15}

// kernel checks features of the kernel.
func (o Options) kernel(release string, t trials) []Check {
	checks := []Check{version(release), o.btf()}
	checks = append(checks,
		t.mechanism(bpf.TypedTracepoint, "typed tracepoints", "nothing replaces them; they need CONFIG_DEBUG_INFO_BTF"),
		t.mechanism(bpf.Fentry, "function entry by trampoline", "kprobes replace them and cost more; trampolines need CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"),
		t.mechanism(bpf.Kprobe, "kernel probes", "trampolines replace them, or else a tracepoint near the function; kprobes need CONFIG_KPROBE_EVENTS"),
		preemption(o, t), o.pmu(t),
		o.jit(), o.cgroups(), o.bystander("perf_event_paranoid", "kernel/perf_event_paranoid", "CAP_PERFMON"), o.bystander("unprivileged_bpf", "kernel/unprivileged_bpf_disabled", "CAP_BPF"), o.lockdown(),
		o.landlock(), o.seccomp(),
	)
	for i := range checks {
		checks[i].Group = groupKernel
	}
	return checks
}

func version(release string) Check {
	c := Check{Name: "version", Status: OK, Detail: printable(release)}
	v, err := parseRelease(release)
	switch {
	case err != nil:
		c.Status, c.Detail = Unknown, err.Error()
	case v[0] < oldest[0] || v[0] == oldest[0] && v[1] < oldest[1]:
		c.Status, c.Detail = Limited, fmt.Sprintf("%s is older than %d.%d, the oldest supported kernel", printable(release), oldest[0], oldest[1])
		c.Advice = "run a newer kernel; what does not attach here is listed below"
	}
	return c
}

var errRelease = errors.New("not a kernel release")

// parseRelease parses the first two numbers of a release such as 6.1.0-52-amd64.
func parseRelease(release string) (v [2]int, err error) {
	if n, err := fmt.Sscanf(release, "%d.%d", &v[0], &v[1]); n != 2 || v[0] < 0 || v[1] < 0 {
		return [2]int{}, fmt.Errorf("%w: %q: %w", errRelease, printable(release), err)
	}
	return v, nil
}

func (o Options) btf() Check {
	if exists(o.Roots.Sys, "kernel/btf/vmlinux") {
		return Check{Name: "btf", Status: OK, Required: true, Detail: "the kernel describes its types"}
	}
	return Check{
		Name: "btf", Status: Missing, Required: true, Detail: "/sys/kernel/btf/vmlinux is missing: no program can be adapted to this kernel",
		Advice: "run a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels from 5.15 on are; in a container, mount the host's /sys/kernel/btf",
	}
}

// mechanism reports whether any probe attaches by a mechanism. None is required alone, because probes have several
// ways.
func (t trials) mechanism(m bpf.Mechanism, what, otherwise string) Check {
	c := Check{Name: string(m), Status: Unknown, Detail: what + ": " + or(t.not, "no probe was tried")}
	tried, attached, reason := 0, 0, ""
	for _, trial := range t.all {
		for _, w := range trial.Ways {
			if w.Mechanism != m {
				continue
			}
			tried++
			switch {
			case w.Err == nil:
				attached++
			case reason == "":
				reason = bpf.Reason(w.Err)
			}
		}
	}
	switch {
	case tried == 0:
	case attached == 0:
		c.Status, c.Detail, c.Advice = Missing, what+": "+printable(reason), otherwise
	default:
		c.Status, c.Detail = OK, fmt.Sprintf("%s: %d of %d attach", what, attached, tried)
	}
	return c
}

// preemption says whether probes of this machine attach by a mechanism whose programs the kernel may preempt.
func preemption(o Options, t trials) Check {
	c := Check{Name: "preemption", Status: OK, Detail: "the kernel runs the programs for every event"}
	may := system.MayMiss(hostfs.At(o.Roots.Proc), hostfs.At(o.Roots.Sys))
	if len(t.all) == 0 {
		c.Status, c.Detail = Unknown, or(t.not, "no probe was tried")
	}
	var names []string
	for _, trial := range t.all {
		if slices.Contains(may, trial.Mechanism) && !slices.Contains(names, string(trial.Mechanism)) {
			names = append(names, string(trial.Mechanism))
		}
	}
	if len(names) > 0 {
		c.Status, c.Detail = Limited, "threads preempt each other in the kernel, so events of "+strings.Join(names, " and ")+
			" can be missed: teescope_bpf_program_missed_runs_total counts them, and teescope_self_level is incomplete then"
		c.Advice = "for exact counts run a kernel up to 6.19 with preempt=voluntary"
	}
	return c
}

func (o Options) pmu(t trials) Check {
	c := Check{Name: "pmu", Status: Missing, Detail: "the CPU's counters of cache references and misses cannot be read"}
	// CPUs with cores of two kinds have cpu_core and cpu_atom.
	if found, _ := filepath.Glob(filepath.Join(o.Roots.Sys, "bus/event_source/devices/cpu*")); len(found) > 0 {
		c.Status, c.Detail = OK, "the CPU has performance counters"
	}
	for _, trial := range t.all {
		if trial.Probe == "llc_misses" && !trial.Attached() {
			c.Status, c.Detail = Missing, printable(trial.Reason)
		}
	}
	if c.Status == Missing {
		c.Advice = "enable a virtual PMU in the hypervisor; without one the teescope_llc_* metrics are absent"
	}
	return c
}

func (o Options) jit() Check {
	c := Check{Name: "bpf_jit", Status: OK, Detail: "BPF programs are compiled"}
	switch v := o.sysctl("net/core/bpf_jit_enable"); v {
	case "1", "2":
	case "":
		c.Status, c.Detail = Unknown, "the sysctl net.core.bpf_jit_enable cannot be read"
	default:
		c.Status, c.Detail = Limited, "BPF programs are interpreted: measuring costs several times as much"
		c.Advice = "sysctl net.core.bpf_jit_enable=1"
	}
	return c
}

func (o Options) cgroups() Check {
	v2 := exists(o.Cgroup, "cgroup.controllers")
	hybrid := exists(o.Cgroup, "unified/cgroup.controllers")
	v1 := cgroup.Naming(o.Cgroup) != cgroup.Unified
	c := Check{Name: "cgroup", Status: OK}
	switch {
	case v2:
		c.Detail = "version 2"
	case v1 && hybrid:
		c.Detail = "version 1 and version 2"
	case v1:
		c.Detail = "version 1"
	default:
		c.Status, c.Detail = Limited, "no cgroup file system: workloads are programs, not containers or units"
		c.Advice = "mount -t cgroup2 none /sys/fs/cgroup; in a container, mount the host's"
	}
	return c
}

// bystander reports a sysctl that restricts users without a capability. It never prevents the agent from running,
// because the agent has the capability. It is listed because users check it when they search for a cause.
func (o Options) bystander(name, key, capability string) Check {
	v := o.sysctl(key)
	sysctl := strings.ReplaceAll(key, "/", ".")
	if v == "" {
		return Check{Name: name, Status: Unknown, Detail: sysctl + " cannot be read"}
	}
	return Check{Name: name, Status: OK, Detail: fmt.Sprintf("%s is %s, which does not restrict processes with %s", sysctl, printable(v), capability)}
}

func (o Options) lockdown() Check {
	c := Check{Name: "lockdown", Status: OK, Detail: "off"}
	switch mode := parseLockdown(read(o.Roots.Sys, "kernel/security/lockdown")); mode {
	case "", "none":
	case "integrity":
		c.Detail = "integrity: reading kernel memory is allowed"
	default:
		// Tested on 6.1: none of the required probes loads.
		c.Status, c.Required, c.Detail = Missing, true, printable(mode)+": BPF programs may not read kernel memory"
		c.Advice = "boot with lockdown=integrity, or without"
	}
	return c
}

// parseLockdown finds the mode in brackets: "none [integrity] confidentiality".
func parseLockdown(text string) string {
	_, rest, found := strings.Cut(text, "[")
	mode, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return ""
	}
	return mode
}
