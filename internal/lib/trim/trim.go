// SPDX-License-Identifier: Apache-2.0

// Package trim gives memory back that only the start of the program has needed. It reads what the kernel says
// of this process's own mappings, and refuses to touch a page whose content is nowhere else.
package trim

import (
	"bufio"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Trim gives back the heap's free pages, and the pages of this program's own code and constants, of which
// the start of a binary with many packages touches most. What is needed again comes from the page cache at
// the cost of a minor fault.
//
// It is advice: where it cannot be followed, nothing is lost.
func Trim() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range cleanMappings(smaps, self) {
		_, _, _ = syscall.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

type mapping struct{ from, to uintptr }

// cleanMappings finds the mappings of a file that are not writable and of which no page was written
// before they became so: a private page that was written (relocations, breakpoints) exists nowhere
// else. smaps is as proc_pid_smaps(5) has it; what is not exactly so is left alone.
func cleanMappings(smaps io.Reader, file string) []mapping {
	var clean []mapping
	var current mapping
	candidate := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		if name, _, _ := strings.Cut(line, " "); !strings.Contains(name, ":") { // else it is about the mapping above
			m, mode, ok := parseHeading(line)
			current = m
			candidate = ok && (mode == "r-xp" || mode == "r--p") && strings.HasSuffix(line, " "+file)
			continue
		}
		if amount, ok := strings.CutPrefix(line, "Anonymous:"); ok {
			if candidate && strings.TrimLeft(amount, " ") == "0 kB" {
				clean = append(clean, current)
			}
			candidate = false
		}
	}
	return clean
}

// parseHeading reads the first line of a mapping, "FROM-TO MODE OFFSET DEVICE INODE FILE".
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
