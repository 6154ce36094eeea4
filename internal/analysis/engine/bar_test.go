// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

// An open finding stays until its figure is below 0.8 of the threshold. Others need the whole threshold.
func TestAnOpenFindingHasALowerBar(t *testing.T) {
	limit := Threshold{Name: "limit", Default: 10, Unit: "1/s"}
	rule := limited(limit)
	rule.Judge = func(w Workload) *Verdict {
		if v, _ := w.Value(rule.Signals[0]); v < w.LeastFor(limit) || v > w.Most(20) {
			return nil
		}
		return &Verdict{Cause: "it is above", Evidence: []string{"it"}, Advice: []string{"less"}}
	}
	open := func(rule, workload, instance string) analysis.Severity {
		if rule == "limited" && workload == "w" && instance == "a" {
			return analysis.Info
		}
		return ""
	}
	for _, tt := range []struct {
		v, w float64
		want string
	}{
		{10, 10, "limited@v limited@w"},
		{9, 9, "limited@w"},
		{8, 8, "limited@w"},
		{7.9, 7.9, ""},
		{20, 20, "limited@v limited@w"},
		{24, 24, "limited@w"},
		{26, 26, ""},
	} {
		f := &fake{answers: map[string][]query.Sample{"q": {sample("v", tt.v), sample("w", tt.w)}}}
		if got := names(evaluate(t, f, []Rule{rule}, Options{Open: open})); got != tt.want {
			t.Errorf("%v and %v: found %q, want %q", tt.v, tt.w, got, tt.want)
		}
	}
	// The configured threshold is the one that is lowered.
	f := &fake{answers: map[string][]query.Sample{"q": {sample("v", 5), sample("w", 4.5)}}}
	five := []Override{{"limited", "limit", 5, func(string, string) bool { return true }}}
	if got := names(evaluate(t, f, []Rule{rule}, Options{Open: open, Overrides: five})); got != "limited@v limited@w" {
		t.Errorf("a threshold of 5: found %q", got)
	}
}

func TestABarForASeverity(t *testing.T) {
	w := NewWorkload("w", 0, nil)
	for was, want := range map[analysis.Severity]float64{"": 10, analysis.Info: 10, analysis.Medium: 8, analysis.High: 8} {
		if got := w.WhileOpen(was).LeastWhile(analysis.Medium, 10); got != want {
			t.Errorf("open as %q: the bar is %v, want %v", was, got, want)
		}
	}
	load := UnknownLoad()
	load.Cores, load.Busiest = 1, 0.7
	w.Load = load
	if got := w.Load.Limit(0, false); got != "" {
		t.Errorf("a thread that runs for 70 %% of the time limits: %s", got)
	}
	if w.WhileOpen(analysis.Low).Load.Limit(0, false) == "" { // 0.8 of 85 % is 68 %
		t.Error("the limit ends at once")
	}
}

// of answers a query of the rule for each window: "q[5m]", "q[1m]", "q[2m]". NaN is no answer.
func of(whole, minute, two float64) *fake {
	f := &fake{answers: map[string][]query.Sample{}}
	for expr, v := range map[string]float64{"q[5m]": whole, "q[1m]": minute, "q[2m]": two} {
		if !math.IsNaN(v) {
			f.answers[expr] = []query.Sample{sample("w", v)}
		}
	}
	return f
}

// listing is a source that lists its metrics.
type listing struct {
	*fake
	names []string
}

func (n listing) Metrics(context.Context, string) ([]string, error) { return n.names, nil }

// Queries about metrics that a source does not have are not run, and have no samples.
func TestQueriesWithoutMetricsAreNotRun(t *testing.T) {
	rule := limited(Threshold{Name: "limit", Default: 10})
	rule.Signals[0].Query = "q[$window]"
	for _, tt := range []struct {
		names []string
		asked bool
	}{{[]string{"q"}, true}, {[]string{"other"}, false}, {nil, true}} {
		f := of(12, 12, 12)
		r := evaluate(t, listing{f, tt.names}, []Rule{rule}, Options{})
		absent := slices.ContainsFunc(r.Problems, func(p query.Problem) bool { return p.Kind == query.Absent && p.Query == "q[5m]" })
		if got := f.asked["q[5m]"] > 0; got != tt.asked || absent == tt.asked {
			t.Errorf("with the metrics %q: asked %v, problems %+v", tt.names, got, r.Problems)
		}
	}
}

// A cause must still exist in the newest minute of five. Where that has no samples, the newest two decide.
func TestACauseMustExistNow(t *testing.T) {
	limit, nan := Threshold{Name: "limit", Default: 10, Unit: "1/s"}, math.NaN()
	rule := limited(limit)
	rule.Signals[0].Query = "q[$window]"
	rule.Judge = func(w Workload) *Verdict {
		if v, _ := w.Value(rule.Signals[0]); v < w.LeastFor(limit) {
			return nil
		}
		return &Verdict{Cause: "it is above", Evidence: []string{"it"}, Advice: []string{"less"}}
	}
	for _, tt := range []struct {
		what               string
		whole, minute, two float64
		want               string
	}{
		{"goes on", 12, 12, 12, "limited@w"},
		{"has ended", 12, 0, 5, ""},
		{"is a little less", 12, 8.5, 9, "limited@w"},
		{"a scrape every minute", 12, nan, 12, "limited@w"},
		{"a scrape every minute, and has ended", 12, nan, 0, ""},
		{"too few samples in both", 12, nan, nan, "limited@w"},
	} {
		if got := names(evaluate(t, of(tt.whole, tt.minute, tt.two), []Rule{rule}, Options{})); got != tt.want {
			t.Errorf("%s: found %q, want %q", tt.what, got, tt.want)
		}
	}
	rule.Judge = func(Workload) *Verdict {
		return &Verdict{Cause: "it was killed", Evidence: []string{"it"}, Advice: []string{"less"}, Event: true}
	}
	if got := names(evaluate(t, of(12, 0, 0), []Rule{rule}, Options{})); got != "limited@w" {
		t.Errorf("an event of minutes ago: found %q", got)
	}
}
