// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// maxReserve is the space that is kept for chunks which are only in memory when the disk becomes full. A chunk takes
	// about 150 bytes, and a series has at most two such chunks.
	maxReserve = 32 << 20
	// reserveShare is the share of the free space that the reserve takes at most.
	reserveShare = 8
)

// reserve is a file that takes up space on the database's disk. It is removed when the disk is full.
type reserve struct {
	path string
	size int64
}

// newReserve creates the file. Without space, or on a file system that cannot reserve any, it is empty.
func newReserve(dir string) *reserve {
	r := &reserve{path: filepath.Join(dir, "reserve"), size: maxReserve}
	if free := freeBytes(dir); free >= 0 {
		r.size = min(r.size, free/reserveShare)
	}
	if r.take() != nil {
		r.release()
	}
	return r
}

// take creates the file again.
func (r *reserve) take() error { return allocate(r.path, r.size) }

// release gives the space back.
func (r *reserve) release() { _ = os.Remove(r.path) }

// probe reports whether the disk can be written and has more space than the reserve. Otherwise, the next write could use
// up the space that the reserve has just given back.
func (r *reserve) probe() error {
	if free := freeBytes(filepath.Dir(r.path)); free >= 0 && free < r.size+r.margin() {
		return fmt.Errorf("%d bytes are free: %w", free, unix.ENOSPC)
	}
	if err := r.take(); err != nil {
		return err
	}
	beside := r.path + ".probe"
	err := allocate(beside, r.margin())
	return errors.Join(err, os.Remove(beside))
}

func (r *reserve) margin() int64 { return r.size/4 + 64<<10 }

// allocate creates a file, writes to it, and reserves space for it where the file system can.
func allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	if err == nil {
		if err = unix.Fallocate(int(f.Fd()), 0, 0, size); errors.Is(err, unix.EOPNOTSUPP) {
			err = nil
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// freeBytes returns how many bytes this process may still write, or -1 when it is unknown.
func freeBytes(dir string) int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return -1
	}
	free := fs.Bavail
	if os.Geteuid() == 0 {
		free = fs.Bfree
	}
	return int64(free) * fs.Bsize //nolint:gosec // sizes of disks
}

// remedy says what to do about a write error.
func remedy(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "free some space on its disk, or lower retention.size"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return "raise the limit of open files (LimitNOFILE= of the unit)"
	case errors.Is(err, unix.EROFS):
		return "the file system became read-only: look for disk errors in the kernel's log"
	case errors.Is(err, unix.EIO):
		return "look for disk errors in the kernel's log"
	}
	return "check the disk of the data directory"
}
