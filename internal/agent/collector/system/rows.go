// SPDX-License-Identifier: Apache-2.0

// Package system is the collector of how workloads use the kernel: system calls, context switches, page faults, the
// page cache, CPU time and memory (the System Metrics Exporter of TEEMon, section 4).
//
// The kernel side (system.bpf.c, slots.h) counts into slots. The user side names the slots, adds them up into workloads and
// frees unused ones. The package does not depend on how metrics are scraped or stored.
package system

import (
	"iter"
	"sync/atomic"
	"unsafe"
)

const rowWords = int(unsafe.Sizeof(row{}) / 8)

// words returns the counters of the row, and its marks, as an array.
func (r *row) words() *[rowWords]uint64 { return (*[rowWords]uint64)(unsafe.Pointer(r)) }

// marks returns the marks of the calls of a row, eight in each word.
func (r *row) marks() *[calls / callsPerMark / 8]uint64 {
	return (*[calls / callsPerMark / 8]uint64)(unsafe.Pointer(&r.Called))
}

// markAs adds the marks of another row. A sum has the marks of its parts.
func (r *row) markAs(from *row) {
	marks := r.marks()
	for w := range marks {
		marks[w] |= atomic.LoadUint64(&from.marks()[w])
	}
}

// firstOther is the first counter after those of system calls, and firstMark is the word after the last counter.
const (
	firstOther = calls
	firstMark  = int(unsafe.Offsetof(row{}.Called) / 8)
)

// marked lists the ranges of the counters of calls that have a mark. The others are zero.
func (r *row) marked() iter.Seq2[int, int] {
	return func(yield func(first, last int) bool) {
		for w := range r.marks() {
			marked := atomic.LoadUint64(&r.marks()[w]) // the kernel side may set further marks
			for first := 8 * w * callsPerMark; marked != 0; first, marked = first+callsPerMark, marked>>8 {
				if marked&0xff != 0 && !yield(first, first+callsPerMark) {
					return
				}
			}
		}
	}
}

// parts lists the ranges of counters that may not be zero: those of marked calls, and all that are not of calls.
func (r *row) parts() iter.Seq2[int, int] {
	return func(yield func(first, last int) bool) {
		for first, last := range r.marked() {
			if !yield(first, last) {
				return
			}
		}
		yield(firstOther, firstMark)
	}
}

// timingOff is a time that is never reached (TIMING_OFF in system.h).
const timingOff = ^uint64(0)
