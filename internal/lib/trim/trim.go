// SPDX-License-Identifier: Apache-2.0

// Package trim returns memory to the system that only the start of the program needed, and keeps unused pages of the program
// out of memory. It reads the kernel's list of
// this process's own mappings, and refuses to drop a page whose content is stored nowhere else.
package trim

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
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
	clean, mixed := own()
	for _, m := range append(clean, filePages(mixed)...) {
		_, _, _ = syscall.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// filePages finds the pages of mappings that were not written. A probe on this program, with which the agent measures the
// cost of one, leaves a written page in the code of all its processes.
func filePages(mixed []mapping) (clean []mapping) {
	if len(mixed) == 0 {
		return nil
	}
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	defer pagemap.Close()
	const entry = 8 // bytes
	page := uintptr(os.Getpagesize())
	for _, m := range mixed {
		data := make([]byte, (m.to-m.from)/page*entry)
		if _, err := pagemap.ReadAt(data, int64(m.from/page*entry)); err != nil {
			continue
		}
		clean = append(clean, unwritten(data, m, page)...)
	}
	return clean
}

// unwritten finds the runs of pages of a mapping that are in memory and were not written, from their entries in
// /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst in the kernel).
func unwritten(entries []byte, m mapping, page uintptr) (runs []mapping) {
	const present, ofFile = 1 << 63, 1 << 61
	for at := m.from; len(entries) >= 8; entries, at = entries[8:], at+page {
		if e := binary.NativeEndian.Uint64(entries); e&present == 0 || e&ofFile == 0 {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].to == at {
			runs[n-1].to += page
		} else {
			runs = append(runs, mapping{at, at + page})
		}
	}
	return runs
}

type mapping struct{ from, to uintptr }

// ownMappings finds the file's mappings that are not writable: those that were never written, and those of which some
// pages were. A private page that was written (by relocations or breakpoints) exists nowhere else. The format of smaps is
// in proc_pid_smaps(5). Mappings in any other format are skipped.
func ownMappings(smaps io.Reader, file string) (clean, mixed []mapping) {
	var current mapping
	candidate := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		if name, _, _ := strings.Cut(line, " "); !strings.Contains(name, ":") { // about the mapping above
			m, mode, ok := parseHeading(line)
			current = m
			candidate = ok && (mode == "r-xp" || mode == "r--p") && strings.HasSuffix(line, " "+file)
			continue
		}
		if amount, ok := strings.CutPrefix(line, "Anonymous:"); ok {
			switch {
			case !candidate:
			case strings.TrimLeft(amount, " ") == "0 kB":
				clean = append(clean, current)
			default:
				mixed = append(mixed, current)
			}
			candidate = false
		}
	}
	return clean, mixed
}

// parseHeading parses the first line of a mapping, "FROM-TO MODE OFFSET DEVICE INODE FILE".
func parseHeading(line string) (m mapping, mode string, ok bool) {
	where, rest, _ := strings.Cut(line, " ")
	first, last, _ := strings.Cut(where, "-")
	from, err1 := strconv.ParseUint(first, 16, 64)
	to, err2 := strconv.ParseUint(last, 16, 64)
	mode, _, found := strings.Cut(rest, " ")
	page := uint64(os.Getpagesize())
	ok = found && err1 == nil && err2 == nil && from < to && from%page == 0 && to%page == 0
	return mapping{uintptr(from), uintptr(to)}, mode, ok
}
