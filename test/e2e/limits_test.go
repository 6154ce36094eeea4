// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

const mib = 1 << 20

// resident returns the resident memory of the process and its children, in bytes.
func (p *process) resident(t *testing.T) float64 {
	t.Helper()
	sum := residentBytes(t, p.cmd.Process.Pid)
	for _, child := range childrenOf(t, p.cmd.Process.Pid) {
		sum += residentBytes(t, child)
	}
	return sum
}

// fastestScrape returns the duration of the fastest of ten scrapes. Other load slows some of them, but a slow agent
// slows all.
func (s *teescope) fastestScrape(t *testing.T) time.Duration {
	t.Helper()
	fastest := time.Hour
	for range 10 {
		began := time.Now()
		s.scrape(t)
		fastest = min(fastest, time.Since(began))
	}
	return fastest
}

// 10,000 processes each execute a program, as fast as the machine can. Every process is counted, and the memory that they leave is
// bounded.
func TestTenThousandProcesses(t *testing.T) {
	const n = 10_000
	a := agent(t)
	child := prog(t, "storm", "e2emass")
	a.scrape(t)
	memory := a.resident(t)
	before, kernelBefore := bracketed(t, a, "processes")
	began := time.Now()
	run(t, prog(t, "storm", "e2emassparent"), strconv.Itoa(n), "1", "4", child)
	took := time.Since(began)
	after, kernelAfter := bracketed(t, a, "processes")
	t.Logf("the processes took %s", took)
	of := func(workload, name string, pairs ...string) float64 {
		return delta(before, after, name, append(pairs, "workload", workload)...)
	}
	wantExactly(t, "forks", of("e2emassparent", "teescope_forks_total"), n)
	wantExactly(t, "execs", of("e2emass", "teescope_execs_total"), n)
	wantExactly(t, "exits", of("e2emass", "teescope_exits_total"), n)
	wantExactly(t, "getpgid", of("e2emass", "teescope_syscalls_total", "syscall", "getpgid"), n)
	wantExactly(t, "exits of the parent", of("e2emassparent", "teescope_exits_total"), 1)
	wantExactly(t, "processes at the end", after.sum("teescope_processes", "workload", "e2emass"), 0)
	started := delta(before, after, "teescope_forks_total") + delta(before, after, "teescope_thread_starts_total")
	wantGrowth(t, "forks and thread starts against /proc/stat processes", started, kernelBefore, kernelAfter, 0.01)
	grown := a.resident(t) - memory
	t.Logf("%d processes in %s; %.1f MiB more in memory", n, took, grown/mib)
	if grown > 32*mib {
		t.Errorf("the agent has %.1f MiB more than before", grown/mib)
	}
}

// threadsWanted is the number of threads of a server with a far too large pool.
const threadsWanted = 5000

func TestFiveThousandThreads(t *testing.T) {
	a := agent(t)
	a.scrape(t)
	quiet := a.fastestScrape(t)
	memory := a.resident(t)
	p := held(t, prog(t, "threads", "e2ethreads"), strconv.Itoa(threadsWanted))
	eventually(t, testLimit, "the threads", func() error {
		if got := strings.TrimSpace(p.log.String()); got != strconv.Itoa(threadsWanted+1) {
			return fmt.Errorf("the program says %q", got)
		}
		return nil
	})
	var s samples
	eventually(t, testLimit, "the gauges", func() error {
		s = a.answers(t)
		if n := s.sum("teescope_threads", "workload", "e2ethreads"); n != threadsWanted+1 {
			return fmt.Errorf("teescope_threads is %v", n)
		}
		return nil
	})
	wantExactly(t, "processes", s.sum("teescope_processes", "workload", "e2ethreads"), 1)
	wantExactly(t, "thread starts", s.sum("teescope_thread_starts_total", "workload", "e2ethreads"), threadsWanted)
	took := a.fastestScrape(t)
	grown := a.resident(t) - memory
	t.Logf("a scrape took %s, and %s without the threads; %.1f MiB more in memory", took, quiet, grown/mib)
	if took > 2*time.Second+20*quiet || grown > 32*mib {
		t.Errorf("a scrape takes %s and %.1f MiB more", took, grown/mib)
	}
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.ended(t, testLimit); err != nil {
		t.Fatal(err)
	}
	eventually(t, testLimit, "the gauges of ended threads", func() error {
		if n := a.scrape(t).sum("teescope_threads", "workload", "e2ethreads"); n != 0 {
			return fmt.Errorf("teescope_threads is %v", n)
		}
		return nil
	})
}

// Processes start and end while /proc is read. An ended process is not an error, and is still counted.
func TestProcessesVanishWhileTheyAreRead(t *testing.T) {
	const each, calls, least = 10_000, 1000, 50
	a := agent(t, "--watch", "comm=^e2evanish$")
	child := prog(t, "storm", "e2evanish")
	run(t, child) // the workload exists from now on
	before := a.scrape(t)
	parent := prog(t, "storm", "e2evanishing")
	start := func() *process {
		return background(t, parent, strconv.Itoa(each), strconv.Itoa(calls), "4", child)
	}
	storm, n, scrapes, vanished := start(), each, 0, 0
	for running := true; running; scrapes++ {
		a.answers(t)
		for range 2 {
			// Every process has a thread, unless it has ended since the processes were listed.
			if l := a.threads(t, "e2evanish"); l.Threads < l.Processes {
				vanished++
			}
		}
		select {
		case <-storm.done:
			if storm.err == nil && scrapes < least { // scrapes are slow on a busy machine
				storm, n = start(), n+each
				continue
			}
			running = false
		default:
		}
	}
	if storm.err != nil {
		t.Fatal(storm.err)
	}
	after := a.scrape(t)
	t.Logf("%d scrapes while %d processes started and ended; within %d lists of threads processes vanished", scrapes, n, vanished)
	of := func(name string, pairs ...string) float64 {
		return delta(before, after, name, append(pairs, "workload", "e2evanish")...)
	}
	wantExactly(t, "execs", of("teescope_execs_total"), float64(n))
	wantExactly(t, "exits", of("teescope_exits_total"), float64(n))
	wantExactly(t, "system calls", of("teescope_syscalls_total", "syscall", "getpgid"), float64(n*calls))
	wantExactly(t, "processes at the end", after.sum("teescope_processes", "workload", "e2evanish"), 0)
	for line := range strings.Lines(a.log.String()) {
		tooMany := strings.Contains(line, "more processes match the watch rules") // expected here
		if (strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")) && !tooMany {
			t.Error("the agent says:", line)
		}
	}
}
