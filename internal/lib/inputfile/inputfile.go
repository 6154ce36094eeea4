// SPDX-License-Identifier: Apache-2.0

// Package inputfile opens and reads files that an operator names: configurations, rules, secrets and certificates. It also
// reads the program's own files.
//
// It refuses files that could block the program or never end. It does not interpret what it reads.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

var (
	// errKind is the error of a file that is not a regular file.
	errKind = errors.New("not a regular file")
	// ErrSize is the error of a file that is too large.
	ErrSize = errors.New("the limit for this file")
)

// Open opens a file for reading. The open of a named pipe waits for a writer, and no signal ends that wait. So the file is
// opened without waiting, and refused if it is a named pipe or a device. A pipe of the shell, as in <(command) or
// /dev/stdin, has a writer and is accepted. So is /dev/null, the usual name for no content. The first read of a directory
// fails. The error is an *[fs.PathError].
func Open(name string) (*os.File, error) { return open(name, 0) }

func open(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|flags, 0) // os adds O_CLOEXEC
	if err != nil {
		return nil, err
	}
	if err := accept(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

// Read reads a file of at most the given number of bytes. The error is an *[fs.PathError].
func Read(name string, most int64) ([]byte, error) { return read(name, 0, most) }

// ReadOwn reads a file of the program's own as [Read] does. It follows no link in the last part of the name.
func ReadOwn(name string, most int64) ([]byte, error) { return read(name, unix.O_NOFOLLOW, most) }

// Refused reports whether an error says that a file is of the wrong kind, too large, or a link that is not followed. After
// other errors the file may be readable later.
func Refused(err error) bool {
	return errors.Is(err, errKind) || errors.Is(err, ErrSize) || errors.Is(err, unix.ELOOP)
}

func read(name string, flags int, most int64) ([]byte, error) {
	f, err := open(name, flags)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := ReadAll(f, most)
	if errors.Is(err, ErrSize) {
		err = &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, err
}

// ReadAll reads at most the given number of bytes. The error wraps [ErrSize] if there are more.
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, tooLarge(most)
	}
	return data, nil
}

func tooLarge(most int64) error {
	if most>>20<<20 == most {
		return fmt.Errorf("it is larger than %d MiB, %w", most>>20, ErrSize)
	}
	return fmt.Errorf("it is larger than %d KiB, %w", most>>10, ErrSize)
}

// maxByName is the maximum size of a file that a library reads as a whole, in bytes. The certificates of a distribution's
// authorities have less than 1 MiB.
const maxByName = 16 << 20

// Check returns an error that wraps errKind for a file that Open refuses because of its kind, and an error for a file of
// more than 16 MiB. It skips empty names, and leaves other errors to the reader of the file. It is for files that a library
// opens again by name: a file that is replaced in between is not detected.
func Check(names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		f, err := Open(name)
		if errors.Is(err, errKind) {
			return err
		}
		if err != nil {
			continue
		}
		info, err := f.Stat()
		_ = f.Close() // nothing was written
		if err == nil && info.Mode().IsRegular() && info.Size() > maxByName {
			return &fs.PathError{Op: "read", Path: name, Err: tooLarge(maxByName)}
		}
	}
	return nil
}

func accept(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = conn.Control(func(fd uintptr) { refused = acceptDescriptor(int(fd)) })
	return errors.Join(err, refused)
}

func acceptDescriptor(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFDIR:
		return nil
	case unix.S_IFIFO:
		// Only pipes without a name are in the file system of the kernel's pipes.
		var in unix.Statfs_t
		if err := unix.Fstatfs(fd, &in); err == nil && in.Type == unix.PIPEFS_MAGIC {
			return nil
		}
		return fmt.Errorf("it is a named pipe, %w", errKind)
	case unix.S_IFCHR:
		if stat.Rdev == unix.Mkdev(1, 3) { // /dev/null
			return nil
		}
	}
	return fmt.Errorf("it is a device, %w", errKind)
}
