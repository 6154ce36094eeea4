// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

// Queries about scrapes of agents.
const (
	missedQuery   = `sum by (instance) (count_over_time(up{job="teescope"}[$window]) - sum_over_time(up{job="teescope"}[$window])) > 0`
	scrapesQuery  = `sum by (instance) (count_over_time(up{job="teescope"}[$window]))`
	answeredQuery = `max by (instance) (max_over_time(timestamp(up{job="teescope"} == 1)[$window:]))`
	silentQuery   = `max by (instance) (up{job="teescope"}) == 0`
)

// noteSilence says which agents did not answer within the window, and since when if they still do not. There is no data
// about that time.
func noteSilence(q *inquiry) {
	missed := q.own(missedQuery).samples
	if len(missed) == 0 {
		return
	}
	of := func(expr string) map[string]float64 {
		by := make(map[string]float64)
		for _, s := range q.own(expr).samples {
			by[s.Labels["instance"]] = s.Value
		}
		return by
	}
	scrapes, answered, silent := of(scrapesQuery), of(answeredQuery), of(silentQuery)
	for _, s := range missed {
		instance := s.Labels["instance"]
		text := fmt.Sprintf("the agent did not answer %.0f of %.0f scrapes", s.Value, scrapes[instance])
		if _, still := silent[instance]; still {
			if at, ok := answered[instance]; ok {
				text += ", and none since " + time.Unix(int64(at), 0).UTC().Format("15:04:05 UTC")
			} else {
				text += ", and none in this window"
			}
		}
		q.note(query.Problem{Kind: query.Gap, Instance: instance, Error: text})
	}
}
