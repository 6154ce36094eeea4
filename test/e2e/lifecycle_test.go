// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// testLimit limits each wait. It only ends a test that hangs: a busy machine can be ten times slower than a quiet one.
const testLimit = 10 * time.Minute

// maxBinary is the largest size of the binary, in bytes: users download it, and its pages are in memory.
const maxBinary = 80_000_000

func TestBinaryIsSmall(t *testing.T) {
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes, at most %d are allowed", info.Size(), maxBinary)
	}
}

// 1,000 short processes, four at a time, each of five calls: no process and no call is lost.
func TestForkStormLosesNothing(t *testing.T) {
	a := agent(t)
	before := a.scrape(t)
	run(t, prog(t, "storm", "e2estorm"), "1000", "5", "4")
	after := a.scrape(t)
	of := func(name string, pairs ...string) float64 {
		return delta(before, after, name, append(pairs, "workload", "e2estorm")...)
	}
	wantExactly(t, "forks", of("teescope_forks_total"), 1000)
	wantExactly(t, "exits", of("teescope_exits_total"), 1001) // including the parent
	wantExactly(t, "execs", of("teescope_execs_total"), 1)
	wantExactly(t, "getpgid", of("teescope_syscalls_total", "syscall", "getpgid"), 5000)
	wantExactly(t, "exit_group", of("teescope_syscalls_total", "syscall", "exit_group"), 1001)
	wantExactly(t, "processes at the end", after.sum("teescope_processes", "workload", "e2estorm"), 0)
}

// The same, but each child executes another program at once, to which its calls belong.
func TestExecStormLosesNothing(t *testing.T) {
	a := agent(t)
	child := prog(t, "storm", "e2estormchild")
	before := a.scrape(t)
	run(t, prog(t, "storm", "e2estormexec"), "1000", "5", "4", child)
	after := a.scrape(t)
	of := func(workload, name string, pairs ...string) float64 {
		return delta(before, after, name, append(pairs, "workload", workload)...)
	}
	wantExactly(t, "forks of the parent", of("e2estormexec", "teescope_forks_total"), 1000)
	wantExactly(t, "execs of the children", of("e2estormchild", "teescope_execs_total"), 1000)
	wantExactly(t, "execs of the parent", of("e2estormexec", "teescope_execs_total"), 1)
	wantExactly(t, "exits of the children", of("e2estormchild", "teescope_exits_total"), 1000)
	wantExactly(t, "exits of the parent", of("e2estormexec", "teescope_exits_total"), 1)
	wantExactly(t, "getpgid of the children", of("e2estormchild", "teescope_syscalls_total", "syscall", "getpgid"), 5000)
	wantExactly(t, "getpgid of the parent", of("e2estormexec", "teescope_syscalls_total", "syscall", "getpgid"), 0)
	wantExactly(t, "exit_group of the children", of("e2estormchild", "teescope_syscalls_total", "syscall", "exit_group"), 1000)
}

// Two programs run one after the other under the same process id: each keeps its own counts.
func TestReusedPidMovesNoCounts(t *testing.T) {
	a := agent(t)
	first, second := prog(t, "storm", "e2efirst"), prog(t, "storm", "e2esecond")
	for round := 1; round <= 20; round++ {
		run(t, filepath.Join(programs, "reuse"), "100", first, second)
		if round%5 == 0 { // some rounds have scrapes in between
			s := a.scrape(t)
			for _, workload := range []string{"e2efirst", "e2esecond"} {
				got := s.sum("teescope_syscalls_total", "workload", workload, "syscall", "getpgid")
				wantExactly(t, fmt.Sprintf("getpgid of %s after %d rounds", workload, round), got, float64(100*round))
			}
		}
	}
}

