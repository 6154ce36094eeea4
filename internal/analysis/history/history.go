// SPDX-License-Identifier: Apache-2.0

// Package history keeps past findings for months, in a separate file: when each began and ended, its figures when it began,
// and the events around its beginning and its end.
//
// It takes findings from the ledger, which holds the open ones. It does not depend on how findings are made or query series.
package history

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/ledger"
	"github.com/teescope/teescope/internal/lib/text"
)

// Bounds of a [Store] and of an [Entry].
const (
	maxEntries = 10_000
	maxBytes   = 16 << 20 // of all entries in the file, without those that newer lines replace
	maxLine    = 16 << 10 // bytes of one entry
	maxName    = 200      // bytes of a name or a unit
	maxWhat    = 256      // bytes of a sentence about an event
	maxQuery   = 1024
	maxFigures = 5
	maxEvents  = 4
	maxEarlier = 3
	maxAfter   = 2 // events before an end
)

// Entry is one finding from its beginning to its end.
type Entry struct {
	Number     uint64              `json:"number"` // in order of recording; unique in the file
	ID         string              `json:"id"`     // that of the finding
	Rule       string              `json:"rule"`
	Title      string              `json:"title"`
	Workload   string              `json:"workload"` // "" is the whole machine
	Instance   string              `json:"instance,omitempty"`
	Severity   analysis.Severity   `json:"severity"` // the highest
	Confidence analysis.Confidence `json:"confidence"`
	Began      time.Time           `json:"began"`
	// Ended is when it was no longer found. It is zero while the finding is open.
	Ended time.Time `json:"ended,omitzero"`
	// Closed is when it was reported as over: the ledger waits for some looks.
	Closed time.Time `json:"closed,omitzero"`
	// EndUnknown is true if the ledger forgot the finding. Ended is then the last time at which it is known to be open.
	EndUnknown bool `json:"end_unknown,omitempty"`
	// Silence is the kind of the silence that covered the finding at any time.
	Silence  analysis.SilenceKind `json:"silence,omitempty"`
	Evidence []Figure             `json:"evidence"` // when it began
	// Saving and Gain are the estimates when it began.
	Saving *Range `json:"saving,omitempty"` // cores
	Gain   *Range `json:"gain,omitempty"`   // 0.2 is 20 % more throughput

	// Explained is true when what follows was searched for.
	Explained bool                 `json:"explained,omitempty"`
	Preceded  []analysis.Preceding `json:"preceded,omitempty"`
	Earlier   []analysis.Earlier   `json:"earlier,omitempty"`
	// Assessed is true when the outcome was searched for.
	Assessed bool     `json:"assessed,omitempty"`
	Outcome  *Outcome `json:"outcome,omitempty"`

	seen time.Time // the last time at which it was open
	size int       // bytes of its line
}

// Figure is one figure of the evidence.
type Figure struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Low   *float64 `json:"low,omitempty"` // 95 % interval, if there is one
	High  *float64 `json:"high,omitempty"`
	N     int      `json:"n,omitempty"`     // samples in the window
	Query string   `json:"query,omitempty"` // of the first figure only, and absent if it is long
}

// Range is an estimate.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Open reports whether the finding is open.
func (e Entry) Open() bool { return e.Ended.IsZero() }

// Store holds the entries. Its methods are safe for concurrent use.
type Store struct {
	mu   sync.Mutex
	path string
	log  *slog.Logger
	content
	open map[string]int // index of the open entry of an ID
	file journal
}

// content is the content of the file.
type content struct {
	entries []Entry // by number
	next    uint64  // number
	lost    lost
}

// lost describes entries that were dropped because of the bounds.
type lost struct {
	Entries uint64    `json:"entries,omitempty"`
	Until   time.Time `json:"until,omitzero"` // the latest end of a dropped entry
}

// Open reads the history from a file, which need not exist. With an empty path nothing is stored. The readable lines of
// a damaged file are kept. The file is then renamed, and a new one is written. An error means that nothing could be
// read; the store can be used, and is empty.
func Open(path string, log *slog.Logger) (*Store, error) {
	s := &Store{path: path, log: log, open: make(map[string]int)}
	if path == "" {
		return s, nil
	}
	err := s.read()
	s.index()
	return s, err
}

