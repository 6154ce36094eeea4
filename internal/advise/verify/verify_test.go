// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
	"github.com/teescope/teescope/internal/run/runtest"
)

func TestVerdict(t *testing.T) {
	predicted := Span{0.2, 0.5}
	for _, c := range []struct {
		low, high float64
		found     compare.Verdict
		want      Verdict
	}{
		{0.3, 0.4, compare.Better, Held}, {0.1, 0.2, compare.Better, Held}, {0.5, 0.9, compare.Better, Held}, {0.1, 0.9, compare.Changed, Held},
		{0.05, 0.19, compare.Better, Less}, {-0.1, 0.1, compare.Noise, Less}, {-0.3, -0.1, compare.Worse, Less},
		{0.51, 0.9, compare.Better, More}, {-0.1, 0.3, compare.Noise, Open}, {0.3, 0.4, compare.Refused, Undecided}, {0.3, 0.4, compare.TooFew, Undecided},
	} {
		v, why := verdict(predicted, Span{c.low, c.high}, &compare.Change{Verdict: c.found, Explains: []string{"kernel"}})
		if v != c.want || (why != "") != (v == Undecided || v == Open) {
			t.Errorf("%+v: %s, %q", c, v, why)
		}
	}
	// A prediction from zero on holds no loss.
	if v, _ := verdict(Span{0, 0.5}, Span{-0.3, -0.1}, &compare.Change{Verdict: compare.Worse}); v != Less {
		t.Error(v)
	}
}

// tables compares 8 runs of a throughput and of cores with 8 others. Repetitions differ by a few percent at random.
func tables(t *testing.T, before, after [2]float64, conditions ...string) Tables {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var records []*compare.Record
	for i, of := range [][2]float64{before, after} {
		var spec runtest.Spec
		for range 8 {
			by := 1 + 0.02*random.Float64()
			spec.Repetitions = append(spec.Repetitions, runtest.Repetition{
				Outcomes: []run.Outcome{runtest.Throughput(of[0] * by)}, Counters: []runtest.Value{runtest.Counter(10*of[1], "teescope_cpu_seconds_total", "mode", "user")},
			})
		}
		if len(conditions) > i {
			spec.Conditions = append(spec.Conditions, run.Condition{Name: "kernel", Value: conditions[i], Kind: "identity"})
		}
		r, err := runtest.Run(spec)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, compare.Extract(r, fmt.Sprintf("%d.tsrun", i), nil))
	}
	sets, err := compare.Split(records, []string{"before", "after"}, "")
	if err != nil {
		t.Fatal(err)
	}
	work, err1 := compare.Compare(sets[0], compare.Options{PerOp: 1})
	second, err2 := compare.Compare(sets[0], compare.Options{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return Tables{work, second}
}

func TestJudge(t *testing.T) {
	finding := func(rule string, explains ...string) analysis.Finding {
		return analysis.Finding{Rule: rule, Explains: explains, Gain: &estimate.Gain{Low: 0.1, High: 0.3}, Saving: &estimate.Saving{Low: 0.3, High: 0.6}}
	}
	all := func(list ...analysis.Finding) Findings { return Findings{list, []string{"a", "b", "exitless"}} }
	// 20 % more operations with the same 2 cores: 1.2 times the work of before takes 2/1.2 = 1.667 cores, 0.333 less.
	better := tables(t, [2]float64{1000, 2}, [2]float64{1200, 2})
	for _, c := range []struct {
		what          string
		tables        Tables
		before, after Findings
		throughput    Verdict
		cpu           Verdict
		why           string
	}{
		{"gone", better, all(finding("a")), all(), Held, Held, ""},
		{"still there", better, all(finding("a")), all(finding("a")), Undecided, Undecided, "still there"},
		{"of two instances", better, all(finding("a"), finding("a")), all(), Held, Held, ""},
		{"two at once", better, all(finding("a"), finding("b")), all(), Undecided, Undecided, "2 causes are gone at once"},
		{"not judged after", better, all(finding("c")), all(), Undecided, Undecided, "could not judge"},
		{"another cause of the rule", better, all(finding("exitless", "ocall-bound")), all(finding("exitless")), Held, Held, ""},
		{"nothing changed", tables(t, [2]float64{1000, 2}, [2]float64{1000, 2}), all(finding("a")), all(), Less, Less, ""},
		{"other machines", tables(t, [2]float64{1000, 2}, [2]float64{1200, 2}, "6.1.0", "6.12.0"), all(finding("a")), all(), Undecided, Undecided, "the machines differ: kernel"},
	} {
		rows := Judge(c.tables, 1, c.before, c.after)
		if len(rows) < 2 || rows[0].Verdict != c.throughput || rows[1].Verdict != c.cpu || !strings.Contains(rows[0].Why, c.why) || rows[0].N != [2]int{8, 8} {
			t.Errorf("%s: %+v", c.what, rows)
			continue
		}
		if c.what == "gone" {
			gain, saved := rows[0].Observed, rows[1].Observed
			if gain.Low > 0.2 || gain.High < 0.2 || gain.High-gain.Low > 0.1 || saved.Low > 0.36 || saved.High < 0.3 || saved.High-saved.Low > 0.2 {
				t.Errorf("%+v, %+v", gain, saved)
			}
		}
	}
	if rows := Judge(better, 1, all(analysis.Finding{Rule: "a"}), all()); len(rows) > 0 {
		t.Errorf("nothing was predicted: %+v", rows)
	}
}
