// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// positives returns the cases with a cause to find.
func positives(t *testing.T) []testCase {
	return slices.DeleteFunc(varied(t), func(c testCase) bool { return c.kind != positive })
}

// right reports whether a finding belongs to a case. So does a finding that another one explains, because it shows when
// the other one cannot.
func (c testCase) right(f analysis.Finding, whole engine.Result) bool {
	explained := slices.ContainsFunc(whole.Findings, func(by analysis.Finding) bool {
		return by.Workload == f.Workload && slices.Contains(by.Explains, f.Rule)
	})
	return explained || f.Severity == analysis.Info || f.Rule == c.Want.Rule || slices.Contains(c.Also, f.Rule)
}

// onlyRight fails on findings that do not belong to the case, and on broken rules.
func (c testCase) onlyRight(t *testing.T, spoilt string, r, whole engine.Result) {
	t.Helper()
	for _, f := range r.Findings {
		if !c.right(f, whole) {
			t.Errorf("%s, %s: found %s at %q, which is not there: %s (%s, gain %s)", c.file, spoilt, f.Rule, f.Workload, f.Cause, f.Severity, gain(f))
		}
	}
	for _, p := range r.Problems {
		if p.Kind == query.Broken {
			t.Errorf("%s, %s: %s: %v", c.file, spoilt, p.Error, p.Rules)
		}
	}
}