func (s *Store) index() {
	clear(s.open)
	for i, e := range s.entries {
		if e.Open() {
			s.open[e.ID] = i
		}
	}
}

// Begin compares the history with the ledger after a start. It adds the closed findings that it lacks, because the program
// may have been killed after the ledger was written and before the history was. So the history also begins with what the
// ledger of an older version remembers. They have the figures of their last evaluation.
func (s *Store) Begin(at time.Time, open []analysis.Finding, closed []ledger.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[string]bool)
	for _, e := range s.entries {
		known[key(e.ID, e.Closed)] = true
	}
	var changed []uint64
	for _, c := range slices.Backward(closed) {
		if c.Unconfirmed || c.FirstSeen.IsZero() || !c.Closed.After(s.lost.Until) || known[key(c.ID, c.Closed)] {
			continue
		}
		if _, is := s.open[c.ID]; is {
			continue // sync ends it
		}
		e := entryOf(c.Finding)
		e.end(c)
		changed = append(changed, s.add(e))
	}
	return s.sync(at, open, closed, changed)
}

func key(id string, closed time.Time) string { return fmt.Sprint(id, " ", closed.UnixNano()) }

// Sync takes over the open and closed findings of the ledger after an evaluation. Findings that no second evaluation has confirmed are
// omitted. An error means that the file was not written; the history in memory is current.
func (s *Store) Sync(at time.Time, open []analysis.Finding, closed []ledger.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sync(at, open, closed, nil)
}

func (s *Store) sync(at time.Time, open []analysis.Finding, closed []ledger.Entry, changed []uint64) error {
	found := make(map[string]bool, len(open))
	for _, f := range open {
		found[f.ID] = true
		i, is := s.open[f.ID]
		switch {
		case is:
			e := &s.entries[i]
			e.seen = at
			if e.goOn(f) {
				changed = append(changed, e.Number)
			}
		case !f.Unconfirmed && !f.FirstSeen.IsZero():
			e := entryOf(f)
			e.seen = at
			changed = append(changed, s.add(e))
		}
	}
	for id, i := range s.open {
		if !found[id] {
			s.entries[i].over(s.recorded(id), closed)
			delete(s.open, id)
			changed = append(changed, s.entries[i].Number)
		}
	}
	return s.save(changed)
}

// recorded returns when findings with an ID were closed.
func (s *Store) recorded(id string) (all []time.Time) {
	for _, e := range s.entries {
		if e.ID == id && !e.Closed.IsZero() {
			all = append(all, e.Closed)
		}
	}
	return all
}

// add adds an entry and returns its number.
func (s *Store) add(e Entry) uint64 {
	e.Number = s.next
	s.next++
	s.entries = append(s.entries, e)
	if e.Open() {
		s.open[e.ID] = len(s.entries) - 1
	}
	return e.Number
}

// at returns the index of an entry, or -1.
func (c *content) at(number uint64) int {
	i, is := slices.BinarySearchFunc(c.entries, number, func(e Entry, n uint64) int { return cmp.Compare(e.Number, n) })
	if !is {
		return -1
	}
	return i
}

// entryOf returns the entry of an open finding.
func entryOf(f analysis.Finding) Entry {
	e := Entry{
		ID: short(f.ID), Rule: short(f.Rule), Title: short(f.Title), Workload: short(f.Workload), Instance: short(f.Instance),
		Severity: f.Severity, Confidence: f.Confidence, Began: f.FirstSeen.UTC(), Evidence: []Figure{},
	}
	for _, one := range f.Evidence {
		if len(e.Evidence) < maxFigures && finite(one.Value) {
			e.Evidence = append(e.Evidence, figureOf(one))
		}
	}
	if len(f.Evidence) > 0 && len(e.Evidence) > 0 {
		if e.Evidence[0].Name == short(f.Evidence[0].Name) {
			e.Evidence[0].Query = query(f.Evidence[0].Query)
		}
	}
	if g := f.Gain; g != nil && finite(g.Low) && finite(g.High) {
		e.Gain = &Range{g.Low, g.High}
	}
	if s := f.Saving; s != nil && finite(s.Low) && finite(s.High) {
		e.Saving = &Range{s.Low, s.High}
	}
	e.silenced(f)
	return e
}

