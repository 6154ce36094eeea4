// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
)

// Archive writes an initial RAM file system: cpio in the "newc" format of the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst, uncompressed, because the guest would
// unpack it slowly.
type Archive struct {
	w    io.Writer
	n    int64
	ino  int
	have map[string]bool
	err  error
}

// newArchive begins an archive.
func newArchive(w io.Writer) *Archive {
	return &Archive{w: w, have: map[string]bool{".": true, "/": true}}
}

// File types of cpio, as in stat(2).
const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
)

// Bytes adds a file.
func (a *Archive) Bytes(name string, perm os.FileMode, data []byte) {
	a.add(name, typeFile|uint32(perm.Perm()), int64(len(data)), bytes.NewReader(data))
}

// link adds a symbolic link.
func (a *Archive) link(name, target string) {
	a.add(name, typeLink|0o777, int64(len(target)), bytes.NewReader([]byte(target)))
}

// Dir adds a directory and those above it.
func (a *Archive) Dir(name string, perm os.FileMode) {
	a.add(name, typeDir|uint32(perm.Perm()), 0, bytes.NewReader(nil))
}

// File copies a file of the host.
func (a *Archive) File(name, from string) {
	f, err := os.Open(from)
	if err != nil {
		a.fail(err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", from)
	}
	if err != nil {
		a.fail(err)
		return
	}
	a.add(name, typeFile|uint32(info.Mode().Perm()), info.Size(), f)
}

// Close ends the archive and returns the first error of all additions.
func (a *Archive) Close() error {
	a.entry("TRAILER!!!", 0, 0, bytes.NewReader(nil))
	return a.err
}

func (a *Archive) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// add writes an entry once, after the directories above it.
func (a *Archive) add(name string, mode uint32, size int64, data io.Reader) {
	name = path.Clean("/" + name)
	if a.have[name] {
		return
	}
	a.have[name] = true
	if dir := path.Dir(name); !a.have[dir] {
		a.Dir(dir, 0o755)
	}
	a.entry(name[1:], mode, size, data)
}

func (a *Archive) entry(name string, mode uint32, size int64, data io.Reader) {
	if a.err != nil {
		return
	}
	if size >= 1<<32 {
		a.fail(fmt.Errorf("%s has %d bytes: the format ends at 4 GiB", name, size))
		return
	}
	a.ino++
	// magic, ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize, check
	a.printf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		a.ino, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	a.pad()
	n, err := io.Copy(a.w, data)
	a.n += n
	if err == nil && n != size {
		err = fmt.Errorf("%s changed while it was read: %d bytes, then %d", name, size, n)
	}
	if err != nil {
		a.fail(err)
	}
	a.pad()
}

func (a *Archive) printf(format string, args ...any) {
	n, err := fmt.Fprintf(a.w, format, args...)
	a.n += int64(n)
	if err != nil {
		a.fail(err)
	}
}

func (a *Archive) pad() {
	if rest := a.n % 4; rest != 0 {
		a.printf("%s", "\x00\x00\x00"[:4-rest])
	}
}
