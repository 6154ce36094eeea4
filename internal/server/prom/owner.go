// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Give makes a user the owner of the data directory, of the database, and of the state beside it, as far as they
// belong to root. It follows no link. Other files in the data directory stay root's, and what belongs to other users stays
// theirs. So does a file with several names, because another name may be outside.
func Give(dir string, uid, gid int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening data directory: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	one := func(name string, entry fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		if err == nil && given(info) {
			err = root.Lchown(name, uid, gid)
		}
		if errors.Is(err, fs.ErrNotExist) { // the database removes files meanwhile
			return nil
		}
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if name == "." || written(name) {
			return one(name, entry, err)
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("giving data directory %s to the user %d: %w", dir, uid, err)
	}
	return nil
}

// given reports whether a file changes its owner.
func given(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid == 0 && (info.IsDir() || info.Mode().IsRegular() && s.Nlink == 1)
}
