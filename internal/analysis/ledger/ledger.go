// SPDX-License-Identifier: Apache-2.0

// Package ledger stores findings in a file from the first time they are seen until they are closed, and reports each
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
	// closeAfter is the number of consecutive windows without a finding that close it.
	closeAfter = 2
)

// EventKind is a kind of change of a finding.
type EventKind string

// The kinds of events.
const (
	Opened          EventKind = "opened"
	SeverityChanged EventKind = "severity"
	Closed          EventKind = "closed"
)

// Event is one change of a finding. It is reported once, to the log, the marks and the notifications.
type Event struct {
	Kind    EventKind
	At      time.Time
	Finding analysis.Finding
	Was     analysis.Severity // before SeverityChanged
}

// Entry is a finding and, if it is closed, the time of that.
type Entry struct {
	analysis.Finding
	Closed time.Time `json:"closed,omitzero"`

	missing time.Time // since when it has no longer been found
	milder  time.Time // since when its severity has been lower than reported
}

// Ledger holds the open findings and the last closed ones. The same cause at the same workload is one finding from
// first to last seen. The file prevents that a restart or kill -9 reports anything twice. Its methods are safe for
// concurrent use.
type Ledger struct {
	mu     sync.Mutex
	path   string
	report func(Event)
	open   []Entry // by descending weight
	closed []Entry // newest first
}

// Open reads the ledger from a file, which need not exist. A file that cannot be parsed is renamed and logged. With an
// empty path nothing is stored. Events go to report, one at a time, after they are stored. It may be nil.
func Open(path string, log *slog.Logger, report func(Event)) (*Ledger, error) {
	if report == nil {
		report = func(Event) {}
	}
	l := &Ledger{path: path, report: report}
	if path == "" {
		return l, nil
	}
	book, err := readBook(path, log)
	l.open, l.closed = book.Open, book.Closed
	return l, err
}

// Open returns the open findings by descending weight.
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

// Closed returns the closed findings, newest first.
func (l *Ledger) Closed() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.closed)
}

// An Observation is the result of one evaluation of the window that ends at At.
type Observation struct {
	At       time.Time
	Window   time.Duration
	Findings []analysis.Finding // by descending weight
	// Knows reports whether an existing cause would have been found. A finding whose cause is not known to be absent
	// stays open.
	Knows func(rule, workload, instance string) bool
}

// Update applies the result of an evaluation. A finding closes when evaluations that could have found it did not find
// it for two windows. All others stay open. An error means that the file was not written; the ledger in memory is
// current.
func (l *Ledger) Update(r Observation) error {
	events, err := l.update(r)
	for _, e := range events {
		l.report(e)
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

// goOn continues an earlier finding. The severity rises at once, but falls only after the time that closes a finding. A
// finding at the border of two severities is therefore not reported every minute.
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

// over reports whether a finding has been absent for long enough to close.
func (e *Entry) over(r Observation) bool {
	if !r.Knows(e.Rule, e.Workload, e.Instance) {
		e.missing = time.Time{}
		return false
	}
	e.missing = since(e.missing, r.At)
	return r.At.Sub(e.missing) >= closeAfter*r.Window
}

// since returns when a continuing condition began.
func since(began, now time.Time) time.Time {
	if began.IsZero() || began.After(now) {
		return now
	}
	return began
}
