// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/server/findings"
	"github.com/teescope/teescope/internal/server/prom"
	"github.com/teescope/teescope/internal/server/prom/bound"
)

// The workloads of a fleet make chatter calls of one name a second, each of which leaves the enclave: 30,000 exits of
// 8,000 cycles each take more than 5 % of a core.
const chatter = 30_000

// fleet is a store of machines that are scraped every 15 s for five minutes.
type fleet struct {
	testing.TB
	*prom.Store
}

const fleetStep = 15 * time.Second

func (f fleet) series(values, format string, args ...any) {
	f.Helper()
	if err := f.AddSequence(fmt.Sprintf(format, args...), values, begin, fleetStep); err != nil {
		f.Fatal(err)
	}
}

func counting(perSecond float64) string { return fmt.Sprintf("0+%gx20", perSecond*fleetStep.Seconds()) }

// machine adds a machine whose workloads make these calls. The rate of calls decreases from name to name.
func (f fleet) machine(instance string, workloads, names int, perSecond float64) {
	f.series("1x20", `teescope_build_info{instance=%q}`, instance)
	for w := range workloads {
		of := fmt.Sprintf(`workload="%s-w%03d",instance=%q`, strings.Split(instance, ":")[0], w, instance)
		f.series("1x20", `teescope_workload_info{%s,tee="sgx",runtime="gramine-sgx"}`, of)
		f.series("1x20", `teescope_processes{%s}`, of)
		f.series("4x20", `teescope_threads{%s}`, of)
		f.series(counting(0.7), `teescope_cpu_seconds_total{%s,mode="user"}`, of)
		f.series(counting(0.2), `teescope_cpu_seconds_total{%s,mode="system"}`, of)
		f.series(counting(perSecond), `teescope_enclave_transitions_total{%s,kind="eexit"}`, of)
		for i := range names {
			rate := 1.0
			if i == 0 {
				rate = perSecond
			}
			f.series(counting(rate), `teescope_syscalls_total{%s,syscall="call%03d"}`, of, i)
		}
	}
}

func newFleet(tb testing.TB) fleet { return fleet{tb, prom.NewStore()} }

func (f fleet) source() *prom.Source {
	f.Helper()
	source, err := f.Source()
	if err != nil {
		f.Fatal(err)
	}
	return source
}