// 200 programs with a limit of 16 workloads: the totals are complete, and "other" has the rest.
func TestWorkloadsAreFoldedAndNothingIsLost(t *testing.T) {
	const most, distinct, each = 16, 200, 50
	a := agent(t, "--workloads.max", strconv.Itoa(most))
	before := a.scrape(t)
	for i := range distinct {
		run(t, prog(t, "storm", fmt.Sprintf("e2emany%03d", i)), strconv.Itoa(each))
	}
	after := a.scrape(t)
	const family = "teescope_syscalls_total"
	// No other program on a usual machine calls getpgid this often. Shells call it sometimes.
	total := delta(before, after, family, "syscall", "getpgid")
	wantBetween(t, "getpgid of all workloads", total, distinct*each, distinct*each*1.01)

	names := after.by("workload", family)
	if len(names) > most {
		t.Errorf("%d workloads are exposed, the limit is %d:%s", len(names), most, table(names))
	}
	var named float64
	for name, n := range after.by("workload", family, "syscall", "getpgid") {
		if strings.HasPrefix(name, "e2emany") {
			wantExactly(t, "getpgid of "+name, n, each)
			named += n
		}
	}
	other := delta(before, after, family, "workload", "other", "syscall", "getpgid")
	wantBetween(t, "getpgid of other", other, distinct*each-named, (distinct*each-named)*1.01)
}

// The exposed values of living processes agree with /proc.
func TestResidentMemoryAndCounts(t *testing.T) {
	a := agent(t)
	name := prog(t, "burn", "e2eresident")
	var pids []int
	for range 3 {
		// The kernel keeps part of its counters per CPU (32 pages per CPU and kind), which an agent cannot read
		// everywhere. The size makes that part less than 1 %.
		held(t, name, "50", "0", "64")
	}
	eventually(t, testLimit, "three processes that have burnt", func() error {
		pids = pidsOf(name)
		if len(pids) != 3 {
			return fmt.Errorf("%d processes run", len(pids))
		}
		for _, pid := range pids {
			if state(pid) != "S" {
				return fmt.Errorf("%d is in state %q", pid, state(pid))
			}
		}
		return nil
	})
	var resident float64
	for _, pid := range pids {
		resident += residentBytes(t, pid)
	}
	var s samples
	// A slower scan than that of the counters may read the gauges.
	eventually(t, testLimit, "the gauges", func() error {
		s = a.scrape(t)
		if n := s.sum("teescope_processes", "workload", "e2eresident"); n != 3 {
			return fmt.Errorf("teescope_processes is %v", n)
		}
		return nil
	})
	wantExactly(t, "threads", s.sum("teescope_threads", "workload", "e2eresident"), 3)
	got := s.sum("teescope_resident_memory_bytes", "workload", "e2eresident")
	wantWithin(t, "resident memory against smaps", got, resident, 0.01, 0)
}

// residentBytes reads the page tables of a process (smaps_rollup). The counters of statm and status are approximate, by
// up to some pages per CPU.
func residentBytes(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Rss:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib * 1024
		}
	}
	t.Fatalf("smaps_rollup of %d has no Rss", pid)
	return 0
}

func pidsOf(exe string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == exe {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func state(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	return fields[0]
}

func endProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

// Folding must not invent calls. From one scrape to the next no series grows by more than the calls in between, and
// none decreases. A history that moved to "other" at once would show a rate that never existed.
func TestFoldingMovesNoHistory(t *testing.T) {
	const each, between = 50, 20
	a := agent(t, "--workloads.max", "16")
	// A workload with many calls, which has ended when others need its slot.
	run(t, prog(t, "storm", "e2efoldbig"), "100000")
	last := a.scrape(t).by("workload", "teescope_syscalls_total", "syscall", "getpgid")
	for round := range 3 {
		for i := range between {
			run(t, prog(t, "storm", fmt.Sprintf("e2efold%03d", round*between+i)), strconv.Itoa(each))
		}
		now := a.scrape(t).by("workload", "teescope_syscalls_total", "syscall", "getpgid")
		for name, n := range now {
			grown := n - last[name]
			if grown < 0 || grown > between*each*1.05 {
				t.Errorf("round %d: getpgid of %s went from %v to %v, and %d calls were made", round, name, last[name], n, between*each)
			}
		}
		last = now
		for range 5 { // time to free the slots of ended programs
			time.Sleep(time.Second)
			a.scrape(t)
		}
	}
}
