// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/events"
	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// maxExplained is the maximum number of findings for which events are searched after a look, and explainTime the time
	// limit of all these searches.
	maxExplained = 20
	explainTime  = 15 * time.Second
	// explainWithin is how long after its beginning the events before a finding are searched, if queries fail.
	explainWithin = 30 * time.Minute
)

// shares returns what the workloads of each rule compete for.
func shares(rules []engine.Rule) map[string]analysis.Resource {
	all := make(map[string]analysis.Resource)
	for _, r := range rules {
		all[r.Name] = r.Shares
	}
	return all
}

// explain searches for the events before findings that are new, and for earlier values of their first figure. What fails is
// tried again after the next look.
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
		preceded, answered := events.Before(q, who, p.shares[e.Rule], e.Began)
		var earlier []analysis.Earlier
		if answered && len(e.Evidence) > 0 {
			one := e.Evidence[0]
			earlier, answered = events.Earlier(q, one.Name, one.Unit, one.Query, e.Began)
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

// explained adds to open findings what the history has of their beginning.
func (p *archive) explained(open []analysis.Finding) []analysis.Finding {
	for i := range open {
		if e, is := p.Opened(open[i].ID); is {
			open[i].Preceded, open[i].Earlier = e.Preceded, e.Earlier
		}
	}
	return open
}
