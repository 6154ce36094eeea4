// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// The reasons why a mapped file is not opened.
var (
	errGone     = errors.New("the file was deleted or replaced since it was loaded")
	errLink     = errors.New("a part of its path is a symbolic link, which the kernel does not show in paths of mappings")
	errNotFile  = errors.New("its path is not a regular file")
	errTooLarge = errors.New("the file is too large")
	errOverlay  = errors.New("it is on an overlay file system of another user namespace, which may have its files on one in user space")
)

// maxFile is the maximum size of a file in bytes.
const maxFile = 8 << 30

// File systems by the magic numbers of statfs(2). stat(2) shows other devices or inodes than mappings on these of them.
const (
	overlay  = unix.OVERLAYFS_SUPER_MAGIC
	btrfs    = unix.BTRFS_SUPER_MAGIC
	bcachefs = 0xca451a4e
	fuse     = unix.FUSE_SUPER_MAGIC
)

// Open opens a file that a process has mapped, and nothing else. A process chooses its root directory and the names in
// it, so that the path of a mapping can lead to a device, a FIFO or another file. The path is therefore resolved
// without opening anything, the type, device and inode are compared with the mapping, and only then the file is opened
// through its descriptor.
func (h Processes) Open(tgid uint32, m hostfs.Mapping) (*os.File, hostfs.FileID, error) {
	type opened struct {
		file *os.File
		id   hostfs.FileID
	}
	// If the deadline passes, the file is closed when it is no longer referenced.
	o, err := reader.Of(h.Reads, int(tgid), func() (opened, error) {
		file, id, err := h.open(tgid, m)
		return opened{file, id}, err
	})
	return o.file, o.id, err
}

func (h Processes) open(tgid uint32, m hostfs.Mapping) (*os.File, hostfs.FileID, error) {
	at, err := h.locate(tgid, string(m.Path))
	if err != nil {
		return nil, hostfs.FileID{}, err
	}
	defer func() { _ = unix.Close(at) }() // nothing was written
	found, err := h.examine(tgid, at, m.File)
	if err != nil {
		return nil, hostfs.FileID{}, err
	}
	file, err := hostfs.Reopen(at, string(m.Path))
	if err != nil {
		return nil, hostfs.FileID{}, err
	}
	id, err := h.identify(int(file.Fd()), found, m.File)
	if err != nil {
		return nil, hostfs.FileID{}, errors.Join(err, file.Close())
	}
	return file, id, nil
}

// ofKernel is the device of identities that are addresses of the kernel's inodes. No file system has it.
const ofKernel = 1<<64 - 1

// identify returns the identity of an opened file, which is the identity of the inode that probes are registered on. Each mount of
// an overlay file system has an inode of its own for a file, and all of them have the probes of the file below. While the
// file is open, no other file has the same identity.
func (h Processes) identify(fd int, found located, mapped hostfs.FileID) (hostfs.FileID, error) {
	if found.later || h.Inode != nil {
		page, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE)
		if err != nil {
			return hostfs.FileID{}, fmt.Errorf("mapping it: %w", err)
		}
		defer func() { _ = unix.Munmap(page) }() // it is not in use
		address := uint64(uintptr(unsafe.Pointer(&page[0])))
		if found.later {
			if err := h.sameMapping(address, mapped); err != nil {
				return hostfs.FileID{}, err
			}
		}
		if h.Inode != nil {
			inode, err := h.Inode(address)
			if err != nil { // not the other identity, by which the file would be probed twice
				return hostfs.FileID{}, err
			}
			return hostfs.FileID{Device: ofKernel, Inode: inode}, nil
		}
	}
	if found.overlay { // up to Linux 6.7 mappings show the inode below
		return mapped, nil
	}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return hostfs.FileID{}, err
	}
	return hostfs.FileID{Device: info.Dev, Inode: info.Ino}, nil
}

// locate returns a descriptor of the file that a path names in a process. The descriptor cannot be read, and nothing is
// opened. The executable is located through its link in /proc, so that it may have been moved or deleted.
func (h Processes) locate(tgid uint32, path string) (fd int, err error) {
	process := h.living(tgid)
	if exe, err := process.Executable(); err == nil && exe == path {
		return locateAt(unix.AT_FDCWD, process.Path("exe"), 0)
	}
	if hostfs.Undeleted(path) != path {
		return -1, errGone
	}
	fd, err = locateAt(unix.AT_FDCWD, process.Path("root"), unix.O_DIRECTORY)
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if err != nil {
			return -1, err
		}
		if name == "" || name == "." || name == ".." { // the kernel does not show these in paths of mappings
			return -1, errors.Join(errGone, unix.Close(fd))
		}
		parent := fd
		fd, err = below(parent, name)
		_ = unix.Close(parent) // nothing was written
	}
	return fd, err
}

