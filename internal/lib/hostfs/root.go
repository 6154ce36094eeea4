// SPDX-License-Identifier: Apache-2.0

// Package hostfs reads what the kernel reports about the host: files below /proc and /sys, lists of processes and
// threads, and the files of one process. Each file has one parser. Each read has a bound, because other users choose
// names, command lines and mappings.
//
// The package does not cache, does not interpret (which workload, which TEE), and never writes. Control groups are in
// the package cgroup below it.
//
// github.com/prometheus/procfs reads the files of the whole host in the collector node. It does not read processes;
// docs/decisions/hostfs.md explains why.
package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// errTooLong reports that a file is longer than its bound.
var errTooLong = errors.New("the file is too long")

// errOverwritten reports that the memory of a process's environment has no variables, or something else. Redis, nginx and
// PostgreSQL write their title for ps over it, and a program that is being executed has none yet.
var errOverwritten = errors.New("the program has overwritten its environment, or has none")

// Root is a tree of kernel files: /proc, /sys, or a copy of one of them in a test. All reads go through it, so that one
// place decides how a file is read.
type Root struct{ dir string }

// At returns the tree below a directory.
func At(dir string) Root { return Root{dir} }

// Path returns the path of a file in the tree.
func (r Root) Path(elem ...string) string {
	return filepath.Join(append([]string{r.dir}, elem...)...)
}

// Read returns a file, or its first most bytes.
func (r Root) Read(most int, elem ...string) ([]byte, error) {
	return read(unix.AT_FDCWD, r.Path(elem...), most, 0)
}

// ReadWhole returns a file, or errTooLong when it is longer than most bytes.
func (r Root) ReadWhole(most int, elem ...string) ([]byte, error) {
	path := r.Path(elem...)
	data, err := read(unix.AT_FDCWD, path, most+1, 0)
	if err == nil && len(data) > most {
		return nil, &os.PathError{Op: "read", Path: path, Err: errTooLong}
	}
	return data, err
}

// Number returns the number that a file contains.
func (r Root) Number(elem ...string) (uint64, error) {
	const most = 64
	data, err := r.ReadWhole(most, elem...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %.20q is not a number", r.Path(elem...), data)
	}
	return n, nil
}

// ReadLines returns a file, or the complete lines of its first most bytes. A cut line would contain wrong numbers.
func (r Root) ReadLines(most int, elem ...string) ([]byte, error) {
	data, err := r.Read(most+1, elem...)
	return WholeLines(data, most), err
}

// WholeLines truncates data that is longer than most bytes at the end of a line.
func WholeLines(data []byte, most int) []byte {
	if len(data) <= most {
		return data
	}
	return data[:bytes.LastIndexByte(data[:most], '\n')+1]
}

// Exists reports whether a file exists.
func (r Root) Exists(elem ...string) bool {
	_, err := os.Stat(r.Path(elem...))
	return err == nil
}

// Link returns the target of a symbolic link.
func (r Root) Link(elem ...string) (string, error) { return os.Readlink(r.Path(elem...)) }

// Names lists at most the given number of names of a directory, unsorted. With 0 it lists all.
func (r Root) Names(most int, elem ...string) ([]string, error) {
	dir, err := os.Open(r.Path(elem...))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if most == 0 {
		most = -1
	}
	return dir.Readdirnames(most)
}

// numbers lists the first names of a directory that are process or thread IDs, in ascending order. With 0 it lists all,
// whose number the kernel bounds (kernel.pid_max). It may return an error together with a list, when entries end during
// the read.
func (r Root) numbers(most int, elem ...string) ([]int, error) {
	names, err := r.Names(most, elem...)
	var all []int
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 31); err == nil {
			all = append(all, int(n))
		}
	}
	slices.Sort(all)
	return all, err
}

// Dir is an open directory. It avoids resolving the path again for each of several files.
type Dir struct{ fd int }

// OpenDir opens a directory of the tree.
func (r Root) OpenDir(elem ...string) (Dir, error) {
	path := r.Path(elem...)
	fd, err := retried(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return Dir{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return Dir{fd}, nil
}

// Read returns a file of the directory, or its first most bytes. It follows no symbolic link.
func (d Dir) Read(most int, name string) ([]byte, error) {
	return read(d.fd, name, most, unix.O_NOFOLLOW)
}

// Append appends a file of the directory to a buffer, until the buffer holds most bytes.
func (d Dir) Append(buf []byte, most int, name string) ([]byte, error) {
	return appendFile(buf, d.fd, name, most, unix.O_NOFOLLOW)
}

// Close closes the directory. Nothing was written, so it returns no error.
func (d Dir) Close() { _ = unix.Close(d.fd) }

// buffers are for files of unknown length. stat reports 0 or 4096 for them.
var buffers = sync.Pool{New: func() any { buf := make([]byte, 0, firstRead); return &buf }}

const (
	firstRead = 8 << 10
	// largestKept is the maximum size of a buffer that is kept for the next file.
	largestKept = 1 << 20
)

// read reads a file below an open directory and returns a copy of the exact size.
func read(dir int, path string, most, flags int) (data []byte, err error) {
	err = within(dir, path, most, flags, func(all []byte) { data = bytes.Clone(all) })
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

// within reads a file and passes its content to f, which must not keep it.
func within(dir int, path string, most, flags int, f func(data []byte)) error {
	buf := buffers.Get().(*[]byte) //nolint:forcetypeassert // nothing else is put there
	data, err := appendFile((*buf)[:0], dir, path, most, flags)
	if err == nil {
		f(data)
	}
	if cap(data) <= largestKept {
		*buf = data[:0]
		buffers.Put(buf)
	}
	return err
}

// appendFile does not use os.File, because os.File registers each file with the runtime's poller. That is half the cost of
// reading a small file. A FIFO instead of a file does not block it.
func appendFile(buf []byte, dir int, path string, most, flags int) ([]byte, error) {
	fd, err := retried(func() (int, error) {
		return unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|flags, 0)
	})
	if err != nil {
		return buf, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	for len(buf) < most {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(firstRead, 3*len(buf)))
		}
		// A short read is not the end, because the kernel generates these files while they are read.
		n, err := retried(func() (int, error) { return unix.Read(fd, buf[len(buf):min(cap(buf), most)]) })
		if err != nil {
			return buf, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		buf = buf[:len(buf)+n]
	}
	return buf, nil
}

// retried repeats a system call that a signal has interrupted.
func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
