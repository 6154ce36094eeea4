// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// causes are the rules that say why a workload leaves its enclave.
var causes = []string{rules.NeedlessSyscalls, rules.SmallIO, rules.PollingLoop, rules.LockContention}

// mixed returns a workload with several causes of exits at once, at these rates per second, and idle CPUs.
func mixed(clock, small, polls, locks, other float64) testCase {
	c := testCase{Interval: duration(5 * time.Second), Window: duration(5 * time.Minute), At: duration(5 * time.Minute)}
	add := func(perSecond float64, name string) {
		c.Input = append(c.Input, series{name, fmt.Sprintf("0+%gx60", 5*perSecond)})
	}
	gauge := func(value float64, name string) {
		c.Input = append(c.Input, series{name, fmt.Sprintf("%gx60", value)})
	}
	gauge(2.8e9, `node_cpu_frequency_max_hertz{cpu="0"}`)
	gauge(1, `teescope_workload_info{workload="w",kind="program",tee="sgx",runtime="gramine-sgx"}`)
	gauge(1, `teescope_processes{workload="w"}`)
	gauge(4, `teescope_threads{workload="w"}`)
	gauge(0.95, `teescope_busiest_thread_cpu_ratio{workload="w"}`)
	add(0.75, `teescope_cpu_seconds_total{workload="w",mode="user"}`)
	add(0.2, `teescope_cpu_seconds_total{workload="w",mode="system"}`)
	for call, rate := range map[string]float64{"gettimeofday": clock, "recvmsg": small, "epoll_wait": polls, "futex": locks, "fstat": other} {
		add(rate, fmt.Sprintf(`teescope_syscalls_total{workload="w",syscall=%q}`, call))
	}
	add(0, `teescope_page_cache_ops_total{workload="w",op="access"}`)
	add(clock+small+polls+locks+other, `teescope_enclave_transitions_total{workload="w",kind="eexit",source="gramine_counters"}`)
	add(locks/2, `teescope_context_switches_total{workload="w",kind="voluntary"}`)
	for cpu := range 4 {
		add(0.7, fmt.Sprintf(`node_cpu_seconds_total{cpu="%d",mode="idle"}`, cpu))
	}
	return c
}

// TestFindingsClaimNoEventTwice: the savings of a workload's findings are at most the time that its exits take, at the highest
// documented cost, and at most the CPU time that it uses. Exitless is not advised if a cause is known.
func TestFindingsClaimNoEventTwice(t *testing.T) {
	// At 2.8 GHz an exit and the entry after it take 14,000 cycles at most, and a context switch 6,000. Half of the calls
	// for locks sleep. The workload uses 0.95 cores.
	const exit, sleep, cores = 14_000 / 2.8e9, 6_000 / 2.8e9 / 2, 0.95
	several, exitless := 0, 0
	rates := []float64{0, 15_000, 60_000}
	for _, clock := range rates {
		for _, small := range []float64{0, 15_000} {
			for _, polls := range rates {
				for _, locks := range rates {
					for _, other := range rates {
						r, err := mixed(clock, small, polls, locks, other).evaluate(rules.All())
						if err != nil {
							t.Fatal(err)
						}
						what := fmt.Sprintf("%v for the time, %v small reads, %v polls, %v locks, %v others", clock, small, polls, locks, other)
						cause, around := budgeted(t, what, r, min(cores, (clock+small+polls+locks+other)*exit+locks*sleep))
						if cause && len(r.Findings) > 1 {
							several++
						}
						if around {
							exitless++
						}
					}
				}
			}
		}
	}
	if several < 10 || exitless < 1 {
		t.Errorf("%d workloads have several findings and %d have exitless: the test shows little", several, exitless)
	}
}

// budgeted checks the findings of one workload. It returns whether a cause of exits, and whether exitless is found.
func budgeted(t *testing.T, what string, r engine.Result, most float64) (cause, around bool) {
	t.Helper()
	var saved float64
	for i, f := range r.Findings {
		if f.Saving != nil {
			saved += f.Saving.High
		}
		cause = cause || f.Saving != nil && slices.Contains(causes, f.Rule)
		around = around || f.Rule == rules.Exitless
		for _, other := range r.Findings[i+1:] {
			if (f.Saving != nil && other.Saving != nil) != slices.Contains(f.Adds, other.Rule) {
				t.Errorf("%s: %s adds to %v, beside %s", what, f.Rule, f.Adds, other.Rule)
			}
		}
	}
	if saved > most*1.001 {
		t.Errorf("%s: %.3g cores are saved of at most %.3g: %s", what, saved, most, estimates(r.Findings))
	}
	if cause && around {
		t.Errorf("%s: exitless is reported beside a cause: %s", what, estimates(r.Findings))
	}
	return cause, around
}

func estimates(all []analysis.Finding) (text string) {
	for _, f := range all {
		text += fmt.Sprintf("\n\t%s, %s, saving %+v, overlaps %v", f.Rule, f.Severity, f.Saving, f.Overlaps)
	}
	return text
}

// TestNoWorkloadSavesMoreThanItUses checks every case: the savings of a workload are at most its CPU time, and its gains
// together remove at most 95 % of the time.
func TestNoWorkloadSavesMoreThanItUses(t *testing.T) {
	for _, c := range varied(t) {
		db, err := c.source(host)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.evaluate(rules.All())
		if err != nil {
			t.Fatal(err)
		}
		used := make(map[query.Target]float64)
		cpu, err := db.Instant(t.Context(), "sum by (workload, instance) (rate(teescope_cpu_seconds_total["+query.Duration(r.Window)+"]))", c.end())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range cpu {
			used[query.TargetOf(s.Labels)] = s.Value
		}
		saved, share := make(map[query.Target]float64), make(map[query.Target]float64)
		for _, f := range r.Findings {
			of := query.Target{Workload: f.Workload, Instance: f.Instance}
			if f.Saving != nil {
				saved[of] += f.Saving.High
			}
			if f.Gain != nil {
				share[of] += f.Gain.High / (1 + f.Gain.High)
			}
		}
		for of, cores := range saved {
			if cores > used[of]*1.001 {
				t.Errorf("%s: %+v saves %.3g of %.3g cores:%s", c.file, of, cores, used[of], estimates(r.Findings))
			}
			if share[of] > estimate.MaxShare+1e-9 {
				t.Errorf("%s: %+v gains %.3g of its time:%s", c.file, of, share[of], estimates(r.Findings))
			}
		}
	}
}
