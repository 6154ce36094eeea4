// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
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
		fiveMinutes(fmt.Sprintf(totalQuery, "teescope_syscalls_total")): {sample("w", 100), sample("exact", 100)},
		fiveMinutes(varianceQuery):                                      {sample("w", 9e6, "family", "syscalls"), sample("w", 1e9, "family", "page_cache")},
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
	const half = 1.96 * 3000 / 300 // a standard error of 3,000 calls in 300 s
	part := half * math.Sqrt(0.6)
	for i, want := range []struct{ value, half float64 }{{100, half}, {60, part}, {60, part}} {
		e := r.Findings[1].Evidence[i]
		if e.Low == nil || e.High == nil || math.Abs(*e.Low-(want.value-want.half)) > 1e-9 || math.Abs(*e.High-(want.value+want.half)) > 1e-9 {
			t.Errorf("%s: %+v, want %v +- %v", e.Name, e, want.value, want.half)
		}
	}
	if e := r.Findings[1].Evidence[3]; e.Low != nil || e.High != nil {
		t.Errorf("switches are always counted, and have an interval: %+v", e)
	}
}

// Counts are 1,000 of each call, with a standard error of all calls of 5 %: 100 of 2,000, over 100 s. The 95 % interval of
// all calls is 2,000 +- 196, and that of one call 1,000 +- 196/sqrt(2).
func TestAVerdictHoldsInTheWholeInterval(t *testing.T) {
	const all = `sum by (workload, instance, syscall) (rate(teescope_syscalls_total[$window]))`
	const reads = `sum by (workload, instance) (rate(teescope_syscalls_total{syscall="read"}[$window]))`
	const total = `sum by (workload, instance) (rate(teescope_syscalls_total[$window]))`
	answers := func(variance float64) *fake {
		f := &fake{answers: map[string][]query.Sample{
			fiveMinutes(all):           {sample("w", 1000, "syscall", "read"), sample("w", 1000, "syscall", "write")},
			fiveMinutes(reads):         {sample("w", 1000)},
			fiveMinutes(total):         {sample("w", 2000)},
			fiveMinutes(varianceQuery): {sample("w", variance, "family", "syscalls")},
		}}
		for i := range 50 { // calls that the workload made before the window
			f.answers[fiveMinutes(all)] = append(f.answers[fiveMinutes(all)], sample("w", 0, "syscall", fmt.Sprint(i)))
		}
		return f
	}
	const events = 300 // seconds of the window
	sampled := 100.0 * events * 100 * events
	below := func(name, query string, limit, share float64) Rule {
		r := above(name, query, 0, share)
		judge := r.Judge
		r.Judge = func(w Workload) *Verdict {
			if v, _ := w.Value(r.Signals[0]); v >= limit {
				return nil
			}
			return judge(w)
		}
		return r
	}
	for _, tt := range []struct {
		name     string
		rule     Rule
		variance float64
		want     bool
	}{
		{"above the lower end of all calls", above("r", all, 1720, 0.3), sampled, true}, // 2,000 - 2 x 139
		{"below the lower end of all calls", above("r", all, 1730, 0.3), sampled, false},
		{"above the upper end of all calls", below("r", all, 2280, 0.3), sampled, true}, // 2,000 + 2 x 139
		{"below the upper end of all calls", below("r", all, 2275, 0.3), sampled, false},
		{"above the lower end of one call", above("r", reads, 860, 0.3), sampled, true}, // 1,000 - 139
		{"below the lower end of one call", above("r", reads, 862, 0.3), sampled, false},
		{"above the upper end of one call", below("r", reads, 1140, 0.3), sampled, true},
		{"below the upper end of one call", below("r", reads, 1138, 0.3), sampled, false},
		{"exact", above("r", reads, 999, 0.3), 0, true},
	} {
		r := evaluate(t, answers(tt.variance), []Rule{tt.rule}, Options{})
		if found := len(r.Findings) == 1; found != tt.want {
			t.Errorf("%s: found %s, problems %s", tt.name, names(r), problems(r))
		}
		if known := r.Knows("r", "w", "a"); known != tt.want {
			t.Errorf("%s: the cause would have been found: %v", tt.name, known)
		}
		if noted := strings.Contains(problems(r), "gap::w:r"); noted == tt.want {
			t.Errorf("%s: problems %q", tt.name, problems(r))
		}
	}
}

