// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps findings from the first time they are seen until they are over, in a file, and reports each
// change once.
//
// It refuses to know how findings are made.
package ledger

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/analysis"
)

// Bounds of a [Ledger].
const (
	maxOpen   = 1000
	maxClosed = 200
	// closeAfter windows without a finding, one after the other, close it.
	closeAfter = 2
)

// EventKind is what happened to a finding.
type EventKind string

// The kinds of events.
const (
	Opened          EventKind = "opened"
	SeverityChanged EventKind = "severity"
	Closed          EventKind = "closed"
)

// Event is told once, to whoever logs, marks and notifies.
type Event struct {
	Kind    EventKind
	At      time.Time
	Finding analysis.Finding
	Was     analysis.Severity // before SeverityChanged
}

// Entry is a finding and, when it is over, since when.
type Entry struct {
	analysis.Finding
	Closed time.Time `json:"closed,omitzero"`

	missing time.Time // since when it is not found any more
	milder  time.Time // since when it is of a lower severity than is told
}

// Ledger keeps findings while they live: the same cause at the same workload is one finding from first to last seen.
// It is kept in a file, so that neither a restart nor kill -9 tells anything twice. Its methods may be called
// concurrently.
type Ledger struct {
	mu     sync.Mutex
	path   string
	tell   func(Event)
	open   []Entry // the most worthwhile first
	closed []Entry // the last one first
}

// Open reads the ledger in a file, which need not exist. A file that cannot be understood is set aside under
// another name and the log says so. An empty path keeps nothing. Events go to tell, one at a time, after they were
// written; it may be nil.
func Open(path string, log *slog.Logger, tell func(Event)) (*Ledger, error) {
	if tell == nil {
		tell = func(Event) {}
	}
	l := &Ledger{path: path, tell: tell}
	if path == "" {
		return l, nil
	}
	book, err := readBook(path, log)
	l.open, l.closed = book.Open, book.Closed
	return l, err
}

// Open are the findings that live, the most worthwhile first.
func (l *Ledger) Open() []analysis.Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return findings(l.open)
}

func findings(entries []Entry) []analysis.Finding {
	all := make([]analysis.Finding, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.Finding)
	}
	return all
}

// Closed are the findings that are over, the last one first.
func (l *Ledger) Closed() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.closed)
}

// An Observation is what one evaluation says of the time until At.
type Observation struct {
	At       time.Time
	Window   time.Duration
	Findings []analysis.Finding // the most worthwhile first
	// Knows tells whether a cause would have been found if it were there. What is not known is not closed.
	Knows func(rule, workload, instance string) bool
}

// Update takes in what an evaluation found. A finding is closed when evaluations that could have found it did not for
// two windows. What could not be looked at stays as it is. The error is of writing the file; the ledger goes on without.
func (l *Ledger) Update(r Observation) error {
	events, err := l.update(r)
	for _, e := range events {
		l.tell(e)
	}
	return err
}

func (l *Ledger) update(r Observation) ([]Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := make(map[string]Entry, len(l.open))
	for _, e := range l.open {
		was[e.ID] = e
	}
	var events []Event
	var open []Entry
	found := make(map[string]bool)
	for _, f := range r.Findings {
		old, lives := was[f.ID]
		if found[f.ID] || !lives && len(open) >= maxOpen {
			continue
		}
		found[f.ID] = true
		e := Entry{Finding: f}
		if !lives {
			events = append(events, Event{Kind: Opened, At: r.At, Finding: e.Finding})
		} else if e.goOn(old, r); e.Severity != old.Severity {
			events = append(events, Event{Kind: SeverityChanged, At: r.At, Finding: e.Finding, Was: old.Severity})
		}
		open = append(open, e)
	}
	for _, e := range l.open {
		if found[e.ID] {
			continue
		}
		if e.over(r) {
			e.Closed = r.At
			l.closed = slices.Insert(l.closed, 0, e)
			events = append(events, Event{Kind: Closed, At: r.At, Finding: e.Finding})
		} else {
			open = append(open, e)
		}
	}
	l.open = open[:min(len(open), maxOpen)]
	l.closed = l.closed[:min(len(l.closed), maxClosed)]
	return events, l.write()
}

// goOn makes a finding the continuation of what it was. Severity rises at once and falls after as long as a finding
// takes to close, so that one at the border is not told of every minute.
func (e *Entry) goOn(old Entry, r Observation) {
	e.FirstSeen = old.FirstSeen
	if e.FirstSeen.After(r.At) { // the clock was set back
		e.FirstSeen = r.At
	}
	if old.Severity.AtLeast(e.Severity) && e.Severity != old.Severity {
		if e.milder = since(old.milder, r.At); r.At.Sub(e.milder) < closeAfter*r.Window {
			e.Severity = old.Severity
		} else {
			e.milder = time.Time{}
		}
	}
}

// over tells whether a finding that was not found has not been for long enough.
func (e *Entry) over(r Observation) bool {
	if !r.Knows(e.Rule, e.Workload, e.Instance) {
		e.missing = time.Time{}
		return false
	}
	e.missing = since(e.missing, r.At)
	return r.At.Sub(e.missing) >= closeAfter*r.Window
}

// since is when something began that goes on now.
func since(began, now time.Time) time.Time {
	if began.IsZero() || began.After(now) {
		return now
	}
	return began
}
