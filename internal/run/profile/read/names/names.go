// SPDX-License-Identifier: Apache-2.0

// Package names finds the functions of addresses in files that a recording names, in the kernel and in perf maps. If the
// recording has the build ID of a file, no other file gives names for it.
//
// Recordings and files may be hostile: what is read of a file is bounded, and no file is opened that could block. The
// package does not read recordings.
package names

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/symbols"
)

const (
	maxKallsyms = 128 << 20 // bytes
	maxPerfMap  = 128 << 20
	maxNotes    = 64 << 10
)

// A Finder looks for files.
type Finder struct {
	// Root is the directory in which the paths of a recording are looked for: "/" for those of this machine, or a copy of
	// the recorded machine's files.
	Root string
	// Cache is perf's directory of copies by build ID, which "perf archive" packs; usually .debug in the home directory.
	Cache string
	// Debug is a directory of debug files by build ID.
	Debug string
	// Fetch returns the path of a file with a build ID: of the program, or of its debug file. It uses no file that the
	// function refuses. It is called for files that were not found elsewhere. It may be nil.
	Fetch func(id string, debug bool, check func(path string) error) (path string, err error)
}

// Host returns a Finder for this machine.
func Host() *Finder {
	f := &Finder{Root: "/", Debug: "/usr/lib/debug"}
	if home, err := os.UserHomeDir(); err == nil {
		f.Cache = filepath.Join(home, ".debug")
	}
	return f
}

// Here reports whether a recording is of a machine like this one: its architecture and version of the kernel are the same.
// Then its generated code and its kernel can be those of this machine.
func (f *Finder) Here(arch, release string) bool {
	var name unix.Utsname
	if f.Root != "/" || unix.Uname(&name) != nil {
		return false
	}
	return arch == unix.ByteSliceToString(name.Machine[:]) && release == unix.ByteSliceToString(name.Release[:])
}

// of returns the paths of the copies with a build ID.
func (f *Finder) of(id string) []string {
	if len(id) < 4 || f.Cache == "" {
		return nil
	}
	dir := filepath.Join(f.Cache, ".build-id", id[:2], id[2:])
	return []string{filepath.Join(dir, "elf"), filepath.Join(dir, "vdso")}
}

// file is an ELF file.
type file struct {
	*elf.File
	closer io.Closer // nil if there is nothing to close
	id     string
}

// Close closes the file. Nothing was written, so there is no error.
func (f *file) Close() {
	if f.closer != nil {
		_ = f.closer.Close()
	}
}

// open opens an ELF file. Files of the kernel's own file systems, whose reads can wait, have no size.
func open(path string) (*file, error) {
	f, err := inputfile.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() < 52) {
		err = errors.New("not an ELF file")
	}
	if err == nil {
		var parsed *file
		if parsed, err = parse(f); err == nil {
			parsed.closer = f
			return parsed, nil
		}
	}
	_ = f.Close() // nothing was written
	return nil, err
}

// parse reads the headers and the build ID.
func parse(in io.ReaderAt) (f *file, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("a damaged ELF file: %v", broken)
		}
	}()
	e, err := elf.NewFile(in)
	if err != nil {
		return nil, err
	}
	f = &file{File: e}
	read := func(from io.ReaderAt, size uint64) {
		notes := make([]byte, min(size, maxNotes))
		if _, err := from.ReadAt(notes, 0); f.id == "" && (err == nil || errors.Is(err, io.EOF)) {
			f.id = symbols.BuildID(notes, e.ByteOrder)
		}
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_NOTE {
			read(p, p.Filesz)
		}
	}
	for _, s := range e.Sections { // Go's linker has no segment for it
		if s.Type == elf.SHT_NOTE && s.Flags&elf.SHF_COMPRESSED == 0 {
			read(s, s.Size)
		}
	}
	return f, nil
}

// same reports whether a file has a build ID. Those of recordings can be padded with zeros.
func same(id, recorded string) bool {
	return recorded == "" || id != "" && strings.TrimRight(recorded, "0") == strings.TrimRight(id, "0")
}

// errOther is the error of a file that is not the one that was recorded.
var errOther = errors.New("the file is not the one that was recorded: its build ID differs")

// find opens the file with a path and a build ID, which may be unknown.
func (f *Finder) find(path, id string) (*file, error) {
	if !filepath.IsLocal(strings.TrimPrefix(path, "/")) {
		return nil, errors.New("the recorded path is not that of a file")
	}
	var found error
	for _, name := range append([]string{filepath.Join(f.Root, path)}, f.of(id)...) {
		e, err := open(name)
		if err != nil {
			found = cmp.Or(found, err)
			continue
		}
		if same(e.id, id) {
			return e, nil
		}
		e.Close()
		found = errOther
	}
	if e := f.fetch(id, false); e != nil {
		return e, nil
	}
	return nil, found
}

// fetch returns a file that the function returns, or nil.
func (f *Finder) fetch(id string, debug bool) *file {
	if f.Fetch == nil || id == "" {
		return nil
	}
	var found *file
	_, err := f.Fetch(id, debug, func(path string) error {
		e, err := open(path)
		if err != nil {
			return err
		}
		if !same(e.id, id) {
			e.Close()
			return errOther
		}
		found = e
		return nil
	})
	if err != nil && found != nil {
		found.Close()
		found = nil
	}
	return found
}

