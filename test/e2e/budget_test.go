// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// perfCalls counts the system calls of a program's processes by perf, while the time passes.
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

// counted is what perf has counted by its end.
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

// budgetRounds is how often a program is compared before it is called wrong.
const budgetRounds = 4

// TestBusyMachineIsWatchedWithinTheBudget makes a million calls a second and more: frequent events are sampled, the agent
// says so, and what it reports of Redis, nginx and a load that comes in bursts is what perf counts.
//
// False alarms: below 3e-8. One comparison goes beyond three standard deviations, which are estimated from 15 windows,
// with p = 0.01 (Student's t, 14 degrees of freedom). Four of one program in a row do with p^4 = 1e-8, and there are three
// programs. The windows are at random moments, so rounds are independent. A half or a double of Redis or nginx is wrong in
// all of them, because a bound of 50 % or more fails as well. Of the bursts the windows see so few that their interval may
// be wider than that: what finds a half of those are TestSampledCallsAreAsManyAsThePrograms of the collector, whose windows
// are longer, and the simulations of internal/agent/sampling.
func TestBusyMachineIsWatchedWithinTheBudget(t *testing.T) {
	redisPort := redis(t, copyTo(t, "/usr/bin/redis-server", "e2ebudget"))
	url := nginx(t, "e2ebudgetweb")
	for _, load := range [][]string{
		{copyTo(t, "/usr/bin/redis-benchmark", "e2ebudgetb"), "-p", redisPort, "-t", "get", "-n", "2000000000", "-c", "20", "-q"},
		{copyTo(t, "/usr/bin/wrk", "e2ebudgetw"), "-t", "1", "-c", "20", "-d", "600s", url},
		{prog(t, "storm", "e2ebudgetstorm"), "2000000000"},
		{prog(t, "bursts", "e2ebudgetburst")},
	} {
		background(t, load[0], load[1:]...)
	}
	a := agent(t, "--overhead.budget=1%")
	level := func(name string) bool { return a.scrape(t).sum("teescope_self_level", "level", name) == 1 }
	eventually(t, 30*time.Second, "events to be sampled", func() error {
		time.Sleep(500 * time.Millisecond)
		if !level("sampled") {
			return errors.New("the level is another")
		}
		if a.scrape(t).sum("teescope_sampling_ratio", "probe", "syscall") == 1 { // as in its first three seconds
			return errors.New("all is seen")
		}
		return nil
	})
	s := a.scrape(t)
	if share := s.sum("teescope_sampling_ratio", "probe", "syscall"); share < 0.002 || share > 0.1 {
		t.Errorf("a sampling ratio of %v", share)
	}
	if cost := s.sum("teescope_self_cpu_ratio", "part", "probes"); cost > 0.01 {
		t.Errorf("the probes are said to take %.4f of the machine, the budget is 0.01", cost)
	}
	if !strings.Contains(a.log.String(), "another level of watching") {
		t.Error("the log does not tell of it")
	}

	time.Sleep(2 * time.Second) // a cycle has been settled
	wrong := map[string]string{"e2ebudget": "", "e2ebudgetweb": "", "e2ebudgetburst": ""}
	for round := 1; round <= budgetRounds && len(wrong) > 0; round++ {
		compareWithPerf(t, a, wrong)
	}
	for program, why := range wrong {
		t.Errorf("%s: %d times; at last: %s", program, budgetRounds, why)
	}
}

// compareWithPerf lets perf and the agent count the calls of the programs for a while. It takes those that agree out of
// the map, and says of the others what is wrong.
func compareWithPerf(t *testing.T, a *teescope, wrong map[string]string) {
	t.Helper()
	const seconds = 15
	programs := slices.Sorted(maps.Keys(wrong))
	truths := make([]*process, len(programs))
	from := a.scrape(t)
	for i, p := range programs {
		truths[i] = perfCalls(t, p, seconds)
	}
	for i := range truths {
		counted(t, truths[i])
	}
	to := a.scrape(t)
	for i, p := range programs {
		truth := counted(t, truths[i])
		grown := func(name string, labels ...string) float64 {
			return delta(from, to, name, append(labels, "workload", p)...)
		}
		got, sigma := grown("teescope_syscalls_total"), math.Sqrt(grown("teescope_sampling_variance_total", "family", "syscalls"))
		t.Logf("%s: perf %.0f, teescope %.0f (%+.1f%%) +- %.1f%%", p, truth, got, 100*(got/truth-1), 196*sigma/truth)
		// perf starts a moment after the first scrape, and what is reported is that of a second ago.
		bound := 0.05 + 3*sigma/truth
		switch {
		case bound >= 0.5 && p != "e2ebudgetburst":
			wrong[p] = fmt.Sprintf("the standard deviation is %.0f of %.0f calls: a half would not be seen to be wrong", sigma, truth)
		case math.Abs(got/truth-1) > bound:
			wrong[p] = fmt.Sprintf("%.0f calls are reported, perf counts %.0f", got, truth)
		default:
			delete(wrong, p)
		}
	}
}
