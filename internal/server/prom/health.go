// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/prometheus/tsdb"
)

// Operations of the storage whose failures are counted.
const (
	opCommit     = "commit"
	opCompaction = "compaction"
	opTruncation = "truncation"
	opReload     = "reload"
)

// backgroundMemory is how long a failed compaction counts. Prometheus repeats a failed one within a minute.
const backgroundMemory = 3 * time.Minute

// StorageState is the state of the storage, which is available without a query.
type StorageState struct {
	Err      error             // why samples are not stored, or why blocks are not written; nil when all is well
	Since    time.Time         // when Err began
	Failures map[string]uint64 // by operation
	Refused  uint64            // batches of samples that were not stored
	Free     int64             // bytes that may still be written to the disk; negative when unknown
	Damaged  int               // blocks that were moved aside
	Lost     int               // damaged chunks in blocks that are not aside
}

// notStoredError reports why samples are not stored.
type notStoredError struct{ Err error }

// Error implements error.
func (e *notStoredError) Error() string {
	return fmt.Sprintf("samples are not stored: %v; %s", e.Err, remedy(e.Err))
}

// Unwrap returns the cause.
func (e *notStoredError) Unwrap() error { return e.Err }

// health holds the state of the storage.
//
// After the first write error, nothing more is written until the database is opened again. A failed write can leave half a
// record in the write-ahead log (tsdb/wlog, WL.log), and everything behind it would be lost at the next start. A new series
// whose record was lost has the same effect: its samples are in the log, but not its labels.
type health struct {
	log *slog.Logger

	mu         sync.Mutex
	sealed     error // the first write error of this opening
	since      time.Time
	background error // the latest failure of a compaction or the like
	failedAt   time.Time
	failures   map[string]uint64
	refused    uint64
	tried      time.Time // when a batch was last stored or refused
	first      time.Time // when the first batch of this opening was stored
	stored     time.Time // when a batch was last stored
	damaged    int
	lost       int
	preserve   func() error // called once after the first write error
	broken     bool         // preserve has failed: the database must be closed
}

func newHealth(log *slog.Logger) *health {
	return &health{log: log, failures: map[string]uint64{opCommit: 0, opCompaction: 0, opTruncation: 0, opReload: 0}}
}

// opened begins a new opening of the database.
func (h *health) opened(db *tsdb.DB, reserve *reserve) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sealed, h.background, h.broken, h.tried, h.first, h.stored = nil, nil, false, time.Now(), time.Time{}, time.Time{}
	h.preserve = func() error {
		reserve.release()
		return contained(db.ForceHeadMMap)
	}
}

// err returns why samples are not stored, or nil.
func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sealed == nil {
		return nil
	}
	return &notStoredError{h.sealed}
}

// setAside counts blocks that were moved aside.
func (h *health) setAside(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.damaged += n
}

// lostChunk counts a damaged chunk.
func (h *health) lostChunk() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost++
}

// committed takes the outcome of a commit.
func (h *health) committed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = time.Now()
	if err == nil {
		h.stored = h.tried
		if h.first.IsZero() {
			h.first = h.stored
		}
		return
	}
	if errors.Is(err, tsdb.ErrAppenderClosed) || errors.Is(err, context.Canceled) {
		return
	}
	h.failures[opCommit]++
	h.refused++
	h.seal("samples are not stored until the disk can be written again", err)
}

// damagedHead makes the database open again: a chunk of the newest samples has changed on the disk, and the write-ahead
// log still has these samples. It returns the error for the query or the compaction that has met the chunk.
func (h *health) damagedHead(damage error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seal("a chunk of the newest samples is damaged: the database is opened again and reads them from the write-ahead log", damage)
	return fmt.Errorf("a chunk of the newest samples is damaged; they are being read again from the write-ahead log: %w", damage)
}

