// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// preempted makes the kernel preempt threads that run in it, and with them eBPF programs.
const preempted = "preempt=full"

// The kernels are the newest of Debian 12, of its backports, and of one series of the backports of Debian 13. They are
// unpacked and not installed.
var kernels = []struct {
	name    string
	version string
	cpus    int
	line    string // more of the command line
}{
	{"6.1", "6.1", 2, ""},
	{"6.12", "6.12", 2, preempted},
	{"6.12, 32 CPUs", "6.12", 32, ""},
	{"7.2", "7.2", 2, preempted},
}

func TestStockKernels(t *testing.T) {
	files := image(t)
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			report := boot(t, trial{kernel(t, k.version), files, k.cpus, "count", k.line})
			families := report.exposition(t, "exposition")
			check(t, families)
			confined(t, families, report["privileges"])
			if got := int(sum(families, "teescope_syscalls_total", "workload", "known", "syscall", "getppid")); got != 10_000 {
				t.Errorf("getppid was counted %d times, want 10000", got)
			}
			// The calls of ten processes, each shorter than the machine's uptime.
			if got := sum(families, "teescope_syscall_seconds_total", "workload", "known"); got <= 0 || got > 100 {
				t.Errorf("%v s were spent in system calls", got)
			}
			for _, family := range []string{"teescope_execs_total", "teescope_exits_total"} {
				if got := sum(families, family, "workload", "known"); got != 10 {
					t.Errorf("%s = %v, want 10", family, got)
				}
			}
		})
	}
}

// check requires that all probes attach, except those that need a PMU.
func check(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	probes := families["teescope_probe_attached"]
	if probes == nil {
		t.Fatal("the exposition says nothing about probes")
	}
	for _, m := range probes.Metric {
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		if strings.HasPrefix(labels["probe"], "llc_") {
			continue
		}
		t.Logf("%s by %s", labels["probe"], labels["mechanism"])
		if m.Gauge.GetValue() != 1 {
			t.Errorf("probe %s is not attached: %s", labels["probe"], labels["reason"])
		}
	}
	if sum(families, "teescope_resident_memory_bytes", "workload", "teescope") < 1<<20 {
		t.Error("the agent itself has no resident memory")
	}
}

// confined requires that a system call filter confines the agent, and that the confinement also works here, with an
// older Landlock.
func confined(t *testing.T, families map[string]*dto.MetricFamily, tests string) {
	t.Helper()
	if sum(families, "teescope_sandbox", "mechanism", "seccomp") != 1 {
		t.Error("the agent is not confined by seccomp")
	}
	if !strings.HasSuffix(tests, "\nPASS") || strings.Contains(tests, "--- SKIP") {
		t.Errorf("the tests of internal/lib/privilege in the guest:\n%s", tests)
	}
}