// The gain of a finding covers the gains at both ends of the interval.
func TestAGainCoversTheInterval(t *testing.T) {
	const reads = `sum by (workload, instance) (rate(teescope_syscalls_total{syscall="read"}[$window]))`
	const total = `sum by (workload, instance) (rate(teescope_syscalls_total[$window]))`
	f := &fake{answers: map[string][]query.Sample{
		fiveMinutes(reads): {sample("w", 1000)}, fiveMinutes(total): {sample("w", 1000)},
		fiveMinutes(varianceQuery): {sample("w", 100*300*100*300, "family", "syscalls")}, // +- 196/s
	}}
	rule := above("r", reads, 1, 0)
	judge := rule.Judge
	rule.Judge = func(w Workload) *Verdict {
		v := judge(w)
		rate, _ := w.Value(rule.Signals[0])
		v.Gain = estimate.Amdahl("x", rate/10_000, rate/5_000, "assumed")
		v.Confidence = analysis.Measured
		if rate < 900 {
			v.Confidence = analysis.Possible
		}
		return v
	}
	r := evaluate(t, f, []Rule{rule}, Options{})
	if len(r.Findings) != 1 {
		t.Fatalf("found %s, problems %s", names(r), problems(r))
	}
	got := r.Findings[0]
	if low, high := 0.0804/(1-0.0804), 0.2392/(1-0.2392); math.Abs(got.Gain.Low-low) > 1e-9 || math.Abs(got.Gain.High-high) > 1e-9 {
		t.Errorf("the gain is %v to %v, want %v to %v", got.Gain.Low, got.Gain.High, low, high)
	}
	if got.Confidence != analysis.Possible {
		t.Errorf("the confidence is %s at the estimate and lower at an end of its interval", got.Confidence)
	}
}

// TestTheLowestSeverityOfTheInterval: a rule states a severity of its own in a part of the interval of sampled events.
func TestTheLowestSeverityOfTheInterval(t *testing.T) {
	const reads = `sum by (workload, instance) (rate(teescope_syscalls_total{syscall="read"}[$window]))`
	const total = `sum by (workload, instance) (rate(teescope_syscalls_total[$window]))`
	f := &fake{answers: map[string][]query.Sample{
		fiveMinutes(reads): {sample("w", 1000)}, fiveMinutes(total): {sample("w", 1000)},
		fiveMinutes(varianceQuery): {sample("w", 100*300*100*300, "family", "syscalls")}, // +- 196/s
	}}
	for _, tt := range []struct {
		name                  string
		below, estimate, high analysis.Severity // empty: of the gain, which is high
		want                  analysis.Severity
	}{
		{"all of the gain", "", "", "", analysis.High},
		{"info below the estimate", analysis.Info, "", "", analysis.Info},
		{"info above the estimate", "", "", analysis.Info, analysis.Info},
		{"low and info", analysis.Low, "", analysis.Info, analysis.Info},
		{"low at the estimate only", "", analysis.Low, "", analysis.Low},
		{"stated at each end", analysis.Medium, analysis.High, analysis.Low, analysis.Low},
	} {
		rule := above("r", reads, 1, 0.5)
		judge := rule.Judge
		rule.Judge = func(w Workload) *Verdict {
			v := judge(w)
			switch rate, _ := w.Value(rule.Signals[0]); {
			case rate < 900:
				v.Severity = tt.below
			case rate > 1100:
				v.Severity = tt.high
			default:
				v.Severity = tt.estimate
			}
			return v
		}
		r := evaluate(t, f, []Rule{rule}, Options{})
		if len(r.Findings) != 1 || r.Findings[0].Severity != tt.want {
			t.Errorf("%s: found %+v, want one that is %s; problems %s", tt.name, r.Findings, tt.want, problems(r))
		}
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
	if !strings.Contains(problems(r), "gap:::calls") || r.Knows("calls", "w", "a") || !r.Knows("calls", "w", "b") || !r.Knows("rule", "w", "a") {
		t.Errorf("problems %s", problems(r))
	}
	f.errs = map[string]error{fiveMinutes(offQuery): errors.New("503")}
	if r := evaluate(t, f, rules, Options{}); len(r.Findings) > 0 {
		t.Errorf("found %s although it is unknown what was counted", names(r))
	}
}

// Every window of a query is replaced before it is parsed.
func TestMetricsOfQueriesWithWindows(t *testing.T) {
	for _, window := range []string{"$window", "$whole"} {
		if got := metricsIn("sum by (instance) (increase(sgx_starts[" + window + "]))"); !slices.Equal(got, []string{"sgx_starts"}) {
			t.Errorf("%s: %q", window, got)
		}
	}
}
