// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// unusable adds a sample that is not finite to each answer, which the engine drops. It does not add up other answers from such a
// one, so all queries are sent.
type unusable struct {
	query.Source
	sent *int
}

func (u unusable) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	*u.sent++
	samples, err := u.Source.Instant(ctx, expr, at)
	return append(samples, query.Sample{Labels: map[string]string{}, Time: at, Value: math.Inf(1)}), err
}

type countingSource struct {
	query.Source
	sent *int
}

func (c countingSource) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	*c.sent++
	return c.Source.Instant(ctx, expr, at)
}

// TestSumsAreWhatTheDatabaseSays: an analysis that adds up coarser answers from finer ones has the same result, to the last digit, as one
// that sends all queries.
func TestSumsAreWhatTheDatabaseSays(t *testing.T) {
	result := func(source query.Source, o engine.Options) string {
		o.Limiter = rules.Limits()
		r, err := engine.Evaluate(t.Context(), source, rules.All(), o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal([]any{r.Findings, r.Problems, r.Checked, r.Skipped, r.Limits})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	all, fewer := 0, 0
	compare := func(name string, source query.Source, o engine.Options) {
		if got, want := result(countingSource{source, &fewer}, o), result(unusable{source, &all}, o); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	for _, c := range some(varied(t), 40) {
		db, err := c.source(host)
		if err != nil {
			t.Fatal(err)
		}
		compare(c.file, db, c.options())
	}
	for _, s := range some(scenes(t), 10) {
		series, times := s.series()
		compare(s.name, s.store(t, series, times), engine.Options{Window: sceneWindow, At: times[len(times)-1]})
	}
	t.Logf("%d of %d queries are sent", fewer, all)
	if fewer >= all {
		t.Errorf("%d queries are sent, and %d without sums", fewer, all)
	}
}
