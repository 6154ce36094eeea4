// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/server/prom"
)

// ahead answers the queries of looks at regular times. A query that is sent for the second time is evaluated for all times up to the
// end at once, which takes a small part of the time: each series is selected once and not for each look. It is not safe for concurrent
// use.
type ahead struct {
	*prom.Source
	end      time.Time
	step     time.Duration // between two looks
	asked    map[string]bool
	instants map[string]map[int64][]query.Sample // by query and time
	ranges   map[string]map[int64][]query.Series // by query and time of the look; each has the points of one look
}

func lookAhead(source *prom.Source, end time.Time, step time.Duration) *ahead {
	return &ahead{source, end, step, map[string]bool{}, map[string]map[int64][]query.Sample{}, map[string]map[int64][]query.Series{}}
}

// Instant implements [query.Source].
func (a *ahead) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	by, known := a.instants[expr]
	if !known {
		if !a.asked[expr] {
			a.asked[expr] = true
			return a.Source.Instant(ctx, expr, at)
		}
		all, err := a.Source.Range(ctx, expr, at, a.end, a.step)
		if err != nil {
			return nil, err
		}
		by = make(map[int64][]query.Sample)
		for _, s := range all {
			for _, p := range s.Points {
				by[p.Time.UnixNano()] = append(by[p.Time.UnixNano()], query.Sample{Labels: s.Labels, Time: p.Time, Value: p.Value})
			}
		}
		a.instants[expr] = by
	}
	return slices.Clone(by[at.UnixNano()]), nil
}

// Range implements [query.Source]. Looks overlap, so each value is computed once if the steps of a query divide the time between looks.
func (a *ahead) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	if a.step%step != 0 {
		return a.Source.Range(ctx, expr, start, end, step)
	}
	key := fmt.Sprint(expr, step, end.Sub(start))
	by, known := a.ranges[key]
	if !known {
		if !a.asked[key] {
			a.asked[key] = true
			return a.Source.Range(ctx, expr, start, end, step)
		}
		all, err := a.Source.Range(ctx, expr, start, a.end, step)
		if err != nil {
			return nil, err
		}
		by = make(map[int64][]query.Series)
		for at := end; !at.After(a.end); at = at.Add(a.step) {
			first, last := at.Add(start.Sub(end)), at
			for _, s := range all {
				from, _ := slices.BinarySearchFunc(s.Points, first, func(p query.Point, t time.Time) int { return p.Time.Compare(t) })
				to, _ := slices.BinarySearchFunc(s.Points, last.Add(1), func(p query.Point, t time.Time) int { return p.Time.Compare(t) })
				if from < to {
					by[at.UnixNano()] = append(by[at.UnixNano()], query.Series{Labels: s.Labels, Points: s.Points[from:to:to]})
				}
			}
		}
		a.ranges[key] = by
	}
	return slices.Clone(by[end.UnixNano()]), nil
}