func figureOf(one analysis.Evidence) Figure {
	f := Figure{Name: short(one.Name), Value: one.Value, Unit: short(one.Unit), N: max(0, one.N)}
	if one.Low != nil && one.High != nil && finite(*one.Low) && finite(*one.High) {
		f.Low, f.High = one.Low, one.High
	}
	return f
}

func short(s string) string { return text.Short(text.Label(s), maxName) }

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// goOn updates an open entry, and reports whether that changes it.
func (e *Entry) goOn(f analysis.Finding) (changed bool) {
	if f.FirstSeen.Before(e.Began) { // the clock was set back
		e.Began, changed = f.FirstSeen.UTC(), true
	}
	if f.Severity.LeastGain() > e.Severity.LeastGain() {
		e.Severity, changed = f.Severity, true
	}
	if f.Confidence.Weight() > e.Confidence.Weight() {
		e.Confidence, changed = f.Confidence, true
	}
	return e.silenced(f) || changed
}

// silenced remembers the silence of a finding. One that hides the finding replaces another one.
func (e *Entry) silenced(f analysis.Finding) bool {
	if f.Silence == nil || f.Silence.Kind == e.Silence || e.Silence != "" && !f.Silence.Kind.Hides() {
		return false
	}
	e.Silence = f.Silence.Kind
	return true
}

// over ends an entry that the ledger no longer has as open. Among the closed findings, the newest first, it is the newest
// with its ID. If that one has an entry already, the ledger has forgotten this one.
func (e *Entry) over(recorded []time.Time, closed []ledger.Entry) {
	i := slices.IndexFunc(closed, func(c ledger.Entry) bool { return c.ID == e.ID })
	if i < 0 || slices.ContainsFunc(recorded, closed[i].Closed.Equal) {
		e.EndUnknown = true
		e.Ended = latest(e.Began, e.seen).UTC()
		return
	}
	e.end(closed[i])
}

// end ends an entry as the ledger did. An end before the beginning comes from a clock that was set back.
func (e *Entry) end(c ledger.Entry) {
	e.Closed = c.Closed.UTC()
	e.Ended = e.Closed
	if at := c.AbsentSince; !at.IsZero() && at.Before(c.Closed) {
		e.Ended = at.UTC()
	}
	e.Ended = latest(e.Ended, e.Began)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Select returns the entries of which is returns true, the oldest first.
func (s *Store) Select(is func(Entry) bool) (all []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if is(e) {
			all = append(all, e)
		}
	}
	return all
}

// Opened returns the open entry of a finding.
func (s *Store) Opened(id string) (e Entry, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, is := s.open[id]
	if is {
		e = s.entries[i]
	}
	return e, is
}

// Change adds to the entries of these numbers what was searched for. Numbers without an entry are skipped.
func (s *Store) Change(entries map[uint64]func(*Entry)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []uint64
	for number, change := range entries {
		if i := s.at(number); i >= 0 {
			change(&s.entries[i])
			s.entries[i].bound()
			changed = append(changed, number)
		}
	}
	slices.Sort(changed)
	return s.save(changed)
}

// bound makes what was searched for fit into a line. It changes nothing that a reader may hold.
func (e *Entry) bound() {
	e.Preceded = bounded(e.Preceded, maxEvents)
	e.Earlier = slices.Clone(e.Earlier[:min(len(e.Earlier), maxEarlier)])
	for i := range e.Earlier {
		one := &e.Earlier[i]
		one.Name, one.Unit, one.Query = short(one.Name), short(one.Unit), query(one.Query)
	}
	e.Outcome = e.Outcome.bounded()
}

func bounded(events []analysis.Preceding, most int) []analysis.Preceding {
	events = slices.Clone(events[:min(len(events), most)])
	for i := range events {
		events[i].What, events[i].Workload = text.Short(text.Label(events[i].What), maxWhat), short(events[i].Workload)
	}
	return events
}

// query returns a query that can be stored, or nothing.
func query(q string) string {
	if len(q) > maxQuery || !text.IsLabel(q) {
		return ""
	}
	return q
}
