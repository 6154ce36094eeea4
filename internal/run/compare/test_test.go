// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"testing"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/runtest"
)

// changed compares an outcome with these values before and after.
func changed(t *testing.T, better string, before, after []float64) Cell {
	t.Helper()
	of := func(file string, values []float64) *Record {
		var s runtest.Spec
		for _, v := range values {
			s.Repetitions = append(s.Repetitions, runtest.Repetition{Outcomes: []run.Outcome{{Name: "x", Value: v, Better: better}}})
		}
		return record(t, file, s)
	}
	return row(t, compared(t, Options{}, "", of("a", before), of("b", after))[0], "x").Cells[1]
}

func repeated(n int, v float64, more ...float64) (all []float64) {
	for range n {
		all = append(all, v)
	}
	return append(all, more...)
}

// The direction is that of the ranks, which the test is about. With many ties the medians may be equal.
func TestDirectionWithTies(t *testing.T) {
	ones, more := repeated(20, 1), repeated(11, 1, repeated(9, 2)...)
	for better, want := range map[string]Verdict{"higher": Better, "lower": Worse, "": Changed} {
		if c := changed(t, better, ones, more); c.Median.Value != 1 || c.Change.Verdict != want {
			t.Errorf("better is %q: %s, %+v", better, c.Change.Verdict, c.Median)
		}
		back := map[Verdict]Verdict{Better: Worse, Worse: Better, Changed: Changed}
		if c := changed(t, better, more, ones); c.Change.Verdict != back[want] {
			t.Errorf("better is %q, the other way round: %s", better, c.Change.Verdict)
		}
	}
}

// Few values, constants, zeros and negative values have no verdict that they cannot have, and no figure that is not known.
func TestOutcomesAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, after []float64
		verdict       Verdict
		ratio         float64 // NaN if it is unknown
	}{
		{"one and one", []float64{1}, []float64{2}, TooFew, 2},
		{"two and two", []float64{1, 1.1}, []float64{2, 2.2}, TooFew, 2},
		{"three and three", []float64{1, 2, 3}, []float64{10, 20, 30}, TooFew, 10},
		{"four and four can show it: 2/70", []float64{1, 2, 3, 4}, []float64{10, 20, 30, 40}, Better, 10},
		{"one and one that are equal", []float64{5}, []float64{5}, TooFew, 1},
		{"all equal", repeated(9, 5), repeated(9, 5), Noise, 1},
		{"from zero", repeated(9, 0), repeated(9, 5), Better, math.NaN()},
		{"to zero", repeated(9, 5), repeated(9, 0), Worse, 0},
		{"negative", repeated(9, -5), repeated(9, -1), Better, math.NaN()},
		{"one against many", []float64{1}, []float64{2, 3, 4, 5, 6, 7, 8, 9, 10}, TooFew, 6},
		{"one against 39 can show it: 2/40", []float64{1}, append(repeated(38, 2), 3), Better, 2},
	} {
		got := changed(t, "higher", c.before, c.after)
		if v := got.Change; v.Verdict != c.verdict || v.Ratio.Value != c.ratio && !(math.IsNaN(c.ratio) && math.IsNaN(v.Ratio.Value)) || v.P < 0 || v.P > 1 {
			t.Errorf("%s: %s, %+v, p %v", c.what, v.Verdict, v.Ratio, v.P)
		}
	}
}
