// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

// These machines have faults that the test machine itself must not have.
func TestFaultsOfTheMachine(t *testing.T) {
	files, newest := image(t), kernel(t, kernels[1].version)
	for _, tt := range []struct {
		name, scenario string
		cpus           int
		check          func(*testing.T, report)
	}{
		{"the clock is set", "clock", 2, clockIsSet},
		{"the machine is suspended", "suspend", 2, suspended},
		{"CPUs come and go", "hotplug", 4, cpusComeAndGo},
		{"a container of cgroup v2", "container", 2, containerOfV2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := boot(t, trial{kernel: newest, files: files, cpus: tt.cpus, scenario: tt.scenario})
			for _, bad := range []string{"level=ERROR", "panic", "fatal error"} {
				if strings.Contains(r["log"], bad) {
					t.Errorf("the agent logged errors:\n%s", r["log"])
				}
			}
			families := r.exposition(t, "exposition")
			for _, m := range families["teescope_collector_success"].GetMetric() {
				if m.GetGauge().GetValue() != 1 {
					t.Errorf("a collector failed: %v", m)
				}
			}
			tt.check(t, r)
			if t.Failed() {
				t.Logf("the agent said:\n%s", r["log"])
			}
		})
	}
}

// exactly compares the counted calls of the steady program with those that it made.
func exactly(t *testing.T, r report, families map[string]*dto.MetricFamily) {
	t.Helper()
	if made, counted := metrictest.Number(t, r["made"]), sum(families, "teescope_syscalls_total", "workload", "steady"); made < 1000 || counted != made {
		t.Errorf("%v calls were counted of %v", counted, made)
	}
}

// steadily requires the rate of the steady program, a thousand calls a second. QEMU's CPUs are slow, so a scrape may
// read later than its timestamp, by a varying delay. A counter that seems reset would show many thousands. An interval
// that did not exist would show less than one.
func steadily(t *testing.T, r report, name string) {
	t.Helper()
	if rate := r.answer(t, name); !(rate > 500 && rate < 2000) {
		t.Errorf("%s: %v calls a second, want 1000", name, rate)
	}
}

// plausible requires no more CPU time than the uptime on each CPU.
func plausible(t *testing.T, r report, families map[string]*dto.MetricFamily, cpus int) {
	t.Helper()
	up, _, _ := strings.Cut(r["uptime"], " ")
	if used, most := sum(families, "teescope_cpu_seconds_total"), float64(cpus)*metrictest.Number(t, up); used <= 0 || used > most {
		t.Errorf("%v s of CPU time were used of %v", used, most)
	}
}

func clockIsSet(t *testing.T, r report) {
	for _, name := range []string{"before", "forward", "back", "again"} {
		steadily(t, r, name)
	}
	if n := r.answer(t, "old"); !math.IsNaN(n) {
		t.Errorf("%v samples ahead of the clock remain", n)
	}
	if n := r.answer(t, "stored"); !(n >= 4) {
		t.Errorf("%v samples were stored since the clock was set back, want at least 4", n)
	}
	families := r.exposition(t, "exposition")
	exactly(t, r, families)
	plausible(t, r, families, 2)
	for direction, want := range map[string]float64{"forward": 2, "back": 1} {
		if got := sum(families, "teescope_clock_steps_total", "direction", direction); got != want {
			t.Errorf("%v steps %s were seen, want %v", got, direction, want)
		}
	}
	for _, want := range []string{"the clock of this machine was set", "by=1h0m0", "by=-2h0m0", "the clock was set back: samples in the future are removed"} {
		if !strings.Contains(r["log"], want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func suspended(t *testing.T, r report) {
	if slept := metrictest.Number(t, r["slept"]); slept < 5 {
		t.Fatalf("the machine slept for %v s", slept)
	}
	steadily(t, r, "rate before")
	steadily(t, r, "rate after")
	before, families := r.exposition(t, "before"), r.exposition(t, "exposition")
	exactly(t, r, families)
	// Running programs are not charged for the sleep, and no counter decreases. The wait for a CPU is checked only for
	// programs, because per-CPU kernel threads wait while their CPU is off.
	for _, name := range []string{"teescope_cpu_seconds_total", "teescope_run_queue_wait_seconds_total", "node_cpu_seconds_total"} {
		for _, m := range before[name].GetMetric() {
			if strings.Contains(name, "wait") && hasLabel(m, "workload", "kernel") {
				continue
			}
			labels := []string{}
			for _, l := range m.Label {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			grew := sum(families, name, labels...) - m.GetCounter().GetValue()
			// Each of these counts one CPU, or a few threads for some seconds.
			if grew < 0 || grew > 15 {
				t.Errorf("%s%v grew by %v s", name, labels, grew)
			}
		}
	}
	if got := sum(families, "teescope_clock_steps_total"); got != 0 {
		t.Errorf("the clock was not set, but %v steps were seen", got)
	}
}

func hasLabel(m *dto.Metric, name, value string) bool {
	return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == name && l.GetValue() == value })
}

func cpusComeAndGo(t *testing.T, r report) {
	families := r.exposition(t, "exposition")
	exactly(t, r, families)
	plausible(t, r, families, 4)
	for workload, want := range map[string]float64{"hopper": 4 * 4 * 1000, "known": 3 * 1000} {
		if got := sum(families, "teescope_syscalls_total", "workload", workload); got != want {
			t.Errorf("%v calls of %s were counted, want %v", got, workload, want)
		}
	}
	if got := sum(families, "teescope_execs_total", "workload", "hopper"); got != 4 {
		t.Errorf("%v starts of hopper were counted, want 4", got)
	}
	profiled(t, r, 4) // two CPUs were off line when it began
	sameCPUs(t, r, "stat without", r.exposition(t, "without"), 2)
	sameCPUs(t, r, "stat after", families, 4)
}

// sameCPUs compares the node's families with /proc/stat, which was read just before.
func sameCPUs(t *testing.T, r report, name string, families map[string]*dto.MetricFamily, cpus int) {
	t.Helper()
	listed := 0
	for line := range strings.Lines(r[name]) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[0] == "cpu" {
			continue
		}
		listed++
		cpu := strings.TrimPrefix(fields[0], "cpu")
		for i, mode := range []string{"user", "nice", "system", "idle"} {
			want, got := metrictest.Number(t, fields[i+1])/100, sum(families, "node_cpu_seconds_total", "cpu", cpu, "mode", mode)
			// The value may have grown since. Idle time that decreased by less than three seconds is held.
			if got < want || got > want+3 {
				t.Errorf("%s: CPU %s was %v s in mode %s, /proc/stat says %v", name, cpu, got, mode, want)
			}
		}
	}
	if rows := len(families["node_cpu_seconds_total"].GetMetric()); listed != cpus || rows != cpus*8 {
		t.Errorf("%s: /proc/stat lists %d CPUs, the exposition has %d rows; want %d CPUs of 8 modes", name, listed, rows, cpus)
	}
}

// field returns a number in a flat file of a group: "NAME NUMBER", or a single number.
func (r report) field(t *testing.T, file, name string) float64 {
	t.Helper()
	if name == "" {
		return metrictest.Number(t, strings.Fields(r[file])[0])
	}
	for line := range strings.Lines(r[file]) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			return metrictest.Number(t, fields[1])
		}
	}
	t.Fatalf("%s has no %s:\n%s", file, name, r[file])
	return 0
}

