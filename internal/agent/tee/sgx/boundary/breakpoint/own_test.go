// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// searching returns a search of this process, which has no ENCLU, and its clock.
func searching(t *testing.T) (s *Search, pid uint32, now *time.Time) {
	t.Helper()
	at := time.Unix(1000, 0)
	s = NewSearch(host.New("/proc", "/sys/fs/cgroup", nil), func() time.Time { return at })
	s.left, s.quota = 1<<40, 1<<40 // a test program may be large
	return s, uint32(os.Getpid()), &at
}

// A file is searched once, and again only when it was forgotten.
func TestAFileIsSearchedOnce(t *testing.T) {
	s, pid, now := searching(t)
	if found, err := s.find(pid); err != nil || len(found.Addresses) != 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	files, left := len(s.files), s.left
	if files == 0 || left == 1<<40 {
		t.Fatalf("%d files were searched", files)
	}
	if _, err := s.find(pid); err != nil || len(s.files) != files || s.left != left {
		t.Errorf("%d files, then %d, and %d bytes were read again: %v", files, len(s.files), left-s.left, err)
	}
	*now = now.Add(rememberIt)
	if s.tidy(); len(s.files) != 0 {
		t.Errorf("%d files are remembered", len(s.files))
	}
}

// The amount that a scan may read is limited. Files that were already searched do not count, so the search of a process ends.
func TestASearchIsPostponed(t *testing.T) {
	s, pid, _ := searching(t)
	s.left = 1
	if _, err := s.find(pid); err == nil && s.left > 0 || err != nil && !errors.Is(err, errLater) {
		t.Fatalf("%v", err)
	}
	if _, err := s.find(pid); !errors.Is(err, errLater) {
		t.Fatalf("%v with %d bytes left", err, s.left)
	}
	for scans := 0; ; scans++ {
		s.tidy()
		if _, err := s.find(pid); err == nil {
			break
		} else if !errors.Is(err, errLater) || scans > 1000 {
			t.Fatalf("%v after %d scans", err, scans)
		}
	}
}

// A process whose files have no place gets no breakpoints, and is not searched again.
func TestAFileWithoutAPlaceIsAnError(t *testing.T) {
	s, pid, _ := searching(t)
	s.places = tenant.NewQuota(0)
	if _, err := s.find(pid); !errors.Is(err, tenant.ErrFull) || len(s.files) != 0 {
		t.Errorf("%v with %d files", err, len(s.files))
	}
}

func TestMoreENCLUsThanRegistersAreRefused(t *testing.T) {
	s, pid, _ := searching(t)
	if _, err := s.find(pid); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.files {
		f.ENCLUs = executable.ENCLUs{}
	}
	maps, err := s.from.Mappings(pid)
	if err != nil {
		t.Fatal(err)
	}
	files, order := executed(maps)
	m := files[order[0]][0]
	known, err := s.file(pid, m)
	if err != nil {
		t.Fatal(err)
	}
	known.Offsets = []uint64{m.Offset + 1, m.Offset + 2, m.Offset + 3, m.Offset + m.End - m.Start}
	found, err := s.find(pid)
	if err != nil || len(found.Addresses) != 3 || found.Addresses[2] != m.Start+3 {
		t.Errorf("%+v, %v: want three in the mapping at %#x", found, err, m.Start)
	}
	known.Offsets = append(known.Offsets, m.Offset)
	if found, err := s.find(pid); err == nil {
		t.Errorf("%d breakpoints", len(found.Addresses))
	}
}

// An enclave is a mapping of a device, whose code is its own.
func TestEnclavesAreNotSearched(t *testing.T) {
	name := part{name: "/lib/a.so"}
	files, order := executed([]hostfs.Mapping{
		{Path: []byte("/dev/sgx_enclave"), Executable: true}, {Path: []byte("/lib/a.so")},
		{Path: []byte("/lib/a.so"), Executable: true}, {Path: []byte("/lib/a.so"), Executable: true},
		{Path: []byte("/lib/a.so"), Executable: true, File: hostfs.FileID{Inode: 2}}, // another file of that name
	})
	if len(order) != 2 || len(files[name]) != 2 {
		t.Errorf("%v, %v", files, order)
	}
}
