// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files so that a reader sees either the old or the new content, also after a crash.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Suffix is added to the name of a file while it is written. A kill leaves at most one such file, and the next writing
// replaces it.
const Suffix = ".new"

// Write replaces a file: it writes another one in the same directory, flushes it to the disk and renames it. A link at
// that place is replaced, not followed. What is not a regular file, such as /dev/stdout, is written directly.
func Write(name string, data []byte, perm os.FileMode) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, data, perm)
	}
	beside := name + Suffix
	if err := unix.Unlink(beside); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing %s: %w", beside, err)
	}
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(beside, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(beside))
	}
	return syncDir(filepath.Dir(name))
}

// SetAside renames a file that cannot be read to NAME.bad, and replaces an earlier file of that name. It returns the
// name that the file has now, which is unchanged if the renaming fails.
func SetAside(name string) string {
	aside := name + ".bad"
	if err := os.Rename(name, aside); err != nil {
		return name
	}
	return aside
}

// syncDir makes the rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil //nolint:nilerr // the file is written; its directory is not readable
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