func locateAt(dir int, path string, flags int) (int, error) {
	fd, err := unix.Openat(dir, path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// below locates a name in a directory. It follows no symbolic link, which could lead out of the process's root.
func below(dir int, name string) (int, error) {
	fd, err := locateAt(dir, name, unix.O_NOFOLLOW)
	if err != nil {
		return -1, err
	}
	if info, err := attributes(fd); err != nil || info.Mode&unix.S_IFMT == unix.S_IFLNK {
		_ = unix.Close(fd)
		return -1, errors.Join(err, errLink)
	}
	return fd, nil
}

// attributes reads the attributes of a file without asking the server of a network file system.
func attributes(fd int) (info unix.Statx_t, err error) {
	const flags, wanted = unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE | unix.STATX_INO | unix.STATX_SIZE
	return info, unix.Statx(fd, "", flags, wanted, &info)
}

// located is the identity of a located file that is not opened yet.
type located struct {
	later   bool // it can be compared with the mapping only after it is opened
	overlay bool // it is on an overlay file system
}

// examine compares a located file with a mapping.
func (h Processes) examine(tgid uint32, fd int, want hostfs.FileID) (located, error) {
	info, err := attributes(fd)
	if err != nil {
		return located{}, fmt.Errorf("reading its attributes: %w", err)
	}
	var system unix.Statfs_t
	switch {
	case info.Mode&unix.S_IFMT != unix.S_IFREG:
		return located{}, errNotFile
	case info.Size > maxFile:
		return located{}, errTooLarge
	}
	if err := unix.Fstatfs(fd, &system); err != nil {
		return located{}, fmt.Errorf("reading its file system: %w", err)
	}
	id := hostfs.FileID{Device: unix.Mkdev(info.Dev_major, info.Dev_minor), Inode: info.Ino}
	switch system.Type {
	case fuse:
		if err := hostfs.CheckFileSystem(fd); err != nil {
			return located{}, err
		}
	case overlay:
		if !h.sameUserNamespace(tgid) {
			return located{}, errOverlay
		}
		return located{later: id != want, overlay: true}, nil
	case btrfs, bcachefs:
		return located{later: id != want}, nil
	}
	if id != want {
		return located{}, errGone
	}
	return located{}, nil
}

// sameUserNamespace reports whether a process is in the user namespace of this one. In others every user can mount.
func (h Processes) sameUserNamespace(tgid uint32) bool {
	own, err1 := h.Proc.Self().Link("ns/user")
	its, err2 := h.living(tgid).Link("ns/user")
	return err1 == nil && err2 == nil && own == its
}

// sameMapping compares how the kernel shows a mapping of this process with that of another one.
func (h Processes) sameMapping(address uint64, want hostfs.FileID) error {
	same := false
	err := h.Proc.Self().Mappings(func(m hostfs.Mapping) {
		same = same || address >= m.Start && address < m.End && m.File == want
	})
	if err == nil && !same {
		err = errGone
	}
	return err
}

// Reader returns a reader of a file that a process has mapped. Each read has a deadline, because the file may be on a
// file system that does not answer.
func (h Processes) Reader(tgid uint32, file *os.File) *FileReader { return &FileReader{h, tgid, file} }

// FileReader reads an opened file of a process.
type FileReader struct {
	from Processes
	tgid uint32
	file *os.File
}

// ReadAt implements io.ReaderAt.
func (r *FileReader) ReadAt(into []byte, offset int64) (int, error) {
	if r.from.Reads == nil {
		return r.file.ReadAt(into, offset)
	}
	most := len(into)
	data, err := reader.Of(r.from.Reads, int(r.tgid), func() ([]byte, error) {
		buffer := make([]byte, most) // the caller may use its own again after the deadline
		n, err := r.file.ReadAt(buffer, offset)
		return buffer[:n], err
	})
	return copy(into, data), err
}

// ErrUnsafe means that a file must not be probed now, because a process that may map it does not answer. The kernel waits for the lock of the
// memory of each process that maps a file while it attaches probes, and no process of the machine can fork in that time
// (register_for_each_vma in kernel/events/uprobes.c).
var ErrUnsafe = errors.New("a process that may map the file does not answer")

// Answers returns an error if a process holds the lock of its memory, so that everything that needs this lock would
// wait. It reads an address that nothing can be mapped at, because that read ends when this process is killed. Others do
// not (mmap_read_lock_killable in mm/memory.c).
func (h Processes) Answers(tgid uint32) error {
	const nowhere = 1<<47 - 4096 // the last page of the address space
	_, err := reader.Of(h.Reads, int(tgid), func() (struct{}, error) {
		memory, err := unix.Open(h.living(tgid).Path("mem"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return struct{}{}, nil //nolint:nilerr // it has ended, or may not be read
		}
		defer func() { _ = unix.Close(memory) }()           // nothing was written
		_, _ = unix.Pread(memory, make([]byte, 1), nowhere) // it always fails
		return struct{}{}, nil
	})
	return err
}
