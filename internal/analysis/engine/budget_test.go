// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
)

// counting returns a rule that counts this many of the exits, each of which takes a thousandth of a core.
func counting(name string, stage Stage, exits, needs float64, supersedes ...string) Rule {
	return Rule{
		Name: name, Title: "exits", Sources: []string{"a test"}, Signals: []Signal{{Name: "it", Query: "q", Unit: "1/s"}},
		Judge: func(w Workload) *Verdict {
			v := &Verdict{Cause: "it exits", Evidence: []string{"it"}, Advice: []string{"less"}, Stage: stage, Needs: needs, Supersedes: supersedes}
			v.Draws(Exits, exits, 1, 1)
			v.Saves(w, exits/2000, exits/1000, "a thousandth of a core each")
			return v
		},
	}
}

func TestExitsAreCountedOnce(t *testing.T) {
	answers := map[string][]query.Sample{
		"q": {sample("w", 1)}, fiveMinutes(CPUQuery): {sample("w", 1)},
		fiveMinutes(ExitsQuery): {sample("w", 500)},
	}
	type left struct{ low, high float64 }
	for _, tt := range []struct {
		what     string
		rules    []Rule
		want     map[string]left
		explains string // by the rule cause
	}{
		{"one", []Rule{counting("symptom", Symptom, 500, 0.5)}, map[string]left{"symptom": {0.25, 0.5}}, ""},
		{
			"a symptom keeps what the cause leaves", []Rule{counting("symptom", Symptom, 500, 0.5), counting("cause", Cause, 200, 0)},
			map[string]left{"cause": {0.1, 0.2}, "symptom": {0.15, 0.3}}, "",
		},
		{
			"too little is left", []Rule{counting("symptom", Symptom, 500, 0.7), counting("cause", Cause, 200, 0)},
			map[string]left{"cause": {0.1, 0.2}}, "symptom",
		},
		{
			"a workaround explains a symptom", []Rule{counting("symptom", Symptom, 500, 0), counting("around", Workaround, 500, 0, "symptom")},
			map[string]left{"around": {0.25, 0.5}}, "",
		},
		{
			"a workaround yields to a cause, and the symptom comes back",
			[]Rule{counting("around", Workaround, 500, 0, "symptom"), counting("cause", Cause, 100, 0), counting("symptom", Symptom, 500, 0)},
			map[string]left{"cause": {0.05, 0.1}, "symptom": {0.2, 0.4}}, "around",
		},
		{
			"two causes count more than there are", []Rule{counting("cause", Cause, 400, 0), counting("second", Cause, 300, 0)},
			map[string]left{"cause": {0.2, 0.4}, "second": {0.05, 0.1}}, "",
		},
	} {
		r := evaluate(t, &fake{answers: answers}, tt.rules, Options{})
		if len(r.Findings) != len(tt.want) {
			t.Errorf("%s: found %s", tt.what, names(r))
		}
		for _, f := range r.Findings {
			want, expected := tt.want[f.Rule]
			if !expected || f.Saving == nil || math.Abs(f.Saving.Low-want.low) > 1e-9 || math.Abs(f.Saving.High-want.high) > 1e-9 {
				t.Errorf("%s: %s saves %+v, want %+v", tt.what, f.Rule, f.Saving, want)
			}
			if f.Rule == "cause" && tt.explains != "" && !slices.Equal(f.Explains, []string{tt.explains}) {
				t.Errorf("%s: the cause explains %v, want %s", tt.what, f.Explains, tt.explains)
			}
			if others := len(r.Findings) - 1; len(f.Adds) != others || f.Rule != "cause" && others > 0 && !slices.Equal(f.Overlaps, []string{"cause"}) {
				t.Errorf("%s: %s adds to %v and overlaps with %v", tt.what, f.Rule, f.Adds, f.Overlaps)
			}
		}
	}
}

// Two gains of measured waits may be the same time, so they do not add.
func TestWaitsDoNotAdd(t *testing.T) {
	f := &fake{answers: map[string][]query.Sample{"q": {sample("w", 5)}}}
	r := evaluate(t, f, []Rule{above("a", "q", 2, 0.7), above("b", "q", 2, 0.6)}, Options{})
	var share float64
	for i, f := range r.Findings {
		if other := r.Findings[1-i].Rule; len(f.Adds) != 0 || !slices.Equal(f.Overlaps, []string{other}) {
			t.Errorf("%s adds to %v and overlaps with %v", f.Rule, f.Adds, f.Overlaps)
		}
		share += f.Gain.High / (1 + f.Gain.High)
	}
	if share > estimate.MaxShare+1e-9 {
		t.Errorf("both remove %v of the time", share)
	}
}
