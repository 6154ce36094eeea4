// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Sparse lets the kernel map only those pages of this program's code and constants that are used. By default it maps 16
// pages at a fault, or 2 MiB where the page cache has them in one piece, and soon nearly all of the program is in memory.
//
// No advice switches the 16 pages off. But the kernel maps pages one by one where a userfaultfd is registered
// (should_fault_around in mm/memory.c). Write protection is registered and never used, so no faults have to be answered.
// Linux allows that for pages of files from 6.7 on (asynchronous write protection, Documentation/admin-guide/mm/userfaultfd.rst).
// On older kernels, and where a filter refuses userfaultfd, nothing changes.
//
// The file descriptor stays open: closing it would end this. Another program that this process executes does not inherit it.
func Sparse() {
	fd, ok := open()
	if !ok {
		return
	}
	clean, mixed := own(hostfs.At("/proc").Self())
	for _, m := range append(clean, mixed...) {
		area := uffdRegister{start: uint64(m.from), length: uint64(m.to - m.from), mode: writeProtect}
		if control(fd, register, unsafe.Pointer(&area)) {
			_, _, _ = syscall.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_NOHUGEPAGE) // advice
		}
	}
}

// From include/uapi/linux/userfaultfd.h.
const (
	userModeOnly = 1 // without privileges: faults of the kernel are not handled
	apiVersion   = 0xaa
	unpopulated  = 1 << 13 // UFFD_FEATURE_WP_UNPOPULATED, which the next one needs
	asynchronous = 1 << 15 // UFFD_FEATURE_WP_ASYNC
	writeProtect = 1 << 1  // UFFDIO_REGISTER_MODE_WP
	setAPI       = 0xc018aa3f
	register     = 0xc020aa00
)

type uffdAPI struct{ version, features, ioctls uint64 }

type uffdRegister struct{ start, length, mode, ioctls uint64 }

// open opens a userfaultfd for asynchronous write protection.
func open() (fd uintptr, ok bool) {
	fd, _, err := syscall.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|userModeOnly, 0, 0)
	if err != 0 {
		return 0, false
	}
	api := uffdAPI{version: apiVersion, features: asynchronous | unpopulated}
	if !control(fd, setAPI, unsafe.Pointer(&api)) {
		_ = syscall.Close(int(fd)) // nothing was registered
		return 0, false
	}
	return fd, true
}

func control(fd, request uintptr, argument unsafe.Pointer) bool {
	_, _, err := syscall.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument))
	return err == 0
}
