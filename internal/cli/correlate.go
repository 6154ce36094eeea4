// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/runs"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
)

// LiveRuns selects the runs of a workload that a server has observed.
type LiveRuns struct {
	Server   string
	Access   remote.Access
	Workload string
	Info     string            // an info metric whose labels are the settings; empty for those that the agents export
	Outcomes map[string]string // queries by name; empty for what agents count
	Span     time.Duration     // how far back
	Timeout  time.Duration
}

// Table asks the server for the table of runs. The warnings say what could not be asked, and are fit for a terminal.
func (l LiveRuns) Table(ctx context.Context) (table []runs.Run, warnings []string, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, l.Timeout, fmt.Errorf("not finished within %s; --timeout allows more, and a shorter --range needs less", l.Timeout))
	defer stop()
	server, source, err := openServer(ctx, l.Server, l.Access, l.Timeout)
	if err != nil {
		return nil, nil, err
	}
	asked := runs.Live(l.Workload, l.Info, l.Outcomes, time.Now(), l.Span)
	table, problems := runs.FromSeries(ctx, source, asked)
	if cause := context.Cause(ctx); cause != nil {
		return nil, nil, cause
	}
	warnings = append(source.Warnings(), "the settings were not changed at random: what else differed between these times and machines is part of each correlation")
	for _, p := range problems {
		warnings = append(warnings, text.Terminal(fmt.Sprintf("%s: %s", p.Query, p.Error)))
	}
	if len(table) == 0 {
		return nil, warnings, fmt.Errorf("%s has no time of %s or more in which the settings of %s are known and stayed the same: a longer --range finds more, and workloads.settings of the agents names the settings",
			server.Target(), query.Duration(2*asked.Step), text.Terminal(l.Workload))
	}
	return table, warnings, nil
}
