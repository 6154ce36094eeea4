// SPDX-License-Identifier: Apache-2.0

// Package returns decides whether a probe on the return of a user-space function is safe on a machine.
//
// It is not safe if the kernel could kill a program because of such a probe.
package returns

import (
	"bytes"
	"fmt"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/symbols"
)

// release is the version of a kernel, such as 6.12.13.
type release struct{ major, minor, patch int }

func (r release) before(major, minor, patch int) bool {
	switch {
	case r.major != major:
		return r.major < major
	case r.minor != minor:
		return r.minor < minor
	}
	return r.patch < patch
}

// releaseOf parses the name of a release. A missing third number counts as zero, as in the names of Linux. Debian's names, such
// as 6.1.0-52, have a zero as third number. Such a kernel counts as the oldest one of its series.
func releaseOf(name []byte) (release, bool) {
	var r release
	n, _ := fmt.Sscanf(string(name), "%d.%d.%d", &r.major, &r.minor, &r.patch)
	return r, n >= 2
}

// Refuse returns the reason why returns must not be probed on a machine with this /proc, or "" if they may be. A probe of a
// return changes the return address on the stack, so that the function returns to code of the kernel.
func Refuse(proc hostfs.Root) string {
	cpu, _ := proc.Processor()
	name, _ := proc.Read(256, "sys/kernel/osrelease")
	r, known := releaseOf(name)
	// With a shadow stack the processor compares both addresses. Linux changes the shadow stack too only from 6.11 on.
	if cpu.Has("user_shstk") && (!known || r.before(6, 11, 0)) {
		return "this processor and kernel have shadow stacks, with which Linux before 6.11 breaks programs whose returns are probed"
	}
	return refuseCalls(r, known, hasReturnCall(proc))
}

// refuseCalls returns the reason why the return of a function must not make a system call on this kernel, or "". Since 6.11, the
// kernel's code at the return address makes the system call "uretprobe". A filter of system calls (seccomp) without a rule for
// this call ends the program. Linux lets the call pass all filters since 6.14, 6.13.3 and 6.12.14 (commit cf6cb56ef244). A
// program may set a filter at any time. So such probes are used only on kernels that are known to let the call pass.
func refuseCalls(r release, known bool, call answer) string {
	passes := !r.before(6, 14, 0) || r.minor == 13 && r.patch >= 3 || r.minor == 12 && r.patch >= 14
	switch {
	case call == no, known && r.before(6, 11, 0) && call == unknown:
		return ""
	case known && r.major >= 6 && passes:
		return ""
	}
	return "this kernel is not known to let the return of a probed function pass filters of system calls (seccomp), which would " +
		"end the program: Linux 6.12.14, 6.13.3 and 6.14 do"
}

// answer is the answer to a question about the kernel.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// maxSymbols limits how much of /proc/kallsyms is read. It has about 10 MB.
const maxSymbols = 256 << 20

// hasReturnCall reports whether the kernel has the system call "uretprobe". A distribution's kernel may have it although its
// version is older than 6.11.
func hasReturnCall(proc hostfs.Root) answer {
	in, err := proc.Open(maxSymbols, "kallsyms")
	if err != nil {
		return unknown
	}
	defer func() { _ = in.Close() }() // nothing was written
	found, n := no, 0
	err = symbols.EachKernelLine(in, func(l symbols.KernelLine) bool {
		if n++; bytes.Contains(l.Name, []byte("__x64_sys_uretprobe")) {
			found = yes
		}
		return found == no
	})
	const few = 1000 // a kernel has more functions
	if found == no && (err != nil || n < few) {
		return unknown
	}
	return found
}