func containerOfV2(t *testing.T, r report) {
	families := r.exposition(t, "exposition")
	for _, c := range []struct {
		family, file, field string
		unit                float64
	}{
		{"container_cpu_usage_seconds_total", "cpu.stat", "usage_usec", 1e-6},
		{"container_cpu_user_seconds_total", "cpu.stat", "user_usec", 1e-6},
		{"container_cpu_system_seconds_total", "cpu.stat", "system_usec", 1e-6},
		{"container_cpu_cfs_periods_total", "cpu.stat", "nr_periods", 1},
		{"container_cpu_cfs_throttled_periods_total", "cpu.stat", "nr_throttled", 1},
		{"container_cpu_cfs_throttled_seconds_total", "cpu.stat", "throttled_usec", 1e-6},
		{"container_memory_usage_bytes", "memory.current", "", 1},
		{"container_memory_max_usage_bytes", "memory.peak", "", 1},
		{"container_memory_rss", "memory.stat", "anon", 1},
		{"container_memory_cache", "memory.stat", "file", 1},
		{"container_memory_failcnt", "memory.events", "max", 1},
		{"container_oom_events_total", "memory.events", "oom_kill", 1},
		{"container_spec_memory_limit_bytes", "memory.max", "", 1},
		{"container_spec_cpu_quota", "cpu.max", "", 1},
		{"container_threads", "pids.current", "", 1},
		{"container_threads_max", "pids.max", "", 1},
	} {
		if len(families[c.family].GetMetric()) != 1 {
			t.Errorf("%s has %d rows, want 1", c.family, len(families[c.family].GetMetric()))
		}
		got := sum(families, c.family, "container", "0123456789ab")
		low, high := r.field(t, c.file, c.field)*c.unit, r.field(t, "after "+c.file, c.field)*c.unit
		if got < low-1e-9 || got > high+1e-9 {
			t.Errorf("%s = %v, %s %s was %v before and %v after", c.family, got, c.file, c.field, low, high)
		}
	}
	if n := sum(families, "container_cpu_cfs_throttled_periods_total"); n < 5 {
		t.Errorf("a program that burns with a fifth of a CPU was throttled in %v periods", n)
	}
	if got := sum(families, "container_memory_rss"); got < 8<<20 {
		t.Errorf("a program with 8 MiB has %v bytes", got)
	}
	id := "/machine.slice/libpod-" + strings.Repeat("0123456789abcdef", 4) + ".scope"
	if got := sum(families, "teescope_container_info", "id", id, "workload", fmt.Sprintf("%.12s", "0123456789abcdef")); got != 1 {
		t.Errorf("no container %s", id)
	}
}
