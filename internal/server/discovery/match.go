// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxEntries is the maximum number of names in a directory that are compared with a pattern.
const maxEntries = 10_000

// meta lists the special characters of a pattern.
const meta = `*?[\`

// match returns the names that match a pattern, as [filepath.Glob] does. A directory that cannot be read is an error.
// If it counted as empty, its agents would be lost until it can be read again.
func match(pattern string) ([]string, error) {
	dir, base := filepath.Split(pattern)
	dir = filepath.Clean(dir)
	dirs := []string{dir}
	inPattern := strings.ContainsAny(dir, meta)
	if inPattern {
		var err error
		if dirs, err = match(dir); err != nil {
			return nil, err
		}
	}
	var all []string
	for _, d := range dirs {
		names, err := entries(d, base)
		switch {
		case inPattern && (errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrNotExist)):
			continue // a file that the pattern matches too
		case err != nil:
			return nil, err
		}
		for _, name := range names {
			if is, err := filepath.Match(base, name); err != nil {
				return nil, err
			} else if !is {
				continue
			}
			if all = append(all, filepath.Join(d, name)); len(all) > maxFiles {
				return nil, fmt.Errorf("%s matches more than %d files", pattern, maxFiles)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// entries lists the names in a directory that may match. Without a special character it is the name itself, if it exists.
func entries(dir, base string) ([]string, error) {
	if !strings.ContainsAny(base, meta) {
		_, err := os.Lstat(filepath.Join(dir, base))
		if errors.Is(err, fs.ErrNotExist) {
			_, err = os.Stat(dir)
			return nil, err
		}
		return []string{base}, err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	names, err := f.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxEntries {
		return nil, fmt.Errorf("%s has more than %d files", dir, maxEntries)
	}
	return names, nil
}
