// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// unsafeDirError reports that root must not use a data directory, because another user could make it write elsewhere.
type unsafeDirError struct{ Dir, Path, Reason, Remedy string }

// Error implements error.
func (e *unsafeDirError) Error() string {
	return fmt.Sprintf("data directory %s: %s %s; %s", e.Dir, e.Path, e.Reason, e.Remedy)
}

// dirChecker checks a data directory that root is about to use.
type dirChecker struct {
	dir    string
	owners []int // users that may own the data directory and what is in it
}

// checkDataDir refuses a data directory that other users could replace, write, or fill with links. It checks each
// directory above, because a user who may write one can rename what is below. A process that is not root risks its own files
// only. The user owner may own the directory: the process becomes this user later.
func checkDataDir(dir string, owner int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	c := dirChecker{dir: dir, owners: []int{0, owner}}
	if err := c.above(dir, 0); err != nil {
		return err
	}
	if err := refuseForeign(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return notWritable(dir, err)
	}
	return c.within()
}

// maxLinks is the maximum number of links in a path, as in the kernel.
const maxLinks = 40

// above checks the directories of a path, the data directory included, as far as they exist. The administrator's links
// are followed.
func (c dirChecker) above(path string, links int) error {
	if links > maxLinks {
		return c.unsafe(path, "has too many links", "choose another directory with --data-dir")
	}
	parts := strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	at := "/"
	for i, part := range append([]string{""}, parts...) {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return notWritable(c.dir, err)
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return c.unsafe(at, "has no owner", "choose another directory with --data-dir")
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if s.Uid != 0 {
				return c.unsafe(at, fmt.Sprintf("is a link of the user %d, who could change it", s.Uid), "remove the link")
			}
			to, err := os.Readlink(at)
			if err != nil {
				return notWritable(c.dir, err)
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			return c.above(filepath.Join(append([]string{to}, parts[i:]...)...), links+1)
		}
		if err := c.directory(at, info, s, i == len(parts)); err != nil {
			return err
		}
	}
	return nil
}

// directory checks who may change a directory. In a directory with the sticky bit, only the owner may rename an entry.
func (c dirChecker) directory(at string, info fs.FileInfo, s *syscall.Stat_t, last bool) error {
	owners := []int{0}
	if last {
		owners = c.owners
	}
	mode := info.Mode()
	switch {
	case !info.IsDir():
		return notWritable(c.dir, fmt.Errorf("%s is not a directory", at))
	case !slices.Contains(owners, int(s.Uid)):
		return c.unsafe(at, fmt.Sprintf("belongs to the user %d, who could replace what root writes there", s.Uid),
			fmt.Sprintf("give it to root with \"chown -R root %s\" or choose another directory with --data-dir", at))
	case mode.Perm()&0o002 != 0 && (last || mode&fs.ModeSticky == 0):
		return c.unsafe(at, "may be written by every user", fmt.Sprintf("remove that with \"chmod o-w %s\" or choose another directory with --data-dir", at))
	case mode.Perm()&0o020 != 0 && s.Gid != 0 && (last || mode&fs.ModeSticky == 0):
		return c.unsafe(at, fmt.Sprintf("may be written by the group %d", s.Gid),
			fmt.Sprintf("remove that with \"chmod g-w %s\" or choose another directory with --data-dir", at))
	}
	return nil
}

// within refuses links, pipes, devices, and directories of other users. The service user, who writes here, could otherwise
// make root write to any file at the next start, or wait for ever.
func (c dirChecker) within() error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return notWritable(c.dir, err)
	}
	defer func() { _ = root.Close() }() // it was only read
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return notWritable(c.dir, err)
		}
		at := filepath.Join(c.dir, name)
		if entry.Type()&fs.ModeSymlink != 0 {
			return c.unsafe(at, "is a link, and root follows none in its data directory",
				"move the data back, or mount the other disk there with \"mount --bind\"")
		}
		if entry.Type()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
			return c.unsafe(at, "is a pipe or a device, which could block the start", "remove it")
		}
		if !entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		return c.directory(at, info, s, true)
	})
}

func (c dirChecker) unsafe(path, reason, remedy string) error {
	return &unsafeDirError{Dir: c.dir, Path: path, Reason: reason, Remedy: remedy}
}
