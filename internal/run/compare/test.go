// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/lib/stat"
)

// test computes the changes of all rows and corrects their P. The outcomes and the other metrics are two families, each
// with half of Alpha, so that a few repetitions can show a change of an outcome beside many metrics. Within a family the
// correction is Holm's. The chance of any false result in the table is at most Alpha.
func (t *Table) test() {
	var changes [2][]*Change
	for i := range t.Rows {
		row := &t.Rows[i]
		for j := range row.Cells {
			if j == t.Baseline {
				continue
			}
			c := changeOf(row.Cells[t.Baseline].Values, row.Cells[j].Values)
			row.Cells[j].Change = c
			if !math.IsNaN(c.P) && !row.constant() {
				changes[familyIndex(row.Metric)] = append(changes[familyIndex(row.Metric)], c)
			}
		}
	}
	split := 1.0
	if len(changes[0]) > 0 && len(changes[1]) > 0 {
		split = 2
	}
	for _, family := range changes {
		p := make([]float64, len(family))
		for i, c := range family {
			p[i] = c.P
		}
		for i, corrected := range stat.Holm(p) {
			family[i].Corrected = math.Min(1, split*corrected)
		}
		t.Tests += len(family)
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		for j, c := range row.Cells {
			if c.Change != nil {
				tests := split * float64(max(1, len(changes[familyIndex(row.Metric)])))
				level := Alpha / tests
				c.Change.least = stat.LeastP(len(row.Cells[t.Baseline].Values), len(row.Cells[j].Values)) * tests
				c.Change.Detectable = t.detect(row.Cells[t.Baseline].Values, row.Cells[j].Values, level)
			}
		}
	}
	t.tooFew(int(split)*len(changes[0]), int(split)*len(changes[1]))
}

// constant reports whether all repetitions have the same value. Then there is nothing to test.
func (r *Row) constant() bool {
	var all []float64
	for _, c := range r.Cells {
		all = append(all, c.Values...)
	}
	return len(all) == 0 || slices.Min(all) == slices.Max(all)
}

// familyIndex is 0 for outcomes and 1 for other metrics.
func familyIndex(m Metric) int {
	if m.Area == Outcome {
		return 0
	}
	return 1
}

func changeOf(before, after []float64) *Change {
	test := stat.MannWhitney(before, after)
	rises := test.U > float64(test.N1*test.N2)/2 // the medians may be equal, with many ties
	return &Change{Ratio: stat.Factor(before, after, confidenceLevel), P: test.P, Exact: test.Exact, Corrected: test.P, rises: rises}
}

// detect returns the smallest factor that the test finds in 4 of 5 cases at a level, if the logarithms of both samples
// are normal with the scatter that they have.
func (t *Table) detect(before, after []float64, level float64) float64 {
	n1, n2 := len(before), len(after)
	squares := 0.0
	for _, x := range [][]float64{before, after} {
		mean := 0.0
		for _, v := range x {
			mean += math.Log(v) / float64(len(x))
		}
		for _, v := range x {
			squares += (math.Log(v) - mean) * (math.Log(v) - mean)
		}
	}
	if n1+n2 < 3 || !isNumber(squares) {
		return math.NaN()
	}
	key := [3]float64{float64(min(n1, n2)), float64(max(n1, n2)), level}
	d, there := t.detectable[key]
	if !there {
		d = stat.Detectable(min(n1, n2), max(n1, n2), level, power)
		t.detectable[key] = d
	}
	if math.IsInf(d, 1) {
		return d
	}
	return math.Exp(d * math.Sqrt(squares/float64(n1+n2-2)))
}

// tooFew notes that the repetitions are too few for the number of tests, and how many would do.
func (t *Table) tooFew(outcomes, others int) {
	for i, n := range t.sizes {
		if i == t.Baseline {
			continue
		}
		base := t.sizes[t.Baseline]
		for _, f := range []struct {
			tests int
			what  string
		}{{outcomes, "outcomes"}, {others, "other metrics"}} {
			if f.tests == 0 || stat.LeastP(base, n)*float64(f.tests) <= Alpha {
				continue
			}
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %d + %d repetitions cannot show a change of the %s at p <= %g with this number of metrics; %d + %d can",
				t.Groups[i].Name, base, n, f.what, Alpha, needed(f.tests), needed(f.tests)))
		}
	}
}

// needed returns the number of repetitions of each group with which so many tests can show a change.
func needed(tests int) int {
	n := 4
	for n < maxObservations && stat.LeastP(n, n)*float64(tests) > Alpha {
		n++
	}
	return n
}

// judge sets the verdicts.
func (t *Table) judge(force bool) {
	for i := range t.Rows {
		row := &t.Rows[i]
		for j := range row.Cells {
			c := row.Cells[j].Change
			if c == nil {
				continue
			}
			for _, d := range t.Differences {
				if d.explains(row.Metric, t.Baseline, j) {
					c.Explains = append(c.Explains, d.Name)
				}
			}
			c.Verdict = verdict(row, t.Baseline, j)
			if len(c.Explains) > 0 && c.Verdict != Missing {
				if t.Forced = t.Forced || force; !force {
					c.Verdict = Refused
				}
			}
		}
	}
}

// verdict judges the change of a row without its conditions.
func verdict(row *Row, base, j int) Verdict {
	before, after, c := row.Cells[base], row.Cells[j], row.Cells[j].Change
	switch {
	case len(before.Values) == 0 || len(after.Values) == 0:
		return Missing
	case stat.LeastP(len(before.Values), len(after.Values)) > Alpha:
		return TooFew // also if all are equal: another repetition may differ
	case row.constant():
		return Noise
	case c.Corrected > Alpha && c.least > Alpha:
		return TooFew
	case c.Corrected > Alpha:
		return Noise
	case row.Metric.Better == "":
		return Changed
	case c.rises == (row.Metric.Better == "higher"):
		return Better
	}
	return Worse
}
