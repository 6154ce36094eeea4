// SPDX-License-Identifier: Apache-2.0

package continuous

import (
	"errors"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/calls"
	"github.com/teescope/teescope/internal/agent/profiling/recording"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/agent/profiling/unwind"
)

// source takes the samples of one profile at a time.
type source struct {
	sampler   *profiling.Sampler
	symbols   *symbol.Table
	tables    *unwind.Tables // nil if stacks are found by frame pointers
	recording *recording.Recording
	about     recording.About
	before    profiling.Tallies
	look      map[*symbol.Process]bool // processes that may need other tables
	calls     *calls.Finder            // of ocalls and ecalls; nil for other events
}

func newSource(sampler *profiling.Sampler, symbols *symbol.Table) *source {
	s := &source{sampler: sampler, symbols: symbols, look: map[*symbol.Process]bool{}}
	if sampler.Unwinds() {
		s.tables = unwind.New(sampler, symbols)
	}
	s.about.Unwound = s.tables != nil
	return s
}

// begin begins a profile.
func (s *source) begin(event profiling.Event, hertz int, now time.Time) {
	s.recording = recording.New(recording.Options{
		Table: s.symbols, All: true, Wanted: func(of *symbol.Process) { s.look[of] = true }, Locations: locations, Bytes: stackBytes, Moments: moments,
	})
	s.before = s.sampler.Tallies()
	s.about.Event, s.about.Frequency, s.about.Weight, s.about.Began = event, hertz, s.sampler.Weight(), now
	s.recording.Tick(now)
}

// drain adds the samples since the last call. The table of symbols must have been asked for the current processes.
func (s *source) drain() (problems []string, err error) {
	s.recording.Tick(time.Now())
	err = s.sampler.Drain(s.recording.Add)
	for of := range s.look {
		if s.tables != nil {
			err = errors.Join(err, s.tables.Add(of))
		}
	}
	clear(s.look)
	if s.calls != nil {
		err = errors.Join(err, s.calls.Find())
		problems = s.calls.Problems()
		s.about.Unseen = append(s.about.Unseen, problems...)
	}
	return problems, err
}

// finish returns the profile of what was recorded, or nil if nothing was.
func (s *source) finish() ([]byte, error) {
	s.about.Lasted = time.Since(s.about.Began)
	after := s.sampler.Tallies()
	s.about.Tallies = profiling.Tallies{LostSamples: after.LostSamples - min(s.before.LostSamples, after.LostSamples), LostStacks: after.LostStacks - s.before.LostStacks}
	recorded := s.recording
	s.recording = nil
	if recorded.Kept() == 0 {
		return nil, nil
	}
	out, _ := recorded.Profile(s.about)
	return recording.Encode(out, maxOne)
}

// prune forgets ended processes.
func (s *source) prune(gone []profiling.Process) error {
	if s.tables == nil {
		return nil
	}
	return s.tables.Prune(gone)
}
