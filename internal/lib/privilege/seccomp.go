// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule refuses a system call with an error. Calls that meet the condition pass are allowed.
type rule struct {
	call  uint32
	errno unix.Errno
	pass  *pass
}

// pass is a condition: the lower 32 bits of an argument, masked, equal one of the values.
type pass struct {
	argument uint32 // 0 is the first
	mask     uint32
	values   []uint32
}

// filter is the list of system calls that are refused on one architecture.
type filter struct {
	arch uint32 // as in linux/audit.h
	// Higher numbers are answered with ENOSYS, as by an older kernel. Callers of newer system calls handle this error.
	// All numbers of x32 are higher.
	newest uint32
	rules  []rule
}

// Offsets into struct seccomp_data of linux/seccomp.h. On a little-endian machine the lower half of an argument comes
// first.
const (
	offNumber    = 0
	offArch      = 4
	offArguments = 16
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump compares the accumulator to k, and skips instructions for each of the two results.
func jump(comparison uint16, k uint32, then, otherwise uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: k, Jt: then, Jf: otherwise}
}

func answer(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

func refuse(errno unix.Errno) unix.SockFilter {
	return answer(unix.SECCOMP_RET_ERRNO | uint32(errno)&unix.SECCOMP_RET_DATA)
}

// program returns the filter in classic BPF. Calls that are decided by their number alone cost nothing since Linux
// 5.11: its seccomp keeps a bitmap of calls that are always allowed.
func (f filter) program() []unix.SockFilter {
	p := []unix.SockFilter{
		load(offArch), jump(unix.BPF_JEQ, f.arch, 1, 0), refuse(unix.ENOSYS), // the 32-bit calls
		load(offNumber), jump(unix.BPF_JGT, f.newest, 0, 1), refuse(unix.ENOSYS),
	}
	for _, r := range f.rules {
		body := r.pass.program()
		p = append(p, jump(unix.BPF_JEQ, r.call, 0, uint8(len(body))+1))
		p = append(append(p, body...), refuse(r.errno))
	}
	return append(p, answer(unix.SECCOMP_RET_ALLOW))
}

// program returns when the condition is met, and otherwise continues with the next instruction.
func (c *pass) program() []unix.SockFilter {
	if c == nil {
		return nil
	}
	p := []unix.SockFilter{
		load(offArguments + 8*c.argument),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask},
	}
	for _, v := range c.values {
		p = append(p, jump(unix.BPF_JEQ, v, 0, 1), answer(unix.SECCOMP_RET_ALLOW))
	}
	return p
}

// Seccomp refuses system calls that the role does not need, in all threads and permanently. A refused call fails with
// an error. It does not kill the process, because a library's failed attempt must not end the program. Seccomp requires
// no_new_privs, which [Drop] sets.
func Seccomp(r Role) error {
	f, err := unneeded(r)
	if err != nil {
		return err
	}
	return f.install()
}

// SeccompAvailable returns an error that wraps errUnsupported when the kernel cannot load the filter. It changes nothing.
func SeccompAvailable(r Role) error {
	if _, err := unneeded(r); err != nil {
		return err
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("seccomp is %w: the kernel was built without CONFIG_SECCOMP_FILTER", errUnsupported)
	}
	return nil
}

// install loads the filter in all threads.
func (f filter) install() error {
	code := f.program()
	p := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// Without SPEC_ALLOW, kernels before 5.16 switch on mitigations of speculation. They protect against foreign code
	// in the process and slow the whole process down.
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&p)))
	switch {
	case errors.Is(errno, unix.ENOSYS), errors.Is(errno, unix.EINVAL): // no CONFIG_SECCOMP, no CONFIG_SECCOMP_FILTER
		return fmt.Errorf("seccomp is %w: the kernel was built without CONFIG_SECCOMP_FILTER", errUnsupported)
	case errno != 0:
		return fmt.Errorf("loading the seccomp filter: %w", errno)
	case thread != 0: // this thread could not get the filter; then no thread has it
		return fmt.Errorf("loading the seccomp filter: thread %d has a different filter", thread)
	}
	return nil
}
