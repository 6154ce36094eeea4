// SPDX-License-Identifier: Apache-2.0

// Package ledger stores findings in a file from the first time they are seen until they are closed, and reports each
// change once.
//
// It does not depend on how findings are made.
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
	// closeAgainAfter is the same time for a finding that opens again within againWithin. So a load that wanders around a
	// threshold, or comes every hour, raises at most two alerts a day.
	closeAgainAfter = 4 * time.Hour
	againWithin     = 24 * time.Hour
	maxEnded        = 5000 // causes of the last day that are remembered for this
	// A finding opens, and its severity rises, when this many of the last evaluations have found it.
	openAfter, lastLooks = 2, 3
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
	// Again is true if it opened again within a day. It then closes later.
	Again bool `json:"again,omitempty"`

	milder time.Time // since when its severity has been lower than reported
}

// Ledger holds the open findings and the last closed ones. The same cause at the same workload is one finding from
// first to last seen. The file prevents that a restart or kill -9 reports anything twice. Its methods are safe for
// concurrent use.
type Ledger struct {
	mu     sync.Mutex
	path   string
	report func(Event)
	open   []Entry         // by descending weight
	closed []Entry         // newest first
	ended  ended           // when findings of the last day closed
	looks  map[string]look // what was found lately, by ID
	begun  bool            // there was an evaluation since the start
}

// Open reads the ledger from a file, which need not exist. A file that cannot be parsed is renamed and logged. With an
// empty path nothing is stored. Events go to report, one at a time, after they are stored. It may be nil.
func Open(path string, log *slog.Logger, report func(Event)) (*Ledger, error) {
	if report == nil {
		report = func(Event) {}
	}
	l := &Ledger{path: path, report: report, looks: make(map[string]look), ended: make(ended)}
	if path == "" {
		return l, nil
	}
	book, err := readBook(path, log)
	l.open, l.closed = book.Open, book.Closed
	if book.Ended != nil {
		l.ended = book.Ended
	}
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

// Severities returns the severities of the open findings by ID.
func (l *Ledger) Severities() map[string]analysis.Severity {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]analysis.Severity, len(l.open))
	for _, e := range l.open {
		all[e.ID] = e.Severity
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
	// AtOnce has the IDs of findings that open without a second look.
	AtOnce map[string]bool
	// Knows reports whether an existing cause would have been found. A finding whose cause is not known to be absent
	// stays open.
	Knows func(rule, workload, instance string) bool
}

// Update applies the result of an evaluation. A finding opens when two of the last three evaluations have found it. A finding of the
// first evaluation after the start opens at once, and is low and possible until another one confirms it. It closes when
// evaluations that could have found it did not find it for two windows, or for four hours if it had opened again within a
// day. All others stay open. An error means that the file was not written; the ledger in memory is current.
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
	l.remember(r)
	var events []Event
	var open []Entry
	found := make(map[string]bool)
	for _, f := range r.Findings {
		old, lives := was[f.ID]
		if found[f.ID] || !lives && (len(open) >= maxOpen || !l.opens(f, r)) {
			continue
		}
		found[f.ID] = true
		e := Entry{Finding: f}
		e.Unconfirmed = l.looks[f.ID].found() < openAfter && !r.AtOnce[f.ID]
		if !lives {
			e.begin()
			e.Again = !r.AtOnce[f.ID] && l.ended.within(f.ID, r.At)
			events = append(events, Event{Kind: Opened, At: r.At, Finding: e.Finding})
		} else if e.goOn(old, l.looks[f.ID].looks, r); e.Severity != old.Severity {
			l.comesAndGoes(&e, old, r)
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
			delete(l.looks, e.ID)
			l.ended.add(e.ID, r.At)
			events = append(events, Event{Kind: Closed, At: r.At, Finding: e.Finding})
		} else {
			open = append(open, e)
		}
	}
	l.open, l.begun = open[:min(len(open), maxOpen)], true
	l.closed = l.closed[:min(len(l.closed), maxClosed)]
	return events, l.write()
}

// opens reports whether a finding that is not open opens.
func (l *Ledger) opens(f analysis.Finding, r Observation) bool {
	return !l.begun || r.AtOnce[f.ID] || l.looks[f.ID].found() >= openAfter
}

// begin opens a finding. A finding of a single evaluation is low and possible at most.
func (e *Entry) begin() {
	if !e.Unconfirmed {
		return
	}
	e.Confidence = analysis.Possible
	if e.Severity.AtLeast(analysis.Low) {
		e.Severity = analysis.Low
	}
}

// goOn continues an earlier finding. The severity rises when two of the last three looks agree, at once after an event, and
// falls only after the time that closes a finding. A finding at the border of two severities is therefore not reported
// every minute.
func (e *Entry) goOn(old Entry, seen looks, r Observation) {
	e.FirstSeen, e.Unconfirmed, e.Again = old.FirstSeen, old.Unconfirmed && e.Unconfirmed, old.Again
	if e.FirstSeen.After(r.At) { // the clock was set back
		e.FirstSeen = r.At
	}
	if e.Unconfirmed {
		e.begin()
	}
	switch {
	case e.Severity == old.Severity:
	case e.Severity.AtLeast(old.Severity):
		if agreed := seen.severity(); !r.AtOnce[e.ID] && !agreed.AtLeast(e.Severity) {
			e.Severity = old.Severity
			if agreed.AtLeast(old.Severity) {
				e.Severity = agreed
			}
		}
	default:
		least := closeAfter * r.Window
		if e.Severity == analysis.Info {
			least = old.closing(r) // its alert ends
		}
		if e.milder = since(old.milder, r.At); r.At.Sub(e.milder) < least {
			e.Severity = old.Severity
		} else {
			e.milder = time.Time{}
		}
	}
}

// over reports whether a finding has been absent for long enough to close. A finding of a single evaluation closes at once.
func (e *Entry) over(r Observation) bool {
	if !r.Knows(e.Rule, e.Workload, e.Instance) {
		e.AbsentSince = time.Time{}
		return false
	}
	e.AbsentSince = since(e.AbsentSince, r.At)
	return e.Unconfirmed || r.At.Sub(e.AbsentSince) >= e.closing(r)
}

// closing returns the time after which the finding closes, or its alert ends.
func (e *Entry) closing(r Observation) time.Duration {
	least := closeAfter * r.Window
	if e.Again && e.Severity.AtLeast(analysis.Low) {
		least = max(least, closeAgainAfter)
	}
	return least
}

// comesAndGoes remembers when the alert of an open finding ends or begins, because its severity becomes info or was info.
func (l *Ledger) comesAndGoes(e *Entry, old Entry, r Observation) {
	switch {
	case e.Severity == analysis.Info:
		l.ended.add(e.ID, r.At)
	case old.Severity == analysis.Info && l.ended.within(e.ID, r.At):
		e.Again = true
	}
}

// since returns when a continuing condition began.
func since(began, now time.Time) time.Time {
	if began.IsZero() || began.After(now) {
		return now
	}
	return began
}
