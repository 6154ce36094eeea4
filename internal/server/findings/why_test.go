// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
)

// restarted is a source of a workload that is watched for a day and was restarted once.
type restarted struct {
	*source
	at     time.Time
	broken error // of queries about events
	panics bool
	asked  int // about events
}

func (r *restarted) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	one := func(v float64, labels map[string]string) ([]query.Sample, error) {
		return []query.Sample{{Labels: labels, Time: at, Value: v}}, nil
	}
	switch {
	case strings.Contains(expr, "count_over_time(group("):
		r.asked++
		if r.panics {
			panic("a bug")
		}
		return one(288, nil)
	case strings.HasPrefix(expr, "sum(changes(teescope_workload_change"):
		return one(1, nil)
	case strings.Contains(expr, `(teescope_workload_change_timestamp_seconds{instance="a:1",workload="busy"})`):
		if r.broken != nil {
			return nil, r.broken
		}
		return one(float64(r.at.Unix()), map[string]string{"change": "restart"})
	}
	return r.source.Instant(ctx, expr, at)
}

// Events are searched until a query answers, once for each finding. What was found is kept over a restart of the server.
func TestWhatPrecededAFindingIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &restarted{source: &source{calls: map[string]float64{"busy": 5000}}, at: began.Add(-2 * time.Minute), broken: errors.New("overloaded")}
		a, _ := analyst(t, r.source, nil)
		a.opts.Source = r
		look := func(a *Analyst) analysis.Finding {
			t.Helper()
			if err := a.once(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			status, body := ask(t, a, "")
			var report render.Report
			if err := json.Unmarshal(body, &report); status != 200 || err != nil || len(report.Findings) != 1 {
				t.Fatalf("%d %v %s", status, err, body)
			}
			return report.Findings[0]
		}
		look(a) // not confirmed
		if f := look(a); len(f.Preceded) != 0 || r.asked != 1 {
			t.Errorf("while queries fail: %+v, asked %d times", f.Preceded, r.asked)
		}
		r.panics = true
		if err := a.once(t.Context()); err == nil || !strings.Contains(err.Error(), "the search for events panicked: a bug") {
			t.Errorf("a bug in the search: %v", err)
		}
		r.panics, r.broken = false, nil
		check := func(f analysis.Finding) {
			t.Helper()
			if len(f.Preceded) != 1 || f.Preceded[0].What != "busy was restarted" || f.Preceded[0].Seconds != 120 || !f.Preceded[0].At.Equal(r.at) {
				t.Errorf("preceded by %+v", f.Preceded)
			}
		}
		check(look(a))
		check(look(a))
		if r.asked != 3 {
			t.Errorf("events were searched %d times", r.asked)
		}
		b := New(a.opts)
		if err := b.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(look(b))
		if r.asked != 3 {
			t.Errorf("events were searched again after a restart: %d times", r.asked)
		}
	})
}

// A search that never ends is stopped, and delays no report.
func TestASearchHasATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{calls: map[string]float64{"busy": 5000}}
		a, _ := analyst(t, s, nil)
		for range 2 {
			if err := a.once(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		s.set(func(s *source) { s.block = true })
		p := openArchive(Options{Rules: a.opts.Rules, Log: slog.New(slog.DiscardHandler)}, time.Now(), a.ledger.Open(), nil)
		began := time.Now()
		err := p.search(t.Context(), s, began)
		if took := time.Since(began); err != nil || took > 2*explainTime {
			t.Errorf("took %s, %v", took, err)
		}
		if e := p.Select(func(history.Entry) bool { return true }); len(e) != 1 || e[0].Explained {
			t.Errorf("%+v", e)
		}
	})
}
