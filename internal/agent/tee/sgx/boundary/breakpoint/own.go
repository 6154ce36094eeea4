// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/text"
)

// Limits of the search for ENCLU.
const (
	maxCode    = 64 << 20 // bytes of code of a file
	maxSearch  = 16 << 20 // bytes of code in each scan, on average
	maxMapped  = 128      // files of a process
	maxFiles   = 512      // files that are remembered
	rememberIt = 10 * time.Minute
	maxTime    = time.Second // for the search of a file
	pause      = 10          // scans without a search after one that took longer
	// maxOwn is the limit of ENCLUs of a process. The last of the four debug registers is for the vDSO's.
	maxOwn = 3
)

// errLater means that the search was postponed to the next scan.
var errLater = errors.New("the code is searched later")

// Search finds the ENCLUs of runtimes in the files that processes execute. It reads each file once, and never the memory
// of a process.
type Search struct {
	Places *tenant.Quota // of remembered files

	from  host.Processes
	now   func() time.Time
	files map[version]*searched
	left  int64 // bytes of code that may be read until the next scan
}

// version identifies the content of a file: the time of its last change cannot be set back.
type version struct {
	file    hostfs.FileID
	size    int64
	changed unix.Timespec
}

// searched is what was found in a file.
type searched struct {
	executable.ENCLUs
	err   error // why it was not searched
	owner tenant.Tenant
	asked time.Time
}

// NewSearch returns a search that remembers nothing.
func NewSearch(from host.Processes, now func() time.Time) *Search {
	return &Search{Places: tenant.NewQuota(maxFiles), from: from, now: now, files: map[version]*searched{}, left: maxSearch}
}

// Find returns the ENCLUs in all files that a process executes.
func (s *Search) Find(tgid uint32) (Found, error) {
	if s.left <= 0 {
		return Found{}, errLater
	}
	maps, err := s.from.Mappings(tgid)
	if err != nil {
		return Found{}, err
	}
	files, order := executed(maps)
	if len(order) > maxMapped {
		return Found{}, fmt.Errorf("it executes %d files, of which at most %d are searched for ENCLU", len(order), maxMapped)
	}
	var found Found
	for _, name := range order {
		of, err := s.file(tgid, files[name][0])
		switch {
		case errors.Is(err, errLater), errors.Is(err, tenant.ErrFull), errors.Is(err, tenant.ErrShare):
			return Found{}, err
		case err != nil:
			found.Doubt = fmt.Errorf("%s is not searched for ENCLU: %w", text.Label(path.Base(name)), err)
			continue
		case of.Doubtful > 0:
			found.Doubt = fmt.Errorf("%s: %d places may be ENCLU or data and are left out", text.Label(path.Base(name)), of.Doubtful)
		}
		for _, m := range files[name] {
			for _, offset := range of.Offsets {
				if offset >= m.Offset && offset-m.Offset < m.End-m.Start {
					found.Addresses = append(found.Addresses, m.Start+offset-m.Offset)
				}
			}
		}
	}
	if n := len(found.Addresses); n > maxOwn {
		return Found{}, fmt.Errorf("its code has ENCLU %d times, and the processor can watch %d", n, maxOwn)
	}
	return found, nil
}

// executed returns the executable mappings of each file, and the files in the order of their addresses. Enclaves are
// mappings of a device.
func executed(maps []hostfs.Mapping) (files map[string][]hostfs.Mapping, order []string) {
	files = map[string][]hostfs.Mapping{}
	for _, m := range maps {
		name := string(m.Path)
		if !m.Executable || strings.HasPrefix(name, "/dev/") {
			continue
		}
		if files[name] == nil {
			order = append(order, name)
		}
		files[name] = append(files[name], m)
	}
	return files, order
}

// file returns what is in a mapped file, and searches it if it is new.
func (s *Search) file(tgid uint32, m hostfs.Mapping) (*searched, error) {
	f, _, err := s.from.Open(tgid, m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	of, err := s.version(tgid, f)
	if err != nil {
		return nil, err
	}
	known := s.files[of]
	if known == nil {
		if known, err = s.search(tgid, f); err != nil {
			return nil, err
		}
		s.files[of] = known
	}
	known.asked = s.now()
	return known, known.err
}

func (s *Search) version(tgid uint32, f *os.File) (version, error) {
	return reader.Of(s.from.Reads, int(tgid), func() (version, error) {
		var info unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &info); err != nil {
			return version{}, fmt.Errorf("reading its attributes: %w", err)
		}
		return version{hostfs.FileID{Device: info.Dev, Inode: info.Ino}, info.Size, info.Ctim}, nil
	})
}

// search searches a file. The search of a large file uses up what later scans may read.
func (s *Search) search(tgid uint32, f *os.File) (*searched, error) {
	if s.left <= 0 {
		return nil, errLater
	}
	owner := s.from.Reads.Tenant(int(tgid))
	if err := s.Places.Take(owner); err != nil {
		return nil, fmt.Errorf("it is one file too many of %d: %w", maxFiles, err)
	}
	found := &searched{owner: owner}
	began := s.now()
	p, err := executable.Read(&limited{s.from.Reader(tgid, f), s.now, began.Add(maxTime)})
	if err == nil {
		s.left -= int64(min(p.CodeSize(), maxCode)) + executable.Chunk
		found.ENCLUs, err = p.ENCLUs(maxCode)
	}
	if s.now().Sub(began) >= maxTime {
		s.left = -pause * maxSearch
	}
	switch {
	case errors.Is(err, executable.ErrNotELF):
	case slices.ContainsFunc(ofReading, func(e error) bool { return errors.Is(err, e) }):
		s.Places.Give(owner) // it says nothing of the file
		return nil, err
	default:
		found.err = err
	}
	return found, nil
}

var errSlow = errors.New("reading it takes too long")

// ofReading are errors that another process may not have with the same file.
var ofReading = []error{errSlow, reader.ErrStuck, reader.ErrQuarantined, reader.ErrTenant, reader.ErrExhausted, reader.ErrNotReady}

// limited reads until a time.
type limited struct {
	io.ReaderAt
	now   func() time.Time
	until time.Time
}

// ReadAt implements io.ReaderAt.
func (l *limited) ReadAt(into []byte, offset int64) (int, error) {
	if l.now().After(l.until) {
		return 0, errSlow
	}
	return l.ReaderAt.ReadAt(into, offset)
}

// tidy allows the next scan to read, and forgets files that no new process has had for a while.
func (s *Search) tidy() {
	s.left = min(maxSearch, s.left+maxSearch)
	for of, found := range s.files {
		if s.now().Sub(found.asked) >= rememberIt {
			delete(s.files, of)
			s.Places.Give(found.owner)
		}
	}
}
