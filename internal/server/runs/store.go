// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/run"
)

// Bounds of a store.
const (
	MaxFile  = 8 << 20   // bytes of a run file
	maxRuns  = 500       // in the list
	maxTotal = 512 << 20 // bytes of all run files
	maxIndex = 64 << 10  // bytes of the description of a run
)

// within is what a run file of a server may have: about two hours of a sample each second.
var within = run.Limits{File: MaxFile, Line: 4 << 20, Text: 8 << 20, All: 128 << 20, Samples: 2_000_000}

var (
	// errUnknown is the error for an ID that no run has.
	errUnknown = errors.New("there is no run with this ID")
	// errFull is the error when there is no room for a run.
	errFull = fmt.Errorf("there is room for %d runs and %d MiB: delete those that are no longer needed", maxRuns, maxTotal>>20)
	// errNotStored is the error of a change that could not be written. It has no effect.
	errNotStored = errors.New("the run could not be written")
	// errUnread is the error while it is not known which runs are kept.
	errUnread = errors.New("reading the kept runs")
)

// store keeps run files in a directory, each with a file that describes it. Its methods are safe for concurrent use.
type store struct {
	dir string

	mu     sync.Mutex
	all    []Summary // the newest first
	bytes  int64
	unread bool // the directory could not be read
}

// The endings of the two files of a run. A run is kept while its description exists.
const (
	fileEnding  = ".tsrun"
	indexEnding = ".json"
)

// isID matches the form of an ID.
var isID = lazy.Regexp(`^[0-9a-f]{16}$`)

// open reads which runs a directory has. It need not exist: the first run creates it. Files of an interrupted change
// are removed. The store can be used even if there is an error: a run that cannot be read is not in the list. A
// directory that cannot be read is read again later, and until then each method fails.
func open(dir string) (*store, error) {
	s := &store{dir: dir}
	return s, s.load()
}

// again reads the directory again if it could not be read. The caller holds the lock.
func (s *store) again() error {
	if !s.unread {
		return nil
	}
	if err := s.load(); s.unread {
		return err
	}
	return nil // errors of single runs do not matter here, as at the start
}

func (s *store) load() error {
	entries, err := os.ReadDir(s.dir)
	if s.unread = err != nil && !errors.Is(err, fs.ErrNotExist); s.unread {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	var failed []error
	for _, e := range entries {
		if id, isIndex := strings.CutSuffix(e.Name(), indexEnding); isIndex && isID().MatchString(id) && len(s.all) < maxRuns {
			one, err := s.describe(id)
			if err != nil {
				failed = append(failed, fmt.Errorf("the kept run %s: %w", id, err))
				continue
			}
			s.all, s.bytes = append(s.all, one), s.bytes+one.Size
		}
	}
	s.sort()
	return errors.Join(append(failed, s.sweep(entries))...)
}

// describe reads the description of a run, and the size of its file.
func (s *store) describe(id string) (one Summary, err error) {
	data, err := inputfile.ReadOwn(s.path(id, indexEnding), maxIndex)
	if err != nil {
		return one, err
	}
	if err := json.Unmarshal(data, &one); err != nil {
		return one, err
	}
	info, err := os.Lstat(s.path(id, fileEnding))
	if err != nil {
		return one, err
	}
	if one.ID != id || !info.Mode().IsRegular() || info.Size() > MaxFile {
		return one, errors.New("its description is of another file")
	}
	one.Size = info.Size()
	return one, nil
}

// sweep removes run files without a description, and descriptions that were not finished: their pushing or deletion was cut off.
func (s *store) sweep(entries []fs.DirEntry) error {
	var failed []error
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".")
		isFile := strings.HasPrefix(e.Name(), id+fileEnding) // also one that was being written
		if isID().MatchString(id) && e.Name() == id+indexEnding+atomicfile.Suffix {
			failed = append(failed, os.Remove(filepath.Join(s.dir, e.Name())))
		} else if isID().MatchString(id) && isFile && !slices.ContainsFunc(entries, func(o fs.DirEntry) bool { return o.Name() == id+indexEnding }) {
			failed = append(failed, os.Remove(filepath.Join(s.dir, e.Name())))
		}
	}
	return errors.Join(failed...)
}

