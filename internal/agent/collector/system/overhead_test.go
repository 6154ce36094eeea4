// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
)

// A load above the budget is sampled within a second of its beginning, at any time between two checks.
func TestALoadAboveTheBudgetIsSampledWithinASecond(t *testing.T) {
	const most = 175_000 // calls a second within 1 % of two CPUs, by the constants, are 133,000
	for _, rate := range []float64{most, 2 * most, 100 * most} {
		for phase := time.Duration(0); phase < budgetCheck; phase += budgetCheck / 20 {
			governor, meter := sampling.Governor{Budget: 0.01, CPUs: 2}, sampling.Meter{}
			start := time.Unix(1000, 0)
			begins := start.Add(3*budgetCheck + phase)
			for at := start; governor.Level == sampling.Full; at = at.Add(budgetCheck) {
				if at.Sub(begins) > time.Second {
					t.Fatalf("%.0f calls a second from %v after a check: not sampled after %v", rate, phase, at.Sub(begins))
				}
				calls := rate * max(0, at.Sub(begins).Seconds())
				if meter.Due(at) {
					if d, ok := meter.Read(at, sampling.Totals{Calls: uint64(calls)}, governor.Demand, true); ok {
						governor.Decide(at, d)
					}
				}
			}
		}
	}
}

// Each rare event costs something, and frequent events are not counted twice.
func TestRareEventsHaveACost(t *testing.T) {
	var kernelFault, insertion, frequent, request counts
	request.block.Requests[blockWrite][5], request.block.NS[blockWrite] = 1, 1
	kernelFault.Faults[1][0], insertion.Cache[cacheInsertion] = 1, 1
	frequent.Calls[0], frequent.Faults[0][0], frequent.Cache[cacheAccess], frequent.Switches[0] = 1e9, 1e9, 1e9, 1e9
	for name, r := range map[string]*counts{
		"a fork": {row: row{Forks: 1}}, "a thread": {row: row{Threads: 1}}, "an exit": {row: row{Exits: 1}}, "an exec": {row: row{Execs: 1}}, "a migration": {row: row{Migrations: 1}},
		"a fault in kernel mode": &kernelFault, "a page that is inserted": &insertion, "a request to a device": &request,
		"an interrupt of a performance counter": {row: row{LLCMisses: counterPeriod}},
	} {
		if cost := othersCost(r); cost < 50*time.Nanosecond || cost > 10*time.Microsecond {
			t.Errorf("%s costs %v", name, cost)
		}
	}
	if cost := othersCost(&frequent); cost != 0 {
		t.Errorf("frequent events cost %v as rare ones too", cost)
	}
}

// A budget that no level keeps is logged once, and once when it is kept again.
func TestABudgetThatNoLevelKeepsIsLogged(t *testing.T) {
	var log bytes.Buffer
	o := newOverhead(Options{Budget: 0.01, Log: slog.New(slog.NewTextHandler(&log, nil))})
	o.governor.CPUs = 2
	for _, switches := range []float64{1e4, 5e5, 5e5, 1.4e5, 5e5, 1e4, 1e4} {
		o.governor.Decide(time.Unix(1000, 0), sampling.Demand{Switches: switches})
		o.reportExcess()
	}
	if n, m := strings.Count(log.String(), "budget is exceeded"), strings.Count(log.String(), "less than the budget again"); n != 1 || m != 1 {
		t.Errorf("logged %d and %d times:\n%s", n, m, log.String())
	}
}

// While events are sampled, their estimates change once in a second, so a comparison in between has nothing new.
func TestTheBudgetIsCheckedOnceInACycleOfSampling(t *testing.T) {
	at := time.Unix(1000, 0)
	for level, want := range map[sampling.Level]int{sampling.Full: 20, sampling.Sampled: 10, sampling.SampledSums: 10, sampling.Off: 20} {
		o, checks := overhead{now: regime{level: level}, meter: sampling.Meter{At: at}}, 0
		for i := 1; i <= 20; i++ {
			if now := at.Add(time.Duration(i) * budgetCheck); o.due(now) {
				checks, o.meter.At = checks+1, now
			}
		}
		if checks != want {
			t.Errorf("at the level %s %d checks in ten seconds, want %d", level, checks, want)
		}
	}
}
