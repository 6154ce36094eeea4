// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/runtest"
)

// recordedClock is a run of a minute in which a program reads the time with system calls: 370,000 a second, as Redis did
// in TEEMon's measurement (Middleware 2020, 6.4). The first repetition does not.
func recordedClock(t *testing.T, seconds float64, samples int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clock.tsrun")
	repetition := func(clock float64) runtest.Repetition {
		return runtest.Repetition{
			Seconds: seconds,
			Counters: []runtest.Value{
				runtest.Counter(seconds*clock, "teescope_syscalls_total", "syscall", "clock_gettime"),
				runtest.Counter(seconds*100_000, "teescope_syscalls_total", "syscall", "read"),
				runtest.Counter(seconds*100_000, "teescope_syscalls_total", "syscall", "write"),
				runtest.Counter(seconds*0.5, "teescope_cpu_seconds_total", "mode", "system"),
				runtest.Counter(seconds*0.48, "teescope_cpu_seconds_total", "mode", "user"),
				runtest.Counter(seconds*10, "teescope_context_switches_total", "kind", "voluntary"),
				runtest.Counter(seconds*10, "teescope_context_switches_total", "kind", "involuntary"),
			},
			Gauges: []runtest.Value{runtest.Counter(1, "teescope_processes"), runtest.Counter(1, "teescope_threads"), runtest.Counter(1, "teescope_workload_info", "kind", "process", "tee", "sgx", "runtime", "scone")},
		}
	}
	if err := runtest.Create(file, runtest.Spec{Samples: samples, Repetitions: []runtest.Repetition{repetition(0), repetition(370_000)}}); err != nil {
		t.Fatal(err)
	}
	return file
}

// The findings of a run file are those of its last repetition. A run that is too short is not judged, and the reason is
// given.
func TestAnalyzeOfARunFile(t *testing.T) {
	var told struct {
		Findings []struct{ Rule, Workload string }
		Skipped  []struct{ Rule, Reason string }
	}
	analyze := func(args ...string) {
		t.Helper()
		told.Findings, told.Skipped = nil, nil
		out, _, err := execute(t, append([]string{"analyze", "--format", "json"}, args...)...)
		if err != nil || json.Unmarshal([]byte(out), &told) != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	file := recordedClock(t, 60, 61)
	analyze(file)
	if len(told.Findings) == 0 || told.Findings[0].Workload != "app" || told.Findings[0].Rule != "needless-syscalls" {
		t.Errorf("%+v", told)
	}
	analyze(file, "--window", "50s", "--at", runtest.Began.Add(55e9).Format("2006-01-02T15:04:05Z")) // the first repetition
	if len(told.Findings) != 0 {
		t.Errorf("%+v", told.Findings)
	}
	analyze(recordedClock(t, 3, 2))
	if len(told.Findings) != 0 || len(told.Skipped) == 0 || told.Skipped[0].Reason == "" {
		t.Errorf("%+v", told)
	}
}

func TestReportOfARunFile(t *testing.T) {
	file := recordedClock(t, 60, 61)
	page := filepath.Join(t.TempDir(), "a.html")
	out, _, err := execute(t, "report", file, "-o", page)
	if err != nil || !strings.Contains(out, "open it in a browser") {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(page); err != nil || info.Size() < 50_000 {
		t.Errorf("%v", err)
	}
	om := filepath.Join(t.TempDir(), "a.om")
	for want, args := range map[string][]string{
		"is not a run file (*.tsrun)":        {"report", om},
		"--server names a server":            {"report", "--server", "http://127.0.0.1:1", file},
		"need --to":                          {"report", "--window", "30s", file},
		"no such file":                       {"report", file + ".tsrun"},
		"name a file that teescope record":   {"analyze", file + ".tsrun"},
		"and judging its series takes at le": {"analyze", importedBenchmark(t)},
		`--workload "x"`:                     {"report", "--workload", "x", file},
	} {
		if _, _, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// importedBenchmark is a run file without series.
func importedBenchmark(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bench.txt")
	if err := os.WriteFile(file, []byte("BenchmarkGet-2 1000 900 ns/op\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := execute(t, "run", "import", file); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(file, ".txt") + ".tsrun"
}
