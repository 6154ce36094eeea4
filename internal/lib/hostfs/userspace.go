// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// errUserSpace is the error of [CheckFileSystem].
var errUserSpace = errors.New("the file is on a file system in user space, whose server can stop the kernel while it attaches probes")

// CheckFileSystem returns an error if probes must not be attached to the file of a descriptor, because it is on a file system
// in user space. The file system of the root directory is an exception: a virtual machine may have it on its host, with the same
// magic number.
func CheckFileSystem(fd int) error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return fmt.Errorf("reading its file system: %w", err)
	}
	if system.Type != unix.FUSE_SUPER_MAGIC {
		return nil
	}
	var file unix.Statx_t // without asking the server
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &file); err != nil {
		return fmt.Errorf("reading its attributes: %w", err)
	}
	var root unix.Stat_t
	if err := unix.Stat("/", &root); err != nil || root.Dev != unix.Mkdev(file.Dev_major, file.Dev_minor) {
		return errUserSpace
	}
	return nil
}
