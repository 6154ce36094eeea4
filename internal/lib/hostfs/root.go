// SPDX-License-Identifier: Apache-2.0

// Package hostfs reads what the kernel says about the host: files below /proc and /sys, lists of
// processes and threads, and the files of one process. Each file has one parser. Each read has a bound,
// because other users choose names, command lines and mappings.
//
// It does not cache, it does not interpret (which workload, which TEE), and it never writes. The control groups
// themselves are in the package cgroup below it.
//
// github.com/prometheus/procfs reads the files of the whole host in the collector node. It does not read
// processes: docs/decisions/hostfs.md says why.
package hostfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrTooLong says that a file has more bytes than its bound.
var ErrTooLong = errors.New("the file is too long")

// Root is a tree of files that the kernel makes: /proc, /sys, or a copy of one of them in a test. All reading
// goes through it, so that how a file is read is decided in one place.
type Root struct{ dir string }

// At returns the tree below a directory.
func At(dir string) Root { return Root{dir} }

// Path is the name of a file of the tree.
func (r Root) Path(elem ...string) string {
	return filepath.Join(append([]string{r.dir}, elem...)...)
}

// Read returns a file, at most its first bytes.
func (r Root) Read(most int, elem ...string) ([]byte, error) {
	return read(unix.AT_FDCWD, r.Path(elem...), most, 0)
}

// ReadWhole returns a file, and ErrTooLong for one with more bytes than most.
func (r Root) ReadWhole(most int, elem ...string) ([]byte, error) {
	path := r.Path(elem...)
	data, err := read(unix.AT_FDCWD, path, most+1, 0)
	if err == nil && len(data) > most {
		return nil, &os.PathError{Op: "read", Path: path, Err: ErrTooLong}
	}
	return data, err
}

// ReadLines returns a file, and of one with more bytes than most the lines that are complete: half a line
// would be wrong numbers.
func (r Root) ReadLines(most int, elem ...string) ([]byte, error) {
	data, err := r.Read(most+1, elem...)
	return WholeLines(data, most), err
}

// WholeLines cuts data that is longer than most after a line.
func WholeLines(data []byte, most int) []byte {
	if len(data) <= most {
		return data
	}
	return data[:bytes.LastIndexByte(data[:most], '\n')+1]
}

// Exists tells whether there is such a file.
func (r Root) Exists(elem ...string) bool {
	_, err := os.Stat(r.Path(elem...))
	return err == nil
}

// Link returns where a symbolic link leads to.
func (r Root) Link(elem ...string) (string, error) { return os.Readlink(r.Path(elem...)) }

// Names lists a directory in no order, at most the given number of names; 0 lists all.
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

// numbers lists the names of a directory that are process or thread IDs, in ascending order. The kernel
// bounds how many there are (kernel.pid_max). Entries that end meanwhile can make an error beside a list.
func (r Root) numbers(elem ...string) ([]int, error) {
	names, err := r.Names(0, elem...)
	var all []int
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 31); err == nil {
			all = append(all, int(n))
		}
	}
	slices.Sort(all)
	return all, err
}

// Dir is an open directory. It saves the way to a directory of which several files are read.
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

// Read returns a file of the directory, at most its first bytes. It follows no symbolic link.
func (d Dir) Read(most int, name string) ([]byte, error) {
	return read(d.fd, name, most, unix.O_NOFOLLOW)
}

// Append appends a file of the directory to a buffer until it holds most bytes.
func (d Dir) Append(buf []byte, most int, name string) ([]byte, error) {
	return appendFile(buf, d.fd, name, most, unix.O_NOFOLLOW)
}

// Close closes the directory. Nothing was written, so there is no error.
func (d Dir) Close() { _ = unix.Close(d.fd) }

// buffers are for files whose length is not known before they are read: stat says 0 or 4096.
var buffers = sync.Pool{New: func() any { buf := make([]byte, 0, firstRead); return &buf }}

const (
	firstRead = 8 << 10
	// largestKept bounds the buffers that are kept for the next file.
	largestKept = 1 << 20
)

// read reads a file below an open directory into a buffer and returns a copy of the size that it needs.
func read(dir int, path string, most, flags int) (data []byte, err error) {
	err = within(dir, path, most, flags, func(all []byte) { data = bytes.Clone(all) })
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

// within reads a file and lends its content to f, which must not keep it.
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

// appendFile does not use os.File, which registers each file with the runtime's poller: that is half the cost of
// reading a small one. A FIFO in the place of a file does not block it.
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
		// A short read is not the end: these files are made as they are read.
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
