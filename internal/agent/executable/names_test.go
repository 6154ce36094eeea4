// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/lib/symbols"
)

// addr2line finds functions by the symbol tables of a program without debug information, as Names does. It is of GNU
// binutils and shares no code with it.
func TestNamesAreThoseOfAddr2line(t *testing.T) {
	tool, err := exec.LookPath("addr2line")
	if err != nil {
		t.Skip(err)
	}
	path := boundarytest.Build(t, filepath.Join(t.TempDir(), "sites"), boundarytest.Source("sites.c"))
	p, _ := open(t, path)
	starts := map[uint64][]string{}
	var addresses []uint64
	err = p.Functions(func(f Function) {
		starts[f.Address] = append(starts[f.Address], f.Name)
		for at := f.Address; at < f.Address+f.Size; at += 3 {
			addresses = append(addresses, at)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if len(addresses) < 50 {
		t.Fatalf("only %d addresses", len(addresses))
	}
	args := []string{"-f", "-e", path}
	for _, a := range addresses {
		args = append(args, "0x"+strconv.FormatUint(a, 16))
	}
	out, err := exec.Command(tool, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(out), "\n")
	got, err := p.Names(addresses)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range addresses {
		if want := want[2*i]; got[i] != want && !alias(starts, got[i], want) {
			t.Errorf("%#x is %q, addr2line says %q", a, got[i], want)
		}
	}
	if got, err := p.Names([]uint64{1}); err != nil || got[0] != "" {
		t.Errorf("an address outside of all functions is %q, %v", got, err)
	}
}

// Looking for names reads at most what it is said to cost, and not much less for a large file.
func TestNamesCostWhatIsSaid(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{own, "/bin/true"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		file := &countingReader{ReaderAt: f}
		p, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		var addresses []uint64
		for _, s := range p.segments {
			for at := s.Vaddr; elf.ProgFlag(s.Flags)&elf.PF_X != 0 && at < s.Vaddr+s.Memsz; at += 4096 {
				addresses = append(addresses, at)
			}
		}
		file.bytes = 0
		if _, err := p.Names(addresses); err != nil {
			t.Fatal(err)
		}
		if cost := NamesCost(p, len(addresses)); uint64(file.bytes) > cost || path == own && cost > 4*uint64(file.bytes) {
			t.Errorf("%s: %d bytes are read for %d names, which cost %d", path, file.bytes, len(addresses), cost)
		}
	}
}

// alias reports whether two names are of one address.
func alias(starts map[uint64][]string, a, b string) bool {
	for _, names := range starts {
		if slices.Contains(names, a) && slices.Contains(names, b) {
			return true
		}
	}
	return false
}

func TestBuildIDIsThatOfReadelf(t *testing.T) {
	out, err := exec.Command("readelf", "-n", "/bin/true").Output()
	if err != nil {
		t.Skip(err)
	}
	_, want, found := strings.Cut(string(out), "Build ID: ")
	if !found {
		t.Skip("/bin/true has no build ID")
	}
	want, _, _ = strings.Cut(want, "\n")
	file, err := os.Open("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.BuildID(); got != want {
		t.Errorf("%q, readelf says %q", got, want)
	}
}

// FuzzNames: a program that is sampled chooses the bytes of its own files.
func FuzzNames(f *testing.F) {
	f.Add(small(), uint64(16))
	f.Add(append(small(), ENCLU...), uint64(16))
	f.Fuzz(func(t *testing.T, data []byte, address uint64) {
		p, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if id := p.BuildID(); len(id) > 128 || strings.Trim(id, "0123456789abcdef") != "" {
			t.Errorf("the build ID is %q", id)
		}
		if found, err := p.ENCLUs(1 << 20); err == nil {
			for _, at := range found.Offsets {
				if at > uint64(len(data)) || !bytes.HasPrefix(data[at:], ENCLU) {
					t.Errorf("there is no ENCLU at %d", at)
				}
			}
			if len(found.Offsets)+found.Uncertain > maxENCLUs {
				t.Errorf("%d offsets", len(found.Offsets))
			}
		}
		if is, err := p.Begins(address); err == nil && len(is) > 0 && address >= uint64(len(data))+1<<62 {
			t.Errorf("an instruction begins at %#x", address)
		}
		if sites, err := p.USDT("p", "n"); err == nil {
			for _, u := range sites {
				if u.Offset >= uint64(len(data)) || data[u.Offset] != nop || u.Semaphore != 0 && u.Semaphore >= uint64(len(data)) {
					t.Errorf("%+v is not in the file", u)
				}
			}
		}
		addresses := []uint64{address, address + 1}
		if address+1 < address {
			addresses = addresses[:1]
		}
		names, err := p.Names(addresses)
		if err != nil {
			return
		}
		for _, n := range names {
			if len(n) > symbols.Longest || n != "" && !bytes.Contains(data, []byte(n)) {
				t.Errorf("%q is not a name of the file", n)
			}
		}
	})
}

// small is an ELF file with one function, "f", at 16 with 4 bytes.
func small() []byte {
	var b bytes.Buffer
	put := func(v ...any) {
		for _, one := range v {
			_ = binary.Write(&b, binary.LittleEndian, one) // into memory
		}
	}
	const programs, sections, symbols, names = 64, 64 + 56, 64 + 56 + 3*64, 64 + 56 + 3*64 + 48
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: programs, Shoff: sections,
		Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: 3,
	}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	put(h, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Filesz: 400, Memsz: 400})
	put(elf.Section64{}, elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: symbols, Size: 48, Link: 2, Entsize: 24},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: names, Size: 3})
	put(elf.Sym64{}, elf.Sym64{Name: 1, Info: 0x12, Shndx: 1, Value: 16, Size: 4}, [3]byte{0, 'f', 0})
	return b.Bytes()
}

func TestSmall(t *testing.T) {
	p, err := Read(bytes.NewReader(small()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Names([]uint64{15, 16, 19, 20})
	if want := []string{"", "f", "f", ""}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
