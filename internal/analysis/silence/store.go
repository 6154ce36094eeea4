// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/statefile"
)

// Bounds of a [Store].
const (
	maxLive    = 200 // active and pending silences
	maxExpired = 100
	maxFile    = 32 << 20 // bytes
	// keepExpired is how long an expired silence is listed, as long as Alertmanager lists one by default.
	keepExpired = 120 * time.Hour
)

const fileVersion = 1

type content struct {
	Version  int       `json:"version"`
	Silences []Silence `json:"silences"`
}

var (
	// ErrUnknown is the error for an ID that no silence has.
	ErrUnknown = errors.New("there is no silence with this ID")
	// ErrFull is the error when there are too many silences.
	ErrFull = fmt.Errorf("there are %d silences, the maximum: end those that are no longer needed", maxLive)
	// ErrNotStored is the error of a change that could not be written. It has no effect.
	ErrNotStored = errors.New("the silences could not be written")
)

// Store holds silences, and writes each change to a file before it takes effect. Its methods are safe for concurrent use.
type Store struct {
	mu   sync.Mutex
	file statefile.File[[]Silence]
	all  []Silence // by start, the newest first
}

// Open reads the silences from a file, which need not exist. With an empty path nothing is stored. The store can be used
// even if there is an error. A file that cannot be parsed is renamed, and the store has no silences. A file that cannot be
// read stays: it is read again later, and until then each change fails.
func Open(path string) (*Store, error) {
	s := &Store{file: statefile.File[[]Silence]{
		Path: path, Most: maxFile, What: "the silences", Loss: "findings that were muted raise alerts again", Parse: parse, NotStored: ErrNotStored,
	}}
	return s, s.file.Read(&s.all)
}

// From returns the silences in the content of a file of a [Store], or in a JSON list of silences. It stores nothing.
func From(data []byte) (*Store, error) {
	if list := bytes.TrimSpace(data); len(list) > 0 && list[0] == '[' {
		data = slices.Concat([]byte(fmt.Sprintf(`{"version":%d,"silences":`, fileVersion)), list, []byte("}"))
	}
	all, err := parse(data)
	if err != nil {
		return nil, err
	}
	return &Store{all: all}, nil
}

// parse parses a file. Any invalid entry is an error, because then others may be wrong too.
func parse(data []byte) ([]Silence, error) {
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	if c.Version != fileVersion {
		return nil, fmt.Errorf("its version is %d instead of %d", c.Version, fileVersion)
	}
	if len(c.Silences) > maxLive+maxExpired {
		return nil, fmt.Errorf("it has %d silences; the maximum is %d", len(c.Silences), maxLive+maxExpired)
	}
	seen := map[string]bool{}
	for i := range c.Silences {
		one := &c.Silences[i]
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("silence %q: %w", one.ID, err)
		}
		if one.ID == "" || seen[one.ID] {
			return nil, fmt.Errorf("silence %q: the ID is empty or not unique", one.ID)
		}
		seen[one.ID] = true
	}
	return c.Silences, nil
}

// List returns all silences, the newest first. Expired ones are listed for five days.
func (s *Store) List() []Silence {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Retry(&s.all) // without the file there are none
	return slices.Clone(s.all)
}

// Add stores a silence and gives it an ID. A start in the past becomes now, as in Alertmanager.
func (s *Store) Add(one Silence, now time.Time) (Silence, error) {
	if one.StartsAt.Before(now) {
		one.StartsAt = now
	}
	one.ID, one.StartsAt, one.EndsAt = rand.Text(), one.StartsAt.UTC(), one.EndsAt.UTC()
	one.Matchers = slices.Clone(one.Matchers)
	if err := one.check(); err != nil {
		return Silence{}, err
	}
	if one.State(now) == Expired {
		return Silence{}, fmt.Errorf("it ends at %s, which is over", one.EndsAt.Format(time.RFC3339))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.Retry(&s.all); err != nil {
		return Silence{}, err
	}
	live := 0
	for _, other := range s.all {
		if other.State(now) != Expired {
			live++
		}
	}
	if live >= maxLive {
		return Silence{}, ErrFull
	}
	return one, s.replace(append([]Silence{one}, s.all...), now)
}

// End ends a silence now.
func (s *Store) End(id string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.Retry(&s.all); err != nil {
		return err
	}
	i := slices.IndexFunc(s.all, func(one Silence) bool { return one.ID == id })
	if i < 0 {
		return ErrUnknown
	}
	if s.all[i].State(now) == Expired {
		return nil
	}
	changed := slices.Clone(s.all)
	changed[i].EndsAt = now.UTC()
	if changed[i].StartsAt.After(now) {
		changed[i].StartsAt = changed[i].EndsAt
	}
	return s.replace(changed, now)
}

// replace writes the silences without old expired ones, and then uses them.
func (s *Store) replace(all []Silence, now time.Time) error {
	expired := 0
	all = slices.DeleteFunc(all, func(one Silence) bool {
		if one.State(now) != Expired {
			return false
		}
		expired++
		return expired > maxExpired || now.Sub(one.EndsAt) > keepExpired
	})
	if err := s.file.Write(content{Version: fileVersion, Silences: all}); err != nil {
		return err
	}
	s.all = all
	return nil
}

// Mark returns the findings, each with the silence that covers it at a time. A silence that hides the finding has
// precedence over one that does not.
func (s *Store) Mark(findings []analysis.Finding, at time.Time) []analysis.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Retry(&s.all) // without the file there are none
	marked := slices.Clone(findings)
	for i := range marked {
		f := &marked[i]
		f.Silence = nil
		for _, one := range s.all {
			if (f.Silence == nil || one.Kind.Hides() && !f.Silence.Kind.Hides()) && one.covers(*f, at) {
				f.Silence = one.mark()
			}
		}
	}
	return marked
}
