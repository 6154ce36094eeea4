// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

const (
	// maxRead is the number of profiles whose workloads are inspected for one answer: an hour, whose first and last one
	// may be partly outside of it, and a few of agents that were started again.
	maxRead = 64
	// maxKnown is the number of profiles whose workloads are remembered.
	maxKnown = 8 * maxRead
)

// Held reports whether a profile of an event in an interval has a sample of a workload, or any sample for an empty name. It reads
// only the last hour of the interval.
func (s *Store) Held(event codelink.Event, workload string, start, end time.Time) bool {
	entries := s.between(event, start, end)
	return workload == "" && len(entries) > 0 || slices.ContainsFunc(last(entries), func(e entry) bool { return s.workloads(e)[workload] })
}

// having returns the profiles with a sample of a workload, of the last maxRead ones, or all for an empty name.
// Files are not read any more when ctx has ended.
func having(ctx context.Context, s *Store, workload string, entries []entry) []entry {
	if workload == "" {
		return entries
	}
	return slices.DeleteFunc(last(entries), func(e entry) bool { return ctx.Err() != nil || !s.workloads(e)[workload] })
}

// last returns the last maxRead profiles.
func last(entries []entry) []entry { return entries[max(0, len(entries)-maxRead):] }

// workloads returns the names of the workloads of a profile. It reads the file if they are not remembered. A file that cannot be
// read has none.
func (s *Store) workloads(e entry) map[string]bool {
	s.mu.Lock()
	names, known := s.known[e]
	s.mu.Unlock()
	if known {
		return names
	}
	p, err := read.Open(filepath.Join(s.opts.Dir, e.name()), read.Options{})
	if err != nil {
		return nil // it was removed meanwhile, or the disk has lost it
	}
	return s.know(e, p)
}

// know remembers the workloads of a profile.
func (s *Store) know(e entry, p *profile.Profile) map[string]bool {
	names := make(map[string]bool)
	for _, set := range p.LabelSets {
		for _, l := range set {
			if l.Key == profile.Workload {
				names[l.Value] = true
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	s.known[e] = names
	return names
}
