// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
)

// looks holds the results of the last evaluations of one cause, the newest first: its severity, or nothing. Evaluations that
// could not have found it do not count.
type looks [lastLooks]analysis.Severity

// with returns the results with a further one.
func (s looks) with(severity analysis.Severity) looks {
	copy(s[1:], s[:])
	s[0] = severity
	return s
}

// found returns how many evaluations have found the cause.
func (s looks) found() (n int) {
	for _, severity := range s {
		if severity != "" {
			n++
		}
	}
	return n
}

// severity returns the highest severity that enough of the evaluations agree on. It is empty if too few have found the cause.
func (s looks) severity() analysis.Severity {
	sorted := slices.Clone(s[:])
	slices.SortFunc(sorted, func(a, b analysis.Severity) int { return cmp.Compare(b.LeastGain(), a.LeastGain()) })
	return sorted[openAfter-1]
}

// look is the state of one cause that is or was found.
type look struct {
	rule, workload, instance string
	looks
	known time.Time // the last evaluation that could have found it
}

// remember adds the results of an evaluation. It keeps at most as many as there are findings in two windows.
func (l *Ledger) remember(r Observation) {
	found := make(map[string]analysis.Finding, len(r.Findings))
	for _, f := range r.Findings {
		found[f.ID] = f
	}
	for id, seen := range l.looks {
		if _, again := found[id]; again {
			continue
		}
		if r.Knows(seen.rule, seen.workload, seen.instance) {
			seen.looks, seen.known = seen.with(""), r.At
		}
		if seen.found() == 0 || r.At.Sub(seen.known) > closeAfter*r.Window {
			delete(l.looks, id)
		} else {
			l.looks[id] = seen
		}
	}
	for id, f := range found {
		l.looks[id] = look{f.Rule, f.Workload, f.Instance, l.looks[id].with(f.Severity), r.At}
	}
}

// ended holds the times at which findings of the last day closed, by ID.
type ended map[string]time.Time

// within reports whether a finding closed within the last day.
func (e ended) within(id string, now time.Time) bool {
	at, known := e[id]
	return known && now.Sub(at) < againWithin
}

// add adds a finding and forgets those of more than a day ago. If there are too many, it is not added.
func (e ended) add(id string, now time.Time) {
	maps.DeleteFunc(e, func(_ string, at time.Time) bool { return now.Sub(at) >= againWithin || at.After(now) })
	if len(e) < maxEnded {
		e[id] = now
	}
}
