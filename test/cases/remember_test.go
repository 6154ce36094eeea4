// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// remembering sends each query to its source once. The tests send the rules' queries thousands of times, for series that do not
// change in between. It is safe for concurrent use.
type remembering struct {
	source query.Source

	mu       sync.Mutex
	instants map[string][]query.Sample
	ranges   map[string][]query.Series
}

func remember(source query.Source) *remembering {
	return &remembering{source: source, instants: make(map[string][]query.Sample), ranges: make(map[string][]query.Series)}
}

func (r *remembering) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	return once(&r.mu, r.instants, fmt.Sprint(expr, at.UnixNano()), func() ([]query.Sample, error) { return r.source.Instant(ctx, expr, at) })
}

func (r *remembering) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	return once(&r.mu, r.ranges, fmt.Sprint(expr, start.UnixNano(), end.UnixNano(), step), func() ([]query.Series, error) {
		return r.source.Range(ctx, expr, start, end, step)
	})
}

// once returns a copy of what is known, or asks. An error is not kept.
func once[T any](mu *sync.Mutex, known map[string][]T, key string, ask func() ([]T, error)) ([]T, error) {
	mu.Lock()
	answer, is := known[key]
	mu.Unlock()
	if is {
		return slices.Clone(answer), nil
	}
	answer, err := ask()
	if err != nil {
		return nil, err
	}
	mu.Lock()
	known[key] = answer
	mu.Unlock()
	return slices.Clone(answer), nil
}

// spoilt is a case of which one metric was changed. Queries that cannot select it have the answers of the whole case.
type spoilt struct {
	metric         string
	whole, changed query.Source
}

// nameless matches queries with a selector whose metrics are not in its text.
var nameless = regexp.MustCompile(`__name__|(^|[^a-zA-Z0-9_:])\{`)

func (s spoilt) of(expr string) query.Source {
	if strings.Contains(expr, s.metric) || nameless.MatchString(expr) {
		return s.changed
	}
	return s.whole
}

func (s spoilt) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	return s.of(expr).Instant(ctx, expr, at)
}

func (s spoilt) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	return s.of(expr).Range(ctx, expr, start, end, step)
}

// judge runs all rules on a source with the options of a case.
func (c testCase) judge(t *testing.T, source query.Source) engine.Result {
	t.Helper()
	r, err := engine.Evaluate(t.Context(), source, rules.All(), c.options())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// remembered returns a source with the series of a case that asks each query once.
func (c testCase) remembered(t *testing.T) *remembering {
	t.Helper()
	db, err := c.source(host)
	if err != nil {
		t.Fatal(err)
	}
	return remember(db)
}

// What is remembered leads to the same result as asking everything again.
func TestRememberedAnswersAreTheSame(t *testing.T) {
	all := positives(t)
	for i := 0; i < len(all); i += 12 {
		c := all[i]
		whole := c.remembered(t)
		c.judge(t, whole)
		names := c.metrics()
		for _, name := range []string{names[0], names[len(names)-1]} {
			missing := c.change(func(s series) (string, bool) { return s.Values, metric(s) != name })
			if len(missing.Input) == 0 {
				continue
			}
			want, err := missing.evaluate(rules.All())
			if err != nil {
				t.Fatal(err)
			}
			got := c.judge(t, spoilt{metric: name, whole: whole, changed: missing.remembered(t)})
			if g, w := statements(got), statements(want); !maps.Equal(g, w) {
				t.Errorf("%s without %s: %v, want %v", c.file, name, g, w)
			}
		}
	}
}

// statements counts the statements of a result.
func statements(r engine.Result) map[string]int {
	texts := make(map[string]int)
	for _, f := range r.Findings {
		texts[fmt.Sprint(f.Rule, f.Workload, f.Severity, f.Confidence, f.Cause, gain(f), f.Explains)]++
	}
	for _, p := range r.Problems {
		texts[fmt.Sprint(p.Kind, p.Query, p.Error, p.Rules)]++
	}
	return texts
}
