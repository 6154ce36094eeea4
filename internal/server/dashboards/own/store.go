// SPDX-License-Identifier: Apache-2.0

package own

import (
	"encoding/json"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/statefile"
)

// Bounds of a store. Each answer with all dashboards is about as large as the file.
const (
	maxDashboards = 100
	maxFile       = 1 << 20 // bytes
)

const fileVersion = 1

type content struct {
	Version    int         `json:"version"`
	Dashboards []Dashboard `json:"dashboards"`
}

var (
	// errUnknown is the error for an ID that no dashboard has.
	errUnknown = errors.New("there is no dashboard with this ID")
	// errChanged is the error of a change of an older version.
	errChanged = errors.New("somebody else has changed the dashboard meanwhile: load it again, and repeat the change")
	// errFull is the error when there is no room for a dashboard.
	errFull = fmt.Errorf("there is room for %d dashboards and %d MiB: delete those that are no longer needed", maxDashboards, maxFile>>20)
	// errNotStored is the error of a change that could not be written. It has no effect.
	errNotStored = errors.New("the dashboards could not be written")
)

// store keeps dashboards, and writes each change to a file before it takes effect. Its methods are safe for concurrent use.
type store struct {
	mu   sync.Mutex
	file statefile.File[[]Dashboard]
	all  []Dashboard // in the order in which they were made
}

// open reads the dashboards from a file, which need not exist. With an empty path nothing is stored. The store can be used
// even if there is an error. A file that cannot be parsed is renamed, and the store has no dashboards. A file that cannot be
// read stays: it is read again later, and until then each change fails.
func open(path string) (*store, error) {
	s := &store{file: statefile.File[[]Dashboard]{
		Path: path, Most: maxFile, What: "the kept dashboards", Loss: "there are none", Parse: parse, NotStored: errNotStored,
	}}
	return s, s.file.Read(&s.all)
}

// parse parses a file. Any invalid entry is an error, because then others may be wrong too.
func parse(data []byte) ([]Dashboard, error) {
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	if c.Version != fileVersion {
		return nil, fmt.Errorf("its version is %d instead of %d", c.Version, fileVersion)
	}
	return c.Dashboards, Check(c.Dashboards)
}

// Check returns an error for the first invalid dashboard of a file or of a server, or nil.
func Check(all []Dashboard) error {
	if len(all) > maxDashboards {
		return fmt.Errorf("there are %d dashboards; the maximum is %d", len(all), maxDashboards)
	}
	seen := map[string]bool{}
	for _, d := range all {
		if err := d.check(); err != nil {
			return fmt.Errorf("dashboard %q: %w", d.ID, err)
		}
		if seen[d.ID] || !isID().MatchString(d.ID) {
			return fmt.Errorf("dashboard %q: the ID is not unique, or not lower-case letters, digits and hyphens", d.ID)
		}
		seen[d.ID] = true
	}
	return nil
}

// isID matches the form of an ID. IDs are parts of addresses and of file names.
var isID = lazy.Regexp(`^[a-z0-9][a-z0-9-]{0,26}$`)

// List returns all dashboards, the oldest first.
func (s *store) List() []Dashboard {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Retry(&s.all) // without the file there are none
	return slices.Clone(s.all)
}

// Get returns a dashboard, or errUnknown.
func (s *store) Get(id string) (Dashboard, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Retry(&s.all) // without the file there are none
	if i := s.find(id); i >= 0 {
		return s.all[i], nil
	}
	return Dashboard{}, errUnknown
}

func (s *store) find(id string) int {
	return slices.IndexFunc(s.all, func(d Dashboard) bool { return d.ID == id })
}

// Add keeps a new dashboard, and returns it with its ID.
func (s *store) Add(d Dashboard, now time.Time) (Dashboard, error) {
	if err := d.check(); err != nil {
		return Dashboard{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.Retry(&s.all); err != nil {
		return Dashboard{}, err
	}
	if len(s.all) >= maxDashboards {
		return Dashboard{}, errFull
	}
	first := slug(d.Title)
	d.ID = first
	for n := 2; s.find(d.ID) >= 0; n++ { // ends, because the number of dashboards is limited
		d.ID = first + "-" + strconv.Itoa(n)
	}
	d.Version, d.ChangedAt = 1, now.UTC()
	return d, s.replace(append(slices.Clone(s.all), d))
}

// Change replaces the title and the panels of a dashboard. The version must be the present one.
func (s *store) Change(d Dashboard, now time.Time) (Dashboard, error) {
	if err := d.check(); err != nil {
		return Dashboard{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.Retry(&s.all); err != nil {
		return Dashboard{}, err
	}
	i := s.find(d.ID)
	if i < 0 {
		return Dashboard{}, errUnknown
	}
	if s.all[i].Version != d.Version {
		return Dashboard{}, errChanged
	}
	d.Version, d.ChangedAt = d.Version+1, now.UTC()
	changed := slices.Clone(s.all)
	changed[i] = d
	return d, s.replace(changed)
}

// Delete removes a dashboard.
func (s *store) Delete(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.Retry(&s.all); err != nil {
		return err
	}
	i := s.find(id)
	if i < 0 {
		return errUnknown
	}
	return s.replace(slices.Delete(slices.Clone(s.all), i, i+1))
}

// replace writes the dashboards, and then uses them.
func (s *store) replace(all []Dashboard) error {
	if err := s.file.Write(content{Version: fileVersion, Dashboards: all}); errors.Is(err, statefile.ErrFull) {
		return errFull
	} else if err != nil {
		return err
	}
	s.all = all
	return nil
}