func (f fleet) judge(source query.Source) engine.Result {
	f.Helper()
	r, err := engine.Evaluate(f.Context(), source, rules.All(), engine.Options{At: begin.Add(5 * time.Minute), Timeout: 5 * time.Minute, PerQuery: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	return r
}

func agent(i int) string { return fmt.Sprintf("agent%02d:9750", i) }

// has reports whether a rule found something at a workload.
func has(r engine.Result, rule, workload, instance string) bool {
	return slices.ContainsFunc(r.Findings, func(f analysis.Finding) bool {
		return f.Rule == rule && f.Workload == workload && f.Instance == instance
	})
}

// TestManyAgentsAreJudged has 10 agents of 60 workloads with 100 system calls, whose 60,000 series are more than a query may
// return.
func TestManyAgentsAreJudged(t *testing.T) {
	f := newFleet(t)
	const machines, workloads = 10, 60
	for i := range machines {
		f.machine(agent(i), workloads, 100, chatter)
	}
	r := f.judge(f.source())
	if r.Workloads != machines*workloads {
		t.Errorf("%d workloads were judged, want %d", r.Workloads, machines*workloads)
	}
	for _, p := range r.Problems {
		if p.Kind != query.Absent {
			t.Errorf("%s: %s (query %q, rules %v)", p.Kind, p.Error, p.Query, p.Rules)
		}
	}
	for i := range machines {
		if workload := fmt.Sprintf("agent%02d-w%03d", i, workloads-1); !has(r, "ocall-bound", workload, agent(i)) {
			t.Errorf("nothing is found at %s", workload)
		}
	}
}

// TestTheLastWorkloadIsJudged has 1,200 workloads, of which only the last one by name has a cause.
func TestTheLastWorkloadIsJudged(t *testing.T) {
	f := newFleet(t)
	for i := range 20 {
		f.machine(agent(i), 60, 1, 10)
	}
	f.machine("last:9750", 1, 1, chatter)
	r := f.judge(f.source())
	if r.Workloads != 1201 || !has(r, "ocall-bound", "last-w000", "last:9750") {
		t.Errorf("%d of 1,201 workloads were judged, found %+v, problems %+v", r.Workloads, r.Findings, r.Problems)
	}
}

// TestOneAgentWithoutCountsConcernsOneMachine has one agent at the level off. The findings of all others can end.
func TestOneAgentWithoutCountsConcernsOneMachine(t *testing.T) {
	f := newFleet(t)
	for i := range 3 {
		f.machine(agent(i), 2, 3, chatter)
	}
	f.series("0x9 1 0x9", `teescope_self_level{instance=%q,level="off"}`, agent(1))
	r := f.judge(f.source())
	for _, rule := range []string{"small-io", "polling-loop", "needless-syscalls"} {
		for i := range 3 {
			if want := i != 1; r.Knows(rule, "w", agent(i)) != want {
				t.Errorf("%s would have been found on %s: %v, want %v", rule, agent(i), !want, want)
			}
		}
	}
}

// TestOneMachineThatFailsConcernsNoOther has a query that fails for one machine.
func TestOneMachineThatFailsConcernsNoOther(t *testing.T) {
	f := newFleet(t)
	for i := range 3 {
		f.machine(agent(i), 2, 3, chatter)
	}
	broken := func(q string) bool {
		return strings.Contains(q, agent(2)) && strings.Contains(q, "by (workload, instance, syscall) (rate(teescope_syscalls_total")
	}
	r := f.judge(faulty{Source: f.source(), fails: broken})
	for i := range 3 {
		if want := i != 2; r.Knows("small-io", "w", agent(i)) != want {
			t.Errorf("on %s: known %v", agent(i), !want)
		}
	}
	if !slices.ContainsFunc(r.Problems, func(p query.Problem) bool {
		return p.Kind == query.Failed && strings.Contains(p.Error, "1 of 3 machines (agent02)")
	}) {
		t.Errorf("problems %+v", r.Problems)
	}
	if !has(r, "ocall-bound", "agent00-w000", agent(0)) {
		t.Errorf("found %+v", r.Findings)
	}
}

// TestMoreAgentsThanAQueryCanName has agents whose names are longer together than a database lets a query be. Two exporters without an agent
// and a workload without an instance are judged too.
func TestMoreAgentsThanAQueryCanName(t *testing.T) {
	f := newFleet(t)
	const agents = 60
	name := func(kind string, i int) string {
		return fmt.Sprintf("%s%02d.%s:9100", kind, i, strings.Repeat("long", 75))
	}
	for i := range agents {
		f.machine(name("agent", i), 1, 1, chatter)
		f.series("1x20", `up{job="teescope",instance=%q}`, name("agent", i))
	}
	for i := range 2 {
		f.series("1x20", `up{job="node",instance=%q}`, name("bare", i))
		f.series(counting(1), `node_cpu_seconds_total{cpu="0",mode="user",instance=%q}`, name("bare", i))
	}
	f.series(counting(0.7), `teescope_cpu_seconds_total{workload="w",mode="user"}`)
	r := f.judge(faulty{Source: f.source(), fails: func(q string) bool { return len(q) > bound.MaxText }})
	for _, p := range r.Problems {
		if p.Kind == query.Failed {
			t.Errorf("%s (query of %d bytes)", p.Error, len(p.Query))
		}
	}
	if want := agents + 3; len(r.Machines) != want {
		t.Errorf("%d machines were judged, want %d", len(r.Machines), want)
	}
	if last := name("agent", agents-1); !has(r, "ocall-bound", strings.Split(last, ":")[0]+"-w000", last) {
		t.Errorf("nothing is found at %s", last)
	}
}

// TestPortsAndMissingInstances has two machines, one of which has another exporter, and a workload without an instance.
func TestPortsAndMissingInstances(t *testing.T) {
	f := newFleet(t)
	f.machine(agent(0), 1, 1, chatter)
	f.machine(agent(1), 1, 1, chatter)
	f.machine("", 1, 1, chatter)
	f.series(counting(1), `node_cpu_seconds_total{instance="agent00:9100",cpu="0",mode="idle"}`)
	r := f.judge(f.source())
	var names []string
	for _, m := range r.Machines {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	if want := []string{"", "agent00", "agent01"}; !slices.Equal(names, want) || r.Workloads != 3 {
		t.Errorf("%d workloads on %q, want 3 on %q", r.Workloads, names, want)
	}
	for workload, instance := range map[string]string{"agent00-w000": agent(0), "agent01-w000": agent(1), "-w000": ""} {
		if !has(r, "ocall-bound", workload, instance) {
			t.Errorf("nothing is found at %s", workload)
		}
	}
	seen := make(map[string]bool)
	for _, found := range r.Findings {
		if seen[found.ID] {
			t.Errorf("%s at %s is found twice", found.Rule, found.Workload)
		}
		seen[found.ID] = true
	}
}

// TestALateMachineIsNotKnown has a machine that never answers. The time is over before the machines after it are judged.
// These come first in a later evaluation.
func TestALateMachineIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		for i := range 5 {
			f.machine(agent(i), 1, 1, chatter)
		}
		source := faulty{Source: f.source(), hangs: func(q string) bool { return strings.Contains(q, `="`+agent(2)) }}
		ever := make(map[string]bool)
		for minute := 3; minute < 8; minute++ { // the samples cover at least half of each window
			at := begin.Add(time.Duration(minute) * time.Minute)
			r, err := engine.Evaluate(t.Context(), source, rules.All(), engine.Options{At: at})
			if err != nil {
				t.Fatal(err)
			}
			var known []string
			for i := range 5 {
				if r.Knows("ocall-bound", "w", agent(i)) {
					known = append(known, agent(i))
					ever[agent(i)] = true
				}
			}
			late := fmt.Sprintf("%d of 5 machines", 5-len(known))
			if slices.Contains(known, agent(2)) || len(known) != r.Workloads || !slices.ContainsFunc(r.Problems, func(p query.Problem) bool {
				return p.Kind == query.Bounded && strings.Contains(p.Error, late)
			}) {
				t.Errorf("judged %v, problems %+v", known, r.Problems)
			}
		}
		if len(ever) != 4 {
			t.Errorf("only %v were ever judged", ever)
		}
	})
}

