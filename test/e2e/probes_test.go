// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// probesOf writes a file of probes on a program.
func probesOf(t *testing.T, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "probes.yaml")
	text := strings.ReplaceAll(`probes:
  - name: parents
    help: Calls of getppid.
    tracepoint: syscalls/sys_enter_getppid
  - name: written
    help: Data that was written.
    tracepoint: syscalls/sys_exit_write
    only: ret > 0
    value: {sum: ret, unit: bytes}
  - name: write_size
    help: Sizes of writes.
    tracepoint: syscalls/sys_enter_write
    keys: {command: comm, fd: fd}
    value: {histogram: count, unit: bytes, buckets: {from: 0, to: 10}}
  - name: writes
    help: Writes by their error.
    tracepoint: syscalls/sys_exit_write
    keys: {error: errno}
  - name: work
    help: Calls of work.
    uprobe: {file: PROGRAM, symbol: work}
    keys: {n: "arg1:s32"}
    series: 5
  - name: results
    help: Results of work below zero.
    uretprobe: {file: PROGRAM, symbol: work}
    only: return:s32 < 0
    keys: {result: "return:s32"}
  - name: work_time
    help: Time of work.
    uretprobe: {file: PROGRAM, symbol: work}
    value: {histogram: duration}
  - name: deep
    help: Time of a function that calls itself.
    uretprobe: {file: PROGRAM, symbol: deep}
    value: {histogram: duration}
  - name: step
    help: Sum of an argument by another one.
    usdt: {file: PROGRAM, provider: app, name: step}
    keys: {kind: arg1}
    value: {sum: arg2}
  - name: guarded
    help: Events of a probe with a semaphore.
    usdt: {file: PROGRAM, provider: app, name: guarded}
  - name: nothing
    help: A function that does not exist.
    uprobe: {file: PROGRAM, symbol: nothing}
  - name: middle
    help: An address that is within an instruction.
    uprobe: {file: PROGRAM, offset: 1}
`, "PROGRAM", program)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// detached returns why a probe is not attached, or "" if it is.
func (s samples) detached(probe string) string {
	for _, one := range s.all {
		if one.matches("teescope_probe_attached", []string{"probe", probe}) && one.value == 0 {
			return one.labels["reason"]
		}
	}
	return ""
}

// TestOwnProbesCountWhatTheProgramDoes: each number is in probed.c.
func TestOwnProbesCountWhatTheProgramDoes(t *testing.T) {
	t.Parallel()
	program := prog(t, "probed", "e2eprobed")
	u := startBy(t, tracer, "agent", "--probes.file", probesOf(t, program))
	p := held(t, program)
	p.letGo(t)
	eventually(t, testLimit, "the program's work", func() error {
		if !strings.Contains(p.log.String(), "done") {
			return fmt.Errorf("it has written %q", p.log.String())
		}
		return nil
	})
	s := u.scrape(t)
	want := func(n float64, family string, pairs ...string) {
		t.Helper()
		if got := s.sum("teescope_user_"+family, append([]string{"workload", "e2eprobed"}, pairs...)...); got != n {
			t.Errorf("%s %v: %v, want %v", family, pairs, got, n)
		}
	}
	want(10000, "parents_total")
	want(49605, "written_bytes_total") // 1, 11, ... 991, and "done"
	want(111, "writes_total")
	want(10, "writes_total", "error", "EBADF")
	want(101, "writes_total", "error", "0")
	for bound, n := range map[string]float64{"1": 1, "8": 1, "16": 2, "32": 4, "64": 7, "128": 13, "256": 26, "512": 52, "1024": 100} {
		want(n, "write_size_bytes_bucket", "fd", "100", "command", "e2eprobed", "le", bound)
	}
	want(49600, "write_size_bytes_sum", "fd", "100")
	want(10, "write_size_bytes_count", "fd", strconv.FormatUint(0xffffffff, 10))
	for n := range 5 {
		want(5, "work_total", "n", strconv.Itoa(n))
	}
	want(15, "work_total", "n", "other")
	want(20, "results_total")
	for _, n := range []string{"-1", "-3", "-5", "-7"} {
		want(5, "results_total", "result", n)
	}
	want(40, "work_time_seconds_count")
	if fast := s.sum("teescope_user_work_time_seconds_bucket", "workload", "e2eprobed", "le", "0.0005243"); fast > 30 {
		t.Errorf("%v calls took at most 0.5 ms, but 10 of 40 sleep for 1 ms", fast)
	}
	if sum := s.sum("teescope_user_work_time_seconds_sum", "workload", "e2eprobed"); sum < 0.01 {
		t.Errorf("all calls took %v s, but 10 of them sleep for 1 ms", sum)
	}
	want(1, "deep_seconds_count") // of five that are within each other
	if lost := s.sum("teescope_user_probe_lost_events_total", "probe", "deep", "reason", "unpaired"); lost != 4 {
		t.Errorf("%v returns without an entry, want 4", lost)
	}
	for kind, n := range map[string]float64{"0": 270, "1": 290, "2": 310} {
		want(n, "step_total", "kind", kind)
	}
	want(30, "guarded_total")
	for probe, reason := range map[string]string{"nothing": "there is no function nothing in ", "middle": " is in no executable part of the file"} {
		if !strings.Contains(s.detached("user/"+probe), reason) || !strings.Contains(u.log.String(), reason) {
			t.Errorf("%s is not attached for the reason %q; the log is\n%s", probe, s.detached("user/"+probe), u.log.String())
		}
		if s.families["teescope_user_"+probe+"_total"] != nil {
			t.Errorf("%s has a sample although it is not attached", probe)
		}
	}
	eventually(t, testLimit, "the cost of 10,000 events", func() error {
		if took := u.scrape(t).sum("teescope_user_probe_cpu_seconds_total", "probe", "parents"); took < 10000*100e-9 {
			return fmt.Errorf("they took %v s", took)
		}
		return nil
	})
}

// A probe that takes more than its part of the budget is detached, and its metric ends. The others continue.
func TestProbesAboveTheBudgetAreDetached(t *testing.T) {
	t.Parallel()
	program := prog(t, "probed", "e2eprobecost")
	u := startBy(t, tracer, "agent", "--probes.file", probesOf(t, program), "--overhead.budget", "0.01%")
	end := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				syscall.Getppid()
				runtime.Gosched()
			}
		}
	}()
	defer func() { close(end); <-ended }()
	var s samples
	eventually(t, testLimit, "the probe on getppid to be detached", func() error {
		s = u.scrape(t)
		if s.detached("user/parents") == "" {
			return fmt.Errorf("it is attached after %v events", s.sum("teescope_user_probe_events_total", "probe", "parents"))
		}
		return nil
	})
	if reason := s.detached("user/parents"); !strings.Contains(reason, "more than half of overhead.budget") || s.families["teescope_user_parents_total"] != nil {
		t.Errorf("the metric goes on, or this is not a reason: %s", reason)
	}
	if s.sum("teescope_probe_attached", "probe", "user/work") != 1 {
		t.Error("a probe without events was detached too")
	}
}

// A file with problems ends the start, with the line of each.
func TestProbesWithProblems(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "probes.yaml")
	if err := os.WriteFile(file, []byte("probes:\n  - name: a\n    help: A.\n    kprobes: f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"agent"}, {"up", "--data-dir", t.TempDir()}, {"check"}} {
		out, err := exec.Command(binary, append(command, "--probes.file", file)...).CombinedOutput()
		if want := file + `:4: probe a: unknown key "kprobes": did you mean kprobe?`; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v\n%s\nwant %s", command, err, out, want)
		}
	}
}
