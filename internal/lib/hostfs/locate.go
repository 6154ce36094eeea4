// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks and maxSteps bound the way to a file, because a process makes the links on it. Linux follows as many links.
const maxLinks, maxSteps = 40, 256

// Locate returns a descriptor of the file that a path means to the process: in its own root directory, which may be that of a
// container. Links do not lead out of it. The descriptor cannot be read, and nothing is opened, because opening a
// device can have side effects. The caller closes it. A ".." in the path itself is resolved in its text. With a user,
// each directory on the way must be one that the user may search, by its owner and by the rights of all: those of
// groups do not count.
//
// openat2 does the same, but a sandbox cannot allow only some of its flags (package privilege).
func (p Process) Locate(name string, user User) (fd int, err error) {
	root, err := unix.Open(p.Path("root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: p.Path("root"), Err: err}
	}
	defer func() { _ = unix.Close(root) }() // nothing was written
	return locate(root, name, user.maySearch)
}

// A User is the host's ID of a user.
type User uint32

// MayRead reports whether the user may read a file, by its owner and by the rights of all.
func (u User) MayRead(file *unix.Stat_t) bool {
	return u == 0 || uint32(u) == file.Uid && file.Mode&unix.S_IRUSR != 0 || file.Mode&unix.S_IROTH != 0
}

func (u User) maySearch(dir *unix.Stat_t) bool {
	return u == 0 || uint32(u) == dir.Uid && dir.Mode&unix.S_IXUSR != 0 || dir.Mode&unix.S_IXOTH != 0
}

// LocateIn is [Process.Locate] in the root directory of a descriptor, for any user.
func LocateIn(root int, name string) (fd int, err error) {
	return locate(root, name, User(0).maySearch)
}

func locate(root int, name string, search func(*unix.Stat_t) bool) (fd int, err error) {
	names := split(name)
	for range maxLinks {
		fd, at, target, err := walk(root, names, search)
		switch {
		case err != nil:
			return -1, &os.PathError{Op: "open", Path: name, Err: err}
		case target == "":
			return fd, nil
		case path.IsAbs(target):
			names = append(split(target), names[at+1:]...)
		default: // no name before it is a link, so that its own ".." can be resolved in the text
			before := "/" + strings.Join(names[:at], "/")
			names = append(split(path.Join(before, target)), names[at+1:]...)
		}
	}
	return -1, &os.PathError{Op: "open", Path: name, Err: unix.ELOOP}
}

// split returns the names of a path. A ".." at its beginning stays in the root.
func split(name string) []string {
	return slices.DeleteFunc(strings.Split(path.Clean("/"+name), "/"), func(s string) bool { return s == "" })
}

// walk locates a file by its names below a directory. If one of the names is a link, it returns the index of that name
// and the target of the link instead.
func walk(root int, names []string, search func(*unix.Stat_t) bool) (fd, at int, target string, err error) {
	if len(names) > maxSteps {
		return -1, 0, "", unix.ENAMETOOLONG
	}
	if fd, err = unix.Openat(root, ".", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return -1, 0, "", err
	}
	for at, name := range names {
		parent := fd
		var dir unix.Stat_t
		if err = unix.Fstat(parent, &dir); err == nil && dir.Mode&unix.S_IFMT == unix.S_IFDIR && !search(&dir) {
			err = unix.EACCES
		}
		if err == nil {
			fd, err = unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		_ = unix.Close(parent) // nothing was written
		if err != nil {
			return -1, 0, "", err
		}
		var info unix.Stat_t
		if err = unix.Fstat(fd, &info); err == nil && info.Mode&unix.S_IFMT == unix.S_IFLNK {
			target, err = linkOf(fd)
		}
		if err != nil || target != "" {
			_ = unix.Close(fd) // the same
			return -1, at, target, err
		}
	}
	return fd, 0, "", nil
}

// linkOf returns the target of a link by its descriptor.
func linkOf(fd int) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buffer)
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	return string(buffer[:max(n, 0)]), err
}
