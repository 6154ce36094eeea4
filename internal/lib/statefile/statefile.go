// SPDX-License-Identifier: Apache-2.0

// Package statefile reads and writes a file of the program that contains the whole state of a store, such as all silences.
//
// It does not depend on the content of the state.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

// ErrFull is the error for a state that is larger than its file may be.
var ErrFull = errors.New("too much to be stored")

// File is a file with a state. A file that cannot be parsed is renamed. A file that cannot be read stays, because the
// error may be temporary: the disk fails, or too many files are open. It is read again later. A File is not safe for
// concurrent use.
type File[T any] struct {
	Path  string                  // empty if nothing is stored
	Most  int64                   // the largest file that is read, in bytes
	What  string                  // names the state in errors, such as "the silences"
	Loss  string                  // the consequence while the file cannot be read, in errors, such as "there are none"
	Parse func([]byte) (T, error) // any invalid part is an error
	// NotStored is the error that a failed change wraps.
	NotStored error

	unread bool // it could not be read
}

// Read reads the file, which need not exist. It sets the state only if there is no error.
func (f *File[T]) Read(state *T) error {
	f.unread = false
	if f.Path == "" {
		return nil
	}
	data, err := inputfile.ReadOwn(f.Path, f.Most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		parsed, failed := f.Parse(data)
		if err = failed; err == nil {
			*state = parsed
			return nil
		}
	} else if !inputfile.Refused(err) {
		f.unread = true
		return fmt.Errorf("%s cannot be read now, so %s: %w", f.What, f.Loss, err)
	}
	return fmt.Errorf("%s cannot be read, so %s; the file is %s: %w", f.What, f.Loss, atomicfile.SetAside(f.Path), err)
}

// Retry reads a file again that could not be read. It returns nil if there is no such file.
func (f *File[T]) Retry(state *T) error {
	if !f.unread {
		return nil
	}
	return f.stored(f.Read(state))
}

// Write replaces the file with the content as JSON. It returns [ErrFull] if that is more than is read.
func (f *File[T]) Write(content any) error {
	data, err := json.Marshal(content)
	switch {
	case err != nil:
		return f.stored(err)
	case int64(len(data)) > f.Most:
		return ErrFull
	case f.Path == "":
		return nil
	}
	return f.stored(atomicfile.Write(f.Path, data, 0o600))
}

func (f *File[T]) stored(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", f.NotStored, err)
}
