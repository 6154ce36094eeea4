// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// maxProcesses bounds the processes of a log that are distinguished.
const maxProcesses = 4096

// Seen is a kind of line in a log.
type Seen struct {
	Count int
	Line  int // the first one
}

func (s *Seen) add(line int) {
	if s.Count++; s.Count == 1 {
		s.Line = line
	}
}

// Log has the lines of a log of Gramine that name a cause.
type Log struct {
	// RawSyscalls are "Emulating a raw syscall instruction" (pal_exception.c of linux-sgx) and "Emulating a raw
	// system/supervisor call" (of linux). Each process prints it once.
	RawSyscalls Seen
	// NoTCS is "There are no available TCS pages left for a new thread" (host_thread.c). TCSs is the current value.
	NoTCS Seen
	TCSs  int64 // 0 is not known
	// OutOfMemory are errors about missing memory: "Out-of-memory in library OS" and "failed to allocate memory" (libos_malloc.c),
	// "failed allocating enough memory for checkpoint" (libos_checkpoint.c), and "Out of memory" of the lower part (PAL).
	OutOfMemory Seen
	// DebugBuild are lines that only debug builds write: the end of a profile (host_profile.c), a failed assertion (assert.h), and SGX
	// stats without those of threads, which Gramine 1.8 and later print and only debug builds accept (host_main.c).
	DebugBuild Seen
	// Places are messages with a place in Gramine's source, which 1.4 and later print at the level debug (libos/src/utils/log.c).
	Places Seen
	// Processes is the number of different processes that wrote a line, as "[P2:" names them. It counts the first 4096.
	Processes int
	// SecondProcess is the first line of a second one, or 0.
	SecondProcess int
	// Banners are lines that Gramine writes at its start with any log level, and its SGX stats.
	Banners Seen
	// Commit is that which Gramine was built from, which the level debug names. "" is not known, or several: a log may have runs of several versions.
	Commit     string
	CommitLine int
	// Debug are lines of the levels debug and trace.
	Debug Seen
	// Warnings and Errors are lines of these levels.
	Warnings, Errors Seen
	Lines            int
	Bytes            int
}

var (
	// level matches what Gramine puts before a message: "[P1:T2:redis-server] debug: ", and before that the place in its source.
	level        = lazy.Regexp(`^(?:[\[(][^\])]{0,200}[\])] ?){0,3}(error|warning|debug|trace): `)
	place        = lazy.Regexp(`^(?:\[[^\]]{0,200}\] ?){0,2}\([\w.-]{1,100}\.[ch]:\d{1,6}:\w{1,100}\) `)
	process      = lazy.Regexp(`^(?:\([\w.-]{1,100}\.[ch]:\d{1,6}:\w{1,100}\) )?\[P(\d{1,10}):`)
	debugBuild   = lazy.Regexp(`\bProfile data written to .+ \(\d{1,20} bytes\)|\bassert failed [\w./-]{1,200}\.[ch]:\d{1,6} `)
	totalStats   = lazy.Regexp(`----- (Total SGX stats for process|SGX stats for thread) \d{1,10} -----`)
	banner       = lazy.Regexp(`Gramine is starting\. Parsing TOML|Gramine detected the following insecure configurations|----- (?:Total SGX stats|SGX stats|SGX enclave loading time)`)
	commit       = lazy.Regexp(`Gramine was built from commit: ([0-9a-f]{40})`)
	noMemory     = lazy.Regexp(`[Oo]ut[- ]of[- ]memory|failed to allocate memory(?:$|:| \()|failed allocating enough memory`)
	currentValue = lazy.Regexp(`The current value is (\d{1,9})`)
)

// ParseLog reads a log of Gramine, or what an application and Gramine print together. Unknown lines are skipped. A text without any
// known line is an error.
func ParseLog(data []byte) (Log, error) {
	l := Log{Bytes: len(data)}
	processes := make(map[string]bool)
	value := 0 // lines in which the value of NoTCS may still come
	var totals, threads Seen
	for n, line := range lines(string(data)) {
		l.Lines = n
		if banner().MatchString(line) {
			l.Banners.add(n)
		}
		if found := commit().FindStringSubmatch(line); found != nil {
			if l.CommitLine == 0 {
				l.Commit, l.CommitLine = found[1], n
			}
			if found[1] != l.Commit {
				l.Commit = ""
			}
		}
		if place().MatchString(line) {
			l.Places.add(n)
		}
		if debugBuild().MatchString(line) {
			l.DebugBuild.add(n)
		}
		if found := totalStats().FindStringSubmatch(line); found != nil {
			if found[1] == "SGX stats for thread" {
				threads.add(n)
			} else {
				totals.add(n)
			}
		}
		if found := process().FindStringSubmatch(line); found != nil && len(processes) < maxProcesses && !processes[found[1]] {
			if processes[found[1]] = true; len(processes) == 2 {
				l.SecondProcess = n
			}
		}
		switch {
		case strings.Contains(line, "Emulating a raw syscall instruction"), strings.Contains(line, "Emulating a raw system/supervisor call"):
			l.RawSyscalls.add(n)
		case strings.Contains(line, "no available TCS pages left for a new thread"):
			l.NoTCS.add(n)
			value = 3
		}
		if value--; value >= 0 {
			if found := currentValue().FindStringSubmatch(line); found != nil {
				l.TCSs, _ = strconv.ParseInt(found[1], 10, 64)
				value = 0
			}
		}
		found := level().FindStringSubmatch(line)
		if found == nil {
			continue
		}
		switch found[1] {
		case "error":
			l.Errors.add(n)
			if noMemory().MatchString(line) {
				l.OutOfMemory.add(n)
			}
		case "warning":
			l.Warnings.add(n)
		default:
			l.Debug.add(n)
		}
	}
	if l.DebugBuild.Count == 0 && threads.Count == 0 {
		l.DebugBuild = totals
	}
	l.Processes = len(processes)
	if l.Processes+l.NoTCS.Count+l.RawSyscalls.Count+l.Places.Count+l.DebugBuild.Count+l.Debug.Count+l.Banners.Count+l.Errors.Count+l.Warnings.Count == 0 {
		return Log{}, fmt.Errorf("%w: Gramine writes \"Gramine is starting\" and messages such as \"[P1:T1:redis-server] error: \" to the terminal, or to loader.log_file", errNothing)
	}
	return l, nil
}
