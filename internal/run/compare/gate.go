// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
)

// Condition is a bound of a change, such as syscalls_per_op > +5%.
type Condition struct {
	Text   string
	Metric string  // ID of a metric
	Above  bool    // whether changes above the bound fail
	Bound  float64 // factor of the medians: 1.05 for +5%
}

// maxConditions is the number of conditions of a comparison.
const maxConditions = 100

const maxCondition = 512 // bytes

var grammar = lazy.Regexp(`^([A-Za-z_][A-Za-z0-9_.:/-]*(?:\{[^{}]+\})?)\s*([<>])\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*%$`)

// ParseCondition reads a condition.
func ParseCondition(s string) (Condition, error) {
	fail := func(why string) (Condition, error) {
		return Condition{}, fmt.Errorf("--fail-on %q: %s, for example 'syscalls_per_op > +5%%' or 'throughput < -3%%'", text.Short(text.Terminal(s), 100), why)
	}
	if len(s) > maxCondition {
		return fail(fmt.Sprintf("it is longer than %d bytes", maxCondition))
	}
	m := grammar().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return fail("write a metric, > or <, and a change in percent")
	}
	percent, err := strconv.ParseFloat(m[3], 64)
	if err != nil || math.Abs(percent) > 1e6 {
		return fail("the change is too large")
	}
	c := Condition{Text: strings.TrimSpace(s), Metric: m[1], Above: m[2] == ">", Bound: 1 + percent/100}
	if c.Above && percent < 0 || !c.Above && percent > 0 {
		return fail("it is also true without a change: use > with a rise, and < with a fall")
	}
	if c.Bound <= 0 {
		return fail("no metric falls by 100 % or more")
	}
	return c, nil
}

// PerOp reports whether a condition is about a metric per operation.
func (c Condition) PerOp() bool { return strings.Contains(c.Metric, "_per_op") }

// Failure is a condition that a comparison meets.
type Failure struct {
	Condition string
	Metric    string
	Group     string // with the point of the sweep
	Files     []string
	Change    stat.Interval // factor, at the level of the gate
	Reason    string        // a sentence
}

// Check returns the conditions that are met. A change meets a condition if its whole interval is beyond the bound. The
// interval has the level 1 - Alpha/n for n conditions and pairs of groups. So all of them together fail with a
// probability of at most Alpha/2 although no change is beyond its bound. It is an error if a condition cannot be judged.
func Check(tables []*Table, conditions []Condition) ([]Failure, error) {
	pairs := 0
	for _, t := range tables {
		pairs += len(t.Groups) - 1
	}
	if len(conditions) > maxConditions {
		return nil, fmt.Errorf("%d conditions of --fail-on: use at most %d", len(conditions), maxConditions)
	}
	var failures []Failure
	var problems []error
	for _, c := range conditions {
		for _, t := range tables {
			found, err := t.check(c, Alpha/float64(pairs*len(conditions)))
			failures = append(failures, found...)
			problems = append(problems, err)
		}
	}
	return failures, errors.Join(problems...)
}

func (t *Table) check(c Condition, alpha float64) ([]Failure, error) {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Metric.ID() == c.Metric })
	if i < 0 {
		return nil, t.unknown(c)
	}
	var failures []Failure
	var problems []error
	for j, cell := range t.Rows[i].Cells {
		if j == t.Baseline {
			continue
		}
		f, err := t.meets(c, t.Rows[i], j, alpha)
		if err != nil {
			problems = append(problems, fmt.Errorf("--fail-on %q cannot be judged for %s: %w", c.Text, text.Terminal(t.name(j)), err))
		}
		if f != nil && cell.Change.Verdict != Refused {
			failures = append(failures, *f)
		}
	}
	return failures, errors.Join(problems...)
}

// meets judges one condition for one group.
func (t *Table) meets(c Condition, row Row, j int, alpha float64) (*Failure, error) {
	before, after, change := row.Cells[t.Baseline], row.Cells[j], row.Cells[j].Change
	switch {
	case change.Verdict == Missing:
		return nil, errors.New("a group was not measured")
	case change.Verdict == Refused:
		return nil, fmt.Errorf("%s differs, which can explain a change (--force judges nevertheless)", text.Terminal(strings.Join(change.Explains, ", ")))
	case stat.LeastP(len(before.Values), len(after.Values)) > alpha:
		n := 4
		for stat.LeastP(n, n) > alpha {
			n++
		}
		return nil, fmt.Errorf("%d + %d repetitions are too few; record at least %d + %d", len(before.Values), len(after.Values), n, n)
	}
	f := &Failure{Condition: c.Text, Metric: c.Metric, Group: t.name(j), Files: t.Groups[j].Files, Change: stat.Factor(before.Values, after.Values, 1-alpha)}
	if before.Median.Value == 0 {
		if !c.Above || after.Median.Value == 0 || change.P > alpha {
			return nil, nil
		}
		f.Reason = fmt.Sprintf("%s rose from 0 to %.4g %s", c.Metric, after.Median.Value, row.Metric.Unit)
		return f, nil
	}
	if c.Above && f.Change.Low <= c.Bound || !c.Above && f.Change.High >= c.Bound || math.IsNaN(f.Change.Value) {
		return nil, nil
	}
	f.Reason = fmt.Sprintf("%s changed by %s (interval %s to %s, n=%d+%d), which is beyond %s", c.Metric, Percent(f.Change.Value),
		Percent(f.Change.Low), Percent(f.Change.High), len(before.Values), len(after.Values), Percent(c.Bound))
	return f, nil
}

// name names a group with the point of the sweep.
func (t *Table) name(j int) string {
	if t.Title == "" {
		return t.Groups[j].Name
	}
	return t.Groups[j].Name + " at " + t.Title
}

func (t *Table) unknown(c Condition) error {
	var names []string
	for _, r := range t.Rows {
		names = append(names, r.Metric.ID())
	}
	if near := text.Nearest(c.Metric, names); near != "" {
		return fmt.Errorf("--fail-on %q: the table has no metric %s, did you mean %s?", c.Text, c.Metric, text.Terminal(near))
	}
	return fmt.Errorf("--fail-on %q: the table has no metric %s; \"teescope compare\" without --fail-on lists them", c.Text, c.Metric)
}

// Percent formats a factor as a change, such as +5.0%.
func Percent(factor float64) string {
	change := (factor - 1) * 100
	switch {
	case math.IsNaN(factor):
		return "unknown"
	case math.IsInf(factor, 0):
		return "unbounded"
	case math.Abs(change) >= 1000:
		return fmt.Sprintf("%+.0f%%", change)
	case math.Abs(change) >= 99.95:
		return fmt.Sprintf("%+.1f%%", change)
	case math.Abs(change) < 0.1 || change < -99.9 && change > -100:
		return fmt.Sprintf("%+.2f%%", change)
	}
	return fmt.Sprintf("%+.1f%%", change)
}
