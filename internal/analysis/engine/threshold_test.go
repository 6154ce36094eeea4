// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"reflect"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

// limited returns the rule of above with a limit that can be replaced.
func limited(limit Threshold) Rule {
	r := above("limited", "q", 0, 0.1)
	judge := r.Judge
	r.Thresholds = []Threshold{limit}
	r.Judge = func(w Workload) *Verdict {
		if v, _ := w.Value(r.Signals[0]); v < w.Threshold(limit) {
			return nil
		}
		return judge(w)
	}
	return r
}

// A threshold of the configuration holds for the workloads that it applies to, and the finding says so.
func TestOverriddenThresholds(t *testing.T) {
	limit := Threshold{Name: "limit", Default: 10, Unit: "1/s"}
	only := func(name string) func(string, string) bool {
		return func(workload, instance string) bool { return workload == name && instance == "a" }
	}
	f := &fake{answers: map[string][]query.Sample{"q": {sample("v", 12), sample("w", 12), sample("x", 5)}}}
	for _, tt := range []struct {
		overrides []Override
		want      string
		said      []analysis.Replaced
	}{
		{nil, "limited@v limited@w", nil},
		{[]Override{{"limited", "limit", 20, only("w")}}, "limited@v", nil},
		{
			[]Override{{"limited", "limit", 20, only("v")}, {"limited", "limit", 20, only("w")}, {"limited", "limit", 4, only("x")}}, "limited@x",
			[]analysis.Replaced{{Name: "limit", Value: 4, Default: 10, Unit: "1/s"}},
		},
		{[]Override{{"limited", "limit", 20, only("w")}, {"limited", "limit", 10, only("w")}}, "limited@v limited@w", nil}, // the last one counts
		{[]Override{{"other", "limit", 20, only("w")}, {"limited", "other", 20, only("w")}}, "limited@v limited@w", nil},
	} {
		r := evaluate(t, f, []Rule{limited(limit)}, Options{Overrides: tt.overrides})
		if got := names(r); got != tt.want {
			t.Errorf("%+v: found %s, want %s", tt.overrides, got, tt.want)
		} else if got := r.Findings[0].Thresholds; !reflect.DeepEqual(got, tt.said) {
			t.Errorf("%+v: the finding has the thresholds %+v, want %+v", tt.overrides, got, tt.said)
		}
	}
}

// A rule that reads a threshold without declaring it would ignore the configuration.
func TestAnUndeclaredThreshold(t *testing.T) {
	limit := Threshold{Name: "limit", Default: 10}
	rule := limited(limit)
	rule.Thresholds = nil
	r := evaluate(t, &fake{answers: map[string][]query.Sample{"q": {sample("w", 12)}}}, []Rule{rule}, Options{})
	if len(r.Problems) == 0 || !strings.Contains(r.Problems[0].Error, `reads the threshold "limit" and does not declare it`) {
		t.Errorf("%+v", r.Problems)
	}
	if got := NewWorkload("w", 0, nil).Threshold(limit); got != 10 {
		t.Errorf("without a rule it is %v", got)
	}
}
