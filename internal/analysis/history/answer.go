// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
)

// Bounds of an [Answer].
const (
	// UsualLimit and MaxLimit bound the findings and the summaries of an answer.
	UsualLimit = 200
	MaxLimit   = 1000
)

// Question selects findings that were open at any time of a range.
type Question struct {
	From, To time.Time
	Rule     string // empty: all
	Workload string
	Instance string
	Changed  bool // only those that ended after an event
	Limit    int  // of findings, and of summaries; 0 is [UsualLimit]
}

// Answer is the history of a time range.
type Answer struct {
	Schema int       `json:"schema"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	// CompleteSince is absent if nothing was dropped yet. Findings that ended before may be missing.
	CompleteSince time.Time `json:"complete_since,omitzero"`
	// Summaries has each cause at each workload, those that were open for the longest time first.
	Summaries        []Summary `json:"summaries"`
	SummariesLeftOut int       `json:"summaries_left_out"`
	Findings         []Entry   `json:"findings"` // the newest first
	LeftOut          int       `json:"left_out"`
	Warnings         []string  `json:"warnings"`
}

// Summary is how often a cause was found at a workload in the range.
type Summary struct {
	Rule      string            `json:"rule"`
	Title     string            `json:"title"`
	Workload  string            `json:"workload"`
	Instance  string            `json:"instance,omitempty"`
	Severity  analysis.Severity `json:"severity"`      // the highest
	Times     int               `json:"times"`         // that were open in the range
	Total     float64           `json:"total_seconds"` // within the range
	Longest   float64           `json:"longest_seconds"`
	LastBegan time.Time         `json:"last_began"`
	LastEnded time.Time         `json:"last_ended,omitzero"` // zero while it is open
	Open      bool              `json:"open"`
	// UnknownEnds is how many of them have an end that is not known. They add too little to the total.
	UnknownEnds int `json:"unknown_ends,omitempty"`
}

// Schema is the version of the JSON of an [Answer].
const Schema = 1

// selects reports whether a finding was open in the range and matches.
func (q Question) selects(e Entry) bool {
	return (q.Rule == "" || q.Rule == e.Rule) && (q.Workload == "" || q.Workload == e.Workload) &&
		(q.Instance == "" || q.Instance == e.Instance) && (!q.Changed || e.Outcome != nil && len(e.Outcome.After) > 0) && !e.Began.After(q.To) && (e.Open() || !e.Ended.Before(q.From))
}

// Ask answers a question at a time. Open findings last until then.
func (s *Store) Ask(q Question, now time.Time) Answer {
	limit := min(cmp.Or(max(0, q.Limit), UsualLimit), MaxLimit)
	s.mu.Lock()
	until := s.lost.Until
	s.mu.Unlock()
	all := s.Select(q.selects)
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(b.Number, a.Number)) })
	a := Answer{Schema: Schema, From: q.From.UTC(), To: q.To.UTC(), CompleteSince: until, Findings: []Entry{}, Warnings: []string{}}
	a.Summaries = summarise(all, q, now)
	a.SummariesLeftOut = max(0, len(a.Summaries)-limit)
	a.Summaries = a.Summaries[:min(len(a.Summaries), limit)]
	a.LeftOut = max(0, len(all)-limit)
	a.Findings = append(a.Findings, all[:min(len(all), limit)]...)
	return a
}

// summarise returns the summaries of findings that are sorted, the newest first.
func summarise(all []Entry, q Question, now time.Time) []Summary {
	by := make(map[string]*Summary)
	for _, e := range all {
		one := by[e.ID]
		if one == nil {
			one = &Summary{
				Rule: e.Rule, Title: e.Title, Workload: e.Workload, Instance: e.Instance, Severity: e.Severity,
				LastBegan: e.Began, LastEnded: e.Ended,
			}
			by[e.ID] = one
		}
		if one.Times++; e.Severity.AtLeast(one.Severity) {
			one.Severity = e.Severity
		}
		one.Open = one.Open || e.Open()
		if e.EndUnknown {
			one.UnknownEnds++
		}
		lasted := e.within(q.From, q.To, now).Seconds()
		one.Total += lasted
		one.Longest = max(one.Longest, lasted)
	}
	found := make([]Summary, 0, len(by))
	for _, one := range by {
		found = append(found, *one)
	}
	slices.SortFunc(found, func(a, b Summary) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Times, a.Times), strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Workload, b.Workload), strings.Compare(a.Instance, b.Instance))
	})
	return found
}

// within returns for how long the finding was open in a range.
func (e Entry) within(from, to, now time.Time) time.Duration {
	end := e.Ended
	if e.Open() {
		end = latest(now, e.Began)
	}
	if end.After(to) {
		end = to
	}
	return max(0, end.Sub(latest(e.Began, from)))
}
