// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/holder"
)

// NotWritableError reports that the current user cannot write to the data directory.
type NotWritableError struct {
	Dir  string
	User string
	Err  error
}

// Error implements error.
func (e *NotWritableError) Error() string {
	switch {
	case errors.Is(e.Err, unix.ENOSPC), errors.Is(e.Err, unix.EDQUOT):
		return fmt.Sprintf("opening data directory %s: %v; free some space there or choose another directory with --data-dir", e.Dir, e.Err)
	case errors.Is(e.Err, unix.EROFS), errors.Is(e.Err, unix.ENOTDIR):
		return fmt.Sprintf("opening data directory %s: %v; choose another directory with --data-dir", e.Dir, e.Err)
	case errors.Is(e.Err, unix.EMFILE), errors.Is(e.Err, unix.ENFILE):
		return fmt.Sprintf("opening data directory %s: %v; %s", e.Dir, e.Err, remedy(e.Err))
	}
	return fmt.Sprintf("opening data directory %s: user %s may not write there (%v); give it to that user with \"chown -R %s %s\" or choose another directory with --data-dir",
		e.Dir, e.User, e.Err, e.User, e.Dir)
}

// Unwrap returns the cause.
func (e *NotWritableError) Unwrap() error { return e.Err }

// InUseError reports that another process uses the data directory.
type InUseError struct {
	Dir    string
	Holder holder.Process // zero when it is unknown
}

// Error implements error.
func (e *InUseError) Error() string {
	who := cmp.Or(e.Holder.String(), "another process")
	return fmt.Sprintf("opening data directory %s: %s is using it; stop that process or choose another directory with --data-dir", e.Dir, who)
}

// dirLock keeps every other process, teescope or Prometheus, out of the database.
type dirLock struct{ f *os.File }

// lockDataDir creates the directory if needed and locks it. The lock is Prometheus' own, an flock on tsdb/lock, so that
// a stock Prometheus on the same directory is refused too. The kernel releases the lock when the process ends for any
// reason.
func lockDataDir(dir string) (*dirLock, error) {
	db := filepath.Join(dir, "tsdb")
	if err := os.MkdirAll(db, 0o750); err != nil {
		return nil, notWritable(dir, err)
	}
	f, err := os.OpenFile(filepath.Join(db, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o640)
	if err != nil {
		return nil, notWritable(dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &InUseError{Dir: dir, Holder: holder.OfLock("/proc", f)}
		}
		return nil, fmt.Errorf("locking data directory %s: %w", dir, err)
	}
	// The directory itself must be writable too. The lock file may be from a time when it was.
	if err := CheckWritable(dir); err != nil {
		f.Close()
		return nil, err
	}
	return &dirLock{f: f}, nil
}

// Directories returns the directories of a data directory that may be on other disks. All files are written below one of
// them.
func Directories(dir string) []string {
	db := filepath.Join(dir, "tsdb")
	return []string{dir, db, filepath.Join(db, "wal"), filepath.Join(db, "wbl"), filepath.Join(db, "chunks_head")}
}

// CheckWritable creates a file in the database's directory and removes it, and checks the other directories. It returns a *[NotWritableError] when that
// is not allowed.
func CheckWritable(dir string) error {
	f, err := os.CreateTemp(filepath.Join(dir, "tsdb"), ".writable-*")
	if err != nil {
		return notWritable(dir, err)
	}
	f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return notWritable(dir, err)
	}
	for _, part := range Directories(dir) { // a part may be on another disk
		if err := unix.Access(part, unix.W_OK); err != nil && !errors.Is(err, unix.ENOENT) {
			return notWritable(part, err)
		}
	}
	return nil
}

// release keeps the file. Removing it would let two processes lock two files with the same name.
func (l *dirLock) release() { l.f.Close() }

func notWritable(dir string, err error) error {
	name := strconv.Itoa(os.Geteuid())
	if u, e := user.LookupId(name); e == nil { // user.Current remembers the user of the start
		name = u.Username
	}
	return &NotWritableError{Dir: dir, User: name, Err: err}
}
