// SPDX-License-Identifier: Apache-2.0

// Package runs computes statistics over runs of a program: how outcomes depend on settings, and the expected outcome of
// an untried run.
//
// It does not depend on how a program is run.
package runs

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/lib/stat"
)

// A Run is one run of a program, or the time between two of its restarts, with its settings and outcomes.
type Run struct {
	Settings map[string]string  // manifest keys, threads, sizes
	Outcomes map[string]float64 // throughput and metrics; unmeasured ones are absent
	// Owner is whose run it is: a workload on a machine. Runs of one owner depend on each other. Without one, as in an
	// experiment, each run is an observation of its own.
	Owner string
}

// Bounds of a table of runs.
const (
	maxRuns    = 10_000
	maxColumns = 64 // each, of settings and of outcomes
)

// An Effect is the dependence of an outcome on a setting, over runs.
type Effect struct {
	Setting, Outcome string
	Rho              stat.Interval // Spearman's rank correlation, at 95 %
	P                float64       // two-sided, with Holm's correction for all tested effects
	// Codes are the values of a non-numeric setting in the order of their ranks: "off" below "on". It is empty for
	// numbers.
	Codes []string
}

// sure reports whether the effect is significant at 5 %, for all effects together.
func (e Effect) sure() bool { return e.P <= 0.05 }

// A Correlation is the result for a table of runs.
type Correlation struct {
	Runs    int
	Effects []Effect // by rising P
	Tests   int      // that P is corrected for
	// Together are pairs of settings that changed together in the runs, so that their effects cannot be separated.
	Together [][2]string
	Notes    []string // what was omitted, and why
}

// moveTogether is the rank correlation, relative to the largest possible one, above which two settings cannot be
// separated. Their common variance is then four fifths.
const moveTogether = 0.9

// Correlate tests each varying setting against each outcome. A non-numeric setting is tested if it has exactly two
// values, in alphabetical order, because three values have no order.
func Correlate(runs []Run) Correlation {
	c := Correlation{Runs: len(runs)}
	settings := c.columns(runs)
	outcomes := make(map[string][]float64)
	for i, r := range runs {
		for name, v := range r.Outcomes {
			if outcomes[name] == nil {
				outcomes[name] = nothing(len(runs))
			}
			outcomes[name][i] = v
		}
	}
	names := slices.Sorted(maps.Keys(outcomes))
	var p []float64
	for _, s := range settings {
		for _, outcome := range names {
			x, y := observations(runs, s.x, outcomes[outcome])
			found := stat.Spearman(x, y, 0.95)
			if math.IsNaN(found.P) {
				c.Notes = append(c.Notes, fmt.Sprintf("%s and %s: %d runs have both, or the outcome is always the same", s.name, outcome, found.Rho.N))
				continue
			}
			c.Effects = append(c.Effects, Effect{Setting: s.name, Outcome: outcome, Rho: found.Rho, Codes: s.codes})
			p = append(p, found.P)
		}
	}
	for i, corrected := range stat.Holm(p) {
		c.Effects[i].P = corrected
	}
	c.Tests = len(p)
	slices.SortStableFunc(c.Effects, func(a, b Effect) int {
		return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(math.Abs(b.Rho.Value), math.Abs(a.Rho.Value)))
	})
	for i, a := range settings {
		for _, b := range settings[i+1:] {
			if together(a.x, b.x) {
				c.Together = append(c.Together, [2]string{a.name, b.name})
			}
		}
	}
	return c
}

// observations returns the pairs of a setting and an outcome that count.
func observations(runs []Run, setting, outcome []float64) (x, y []float64) {
	var of pool
	for i, r := range runs {
		if !math.IsNaN(setting[i]) && !math.IsNaN(outcome[i]) && of.add(r.Owner, outcome[i], setting[i]) {
			x = append(x, setting[i])
		}
	}
	return x, of.medians()
}

// A pool makes one observation of the runs of one owner with the same values of the settings: their median outcome. What
// differs between machines would otherwise count once for each run of a machine (Hurlbert, Ecological Monographs 54(2), 1984,
// on pseudoreplication).
type pool struct {
	at       map[string]int
	outcomes [][]float64
}

// add adds the outcome of a run, and reports whether it is a new observation.
func (p *pool) add(owner string, outcome float64, settings ...float64) bool {
	if owner == "" {
		p.outcomes = append(p.outcomes, []float64{outcome})
		return true
	}
	key := []byte(owner)
	for _, v := range settings {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
	}
	if i, known := p.at[string(key)]; known {
		p.outcomes[i] = append(p.outcomes[i], outcome)
		return false
	}
	if p.at == nil {
		p.at = make(map[string]int)
	}
	p.at[string(key)] = len(p.outcomes)
	p.outcomes = append(p.outcomes, []float64{outcome})
	return true
}

