// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// crafted is an ELF file with one ENCLU, the given number of segments of the same code at different addresses, and the given
// number of symbols.
func crafted(t *testing.T, segments, symbols int) []byte {
	t.Helper()
	const code, size, table = 8192, 4096, 16384
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Phoff: 64, Phentsize: 56, Phnum: uint16(segments),
		Shoff: 4096, Shentsize: 64, Shnum: 1,
	}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}))
	var b bytes.Buffer
	write := func(at int, what any) {
		b.Write(make([]byte, at-b.Len()))
		if err := binary.Write(&b, binary.LittleEndian, what); err != nil {
			t.Fatal(err)
		}
	}
	write(0, h)
	for i := range segments {
		write(b.Len(), elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_X), Off: code + uint64(i%2), Vaddr: uint64(i) << 20, Filesz: size,
		})
	}
	write(4096, elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: table, Size: uint64(symbols) * elf.Sym64Size})
	write(code, bytes.Repeat([]byte{0x90}, 1000))
	write(b.Len(), executable.ENCLU)
	write(table+symbols*elf.Sym64Size, []byte{0})
	return b.Bytes()
}

// mapped writes a file, maps it as a program's code, and returns that mapping.
func mapped(t *testing.T, s *Search, name string, content []byte) hostfs.Mapping {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := unix.Mmap(int(f.Fd()), 8192, 8192, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(code) })
	maps, err := s.from.Mappings(uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(maps, func(m hostfs.Mapping) bool { return string(m.Path) == path })
	if i < 0 {
		t.Fatal("the file is not mapped")
	}
	return maps[i]
}

// With a debug register for each copy, an entry would be counted once per copy.
func TestAnENCLUInOverlappingSegmentsIsFoundOnce(t *testing.T) {
	s, pid, _ := searching(t)
	m := mapped(t, s, "overlapping", crafted(t, 5, 0))
	found, err := s.find(pid)
	if want := []uint64{m.Start + 1000}; err != nil || !slices.Equal(found.Addresses, want) {
		t.Errorf("%#x, %v; want %#x", found.Addresses, err, want)
	}
}

// A file with little code and many symbols must not be cheaper than it is.
func TestAllThatIsReadIsPaidFor(t *testing.T) {
	s, pid, _ := searching(t)
	const symbols = 1 << 18
	m := mapped(t, s, "symbols", crafted(t, 1, symbols))
	left := s.left
	if of, err := s.file(pid, m); err != nil || len(of.Offsets) != 1 {
		t.Fatalf("%+v, %v", of, err)
	}
	if paid := left - s.left; paid < symbols*elf.Sym64Size || paid > 2*symbols*elf.Sym64Size {
		t.Errorf("%d bytes were paid for a table of %d", paid, symbols*elf.Sym64Size)
	}
}

// The time of the reads is limited. That between them is not: a search takes long on a busy machine.
func TestOnlyReadsTakeTheTimeOfASearch(t *testing.T) {
	now := time.Unix(1000, 0)
	var takes time.Duration
	l := &limited{ReaderAt: readerAt(func(into []byte) int { now = now.Add(takes); return len(into) }), now: func() time.Time { return now }}
	read := func() error {
		_, err := l.ReadAt(make([]byte, 10), 0)
		return err
	}
	for range 100 {
		if err := read(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(maxTime)
	}
	takes = maxTime / 2
	if err := errors.Join(read(), read()); err != nil {
		t.Error(err)
	}
	if err := read(); !errors.Is(err, errSlow) || l.read != 1020 {
		t.Errorf("after more than a second of reads: %v, %d bytes", err, l.read)
	}
}

type readerAt func([]byte) int

func (r readerAt) ReadAt(into []byte, _ int64) (int, error) { return r(into), nil }

// Each look at the clock takes a second here. A file that takes too long ends the search of its process, and the next searches of its tenant wait longer than others.
func TestASlowFileIsNotReadAgainAndAgain(t *testing.T) {
	at := time.Unix(1000, 0)
	s := NewSearch(host.New("/proc", "/sys/fs/cgroup", nil), func() time.Time { at = at.Add(maxTime); return at })
	pid := uint32(os.Getpid())
	if _, err := s.find(pid); !errors.Is(err, errSlow) || len(s.files) != 0 {
		t.Fatalf("%v, and %d files are remembered", err, len(s.files))
	}
	if err := s.places.Take(tenant.Tenant{}); err != nil || s.left > -maxSearch || len(s.debts) != 1 {
		t.Fatalf("%v, %d bytes left, debts %v", err, s.left, s.debts)
	}
	scans := 0
	for ; s.left <= 0; scans++ {
		s.tidy()
	}
	if _, err := s.find(pid); !errors.Is(err, errLater) {
		t.Errorf("after %d scans: %v: there is nothing left for others", scans, err)
	}
	for ; len(s.debts) > 0; scans++ {
		s.tidy()
	}
	if _, err := s.find(pid); errors.Is(err, errLater) || scans > 3*pause*maxSearch/maxTenant {
		t.Errorf("after %d scans: %v", scans, err)
	}
}

// If a file changes during the search, the results may match neither content.
func TestAFileThatChangesWhileItIsReadIsNotUsed(t *testing.T) {
	s, pid, now := searching(t)
	m := mapped(t, s, "changing", crafted(t, 1, 0))
	calls := 0
	s.now = func() time.Time {
		if calls++; calls == 3 {
			if err := os.Truncate(string(m.Path), 1<<20); err != nil {
				t.Error(err)
			}
		}
		return *now
	}
	if of, err := s.file(pid, m); !errors.Is(err, errChanged) || len(s.files) != 0 {
		t.Errorf("%+v, %v", of, err)
	}
	if of, err := s.file(pid, m); err != nil || len(of.Offsets) != 1 {
		t.Errorf("afterwards: %+v, %v", of, err)
	}
}

// Counts of a process must not be subtracted from those of a later one with the same number.
func TestAProcessWithTheNumberOfAnEndedOneBeginsAtZero(t *testing.T) {
	for _, c := range []struct{ last, now, want [2]uint64 }{
		{[2]uint64{1000, 5}, [2]uint64{1003, 12}, [2]uint64{3, 7}},
		{[2]uint64{1000, 5}, [2]uint64{3, 7}, [2]uint64{3, 7}},
		{[2]uint64{2, 500}, [2]uint64{3, 7}, [2]uint64{3, 7}},
	} {
		now, last := counts{Enters: c.now[0], Resumes: c.now[1]}, counts{Enters: c.last[0], Resumes: c.last[1]}
		if grown := now.since(last); grown.Enters != c.want[0] || grown.Resumes != c.want[1] {
			t.Errorf("from %v to %v: %d and %d", c.last, c.now, grown.Enters, grown.Resumes)
		}
	}
}

// A tenant takes only its quota of the breakpoints, and one that cannot be set takes none.
func TestBreakpointsAreLimitedByTenant(t *testing.T) {
	b := &Breakpoints{places: tenant.NewQuota(2)}
	noThread := 1 << 30
	for range 5 {
		if _, err := b.setPoint(tenant.Tenant{User: 1, Group: "/a"}, noThread, 4096); err == nil || errors.Is(err, tenant.ErrFull) {
			t.Fatal(err)
		}
	}
	if err := b.places.Take(tenant.Tenant{User: 1, Group: "/a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.setPoint(tenant.Tenant{User: 1, Group: "/a"}, noThread, 4096); !errors.Is(err, tenant.ErrQuota) {
		t.Error(err)
	}
}
