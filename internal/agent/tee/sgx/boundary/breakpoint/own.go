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
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/text"
)

// Limits of the search for ENCLU.
const (
	maxCode    = 64 << 20 // bytes of code of a file
	maxSearch  = 32 << 20 // bytes in each scan, on average
	maxMapped  = 128      // files of a process
	maxFiles   = 2048     // files that are remembered, up to 1 KiB each
	rememberIt = 10 * time.Minute
	maxTime    = time.Second   // for the reads of a file, which its file system may delay; maxCode bounds the rest
	pause      = 10            // scans without a search after one that took this long
	maxTenant  = maxSearch / 4 // bytes in each scan for one tenant, on average
	// maxOwn is the limit of ENCLUs of a process. The last of the four debug registers is for the vDSO's.
	maxOwn = 3
)

// errLater means that the search was postponed to the next scan.
var errLater = errors.New("the code is searched later")

// Search finds the ENCLUs of runtimes in the files that processes execute. It reads each file once, and never the memory
// of a process.
type Search struct {
	from host.Processes
	now  func() time.Time

	mu     sync.Mutex    // protects the fields below. Nothing is read while it is held.
	places *tenant.Quota // of remembered files
	files  map[version]*searched
	left   int64                   // bytes that may be read until the next scan
	quota  int64                   // of a tenant in each scan
	debts  map[tenant.Tenant]int64 // what these have read, less their quotas since
}

// version identifies the content of a file: the time of its last change cannot be set back.
type version struct {
	file    hostfs.FileID
	size    int64
	changed unix.Timespec
}

// searched is the result of the search in a file.
type searched struct {
	executable.ENCLUs
	err   error // why it was not searched
	owner tenant.Tenant
	asked time.Time
}

// NewSearch returns a search that remembers nothing.
func NewSearch(from host.Processes, now func() time.Time) *Search {
	return &Search{places: tenant.NewQuota(maxFiles), from: from, now: now, files: map[version]*searched{}, left: maxSearch, quota: maxTenant, debts: map[tenant.Tenant]int64{}}
}

// Refused returns how many files were not searched because a limit was reached.
func (s *Search) Refused() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places.Refused
}

func (s *Search) exhausted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left <= 0
}

// find returns the ENCLUs in all files that a process executes.
func (s *Search) find(tgid uint32) (Found, error) {
	if s.exhausted() {
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
	for _, part := range order {
		name := path.Base(part.name)
		of, err := s.file(tgid, files[part][0])
		switch {
		case isAny(err, errLater, tenant.ErrFull, tenant.ErrQuota):
			return Found{}, err
		case ofReading(err): // the rest may be slow too, and the file would be read again before it
			return Found{}, fmt.Errorf("searching %s for ENCLU: %w", text.Label(name), err)
		case err != nil:
			found.Missing = fmt.Errorf("%s is not searched for ENCLU: %w", text.Label(name), err)
			continue
		case of.Uncertain > 0:
			found.Missing = fmt.Errorf("%s: %d occurrences may be ENCLU or data and are left out", text.Label(name), of.Uncertain)
		}
		for _, m := range files[part] {
			for _, offset := range of.Offsets {
				if offset >= m.Offset && offset-m.Offset < m.End-m.Start {
					found.Addresses = append(found.Addresses, m.Start+offset-m.Offset)
				}
			}
		}
	}
	slices.Sort(found.Addresses)
	found.Addresses = slices.Compact(found.Addresses) // segments of a file may overlap
	if n := len(found.Addresses); n > maxOwn {
		return Found{}, fmt.Errorf("its code has ENCLU %d times, and the processor can watch %d", n, maxOwn)
	}
	return found, nil
}

// part is a file as a process maps it. Several files may have the same name.
type part struct {
	name string
	file hostfs.FileID
}

// executed returns the executable mappings of each file, and the files in the order of their addresses. Enclaves are
// mappings of a device.
func executed(maps []hostfs.Mapping) (files map[part][]hostfs.Mapping, order []part) {
	files = map[part][]hostfs.Mapping{}
	for _, m := range maps {
		of := part{string(m.Path), m.File}
		if !m.Executable || strings.HasPrefix(of.name, "/dev/") {
			continue
		}
		if files[of] == nil {
			order = append(order, of)
		}
		files[of] = append(files[of], m)
	}
	return files, order
}

// file returns the result for a mapped file, and searches it if it is new.
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
	known := s.known(of)
	if known == nil {
		found, err := s.search(tgid, f, of)
		if err != nil {
			return nil, err
		}
		known = s.remember(of, found)
	}
	return known, known.err
}