// whole returns the result of an unchanged case.
func (c testCase) whole(t *testing.T) engine.Result {
	t.Helper()
	r, err := c.evaluate(rules.All())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// change rewrites the values of the series that it returns true for.
func (c testCase) change(values func(series) (string, bool)) testCase {
	var input []series
	for _, s := range c.Input {
		if changed, keep := values(s); keep {
			input = append(input, series{s.Series, changed})
		}
	}
	c.Input = input
	return c
}

func metric(s series) string {
	name, _, _ := strings.Cut(s.Series, "{")
	return name
}

func (c testCase) metrics() []string {
	var names []string
	for _, s := range c.Input {
		names = append(names, metric(s))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// steady matches a series with a start value and constant steps: 0+10x60.
var steady = regexp.MustCompile(`^\s*([-+.0-9e]+?)(\+[.0-9e]+)?x([0-9]+)\s*$`)

// halves splits a steady series into two halves.
func halves(values string) (first, second string, ok bool) {
	parts := steady.FindStringSubmatch(values)
	if parts == nil {
		return "", "", false
	}
	n, err := strconv.Atoi(parts[3])
	start, e := strconv.ParseFloat(parts[1], 64)
	if err != nil || e != nil || n < 4 {
		return "", "", false
	}
	step, _ := strconv.ParseFloat(strings.TrimPrefix(parts[2], "+"), 64)
	half := n / 2
	notation := func(from float64, n int) string {
		return fmt.Sprintf("%s%sx%d", strconv.FormatFloat(from, 'f', -1, 64), parts[2], n)
	}
	return notation(start, half), notation(start+step*float64(half+1), n-half-1), true
}

func TestMissingAndBrokenMetrics(t *testing.T) {
	for _, c := range positives(t) {
		source := c.remembered(t)
		whole := c.judge(t, source)
		for _, name := range c.metrics() {
			missing := c.change(func(s series) (string, bool) { return s.Values, metric(s) != name })
			if len(missing.Input) == 0 {
				continue
			}
			r := c.judge(t, spoilt{metric: name, whole: source, changed: missing.remembered(t)})
			c.onlyRight(t, "without "+name, r, whole)
			changed := false
			broken := c.change(func(s series) (string, bool) {
				if first, second, ok := halves(s.Values); ok && metric(s) == name {
					changed = true
					return first + " NaN " + second, true
				}
				return s.Values, true
			})
			if !changed { // its result is known
				continue
			}
			r = c.judge(t, spoilt{metric: name, whole: source, changed: broken.remembered(t)})
			c.onlyRight(t, "with NaN in "+name, r, whole)
		}
	}
}

// TestCounterResets: a restart of the agent in the middle changes nothing.
func TestCounterResets(t *testing.T) {
	for _, c := range positives(t) {
		reset := c.change(func(s series) (string, bool) {
			if first, _, ok := halves(s.Values); ok && strings.Contains(s.Values, "+") {
				return first + " " + first, true
			}
			return s.Values, true
		})
		r, err := reset.evaluate(rules.All())
		if err != nil {
			t.Fatal(err)
		}
		c.onlyRight(t, "with counters that begin again", r, c.whole(t))
		if !slices.ContainsFunc(r.Findings, func(f analysis.Finding) bool { return f.Rule == c.Want.Rule }) {
			t.Errorf("%s, with counter resets: %s was not found", c.file, c.Want.Rule)
		}
	}
}

// TestGapsAndClockSteps: there is no finding if most of the window has no data.
func TestGapsAndClockSteps(t *testing.T) {
	for _, c := range positives(t) {
		store, err := c.store(host)
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Source()
		if err != nil {
			t.Fatal(err)
		}
		late := c.options()
		late.At = late.At.Add(late.Window * 7 / 10)
		if _, last := store.Bounds(); !last.After(c.end().Add(time.Duration(c.Interval))) {
			r, err := engine.Evaluate(t.Context(), db, rules.All(), late)
			if err != nil {
				t.Fatal(err)
			}
			c.nothing(t, "without samples in most of the window", r)
		}
		step := c
		n := int(c.At / c.Interval)
		step.Input = append(slices.Clone(c.Input), series{
			`teescope_clock_steps_total{direction="forward"}`, fmt.Sprintf("0x%d 1x%d", n-4, 3),
		})
		r, err := step.evaluate(rules.All())
		if err != nil {
			t.Fatal(err)
		}
		c.nothing(t, "with a clock that was set", r)
	}
}

// TestUncountedEvents: the agent did not count frequent events for a part of the window, or for all of it.
func TestUncountedEvents(t *testing.T) {
	for _, c := range positives(t) {
		whole := c.whole(t)
		off := c
		off.Input = append(slices.Clone(c.Input), series{`teescope_self_level{level="off"}`, fmt.Sprintf("0x%d 1 0x9", c.At/c.Interval-10)})
		r, err := off.evaluate(rules.All())
		if err != nil {
			t.Fatal(err)
		}
		c.onlyRight(t, "when frequent events were not counted", r, whole)
	}
}

// nothing fails on any finding, and if no problem explains the absence of findings.
func (c testCase) nothing(t *testing.T, spoilt string, r engine.Result) {
	t.Helper()
	for _, f := range r.Findings {
		t.Errorf("%s, %s: found %s at %q", c.file, spoilt, f.Rule, f.Workload)
	}
	if !slices.ContainsFunc(r.Problems, func(p query.Problem) bool { return p.Kind == query.Gap || p.Kind == query.Failed }) {
		t.Errorf("%s, %s: no problem says why nothing is found: %+v", c.file, spoilt, r.Problems)
	}
}

// faulty is a source with queries that fail or never end.
type faulty struct {
	query.Source
	fails, hangs func(query string) bool
}

func (f faulty) spoil(ctx context.Context, query string) error {
	if f.fails != nil && f.fails(query) {
		return errors.New("server error: 503 Service Unavailable")
	}
	if f.hangs != nil && f.hangs(query) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (f faulty) Instant(ctx context.Context, query string, at time.Time) ([]query.Sample, error) {
	if err := f.spoil(ctx, query); err != nil {
		return nil, err
	}
	return f.Source.Instant(ctx, query, at)
}

func (f faulty) Range(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	if err := f.spoil(ctx, query); err != nil {
		return nil, err
	}
	return f.Source.Range(ctx, query, start, end, step)
}

// TestSourcesThatFail: one query fails, or all queries fail or never end.
func TestSourcesThatFail(t *testing.T) {
	for _, c := range positives(t) {
		db := c.remembered(t)
		whole := c.judge(t, db)
		for broken := range answered(whole) {
			r, err := engine.Evaluate(t.Context(), faulty{Source: db, fails: func(q string) bool { return q == broken }}, rules.All(), c.options())
			if err != nil {
				t.Fatal(err)
			}
			c.onlyRight(t, "when "+broken+" fails", r, whole)
		}
		all := func(string) bool { return true }
		o := c.options()
		o.Timeout = 20 * time.Millisecond
		for spoilt, source := range map[string]query.Source{
			"when every query fails": faulty{Source: db, fails: all},
			"when none has an end":   faulty{Source: db, hangs: all},
		} {
			r, err := engine.Evaluate(t.Context(), source, rules.All(), o)
			if err != nil {
				t.Fatal(err)
			}
			c.nothing(t, spoilt, r)
		}
	}
}

// answered returns the queries of rules that had samples.
func answered(r engine.Result) map[string]bool {
	queries := make(map[string]bool)
	for _, rule := range rules.All() {
		for _, s := range rule.Signals {
			queries[strings.NewReplacer("$window", "5m", "$whole", "5m").Replace(s.Query)] = true
		}
	}
	for _, p := range r.Problems {
		delete(queries, p.Query)
	}
	return queries
}

// TestASilentAgentIsNamed: a report says that an agent did not answer, how often, and since when.
func TestASilentAgentIsNamed(t *testing.T) {
	c := positives(t)[0]
	step := time.Duration(c.Interval)
	n := int(c.At / c.Interval)
	since := c.end().Add(-9 * step).UTC().Format("15:04:05")
	for values, want := range map[string]string{
		fmt.Sprintf("1x%d 0x8", n-9):     "the agent did not answer 9 of .* scrapes, and none since " + since + " UTC",
		fmt.Sprintf("1x%d 0x1 1x5", n-8): "the agent did not answer 2 of .* scrapes$",
		fmt.Sprintf("0x%d", n):           "the agent did not answer .* scrapes, and none in this window$",
		fmt.Sprintf("1x%d", n):           "",
	} {
		silent := c
		silent.Input = append(slices.Clone(c.Input), series{`up{job="teescope"}`, values})
		r, err := silent.evaluate(rules.All())
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, p := range r.Problems {
			if strings.Contains(p.Error, "did not answer") {
				said += p.Error
			}
		}
		if (want == "") != (said == "") || !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("up %s: %q, want %q", values, said, want)
		}
	}
}
