// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on x86.
const tick = time.Second / 100

// stat is what is used of /proc/PID/task/TID/stat.
type stat struct {
	name    string
	state   string        // one letter
	cpu     time.Duration // user and system time, in ticks
	started time.Duration // after the machine
}

// parseStat reads fields 2, 3, 14, 15 and 22 of proc_pid_stat(5). The name may hold anything,
// parentheses and newlines too.
func parseStat(data []byte) (stat, bool) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	fields := strings.Fields(string(data[end+1:]))
	const first, state, user, system, start = 3, 3, 14, 15, 22
	if len(fields) <= start-first {
		return stat{}, false
	}
	s := stat{name: strings.ToValidUTF8(string(data[open+1:end]), "\uFFFD"), state: fields[state-first]}
	var times [3]time.Duration
	for i, at := range []int{user, system, start} {
		n, err := strconv.ParseInt(fields[at-first], 10, 64)
		if err != nil || n < 0 || n > 1<<62/int64(tick) {
			return stat{}, false
		}
		times[i] = time.Duration(n) * tick
	}
	s.cpu, s.started = times[0]+times[1], times[2]
	return s, s.cpu >= 0
}

// parseSchedstat reads the time on a CPU and the time ready without one. Kernels without
// CONFIG_SCHED_INFO write zeros (proc_pid_schedstat, fs/proc/base.c): that says nothing.
func parseSchedstat(data []byte) (run, wait time.Duration, ok bool) {
	fields := strings.Fields(string(data))
	if len(fields) != 3 {
		return 0, 0, false
	}
	var n [2]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil || n[i] < 0 {
			return 0, 0, false
		}
	}
	return time.Duration(n[0]), time.Duration(n[1]), fields[2] != "0"
}

// parseSwitches reads the context switches from /proc/PID/task/TID/status. The name, which its owner
// chooses, cannot pretend to be one of the lines: the kernel escapes newlines there.
func parseSwitches(data []byte) (voluntary, involuntary uint64, ok bool) {
	found := 0
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		into := &voluntary
		switch name {
		case "voluntary_ctxt_switches":
		case "nonvoluntary_ctxt_switches":
			into = &involuntary
		default:
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return 0, 0, false
		}
		*into = n
		found++
	}
	return voluntary, involuntary, found == 2
}

// parseWchan reads the kernel function that a thread waits in; "0" is none, or one that may not be told.
// What the compiler has added to the name is taken off.
func parseWchan(data []byte) string {
	name, _, _ := strings.Cut(strings.TrimSpace(string(data)), ".")
	if name == "0" {
		return ""
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}
