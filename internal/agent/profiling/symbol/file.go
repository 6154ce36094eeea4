// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// fileKey identifies a mapped file. The path is part of it, because on some file systems the mappings of different files
// show the same device and inode.
type fileKey struct {
	hostfs.FileID
	path string
}

// version identifies the content of a file. Each write and each replacement changes it.
type version struct {
	size             int64
	changed, written unix.Timespec // ctime and mtime
}

func versionOf(f *os.File) (version, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return version{}, err
	}
	return version{stat.Size, stat.Ctim, stat.Mtim}, nil
}

// file is an ELF file that processes have mapped. It is remembered for a while after its last process has ended, without being held
// open: the programs of a build start again and again.
type file struct {
	program *executable.Program // nil if it is not an ELF file, or closed
	buildID string
	version version
	closer  io.Closer // nil if there is nothing to close
	closed  int       // for how many prunings no process has used it; 0 while it is open
}

// Close closes the file.
func (f *file) Close() error {
	if f.closer == nil {
		return nil
	}
	err := f.closer.Close()
	f.program, f.closer = nil, nil
	return err
}

// fileOf opens the file of a mapping, or returns nil if that is not possible. It returns an error if the process did not answer.
// Then opening may succeed later.
func (t *Table) fileOf(p *Process, m *Mapping) (*file, error) {
	key := fileKey{m.id, m.Path}
	f, known := t.files[key]
	if known && f.closed == 0 {
		if f.program == nil {
			return nil, nil
		}
		return f, nil
	}
	if t.open >= maxFiles {
		return nil, nil
	}
	opened, _, err := t.host.Open(uint32(p.PID), hostfs.Mapping{Start: m.Start, End: m.End, Offset: m.Offset, File: m.id, Path: []byte(m.Path)})
	if err != nil {
		return nil, err // another process may have it where it can be opened
	}
	program, err := executable.Read(t.host.Reader(uint32(p.PID), opened))
	if err != nil {
		_ = opened.Close() // nothing was written
		if !reader.Unanswered(err) {
			t.files[key] = &file{}
		}
		return nil, err
	}
	is, err := versionOf(opened)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	if !known || f.version != is {
		f = &file{buildID: program.BuildID(), version: is}
		t.files[key] = f
	}
	f.program, f.closer, f.closed = program, opened, 0
	t.open++
	return f, nil
}

// ownVDSO reads the vDSO. It returns nil if there is none.
func ownVDSO(proc hostfs.Root) (f *file, size uint64) {
	const most = 64 << 10
	image, err := proc.OwnVDSO(most)
	if err != nil {
		return nil, 0
	}
	program, err := executable.Read(bytes.NewReader(image))
	if err != nil {
		return nil, 0
	}
	return &file{program: program, buildID: program.BuildID()}, uint64(len(image))
}

// resolveFile finds the names of locations in one file: in its debug file if there is one, else in its own tables.
func (t *Table) resolveFile(f *file, list []int, locations []Location, names []Name) {
	var linked []uint64
	var of []int
	for _, i := range list {
		m := locations[i].Mapping
		address, ok := f.program.Address(locations[i].Address-m.Start+m.Offset, 0)
		if !ok {
			names[i].Reason = unmapped
			continue
		}
		linked, of = append(linked, address), append(of, i)
	}
	addresses, index := sorted(linked)
	found := make([]string, len(addresses))
	debug := t.debugFile(f.buildID)
	if debug != nil {
		defer func() { _ = debug.Close() }() // nothing was written
	}
	reason := stripped
	for _, source := range []*file{debug, f} {
		if source == nil {
			continue
		}
		more, err := source.program.Names(addresses)
		if err != nil {
			reason = unreadable // the other one may have names
			continue
		}
		for i, name := range more {
			if found[i] == "" {
				found[i] = name
			}
		}
	}
	for k, i := range of {
		if names[i].System = found[index[k]]; names[i].System == "" {
			names[i].Reason = reason
		}
	}
}

// costOf returns how many bytes are read for the names of a number of locations in a file.
func costOf(t *Table, f *file, locations int) uint64 {
	cost := executable.NamesCost(f.program, locations)
	if debug := t.debugFile(f.buildID); debug != nil {
		cost += executable.NamesCost(debug.program, locations)
		_ = debug.Close() // nothing was written
	}
	return cost
}

// debugFile opens the debug file with a build ID, or returns nil.
func (t *Table) debugFile(buildID string) *file {
	if len(buildID) < 4 || t.Debug == "" {
		return nil
	}
	path := filepath.Join(t.Debug, ".build-id", buildID[:2], buildID[2:]+".debug")
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // nothing was written
		return nil
	}
	program, err := executable.Read(f)
	if err != nil || program.BuildID() != buildID {
		_ = f.Close() // nothing was written
		return nil
	}
	return &file{program: program, buildID: buildID, closer: f}
}