// TestAMachineIsJudgedAsIfItWereAlone compares a machine in a fleet with the same machine alone.
func TestAMachineIsJudgedAsIfItWereAlone(t *testing.T) {
	for _, c := range positives(t) {
		alone := c.whole(t)
		db, err := c.source("a:9750", "b:9750")
		if err != nil {
			t.Fatal(err)
		}
		r, err := engine.Evaluate(t.Context(), db, rules.All(), c.options())
		if err != nil {
			t.Fatal(err)
		}
		told := func(all []analysis.Finding, instance string) (texts []string) {
			for _, f := range all {
				if f.Instance == instance {
					texts = append(texts, fmt.Sprintf("%s %s %s %s %+v %+v", f.Rule, f.Workload, f.Severity, f.Cause, f.Gain, f.Saving))
				}
			}
			return texts
		}
		want := told(alone.Findings, host)
		for _, instance := range []string{"a:9750", "b:9750"} {
			if got := told(r.Findings, instance); !slices.Equal(got, want) {
				t.Errorf("%s on %s:\n%q, want\n%q", c.file, instance, got, want)
			}
		}
	}
}

// keeper has the workloads with a stored median, by whether their box plots are stored too.
type keeper map[query.Target]bool

func (k keeper) Append(_ context.Context, samples []query.Sample) error {
	for _, s := range samples {
		if strings.HasPrefix(s.Labels["__name__"], "teescope:window_") {
			k[query.TargetOf(s.Labels)] = k[query.TargetOf(s.Labels)] || s.Labels["stat"] != "median"
		}
	}
	return nil
}

// TestEachMachineHasBoxPlots has 3 machines of 60 workloads. All have medians, and a third of 128 workloads of each machine has box plots.
func TestEachMachineHasBoxPlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		for i := range 3 {
			f.machine(agent(i), 60, 1, 10)
		}
		kept := make(keeper)
		a := findings.New(findings.Options{
			Source: f.source(), Rules: rules.All(), Interval: time.Minute, Window: 5 * time.Minute, Scrape: fleetStep, Keep: kept,
			Log: slog.New(slog.DiscardHandler),
		})
		if err := a.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(begin.Add(5 * time.Minute)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		synctest.Wait()
		whole := make(map[string]int)
		for of, its := range kept {
			if its {
				whole[of.Instance]++
			}
		}
		if len(kept) != 180 || whole[agent(0)] != 42 || whole[agent(1)] != 42 || whole[agent(2)] != 42 {
			t.Errorf("%d of 180 workloads have medians, want all; box plots by machine: %v, want 42 of each", len(kept), whole)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
