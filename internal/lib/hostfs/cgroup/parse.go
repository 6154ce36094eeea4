// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"strconv"
)

// Parsers of the files of control groups. They skip what they do not understand. A missing value is unknown, which is
// better than an error for the whole group.

// parseNumber parses a file of one number.
func parseNumber(data []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
	return n, err == nil
}

// unlimited is the smallest number that means no limit. Version 1 rounds the largest signed number down to whole pages
// (PAGE_COUNTER_MAX). cAdvisor uses the same bound.
const unlimited = 1 << 62

// parseLimit parses a limit and returns 0 for none. Version 2 writes "max"; version 1 writes -1 or a number that is too
// large.
func parseLimit(data []byte) (uint64, bool) {
	data = bytes.TrimSpace(data)
	if s := string(data); s == "max" || s == "-1" {
		return 0, true
	}
	n, ok := parseNumber(data)
	if n >= unlimited {
		n = 0
	}
	return n, ok
}

// parseCPUMax parses cpu.max of version 2: "QUOTA PERIOD" in microseconds. It returns a quota of 0 for "max".
func parseCPUMax(data []byte) (quota, period uint64, ok bool) {
	q, p, found := bytes.Cut(bytes.TrimSpace(data), []byte(" "))
	if !found {
		return 0, 0, false
	}
	quota, ok1 := parseLimit(q)
	period, ok2 := parseNumber(p)
	return quota, period, ok1 && ok2
}

// sharesOfWeight converts a weight of version 2 (1 to 10,000) to shares of version 1 (2 to 262,144), as cAdvisor does.
// It inverts the conversion that runtimes apply to configured shares.
func sharesOfWeight(weight uint64) (uint64, bool) {
	if weight < 1 || weight > 10_000 {
		return 0, false
	}
	return 2 + (weight-1)*262_142/9_999, true
}

// eachLine calls f for every line that is not empty, without its end.
func eachLine(data []byte, f func(line []byte)) {
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		if len(line) > 0 {
			f(line)
		}
	}
}

// ParseFlat parses a flat keyed file of lines "KEY NUMBER". It skips "KEY max".
func ParseFlat(data []byte, each func(key []byte, value uint64)) {
	eachLine(data, func(line []byte) {
		key, value, found := bytes.Cut(line, []byte(" "))
		if n, ok := parseNumber(value); found && ok && len(key) > 0 {
			each(key, n)
		}
	})
}

// parsePressure parses a PSI file: lines "some avg10=... total=MICROSECONDS" and "full ...".
func parsePressure(data []byte, each func(kind []byte, total uint64)) {
	eachLine(data, func(line []byte) {
		kind, _, found := bytes.Cut(line, []byte(" "))
		_, total, hasTotal := bytes.Cut(line, []byte(" total="))
		if n, ok := parseNumber(total); found && hasTotal && ok {
			each(kind, n)
		}
	})
}

// parseDevice parses MAJOR:MINOR.
func parseDevice(field []byte) (major, minor uint32, ok bool) {
	a, b, found := bytes.Cut(field, []byte(":"))
	x, err1 := strconv.ParseUint(string(a), 10, 32)
	y, err2 := strconv.ParseUint(string(b), 10, 32)
	return uint32(x), uint32(y), found && err1 == nil && err2 == nil
}

// parseIOStat parses io.stat of version 2: lines "MAJOR:MINOR rbytes=N wbytes=N rios=N wios=N ...". In kernels 5.13 to
// 6.0 a device without numbers can precede another one on the same line.
func parseIOStat(data []byte, each func(major, minor uint32, key []byte, value uint64)) {
	eachLine(data, func(line []byte) {
		var major, minor uint32
		known := false
		for field := range bytes.FieldsSeq(line) {
			key, value, found := bytes.Cut(field, []byte("="))
			if !found {
				major, minor, known = parseDevice(field)
				continue
			}
			if n, ok := parseNumber(value); ok && known {
				each(major, minor, key, n)
			}
		}
	})
}

// parseBlkio parses a blkio file of version 1: lines "MAJOR:MINOR OPERATION NUMBER". It skips the total, which has no
// device.
func parseBlkio(data []byte, each func(major, minor uint32, operation []byte, value uint64)) {
	eachLine(data, func(line []byte) {
		device, rest, _ := bytes.Cut(line, []byte(" "))
		operation, value, found := bytes.Cut(rest, []byte(" "))
		major, minor, isDevice := parseDevice(device)
		if n, ok := parseNumber(value); found && isDevice && ok {
			each(major, minor, operation, n)
		}
	})
}

// appendProcs parses cgroup.procs. It skips 0, which stands for a process outside the reader's PID namespace.
func appendProcs(pids []int, data []byte) []int {
	eachLine(data, func(line []byte) {
		if pid, err := strconv.ParseInt(string(line), 10, 32); err == nil && pid > 0 {
			pids = append(pids, int(pid))
		}
	})
	return pids
}
