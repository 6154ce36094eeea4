// SPDX-License-Identifier: Apache-2.0

// Package trim returns memory to the system that only the start of the program needed, and keeps unused pages of the program
// out of memory. It does not drop a page whose content is stored nowhere else.
package trim

import (
	"os"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Trim frees the heap's unused pages, and the pages of this program's code and constants. The start of a binary with
// many packages touches most of them. Pages that are needed again come from the page cache at the cost of a minor
// fault.
//
// Trim is advice to the kernel. Nothing is lost when the kernel ignores it.
//
// Measured on Linux 6.18, 150 s after the start (n=1 each): resident memory of the agent 53 MB, without trimming 67 MB;
// of the agent and server in one process 94 and 101 MB. Anonymous memory is the same with and without.
func Trim() {
	debug.FreeOSMemory()
	self := hostfs.At("/proc").Self()
	clean, mixed := own(self)
	for _, m := range append(clean, filePages(self, mixed)...) {
		_, _, _ = syscall.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// filePages finds the pages of mappings that were not written. A probe on this program, with which the agent measures the
// cost of one, leaves a written page in the code of all its processes.
func filePages(self hostfs.Process, mixed []mapping) (clean []mapping) {
	for _, m := range mixed {
		pages, err := self.Pages(hostfs.Mapping{Start: uint64(m.from), End: uint64(m.to)})
		if err != nil {
			continue
		}
		clean = append(clean, unwritten(pages, m)...)
	}
	return clean
}

// unwritten finds the runs of pages of a mapping that are in memory and were not written.
func unwritten(pages []hostfs.Page, m mapping) (runs []mapping) {
	size := uintptr(os.Getpagesize())
	for i, page := range pages {
		at := m.from + uintptr(i)*size
		if !page.Present() || !page.OfFile() {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].to == at {
			runs[n-1].to += size
		} else {
			runs = append(runs, mapping{at, at + size})
		}
	}
	return runs
}

type mapping struct{ from, to uintptr }

// own finds the mappings of a process's program that are not writable. In clean mappings no page was written; in mixed
// ones some pages were. A private page that was written (by relocations or breakpoints) exists nowhere else.
func own(p hostfs.Process) (clean, mixed []mapping) {
	program, err := p.Link("exe")
	if err != nil {
		return nil, nil
	}
	page := uint64(os.Getpagesize())
	// What follows an error is missing, and stays in memory.
	_ = p.Smaps(func(m hostfs.Mapping, anonymous uint64) {
		one := mapping{uintptr(m.Start), uintptr(m.End)}
		switch {
		case m.Writable, string(m.Path) != program, m.Start >= m.End, m.Start%page != 0, m.End%page != 0:
		case anonymous == 0:
			clean = append(clean, one)
		default:
			mixed = append(mixed, one)
		}
	})
	return clean, mixed
}
