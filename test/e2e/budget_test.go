// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// perfCalls counts the system calls of a program's processes with perf.
func perfCalls(t *testing.T, program string, seconds int) *process {
	t.Helper()
	var pids []string
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		if comm, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(comm)) == program {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	if len(pids) == 0 {
		t.Fatalf("no process is called %s", program)
	}
	return tracer(t, "perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", strings.Join(pids, ","),
		"sleep", strconv.Itoa(seconds))
}

// counted returns perf's count.
func counted(t *testing.T, p *process) float64 {
	t.Helper()
	if err := p.ended(t, testLimit); err != nil {
		t.Fatalf("perf: %v\n%s", err, p.log.String())
	}
	for line := range strings.Lines(p.log.String()) {
		if fields := strings.Split(line, ","); len(fields) > 2 && strings.HasPrefix(fields[2], "raw_syscalls") {
			n, err := strconv.ParseFloat(fields[0], 64)
			if err != nil {
				t.Fatalf("perf: %q", line)
			}
			return n
		}
	}
	t.Fatalf("perf counted nothing:\n%s", p.log.String())
	return 0
}

// budgetRounds is the number of comparisons after which a program counts as wrong.
const budgetRounds = 4

// bursts is the program with a load in bursts.
const bursts = "e2ebudgetburst"

// TestBusyMachineIsWatchedWithinTheBudget makes a million calls a second and more. The agent then samples frequent
// events and says so. Its estimates for Redis, nginx and a load in bursts agree with perf.
//
// False alarms: below 3e-8. One comparison exceeds three standard deviations, which are estimated from 15 windows,
// with p = 0.01 (Student's t, 14 degrees of freedom). Four of one program in a row do so with p^4 = 1e-8, and there are
// three programs. The windows are at random moments, so rounds are independent. An error of a half or a double of Redis or
// nginx fails in all rounds, because a bound of 50 % or more fails as well. The windows contain few of the bursts, so
// their interval may be wider than that. TestSampledCallsAreAsManyAsThePrograms of the collector has longer windows and
// detects such an error on a quiet machine. The simulations of internal/agent/sampling detect it on any machine.
func TestBusyMachineIsWatchedWithinTheBudget(t *testing.T) {
	redisPort := redis(t, copyTo(t, "/usr/bin/redis-server", "e2ebudget"))
	url := nginx(t, "e2ebudgetweb")
	for _, load := range [][]string{
		{copyTo(t, "/usr/bin/redis-benchmark", "e2ebudgetb"), "-p", redisPort, "-t", "get", "-n", "2000000000", "-c", "20", "-q"},
		{copyTo(t, "/usr/bin/wrk", "e2ebudgetw"), "-t", "1", "-c", "20", "-d", "600s", url},
		{prog(t, "storm", "e2ebudgetstorm"), "2000000000"},
		{prog(t, "bursts", bursts)},
	} {
		background(t, load[0], load[1:]...)
	}
	a := agent(t, "--overhead.budget=1%")
	level := func(name string) bool { return a.scrape(t).sum("teescope_self_level", "level", name) == 1 }
	eventually(t, testLimit, "events to be sampled", func() error {
		time.Sleep(500 * time.Millisecond)
		if !level("sampled") {
			return errors.New("the level is another")
		}
		if a.scrape(t).sum("teescope_sampling_ratio", "probe", "syscall") == 1 { // as in the first second
			return errors.New("all is seen")
		}
		return nil
	})
	s := a.scrape(t)
	if share := s.sum("teescope_sampling_ratio", "probe", "syscall"); share < 0.002 || share > 0.1 {
		t.Errorf("a sampling ratio of %v", share)
	}
	if !strings.Contains(a.log.String(), "the level of watching has changed") {
		t.Error("the log does not mention sampling")
	}

	began := time.Now()
	wrong := map[string]string{"e2ebudget": "", "e2ebudgetweb": "", bursts: ""}
	compareWithPerf(t, a, wrong)
	time.Sleep(time.Until(began.Add(20 * time.Second))) // the reported counts are one cycle old
	later := a.scrape(t)
	// Context switches are counted at every level. A machine that switches so often that this takes nearly all of the
	// budget, or more, leaves a tenth of the budget to all other events.
	switches := switchCost(s, later, time.Since(began))
	if cost, most := later.sum("teescope_self_cpu_ratio", "part", "probes"), max(0.01, 1.5*switches+0.001); cost > most {
		t.Errorf("the probes take %.4f of the machine, want at most %.4f; context switches take %.4f", cost, most, switches)
	}

	for round := 2; round <= budgetRounds && len(wrong) > 0; round++ {
		compareWithPerf(t, a, wrong)
	}
	for program, why := range wrong {
		t.Errorf("%s: %d times; at last: %s", program, budgetRounds, why)
	}
}

// switchCost is the share of the machine's CPU time that the programs on context switches took between two scrapes.
func switchCost(from, to samples, passed time.Duration) float64 {
	each := to.sum("teescope_self_event_seconds", "event", "context_switch")
	if each == 0 { // not measured yet
		each = 120e-9
	}
	n := to.sum("teescope_context_switches_total") - from.sum("teescope_context_switches_total")
	return n * each / passed.Seconds() / float64(runtime.NumCPU())
}

// compareWithPerf lets perf and the agent count the calls of the programs for 15 s. On a busy machine with few windows
// it takes up to 120 s, until an error of a half or a double would show. It removes the programs that agree from the
// map, and describes the error of the others.
func compareWithPerf(t *testing.T, a *teescope, wrong map[string]string) {
	t.Helper()
	const seconds, parts, tooWide = 15, 8, 0.5
	type sums struct{ truth, got, variance float64 }
	all, bound := map[string]sums{}, map[string]float64{}
	for part, wide := 1, true; wide && part <= parts; part++ {
		truths := map[string]*process{}
		from := a.scrape(t)
		for p := range wrong {
			truths[p] = perfCalls(t, p, seconds)
		}
		for _, truth := range truths {
			counted(t, truth)
		}
		to := a.scrape(t)
		wide = false
		for p := range wrong {
			grown := func(name string, labels ...string) float64 {
				return delta(from, to, name, append(labels, "workload", p)...)
			}
			sum := all[p]
			sum.truth += counted(t, truths[p])
			sum.got += grown("teescope_syscalls_total")
			sum.variance += grown("teescope_sampling_variance_total", "family", "syscalls")
			// perf starts shortly after the first scrape, and the reported counts are a second old.
			all[p], bound[p] = sum, 0.05+3*math.Sqrt(sum.variance)/sum.truth
			wide = wide || p != bursts && bound[p] >= tooWide
		}
	}
	for p, sum := range all {
		off := sum.got/sum.truth - 1
		t.Logf("%s: perf %.0f, teescope %.0f (%+.1f%%), bound %.1f%%", p, sum.truth, sum.got, 100*off, 100*bound[p])
		switch {
		case p != bursts && bound[p] >= tooWide:
			wrong[p] = fmt.Sprintf("within %.0f %%, a half would not be seen to be wrong", 100*bound[p])
		case math.Abs(off) > bound[p]:
			wrong[p] = fmt.Sprintf("%.0f calls are reported, perf counts %.0f", sum.got, sum.truth)
		default:
			delete(wrong, p)
		}
	}
}
