// SPDX-License-Identifier: Apache-2.0

// Package returns decides whether the returns of functions in processes may be probed on a machine.
//
// It refuses where the kernel could end a program because of such a probe.
package returns

import (
	"bytes"
	"fmt"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/symbols"
)

// release is the version of a kernel: of 6.12.13 these are 6, 12 and 13.
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

// releaseOf parses the name of a release. A missing third number is zero, as in the names of Linux. Distributions whose
// names have a number of their own there, as Debian's 6.1.0-52, begin with zero, which stands for the oldest one.
func releaseOf(name []byte) (release, bool) {
	var r release
	n, _ := fmt.Sscanf(string(name), "%d.%d.%d", &r.major, &r.minor, &r.patch)
	return r, n >= 2
}

// Refuse returns why no return may be probed on a machine, by its /proc, or "". A probe of a return changes the return
// address on the stack, so that the function returns to code of the kernel.
func Refuse(proc hostfs.Root) string {
	const most = 16 << 10 // enough for the first processor
	cpu, _ := proc.Read(most, "cpuinfo")
	name, _ := proc.Read(256, "sys/kernel/osrelease")
	r, known := releaseOf(name)
	// With a shadow stack the processor compares both addresses. Linux changes the shadow stack too only from 6.11 on.
	if bytes.Contains(cpu, []byte(" user_shstk")) && (!known || r.before(6, 11, 0)) {
		return "this processor and kernel have shadow stacks, with which Linux before 6.11 breaks programs whose returns are probed"
	}
	return refuseCalls(r, known, hasReturnCall(proc))
}

// refuseCalls returns why a return may not make a system call on this kernel, or "". From 6.11 on, the kernel's code at the
// return address makes the system call "uretprobe". A filter of system calls (seccomp) that does not know it ends the
// program. Linux lets it pass all filters from 6.14 on, and from 6.12.14 and 6.13.3 (commit cf6cb56ef244). A program may set
// its filter at any time, and a thread of it too, so a kernel that is not known to let the call pass has no such probes.
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
