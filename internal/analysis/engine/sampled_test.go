// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis/query"
)

// fiveMinutes is a query as it is asked.
func fiveMinutes(query string) string { return strings.ReplaceAll(query, "$window", "5m") }

func TestSampledRatesHaveAnInterval(t *testing.T) {
	const all = `sum by (workload, instance, syscall) (rate(teescope_syscalls_total[$window]))`
	const some = `sum by (workload, instance) (rate(teescope_syscalls_total{syscall="read"}[$window]))`
	const switches = `sum by (workload, instance) (rate(teescope_context_switches_total[$window]))`
	f := &fake{answers: map[string][]query.Sample{
		fiveMinutes(all):  {sample("w", 60, "syscall", "read"), sample("w", 40, "syscall", "write"), sample("exact", 100)},
		fiveMinutes(some): {sample("w", 60)}, fiveMinutes(switches): {sample("w", 9)},
		fiveMinutes(varianceQuery): {sample("w", 9e6, "family", "syscalls"), sample("w", 1e9, "family", "page_cache")},
	}}
	rule := above("rule", all, 50, 0.5)
	rule.Signals = append(rule.Signals, Signal{Name: "some", Query: some}, Signal{Name: "switches", Query: switches})
	judge := rule.Judge
	rule.Judge = func(w Workload) *Verdict {
		v := judge(w)
		v.Evidence = []string{"it", "it{syscall=read}", "some", "switches"}
		return v
	}
	r := evaluate(t, f, []Rule{rule}, Options{})
	if names(r) != "rule@exact rule@w" {
		t.Fatalf("found %s, problems %s", names(r), problems(r))
	}
	if e := r.Findings[0].Evidence[0]; e.Low != nil || e.High != nil {
		t.Errorf("an exact count has an interval: %+v", e)
	}
	for i, e := range r.Findings[1].Evidence {
		if i > 0 && (e.Low != nil || e.High != nil) {
			t.Errorf("%s has an interval, which nobody knows: %+v", e.Name, e)
		}
	}
	e := r.Findings[1].Evidence[0]
	if half := 1.96 * 3000 / 300; e.Low == nil || e.High == nil || math.Abs(*e.Low-(100-half)) > 1e-9 || math.Abs(*e.High-(100+half)) > 1e-9 {
		t.Errorf("100 calls/s, with a standard error of 3,000 calls in 300 s: %+v", e)
	}
}

// TestWhatWasNotCountedIsNotZero: an agent at the level off has no system calls, but other agents do.
func TestWhatWasNotCountedIsNotZero(t *testing.T) {
	const expr = `sum by (workload, instance) (rate(teescope_syscalls_total[5m]))`
	off := sample("", 1)
	f := &fake{answers: map[string][]query.Sample{
		expr: {sample("w", 5), sample("w", 5, "instance", "b")}, "q": {sample("w", 5)}, fiveMinutes(offQuery): {off},
	}}
	rules := []Rule{above("calls", expr, 2, 0.5), above("rule", "q", 2, 0.3)}
	r := evaluate(t, f, rules, Options{})
	if names(r) != "calls@w rule@w" || r.Findings[0].Instance != "b" || r.Findings[1].Instance != "a" {
		t.Errorf("found %+v", r.Findings)
	}
	if !strings.Contains(problems(r), "gap:::calls") || r.Knows("calls", "w", "a") || !r.Knows("rule", "w", "a") {
		t.Errorf("problems %s", problems(r))
	}
	f.errs = map[string]error{fiveMinutes(offQuery): errors.New("503")}
	if r := evaluate(t, f, rules, Options{}); len(r.Findings) > 0 {
		t.Errorf("found %s although it is unknown what was counted", names(r))
	}
}
