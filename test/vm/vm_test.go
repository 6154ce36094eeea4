// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"fmt"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

// preempted makes the kernel preempt threads that run in it, and with them eBPF programs.
const preempted = "preempt=full"

// bounced makes the kernel copy all data of devices through 1 MiB, as in a confidential machine. The counts are compared
// exactly, so the kernel must not preempt the program: another mapping on the same CPU would not be counted.
const bounced = "swiotlb=512,force"

// copied lets the agent take the machine for a confidential one. Its devices are left alone.
const copied = " swiotlb=force"

// The kernels are the newest of Debian 12, of its backports, and of one series of the backports of Debian 13. They are
// unpacked and not installed.
var kernels = []struct {
	name    string
	version string
	cpus    int
	line    string // more of the command line
	kvm     bool   // virtual machines run on it
}{
	{"6.1", "6.1", 2, bounced, true},
	{"6.12", "6.12", 2, preempted + copied, true},
	{"6.12, 32 CPUs", "6.12", 32, "", false},
	{"7.2", "7.2", 2, preempted, false},
}

// allCalls checks the calls of the programs with a known number. From Linux 7.0 on, a thread can preempt another one in the
// program, and then its own call is not counted but missed. That happens most where the host is busy.
func allCalls(t *testing.T, families map[string]*dto.MetricFamily, preempted bool) {
	t.Helper()
	missed := 0
	for _, m := range families["teescope_bpf_program_missed_runs_total"].GetMetric() {
		if strings.Contains(m.Label[0].GetValue(), "sys_enter") {
			missed += int(m.Counter.GetValue())
		}
	}
	if !preempted && missed > 0 {
		t.Errorf("the program of system calls missed %d runs", missed)
	}
	if all := sum(families, "teescope_bpf_program_missed_runs_total"); all == 0 && sum(families, "teescope_self_level", "level", "full") != 1 {
		t.Error("the level is not full, and no run was missed")
	}
	const made = 10_000
	if got := int(sum(families, "teescope_syscalls_total", "workload", "known", "syscall", "getppid")); got > made || got < made-missed {
		t.Errorf("getppid was counted %d times, want %d. The program missed %d runs", got, made, missed)
	}
}

func TestStockKernels(t *testing.T) {
	files := image(t)
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			try := trial{kernel: kernel(t, k.version), files: files, cpus: k.cpus, scenario: "count", line: k.line}
			if k.line == bounced {
				try.scenario, try.disks = "count and bounce", []string{emptyDisk(t)}
			}
			var err error
			if try.loaded, err = try.kernel.Modules(t.Context(), "overlay"); err != nil {
				t.Fatal(err)
			}
			if k.kvm {
				if try.modules, err = try.kernel.Modules(t.Context(), "kvm_amd"); err != nil {
					t.Fatal(err)
				}
				try.drivers = standIns(t, try.kernel)
				if k.version == "6.1" { // it accepts no memory, and need not have a function of its own that converts it
					delete(try.drivers, "cvm")
				}
			}
			report := boot(t, try)
			families := report.exposition(t, "exposition")
			check(t, families)
			confined(t, families, report["privileges"])
			if tests := report["nested"]; !strings.Contains(tests, "--- PASS: TestMeasure ") {
				t.Errorf("nested calls were not timed:\n%s", tests)
			}
			allCalls(t, families, k.version == "7.2")
			// The calls of ten processes, one after the other.
			uptime := report.field(t, "uptime", "")
			if got := sum(families, "teescope_syscall_seconds_total", "workload", "known"); got <= 0 || got > uptime {
				t.Errorf("%v s were spent in system calls, of %v s", got, uptime)
			}
			ownProbes(t, families, uptime)
			threadsInCgroups(t, families)
			layersOfOneImage(t, report["layers"])
			waitsOfSchedstat(t, report["schedstat"], families)
			profiled(t, report, k.cpus)
			for _, family := range []string{"teescope_execs_total", "teescope_exits_total"} {
				if got := sum(families, family, "workload", "known"); got != 10 {
					t.Errorf("%s = %v, want 10", family, got)
				}
			}
			if k.line == bounced {
				t.Run("bounce buffers", func(t *testing.T) { bounceBuffers(t, report) })
			}
			if k.kvm {
				virtualMachines(t, report)
				driversAreModules(t, report["drivers"])
				if try.drivers["cvm"] != nil {
					confidentialMachine(t, report)
				}
			}
		})
	}
}