// known returns what was found in a file, or nil.
func (s *Search) known(of version) *searched {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.files[of]
	if known != nil {
		known.asked = s.now()
	}
	return known
}

// remember keeps what was found in a file, of which there may have been two searches at once.
func (s *Search) remember(of version, found *searched) *searched {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[of] != nil {
		s.places.Give(found.owner)
	} else {
		s.files[of] = found
	}
	s.files[of].asked = s.now()
	return s.files[of]
}

// begin takes a place for a search.
func (s *Search) begin(owner tenant.Tenant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left <= 0 || s.debts[owner] >= s.quota {
		return errLater
	}
	if err := s.places.Take(owner); err != nil {
		return fmt.Errorf("it is not one of the %d files that are searched: %w", maxFiles, err)
	}
	return nil
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

// search searches a file. The search of a large or slow file reduces the bytes that later scans and its tenant may read.
func (s *Search) search(tgid uint32, f *os.File, of version) (*searched, error) {
	owner := s.from.Reads.Tenant(int(tgid))
	if err := s.begin(owner); err != nil {
		return nil, err
	}
	began := s.now()
	from := &limited{ReaderAt: s.from.Reader(tgid, f), now: s.now}
	found := &searched{owner: owner}
	p, err := executable.Read(from)
	if err == nil {
		found.ENCLUs, err = p.ENCLUs(maxCode)
	}
	s.pay(owner, from.read, s.now().Sub(began))
	if !ofReading(err) { // otherwise a changed file is not the reason
		if after, failed := s.version(tgid, f); failed != nil {
			err = failed
		} else if after != of {
			err = errChanged
		}
	}
	switch {
	case ofReading(err):
		s.giveUp(owner)
		return nil, err
	case !errors.Is(err, executable.ErrNotELF):
		found.err = err
	}
	return found, nil
}

// giveUp returns the place of a search that has failed for another reason than the file.
func (s *Search) giveUp(owner tenant.Tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.Give(owner)
}

// pay records the cost of a search. A search that takes maxTime costs as many bytes as the scans of the pause.
func (s *Search) pay(owner tenant.Tenant, bytes int64, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cost := max(bytes+executable.Chunk, int64(took.Seconds()*pause*maxSearch/maxTime.Seconds()))
	s.left -= cost
	s.debts[owner] += cost
}

var (
	errSlow    = errors.New("reading it takes too long")
	errChanged = errors.New("it was changed while it was read")
)

// ofReading reports whether an error may be specific to this process, so that another process may read the same file.
func ofReading(err error) bool { return isAny(err, errSlow, errChanged) || reader.Unanswered(err) }

func isAny(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

// limited reads for a time, and counts the bytes. The time between two reads does not count: a search takes long where processors are busy.
type limited struct {
	io.ReaderAt
	now   func() time.Time
	spent time.Duration
	read  int64
}

// ReadAt implements io.ReaderAt.
func (l *limited) ReadAt(into []byte, offset int64) (int, error) {
	if l.spent >= maxTime {
		return 0, errSlow
	}
	began := l.now()
	n, err := l.ReaderAt.ReadAt(into, offset)
	l.spent += l.now().Sub(began)
	l.read += int64(n)
	return n, err
}

// tidy allows the next scan to read, and forgets files that no new process has had for a while.
func (s *Search) tidy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = min(maxSearch, s.left+maxSearch)
	for owner, debt := range s.debts {
		if s.debts[owner] = debt - s.quota; s.debts[owner] <= 0 {
			delete(s.debts, owner)
		}
	}
	for of, found := range s.files {
		if s.now().Sub(found.asked) >= rememberIt {
			delete(s.files, of)
			s.places.Give(found.owner)
		}
	}
}