func (p *pool) medians() (y []float64) {
	for _, of := range p.outcomes {
		y = append(y, stat.Median(of))
	}
	return y
}

// together reports whether two settings can hardly be separated. Ties keep a correlation below 1, so it is compared
// with that of the sorted values.
func together(x, y []float64) bool {
	var a, b []float64
	for i := range x {
		if !math.IsNaN(x[i]) && !math.IsNaN(y[i]) {
			a, b = append(a, x[i]), append(b, y[i])
		}
	}
	rho := stat.Spearman(a, b, 0.95).Rho.Value
	slices.Sort(a)
	slices.Sort(b)
	return math.Abs(rho) >= moveTogether*stat.Spearman(a, b, 0.95).Rho.Value
}

// A column is a setting as numbers in the order of the runs; NaN where it is not set.
type column struct {
	name  string
	x     []float64
	codes []string
}

// columns returns the varying settings that can be ranked, sorted by name.
func (c *Correlation) columns(runs []Run) []column {
	all := make(map[string]bool)
	for _, r := range runs {
		for name := range r.Settings {
			all[name] = true
		}
	}
	var columns []column
	for _, name := range slices.Sorted(maps.Keys(all)) {
		col := column{name: name, x: nothing(len(runs))}
		words := make(map[string]bool)
		numbers := true
		for i, r := range runs {
			if text, ok := r.Settings[name]; ok {
				words[text] = true
				v, ok := number(text)
				numbers = numbers && ok
				col.x[i] = v
			}
		}
		switch {
		case len(words) < 2:
			c.Notes = append(c.Notes, fmt.Sprintf("%s is the same in all runs", name))
			continue
		case !numbers && len(words) > 2:
			c.Notes = append(c.Notes, fmt.Sprintf("%s has %d values that are not all numbers: they have no order", name, len(words)))
			continue
		case !numbers:
			col.codes = slices.Sorted(maps.Keys(words))
			for i, r := range runs {
				if text, ok := r.Settings[name]; ok {
					col.x[i] = float64(slices.Index(col.codes, text))
				}
			}
		}
		columns = append(columns, col)
	}
	return columns
}

func nothing(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.NaN()
	}
	return x
}

// A Forecast is the outcome that a model of the runs expects of another run.
type Forecast struct {
	Outcome    string
	Settings   []string // in the model, in the order of its parameters
	Shape      stat.Shape
	Parameters []float64
	Scatter    float64 // residual standard deviation of the logarithm
	Prediction stat.Prediction
	Warnings   []string
}

// Predict fits a model of an outcome to the runs and evaluates it for settings that need not have been tried. Unnamed
// settings are assumed to be as in the runs, with a warning if they varied there.
func Predict(runs []Run, outcome string, at map[string]float64) (*Forecast, error) {
	f := &Forecast{Outcome: outcome, Settings: slices.Sorted(maps.Keys(at))}
	var rows [][]float64
	var point []float64
	var of pool
	there := false
	for _, name := range f.Settings {
		point = append(point, at[name])
	}
	for _, r := range runs {
		v, ok := r.Outcomes[outcome]
		there = there || ok
		row := make([]float64, 0, len(point))
		for _, name := range f.Settings {
			if text, set := r.Settings[name]; set {
				if x, isNumber := number(text); isNumber {
					row = append(row, x)
				}
			}
		}
		if ok && len(row) == len(point) && of.add(r.Owner, v, row...) {
			rows = append(rows, row)
		}
	}
	if !there {
		return nil, fmt.Errorf("no run has the outcome %q", outcome)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no run has %q and numbers for all of %q", outcome, f.Settings)
	}
	model, err := stat.Fit(rows, of.medians())
	if err != nil {
		return nil, fmt.Errorf("predicting %s: %w", outcome, err)
	}
	f.Shape, f.Parameters, f.Scatter = model.Shape, model.Parameters, model.Scatter
	f.Prediction = model.Predict(point, 0.95)
	if peak := model.Peak(); peak > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the outcome is greatest at %s=%.2g", f.Settings[0], peak))
	}
	if low, high := model.Break(); high > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the outcome breaks between %[1]s=%.2[2]g and %[1]s=%.2[3]g", f.Settings[0], low, high))
	}
	f.warn(runs, at)
	return f, nil
}

func (f *Forecast) warn(runs []Run, at map[string]float64) {
	if f.Prediction.Extrapolates {
		f.Warnings = append(f.Warnings, "this setting lies outside those that were tried: the interval holds only if the outcome goes on in the same way")
	}
	if f.Shape == stat.Constant {
		f.Warnings = append(f.Warnings, "the runs show no dependence on these settings that is worth a parameter")
	}
	var none Correlation
	for _, col := range none.columns(runs) {
		if _, named := at[col.name]; !named {
			f.Warnings = append(f.Warnings, fmt.Sprintf("%s varied in the runs and is not in the model", col.name))
		}
	}
}