// ownProbes requires that the probes of the user's file have counted what ten processes did: 1,000 calls each.
func ownProbes(t *testing.T, families map[string]*dto.MetricFamily, uptime float64) {
	t.Helper()
	for _, tt := range []struct {
		family string
		want   float64
	}{{"calls_total", 10_000}, {"results_total", 10_000}, {"execs_total", 10}, {"runs_total", 10}} {
		if got := sum(families, "teescope_user_"+tt.family, "workload", "known"); got != tt.want {
			t.Errorf("the user's probe %s has %v, want %v", tt.family, got, tt.want)
		}
	}
	if got := sum(families, "teescope_user_results_total", "workload", "known", "error", "0"); got != 10_000 {
		t.Errorf("%v results are no error, want 10000", got)
	}
	for _, m := range families["teescope_user_call_time_seconds"].GetMetric() {
		if hasLabel(m, "workload", "known") {
			if n, seconds := m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum(); n != 10_000 || seconds <= 0 || seconds > uptime {
				t.Errorf("%d calls took %v s, of %v s", n, seconds, uptime)
			}
			return
		}
	}
	t.Error("the time of calls is not known")
}

// check requires that all probes attach, except those that need a PMU.
func check(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	probes := families["teescope_probe_attached"]
	if probes == nil {
		t.Fatal("the exposition has no metrics of probes")
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

// waitsOfSchedstat requires that the waits of a program with one CPU are those of the kernel's schedstat. The kernel's begin
// with the thread, those of the workload with the program. What schedstat said at the program's start is in between.
func waitsOfSchedstat(t *testing.T, text string, families map[string]*dto.MetricFamily) {
	t.Helper()
	var from, to, after struct{ waited, slices float64 }
	if _, err := fmt.Sscan(text, &from.waited, &from.slices, &to.waited, &to.slices, &after.waited, &after.slices); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for _, m := range families["teescope_run_queue_latency_seconds"].GetMetric() {
		if !hasLabel(m, "workload", "competes") {
			continue
		}
		n, seconds := float64(m.Histogram.GetSampleCount()), m.Histogram.GetSampleSum()
		lost := sum(families, "teescope_attribution_lost_total", "what", "switches")
		t.Logf("%v waits of %v s, schedstat has %v of %v ns, then %v of %v, after %v of %v at the start", n, seconds, to.slices, to.waited, after.slices, after.waited,
			from.slices, from.waited)
		if n < to.slices-from.slices-lost || n > after.slices || to.slices < from.slices+200 {
			t.Errorf("%v waits, %v switches were missed", n, lost)
		}
		if seconds*1e9 > after.waited+1000 || lost == 0 && seconds*1e9 < to.waited-from.waited-1000 {
			t.Errorf("waited %v s", seconds)
		}
		return
	}
	t.Error("the program has no histogram of waits")
}

// profiled requires that a profile of a program names the function which used most of its CPU time, and has no more time
// than the program used. It may have less: a machine whose CPUs wait for the host takes no sample meanwhile, above all one
// with more CPUs than the host.
func profiled(t *testing.T, r report, cpus int) {
	t.Helper()
	used := metrictest.Number(t, r["used by the spinner"])
	all, inSpin := 0.0, 0.0
	for line := range strings.Lines(r["profile"]) {
		end := strings.LastIndexByte(line, ' ') // names of functions may contain spaces
		if end < 0 {
			t.Fatalf("%q is no folded stack", line)
		}
		stack, seconds := line[:end], metrictest.Number(t, line[end:])/1e9
		all += seconds
		if strings.Contains(stack, ";main.spin") {
			inSpin += seconds
		}
	}
	t.Logf("the profile has %.2f s of %.2f s, of which %.2f s in main.spin", all, used, inSpin)
	if all == 0 || all > 1.5*used || cpus == 2 && inSpin < all/2 {
		t.Errorf("a program that uses %.2f s of CPU time, 2 s of them in main.spin, has a profile of %.2f s, %.2f s of them in main.spin:\n%s\n%s",
			used, all, inSpin, r["profile"], r["profile record"])
	}
}
