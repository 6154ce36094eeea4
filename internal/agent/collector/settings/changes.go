// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"maps"
	"time"
)

const (
	// mostChanges is the maximum number of changes of a workload's settings within changesIn. Each change makes new series. A
	// program that restarts with another value each time would make one in each scrape.
	mostChanges = 12
	changesIn   = time.Hour
	// mostWorkloads is the maximum number of workloads that are remembered. Further ones have no settings.
	mostWorkloads = 4096
)

// history has the known settings of one workload.
type history struct {
	variables map[string]string
	changed   []time.Time // the last times, at most mostChanges+1
	seen      time.Time
}

// changes are the histories of workloads, by their labels.
type changes map[string]*history

// steady notes the present settings of a workload, and reports whether they have changed seldom enough to be exported.
func (c changes) steady(workload string, variables map[string]string, now time.Time) bool {
	h := c[workload]
	switch {
	case h == nil && len(c) >= mostWorkloads:
		return false
	case h == nil:
		h = &history{}
		c[workload] = h
		fallthrough
	case !maps.Equal(h.variables, variables):
		h.variables, h.changed = variables, append(h.changed, now)
	}
	h.seen = now
	for len(h.changed) > mostChanges+1 || len(h.changed) > 0 && now.Sub(h.changed[0]) >= changesIn {
		h.changed = h.changed[1:]
	}
	return len(h.changed) <= mostChanges
}

// tidy forgets workloads that have not been seen for so long that their changes no longer matter.
func (c changes) tidy(now time.Time) {
	maps.DeleteFunc(c, func(_ string, h *history) bool { return now.Sub(h.seen) >= changesIn })
}
