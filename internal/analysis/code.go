// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"net/url"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
)

// Key returns what code the finding is about, or false if it is about none.
func (f *Finding) Key() (codelink.Key, bool) {
	if f.Code == nil {
		return codelink.Key{}, false
	}
	return codelink.Key{Event: f.Code.Event, Workload: f.Workload, Reason: f.Code.Reason}, true
}

// Linked returns the code with the functions that were found, and with links to the profiles that a server keeps: of the event of the code
// or else of CPU time. held reports whether it has a sample of the finding's workload in a time.
func (f *Finding) Linked(window time.Duration, found *codelink.Functions, held func(event codelink.Event, workload string, start, end time.Time) bool) *codelink.Code {
	if f.Code == nil {
		return nil
	}
	code := *f.Code
	code.Functions = found
	of := func(e codelink.Event) bool { return held(e, f.Workload, f.LastSeen.Add(-window), f.LastSeen) }
	event := code.Event
	if event != codelink.CPU && !of(event) {
		event = codelink.CPU
	}
	if event == codelink.CPU && !of(event) {
		return &code
	}
	q := url.Values{"format": {"html"}}
	if event != codelink.CPU {
		q.Set("event", string(event))
	}
	if f.Workload != "" {
		q.Set("workload", f.Workload)
	}
	set := func(prefix string, end time.Time) {
		q.Set(prefix+"start", strconv.FormatInt(end.Add(-window).Unix(), 10))
		q.Set(prefix+"end", strconv.FormatInt(end.Unix(), 10))
	}
	set("", f.LastSeen)
	const path = "/api/profiles/merged?"
	code.Profile = path + q.Encode()
	if before := f.FirstSeen.Add(-window); held(event, f.Workload, before.Add(-window), before) {
		set("base.", before)
		code.Change = path + q.Encode()
	}
	return &code
}
