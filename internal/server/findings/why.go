// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/events"
	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// maxExplained is the maximum number of findings for which events are searched after an evaluation, and explainTime the time
	// limit of all these searches.
	maxExplained = 20
	explainTime  = 15 * time.Second
	// explainWithin is how long after its beginning the events before a finding are searched, if queries fail.
	explainWithin = 30 * time.Minute
	// leastPart is the least part of the time before and after an event. A rate needs four samples in it.
	leastPart = time.Minute
)

// resources returns the resource that the workloads of each rule compete for.
func resources(rules []engine.Rule) map[string]analysis.Resource {
	all := make(map[string]analysis.Resource)
	for _, r := range rules {
		all[r.Name] = r.CompetesFor
	}
	return all
}

// search searches for the events before new findings and before the ends of closed ones. A bug in it must not end the
// program.
func (p *archive) search(ctx context.Context, source query.Source, at time.Time) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(err, fmt.Errorf("the search for events panicked: %v", r))
		}
	}()
	return errors.Join(p.explain(ctx, source, at), p.assess(ctx, source, at))
}

// explain searches for the events before findings that are new, and for earlier values of their first figure. A failed
// search is repeated after the next evaluation.
func (p *archive) explain(ctx context.Context, source query.Source, at time.Time) error {
	fresh := p.Select(func(e history.Entry) bool {
		return e.Open() && !e.Explained && at.Sub(e.Began) <= explainWithin && !e.Began.After(at)
	})
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	found := make(map[uint64]func(*history.Entry))
	for _, e := range fresh[:min(len(fresh), maxExplained)] {
		q := query.NewAsker(ctx, source, perQuery)
		who := query.Target{Workload: e.Workload, Instance: e.Instance}
		preceded, answered := events.Before(q, who, p.resources[e.Rule], e.Began)
		var earlier []analysis.Earlier
		if answered && len(e.Evidence) > 0 {
			one := e.Evidence[0]
			earlier, answered = events.Earlier(q, one.Name, one.Unit, one.Query, e.Began, preceded)
		}
		if !answered || ctx.Err() != nil {
			continue
		}
		found[e.Number] = func(e *history.Entry) { e.Explained, e.Preceded, e.Earlier = true, preceded, earlier }
	}
	if len(found) == 0 {
		return nil
	}
	return p.Change(found)
}

// assess searches for the events before the ends of findings, and measures what has changed since. A finding is closed some
// time after its end, so there is a time to measure then.
func (p *archive) assess(ctx context.Context, source query.Source, at time.Time) error {
	over := p.Select(func(e history.Entry) bool {
		return !e.Open() && !e.Assessed && !e.EndUnknown && at.Sub(e.Closed) <= explainWithin && !e.Closed.After(at)
	})
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	found := make(map[uint64]func(*history.Entry))
	for _, e := range over[:min(len(over), maxExplained)] {
		q := query.NewAsker(ctx, source, perQuery)
		outcome, answered := outcomeOf(q, e, p.part)
		if !answered || len(q.Problems) > 0 || ctx.Err() != nil {
			continue
		}
		found[e.Number] = func(e *history.Entry) { e.Assessed, e.Outcome = true, outcome }
	}
	if len(found) == 0 {
		return nil
	}
	return p.Change(found)
}

// outcomeOf returns nil if no event preceded the end.
func outcomeOf(q *query.Asker, e history.Entry, part time.Duration) (*history.Outcome, bool) {
	who := query.Target{Workload: e.Workload, Instance: e.Instance}
	after, answered := events.Before(q, who, "", e.Ended)
	switch {
	case !answered:
		return nil, false
	case events.Gone(q, who, e.Closed):
		return &history.Outcome{After: after, Gone: true}, true
	case len(after) == 0:
		return nil, true
	}
	o := &history.Outcome{After: after}
	if len(e.Evidence) > 0 && e.Evidence[0].Query != "" {
		one := e.Evidence[0]
		o.Evidence = changeOf(one.Name, one.Unit, events.Changed(q, one.Query, e.Began, after[0].At, e.Closed, part))
	}
	if e.Workload != "" {
		measured := func(name, unit, expr string) *history.Change {
			return changeOf(name, unit, events.Changed(q, expr, e.Began, after[0].At, e.Closed, part))
		}
		o.Cores = measured("CPU time", "cores", events.Cores(who))
		o.Operations = measured("operations", "1/s", events.Operations(who))
		o.PerOperation = measured("CPU time of an operation", "seconds", events.CPUPerOperation(who))
	}
	return o, true
}

func changeOf(name, unit string, c *events.Change) *history.Change {
	if c == nil {
		return nil
	}
	one := &history.Change{Name: name, Unit: unit, Before: c.Before, After: c.After, NBefore: c.NBefore, NAfter: c.NAfter, Query: c.Query}
	if !math.IsNaN(c.Low) && !math.IsNaN(c.High) {
		one.Low, one.High = &c.Low, &c.High
	}
	return one
}

// explained adds to open findings what the history has of their beginning.
func (p *archive) explained(open []analysis.Finding) []analysis.Finding {
	for i := range open {
		if e, is := p.Opened(open[i].ID); is {
			open[i].Preceded, open[i].Earlier = e.Preceded, e.Earlier
		}
	}
	return open
}
