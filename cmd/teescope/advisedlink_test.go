// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ocallBound writes OpenMetrics text about a workload that makes 40,000 exits a second in 0.95 cores, as the case "a quieter
// minute" of test/cases has it, in one runtime.
func ocallBound(t *testing.T, runtime string) string {
	t.Helper()
	labels := fmt.Sprintf(`workload="events",kind="program",tee="sgx",runtime=%q`, runtime)
	var b strings.Builder
	for _, s := range []struct {
		family, kind, labels string
		base, step           float64
	}{
		{"node_cpu_frequency_max_hertz", "gauge", `cpu="0"`, 2.8e9, 0},
		{"teescope_workload_info", "gauge", labels, 1, 0},
		{"teescope_processes", "gauge", `workload="events"`, 1, 0},
		{"teescope_threads", "gauge", `workload="events"`, 4, 0},
		{"teescope_busiest_thread_cpu_ratio", "gauge", `workload="events"`, 0.95, 0},
		{"teescope_cpu_seconds", "counter", `workload="events",mode="user"`, 0, 3.75},
		{"teescope_cpu_seconds", "counter", `workload="events",mode="system"`, 0, 1},
		{"teescope_syscalls", "counter", `workload="events",syscall="recvmsg"`, 0, 40_000},
		{"teescope_syscalls", "counter", `workload="events",syscall="sendmsg"`, 0, 40_000},
		{"teescope_syscalls", "counter", `workload="events",syscall="fstat"`, 0, 60_000},
		{"teescope_syscalls", "counter", `workload="events",syscall="openat"`, 0, 60_000},
		{"teescope_enclave_transitions", "counter", `workload="events",kind="eenter",source="gramine_counters"`, 0, 200_000},
		{"teescope_enclave_transitions", "counter", `workload="events",kind="eexit",source="gramine_counters"`, 0, 200_000},
	} {
		header := fmt.Sprintf("# TYPE %s %s\n", s.family, s.kind)
		if !strings.Contains(b.String(), header) {
			b.WriteString(header)
		}
		name := s.family
		if s.kind == "counter" {
			name += "_total"
		}
		for i := range 61 {
			fmt.Fprintf(&b, "%s{%s} %g %d\n", name, s.labels, s.base+s.step*float64(i), 1_700_000_000+5*i)
		}
	}
	b.WriteString("# EOF\n")
	file := filepath.Join(t.TempDir(), "series.om")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A finding about a program in Gramine names the advice about its manifest, and one about a program of the SDK has no manifest.
func TestFindingsNameAdvice(t *testing.T) {
	for runtime, want := range map[string]bool{"gramine-sgx": true, "sgx-sdk": false} {
		for _, format := range []string{"text", "markdown", "json"} {
			out, _, err := execute(t, "analyze", "--all", "--format", format, ocallBound(t, runtime))
			if err != nil || !strings.Contains(out, "ocall-bound") {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := strings.Contains(out, "batch calls, find the callers (ocalls)"); got != want {
				t.Errorf("%s as %s: the advice is there: %v\n%s", runtime, format, got, out)
			}
		}
	}
}