// debugFile returns the debug file of a program, or nil. A debug file is only downloaded for a program without symbols.
func (f *Finder) debugFile(program *file) *file {
	if len(program.id) > 4 && f.Debug != "" {
		if debug, err := open(filepath.Join(f.Debug, ".build-id", program.id[:2], program.id[2:]+".debug")); err == nil {
			if debug.id == program.id {
				return debug
			}
			debug.Close()
		}
	}
	if program.SectionByType(elf.SHT_SYMTAB) != nil {
		return nil
	}
	return f.fetch(program.id, true)
}

// File returns the functions at ascending offsets in a file, and an empty name for each that is unknown.
func (f *Finder) File(path, id string, offsets []uint64) ([]string, error) {
	e, err := f.find(path, id)
	if err != nil {
		return make([]string, len(offsets)), err
	}
	defer e.Close()
	sources := []*file{e}
	if debug := f.debugFile(e); debug != nil {
		defer debug.Close()
		sources = []*file{debug, e}
	}
	return lookUp(sources, e, offsets)
}

// VDSO returns the functions of the kernel's own library, of a copy with a build ID or of this process.
func (f *Finder) VDSO(id string, here bool, offsets []uint64) ([]string, error) {
	for _, name := range f.of(id) {
		if e, err := open(name); err == nil && same(e.id, id) {
			defer e.Close()
			return lookUp([]*file{e}, e, offsets)
		}
	}
	image, err := hostfs.At("/proc").OwnVDSO(maxNotes)
	if err != nil {
		return make([]string, len(offsets)), err
	}
	e, err := parse(bytes.NewReader(image))
	if err == nil && (!same(e.id, id) || id == "" && !here) {
		err = errOther
	}
	if err != nil {
		return make([]string, len(offsets)), err
	}
	return lookUp([]*file{e}, e, offsets)
}

// Kernel returns the functions of ascending addresses of a kernel, in which a symbol such as _text had an address. It uses the
// copy of perf for its build ID, or the list of this machine if its kernel is the same. A kernel that was loaded at
// another address is moved.
func (f *Finder) Kernel(id string, here bool, symbol string, address uint64, addresses []uint64) ([]symbols.KernelSymbol, error) {
	data, err := f.kallsyms(id, here)
	if err != nil {
		return make([]symbols.KernelSymbol, len(addresses)), err
	}
	moved, moves := addresses, uint64(0)
	if at := addressOf(data, symbol); symbol != "" && at != 0 && at != address {
		moves = at - address
		moved = slices.Clone(addresses)
		for i := range moved {
			moved[i] += moves
		}
		if !slices.IsSorted(moved) {
			return make([]symbols.KernelSymbol, len(addresses)), errors.New("the recorded address is not one of the kernel")
		}
	}
	found, shown, err := symbols.Kallsyms(bytes.NewReader(data), moved)
	if err != nil {
		return found, fmt.Errorf("reading the kernel's symbols: %w", err)
	}
	if !shown {
		return found, errors.New("the kernel does not show its symbols: read the recording as root, or set kernel.kptr_restrict to 0")
	}
	for i := range found {
		if moves != 0 && found[i].Module != "" { // modules are loaded elsewhere each time
			found[i] = symbols.KernelSymbol{}
		}
	}
	return found, nil
}

func (f *Finder) kallsyms(id string, here bool) ([]byte, error) {
	if id != "" && f.Cache != "" {
		if data, err := inputfile.Read(filepath.Join(f.Cache, "[kernel.kallsyms]", id, "kallsyms"), maxKallsyms); err == nil {
			return data, nil
		}
	}
	notes, err := hostfs.At("/sys").ReadWhole(maxNotes, "kernel", "notes")
	if own := symbols.BuildID(notes, binary.NativeEndian); !here || id != "" && (err != nil || own == "" || !same(own, id)) {
		return nil, errors.New("the recording is of another kernel, or does not say of which: copy what \"perf archive\" packs to this machine")
	}
	return hostfs.At("/proc").ReadWhole(maxKallsyms, "kallsyms")
}

// addressOf returns the address of a symbol of the kernel, or 0.
func addressOf(kallsyms []byte, name string) (address uint64) {
	for _, kind := range []string{" T ", " t "} {
		if at := bytes.Index(kallsyms, []byte(kind+name+"\n")); at >= 0 {
			line := kallsyms[bytes.LastIndexByte(kallsyms[:at], '\n')+1 : at]
			_, _ = fmt.Sscanf(string(line), "%x", &address) // 0 if it is not a number
			return address
		}
	}
	return 0
}

// Generated returns the functions at ascending addresses of code that a process has generated, by its perf map. Its owner
// must be root or this user.
func (f *Finder) Generated(pid int32, addresses []uint64) ([]string, error) {
	none := make([]string, len(addresses))
	list, err := inputfile.Open(filepath.Join(f.Root, "tmp", fmt.Sprintf("perf-%d.map", pid)))
	if err != nil {
		return none, err
	}
	defer list.Close()
	var info unix.Stat_t
	if err := unix.Fstat(int(list.Fd()), &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG || info.Uid != 0 && info.Uid != uint32(os.Getuid()) {
		return none, errors.Join(err, errors.New("the perf map belongs to another user"))
	}
	return symbols.PerfMap(io.LimitReader(list, maxPerfMap), addresses), nil
}
