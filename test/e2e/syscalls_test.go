// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// straceCounts runs a program under strace -c -f and reads the table of calls.
func straceCounts(t *testing.T, name string, args ...string) map[string]float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "strace")
	run(t, "strace", append([]string{"-c", "-f", "-q", "-o", file, name}, args...)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	// % time, seconds, usecs/call, calls, [errors,] name
	row := regexp.MustCompile(`^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$`)
	for line := range strings.Lines(string(data)) {
		if m := row.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && m[2] != "total" {
			n, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			counts[m[2]] = n
		}
	}
	if len(counts) < 10 {
		t.Fatalf("strace's table has only %d rows:\n%s", len(counts), data)
	}
	return counts
}

// The same program runs once under strace and once under teescope. Both count the same calls, including the execve that
// starts the program. The tools differ by definition in two cases, which are checked exactly too:
//   - strace counts a call when it returns, but exit_group never returns: one call per process.
//   - strace has no row for an unknown number. The program makes one such call.
func TestSystemCallsAgreeWithStrace(t *testing.T) {
	a := agent(t)
	calls := prog(t, "calls", "e2ecalls")
	const processes = 8 // progs/calls.c and its seven children

	want := straceCounts(t, prog(t, "calls", "e2ecallsstrace"))
	var total float64
	for _, n := range want {
		total += n
	}
	want["exit_group"] += processes

	run(t, calls)
	s := a.scrape(t)
	const family = "teescope_syscalls_total"
	got := s.by("syscall", family, "workload", "e2ecalls")
	wantExactly(t, "calls of the program in all", s.sum(family, "workload", "e2ecalls"), total+processes+1)
	for name, n := range want {
		wantExactly(t, name, got[name], n)
	}
	known := maps.Clone(got)
	for name := range want {
		delete(known, name)
	}
	if len(known) > 1 { // the label of unknown numbers
		t.Errorf("calls that strace has not seen:%s", table(known))
	}
}

// watched starts progs/calls.c under a name, holds it until it is in the breakdown, and lets it run to its end. It
// returns the process ID with the scrapes before and after. The program stays alive until the test ends.
func watched(t *testing.T, a *teescope, name string) (pid string, before, after samples) {
	t.Helper()
	p := held(t, prog(t, "calls", name), "held")
	pid = strconv.Itoa(p.cmd.Process.Pid)
	eventually(t, testLimit, name+" to be watched", func() error {
		before = a.scrape(t)
		if !before.has("teescope_process_cpu_seconds_total", "pid", pid, "comm", name) {
			return errors.New("it is not in the exposition")
		}
		return nil
	})
	p.letGo(t)
	eventually(t, testLimit, name+" to have made its calls", func() error {
		if !strings.Contains(p.log.String(), "done") || state(p.cmd.Process.Pid) != "S" {
			return errors.New("it still runs")
		}
		return nil
	})
	return pid, before, a.scrape(t)
}

// Watching changes no counts: the calls of the watched process are the growth of the workload's counts, and those that
// the program is known to make.
func TestWatchedProcessesAddUpToTheWorkload(t *testing.T) {
	a := agent(t, "--watch", "comm=^e2ewatched$")
	pid, before, after := watched(t, a, "e2ewatched")
	const workload, process = "teescope_syscalls_total", "teescope_process_syscalls_total"
	for name, n := range map[string]float64{"getppid": 10000, "pread64": 50, "mmap": 20, "clone": 7} {
		wantExactly(t, name+" of the process", delta(before, after, process, "pid", pid, "syscall", name), n)
		wantExactly(t, name+" of the workload", delta(before, after, workload, "workload", "e2ewatched", "syscall", name), n)
	}
	// The seven children run the same program, so the rule matches them too.
	wantExactly(t, "getpgid of the workload", delta(before, after, workload, "workload", "e2ewatched", "syscall", "getpgid"), 2800)
}

// Failed system calls of watched processes are counted by errno: progs/calls.c opens a missing file 50 times, and makes
// one call that does not exist.
func TestWatchedErrors(t *testing.T) {
	a := agent(t, "--watch", "comm=^e2eerrors$")
	pid, before, after := watched(t, a, "e2eerrors")
	const family = "teescope_process_syscall_errors_total"
	wantExactly(t, "openat with ENOENT", delta(before, after, family, "pid", pid, "syscall", "openat", "errno", "ENOENT"), 50)
	wantExactly(t, "ENOSYS", delta(before, after, family, "pid", pid, "errno", "ENOSYS"), 1)
}

func TestWatchByPid(t *testing.T) {
	sleeper := background(t, "/bin/sleep", "60")
	pid := strconv.Itoa(sleeper.cmd.Process.Pid)
	a := agent(t, "--watch", "pid="+pid)
	other := background(t, "/bin/sleep", "0.2")
	if err := other.ended(t, testLimit); err != nil {
		t.Fatal(err)
	}
	s := a.scrape(t)
	for _, one := range s.all {
		if strings.HasPrefix(one.name, "teescope_process_") && one.labels["pid"] != pid {
			t.Errorf("%s has pid %q, and only %s is watched", one.name, one.labels["pid"], pid)
		}
	}
	if !s.has("teescope_process_cpu_seconds_total", "pid", pid, "comm", "sleep") {
		t.Errorf("no teescope_process_cpu_seconds_total for the watched pid %s", pid)
	}
}

// Time in system calls is off by default. When it is on, a sleep of a known length shows.
func TestSyscallTimeIsSwitchable(t *testing.T) {
	const family = "teescope_syscall_seconds_total"
	if a := agent(t); a.scrape(t).has(family) {
		t.Errorf("%s is exposed without --syscalls.time", family)
	}
	a := agent(t, "--syscalls.time")
	run(t, prog(t, "calls", "e2etime"))
	s := a.scrape(t)
	slept := s.sum(family, "workload", "e2etime", "syscall", "clock_nanosleep")
	wantBetween(t, "seconds in 20 sleeps of 1 ms", slept, 0.020, 0.2)
	// The counts are the same with time.
	wantExactly(t, "getppid", s.sum("teescope_syscalls_total", "workload", "e2etime", "syscall", "getppid"), 10000)
}