// seal stops writing. Full chunks are still in memory only, and Prometheus ends the process when it cannot write them
// (handleChunkWriteError in tsdb/head_append.go). So they are written at once, into the space that was reserved.
func (h *health) seal(what string, err error) {
	if h.sealed != nil {
		return
	}
	h.sealed, h.since = err, time.Now()
	h.log.Error(what, "reason", err, "advice", remedy(err))
	if preserve := h.preserve; preserve != nil {
		go func() {
			if err := preserve(); err != nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.broken = true
				h.log.Error("recent chunks cannot be written: the database is closed until the disk can be written again", "reason", err)
			}
		}()
	}
}

// mayMissFor is how long rules may still miss samples after the first one was stored: every target was scraped twice.
func mayMissFor(interval time.Duration) time.Duration { return 3*interval + time.Second }

// current returns why rules may not see all samples, or nil: samples are not stored, were not stored for some scrapes, or
// the database was opened only now.
func (h *health) current(interval time.Duration) error {
	if err := h.err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.first.IsZero() || time.Since(h.first) < mayMissFor(interval):
		return errors.New("the database was opened only now")
	case time.Since(h.stored) > max(30*time.Second, mayMissFor(interval)):
		return fmt.Errorf("nothing was stored since %s", h.stored.Format(time.RFC3339))
	}
	return nil
}

// refuse counts a batch that was not stored.
func (h *health) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused++
	h.tried = time.Now()
}

// failedInBackground takes failures of an operation that Prometheus repeats itself.
func (h *health) failedInBackground(operation string, n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures[operation] += n
	if h.background == nil {
		h.since = time.Now()
	}
	h.background, h.failedAt = fmt.Errorf("the database's %s fails; the log gives the reason", operation), time.Now()
}

// mustClose reports whether chunks could not be written, so that the next attempt would end the process.
func (h *health) mustClose() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken
}

func (h *health) state() StorageState {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := StorageState{Failures: maps.Clone(h.failures), Refused: h.refused, Damaged: h.damaged, Lost: h.lost, Free: -1}
	switch {
	case h.sealed != nil:
		s.Err, s.Since = &notStoredError{h.sealed}, h.since
	case h.background != nil && time.Since(h.failedAt) < backgroundMemory:
		s.Err, s.Since = h.background, h.since
	default:
		h.background = nil
	}
	return s
}

// Status serves the state of the process.
type Status struct {
	health   *health
	ruler    *ruler
	dir      string
	interval time.Duration
}

// Status returns the state of the server.
func (s *Server) Status() *Status {
	return &Status{health: s.health, ruler: s.ruler, dir: s.opts.DataDir, interval: s.opts.Interval}
}

// Storage returns the state of the storage.
func (s *Status) Storage() StorageState {
	state := s.health.state()
	state.Free = freeBytes(s.dir)
	return state
}

// Stores returns why samples are not stored or blocks are not written, or nil.
func (s *Status) Stores() error { return s.health.state().Err }

// Hangs returns which loop of the server has stopped, or nil.
func (s *Status) Hangs() error {
	now := time.Now()
	if err := s.health.hangs(now, s.interval); err != nil {
		return err
	}
	if s.ruler != nil {
		return s.ruler.hangs(now)
	}
	return nil
}

// patience is how long a loop may take for a step that is due at an interval.
func patience(interval time.Duration) time.Duration { return max(10*interval, 2*time.Minute) }

// hangs returns an error when no scrape has ended for a long time. Failed scrapes end too: they store up=0. A disk that
// cannot be written is no reason for a restart.
func (h *health) hangs(now time.Time, interval time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sealed != nil || h.tried.IsZero() || now.Sub(h.tried) < patience(interval) {
		return nil
	}
	return fmt.Errorf("scraping hangs: no scrape has ended for %s", now.Sub(h.tried).Round(time.Second))
}

// contained turns a panic into an error. Prometheus panics when it cannot write a chunk, and releases its locks.
func contained(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	f()
	return nil
}
