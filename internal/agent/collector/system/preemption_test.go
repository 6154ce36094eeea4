// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

func TestPreemption(t *testing.T) {
	const dynamic = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1"
	for _, tt := range []struct {
		model, line, build, release string
		want                        preemption
	}{
		{"none (voluntary) full\n", "quiet", dynamic, "6.12.117+deb12-amd64", preemption{}},
		{"none voluntary (full)\n", "quiet", dynamic, "6.12.117+deb12-amd64", preemption{functions: true}},
		{"none voluntary full (lazy)\n", "preempt=none", dynamic, "7.0.1", preemption{functions: true, tracepoints: true}},
		{"", "quiet preempt=full console=ttyS0", dynamic, "6.1.0-56-amd64", preemption{functions: true}},
		{"", "preempt=full preempt=voluntary", dynamic, "6.1.0-56-amd64", preemption{}},
		{"", "nopreempt=full", dynamic, "6.1.0-56-amd64", preemption{}},
		{"", "quiet", dynamic, "6.1.0-56-amd64", preemption{}},
		{"", "quiet", dynamic, "7.2.12+deb13-amd64", preemption{functions: true, tracepoints: true}},
		{"", "preempt=none", dynamic, "7.2.12+deb13-amd64", preemption{functions: true, tracepoints: true}},
		{"", "quiet", "#1 SMP Mon", "7.2.12+deb13-amd64", preemption{}},
		{"", "quiet", "#1 SMP PREEMPT Mon", "5.15.0-1-lowlatency", preemption{functions: true}},
		{"", "quiet", "#1 SMP PREEMPT_RT Debian 6.12.9-1", "6.12.9-rt-amd64", preemption{functions: true}},
		{"", "quiet", "#1 SMP Mon", "strange", preemption{}},
	} {
		proc := t.TempDir()
		if err := os.MkdirAll(filepath.Join(proc, "sys", filepath.Dir(preemptFile)), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"cmdline": tt.line, "sys/kernel/version": tt.build, "sys/kernel/osrelease": tt.release, "sys/" + preemptFile: tt.model,
		} {
			if err := os.WriteFile(filepath.Join(proc, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := readPreemption(hostfs.At(proc), hostfs.At(filepath.Join(proc, "sys"))); got != tt.want {
			t.Errorf("%q, %q, %q, %q: %+v, want %+v", tt.model, tt.line, tt.build, tt.release, got, tt.want)
		}
	}
}

// Where threads preempt each other in the kernel, programs on functions lose events. Kprobes do not: the kernel runs
// them with preemption disabled.
func TestAPreemptedKernelCountsAccessesByKprobe(t *testing.T) {
	if got := accessWays(preemption{functions: true})[1].Mechanism; got != bpf.Kprobe {
		t.Errorf("the first way by a function is %s", got)
	}
	if got := accessWays(preemption{})[1].Mechanism; got != bpf.Fentry {
		t.Errorf("without preemption the first way by a function is %s", got)
	}
}