func (s *store) path(id, ending string) string { return filepath.Join(s.dir, id+ending) }

func (s *store) sort() {
	slices.SortStableFunc(s.all, func(a, b Summary) int { return cmp.Or(b.PushedAt.Compare(a.PushedAt), cmp.Compare(a.ID, b.ID)) })
}

// List returns all runs, the one that was pushed last first.
func (s *store) List() ([]Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.again(); err != nil {
		return nil, err
	}
	return slices.Clone(s.all), nil
}

// Get returns the description of a run, or errUnknown.
func (s *store) Get(id string) (Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.again(); err != nil {
		return Summary{}, err
	}
	if i := s.find(id); i >= 0 {
		return s.all[i], nil
	}
	return Summary{}, errUnknown
}

func (s *store) find(id string) int {
	return slices.IndexFunc(s.all, func(one Summary) bool { return one.ID == id })
}

// File returns the content of a run file.
func (s *store) File(id string) ([]byte, error) {
	if _, err := s.Get(id); err != nil {
		return nil, err
	}
	return inputfile.ReadOwn(s.path(id, fileEnding), MaxFile)
}

// check reads a run file and returns an error if it is invalid. A file without an end is accepted, because its recorder
// may have been killed.
func check(data []byte) (*run.Run, error) {
	r, err := run.ReadWithin(bytes.NewReader(data), within)
	if err != nil {
		return nil, err
	}
	if len(r.Times) == 0 && len(r.Outcomes) == 0 {
		return nil, errors.New("the run has neither samples nor outcomes")
	}
	if r.Damaged != nil && !errors.Is(r.Damaged, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("the file is damaged, or too large for a server: %w", r.Damaged)
	}
	return r, nil
}

// Add stores a run file. If the same file is stored already, it returns the existing run.
func (s *store) Add(data []byte, name, by string, now time.Time) (Summary, error) {
	sum := sha256.Sum256(data)
	id := hex.EncodeToString(sum[:8])
	if one, err := s.Get(id); !errors.Is(err, errUnknown) {
		return one, err
	}
	r, err := check(data)
	if err != nil {
		return Summary{}, err
	}
	one := summarize(r, name)
	one.ID, one.Size, one.PushedAt, one.PushedBy = id, int64(len(data)), now.UTC(), by
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(id); i >= 0 {
		return s.all[i], nil
	}
	if len(s.all) >= maxRuns || s.bytes+one.Size > maxTotal {
		return Summary{}, errFull
	}
	if err := s.write(one, data); err != nil {
		return Summary{}, fmt.Errorf("%w: %w", errNotStored, err)
	}
	s.all, s.bytes = append(s.all, one), s.bytes+one.Size
	s.sort()
	return one, nil
}

// write writes the file, and then the description, with which the run is kept.
func (s *store) write(one Summary, data []byte) error {
	index, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := atomicfile.Write(s.path(one.ID, fileEnding), data, 0o600); err != nil {
		return err
	}
	if err := atomicfile.Write(s.path(one.ID, indexEnding), index, 0o600); err != nil {
		return errors.Join(err, os.Remove(s.path(one.ID, fileEnding)))
	}
	return nil
}

// Delete removes a run.
func (s *store) Delete(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.again(); err != nil {
		return err
	}
	i := s.find(id)
	if i < 0 {
		return errUnknown
	}
	if err := os.Remove(s.path(id, indexEnding)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errNotStored, err)
	}
	s.bytes -= s.all[i].Size
	s.all = slices.Delete(s.all, i, i+1)
	if err := os.Remove(s.path(id, fileEnding)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errNotStored, err)
	}
	return nil
}
