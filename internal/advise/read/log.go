// SPDX-License-Identifier: Apache-2.0

package read

import (
	"regexp"
	"strconv"
	"strings"
)

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
	// OutOfMemory are errors that say so.
	OutOfMemory Seen
	// Debug are lines of the levels debug and trace.
	Debug Seen
	// Warnings and Errors are lines of these levels.
	Warnings, Errors Seen
	Lines            int
	Bytes            int
}

var (
	// level matches what Gramine puts before a message: "[P1:T2:redis-server] debug: ", and in debug builds the place in
	// its source.
	level        = regexp.MustCompile(`^(?:[\[(][^\])]{0,200}[\])] ?){0,3}(error|warning|debug|trace): `)
	currentValue = regexp.MustCompile(`The current value is (\d{1,9})`)
)

// ParseLog reads a log of Gramine, or what an application and Gramine print together. Unknown lines are skipped.
func ParseLog(data []byte) Log {
	l := Log{Bytes: len(data)}
	value := 0 // lines in which the value of NoTCS may still come
	for n, line := range lines(string(data)) {
		l.Lines = n
		switch {
		case strings.Contains(line, "Emulating a raw syscall instruction"), strings.Contains(line, "Emulating a raw system/supervisor call"):
			l.RawSyscalls.add(n)
		case strings.Contains(line, "no available TCS pages left for a new thread"):
			l.NoTCS.add(n)
			value = 3
		}
		if value--; value >= 0 {
			if found := currentValue.FindStringSubmatch(line); found != nil {
				l.TCSs, _ = strconv.ParseInt(found[1], 10, 64)
				value = 0
			}
		}
		found := level.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		switch found[1] {
		case "error":
			l.Errors.add(n)
			if strings.Contains(line, "ut of memory") {
				l.OutOfMemory.add(n)
			}
		case "warning":
			l.Warnings.add(n)
		default:
			l.Debug.add(n)
		}
	}
	return l
}
