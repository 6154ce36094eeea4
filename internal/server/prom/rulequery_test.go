// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	engine "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/promql"
)

// Only rules about metrics that the database has are run, from the first series on.
func TestRulesWithoutMetricsAreNotRun(t *testing.T) {
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	add := func(name string) {
		app := db.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings("__name__", name), 0, time.Now().UnixMilli(), 1, nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	var run []string
	r := &ruleQueries{db: db, parsed: map[string]promql.Query{}, run: func(_ context.Context, text string, _ time.Time) (engine.Vector, error) {
		run = append(run, text)
		return nil, nil
	}}
	ask := func(want ...string) {
		t.Helper()
		run = nil
		for _, text := range []string{"rate(a[5m]) > 1", "a and b", "absent(b)", "a or b", "a +"} {
			if _, err := r.query(t.Context(), text, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(run, want) {
			t.Errorf("run: %q, want %q", run, want)
		}
	}
	ask("absent(b)", "a +")
	add("a")
	ask("rate(a[5m]) > 1", "absent(b)", "a or b", "a +")
	add("b")
	ask("rate(a[5m]) > 1", "a and b", "absent(b)", "a or b", "a +")
}
